"""The page of a season, such as `/2023`: its races, their winners, both championships."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from racedata.formats import Json, public_url
from racedata.service.pages import races
from racedata.service.pages.ask import Ask


def facts(ask: Ask, season: int) -> dict[str, Any]:
    before, after = races.neighbours(sorted(ask.catalogue.rounds), season)
    winners = {
        race["round"]: races.places(race["Results"]) for race in ask("results", season, results="1")
    }
    sprints = {
        race["round"]: [result["Driver"] for result in race["SprintResults"]]
        for race in ask("sprint", season, sprint="1")
    }
    leaders: dict[str, list[Json]] = {}
    for number, driver in ask.rows("leaders", season):
        leaders.setdefault(str(number), []).append(ask.catalogue.drivers[driver])
    calendar = ask("races", season)
    coming = [ask.catalogue.races[id] for id in ask.catalogue.coming]
    provenances = ask.provenances(calendar)
    laps = [each["FastestLaps"] for each in provenances if "FastestLaps" in each]
    (about,) = ask("seasons", season)
    return {
        "season": season,
        "article": public_url(about.get("url", "")),
        "before": before,  # the season before it
        "after": after,
        # each race, who won it, and who led the championship after it; two drivers have won if they
        # shared the car, as in Britain in 1957
        "races": [
            (race, winners.get(race["round"], ()), leaders.get(race["round"], ()))
            for race in calendar
        ],
        # the races after the last one with results, if they begin in this season: by round, with
        # their start
        "coming": {
            race["round"]: (race, races.start(race))
            for race in coming
            if race["season"] == coming[0]["season"] == str(season)
        },
        "sprints": sprints,  # the winner of each, by round
        "last": next((race for race in reversed(calendar) if race["round"] in winners), None),
        "winners": most_wins(winners.values()),
        # of the results, and of the fastest laps in them
        "sources": dict.fromkeys(each["source"] for each in provenances),
        "lap_sources": dict.fromkeys(each["source"] for each in laps),
        # how many values, of all kinds
        "corrected": ask.content("corrections", season, limit=0).total,
        "disputed": ask.content("discrepancies", season, wanted={"state": "open"}, limit=0).total,
        "championships": [*races.championships(ask, (season, None))],
        "record_counts": races.record_counts(ask, season),
    }


def most_wins(winners: Iterable[list[Json]]) -> list[Json]:
    """The winners of races with their number of wins, most first. Each has all constructors."""
    found: dict[str, Json] = {}
    for place in chain.from_iterable(winners):
        known = found.setdefault(
            place["Driver"]["driverId"], {**place, "Constructors": [], "wins": 0}
        )
        known["wins"] += 1
        known["Constructors"] += [
            team for team in place["Constructors"] if team not in known["Constructors"]
        ]
    wins = [winner["wins"] for winner in found.values()]
    return [
        {
            **winner,
            "wins": str(winner["wins"]),
            "positionText": str(1 + sum(more > winner["wins"] for more in wins)),
        }
        for winner in sorted(found.values(), key=lambda winner: -int(winner["wins"]))
    ]

"""The page of a season, such as `/2023`: its races with their winners, and both championships."""

from typing import Any

from racedata.service.pages import races
from racedata.service.pages.ask import ALL, Ask


def facts(ask: Ask, season: int) -> dict[str, Any]:
    before, after = races.neighbours(sorted(ask.catalogue.rounds), season)
    results = ask("results", ALL, season, results="1")
    winners = {race["round"]: race["Results"] for race in results}
    return {
        "season": season,
        "before": before,  # the season before it
        "after": after,
        # with their winners: two of them if they shared a car
        "races": [
            (race, races.places(winners.get(race["round"], [])))
            for race in ask("races", ALL, season)
        ],
        "championships": [*races.championships(ask, (season, None))],
        "records": [*races.records(ask, season)],
    }

"""The page of a circuit, such as `/circuits/monza`: layouts, lap records, winners."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from racedata.formats import Json, milliseconds, public_url
from racedata.service import outlines
from racedata.service.outlines import Layout
from racedata.service.pages import races
from racedata.service.pages.ask import Ask


class Track(NamedTuple):
    """A layout, with the results that have its lap records: several if drivers share one, none if
    no lap is known.
    """

    layout: Layout | None  # None for races on a layout that outlines.csv does not have
    periods: str
    records: list[Json]


def facts(ask: Ask, circuit: str) -> dict[str, Any]:
    what = ask.object("circuit", circuit)
    won = ask("results", circuits=circuit, results="1")
    with_winner = {(race["season"], race["round"]) for race in won}
    winners = [(race, race["Results"]) for race in reversed(won)]
    # Both drivers of a shared car have won, but their constructor only once.
    most_drivers = races.most(each["Driver"] for _, results in winners for each in results)
    return {
        "circuit": what,
        "article": public_url(what.get("url", "")),
        "tracks": tracks(ask, circuit, won),
        "winners": winners,
        # races without a winner: those to come, and those that are not loaded
        "others": [
            race
            for race in ask("races", circuits=circuit)
            if (race["season"], race["round"]) not in with_winner
        ],
        "most_drivers": most_drivers,
        "most_constructors": races.most(results[0]["Constructor"] for _, results in winners),
    }


def tracks(ask: Ask, circuit: str, won: Sequence[Json]) -> list[Track]:
    """The layouts, the last used first, with the fastest race laps on them."""
    layouts = outlines.layouts_of(circuit)
    laps_of = {(race["season"], race["round"]): race["Results"][0].get("laps") for race in won}
    laps: dict[Layout | None, list[Json]] = {
        layout: [] for layout in sorted(layouts, key=lambda each: each.seasons[-1], reverse=True)
    }
    for race in ask("results", circuits=circuit, fastest=1):
        number = int(laps_of.get((race["season"], race["round"])) or 0)
        of_layout = laps.setdefault(outlines.layout_of(layouts, int(race["season"]), number), [])
        of_layout += [
            {**result, "race": race, "time": time}
            for result in race["Results"]
            if (time := races.time_of(result.get("FastestLap", {})))
        ]
    return [
        Track(layout, periods(layout.seasons) if layout else "", fastest(of_layout))
        for layout, of_layout in laps.items()
    ]


def fastest(laps: Sequence[Json]) -> list[Json]:
    times = [milliseconds(lap["time"]) for lap in laps]
    return [lap for lap, time in zip(laps, times) if time == min(times)]


def periods(seasons: Sequence[int]) -> str:
    """`1950 to 1954, 1960`."""
    runs: list[list[int]] = []
    for season in seasons:
        if runs and runs[-1][-1] == season - 1:
            runs[-1].append(season)
        else:
            runs.append([season])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)

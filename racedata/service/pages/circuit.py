"""The page of a circuit, such as `/circuits/monza`: layouts, lap records, winners."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from racedata.formats import Json, milliseconds, public_url
from racedata.service import outlines
from racedata.service.outlines import Layout
from racedata.service.pages import races
from racedata.service.pages.ask import Ask
from racedata.service.request import ALL


class Lap(NamedTuple):
    """The fastest lap of a race."""

    time: str
    driver: Json
    constructor: Json
    race: Json


class Track(NamedTuple):
    """A layout, with its lap records: several if drivers share one, none if no lap is known."""

    layout: Layout | None  # None for races on a layout that outlines.csv does not have
    periods: str
    records: list[Lap]


def facts(ask: Ask, circuit: str) -> dict[str, Any]:
    what = ask.object("circuit", circuit)
    won = ask("results", ALL, circuits=circuit, results="1")
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
            for race in ask("races", ALL, circuits=circuit)
            if (race["season"], race["round"]) not in with_winner
        ],
        "most_drivers": most_drivers,
        "most_constructors": races.most(results[0]["Constructor"] for _, results in winners),
        "attribution": outlines.ATTRIBUTION,
        "outlines_url": outlines.SOURCE_URL,
        "outlines_licence": outlines.LICENCE_URL,
        "size": outlines.SIZE,
    }


def tracks(ask: Ask, circuit: str, won: Sequence[Json]) -> list[Track]:
    """The layouts, the last used first, with the fastest race laps on them."""
    layouts = outlines.layouts_of(circuit)
    laps_of = {(race["season"], race["round"]): int(race["Results"][0]["laps"]) for race in won}
    laps: dict[str | None, list[Lap]] = {}
    for race in ask("results", ALL, circuits=circuit, fastest=1):
        number = laps_of.get((race["season"], race["round"]))
        layout = outlines.layout_of(layouts, int(race["season"]), number)
        laps.setdefault(layout.name if layout else None, []).extend(
            Lap(result["FastestLap"]["Time"]["time"], result["Driver"], result["Constructor"], race)
            for result in race["Results"]
            if "Time" in result["FastestLap"]
        )
    known: list[Layout | None] = [
        *sorted(layouts, key=lambda layout: layout.seasons[-1], reverse=True)
    ]
    return [
        Track(layout, periods(layout.seasons) if layout else "", fastest(laps.get(name, [])))
        for layout in known + [None] * (None in laps)
        for name in [layout.name if layout else None]
    ]


def fastest(laps: Sequence[Lap]) -> list[Lap]:
    times = [milliseconds(lap.time) for lap in laps]
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

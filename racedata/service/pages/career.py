"""What the pages of a driver and of a constructor share: careers in numbers, seasons, wins."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from racedata.formats import Json
from racedata.model import LETTERS
from racedata.service.addresses import Value
from racedata.service.catalogue import Catalogue
from racedata.service.pages import career_queries
from racedata.service.pages.ask import Ask
from racedata.service.request import ALL

COUNTED = ("starts", "wins", "poles", "podiums")
# of a season with a place in the championship, but without results
NOTHING = dict.fromkeys(COUNTED, 0)


class Career(NamedTuple):
    """A driver or a constructor: what the data calls it, and what a season of it has."""

    kind: str  # an endpoint and a filter: `drivers`
    column: str  # of its id
    standings: str  # the endpoint of its championship
    key: str  # of its place there: `DriverStandings`
    partners: str  # the column of what a season has several of
    partner_objects: Callable[[Catalogue], Mapping[int, Json]]


DRIVER = Career(
    "drivers",
    "driverId",
    "driverstandings",
    "DriverStandings",
    "constructorId",
    lambda catalogue: catalogue.constructors,
)
CONSTRUCTOR = Career(
    "constructors",
    "constructorId",
    "constructorstandings",
    "ConstructorStandings",
    "driverId",
    lambda catalogue: catalogue.drivers,
)


class Win(NamedTuple):
    """A race that was won."""

    race: Json
    drivers: list[Json]  # of a constructor, the winners; of a driver, those who shared the car


class SeasonRow(NamedTuple):
    """A season of a career."""

    year: int
    counts: Mapping[str, Any]  # as career_queries.seasons returns it, or NOTHING
    partners: list[Json]  # constructors of a driver, drivers of a constructor
    place: str  # in the championship; empty if it had none
    points: str
    is_champion: bool
    is_final: bool  # whether the season is over


def facts(ask: Ask, career: Career, reference: str) -> dict[str, Any]:
    """The facts of both pages."""
    id = ask.catalogue.ids[career.kind][reference]
    seasons = [*season_rows(ask, career, reference, id)]
    started = [row for row in seasons if row.counts["starts"]]
    catalogue = ask.catalogue
    return {
        "seasons": seasons[::-1],
        # what letters in places mean
        "legend": [
            f"{letter}: {LETTERS[letter]}"
            for letter in sorted({row.place for row in seasons} & LETTERS.keys())
        ],
        "totals": {name: sum(row.counts[name] for row in seasons) for name in COUNTED},
        "points": number(career_queries.points(ask.data, career.column, id)),
        "titles": [row.year for row in seasons if row.is_champion],
        # the races of the first and the last start
        "first_and_last": [
            catalogue.races[catalogue.id_of_round[row.year, row.counts[name]]]
            for row, name in (*zip(started[:1], ["first"]), *zip(started[-1:], ["last"]))
        ],
        # by season, the latest first, and by drivers
        "wins": [
            (season, by_drivers(of_season))
            for season, of_season in groupby(
                wins(ask, career, id), key=lambda win: win.race["season"]
            )
        ][::-1],
    }


def by_drivers(wins: Iterable[Win]) -> list[tuple[list[Json], list[Json]]]:
    """The drivers of wins with their races."""
    found: dict[str, tuple[list[Json], list[Json]]] = {}
    for race, drivers in wins:
        ids = " ".join(driver["driverId"] for driver in drivers)
        found.setdefault(ids, (drivers, []))[1].append(race)
    return [*found.values()]


def season_rows(ask: Ask, career: Career, reference: str, id: int) -> Iterator[SeasonRow]:
    who: dict[str, Value] = {career.kind: reference}
    objects = career.partner_objects(ask.catalogue)
    partners = career_queries.partners(ask.data, career.column, id, career.partners)
    final = {
        int(each["season"]): each[career.key][0]
        for each in ask(career.standings, ALL, None, None, **who)
    }
    counted = {row["year"]: row for row in career_queries.seasons(ask.data, career.column, id)}
    for year in sorted({*counted, *final}):
        place, is_final = final.get(year), year in final
        if not is_final:
            lists = ask(career.standings, 1, year, None, **who)
            place = lists[0][career.key][0] if lists else None
        place = place or {}
        yield SeasonRow(
            year,
            dict(counted.get(year, NOTHING)),
            [objects[each] for each in partners.get(year, ())],
            place.get("positionText", ""),
            place.get("points", ""),
            is_final and place.get("position") == "1",
            is_final or year < ask.catalogue.calendar_season,
        )


def wins(ask: Ask, career: Career, id: int) -> Iterator[Win]:
    """The races that were won, in order."""
    for race, winners in ask.winners.items():
        if any(winner[career.column] == id for winner in winners):
            yield Win(
                ask.catalogue.races[race],
                [
                    ask.catalogue.drivers[winner["driverId"]]
                    for winner in winners
                    if career is CONSTRUCTOR or winner["driverId"] != id
                ],
            )


def number(points: float) -> str:
    """`2,377`, `277.64`: without the noise that adding fractions leaves."""
    return f"{points:,.2f}".rstrip("0").rstrip(".")


def unknown(ask: Ask, kind: str, word: str, reference: str) -> str:
    """Why there is no page of a driver, constructor or circuit; empty if there is one."""
    return "" if reference in ask.catalogue.ids[kind] else f"No {word} here has the id {reference}"

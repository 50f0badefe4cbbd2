"""The pages of a driver and of a constructor, such as `/drivers/alonso`: their careers."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from racedata.colours import newest_colour
from racedata.formats import Json, public_url
from racedata.model import LETTERS
from racedata.service.addresses import Value
from racedata.service.pages.ask import Ask

COUNTED = ("starts", "wins", "poles", "podiums")
# A season has several constructors of a driver, and several drivers of a constructor.
PARTNER = {"driver": "constructor", "constructor": "driver"}


class Drive(NamedTuple):
    """A race of a driver or constructor."""

    race: Json
    starts: int  # 0 or 1, as the next two
    wins: int
    poles: int
    podiums: int  # of a constructor, perhaps several
    points: float  # without those of a sprint


class SeasonRow(NamedTuple):
    """A season of a career."""

    year: int
    counts: Mapping[str, int]  # by COUNTED
    partners: list[Json]
    place: str  # in the championship; empty if it had none
    points: str
    is_champion: bool
    is_final: bool  # whether the season is over


def drives(ask: Ask, who: str, column: str, value: str | int) -> Iterator[tuple[str, Drive]]:
    """The races of one driver or constructor, or of all in a season, in order; with the ids."""
    for id, year, round, *numbers in ask.rows("drives", value, who=who, column=column):
        yield id, Drive(ask.race(year, round), *numbers)


def counts(drives: Sequence[Drive]) -> dict[str, int]:
    return {name: sum(getattr(drive, name) for drive in drives) for name in COUNTED}


def driver(ask: Ask, driver: str) -> dict[str, Any]:
    who = ask.object("driver", driver)
    mates = [
        (row, ask.object("driver", row["mate"]), ask.object("constructor", row["constructor"]))
        for row in ask.rows("mates", who["driverId"])
    ]
    return {
        **facts(ask, "driver", who),
        "mates": [(year, [*of_year]) for year, of_year in groupby(mates, lambda m: m[0]["year"])],
    }


def constructor(ask: Ask, constructor: str) -> dict[str, Any]:
    who = ask.object("constructor", constructor)
    return {
        **facts(ask, "constructor", who),
        "colour": newest_colour(who["constructorId"]),
        # the seasons in which its driver was champion
        "drivers_titles": [
            season["season"]
            for season in ask("driverstandings", driverstandings="1")
            for champion in season["DriverStandings"]
            # the last constructor that the driver joined, as in the view driver_championship
            if [each["constructorId"] for each in champion["Constructors"]][-1:]
            == [who["constructorId"]]
        ],
    }


def facts(ask: Ask, who: str, one: Json) -> dict[str, Any]:
    """What both pages have; `who` is `driver` or `constructor`."""
    id = one[f"{who}Id"]
    whole = [drive for _, drive in drives(ask, who, f"{who}Ref", id)]
    seasons = [*season_rows(ask, who, id, whole)]
    started = [drive.race for drive in whole if drive.starts]
    ((sprint_points,),) = ask.rows("sprint points", id, who=who)
    return {
        who: one,
        "article": public_url(one.get("url", "")),
        "seasons": seasons[::-1],
        # what letters in places mean
        "legend": [
            f"{letter}: {LETTERS[letter]}"
            for letter in sorted({row.place for row in seasons} & LETTERS.keys())
        ],
        "totals": counts(whole),
        "points": number(sum(drive.points for drive in whole) + sprint_points),
        "titles": [row.year for row in seasons if row.is_champion],
        # the races of the first and the last start
        "first_and_last": [started[0], started[-1]] if started else [],
        "wins": wins(ask, who, id),
    }


def season_rows(ask: Ask, who: str, id: str, whole: Sequence[Drive]) -> Iterator[SeasonRow]:
    endpoint, filters = f"{who}standings", dict[str, Value]({f"{who}s": id.lower()})
    key = ask.endpoints[endpoint].records_key
    final = {int(each["season"]): each[key][0] for each in ask(endpoint, **filters)}
    by_year = {
        int(season): [*of_season]
        for season, of_season in groupby(whole, lambda drive: drive.race["season"])
    }
    partners: dict[int, list[Json]] = {}
    for year, partner in ask.rows("partners", id, who=who, other=PARTNER[who]):
        partners.setdefault(year, []).append(ask.object(PARTNER[who], partner))
    for year in sorted({*by_year, *final}):
        is_final = year in final
        lists = [] if is_final else ask(endpoint, year, **filters)
        place: Json = final.get(year) or next((each[key][0] for each in lists), {})
        yield SeasonRow(
            year,
            counts(by_year.get(year, ())),
            partners.get(year, []),
            place.get("positionText", ""),
            place.get("points", ""),
            is_final and place.get("position") == "1",
            is_final or year < ask.catalogue.calendar_season,
        )


def wins(ask: Ask, who: str, id: str) -> list[tuple[int, list[tuple[list[Json], list[Json]]]]]:
    """The races that were won: by season, the latest first, and by drivers. Those are the winners
    for a constructor or, of a driver, those who shared the car.
    """
    drivers: dict[tuple[int, int], list[str]] = {}
    for year, round, driver in ask.rows("winners", id, who=who):
        others = drivers.setdefault((year, round), [])
        others += [driver] if driver != id else []
    won: dict[int, dict[tuple[str, ...], list[Json]]] = {}
    for (year, round), of_race in drivers.items():
        won.setdefault(year, {}).setdefault((*of_race,), []).append(ask.race(year, round))
    return [
        (year, [([ask.object("driver", each) for each in ids], races) for ids, races in by.items()])
        for year, by in reversed(won.items())
    ]


def number(points: float) -> str:
    """`2,377`, `277.64`: without the noise that adding fractions leaves."""
    return f"{points:,.2f}".rstrip("0").rstrip(".")

"""The page of a driver, such as `/drivers/alonso`: career, seasons, wins, team mates."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from racedata.formats import Json, public_url
from racedata.service import careers
from racedata.service.pages import career
from racedata.service.pages.ask import Ask

# Ahead and behind: how often each of both had the better place.
Score = tuple[int, int]


class Mate(NamedTuple):
    """A team mate in a season, and who was ahead how often."""

    driver: Json
    constructor: Json
    together: int  # races in which both started
    races: Score
    qualifying: Score


def facts(ask: Ask, driver: str) -> dict[str, Any]:
    id = ask.catalogue.ids["drivers"][driver]
    who = ask.catalogue.drivers[id]
    return {
        **career.facts(ask, career.DRIVER, driver),
        "driver": who,
        "article": public_url(who.get("url", "")),
        "mates": [
            (year, [mate for _, mate in of_year])
            for year, of_year in groupby(mates(ask, id), key=lambda pair: pair[0])
        ],
    }


def fault(ask: Ask, driver: str) -> str:
    return career.unknown(ask, "drivers", "driver", driver)


def mates(ask: Ask, id: int) -> Iterator[tuple[int, Mate]]:
    """The team mates, with the season: the latest first, and in it those with most races."""
    catalogue = ask.catalogue
    races, qualifying = (
        {(row["year"], row["constructorId"], row["mate"]): row for row in rows}
        for rows in (
            careers.compared_in_races(ask.data, id),
            careers.compared_in_qualifying(ask.data, id),
        )
    )
    found = [
        (
            year,
            Mate(
                catalogue.drivers[mate],
                catalogue.constructors[constructor],
                races[key]["together"] if key in races else 0,
                score(races.get(key)),
                score(qualifying.get(key)),
            ),
        )
        for key in {**races, **qualifying}
        for year, constructor, mate in [key]
    ]
    yield from sorted(
        found,
        key=lambda pair: (-pair[0], -pair[1].together, -sum(pair[1].qualifying)),
    )


def score(row: Any) -> Score:
    return (int(row["ahead"]), int(row["behind"])) if row else (0, 0)

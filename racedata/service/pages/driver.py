"""The page of a driver, such as `/drivers/alonso`: career, seasons, wins, team mates."""

from itertools import groupby
from sqlite3 import Row
from typing import Any, NamedTuple

from racedata.formats import Json, public_url
from racedata.service.pages import career, career_queries
from racedata.service.pages.ask import Ask


class Score(NamedTuple):
    """How often a driver was ahead of a team mate and behind, of how many times together."""

    ahead: int = 0
    behind: int = 0
    together: int = 0


class Mate(NamedTuple):
    """A team mate in a season."""

    driver: Json
    constructor: Json
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


def mates(ask: Ask, id: int) -> list[tuple[int, Mate]]:
    """The team mates, with the season: the latest first, and in it those with most races."""
    catalogue = ask.catalogue
    races, qualifying = (
        {(row["year"], row["constructorId"], row["mate"]): score(row) for row in rows}
        for rows in (
            career_queries.compared_in_races(ask.data, id),
            career_queries.compared_in_qualifying(ask.data, id),
        )
    )
    found = []
    for key in {**races, **qualifying}:
        year, constructor, mate = key
        scores = races.get(key, Score()), qualifying.get(key, Score())
        pair = catalogue.drivers[mate], catalogue.constructors[constructor]
        found.append((year, Mate(*pair, *scores)))
    return sorted(
        found,
        key=lambda found: (-found[0], -found[1].races.together, -found[1].qualifying.together),
    )


def score(row: Row) -> Score:
    return Score(int(row["ahead"]), int(row["behind"]), row["together"])

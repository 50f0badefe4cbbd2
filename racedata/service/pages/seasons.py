"""The page `/seasons`: every season with its champions, and how many points they were ahead."""

from collections.abc import Mapping, Sequence
from typing import Any

from racedata.formats import Json
from racedata.service.pages.ask import Ask
from racedata.service.pages.races import most, place, points_ahead

Standings = Mapping[int, Sequence[Json]]  # by season, the first and the second place


def facts(ask: Ask) -> dict[str, Any]:
    drivers, over = first_places(ask, "driverstandings", "DriverStandings")
    constructors, _ = first_places(ask, "constructorstandings", "ConstructorStandings")
    return {
        # if one is not over, the first of a championship is not yet the champion
        "seasons": [
            (year, year in over, drivers.get(year, ()), constructors.get(year, ()))
            for year in sorted(ask.catalogue.rounds, reverse=True)
        ],
        "ahead": {year: ahead(places) for year, places in drivers.items()},
        "most_titles": [
            (kind, most(places[0][kind] for year, places in standings.items() if year in over))
            for kind, standings in (("Driver", drivers), ("Constructor", constructors))
        ],
    }


def first_places(ask: Ask, endpoint: str, key: str) -> tuple[Standings, set[int]]:
    """The first and the second of a championship, and the seasons that are over."""
    first, second = (
        {
            int(each["season"]): [place(each[key][0])]
            for each in ask(endpoint, **{endpoint: position})
        }
        for position in ("1", "2")
    )
    found = {year: [*places, *second.get(year, ())] for year, places in first.items()}
    for each in ask(endpoint, "current"):
        found.setdefault(int(each["season"]), [*map(place, each[key][:2])])
    return found, {*first}


def ahead(places: Sequence[Json]) -> float:
    """How many points the first has more than the second; 0 if one of them is unknown."""
    known = [each for each in places if each["points"]]
    return points_ahead(*known) if len(known) == 2 else 0

"""The pages at `/drivers`, `/constructors` and `/circuits`: all names, and those with most wins or
races.

Circuits are listed by country, because few people know their whole names.

The list of drivers has only short names: with more, the page would be longer than 15 KB compressed.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from racedata.formats import Json, without_accents
from racedata.service.addresses import Value
from racedata.service.pages import career_queries
from racedata.service.pages.ask import Ask
from racedata.service.pages.career import CONSTRUCTOR, DRIVER, Career
from racedata.service.pages.names import Name, constructor_names, driver_names, in_seasons
from racedata.service.pages.races import ranked
from racedata.service.request import ALL


class Winner(NamedTuple):
    """A driver or constructor who has won a race."""

    name: Name
    wins: int
    titles: int


class Circuit(NamedTuple):
    """A circuit in the list of its country."""

    name: str
    id: str
    detail: str
    races: int


def drivers(ask: Ask) -> dict[str, Any]:
    names = dict(zip(ask.catalogue.drivers, driver_names(ask)))
    short = {id: short_name(driver) for id, driver in ask.catalogue.drivers.items()}
    of_name = Counter(short.values())
    started = [
        name._replace(text=short[id]) if of_name[short[id]] == 1 else name
        for id, name in names.items()
        if name.weight
    ]
    return {
        "kind": "drivers",
        "winners": winners(ask, DRIVER, names),
        "letters": by_letter(started),
        "count": len(started),
        "without_start": len(names) - len(started),
    }


def constructors(ask: Ask) -> dict[str, Any]:
    names = dict(zip(ask.catalogue.constructors, constructor_names(ask)))
    return {
        "kind": "constructors",
        "winners": winners(ask, CONSTRUCTOR, names),
        "letters": by_letter(names.values()),
        "count": len(names),
    }


def circuits(ask: Ask) -> dict[str, Any]:
    by_country: dict[str, list[Circuit]] = {}
    used: list[Circuit] = []  # for several races
    runs = career_queries.all_races_run(ask.data)
    for id, what in ask.catalogue.circuits.items():
        detail, run = in_seasons(runs.get(id), "race")
        place = what["Location"]
        words = ", ".join([*filter(None, [place.get("locality")]), detail])
        circuit = Circuit(what["circuitName"], what["circuitId"], words, run)
        by_country.setdefault(place.get("country", "Country unknown"), []).append(circuit)
        if run > 1:
            used.append(circuit)
    for each in (used, *by_country.values()):
        each.sort(key=lambda circuit: -circuit.races)
    return {
        "most_races": ranked(used, lambda circuit: circuit.races),
        # in each, those with most races first
        "countries": sorted(by_country.items(), key=lambda pair: without_accents(pair[0])),
        "count": len(ask.catalogue.circuits),
    }


def winners(ask: Ask, career: Career, names: Mapping[int, Name]) -> list[Winner]:
    """Those with most wins first, as `ranked` returns them."""
    wins = Counter(
        id
        for of_race in ask.winners.values()
        for id in {winner[career.column] for winner in of_race}
    )
    first: dict[str, Value] = {career.standings: "1"}
    titles = Counter(
        (place.get("Driver") or place["Constructor"])[career.column]
        for season in ask(career.standings, ALL, None, None, **first)
        for place in season[career.key]
    )
    ranking = [
        Winner(names[id], count, titles[names[id].link.rpartition("/")[2]])
        for id, count in wins.items()
    ]
    ranking.sort(key=lambda winner: (-winner.wins, -winner.titles, winner.name.main))
    return ranked(ranking, lambda winner: winner.wins)


def short_name(driver: Json) -> str:
    """`L. Hamilton`, as timing screens show it."""
    return f"{driver['givenName'][:1]}. {driver['familyName']}"


def by_letter(names: Collection[Name]) -> list[tuple[str, list[Name]]]:
    """The names in order of their main part, such as a surname, by its first letter."""
    ordered = sorted(names, key=lambda name: (name.main, name.text))
    groups = groupby(ordered, key=lambda name: name.main[:1].upper())
    return [(letter, [*of_letter]) for letter, of_letter in groups]

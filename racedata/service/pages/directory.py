"""The pages at `/drivers`, `/constructors` and `/circuits`: all names.

Circuits are listed by country, because few people know their whole names.

The list of drivers has only short names: with more, the page would be longer than 15 KB compressed.
"""

from collections import Counter
from collections.abc import Collection
from itertools import groupby
from typing import Any

from racedata.formats import Json, without_accents
from racedata.service.pages.ask import Ask
from racedata.service.pages.names import (
    Name,
    constructor_names,
    driver_names,
    in_seasons,
    rows_by_id,
)


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
        "letters": by_letter(started),
        "count": len(started),
        "without_start": len(names) - len(started),
    }


def constructors(ask: Ask) -> dict[str, Any]:
    names = [*constructor_names(ask)]
    return {
        "kind": "constructors",
        "letters": by_letter(names),
        "count": len(names),
    }


def circuits(ask: Ask) -> dict[str, Any]:
    by_country: dict[str, list[tuple[int, Json, str]]] = {}
    run_at = rows_by_id(ask, "circuit")
    for what in ask.catalogue.circuits.values():
        detail, run = in_seasons(run_at.get(what["circuitId"]), "race")
        place = what["Location"]
        words = ", ".join([*filter(None, [place.get("locality")]), detail])
        of_country = by_country.setdefault(place.get("country", "Country unknown"), [])
        of_country.append((run, what, words))
    for each in by_country.values():
        each.sort(key=lambda circuit: -circuit[0])
    return {
        # in each, those with most races first
        "countries": sorted(by_country.items(), key=lambda pair: without_accents(pair[0])),
        "count": len(ask.catalogue.circuits),
    }


def short_name(driver: Json) -> str:
    """`L. Hamilton`, as timing screens show it."""
    return f"{driver['givenName'][:1]}. {driver['familyName']}"


def by_letter(names: Collection[Name]) -> list[tuple[str, list[Name]]]:
    """The names in order of their main part, such as a surname, by its first letter."""
    ordered = sorted(names, key=lambda name: (name.main, name.text))
    groups = groupby(ordered, key=lambda name: name.main[:1].upper())
    return [(letter, [*of_letter]) for letter, of_letter in groups]

"""Matches the races of two sources, or of two databases that are compared.

An earlier calendar of the same source is matched first by name; one of another source, which may
have other names, by circuit and date. Neither is matched by an id or a round, which may change.
lists.py matches drivers and the like. What follows from a match does not belong here.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from racedata.formats import without_accents


class CalendarRace(NamedTuple):
    """A race in a calendar. Its round may change, so it does not identify the race."""

    id: int
    name: str
    url: str | None
    circuit: str
    date: str


def match_with_earlier(
    races: Collection[CalendarRace], others: Collection[CalendarRace]
) -> dict[int, int]:
    """The ids in `others`, an earlier calendar, of the same races, by their ids in `races`.

    The same race has the same name; or, if it was renamed, the same article, or the same circuit
    and date.
    """
    marks: list[Callable[[CalendarRace], object]] = [
        lambda race: race.name,
        lambda race: race.url and re.sub("^https?:", "", race.url),
        lambda race: (race.circuit.lower(), race.date),
    ]
    matched: dict[int, int] = {}
    for mark in marks:
        free = {mark(other): other.id for other in others if other.id not in matched.values()}
        for race in races:
            if race.id not in matched and mark(race) and mark(race) in free:
                matched[race.id] = free.pop(mark(race))
    return matched


def calendar_races(races: Sequence[Mapping[str, Any]]) -> list[CalendarRace]:
    """The races of a stored calendar. Their ids are their places in it, from 0."""
    return [
        CalendarRace(at, race["name"], race["url"], race["circuitId"], race["date"])
        for at, race in enumerate(races)
    ]


def match_across_sources(
    races: Sequence[CalendarRace], others: Sequence[CalendarRace]
) -> dict[int, int]:
    """The ids in `others` of the same races, by their ids in `races`, of another source.

    The same race is at the same circuit, and at most a day apart: dates may be UTC or local. Or it
    is the only race of the season at that circuit. If several races match, none does.
    """

    def once(pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
        one, other = ([pair[side] for pair in pairs] for side in (0, 1))
        return {a: b for a, b in pairs if one.count(a) == other.count(b) == 1}

    at_circuit = [
        (race, other)
        for race in races
        for other in others
        if race.circuit.lower() == other.circuit.lower()
    ]
    near = [(a.id, b.id) for a, b in at_circuit if days_between(a.date, b.date) <= 1]
    return once([(a.id, b.id) for a, b in at_circuit]) | once(near)


def days_after(day: str, later: str) -> int:
    return (date.fromisoformat(later) - date.fromisoformat(day)).days


def days_between(one: str, other: str) -> int:
    return abs(days_after(one, other))


def letters_of(name: str) -> str:
    """The letters of a name, without accents, spaces and the like: all from a to z."""
    return re.sub("[^a-z]", "", without_accents(name).replace("ø", "o"))

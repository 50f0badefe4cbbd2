"""Words for people: kinds of records, columns, values, and the names of entrants and circuits.

Calendars, the feed and the pages use them. news.py makes titles and lines of them.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from racedata.formats import Json, plural, short_time
from racedata.model import KINDS, LETTERS
from racedata.service.catalogue import Catalogue

# The words for columns that people would not understand.
COLUMNS = {
    "dob": "date of birth",
    "fastestLap": "number of the fastest lap",
    "lat": "latitude",
    "lng": "longitude",
    "milliseconds": "time",
    "number": "car number",
    "positionOrder": "place in the order",
    "positionText": "place",
    # as the heads on the page of a race
    "q1": "Q1",
    "q2": "Q2",
    "q3": "Q3",
    "rank": "rank of the fastest lap",
    "records": "all",
    "row": "the whole row",
}
# What people look for in vain: no source here has it.
NOT_HERE = (
    *("telemetry", "live timing", "tyres", "weather", "team radio", "race control messages"),
    *("engines", "chassis", "betting odds"),
)
ORDINALS = {1: "st", 2: "nd", 3: "rd"}


class Names(NamedTuple):
    """The names of entrants for people, by their ids."""

    drivers: Mapping[str, str]
    constructors: Mapping[str, str]


def names_of(catalogue: Catalogue) -> Names:
    return Names(
        {each["driverId"]: each["familyName"] for each in catalogue.drivers.values()},
        {each["constructorId"]: each["name"] for each in catalogue.constructors.values()},
    )


def full_name(driver: Json) -> str:
    """`Max Verstappen`."""
    return f"{driver['givenName']} {driver['familyName']}"


def name_of(catalogue: Catalogue, name: str, id: str) -> str | None:
    """The name of a driver, constructor or circuit in the list of this name; None without one."""
    number = catalogue.ids.get(name, {}).get(id.lower())
    if number is None:
        return None
    what = catalogue.lists[name][number]
    return what.get("circuitName") or what.get("name") or full_name(what)


def place_of(circuit: Json) -> str:
    """The names of a circuit, its locality and its country, if they are known."""
    location = circuit["Location"]
    return ", ".join(
        [
            circuit["circuitName"],
            *(location[key] for key in ("locality", "country") if key in location),
        ]
    )


def kind_in_words(kind: str) -> str:
    """A kind for people: `driver standings`."""
    return (KINDS[kind].label if kind in KINDS else kind).lower()


def column_in_words(column: str) -> str:
    """A column for people: `fastest lap time`."""
    return COLUMNS.get(column) or re.sub("[A-Z]", lambda letter: f" {letter[0].lower()}", column)


def value_in_words(column: str, value: str, names: Names) -> str:
    """A value for people: milliseconds as `1:35:21.362`, a constructor by its name."""
    if column == "milliseconds" and value.isdigit():
        return short_time(int(value))
    return names.constructors.get(value, value) if column == "constructor" else value


def points_in_words(points: float) -> str:
    """`0.5 points`, `1 point`."""
    return f"{points:g} {plural('point', points)}"


def place_in_words(text: str) -> str:
    """`3rd`, `retired`."""
    if not text.isdigit():
        return LETTERS.get(text, text)
    number = int(text)
    ending = "th" if 10 < number % 100 < 14 else ORDINALS.get(number % 10, "th")
    return f"{number}{ending}"

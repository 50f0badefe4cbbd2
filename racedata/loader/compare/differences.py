"""What a difference between two sources can mean.

differences.csv has the groups of the report, the most doubtful first. A difference is in the first
group that it fits: `explained` ones are tried first, and then `open` ones. One that fits none
follows from another. Here are the conditions that the file names.
"""

import csv
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise, permutations
from typing import NamedTuple

from racedata.formats import milliseconds
from racedata.loader.compare.sides import Key, SourceRows
from racedata.loader.matching import letters_of
from racedata.loader.parts import Row
from racedata.values import Value

# The words for countries that others have replaced, or that have another word too.
COUNTRIES = {
    "East German": "German",
    "Rhodesian": "Zimbabwean",
    "Hong Kong": "Hongkongese",
}
# The races with cars of Formula 2, in a classification of their own. Sources differ in whether
# these cars count.
WITH_FORMULA_2 = ((1966, "German Grand Prix"), (1969, "German Grand Prix"))
TIMES = ("q3", "q2", "q1")  # of the last part first
UNKNOWN = (None, None, None)
MAX_LAST = 3  # drivers that a source has put behind all others


class Case(NamedTuple):
    """A difference between two sources, and what they say about the whole race."""

    table: str
    column: str
    key: Key  # of the row
    rows: Sequence[Row]  # the row in each source; twice the same if one of them lacks it
    sources: Sequence[SourceRows]
    season: int | None
    race: str  # its name
    results: SourceRows | None  # of the first source, in this race

    @property
    def values(self) -> Sequence[Value]:
        return [row.get(self.column) for row in self.rows]

    @property
    def numbers(self) -> Sequence[float]:
        """The values, if they are numbers or times; else zeros."""
        texts = map(str, self.values)
        try:
            return [milliseconds(text) if ":" in text else float(text) for text in texts]
        except ValueError:
            return [0, 0]

    @property
    def distance(self) -> float:
        """How far apart two numbers or times are; 0 if they are something else."""
        first, second = self.numbers
        return abs(first - second)

    @property
    def is_retired(self) -> bool:
        """Whether neither row has a numeric place."""
        return not any(str(row["positionText"]).isdigit() for row in self.rows)


def is_cut(case: Case) -> bool:
    """Whether one of two times is the other one with fewer digits, cut or rounded."""
    first, second = case.numbers
    return any(
        case.distance < unit and (first % unit == 0) != (second % unit == 0)
        for unit in (10, 100, 1000)
    )


def are_placed(case: Case) -> bool:
    """Whether both rows have a numeric place, or one does and the other is disqualified."""
    texts = {str(row["positionText"]) for row in case.rows}
    numbers = {text for text in texts if text.isdigit()}
    return bool(numbers) and texts - numbers <= {"D", "E"}


def drove(case: Case) -> bool:
    """Whether neither row is of a driver who did not start."""
    return not any(row["positionText"] in ("E", "F", "W") and not row["laps"] for row in case.rows)


def is_only_disqualified(case: Case) -> bool:
    """Whether one row says of a driver without a place nothing but a disqualification."""
    return case.is_retired and any(
        row["positionText"] == "D" and row["laps"] is None and not row["grid"] for row in case.rows
    )


def is_other_word(case: Case) -> bool:
    """Whether two nationalities are of one country, or one has the other, and a second one."""
    first, second = (COUNTRIES.get(word, word) for word in map(str, case.values))
    return first == second or any(
        one in other.split("-") for one, other in permutations(map(str, case.values))
    )


def is_alike(case: Case) -> bool:
    """Whether one of two names is a part of the other."""
    first, second = (letters_of(str(name)) for name in case.values)
    return first in second or second in first


# Conventions that show only in the whole race: how sources order, count and leave out drivers.


def is_of_relief(case: Case) -> bool:
    """Whether one source has the place of the car, and the other no place of its own, for a driver
    who took over the car of another.
    """
    for with_place, without in permutations(case.sources):
        cars = [*zip(*(with_place.columns[name] for name in ("number", "grid")))]
        own = with_place.values(("number", "grid"))[case.key]
        if own[1] and without.column("grid")[case.key] == 0 and cars.count(own) > 1:
            return True
    return False


def is_counted_without(case: Case) -> bool:
    """Whether the same drivers are ahead of this one on the grid of both sources.

    Then the sources only count places differently: empty ones, and places of drivers who have none
    in the other source.
    """
    one, other = (places(rows.column("grid")) for rows in case.sources)
    return is_same_place(case.key, one, other)


def places(values: Mapping[Key, Value]) -> dict[Key, int]:
    """The places that are numbers from 1."""
    return {key: int(value) for key, value in values.items() if str(value).isdigit() and value}


def is_same_place(key: Key, one: Mapping[Key, int], other: Mapping[Key, int]) -> bool:
    """Whether the same drivers are ahead, of those who have a place in both, and none beside."""
    both = one.keys() & other.keys()
    return key in both and all(
        (one[driver] - one[key]) * (other[driver] - other[key]) > 0 for driver in both - {key}
    )


def is_with_formula_2(case: Case) -> bool:
    """Whether only one source lists the drivers of Formula 2, or counts them in the places."""
    if (case.season, case.race) not in WITH_FORMULA_2:
        return False
    one, other = (places(rows.column("positionText")) for rows in case.sources)
    return case.column == "row" or is_same_place(case.key, one, other)


def is_put_last(case: Case) -> bool:
    """Whether one source has put a few drivers behind all others, perhaps without their times, and
    otherwise says the same as the other source, in which their places follow from their times.
    """
    for by_time, other in permutations(case.sources):
        both = by_time.at.keys() & other.at.keys()
        order, other_order = (ranked(rows, both) for rows in (by_time, other))
        last = only_last_in_other(order, other_order)
        times, other_times = by_time.values(TIMES), other.values(TIMES)
        if (
            last
            and (case.column == "position" or case.key in last)
            and all(times[key] == other_times[key] for key in order if key not in last)
            and all(other_times[key] in (times[key], UNKNOWN) for key in last)
            and all(is_faster(times[a], times[b]) for a, b in pairwise(order) if a in last)
        ):
            return True
    return False


def only_last_in_other(order: Sequence[Key], other_order: Sequence[Key]) -> set[Key]:
    """The drivers who are last in the other order only, at most MAX_LAST.

    For the orders a b c d and a c d b, this is b. Empty if the orders differ in another way too.
    """
    for count in range(1, MAX_LAST + 1):
        last = other_order[-count:]
        rest = [key for key in order if key not in last]
        if rest and other_order == [*rest, *last] and not {*order[-count:]} & {*last}:
            return {*last}
    return set()


def ranked(rows: SourceRows, keys: Collection[Key]) -> list[Key]:
    of_drivers = places(rows.column("position"))
    return sorted(of_drivers.keys() & keys, key=of_drivers.__getitem__)


def is_faster(times: Key, others: Key) -> bool:
    """Whether a driver was faster in the last part of the qualifying in which any of two drove."""
    for time, other in zip(times, others):
        if time or other:
            return bool(time) and (not other or milliseconds(str(time)) <= milliseconds(str(other)))
    return False


def is_not_listed(case: Case) -> bool:
    """Whether a row of qualifying that only one source has is of a driver without a time, of one
    who did not qualify, or of one at the end of the list, behind slower drivers.
    """
    (one, other), results = case.sources, case.results
    times = one.values(TIMES)
    if times[case.key] == UNKNOWN or (
        results and results.column("positionText").get(case.key) == "F"
    ):
        return True
    both = one.at.keys() & other.at.keys()
    *_, before, last = (None, None, *ranked(one, both | {case.key}))
    return before is not None and last == case.key and is_faster(times[last], times[before])


# The conditions, by their names in the file.
FITS: Mapping[str, Callable[[Case], bool]] = {
    "": lambda case: True,
    "far apart": lambda case: case.distance > 0.02,  # in degrees: two kilometres
    "drove": drove,
    "did not start": lambda case: not drove(case),
    "placed": lambda case: (
        are_placed(case) and case.rows[0]["positionText"] != case.rows[1]["positionText"]
    ),
    "not placed": lambda case: not are_placed(case),
    "whole minutes": lambda case: case.distance % 60_000 == 0,
    "under a second": lambda case: case.distance < 1000,
    "over a minute": lambda case: case.distance > 60_000,
    "pit lane": lambda case: 0 in case.values and drove(case),
    "on the grid": lambda case: 0 not in case.values,
    "last lap": lambda case: case.is_retired and case.distance == 1,
    "same lap": lambda case: (
        case.rows[0]["fastestLapTime"] == case.rows[1]["fastestLapTime"] and case.distance <= 3
    ),
    "cut": is_cut,
    "other word": is_other_word,
    "alike": is_alike,
    "relief": is_of_relief,
    "disqualified": is_only_disqualified,
    "counted": is_counted_without,
    "formula 2": is_with_formula_2,
    "last": is_put_last,
    "not listed": is_not_listed,
}
# Of a value that one of the two rows lacks, the only conditions; else it is simply lacking:
FIT_UNKNOWN = ("disqualified", "last")
# in the database, for one driver or for the whole race; or in the other source.
LACKED_HERE, LACKED_BY_THE_RACE, LACKED_THERE = "lacked here", "lacked by the race", "lacked there"


class Group(NamedTuple):
    """Differences of one kind: the columns of differences.csv."""

    doubt: int  # the number of the line: 1 for the most doubtful group
    state: str  # `explained` if it is a convention, else `open`
    tables: str  # separated by spaces
    columns: str
    condition: str  # one of FITS, or of those for values that only one of the two has
    title: str
    meaning: str  # what a difference can mean
    settles: str  # what would settle it; nothing need settle a convention

    @property
    def is_convention(self) -> bool:
        return self.state == "explained"


LINES = files(__package__).joinpath("differences.csv").read_text(encoding="utf-8").splitlines()
GROUPS = [Group(doubt, *row) for doubt, row in enumerate(csv.reader(LINES[1:]), 1)]
LACKED = {group.condition: group for group in GROUPS if not group.tables}


@cache
def groups_of(table: str, column: str) -> list[Group]:
    """The groups for differences in a column, in the order in which they are tried."""
    found = [
        group
        for group in GROUPS
        if table in group.tables.split() and column in group.columns.split()
    ]
    return sorted(found, key=lambda group: not group.is_convention)

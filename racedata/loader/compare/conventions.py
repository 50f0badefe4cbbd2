"""Conventions that show only in the whole race: how sources order, count and leave out drivers.

differences.py has the groups to which they belong, with the sentences.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise, permutations
from typing import NamedTuple

from racedata.formats import milliseconds
from racedata.loader.compare.sides import Key, SourceRows
from racedata.loader.parts import Row
from racedata.values import Value

TIMES = ("q3", "q2", "q1")  # of the last part first
UNKNOWN = (None, None, None)
MAX_LAST = 3  # drivers that a source has put behind all others
# The races with cars of Formula 2, in a classification of their own. Sources differ in whether
# these cars count.
WITH_FORMULA_2 = ((1966, "German Grand Prix"), (1969, "German Grand Prix"))


class Case(NamedTuple):
    """A difference between two sources, and what they say about the whole race."""

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
    def distance(self) -> float:
        """How far apart two numbers or times are; 0 if they are something else."""
        texts = map(str, self.values)
        try:
            first, second = (milliseconds(text) if ":" in text else float(text) for text in texts)
        except ValueError:
            return 0
        return abs(first - second)


def is_of_relief(case: Case) -> bool:
    """Whether one source has the place of the car, and the other no place of its own, for a driver
    who took over the car of another.
    """
    return any(
        with_place.column("grid")[case.key]
        and without.column("grid")[case.key] == 0
        and shares_car(with_place, case.key)
        for with_place, without in permutations(case.sources)
    )


def shares_car(rows: SourceRows, key: Key) -> bool:
    """Whether another driver started from the same place in a car with the same number."""
    names = ("number", "grid")
    cars = list(zip(rows.keys, zip(*(rows.columns[name] for name in names))))
    own = rows.values(names)[key]
    return any(car == own for driver, car in cars if driver != key)


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
        (one[driver] < one[key] and other[driver] < other[key])
        or (one[driver] > one[key] and other[driver] > other[key])
        for driver in both - {key}
    )


def is_with_formula_2(case: Case) -> bool:
    """Whether only one source lists the drivers of Formula 2, or counts them in the places."""
    if (case.season, case.race) not in WITH_FORMULA_2:
        return False
    one, other = (places(rows.column("positionText")) for rows in case.sources)
    return case.column == "row" or is_same_place(case.key, one, other)


def is_put_last(case: Case) -> bool:
    """Whether one source has put a few drivers behind all others, and otherwise has the order of
    the other source, in which their places follow from their times.
    """
    return any(has_put_last(case, *sides) for sides in permutations(case.sources))


def has_put_last(case: Case, by_time: SourceRows, other: SourceRows) -> bool:
    both = by_time.at.keys() & other.at.keys()
    order, other_order = (ranked(rows, both) for rows in (by_time, other))
    times, other_times = by_time.values(TIMES), other.values(TIMES)
    # drivers without a time who are last in both
    while order and order[-1:] == other_order[-1:] and times[order[-1]] == UNKNOWN:
        del order[-1], other_order[-1]
    last = only_last_in_other(order, other_order)
    if not last or (case.column != "position" and case.key not in last):
        return False
    have_same_times = all(
        other_times[key] == times[key] or (key in last and other_times[key] == UNKNOWN)
        for key in order
    )
    return have_same_times and all(
        is_faster(times[key], times[after]) for key, after in pairwise(order) if key in last
    )


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

"""The layouts of circuits: outlines.csv, which scripts/make_outlines.py makes from f1db's files.

outlines-licence.txt has its licence. A page that shows an outline also names f1db.
"""

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("outlines.csv")
DISTANCE = 305  # kilometres: a race has as many laps as make it about so long


class Layout(NamedTuple):
    """A layout of a circuit."""

    circuit: str  # its reference: `monza`
    name: str  # f1db's id of the layout: `monza-7`
    seasons: tuple[int, ...]  # with a race on it; in 2020, a circuit may have had two layouts
    length: str  # kilometres, in f1db's own digits: `5.793`
    turns: int
    direction: str  # `clockwise` or `anti-clockwise`
    type: str  # `race`: made for racing; `street`: roads of a town; `road`: roads of the country
    path: str  # `d` of a path in SVG, whose `viewBox` is `0 0 1000 1000`


@cache
def all_layouts() -> dict[str, list[Layout]]:
    """The layouts of each circuit, by its reference, in the order of their first races."""
    by_circuit: dict[str, list[Layout]] = {}
    with FILE.open(encoding="utf-8", newline="") as file:
        for circuit, name, periods, length, turns, *rest in list(csv.reader(file))[1:]:
            layout = Layout(circuit, name, seasons_in(periods), length, int(turns), *rest)
            by_circuit.setdefault(circuit, []).append(layout)
    for of_circuit in by_circuit.values():
        of_circuit.sort(key=lambda layout: layout.seasons)
    return by_circuit


def seasons_in(periods: str) -> tuple[int, ...]:
    """The seasons of `1950-1954 1960`."""
    seasons: list[int] = []
    for period in periods.split():
        first, _, last = period.partition("-")
        seasons += range(int(first), int(last or first) + 1)
    return tuple(seasons)


def layouts_of(circuit: str) -> list[Layout]:
    """The layouts of a circuit, the latest last; none if f1db does not have it."""
    return all_layouts().get(circuit, [])


def layout_of(layouts: Sequence[Layout], year: int, laps: int) -> Layout | None:
    """The layout of a race.

    If the circuit had two in the season, as Bahrain in 2020, it is the one on which this number of
    laps makes about DISTANCE.
    """
    found = [layout for layout in layouts if year in layout.seasons]
    return min(
        found,
        key=lambda layout: abs(float(layout.length) * laps - DISTANCE),
        default=None,
    )

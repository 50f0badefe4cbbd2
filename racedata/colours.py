"""The colours of constructors: team_colours.csv, which this project made itself.

Each row of that file says from which season to which a constructor had a colour, and of which
livery it is. A white livery is a light grey there, and a black one a dark grey: a mark in that
colour is then visible on any background.
"""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("team_colours.csv")


class Livery(NamedTuple):
    """A colour of a constructor."""

    first: int  # season
    last: int | None  # season; None if it is still in use
    colour: str  # `#rrggbb`
    name: str  # where the colour is from, in words


@cache
def liveries() -> dict[str, list[Livery]]:
    """The liveries of each constructor, by its reference, the oldest first."""
    by_constructor: dict[str, list[Livery]] = {}
    with FILE.open(encoding="utf-8", newline="") as file:
        for constructor, first, last, colour, name in list(csv.reader(file))[1:]:
            livery = Livery(int(first), int(last) if last else None, colour, name)
            by_constructor.setdefault(constructor, []).append(livery)
    return by_constructor


def colour_in(constructor: str, season: int) -> str | None:
    """The colour of a constructor in a season; None if it is unknown."""
    for livery in liveries().get(constructor, ()):
        if livery.first <= season <= (livery.last or season):
            return livery.colour
    return None


def newest_colour(constructor: str) -> str | None:
    """The last colour of a constructor; None if it is unknown."""
    of_constructor = liveries().get(constructor)
    return of_constructor[-1].colour if of_constructor else None

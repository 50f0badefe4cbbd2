#!/usr/bin/env python3
"""Makes racedata/service/outlines.csv, the layouts of circuits, from a checkout of f1db.

When a season has brought a new layout, or begins:

    .venv/bin/python scripts/make_outlines.py CHECKOUT > racedata/service/outlines.csv

It fetches nothing. Whole numbers make the file half as long as f1db's.
"""

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from racedata.service.outlines import Layout

IDS = Path(__file__).resolve().parent.parent / "racedata/loader/sources/f1db_ids.csv"
SIZE_OF_F1DB = 500  # of its outlines, in both directions
SIZE = 1000  # of ours
# How many numbers each command of a path takes.
NUMBERS = {"m": 2, "l": 2, "h": 1, "v": 1, "c": 6, "s": 4, "q": 4, "a": 7, "z": 0}
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)")
FLAG = re.compile("[01]")
# Directions that f1db has wrong, by layout. The Indianapolis 500 only turns left. At Kyalami until
# 1985, the main straight ended in a right-hander, Crowthorne, so the lap went to the right.
DIRECTIONS = {"indianapolis-1": "anti-clockwise", "kyalami-1": "clockwise"}


class Race(NamedTuple):
    """What f1db says about the layout of a race."""

    season: int
    type: str
    direction: str


def main(checkout: Path) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(Layout._fields)
    writer.writerows(sorted(rows(checkout)))


def rows(checkout: Path) -> Iterator[tuple[str, ...]]:
    """A row for each layout on which a race was, or will be, held."""
    references, races = listed_references(), races_of_layouts(checkout)
    for file in sorted(checkout.glob("src/data/circuits/*.yml")):
        text = file.read_text(encoding="utf-8")
        circuit = value(text, "id")
        for layout in re.split("^  - (?=id:)", text, flags=re.MULTILINE)[1:]:
            id = value(layout, "id")
            if id in races:
                newest = max(races[id])
                yield (
                    references.get(circuit, circuit.replace("-", "_")),
                    id,
                    periods({race.season for race in races[id]}),
                    value(layout, "length"),
                    value(layout, "turns"),
                    DIRECTIONS.get(id, newest.direction.lower().replace("_", "-")),
                    newest.type.lower(),
                    outline((checkout / f"src/assets/circuits/black/{id}.svg").read_text("utf-8")),
                )


def listed_references() -> dict[str, str]:
    """Our references of circuits, by f1db's ids, if they are not the same words."""
    with IDS.open(encoding="utf-8", newline="") as file:
        rules = list(csv.DictReader(file))
    return {rule["id"]: rule["reference"] for rule in rules if rule["kind"] == "circuit"}


def races_of_layouts(checkout: Path) -> dict[str, list[Race]]:
    """The races of each layout, by its id."""
    found: dict[str, list[Race]] = {}
    for file in checkout.glob("src/data/seasons/*/races/*/race.yml"):
        text = file.read_text(encoding="utf-8")
        race = Race(int(file.parts[-4]), value(text, "circuitType"), value(text, "direction"))
        found.setdefault(value(text, "circuitLayoutId"), []).append(race)
    return found


def value(yaml: str, key: str) -> str:
    """The first value of a key. f1db's files need no more of YAML."""
    found = re.search(rf"^ *{key}: *([^\s#]+)", yaml, re.MULTILINE)
    if not found:
        raise SystemExit(f"no {key} in {yaml[:60]!r}; expected one")
    return found[1]


def periods(seasons: set[int]) -> str:
    """Seasons as `1950-1954 1960`."""
    found: list[list[int]] = []
    for season in sorted(seasons):
        if found and found[-1][-1] == season - 1:
            found[-1][1:] = [season]
        else:
            found.append([season])
    return " ".join("-".join(map(str, period)) for period in found)


def outline(svg: str) -> str:
    """The path of an image, with whole numbers relative to the point before.

    Each point is rounded where it is, so that errors do not add up along the path.
    """
    (path,) = re.findall(r'\sd="([^"]+)"', svg)
    moved = re.search(r"translate\((\S+?)[ ,]+(\S+?)\)", svg)
    shift = complex(float(moved[1]), float(moved[2])) if moved else 0j

    def rounded(point: complex) -> complex:
        x, y = ((number * SIZE) / SIZE_OF_F1DB for number in (point.real, point.imag))
        return complex(round(x), round(y))

    written, at, first = "", 0j, 0j  # the points without the shift
    for command, numbers in commands(path):
        kind, base = command.lower(), at if command.islower() else 0j
        shape: list[float] = []  # of an arc: radii, angle, flags
        if kind == "z":
            at, written = first, f"{written}z"
            continue
        if kind == "h":
            points = [complex(base.real + numbers[0], at.imag)]
        elif kind == "v":
            points = [complex(at.real, base.imag + numbers[0])]
        else:
            if kind == "a":
                radii, shape, numbers = rounded(complex(*numbers[:2])), numbers[2:5], numbers[5:]
                shape = [radii.real, radii.imag, *shape]
            points = [base + complex(*pair) for pair in zip(numbers[::2], numbers[1::2])]
        start = 0j if kind == "m" else rounded(at + shift)
        moves = [rounded(point + shift) - start for point in points]
        at = points[-1]
        if kind == "m":
            first = at
        if kind == "m" or any(moves):
            letter = {"m": "M", "h": "l", "v": "l"}.get(kind, kind)
            written += letter + compact([*shape, *(n for p in moves for n in (p.real, p.imag))])
    return written


def commands(path: str) -> Iterator[tuple[str, list[float]]]:
    """The commands of a path, each with the numbers that it takes once."""
    for command, text in re.findall("([a-zA-Z])([^a-zA-Z]*)", path):
        numbers, place = list[float](), 0
        while found := (FLAG if command in "aA" and len(numbers) % 7 in (3, 4) else NUMBER).search(
            text, place
        ):
            numbers.append(float(found[0]))
            place = found.end()
        takes = NUMBERS[command.lower()]
        yield command, numbers[:takes]
        for i in range(takes, len(numbers), takes or 1):
            # more points after the first one are lines
            yield {"m": "l", "M": "L"}.get(command, command), numbers[i : i + takes]


def compact(numbers: list[float]) -> str:
    """Whole numbers with a space only where no minus divides them."""
    return " ".join(f"{number:.0f}" for number in numbers).replace("-0", "0").replace(" -", "-")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

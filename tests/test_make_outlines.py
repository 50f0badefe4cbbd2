"""scripts/make_outlines.py: the layouts of circuits, from a checkout of f1db."""

import csv
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import make_outlines

CIRCUIT = """id: {circuit}
previousNames:
  - Another Name
type: RACE
layouts:
  - id: {circuit}-1 # 1950
    length: 6.300
    turns: 5
  - id: {circuit}-2
    effective: true
    length: 5.793
    turns: 11
  - id: {circuit}-3
    length: 5.000
    turns: 10
"""
RACE = """circuitId: {circuit}
circuitLayoutId: {circuit}-{layout}
circuitType: {type}
direction: {direction}
"""
SVG = '<svg>\n<path style="fill: none" d="{path}"{transform} />\n</svg>'


@pytest.fixture
def checkout(tmp_path):
    """A checkout with two circuits, whose third layout no race has."""
    for circuit in ("monza", "austin"):
        write(tmp_path / f"src/data/circuits/{circuit}.yml", CIRCUIT.format(circuit=circuit))
        for layout in (1, 2):
            path = SVG.format(path=f"M{layout} 2l3 4z", transform="")
            write(tmp_path / f"src/assets/circuits/black/{circuit}-{layout}.svg", path)
    add_race(tmp_path, 1950, "monza", 1, "ROAD", "CLOCKWISE")
    for year in (1952, 2001, 2000, 2002):
        add_race(tmp_path, year, "monza", 2, "RACE", "CLOCKWISE")
    add_race(tmp_path, 1999, "monza", 2, "STREET", "ANTI_CLOCKWISE")
    add_race(tmp_path, 2003, "austin", 2, "STREET", "ANTI_CLOCKWISE")
    return tmp_path


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def add_race(checkout, year, circuit, layout, type, direction):
    text = RACE.format(circuit=circuit, layout=layout, type=type, direction=direction)
    write(checkout / f"src/data/seasons/{year}/races/01-italy/race.yml", text)


def test_the_file_has_a_row_for_each_layout_of_a_race_with_our_reference(checkout, capsys):
    make_outlines.main(checkout)
    head, *rows = csv.reader(capsys.readouterr().out.splitlines())
    assert head == ["circuit", "name", "seasons", "length", "turns", "direction", "type", "path"]
    assert rows == [
        ["americas", "austin-2", "2003", "5.793", "11", "anti-clockwise", "street", "M4 4l6 8z"],
        ["monza", "monza-1", "1950", "6.300", "5", "clockwise", "road", "M2 4l6 8z"],
        ["monza", "monza-2", "1952 1999-2002", "5.793", "11", "clockwise", "race", "M4 4l6 8z"],
    ]


def test_a_layout_without_a_fact_is_an_error(checkout):
    file = checkout / "src/data/circuits/monza.yml"
    write(file, file.read_text().replace("    turns: 11\n", ""))
    with pytest.raises(SystemExit, match=r"^no turns in 'id: monza-2.*; expected one$"):
        make_outlines.main(checkout)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("M1 2 L3 4 l1-1 H5 h1 V6 v-1 Z", "M2 4l4 4l2-2l2 0l2 0l0 6l0-2z"),
        ("m1 2 3 4 5 6", "M2 4l6 8l10 12"),
        ("M1 2 3 4", "M2 4l4 4"),
        ("M0 0c1 1 2 2 3 3 1 1 2 2 3 3", "M0 0c2 2 4 4 6 6c2 2 4 4 6 6"),
        ("M1 1C2 2 3 3 4 4S6 6 7 7s1 1 2 2q1 1 2 2", "M2 2c2 2 4 4 6 6s4 4 6 6s2 2 4 4q2 2 4 4"),
        ("M0 0a3 4 0 016 7A1 2 90 1 0 8 9", "M0 0a6 8 0 0 1 12 14a2 4 90 1 0 4 4"),
        ("M1 1l2 2zm5 5l1 0z", "M2 2l4 4zM12 12l2 0z"),
        ("M1 1l.2.2l.2-.1", "M2 2l1 0"),
        # Errors of a quarter do not add up.
        ("M0 0h.6h.6h.6h.6h.6", "M0 0l1 0l1 0l2 0l1 0l1 0"),
        ("M0 0l.1.1l-.1 0l2 2", "M0 0l4 4"),
    ],
)
def test_a_path_has_whole_numbers_twice_as_large_from_point_to_point(path, expected):
    assert make_outlines.outline(SVG.format(path=path, transform="")) == expected

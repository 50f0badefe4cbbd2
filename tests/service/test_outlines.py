"""racedata.service.outlines: the layouts of circuits, and their file."""

import re

from support.loads import select

from racedata.service.outlines import all_layouts, layout_of, layouts_of

LAYOUTS = [layout for of_circuit in all_layouts().values() for layout in of_circuit]


def test_every_layout_has_its_facts():
    for layout in LAYOUTS:
        # make_outlines.py writes them, whose test reads their commands
        assert re.fullmatch(r"(M\d+ \d+[lcsqaz0-9 -]+)+", layout.path), layout.name
        assert re.fullmatch(r"\d\.\d{3}|[12]\d\.\d{3}", layout.length), layout.name
        assert 3 <= layout.turns <= 200, layout.name
        assert layout.direction in ("clockwise", "anti-clockwise"), layout.name
        assert layout.type in ("race", "street", "road"), layout.name
        assert layout.seasons == tuple(sorted({*layout.seasons})) != (), layout.name
        assert 1950 <= layout.seasons[0] <= layout.seasons[-1] <= 2026, layout.name


def test_the_layouts_of_a_circuit_are_in_the_order_of_their_first_races():
    monza = layouts_of("monza")
    assert [layout.name for layout in monza] == [f"monza-{number}" for number in range(1, 8)]
    assert monza[1].seasons == (1955, 1956, 1960, 1961)
    assert (monza[1].length, monza[1].turns) == ("10.000", 7)
    newest = monza[-1]
    assert (newest.seasons[0], newest.seasons[-1]) == (2000, 2026)
    assert newest[3:7] == ("5.793", 11, "clockwise", "race")


def test_a_circuit_has_the_reference_that_it_has_in_answers():
    assert layouts_of("americas")[0].name == "austin-1"
    assert layouts_of("las_vegas")[0].name == "caesars-palace-1"
    assert layouts_of("vegas")[0].name == "las-vegas-1"


def test_every_race_has_one_layout_but_where_a_circuit_had_two_in_a_season(any_database):
    several = set()
    for circuit, year in select(
        any_database, "SELECT DISTINCT circuitRef, year FROM races JOIN circuits USING (circuitId)"
    ):
        found = [layout.name for layout in layouts_of(circuit) if year in layout.seasons]
        assert found, (circuit, year)
        if len(found) > 1:
            several.add((year, *found))
    assert several <= {(2020, "bahrain-1", "bahrain-3")}


def test_a_race_is_on_the_layout_of_its_season_or_else_on_that_which_fits_its_laps():
    layouts = layouts_of("bahrain")
    lengths = [layout_of(layouts, 2020, laps).length for laps in (57, 87)]
    assert lengths == ["5.412", "3.543"]
    assert layout_of(layouts, 2010, 0).length == "6.299"
    assert layout_of(layouts, 2099, 57) is None

"""racedata.service.outlines: the layouts of circuits, and their file."""

from support.loads import select

from racedata.service.outlines import layout_of, layouts_of


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

"""racedata.colours: the colours of constructors, in their file and in a database."""

import csv
import re
from itertools import groupby, pairwise

import pytest
from support import SAMPLE
from support.loads import csv_rows, select

from racedata.colours import FILE, colour_in, liveries, newest_colour

SEASONS_OF_CONSTRUCTORS = """SELECT DISTINCT constructorRef, year
    FROM results JOIN races USING (raceId) JOIN constructors USING (constructorId)"""
NEW_IN_2026 = {"audi", "cadillac"}


def rows():
    with FILE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("constructor", "season", "colour"),
    [
        ("mclaren", 1971, "#f58a1f"),
        ("mclaren", 1988, "#db2b35"),
        ("mclaren", 2008, "#8f979e"),
        ("mclaren", 2030, "#f9830f"),
        ("ferrari", 1950, "#d5121e"),
        ("ferrari", 2026, "#d5121e"),
        ("brawn", 2010, None),
        ("brawn", 2008, None),
        ("nobody", 2008, None),
    ],
)
def test_a_constructor_has_the_colour_of_its_livery_in_a_season(constructor, season, colour):
    assert colour_in(constructor, season) == colour


def test_the_newest_colour_of_a_constructor_is_that_of_its_last_livery():
    newest = [newest_colour(constructor) for constructor in ("mclaren", "brawn", "nobody")]
    assert newest == ["#f9830f", "#cddc2e", None]


def test_every_row_has_a_colour_a_season_and_where_the_colour_is_from():
    for row in rows():
        assert re.fullmatch("#[0-9a-f]{6}", row["colour"]), row
        assert 1950 <= int(row["first"]) <= int(row["last"] or row["first"]) <= 2026, row
        assert row["livery"] == row["livery"].strip() != "", row


def test_the_rows_are_in_order_and_no_two_of_a_constructor_share_a_season():
    assert [*liveries()] == sorted(liveries())
    assert [*liveries()] == [each for each, _ in groupby(row["constructor"] for row in rows())]
    for of_constructor in liveries().values():
        for before, after in pairwise(of_constructor):
            assert before.last is not None
            assert before.last < after.first


def test_a_database_has_the_newest_colour_of_each_constructor(sample_database):
    found = dict(select(sample_database, "SELECT constructorRef, colour FROM constructors"))
    references = {row["constructorRef"] for row in csv_rows(SAMPLE, "constructors")}
    assert found == {reference: newest_colour(reference) for reference in references}
    assert found["ferrari"] == "#d5121e"
    assert None in found.values()


def test_every_constructor_since_2000_has_a_colour_in_each_of_its_seasons(any_database):
    found = select(any_database, f"{SEASONS_OF_CONSTRUCTORS} WHERE year >= 2000")
    assert [each for each in found if colour_in(*each) is None] == []


def test_every_livery_begins_and_ends_with_a_season_of_its_constructor(full_database):
    found = {*select(full_database, SEASONS_OF_CONSTRUCTORS)}
    for constructor, of_constructor in liveries().items():
        for livery in of_constructor:
            if constructor not in NEW_IN_2026:
                assert (constructor, livery.first) in found
                assert livery.last is None or (constructor, livery.last) in found

"""racedata.loader.delivery: what a source says, on its way from its tables into the store."""

import sqlite3
from contextlib import closing

import pytest
from support.loads import changed
from support.stores import a_source

from racedata.loader.delivery import delivery_of
from racedata.loader.parts import LISTS, Tables


@pytest.fixture
def tables(database):
    """The tables of a database. A second source gave the pit stops of a race."""
    changed(
        database,
        """INSERT INTO sources (sourceId, name, address, readAt, isLoaded, gave)
           VALUES (2, 'other', 'other', '2023-10-23T06:00:00Z', 0, '')""",
        """UPDATE origins SET sourceId = 2, fetchedAt = '2023-10-23T06:00:00Z'
           WHERE kind = 'pit_stops' AND RACE(2023/18)""",
    )
    with closing(sqlite3.connect(database)) as db:
        yield Tables(db, "main")


def test_each_source_has_the_lists_and_its_own_parts_and_the_first_has_the_corrections(tables):
    first, second = (
        delivery_of(a_source(name), tables, number)
        for number, name in enumerate(("sample", "other"), 1)
    )
    assert {*first.lists} == {*LISTS, "seasons", "corrections", "ids"}
    assert all(first.lists.values())
    assert {*second.lists} == {*LISTS, "seasons", "ids"}
    assert first.lists["ids"] and not second.lists["ids"]
    ((part, fetched_at),) = second.parts
    assert (part.kind, part.season, fetched_at) == ("pit_stops", 2023, "2023-10-23T06:00:00Z")
    own = {(each.kind, each.season, each.round) for each, _ in first.parts}
    assert ("results", 2023, 18) in own and ("pit_stops", 2023, 18) not in own


@pytest.mark.parametrize("ids", ["dump", None])
def test_rows_have_ids_only_if_the_source_has_them(tables, ids):
    parts = delivery_of(a_source(ids=ids), tables, 1).parts
    of_results = [part for part, _ in parts if part.kind == "results"]
    assert {"resultId" in part.columns for part in of_results} == {ids is not None}

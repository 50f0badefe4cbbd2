"""racedata.loader.sql: rows are inserted in one statement, and a missing table has no columns."""

import sqlite3
from contextlib import closing

import pytest

from racedata.loader.sql import column_names, insert, insertion


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE drivers (driverId INTEGER PRIMARY KEY, code, dob)")
        yield db


def rows(db):
    return db.execute("SELECT * FROM drivers ORDER BY driverId").fetchall()


def test_rows_are_inserted_by_the_names_of_their_columns(db):
    db.execute(insertion("drivers", ("code", "driverId"), rows=2), ("VER", 2, "STR", 3))
    insert(db, "drivers", {"dob": "1981-07-29", "driverId": 1}, {"dob": None, "driverId": 4})
    insert(db, "drivers")
    assert rows(db) == [
        (1, None, "1981-07-29"),
        (2, "VER", None),
        (3, "STR", None),
        (4, None, None),
    ]


def test_the_rows_before_one_that_is_refused_stay(db):
    with pytest.raises(sqlite3.IntegrityError):
        db.execute(insertion("drivers", ("driverId",), rows=3), (1, 2, 1))
    assert rows(db) == [(1, None, None), (2, None, None)]


def test_a_missing_table_has_no_columns(db):
    assert column_names(db, "drivers") == ["driverId", "code", "dob"]
    assert column_names(db, "none") == []

"""racedata.loader.stage: the tables that a reader fills, with the columns that model.py and
schema.sql say.
"""

import sqlite3
from contextlib import closing

import pytest

from racedata.database import SCHEMA
from racedata.loader import stage
from racedata.model import COMPUTED, TABLE_BY_NAME


@pytest.fixture
def staged():
    """A Stage next to an empty database."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript(SCHEMA)
        yield stage.Stage(db, lambda text: None)


def test_columns_that_a_reader_does_not_name_are_unknown(staged):
    staged.insert(
        "drivers", ["driverId", "driverRef", "forename", "surname"], [[1], ["a"], ["A"], ["B"]]
    )
    assert staged.db.execute("SELECT * FROM stage.drivers").fetchall() == [
        (1, "a", None, None, "A", "B", None, None, None)
    ]


@pytest.mark.parametrize("table", TABLE_BY_NAME)
def test_a_staged_table_has_ids_of_rows_and_the_columns_that_the_loader_does_not_make(
    staged, table
):
    stored = {name for _, name, *_ in staged.db.execute(f"PRAGMA main.table_info({table})")}
    names = {name for _, name, *_ in staged.db.execute(f"PRAGMA stage.table_info({table})")}
    assert stored - names <= {*COMPUTED, "record"}
    assert names - stored <= {TABLE_BY_NAME[table].id}
    assert names == set(TABLE_BY_NAME[table].names)


def test_rows_are_counted_however_they_are_inserted(staged):
    names = ["statusId", "status"]
    staged.insert("status", names, [[1, 2], ["Finished", "Engine"]])
    staged.insert_rows("status", names, iter([(3, "Gearbox"), (4, "Fire")]))
    staged.insert_row("status", {"status": "Ill", "statusId": 5})
    assert staged.rows == {"status": 5}
    texts = staged.db.execute("SELECT status FROM stage.status ORDER BY statusId").fetchall()
    assert texts == [("Finished",), ("Engine",), ("Gearbox",), ("Fire",), ("Ill",)]

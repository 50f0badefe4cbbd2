"""SQL that several modules of the loader need: inserting rows, calendars, times."""

import sqlite3
from collections.abc import Mapping
from functools import cache

from racedata.formats import milliseconds
from racedata.loader.matching import CalendarRace


@cache
def insertion(table: str, columns: tuple[str, ...]) -> str:
    """The statement that inserts values of these columns."""
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"


def insert(db: sqlite3.Connection, table: str, *rows: Mapping[str, object]) -> None:
    """Inserts rows that have the same columns, each with the names of its columns."""
    if rows:
        statement = insertion(table, tuple(rows[0]))
        db.executemany(statement, (tuple(row.values()) for row in rows))


def column_names(db: sqlite3.Connection, table: str, schema: str = "main") -> list[str]:
    """The names of a table's columns; none if the table is missing."""
    return [name for _, name, *_ in db.execute(f"PRAGMA {schema}.table_info({table})")]


def unless_in(db: sqlite3.Connection, other: str, table: str) -> str:
    """The condition that another schema lacks a row of a table in `main` or `old`. Only the columns
    that both have count: an older version of racedata may lack some.
    """
    names, old_names = (column_names(db, table, schema) for schema in ("main", "old"))
    same = " AND ".join(f"same.{name} IS {table}.{name}" for name in names if name in old_names)
    return f"NOT EXISTS (SELECT 1 FROM {other}.{table} AS same WHERE {same})"


def calendar(db: sqlite3.Connection, schema: str, year: int) -> list[CalendarRace]:
    """The calendar of a season, by round."""
    races = db.execute(
        f"""SELECT raceId, races.name, races.url, circuitRef, date
            FROM {schema}.races JOIN {schema}.circuits USING (circuitId)
            WHERE year = ? ORDER BY round""",
        (year,),
    )
    return [CalendarRace(*row) for row in races]


def add_milliseconds(db: sqlite3.Connection) -> None:
    """Adds the SQL function `milliseconds`, of a time such as `1:23.456`; NULL if that is NULL."""
    db.create_function(
        "milliseconds", 1, lambda time: time and milliseconds(time), deterministic=True
    )

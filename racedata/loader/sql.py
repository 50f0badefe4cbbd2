"""SQL that several modules of the loader need: inserting rows, times."""

import sqlite3
from functools import cache

from racedata.formats import milliseconds


@cache
def insertion(table: str, columns: int | tuple[str, ...], rows: int = 1) -> str:
    """The statement that inserts rows, many at once: faster than one by one.

    `columns` are the names of the columns that are given, or their number if all are. If a row is
    refused, those before it stay.
    """
    if isinstance(columns, int):
        names, count = "", columns
    else:
        names, count = f" ({', '.join(columns)})", len(columns)
    row = f"({', '.join('?' * count)})"
    return f"INSERT OR FAIL INTO {table}{names} VALUES {', '.join([row] * rows)}"


def column_names(db: sqlite3.Connection, table: str, schema: str = "main") -> list[str]:
    """The names of a table's columns; none if the table is missing."""
    return [name for _, name, *_ in db.execute(f"PRAGMA {schema}.table_info({table})")]


def add_milliseconds(db: sqlite3.Connection) -> None:
    """Adds the SQL function `milliseconds`, of a time such as `1:23.456`; NULL if that is NULL."""
    db.create_function(
        "milliseconds", 1, lambda time: time and milliseconds(time), deterministic=True
    )

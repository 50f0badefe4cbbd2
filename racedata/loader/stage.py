"""The tables of a dump while they are loaded. The reader of each source fills a Stage; build.py makes the database."""

import sqlite3
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

from racedata.loader.errors import LoadError, Progress
from racedata.loader.tables import TABLES
from racedata.loader.values import Value

MAX_IDS = 500_000  # a limit of memory, far above what any dump needs


class Origin(NamedTuple):
    """Where the rows in a Stage are from."""

    source: str  # folder, zip or URL, as given to the loader
    licence: str | None  # of the data; None if the source does not say
    checksum: str  # SHA-256, in hexadecimal, of the files as they were read
    remarks: Sequence[str] = ()  # lines for the report
    is_sample: bool = False  # whether it is the package's own sample
    refreshed_from: str | None = None  # addresses of APIs whose records are in the source already


class Stage:
    """The tables of a dump, in a temporary database `dump` beside the new one, on disk if they are large.

    They have the names and columns of schema.sql, without those that are computed. Tables with an `id` in tables.py
    also have the dump's id of a row (`resultId`, …), which orders rows that are otherwise equal.
    """

    def __init__(self, db: sqlite3.Connection, progress: Progress) -> None:
        """`db` is the new database with its empty tables, outside a transaction."""
        self.db, self.progress = db, progress
        self.rows: dict[str, int] = {}  # how many rows were inserted, by table; without tables that the dump lacks
        db.executescript("ATTACH '' AS dump; PRAGMA dump.journal_mode = OFF; PRAGMA dump.synchronous = OFF")
        for table in TABLES:
            if table.is_numbered:
                columns = ", ".join(
                    f"{column.name} {column.type}{' NOT NULL' * column.required}" for column in table.columns
                )
                key = table.id or ", ".join(table.key)
                db.execute(f"CREATE TABLE dump.{table.name} ({columns}, PRIMARY KEY ({key})) WITHOUT ROWID")
            else:
                (sql,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table.name,)).fetchone()
                db.execute(sql.replace(f"CREATE TABLE {table.name}", f"CREATE TABLE dump.{table.name}", 1))

    def insert(self, table: str, names: Sequence[str], columns: Sequence[Sequence[Value]]) -> None:
        """Inserts rows, given as columns of values. Columns that `names` omits are unknown in all of them.

        Raises sqlite3.IntegrityError if a row has the key of another, or lacks a value that it needs. The rows before
        it stay.
        """
        count = len(columns[0]) if columns else 0
        self.rows[table] = self.rows.get(table, 0) + count
        if count:
            self.db.execute(insertion(table, tuple(names), count), list(chain.from_iterable(zip(*columns))))


def ids_of(db: sqlite3.Connection, table: str, column: str) -> set[int]:
    """The ids in a column of a table, to which other tables refer. Raises LoadError if they are very many."""
    ids = {id for (id,) in db.execute(f"SELECT {column} FROM {table} LIMIT {MAX_IDS + 1}")}
    if len(ids) > MAX_IDS:
        raise LoadError(f"more than {MAX_IDS:,} rows of {table.rpartition('.')[2]}; expected fewer")
    return ids


@cache
def insertion(table: str, names: tuple[str, ...], rows: int) -> str:
    """The statement that inserts many rows at once: faster than one by one."""
    row = f"({', '.join('?' * len(names))})"
    return f"INSERT OR FAIL INTO dump.{table} ({', '.join(names)}) VALUES {', '.join([row] * rows)}"

"""Statements of users: SQL that only reads a database file. Those of strangers have bounds, and a
process of their own.

Not for the service, which has no statements of users.
"""

import os
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

from racedata.database import SCHEMA, DatabaseError, FileState, file_state

# The only actions that a statement may need.
READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
MAX_HEAP = 64 << 20  # bytes that SQLite may take in the process of a statement
OUT_OF_TIME = 3  # the code with which such a process ends itself
LONGEST_ERROR = 500  # characters: SQLite repeats a name, however long


class StatementError(ValueError):
    """A statement that was refused or stopped: one line says why."""


class Bounds(NamedTuple):
    """How large a statement and its result may be, and how long it may take in its own process."""

    rows: int  # further rows are left out
    size: int  # characters of the whole result, of a value, and of the statement
    seconds: float


class Rows(NamedTuple):
    rows: list[dict[str, Any]]
    is_all: bool  # whether the statement had no more rows
    tables: frozenset[str]  # that it has read


class Statements:
    """A connection that only reads the file at `path`, even after another one has replaced it.

    `state` is the one in which the file was checked. Without bounds, a statement may take any time
    and memory. Raises DatabaseError if the file cannot be used, or if another one has replaced it.
    """

    def __init__(self, path: str, state: FileState, bounds: Bounds | None = None) -> None:
        self.bounds = bounds
        self.tables: set[str] = set()
        # `immutable`: nothing ever writes to the file. Threads use it one after the other.
        uri = f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1"
        try:
            self.db = sqlite3.connect(uri, uri=True, check_same_thread=False)
        except sqlite3.Error as error:
            raise DatabaseError(path, f"cannot be read ({error})", transient=True) from None
        if file_state(path) != state:
            raise DatabaseError(
                path, "has been replaced since it was read; ask again", transient=True
            )
        if bounds:
            self.db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, bounds.size)
            self.db.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, bounds.size)
            self.db.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, 200)
        self.db.set_authorizer(self.authorize)

    def authorize(self, action: int, table: str | None, *_: str | None) -> int:
        if action not in READING:
            self.is_refused = True
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_READ and table:
            self.tables.add(table)
        return sqlite3.SQLITE_OK

    def run(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """The rows of one statement that only reads. Raises StatementError."""
        self.tables.clear()
        self.is_refused = False
        try:
            cursor = self.db.execute(sql, values)
            if cursor.description is None:
                raise StatementError("the statement is empty; expected one SELECT")
            names = [name for name, *_ in cursor.description]
            if len({*names}) < len(names):
                raise StatementError(
                    "two columns have the same name; expected AS with a name of its own for each"
                )
            rows = [dict(zip(names, row)) for row in self.bounded(cursor)]
            is_all = cursor.fetchone() is None
            cursor.close()
        # The last two: numbers of more than 64 bits, and texts that have no form in UTF-8.
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeEncodeError) as error:
            text = str(error)
            if self.is_refused or text == "not authorized":
                text = "only a SELECT that reads is allowed"
            raise StatementError(text[:LONGEST_ERROR]) from None
        except MemoryError:
            raise StatementError(
                "the statement needs too much memory; expected one that joins less"
            ) from None
        return Rows(rows, is_all, frozenset(self.tables))

    def bounded(self, cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
        """As many rows as the bounds allow. Raises StatementError if these are too large."""
        size = 0
        for number, row in enumerate(cursor, 1):
            yield row
            if self.bounds:
                size += sum(len(value) if isinstance(value, str | bytes) else 10 for value in row)
                if size > self.bounds.size:
                    raise StatementError(too_large(self.bounds.size))
                if number == self.bounds.rows:
                    return

    def close(self) -> None:
        self.db.close()

    def __del__(self) -> None:
        if hasattr(self, "db"):
            self.close()


def run_apart(path: str, state: FileState, sql: str, bounds: Bounds) -> Rows:
    """The rows of one statement that only reads, from a process that ends with it.

    SQLite cannot stop a function that has begun. `LIKE` of two long texts takes seconds, and a
    statement may have it hundreds of times. SQLite also expands a view at each place that names it,
    so that a short statement may need gigabytes. Raises StatementError.
    """
    # `spawn` runs everywhere, and copies no threads and no open files
    context = get_context("spawn")
    try:
        receiving, sending = context.Pipe(duplex=False)
        with closing(sending):
            arguments = sending, path, state, sql, bounds
            process = context.Process(target=answer, args=arguments, daemon=True)
            process.start()
    except OSError as error:
        fault = f"no process for statements can start ({error.strerror}); ask again later"
        raise StatementError(fault) from None
    with closing(receiving):
        try:
            found = receiving.recv()
        except (EOFError, OSError):
            process.join()
            fault = "the process of the statement has ended; ask again, or start racedata mcp again"
            if process.exitcode == OUT_OF_TIME:
                limit = f"stopped after {bounds.seconds:g} seconds"
                fault = f"{limit}; expected a statement that reads less"
            raise StatementError(fault) from None
    process.join()
    if isinstance(found, Rows):
        return found
    raise StatementError(found)


def answer(connection: Connection, path: str, state: FileState, sql: str, bounds: Bounds) -> None:
    """Sends the rows of a statement, or why there are none. Ends this process if it takes long."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    timer = Timer(bounds.seconds, os._exit, [OUT_OF_TIME])
    timer.daemon = True
    timer.start()
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(f"PRAGMA hard_heap_limit = {MAX_HEAP}")
    found: Rows | str
    try:
        found = Statements(path, state, bounds).run(sql)
    except (StatementError, DatabaseError) as error:
        found = str(error)
    connection.send(found)


def too_large(size: int) -> str:
    return f"the result has more than {size:,} characters; expected fewer columns or rows"


def views() -> Iterator[str]:
    """Each view with its columns: `laps(year, round, …)`."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        for name, columns in db.execute(
            """SELECT view.name, group_concat(of.name, ', ')
               FROM sqlite_schema AS view, pragma_table_info(view.name) AS of
               WHERE view.type = 'view' GROUP BY view.name ORDER BY view.rowid"""
        ):
            yield f"{name}({columns})"

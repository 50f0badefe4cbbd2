"""The tables of a dump while they are loaded, and what their values must look like.

The reader of each format fills a Stage with Ergast's tables; load_data.py makes the database from it.
"""

import re
import sqlite3
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from racedata.loader.dump import Parse, Progress, Text, Value


def read_only(path: Path) -> sqlite3.Connection:
    """Opens a database without locks: no program changes such a file, they only replace it."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)


# In the order of loading: each table comes after those that it refers to.
REQUIRED = ("circuits", "constructors", "drivers", "status", "races", "results")
OPTIONAL = (
    "sessions",
    "seasons",
    "qualifying",
    "sprint_results",
    "lap_times",
    "pit_stops",
    "driver_standings",
    "constructor_standings",
)
TABLES = REQUIRED + OPTIONAL


# Parsers. Each returns the value to store, or raises ValueError. Its docstring says in error messages what is expected.


def whole_number(text: str) -> int:
    """a whole number such as 25"""
    # int() alone accepts signs, spaces and underscores. 18 digits always fit into SQLite's 64 bits.
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError
    return int(text)


def from_one(text: str) -> int:
    """a whole number from 1"""
    if not whole_number(text):
        raise ValueError
    return int(text)


def year(text: str) -> int:
    """a year of four digits"""
    if not 1000 <= whole_number(text) <= 9999:
        raise ValueError
    return int(text)


number = Text(r"-?[0-9]+(\.[0-9]+)?", "a number such as 25 or 8.14")
time_of_day = Text("([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]", "a time of day such as 13:00:00")
# Half a surrogate pair, which JSON can have, is no character either.
plain_text = Text(
    r"[^\x00-\x20\x7f\ud800-\udfff]([^\x00-\x1f\x7f\ud800-\udfff]*[^\x00-\x20\x7f\ud800-\udfff])?",
    "text without control characters",
)
# What an address can name; see racedata/addresses.py.
ref = Text("[A-Za-z0-9_-]+", "an id of letters, digits, _ and -")
lap_time = Text(r"([0-9]{1,3}:)?[0-9]{1,3}:[0-5][0-9]\.[0-9]{3}", "a time such as 1:07.012")


def points(text: str) -> str:
    """points such as 25 or 12.5"""
    number(text)
    return text.rstrip("0").rstrip(".") if "." in text else text


def day(text: str) -> str:
    """a date such as 2023-07-02"""
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError
    date.fromisoformat(text)
    return text


def reference(ids: set[int]) -> Callable[[str], int]:
    """A parser of numbers that must be among `ids`."""

    def parse(text: str) -> int:
        if whole_number(text) not in ids:
            raise ValueError
        return int(text)

    return parse


SESSIONS = ("fp1", "fp2", "fp3", "quali", "sprint", "sq")
CHECKED: dict[str, dict[str, Parse]] = {
    "circuits": {"circuitRef": ref, "lat": number, "lng": number},
    "constructors": {"constructorRef": ref},
    "drivers": {"driverRef": ref, "dob": day},
    "races": {
        "year": year,
        "round": from_one,
        "date": day,
        "time": time_of_day,
    },
    "sessions": {
        "session": Text("|".join(SESSIONS), f"one of {', '.join(SESSIONS)}"),
        "date": day,
        "time": time_of_day,
    },
    "results": {"points": points, "fastestLapTime": lap_time, "fastestLapSpeed": number},
    "sprint_results": {"points": points, "fastestLapTime": lap_time},
    "qualifying": {"q1": lap_time, "q2": lap_time, "q3": lap_time},
    "lap_times": {"time": lap_time},
    "pit_stops": {"time": time_of_day},
    "driver_standings": {"points": points},
    "constructor_standings": {"points": points},
    "seasons": {"year": year},
}


class Field(NamedTuple):
    """A column of a staged table."""

    name: str
    kind: str  # INTEGER or TEXT
    parse: Parse  # if it refers to another table: of the number alone
    parent: str | None  # the table that it refers to, by a column of the same name
    required: bool


class Numbered(NamedTuple):
    """A table whose rows the database has in the order of answers, numbered by `record`; see racedata/schema.sql."""

    key: str  # columns that together identify a row
    order: str  # the order of `record`: SQL with the columns of the row and, if not per race, the race's year and round
    per_race: bool = False  # whether `record` restarts at 1 in each race


NUMBERED = {
    "results": Numbered("resultId", "year, round, positionOrder, resultId"),
    "sprint_results": Numbered("resultId", "year, round, positionOrder, resultId"),
    "qualifying": Numbered("qualifyId", "year, round, position NULLS LAST, qualifyId"),
    "lap_times": Numbered("raceId, driverId, lap", "lap, position NULLS LAST, driverId", per_race=True),
    "pit_stops": Numbered("raceId, driverId, stop", "time NULLS LAST, lap NULLS LAST, stop, driverId", per_race=True),
    "driver_standings": Numbered("driverStandingsId", "year, round, position NULLS LAST, driverStandingsId"),
    "constructor_standings": Numbered(
        "constructorStandingsId", "year, round, position NULLS LAST, constructorStandingsId"
    ),
}
COMPUTED = ("record", "final", "constructors")  # columns of the database that no dump has


class Stage:
    """The tables of a dump, in a temporary database `dump` beside the new one, on disk if they are large.

    They have the names and columns of racedata/schema.sql, without COMPUTED. Numbered tables also have the dump's id of
    a row (`resultId`, …), which orders rows that are otherwise equal.
    """

    def __init__(self, db: sqlite3.Connection, progress: Progress) -> None:
        """`db` is the new database with its empty tables, outside a transaction."""
        self.db, self.progress = db, progress
        self.rows: dict[str, int] = {}  # how many rows were inserted, by table; without tables that the dump lacks
        db.executescript("ATTACH '' AS dump; PRAGMA dump.journal_mode = OFF; PRAGMA dump.synchronous = OFF")
        for table in TABLES:
            if table in NUMBERED:
                key = NUMBERED[table].key
                fields = ", ".join(
                    f"{field.name} {field.kind}{' NOT NULL' * field.required}" for field in self.fields(table)
                )
                db.execute(f"CREATE TABLE dump.{table} ({fields}, PRIMARY KEY ({key})) WITHOUT ROWID")
            else:
                (sql,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
                db.execute(sql.replace(f"CREATE TABLE {table}", f"CREATE TABLE dump.{table}", 1))

    def fields(self, table: str) -> list[Field]:
        """The columns of a staged table."""
        parents = {child: parent for _, _, parent, child, *_ in self.db.execute(f"PRAGMA foreign_key_list({table})")}
        key = NUMBERED[table].key.split(", ") if table in NUMBERED else []
        columns = {
            name: Field(
                name,
                kind,
                CHECKED.get(table, {}).get(name, whole_number if kind == "INTEGER" else plain_text),
                parents.get(name),
                required=bool(not_null or primary),
            )
            for _, name, kind, not_null, _, primary in self.db.execute(f"PRAGMA main.table_info({table})")
            if name not in COMPUTED
        }
        ids = {name: Field(name, "INTEGER", whole_number, None, required=True) for name in key if name not in columns}
        return [*ids.values(), *columns.values()]

    def insert(self, table: str, names: Sequence[str], columns: Sequence[Sequence[Value]]) -> None:
        """Inserts rows, given as columns of values. Columns without a name are unknown in all of them.

        Raises sqlite3.IntegrityError if a row has the key of another, or lacks a value that it needs. The rows before
        it stay.
        """
        count = len(columns[0]) if columns else 0
        self.rows[table] = self.rows.get(table, 0) + count
        if count:
            self.db.execute(insertion(table, tuple(names), count), list(chain.from_iterable(zip(*columns))))


@cache
def insertion(table: str, names: tuple[str, ...], rows: int) -> str:
    """The statement that inserts many rows at once: faster than one by one."""
    row = f"({', '.join('?' * len(names))})"
    return f"INSERT OR FAIL INTO dump.{table} ({', '.join(names)}) VALUES {', '.join([row] * rows)}"


Reader = Callable[[Stage], "Source"]


class Source(NamedTuple):
    """What a reader has read."""

    name: str  # folder, zip or URL, as given to the loader
    licence: str | None  # of the data; None if the source does not say
    checksum: str  # SHA-256, in hexadecimal, of the files as they were read
    is_sample: bool = False  # whether it is the package's own sample
    remarks: Sequence[str] = ()  # lines for the report

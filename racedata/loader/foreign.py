"""Checks a database that somebody else has built, before it replaces ours.

It refuses what a load would refuse, and everything in the file that could act: a trigger, a view
or an index of its own. https://www.sqlite.org/security.html says how to open such a file.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from racedata import database
from racedata.database import SCHEMA, SCHEMA_VERSION
from racedata.kinds import KINDS
from racedata.loader.corrections import is_possible
from racedata.loader.errors import LoadError, counted
from racedata.loader.existing import open_read_only
from racedata.loader.tables import BY_NAME, TABLES
from racedata.loader.values import Parser, fetch_time, one_of, plain_text, whole_number

EXPECTED = f"an unmodified racedata database with schema version {SCHEMA_VERSION}"
VALUE_BYTES = 1_000_000  # far above every text
# In the header of an SQLite file: 1 and 1, or 2 and 2 with a write-ahead log. A database in memory
# cannot have one, so the service could not read the file.
JOURNAL = slice(18, 20)

# SQLite's own tables, which ANALYZE makes. Some builds of SQLite make the second one too.
STATISTICS = {
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "sqlite_stat4": "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
}

FLAG = Parser("0 or 1", "[01]", int)
KIND = one_of(("races", "sessions", *KINDS))
ANY_TEXT = Parser(plain_text.expected, f"({plain_text.pattern})?")  # even an empty one
# The parsers of columns that no dump has. Others are plain text or whole numbers.
DESCRIPTIONS = {
    "build.builtAt": fetch_time,
    "build.isSample": FLAG,
    "sources.readAt": fetch_time,
    "sources.isLoaded": FLAG,
    "sources.isProvisional": FLAG,
    "sources.gave": ANY_TEXT,
    "origins.kind": KIND,
    "origins.fetchedAt": fetch_time,
    "coverage.kind": KIND,
    "driver_standings.constructors": Parser("ids, separated by spaces", "([0-9]+( [0-9]+)*)?"),
    "driver_standings.final": FLAG,
    "constructor_standings.final": FLAG,
}


class Refused(LoadError):
    """A database may not replace ours. Another file at the same place may."""


def check_foreign(path: Path, place: str) -> None:
    """Raises Refused, which names the place that the file is from, unless the whole file is as
    racedata builds it.
    """
    try:
        journal = bytes(database.read(path).database[JOURNAL])
    except database.DatabaseError as error:
        raise Refused(f"{place} {error.fault}; expected {EXPECTED}") from None
    if journal != b"\1\1":
        raise Refused(f"{place} has a write-ahead log; expected {EXPECTED}")
    try:
        with closing(open_foreign(path)) as db, closing(sqlite3.connect(":memory:")) as own:
            own.executescript(SCHEMA)
            # Nothing else is read before all tables and views are known to be ours.
            fault = next(faults_of_schema(db, own), None) or next(faults_of_rows(db, own), None)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        fault = str(error)
    if fault:
        raise Refused(f"{place}: {fault}; expected {EXPECTED}")


def open_foreign(path: Path) -> sqlite3.Connection:
    db = open_read_only(path)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES)
    db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    return db


def faults_of_schema(db: sqlite3.Connection, own: sqlite3.Connection) -> Iterator[str]:
    """Yields what differs from the tables, indexes and views of schema.sql."""
    theirs, ours = objects(db), objects(own)
    for name, sql in STATISTICS.items():
        if theirs.get(("table", name, name)) == tokens(sql):
            del theirs["table", name, name]
    for type, name, table in sorted(theirs.keys() - ours.keys()):
        yield f"has an extra {type} {name!r}" + (f" on {table!r}" if name != table else "")
    for key, statement in ours.items():
        if theirs.get(key) != statement:
            yield f"{key[0]} {key[1]!r} is missing or different"


def objects(db: sqlite3.Connection) -> dict[tuple[str, str, str], list[str]]:
    """The statement that made each object of a database, by type, name and table."""
    found = db.execute("SELECT type, name, tbl_name, ifnull(sql, '') FROM sqlite_schema")
    return {(type, name, table): tokens(sql) for type, name, table, sql in found}


def tokens(sql: str) -> list[str]:
    """The words and signs of a statement, without comments: a new comment is not a new schema."""
    found = re.findall(r"--[^\n]*|'[^']*'|\w+|\S", sql)
    return [token for token in found if not token.startswith("--")]


def faults_of_rows(db: sqlite3.Connection, own: sqlite3.Connection) -> Iterator[str]:
    """Yields rows and values that no load stores."""
    # Checks SQLite's pages, and every NOT NULL, UNIQUE and type.
    (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        yield " ".join(found.split())
    for table, _, parent, _ in db.execute("PRAGMA foreign_key_check"):
        yield f"a row of {table} refers to a row of {parent} that is missing"
    yield from faults_of_references(db)
    (builds,) = db.execute("SELECT count(*) FROM build").fetchone()
    if builds != 1:
        yield f"{builds:,} rows in build instead of 1"
    for table in TABLES:
        yield from faults_of_table(db, table.name)
    for (name,) in own.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        columns = own.execute(f"PRAGMA table_info({name})").fetchall()
        for _, column, type, *_ in columns:
            yield from faults_of_column(db, name, column, type)


def faults_of_references(db: sqlite3.Connection) -> Iterator[str]:
    """Yields rows that refer to others in a text, which no foreign key guards."""
    known = {str(id) for (id,) in db.execute("SELECT constructorId FROM constructors")}
    for (ids,) in db.execute("SELECT DISTINCT constructors FROM driver_standings"):
        if missing := {*ids.split()} - known:
            yield f"driver_standings.constructors: no constructor has the id {min(missing)[:40]!r}"
    for table, key, column, *values in db.execute(
        "SELECT tableName, key, columnName, sourceValue, value FROM corrections"
    ):
        if not is_possible(table, key, column, values):
            what = f"{table} {key} {column}"[:80]
            yield f"corrections: {what!r} is {values[1]!r:.40}, a correction that no load makes"


def faults_of_table(db: sqlite3.Connection, name: str) -> Iterator[str]:
    table = BY_NAME[name]
    (rows,) = db.execute(f"SELECT count(*) FROM {name}").fetchone()
    if table.required and not rows:
        yield f"no {name} that can be served"
    if db.execute("SELECT rows FROM row_counts WHERE name = ?", (name,)).fetchall() != [(rows,)]:
        yield f"row_counts: wrong number for {name}, a table of {counted(rows, 'row')}"
    if table.is_numbered:
        group = "raceId" if KINDS[name].is_numbered_by_race else "NULL"
        if db.execute(
            f"""SELECT 1 FROM {name} GROUP BY {group}
                HAVING min(record) <> 1 OR max(record) <> count(*)"""
        ).fetchone():
            yield f"{name}.record: does not number the rows from 1"


def faults_of_column(db: sqlite3.Connection, table: str, name: str, type: str) -> Iterator[str]:
    """Yields values that a load would not read from a source."""
    default = whole_number if type == "INTEGER" else plain_text
    parse = DESCRIPTIONS.get(f"{table}.{name}", default)
    if table in BY_NAME:
        parse = {each.name: each.parse for each in BY_NAME[table].columns}.get(name, parse)
    for (value,) in db.execute(f"SELECT DISTINCT {name} FROM {table} WHERE {name} NOT NULL"):
        try:
            is_right = parse(str(value)) == value
        except ValueError:
            is_right = False
        if not is_right:
            yield f"{table}.{name}: {str(value)[:40]!r} instead of {parse.expected}"
            return

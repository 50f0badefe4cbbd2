"""Copies a whole database as it is, byte for byte: then both give the same answers.

One copies from a machine that one trusts. So a copy is checked for what goes wrong on the way, and
for what another program has changed: version, checksum, our schema, pages, references. Then it is
decided whether the copy may replace ours, whose store is cleared.
"""

import os
import re
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from racedata import database
from racedata.database import SCHEMA, SCHEMA_VERSION
from racedata.formats import without_query
from racedata.hints import COMMAND
from racedata.licences import SOURCES
from racedata.loader.allowed import check_licence
from racedata.loader.errors import LoadError
from racedata.loader.existing import ExistingDatabase, checksum_at_end, open_read_only
from racedata.loader.store import changed_store

EXPECTED = f"an unmodified racedata database with schema version {SCHEMA_VERSION}"


class Refused(LoadError):
    """A database may not replace ours. Another file at the same place may."""


def check_copied(path: Path, place: str) -> None:
    """Raises Refused unless the whole file is as racedata built it. `place` begins the error."""
    try:
        content = database.read(path)
    except database.DatabaseError as error:
        raise Refused(f"{place} {error.fault}; expected {EXPECTED}") from None
    try:
        with closing(content.connect()) as db:
            fault = fault_in(db)
    except sqlite3.Error as error:  # such as a write-ahead log, which no database in memory has
        fault = str(error)
    if fault:
        raise Refused(f"{place}: {fault}; expected {EXPECTED}")


def fault_in(db: sqlite3.Connection) -> str:
    """What differs from a database that racedata has built, or is damaged; empty if nothing."""
    with closing(sqlite3.connect(":memory:")) as own:
        own.executescript(SCHEMA)
        if others := statements(db) ^ statements(own):
            return f"its schema differs in {min(name for name, _ in others)}"
    if (found := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        return " ".join(found.split())
    for table, _, parent, _ in db.execute("PRAGMA foreign_key_check"):
        return f"a row of {table} refers to a row of {parent} that is missing"
    return ""


def statements(db: sqlite3.Connection) -> set[tuple[str, str]]:
    """The names and statements of all tables, views, indexes and triggers, without comments and
    spaces; but not the tables of ANALYZE, which depend on the version of SQLite.
    """
    found = db.execute(
        "SELECT name, ifnull(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat_'"
    )
    return {(name, re.sub(r"--[^\n]*|\s", "", sql)) for name, sql in found}


class Copy(NamedTuple):
    """A checked copy of another database."""

    path: Path
    address: str  # the other database's
    etag: str  # its entity tag there; empty if it has none


def install_copy(copy: Copy, new: Path, existing: ExistingDatabase | None, only_open: bool) -> None:
    """Writes the copy to `new`. Raises Refused if it may not replace the existing database, and
    LoadError if its sources must be open and one is not.
    """
    with closing(open_read_only(copy.path)) as db:
        for name, licence in db.execute(SOURCES):
            check_licence(f"{without_query(copy.address)}: {name}", licence, only_open)
    if existing:
        check_age(copy, existing)
    with copy.path.open("rb") as source, new.open("wb") as target:
        shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())


def check_age(copy: Copy, existing: ExistingDatabase) -> None:
    """Raises Refused if clients would get older answers: from an older database, or the sample."""
    with closing(ExistingDatabase(copy.path)) as other:
        built_at, is_sample = other.built_at, other.is_sample
    if is_sample < existing.is_sample:
        return
    if is_sample > existing.is_sample:
        fault = "is only the sample; expected the data itself"
    elif built_at < existing.built_at:
        fault = (
            f"was built at {built_at}; the existing database is newer, built at {existing.built_at}"
        )
    else:
        return
    what_to_do = (
        "to replace the existing database with it anyway, run: "
        f"{COMMAND} load {shlex.quote(without_query(copy.address))} --replace "
        f"--database {shlex.quote(str(existing.path))}"
    )
    raise Refused(f"{without_query(copy.address)} {fault}; {what_to_do}")


def clear_for_copy(database: Path, name: str, etag: str) -> None:
    """Clears the store, because it is not of the database that was copied here. Remembers where
    that one is from.
    """
    facts = {"copied": checksum_at_end(database), "etag": etag}
    with changed_store(database) as store:
        store.clear()
        store.remember(name, facts)

"""Copies a whole database as it is, byte for byte: then both give the same answers.

First, it is checked. One copies from a machine that one trusts. So the check finds what goes wrong
on the way, and a file of another program or version: version, checksum, exactly our schema, whole
pages, references. Then it is decided whether the copy may replace ours, whose store is cleared.
"""

import os
import re
import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from racedata import database
from racedata.database import SCHEMA, SCHEMA_VERSION
from racedata.formats import utc_now, without_query
from racedata.hints import COMMAND
from racedata.licences import SOURCES
from racedata.loader.allowed import check_licence
from racedata.loader.errors import LoadError
from racedata.loader.existing import ExistingDatabase, checksum_at_end, open_read_only
from racedata.loader.store import changed_store

EXPECTED = f"an unmodified racedata database with schema version {SCHEMA_VERSION}"
# In the header of an SQLite file: 1 and 1, or 2 and 2 with a write-ahead log. A database in memory
# cannot have one, so the service could not read the file.
JOURNAL = slice(18, 20)

# SQLite's own tables, which ANALYZE makes. Some builds of SQLite make the second one too.
STATISTICS = {
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "sqlite_stat4": "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
}


class Refused(LoadError):
    """A database may not replace ours. Another file at the same place may."""


def check_copied(path: Path, place: str) -> None:
    """Raises Refused unless the whole file is as racedata builds it. `place` begins the error."""
    try:
        journal = bytes(database.read(path).database[JOURNAL])
    except database.DatabaseError as error:
        raise Refused(f"{place} {error.fault}; expected {EXPECTED}") from None
    if journal != b"\1\1":
        raise Refused(f"{place} has a write-ahead log; expected {EXPECTED}")
    try:
        with closing(open_read_only(path)) as db, closing(sqlite3.connect(":memory:")) as own:
            own.executescript(SCHEMA)
            # No row is read before all tables and views are known to be ours.
            fault = next(faults_of_schema(db, own), None) or next(faults_of_rows(db), None)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        fault = str(error)
    if fault:
        raise Refused(f"{place}: {fault}; expected {EXPECTED}")


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


def faults_of_rows(db: sqlite3.Connection) -> Iterator[str]:
    """Yields what SQLite itself finds: damaged pages, and rows that break a rule of the schema."""
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        yield " ".join(found.split())
    for table, _, parent, _ in db.execute("PRAGMA foreign_key_check"):
        yield f"a row of {table} refers to a row of {parent} that is missing"


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
    # If our clock was ahead, every database would be older for a long time.
    elif built_at < existing.built_at <= utc_now():
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

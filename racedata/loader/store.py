"""The store: what every source says, in an SQLite file beside the database.

`racedata.sources.db` beside `racedata.db`. The loader writes it in transactions. The service reads
only timestamps from it: when each source was last asked, and since when it is followed. choose.py
decides which parts count, and build.py makes the database from them. What a check of a source has
to remember is here too.

Four doors lead to the store of a database:

| | as it is | of this database: if not, that is taken apart |
|---|---|---|
| to read: a copy in memory | `store_to_read` | `rebuild.store_of` |
| to write: one transaction | `changed_store` | `rebuild.NewDatabase.store` (folder locked) |

If the file is missing or damaged, the doors to write make a new one, and the doors to read give an
empty store. A store of another version is an error, and stays as it is. `store_of` and the writing
functions of memory.py go on without it.
"""

import json
import os
import secrets
import sqlite3
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from racedata.database import store_path
from racedata.formats import printable
from racedata.hints import COMMAND
from racedata.loader.errors import LoadError
from racedata.loader.parts import Part, Row
from racedata.loader.replacement import copy_attributes
from racedata.loader.sql import insert
from racedata.values import Value

STORE = Path(__file__).with_name("store.sql").read_text(encoding="utf-8")
PUT_PART = """
    INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET
        fetchedAt = iif(columns = excluded.columns AND rows = excluded.rows,
            fetchedAt, excluded.fetchedAt),
        confirmedAt = excluded.confirmedAt, reading = excluded.reading,
        entrants = excluded.entrants, columns = excluded.columns, rows = excluded.rows"""

Races = Sequence[dict[str, Any]]

LONG = 8000  # bytes: longer JSON is compressed, because there may be 600,000 laps
APPLICATION_ID = 0x52414353  # "RACS"
IN_MEMORY = Path(":memory:")  # the path of a store that no file keeps
OF_NO_SOURCE = ""  # the source of what is remembered of all sources
STORE_VERSION = 4
DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
MAX_CHANGES = 20_000  # that are kept


class StoredSource(NamedTuple):
    """A row of `sources`, with its columns in their order."""

    name: str
    address: str
    licence: str | None
    checksum: str | None
    read_at: str
    reading: int = 0  # the number of the reading, set by the store
    place: int | None = None  # set by Store.order
    is_loaded: bool = False
    is_provisional: bool = False
    is_sample: bool = False
    # The dump whose ids its rows have: itself, or the one that it completes; or the store of the
    # database that was taken apart. None if they have no ids.
    ids: str | None = None

    @property
    def is_api(self) -> bool:
        """Whether it is an API with final records, as `Source.is_api` says of a type of source. All
        dumps have a checksum: see the docstring of `Source`.
        """
        return self.checksum is None and not self.is_provisional


class StoredCalendar(NamedTuple):
    """A season of a source: a row of `calendars`."""

    source: str
    season: int
    fetched_at: str | None  # when a refresh read it; None: a load did
    races: Races  # the latest: see parts.Calendar
    # the latest races that may count: older ones if `races` has lost some; None if none may
    counting: Races | None
    lacks: Mapping[str, str]  # since when `races` has lacked races, by their name


class StoredPart(NamedTuple):
    """A part, without its rows."""

    source: str
    season: int
    race: str
    kind: str
    fetched_at: str | None
    confirmed_at: str
    reading: int  # the number of the one that confirmed it
    entrants: int


class DamagedStore(Exception):
    """A file that is damaged, or no database."""


class UnknownStore(LoadError):
    """A store of another version of racedata, or a database of another program."""


class Store:
    """An open store, which is created if it is empty. Its functions raise sqlite3.Error. They take
    the names of sources.

    Raises what `check` does.
    """

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None, timeout=60)
        try:
            with damage_found(path):
                # Readers only wait while a transaction is committed.
                self.db.execute("PRAGMA cache_spill = OFF")
                if not self.db.execute("SELECT 1 FROM sqlite_schema").fetchone():
                    self.create()
                check(self.db, path)
        except BaseException:
            self.close()
            raise

    def create(self) -> None:
        """Makes the tables of a new store, unless another program does so at the same time."""
        self.db.executescript(
            f"""BEGIN IMMEDIATE;{STORE}
                INSERT INTO store SELECT '{new_id()}', 0, 0 WHERE NOT EXISTS (SELECT 1 FROM store);
                PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {STORE_VERSION};
                COMMIT;"""
        )

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits what the block writes, unless it raises."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:  # not if SQLite has rolled back, on a full disk
                self.db.execute("ROLLBACK")
            raise

    # The state.

    @property
    def state(self) -> tuple[str, int]:
        """The id of the store, and its revision: how many builds had something new."""
        id, revision = self.db.execute("SELECT id, revision FROM store").fetchone()
        return id, revision

    @state.setter
    def state(self, state: tuple[str, int]) -> None:
        self.db.execute("UPDATE store SET id = ?, revision = ?", state)

    # Sources.

    def sources(self) -> list[StoredSource]:
        """The list of sources, the most trusted first."""
        return [source for source in self.known_sources() if source.place is not None]

    def known_sources(self) -> list[StoredSource]:
        """All sources that were read, first those in the list."""
        rows = self.db.execute("SELECT * FROM sources ORDER BY place NULLS LAST, rowid")
        # three columns are 0 or 1, the others texts and numbers
        return [StoredSource(*row[:7], *map(bool, row[7:10]), *row[10:]) for row in rows]

    def source(self, name: str) -> StoredSource | None:
        return next((source for source in self.known_sources() if source.name == name), None)

    def name_of(self, name: str, address: str) -> str:
        """The name of the source with this name; if there is none, of the one at the address: only
        the files of a dump at a URL say what it is.
        """
        names = {source.address: source.name for source in self.known_sources()}
        return name if name in names.values() else names.get(address, name)

    def readings_by_source(self) -> dict[str, int]:
        """The number of the latest reading of each source."""
        return {source.name: source.reading for source in self.known_sources()}

    def put_source(self, source: StoredSource) -> None:
        """Adds or replaces a source that was read, and gives it the number of this reading."""
        self.db.execute("UPDATE store SET readings = readings + 1")
        source = source._replace(reading=self.readings)
        marks = ", ".join("?" * len(source))
        self.db.execute(f"INSERT OR REPLACE INTO sources VALUES ({marks})", source)

    @property
    def readings(self) -> int:
        """How often a source was read, which is the number of the latest reading."""
        (readings,) = self.db.execute("SELECT readings FROM store").fetchone()
        return int(readings)

    def order(self, names: Sequence[str]) -> None:
        self.db.execute("UPDATE sources SET place = NULL")
        self.db.executemany(
            "UPDATE sources SET place = ? WHERE name = ?", list(enumerate(names, 1))
        )

    def forget(self, name: str) -> None:
        for table in ("calendars", "parts", "lists"):
            self.db.execute(f"DELETE FROM {table} WHERE source = ?", (name,))

    # Calendars.

    def calendars(self, name: str = "", season: int | None = None) -> list[StoredCalendar]:
        rows = self.db.execute(
            """SELECT * FROM calendars
               WHERE (?1 = '' OR source = ?1) AND (?2 IS NULL OR season = ?2)""",
            (name, season),
        )
        return [
            StoredCalendar(*row[:3], *(text and orjson.loads(text) for text in row[3:]))
            for row in rows
        ]

    def calendar(self, name: str, season: int) -> StoredCalendar | None:
        return next(iter(self.calendars(name, season)), None)

    def put_calendar(self, calendar: StoredCalendar) -> None:
        *facts, races, counting, lacks = calendar
        counts = None if counting is None else as_json(counting)
        row = (*facts, as_json(races), counts, as_json(lacks))
        self.db.execute("INSERT OR REPLACE INTO calendars VALUES (?, ?, ?, ?, ?, ?)", row)

    # Parts.

    def parts(self, name: str = "", kind: str = "") -> Iterator[StoredPart]:
        """All parts, or only a source's or of a kind, without their rows."""
        rows = self.db.execute(
            """SELECT source, season, race, kind, fetchedAt, confirmedAt, reading, entrants
               FROM parts
               WHERE (?1 = '' OR source = ?1) AND (?2 = '' OR kind = ?2)""",
            (name, kind),
        )
        return map(StoredPart._make, rows)

    def rows(self, part: StoredPart) -> tuple[list[str], list[list[Any]]]:
        columns, rows = self.content(part)
        return columns.split(), unpacked(rows)

    def content(self, part: StoredPart) -> tuple[str, bytes]:
        """The columns and the rows of a part, as they are stored: equal parts say the same."""
        return self.db.execute(  # type: ignore[no-any-return]
            """SELECT columns, rows FROM parts
               WHERE source = ? AND season = ? AND race = ? AND kind = ?""",
            (part.source, part.season, part.race, part.kind),
        ).fetchone()

    def put_parts(
        self, name: str, read_at: str, parts: Iterable[tuple[str, Part, str | None]]
    ) -> None:
        """Replaces parts: each with the key of its race, and when a refresh fetched it. One that
        has not changed is only confirmed.
        """
        reading = self.readings
        for race, part, fetched_at in parts:
            facts = name, part.season, race, part.kind, fetched_at, fetched_at or read_at, reading
            content = part.entrants, " ".join(part.columns), packed(part.rows)
            self.db.execute(PUT_PART, (*facts, *content))

    # Lists.

    def list_rows(self, name: str, list_name: str) -> list[Row]:
        """The rows of a list of a source, in its order."""
        rows = self.db.execute(
            "SELECT row FROM lists WHERE source = ? AND name = ? ORDER BY rowid", (name, list_name)
        )
        return [orjson.loads(row) for (row,) in rows]

    def put_list(self, name: str, list_name: str, rows: Iterable[tuple[str, Row]]) -> None:
        """Adds rows to a list, or replaces those with the same key."""
        self.db.executemany(
            "INSERT INTO lists VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET row = excluded.row",
            ((name, list_name, key, as_json(row)) for key, row in rows),
        )

    def statuses(self) -> dict[str, int]:
        """The ids of statuses in the database, by text."""
        return dict(self.db.execute("SELECT status, statusId FROM status").fetchall())

    def put_statuses(self, rows: Iterable[Row]) -> None:
        """Adds statuses, or replaces those with the same id or text. Those that no record has any
        more stay, because addresses have their ids.
        """
        self.db.executemany("INSERT OR REPLACE INTO status VALUES (:statusId, :status)", rows)

    # Changes.

    def changes(self) -> list[Sequence[Value]]:
        """The rows of `changes`: the values that builds have altered, the oldest first."""
        return self.db.execute("SELECT * FROM changes ORDER BY number").fetchall()

    def put_changes(self, changes: Iterable[Mapping[str, Value]]) -> None:
        """Adds such rows, by column, without their numbers. The oldest go if there are too many."""
        insert(self.db, "changes", *changes)
        self.db.execute(
            "DELETE FROM changes WHERE number <= (SELECT max(number) FROM changes) - ?",
            (MAX_CHANGES,),
        )

    def drop_changes(self, after: int | None = None) -> None:
        """Forgets what was altered: all of it, or only after a revision."""
        self.db.execute("DELETE FROM changes WHERE ?1 IS NULL OR revision > ?1", (after,))

    def renumber_changes(self, rounds: Mapping[tuple[Value, Value], int | None]) -> None:
        """Gives changes the rounds that their races have now, by season and the round before; None
        if those are gone.
        """
        rows = self.db.execute("SELECT number, season, round FROM changes").fetchall()
        self.db.executemany(
            "UPDATE changes SET round = ? WHERE number = ?",
            [(rounds[at[1:]], at[0]) for at in rows if at[1:] in rounds],
        )

    def clear(self) -> None:
        """Forgets what all sources have said, and becomes another store."""
        for table in ("sources", "calendars", "parts", "lists", "status", "changes"):
            self.db.execute(f"DELETE FROM {table}")
        self.db.execute("UPDATE store SET id = ?, revision = 0, readings = 0", (new_id(),))

    # What checks remember.

    def remembered_sources(self) -> list[str]:
        return [name for (name,) in self.db.execute("SELECT DISTINCT source FROM memory")]

    def recalled(self, name: str) -> dict[str, Any]:
        """What the checks of a source have to remember, by key."""
        rows = self.db.execute("SELECT key, value FROM memory WHERE source = ?", (name,))
        return {key: json.loads(value) for key, value in rows}

    def remember(self, name: str, facts: Mapping[str, object]) -> None:
        """Adds facts. A fact that is None is forgotten."""
        for key, value in facts.items():
            if value is None:
                self.db.execute("DELETE FROM memory WHERE source = ? AND key = ?", (name, key))
            else:
                self.db.execute(
                    "INSERT OR REPLACE INTO memory VALUES (?, ?, ?)",
                    (name, key, json.dumps(value)),
                )


@contextmanager
def damage_found(path: Path) -> Iterator[None]:
    """Raises DamagedStore if SQLite finds in the block that the file is damaged."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode in DAMAGED:
            raise DamagedStore(f"{path}: {error}") from None
        raise


def check(db: sqlite3.Connection, path: Path) -> None:
    """Raises UnknownStore for a database of another program, or a store of another version;
    DamagedStore for a damaged one.
    """
    names = ("application_id", "user_version")
    version = tuple(db.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    if version != (APPLICATION_ID, STORE_VERSION):
        raise UnknownStore(
            f"{path}: exists and is not a store that this version of racedata can read; "
            f"remove it and run: {COMMAND} load --database FILE (the database has what counts, but "
            "not which sources and corrections commands have chosen), or name another database"
        )
    if db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise DamagedStore(f"{path} is damaged")


def store_to_read(database: Path) -> Store:
    """A copy in memory of the store of a database; an empty one if there is none, or it is damaged.
    Raises UnknownStore, because whatever a command then does, it could not be stored.
    """
    path, store = store_path(database), Store(IN_MEMORY)
    if path.is_file() and path.stat().st_size:  # a FIFO would block
        if not os.access(path, os.R_OK):
            os.close(os.open(path, os.O_RDONLY))  # its error names the file; SQLite's does not
        # If a program was killed while it committed, the file must be writable to be read.
        with (
            suppress(DamagedStore),
            closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=60)) as file,
            damage_found(path),
        ):
            check(file, path)
            file.backup(store.db)
    return store


@contextmanager
def changed_store(database: Path) -> Iterator[Store]:
    """The store of a database, in a transaction. If it is damaged, a new one replaces it, and
    stderr says so: some of the commands that may find the damage print no report.

    The damaged one is deleted, not put aside: what counted in it is also in the database.
    """
    path = store_path(database)
    is_new = not path.exists()
    if not is_new and (path.is_dir() or not os.access(path, os.R_OK | os.W_OK)):
        # Its error names the file; SQLite's does not. If the file could be opened, closing it would
        # unlock it for other threads.
        os.close(os.open(path, os.O_RDWR))
    try:
        store = Store(path)
    except DamagedStore as error:
        path.unlink()
        store, is_new = Store(path), True
        what = "deleted, and replaced with a new store"
        print(f"racedata: {printable(str(error))}; {what}", file=sys.stderr, flush=True)
    with closing(store):
        if is_new and database.exists():
            copy_attributes(database, path)
        with store.transaction():
            yield store


def new_id() -> str:
    return secrets.token_hex(8)


def packed(rows: Sequence[Sequence[Value]]) -> bytes:
    text = orjson.dumps(rows)
    return zlib.compress(text, 1) if len(text) > LONG else text


def unpacked(stored: bytes) -> list[list[Any]]:
    return orjson.loads(stored if stored.startswith(b"[") else zlib.decompress(stored))  # type: ignore[no-any-return]


def as_json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()

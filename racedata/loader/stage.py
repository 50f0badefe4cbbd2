"""The tables of a source while they are loaded: a source fills a Stage, build.py stores it."""

import sqlite3
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

from racedata.formats import in_utf8
from racedata.loader.errors import LoadError, Progress
from racedata.loader.sql import insertion
from racedata.model import KINDS, TABLES
from racedata.values import Value

MAX_IDS = 500_000  # a limit of memory, far above what any dump needs

# The sessions of a race in early January may be in December.
OUT_OF_SEASON = """
    SELECT year, round, name, '', date FROM stage.races
    WHERE date NOT BETWEEN year || '-01-01' AND year || '-12-31'
    UNION ALL
    SELECT year, round, name, session || ' of ', sessions.date
    FROM stage.sessions JOIN stage.races USING (raceId)
    WHERE sessions.date NOT BETWEEN (year - 1) || '-12-01' AND year || '-12-31'"""


# No season has had two races with the same name, or at one circuit on one day.
RACES_GIVEN_TWICE = """
    SELECT year, min(round), max(round), 'name' FROM stage.races
    GROUP BY year, name HAVING count(*) > 1
    UNION ALL
    SELECT year, min(round), max(round), 'circuit and date' FROM stage.races
    GROUP BY year, circuitId, date HAVING count(*) > 1"""


class SourceFacts(NamedTuple):
    """A source of rows in a Stage: a row of the table `sources`."""

    name: str  # see schema.sql
    address: str  # folder, zip or URL, as given to the loader; the base address of an API
    licence: str | None  # the data's; None if the source does not say
    # SHA-256, in hexadecimal, of the zip, or of the files of a folder; None for an API
    checksum: str | None
    remarks: Sequence[str] = ()  # lines for the report
    is_provisional: bool = False  # whether its records only count until another source has them


class Stage:
    """The tables of a source, in a temporary database `stage`, on disk if they are large.

    They have the names and columns of schema.sql, without the computed columns. Tables with an
    `id` in model.py also have the dump's id of a row (`resultId`, …), which orders rows that are
    otherwise equal.
    """

    def __init__(self, db: sqlite3.Connection, progress: Progress, path: str = "") -> None:
        """`db` is the new database with its empty tables, outside a transaction.

        `path` is a file for the stage.
        """
        self.db, self.progress = db, progress
        # the source of the rows, for errors; empty for an existing database: its dates were checked
        # when it was built
        self.place = ""
        # how many rows were inserted, by table; without tables that the dump lacks
        self.rows: dict[str, int] = {}
        db.execute("ATTACH ? AS stage", (path,))
        db.executescript("PRAGMA stage.journal_mode = OFF; PRAGMA stage.synchronous = OFF")
        for table in TABLES:
            if table.is_numbered:
                columns = ", ".join(
                    f"{column.name} {column.type}{' NOT NULL' if column.required else ''}"
                    for column in table.columns
                )
                key = table.id or ", ".join(table.key)
                db.execute(
                    f"""CREATE TABLE stage.{table.name} ({columns}, PRIMARY KEY ({key}))
                        WITHOUT ROWID"""
                )
                if table.id:  # corrections too name a row by its key
                    unique = ", ".join(table.unique)
                    db.execute(
                        f"CREATE UNIQUE INDEX stage.{table.name}_key ON {table.name} ({unique})"
                    )
            else:
                self.create_as_in_schema(table.name)
        self.create_as_in_schema("sources")
        self.create_as_in_schema("origins")
        self.create_as_in_schema("corrections")

    def create_as_in_schema(self, name: str) -> None:
        (sql,) = self.db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
        self.db.execute(sql.replace(f"CREATE TABLE {name}", f"CREATE TABLE stage.{name}", 1))

    def name_source(self, facts: SourceFacts, read_at: str, is_loaded: bool = True) -> None:
        """Says that all rows are from one source, read at a time: UTC, YYYY-MM-DDTHH:MM:SSZ.

        If rows have a source already, it is the source of the others.
        """
        (id,) = self.db.execute("SELECT count(*) + 1 FROM stage.sources").fetchone()
        row = (
            id,
            in_utf8(facts.name),
            in_utf8(facts.address),
            facts.licence,
            facts.checksum,
            read_at,
            is_loaded,
            "",
            facts.is_provisional,
        )
        self.db.execute(insertion("stage.sources", len(row)), row)
        for kind in ("races", *KINDS):
            self.db.execute(
                f"""INSERT OR IGNORE INTO stage.origins
                    SELECT DISTINCT raceId, ?, ?, ? FROM {of_kind(kind, "stage")}""",
                (kind, id, None if is_loaded else read_at),
            )

    def check_calendars(self) -> None:
        """Raises LoadError for a date outside of its season, or a race given twice.

        The message begins with `place`. Call this after corrections.
        """
        if self.place and (found := self.db.execute(OUT_OF_SEASON).fetchone()):
            year, round, name, what, date = found
            raise LoadError(
                f"{self.place}: the date of {what}{year}/{round} {name} is {date!r}; "
                f"expected a date in its season, {year}"
            )
        if self.place and (found := self.db.execute(RACES_GIVEN_TWICE).fetchone()):
            year, first, last, what = found
            races = f"{year}/{first} and {year}/{last}"
            raise LoadError(f"{self.place}: {races} have the same {what}; expected different ones")

    def insert(self, table: str, names: Sequence[str], columns: Sequence[Sequence[Value]]) -> None:
        """Inserts rows, given as columns of values. Columns that `names` omits are unknown.

        Raises sqlite3.IntegrityError if a row has the key of another, or lacks a value that it
        needs. The rows before it stay.
        """
        count = len(columns[0]) if columns else 0
        self.rows[table] = self.rows.get(table, 0) + count
        if count:
            self.db.execute(
                insertion(f"stage.{table}", tuple(names), count),
                list(chain.from_iterable(zip(*columns))),
            )


def of_kind(kind: str, schema: str) -> str:
    """The rows with the records of a kind: what follows FROM in a query."""
    if kind == "fastest_laps":
        return f"{schema}.results WHERE coalesce(fastestLap, rank, fastestLapTime) NOT NULL"
    return f"{schema}.{kind}"


def ids_of(db: sqlite3.Connection, table: str, column: str) -> set[int]:
    """The ids to which other tables refer. Raises LoadError if there are very many."""
    ids = {id for (id,) in db.execute(f"SELECT {column} FROM {table} LIMIT {MAX_IDS + 1}")}
    if len(ids) > MAX_IDS:
        raise LoadError(f"more than {MAX_IDS:,} rows of {table.rpartition('.')[2]}; expected fewer")
    return ids


# fills a Stage, and returns lines for the report
Fill = Callable[[Stage], list[str]]

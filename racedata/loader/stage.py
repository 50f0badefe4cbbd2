"""The tables that a source fills before they go into the store, or fill.py for a build."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from racedata.database import SCHEMA
from racedata.loader.errors import Progress
from racedata.loader.parts import LIST_OF, REFERENCE, sql_of_kind
from racedata.loader.sql import column_names, insertion
from racedata.loader.store import StoredSource
from racedata.model import (
    COMPUTED,
    KINDS,
    LIST_BY_SINGULAR,
    RECORDS,
    TABLE_BY_NAME,
    TABLE_OF,
    TABLES,
)


class Stage:
    """The tables of a source, in a temporary database `stage`. If they are large, SQLite puts them
    into a file without a name, which disappears even if the program is killed.

    They have the names and columns of schema.sql, without the computed columns. Tables with an
    `id` in model.py also have the dump's id of a row (`resultId`, …), which orders rows that are
    otherwise equal.
    """

    def __init__(self, db: sqlite3.Connection, progress: Progress) -> None:
        """`db` is the new database with its empty tables, outside a transaction."""
        self.db, self.progress = db, progress
        # how many rows were inserted, by table; without tables that the dump lacks
        self.rows: dict[str, int] = {}
        self.sources: list[StoredSource] = []  # of the rows; their numbers count from 1
        self.remarks: list[str] = []  # of the readers
        db.execute("ATTACH '' AS stage")
        db.executescript("PRAGMA stage.journal_mode = OFF; PRAGMA stage.synchronous = OFF")
        for table in TABLES:
            if table.is_numbered:
                columns = ", ".join(
                    f"{column.name} {column.type}{' NOT NULL' if column.required else ''}"
                    for column in table.columns
                )
                key, rowid = table.id or ", ".join(table.key), "" if table.id else "WITHOUT ROWID"
                db.execute(
                    f"CREATE TABLE stage.{table.name} ({columns}, PRIMARY KEY ({key})) {rowid}"
                )
            else:
                self.create_as_in_schema(table.name)
                for name in column_names(db, table.name, "stage"):
                    if name in COMPUTED:
                        db.execute(f"ALTER TABLE stage.{table.name} DROP COLUMN {name}")
        for name in ("sources", "origins", "corrections", "ids"):
            self.create_as_in_schema(name)

    def index(self, *names: str) -> None:
        """Makes the keys of tables unique, by which corrections find rows."""
        for table in map(TABLE_BY_NAME.__getitem__, names):
            if table.id:
                unique = ", ".join(table.unique)
                self.db.execute(
                    f"CREATE UNIQUE INDEX stage.{table.name}_key ON {table.name} ({unique})"
                )

    def create_as_in_schema(self, name: str) -> None:
        (sql,) = self.db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
        self.db.execute(sql.replace(f"CREATE TABLE {name}", f"CREATE TABLE stage.{name}", 1))

    def name_source(self, source: StoredSource) -> None:
        """Names the source of all rows that have none yet. It shares the ids of the first one."""
        ids = self.sources[0].ids if self.sources else source.ids
        self.sources.append(source._replace(ids=ids))
        self.db.execute("UPDATE stage.ids SET source = ? WHERE source = ''", (source.name,))
        for kind in ("races", *KINDS):
            self.db.execute(
                f"""INSERT OR IGNORE INTO stage.origins
                    SELECT DISTINCT raceId, ?, ?, ? FROM {of_kind(kind, "stage")}""",
                (kind, len(self.sources), None if source.is_loaded else source.read_at),
            )

    def add_source(self, number: int, source: StoredSource) -> None:
        """Adds a row of the table `sources`. build.py adds what it gave."""
        row = {
            "sourceId": number,
            "name": source.name,
            "address": source.address,
            "licence": source.licence,
            "checksum": source.checksum,
            "readAt": source.read_at,
            "isLoaded": source.is_loaded,
            "gave": "",
            "isProvisional": source.is_provisional,
        }
        self.insert_row("sources", row)

    def add_ids(self, kind: str, ids: Iterable[tuple[str, str]] | None = None) -> None:
        """Notes what the source calls a kind of things, such as `driver`: references and its ids.

        By default, its ids are the numbers of the rows.
        """
        if ids is None:
            id = LIST_BY_SINGULAR[kind].id_key
            sql = f"SELECT {REFERENCE[id]}, {id} FROM stage.{LIST_OF[id]}"
            ids = self.db.execute(sql).fetchall()
        self.db.executemany(
            "INSERT OR IGNORE INTO stage.ids VALUES (NULL, ?, ?, '', ?)",
            [(kind, reference, str(id)) for reference, id in ids],
        )

    def insert_row(self, table: str, row: Mapping[str, object]) -> None:
        """Inserts a row with the names of its columns. Columns that it omits are unknown."""
        self.insert_rows(table, tuple(row), [tuple(row.values())])

    def insert_rows(
        self, table: str, names: Sequence[str], rows: Iterable[Sequence[object]]
    ) -> None:
        """Inserts any number of rows. Columns that `names` omits are unknown.

        Raises sqlite3.IntegrityError if a row has the key of another, or lacks a value that it
        needs. The rows before it stay.
        """
        found = self.db.executemany(insertion(f"stage.{table}", tuple(names)), rows)
        self.rows[table] = self.rows.get(table, 0) + found.rowcount


@contextmanager
def staged(progress: Progress) -> Iterator[Stage]:
    """An empty Stage in a database of its own, in a transaction."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript(SCHEMA)
        stage = Stage(db, progress)
        stage.index(*RECORDS)
        db.execute("BEGIN")
        yield stage


def of_kind(kind: str, schema: str) -> str:
    """The rows with the records of a kind: what follows FROM in a query."""
    return f"{schema}.{TABLE_OF[kind].name} WHERE {sql_of_kind(kind)}"


def ids_of(db: sqlite3.Connection, table: str, column: str) -> set[int]:
    """The ids to which other tables refer."""
    return {id for (id,) in db.execute(f"SELECT {column} FROM {table}")}

"""The database in memory: the content of the file when it was read, and the facts about it.

Nothing changes its content. Only the times of refreshes are read again, from the store next to the
file. The format of the file is in database.py, the queries of endpoints are in queries.py.
"""

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from racedata import database
from racedata.formats import in_utf8, public_name, public_url, without_query
from racedata.licences import SOURCES, licence_of_file

# The public name of a database that is copied whole: its address may be private.
COPIED = "the database of another racedata"

Times = TypeVar("Times")
# By the name of a source, the times of refreshes by their key: `refreshedAt`, `followedSince`.
SourceTimes = Mapping[str, Mapping[str, str]]
# By the name of a source, when a refresh last asked it.
AskedAt = Mapping[str, str]


class Snapshot:
    """The content of a database file, on one connection for all threads and forked processes.

    `checksum` is the SHA-256 of its bytes, and `file` the latest file with this content, even if
    another one has replaced it at its `path`. If the file that is now there was refused,
    `rejection` says why. reload.py changes these two.
    """

    def __init__(self, content: database.FileContent, path: str) -> None:
        self.checksum = content.checksum
        self.file = content.file
        self.path = path
        self.rejection: str | None = None
        # one attribute, because threads share it
        self.known_times: tuple[database.FileState | None, SourceTimes] = None, {}
        # SQLite's own lock is not enough: from 3.12 on, Python may give two threads the same
        # prepared statement, and one of them would get the other's rows.
        self.lock = threading.Lock()
        self.connection = content.connect()
        self.connection.row_factory = sqlite3.Row

    def __del__(self) -> None:
        # The last request to this snapshot may end long after another one has replaced it.
        if hasattr(self, "connection"):
            self.close()

    def close(self) -> None:
        self.connection.close()

    @classmethod
    def read(cls, path: str) -> "Snapshot":
        """The snapshot of the file at `path`. Raises DatabaseError."""
        try:
            return cls(database.read(path), path)
        except MemoryError:
            raise database.not_enough_memory(path) from None

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """The rows of a query, with `values` for its question marks."""
        with self.lock:
            return self.connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Row:
        """The single row of a query that returns exactly one."""
        return self.rows(sql, values)[0]

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self.row(sql, values)[0]

    def build(self) -> sqlite3.Row:
        """Facts about the file: the row of `build`, and its `schemaVersion`."""
        return self.row(
            "SELECT user_version AS schemaVersion, build.* FROM build, pragma_user_version"
        )

    def sources(self) -> list[sqlite3.Row]:
        """The sources of the data, dumps first: `(name, address, licence, checksum, readAt,
        gave, isProvisional)`.
        """
        return self.rows(
            "SELECT name, address, licence, checksum, readAt, gave, isProvisional FROM sources "
            "ORDER BY sourceId"
        )

    def refresh_times(self) -> SourceTimes:
        """When a refresh last asked each source (`refreshedAt`), and since when it is followed
        (`followedSince`), by its name in the table `sources`.

        A refresh that finds nothing new does not change the database, so only the store has these
        times. Until it changes, this returns the same object.
        """
        state = database.file_state(str(database.store_path(self.path)))
        if state != self.known_times[0]:
            found = database.refresh_times(self.path)
            if found is not None:  # else the next request asks again
                times = {in_utf8(name): of_source for name, of_source in found.items()}
                self.known_times = state, times
        return self.known_times[1]

    def asked_at(self) -> AskedAt:
        return {
            name: times["refreshedAt"]
            for name, times in self.refresh_times().items()
            if "refreshedAt" in times
        }

    def sources_with(
        self, times: Mapping[str, Times], otherwise: Times
    ) -> Iterator[tuple[sqlite3.Row | None, str, str | None, Times]]:
        """All sources with their times: `(row, public name, public URL, times)`.

        First those in the database; then those that were asked but have given nothing, which have
        no row. A source that is not in `times` has the times `otherwise`.
        """
        others = {**times}
        for row in self.sources():
            url = public_url(row["address"])
            yield row, public_name(row["name"]), url, others.pop(row["name"], otherwise)
        for name, of_source in others.items():
            if is_path_of_database(name):  # then all of the above was copied from there
                yield None, COPIED, None, of_source
            else:
                yield None, public_name(name), public_url(name), of_source

    def licence(self) -> str:
        return licence_of_file(
            (public_name(row["name"]), row["licence"]) for row in self.rows(SOURCES)
        )

    def coverage(self) -> dict[str, dict[str, int]]:
        """How complete each kind of records is, by its name: `first`, `last`, `races`, `run`."""
        rows = self.rows("SELECT kind, first, last, races, run FROM coverage ORDER BY kind")
        return {
            kind: dict(zip(("first", "last", "races", "run"), numbers)) for kind, *numbers in rows
        }

    def row_counts(self) -> dict[str, int]:
        """Rows per table: `{name: rows}`."""
        return {name: rows for name, rows in self.rows("SELECT name, rows FROM row_counts")}

    def last_date_with_results(self) -> str:
        of_results = "SELECT raceId FROM results"
        return str(self.value(f"SELECT max(date) FROM races WHERE raceId IN ({of_results})"))


def is_path_of_database(name: str) -> bool:
    """Whether the name of a source is the path or the URL of a file that ends with `.db`.

    Such a database was copied whole, so it never is in the table `sources`.
    """
    return without_query(name).endswith(".db")

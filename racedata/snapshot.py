"""A snapshot of the database: the file, read once into memory, checked there, and queried from memory.

Later changes to the file cannot change an answer. The format of the file is in database.py, queries are in queries.py.
"""

import ctypes
import re
import sqlite3
import threading
from contextlib import suppress
from typing import Any

from racedata import database

# glibc may keep large blocks after they are freed, for each thread that has freed some. So each thread that reads a
# database could keep as much memory as the database has. With a fixed threshold, larger blocks are returned at once.
M_MMAP_THRESHOLD = -3  # of malloc.h
with suppress(AttributeError):  # other C libraries do not have it
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 20)


class Snapshot:
    """The content of a database file, on one connection that threads share. Processes forked later can share it too.

    `checksum` is the SHA-256 of its bytes. If the file that is now at its path was rejected, `refused` says why.
    """

    def __init__(self, content: database.Content) -> None:
        self.checksum = content.checksum
        self.refused: str | None = None
        self._lock = threading.Lock()
        self._connection = content.connect()
        self._connection.row_factory = sqlite3.Row

    def __del__(self) -> None:
        # The last request that uses it may end long after another snapshot has replaced it.
        if hasattr(self, "_connection"):
            self._connection.close()

    @classmethod
    def read(cls, path: str) -> "Snapshot":
        """The snapshot of the file at `path`. Raises DatabaseError."""
        return cls(database.read(path))

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[sqlite3.Row]:
        """The rows of a query, with `values` for its question marks."""
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: tuple[Any, ...] = ()) -> sqlite3.Row:
        """The one row of a query that always has one."""
        return self.rows(sql, values)[0]

    def build(self) -> sqlite3.Row:
        """Where and when the file was built: `(schemaVersion, source, refreshedFrom, licence, …)`."""
        return self.row("SELECT user_version AS schemaVersion, build.* FROM build, pragma_user_version")

    def row_counts(self) -> dict[str, int]:
        """Rows per table: `{name: rows}`."""
        return {name: rows for name, rows in self.rows("SELECT name, rows FROM row_counts")}

    def sample_notice(self) -> str | None:
        """What users must know if this is only the sample; None if it is not."""
        if not self.build()["isSample"]:
            return None
        (latest,) = self.row("SELECT max(date) FROM races WHERE raceId IN (SELECT raceId FROM results)")
        return f"Only a sample, with results up to {latest}. To load everything, run: racedata load SOURCE"


def public_source(source: str) -> str:
    """The source of the data, for clients: a URL without its query, which may contain a key, or the name of a file."""
    if re.match("https?://", source, re.IGNORECASE):
        return re.split("[?#]", source)[0]
    return re.split(r"[\\/]", source.rstrip("\\/"))[-1]  # its folder is private

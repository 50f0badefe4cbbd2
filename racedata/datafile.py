"""The database file: read once into memory, checked there, and served from memory.

Later changes to the file cannot change an answer. Queries are in queries.py.
"""

import ctypes
import errno
import hashlib
import os
import re
import sqlite3
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.resources import files
from typing import Any

SCHEMA = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
CHECKSUM_BYTES = 32  # the loader appends the SHA-256 of all other bytes; see schema.sql

# By default, glibc may keep large blocks after they are freed, per thread: with each thread that reads a database, a
# database's size. With a fixed threshold, it returns every block of that size or more to the system at once.
M_MMAP_THRESHOLD = -3  # of malloc.h
with suppress(AttributeError):  # other C libraries do not have it
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 20)


class DataFileError(Exception):
    """A file that cannot be served: one line that says what is wrong and which command fixes it.

    `fault` says only what is wrong. `transient` is true if the same file may be readable later.
    """

    def __init__(self, path: str, fault: str, transient: bool = False) -> None:
        super().__init__(f"{path} {fault}; to build it, run: make load-data SOURCE=… DATABASE={path}")
        self.fault, self.transient = fault, transient


class DataFile:
    """A checked database in memory, on one connection that threads share.

    `checksum` is the SHA-256 of its bytes: databases with the same checksum are the same. If the file that is now at
    its path was rejected, `refused` says why.
    """

    def __init__(self, content: memoryview, checksum: bytes) -> None:
        self.checksum = checksum
        self.refused: str | None = None
        self._lock = threading.Lock()
        # Forked processes can share it: it has no file, takes no locks, and is never written to.
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.deserialize(content)
        self._connection.execute("PRAGMA query_only = ON")
        self._connection.row_factory = sqlite3.Row

    def __del__(self) -> None:
        # The last request that uses it may end long after another database has replaced it.
        self._connection.close()

    @classmethod
    def read(cls, path: str) -> "DataFile":
        """The database at `path`. Raises DataFileError."""
        try:
            with opened(path) as (descriptor, size):
                return cls.checked(descriptor, size)
        except FileNotFoundError:
            raise DataFileError(path, "is missing") from None
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", os.strerror(errno.ENOMEM))
            raise DataFileError(path, f"cannot be read ({reason})", transient=True) from None
        except Fault as fault:
            raise DataFileError(path, str(fault)) from None

    @classmethod
    def checked(cls, descriptor: int, size: int) -> "DataFile":
        # Check the bytes, not with SQLite, which may report anything for a damaged file. The header has the two numbers
        # from schema.sql.
        header = os.pread(descriptor, 72, 0)
        if len(header) < 72 or not header.startswith(b"SQLite format 3\0"):
            raise Fault("is not an SQLite database")
        page_size, pages, version, application_id = struct.unpack(">16xH10xI28xI4xI", header)
        with closing(sqlite3.connect(":memory:")) as expected:
            expected.executescript(SCHEMA)
            if (application_id,) != expected.execute("PRAGMA application_id").fetchone():
                raise Fault("is an SQLite database, but not one of racedata")
            (wanted,) = expected.execute("PRAGMA user_version").fetchone()
        if version != wanted:
            age = "older" if version < wanted else "newer"
            raise Fault(f"has schema version {version}, {age} than this service's, {wanted}")
        # Check the size before reading: the file may be very large.
        if size != page_size * pages + CHECKSUM_BYTES:
            raise Fault("is damaged (it is not as long as it was built)")
        with open(descriptor, "rb", closefd=False) as file:
            content = memoryview(file.read(size))
        database = content[:-CHECKSUM_BYTES]
        checksum = hashlib.sha256(database).digest()
        if checksum != content[-CHECKSUM_BYTES:]:
            raise Fault("is damaged (it is not as it was built: its checksum differs)")
        return cls(database, checksum)

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[sqlite3.Row]:
        """The rows of a query, with `values` for its question marks."""
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: tuple[Any, ...] = ()) -> sqlite3.Row:
        """The one row of a query that always has one."""
        return self.rows(sql, values)[0]

    def build(self) -> sqlite3.Row:
        """Where and when the file was built: `(schemaVersion, source, licence, sourceChecksum, builtAt)`."""
        return self.row(
            """SELECT user_version AS schemaVersion, source, licence, sourceChecksum, builtAt
               FROM build, pragma_user_version"""
        )

    def row_counts(self) -> dict[str, int]:
        """Rows per table: `{name: rows}`."""
        return {name: rows for name, rows in self.rows("SELECT name, rows FROM row_counts")}


def public_source(source: str) -> str:
    """The source of the data, for clients: a URL without its query, which may contain a key, or the name of a file."""
    if re.match("https?://", source, re.IGNORECASE):
        return re.split("[?#]", source)[0]
    return re.split(r"[\\/]", source.rstrip("\\/"))[-1]  # its folder is private


class Fault(Exception):
    """What is wrong with a file."""


@contextmanager
def opened(path: str) -> Iterator[tuple[int, int]]:
    """The descriptor of a regular file, and its size in bytes. Raises OSError or Fault."""
    # A FIFO without a writer would block open() for good.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Fault("is not a file")  # a device may be read without end
        yield descriptor, status.st_size
    finally:
        os.close(descriptor)

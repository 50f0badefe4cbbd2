"""The database file, which the loader and the service share: its place, format and checksum.

The file is an SQLite database with the tables and the two numbers of schema.sql. After its last
page, where SQLite does not read, it has the 32 bytes of the SHA-256 of all preceding bytes. So a
file that has changed since it was built is detected. Next to it is the loader's store.
"""

import hashlib
import json
import os
import re
import shlex
import sqlite3
import stat
import struct
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Self

from racedata.hints import BUILD, CHECKOUT, MOVE, REBUILD, REPLACE

SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
PRAGMAS = dict(re.findall(r"^PRAGMA (\w+) = (\w+);", SCHEMA, re.MULTILINE))
APPLICATION_ID, SCHEMA_VERSION = int(PRAGMAS["application_id"], 16), int(PRAGMAS["user_version"])
OLDEST_VERSION = 11  # of racedata 1.0.0: the oldest that can be built again from its own tables
CHECKSUM_BYTES = hashlib.sha256().digest_size
HEADER_BYTES = 72  # up to the end of the application id
# How the file is opened: Windows lacks two of these flags, and needs the last one.
READ = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


class DatabaseError(Exception):
    """A file that cannot be used: one line says what is wrong, with one of the hints of hints.py.

    `fault` says only what is wrong. If the fault is `transient`, the same file may be readable
    later, so there is nothing to do.
    """

    def __init__(
        self, path: str | Path, fault: str, hint: str = REPLACE, *, transient: bool = False
    ) -> None:
        what_to_do = hint.replace("--database FILE", f"--database {shlex.quote(str(path))}")
        super().__init__(f"{path} {fault}" if transient else f"{path} {fault}; {what_to_do}")
        self.fault, self.transient = fault, transient


class OpenFile:
    """A file that stays open, even after another one has replaced it at its path."""

    def __init__(self, descriptor: int) -> None:
        self.state = FileState.of(os.fstat(descriptor))
        self.descriptor = os.dup(descriptor)

    @property
    def size(self) -> int:
        return self.state.size

    def has_changed(self) -> bool:
        """Whether something has written into the file since it was opened."""
        now = FileState.of(os.fstat(self.descriptor))
        return (now.size, now.modified) != (self.state.size, self.state.modified)

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)


class FileContent(NamedTuple):
    """The bytes of a checked database file."""

    database: memoryview  # without the checksum
    checksum: bytes  # databases with the same checksum are the same
    file: OpenFile

    def connect(self) -> sqlite3.Connection:
        """A connection to a copy of the database in memory, which threads may share."""
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        connection.deserialize(self.database)
        connection.execute("PRAGMA query_only = ON")
        return connection


def default_path(environ: Mapping[str, str]) -> str:
    """The path of the database if no setting names it.

    `data/racedata.db` in a checkout; elsewhere in the user's data folder (XDG Base Directory
    Specification).
    """
    if (CHECKOUT / "pyproject.toml").is_file():
        return str(CHECKOUT / "data" / "racedata.db")
    # The specification says that a relative path is invalid, and to be ignored.
    home = environ.get("XDG_DATA_HOME", "")
    folder = home if os.path.isabs(home) else os.path.expanduser("~/.local/share")
    return os.path.join(folder, "racedata", "racedata.db")


def read(path: str | Path, oldest: int = SCHEMA_VERSION) -> FileContent:
    """The content of the file at `path`, of schema version `oldest` or newer.

    Raises DatabaseError.
    """
    try:
        # open() would wait forever for a writer of a FIFO.
        descriptor = os.open(path, READ)
        try:
            return checked(path, descriptor, oldest)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise DatabaseError(path, "is missing", BUILD) from None
    except OSError as error:
        raise DatabaseError(path, f"cannot be read ({error.strerror})", transient=True) from None


def not_enough_memory(path: str | Path) -> DatabaseError:
    """The error for a file that does not fit into memory right now."""
    return DatabaseError(path, "needs more memory", transient=True)


def write_checksum(path: Path) -> None:
    """Appends the checksum to the finished database at `path`, and waits until it is on disk."""
    with path.open("r+b") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
        file.seek(0, os.SEEK_END)
        file.write(digest)
        file.flush()
        os.fsync(file.fileno())


def is_missing(path: Path) -> bool:
    """Whether there is no database at `path`: no file, or an empty one."""
    return not path.exists() or (path.is_file() and not path.stat().st_size)


def is_replaceable(path: Path) -> bool:
    """Whether the file at `path` is empty or a racedata database: any version, even damaged."""
    return version_of(path) is not None or (path.is_file() and is_missing(path))


def is_older(path: Path) -> bool:
    """Whether an earlier version of racedata built the file at `path`. It may be damaged."""
    version = version_of(path)
    return version is not None and version < SCHEMA_VERSION


def can_be_built_again(path: Path) -> bool:
    """Whether an earlier version built the file at `path`, and this one knows its tables."""
    version = version_of(path)
    return version is not None and OLDEST_VERSION <= version < SCHEMA_VERSION


def version_of(path: Path) -> int | None:
    """The schema version of the file at `path`; None if it is not a database of racedata."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        header = Header.parse(file.read(HEADER_BYTES))
    return header.version if header and header.application_id == APPLICATION_ID else None


def store_path(database: str | Path) -> Path:
    """The path of the loader's store of what every source says: next to the database. `x` and
    `x.db` have different ones.
    """
    path = Path(os.path.realpath(database))
    return path.with_name(f"{path.stem}.sources{path.suffix}")


def refresh_times(database: str | Path) -> dict[str, dict[str, Any]] | None:
    """When each source was last asked (`refreshedAt`), and since when it is followed
    (`followedSince`): in the store. Empty if it cannot be read; None if the loader is writing to
    it: no request waits for that.
    """
    path, times = store_path(database), dict[str, dict[str, Any]]()
    try:
        if path.is_file():  # a FIFO would block
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=0)) as db:
                for source, key, value in db.execute(
                    """SELECT source, key, value FROM memory
                       WHERE key IN ('refreshedAt', 'followedSince')"""
                ):
                    times.setdefault(source, {})[key] = json.loads(value)
    except (OSError, ValueError, sqlite3.Error) as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            return None
    return times


class FileState(NamedTuple):
    """Attributes of a file that change if another file replaces it, or something writes to it."""

    device: int
    inode: int
    size: int  # bytes
    modified: int  # nanoseconds
    changed: int  # nanoseconds

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        return cls(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        )


def file_state(path: str) -> FileState | None:
    """The state of the file at `path`; None if there is none."""
    try:
        return FileState.of(os.stat(path))
    except OSError:
        return None


class Header(NamedTuple):
    """The header of an SQLite file (https://www.sqlite.org/fileformat.html, section 1.3)."""

    page_size: int  # bytes
    pages: int
    version: int  # user_version
    application_id: int

    @classmethod
    def parse(cls, start: bytes) -> "Header | None":
        """The header in the first bytes of a file; None if it is not an SQLite database."""
        if len(start) < HEADER_BYTES or not start.startswith(b"SQLite format 3\0"):
            return None
        return cls(*struct.unpack_from(">16xH10xI28xI4xI", start))


def checked(path: str | Path, descriptor: int, oldest: int) -> FileContent:
    """The content of an open file. Raises DatabaseError or OSError."""
    status = os.fstat(descriptor)
    size = status.st_size
    if not stat.S_ISREG(status.st_mode):  # a device may be read without end
        raise DatabaseError(path, "is not a regular file", MOVE)
    # Check the bytes directly: SQLite's errors on a damaged file are arbitrary.
    header = Header.parse(os.read(descriptor, HEADER_BYTES))
    if header is None:
        raise DatabaseError(path, "is not an SQLite database", MOVE if size else BUILD)
    if header.application_id != APPLICATION_ID:
        raise DatabaseError(path, "is an SQLite database, but not a racedata database", MOVE)
    if not oldest <= header.version <= SCHEMA_VERSION:
        age = "older" if header.version < SCHEMA_VERSION else "newer"
        fault = (
            f"has schema version {header.version}, which is {age} than this program's "
            f"({SCHEMA_VERSION})"
        )
        is_known = OLDEST_VERSION <= header.version < SCHEMA_VERSION
        raise DatabaseError(path, fault, REBUILD if is_known else REPLACE)
    # Check the size before reading: the file may be very large.
    if size != header.page_size * header.pages + CHECKSUM_BYTES:
        raise DatabaseError(path, "is damaged (its size has changed since it was built)", REPLACE)
    opened = OpenFile(descriptor)
    with open(descriptor, "rb", closefd=False) as file:
        file.seek(0)
        content = memoryview(file.read(size))
    database = content[:-CHECKSUM_BYTES]
    checksum = hashlib.sha256(database).digest()
    if checksum != content[-CHECKSUM_BYTES:]:
        raise DatabaseError(path, "is damaged (checksum mismatch)", REPLACE)
    return FileContent(database, checksum, opened)

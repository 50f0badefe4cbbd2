"""The database: one read-only connection, which threads share, and one method to each question, its SQL beside it.

Rows come back as sqlite3.Row; what the wire makes of them is in serializers.py. A file is checked before it is asked.
"""

import hashlib
import os
import sqlite3
import struct
import threading
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

SCHEMA = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")

# A weekend has a sprint where the dump has a date for one, or results.
HAS_SPRINT = """
    sprint_date IS NOT NULL OR EXISTS (SELECT 1 FROM sprint_results WHERE raceId = races.raceId) AS hasSprint
"""


class DatabaseError(Exception):
    """A file that the service cannot serve: one line that says what is wrong with it and what to run."""


class Replaced(Exception):
    """What is at the path is not what was checked: another file, or the same one with other bytes in it."""


class Database:
    """The database in the file at `path`. Raises DatabaseError where that cannot be served.

    `checksum` is that of the whole file, 32 bytes: another file has another. The questions raise sqlite3.Error when the
    file has become unreadable since.
    """

    def __init__(self, path):
        self._path = path
        self._uri = Path(path).absolute().as_uri()
        self._connection = None
        self._lock = threading.Lock()  # held by the thread that is using the connection
        # Why the file that has taken this one's place since is not served; None where there is no such.
        self.refused = None
        try:
            self.identity = identity(path)
            if self.identity and not os.path.isfile(path):
                raise DatabaseError("is not a file")  # some of what else there is would be read for ever
            with open(path, "rb") as file:
                self._check(file)
        except FileNotFoundError:
            fault = "is missing"
        except OSError as error:
            fault = f"cannot be read ({error.strerror})"
        except DatabaseError as error:
            fault = str(error)
        else:
            return
        error = DatabaseError(f"{path} {fault}; to build it, run: make load-data SOURCE=… DATABASE={path}")
        error.fault = fault
        raise error

    def _check(self, file):
        # By its bytes alone: of a damaged file SQLite may say anything. Its header has the two numbers of schema.sql.
        header = file.read(72)
        if len(header) < 72 or not header.startswith(b"SQLite format 3\0"):
            raise DatabaseError("is not an SQLite database")
        version, application_id = struct.unpack(">60xI4xI", header)
        with closing(sqlite3.connect(":memory:")) as expected:
            expected.executescript(SCHEMA)
            if (application_id,) != expected.execute("PRAGMA application_id").fetchone():
                raise DatabaseError("is an SQLite database, but not one of racedata")
            (wanted,) = expected.execute("PRAGMA user_version").fetchone()
        if version != wanted:
            age = "older" if version < wanted else "newer"
            raise DatabaseError(f"has schema version {version}, {age} than this service's, {wanted}")
        self.checksum, found = checksums(file)
        if found != self.checksum:
            raise DatabaseError("is damaged (it is not as it was built: its checksum differs)")

    def open(self):
        """Opens the file, where it is not open yet, to have it whatever becomes of its path. Raises Replaced."""
        with self._lock:
            self._open()

    def close(self):
        """Closes the file; the next question opens it again."""
        with self._lock:
            if self._connection:
                self._connection.close()
                self._connection = None

    def _open(self):
        if self._connection is None:
            # immutable: the loader puts a new file in this one's place and never writes to it, so SQLite need not lock
            # it. mode=ro as well: without it SQLite makes a file where there is none.
            connection = sqlite3.connect(f"{self._uri}?mode=ro&immutable=1", uri=True, check_same_thread=False)
            connection.row_factory = sqlite3.Row
            if identity(self._path) != self.identity:
                connection.close()
                raise Replaced(f"{self._path} is being replaced at this moment")
            self._connection = connection
        return self._connection

    @contextmanager
    def confirmed(self):
        """Raises Replaced at its end, whatever else went wrong, where somebody has written into the file meanwhile.

        What was read may be wrong then. A file that takes this one's place does no harm: whoever has the old one open
        goes on reading that.
        """
        try:
            yield
        finally:
            found = identity(self._path)
            if found and found.file == self.identity.file and found.content != self.identity.content:
                raise Replaced(f"{self._path} is being written to at this moment")

    def _rows(self, sql, *values):
        with self._lock:
            return self._open().execute(sql, values).fetchall()

    def _row(self, sql, *values):
        with self._lock:
            return self._open().execute(sql, values).fetchone()

    def build(self):
        """What the file is: `(schemaVersion, source, sourceChecksum, builtAt)`."""
        return self._row(
            """SELECT user_version AS schemaVersion, source, sourceChecksum, builtAt
               FROM build, pragma_user_version"""
        )

    def row_counts(self):
        """Rows of each table: `{name: rows}`."""
        return dict(self._rows("SELECT name, rows FROM row_counts"))

    def circuits(self):
        return self._rows("SELECT * FROM circuits")

    def drivers(self):
        return self._rows("SELECT * FROM drivers")

    def constructors(self):
        return self._rows("SELECT * FROM constructors")

    def statuses(self):
        """Texts of finishing statuses: `{statusId: status}`."""
        return dict(self._rows("SELECT statusId, status FROM status"))

    def seasons(self):
        """How many there are, the first and the last: `(seasons, first, last)`."""
        return self._row("SELECT count(DISTINCT year), min(year), max(year) FROM races")

    def fullest_race(self):
        """`(season, round)` of the last race that has most of: results, qualifying, sprint, timings."""
        return self._row(
            """SELECT year AS season, round FROM races ORDER BY
                   EXISTS (SELECT 1 FROM results WHERE raceId = races.raceId)
                   + EXISTS (SELECT 1 FROM qualifying WHERE raceId = races.raceId)
                   + EXISTS (SELECT 1 FROM sprint_results WHERE raceId = races.raceId)
                   + EXISTS (SELECT 1 FROM lap_times WHERE raceId = races.raceId) DESC,
                   year DESC, round DESC LIMIT 1"""
        )

    def races_total(self, year):
        return self._row("SELECT count(*) FROM races WHERE year = ?", year)[0]

    def races(self, year, limit, offset):
        """Races of a season, by round."""
        return self._rows(
            f"SELECT *, {HAS_SPRINT} FROM races WHERE year = ? ORDER BY round LIMIT ? OFFSET ?", year, limit, offset
        )

    def race(self, year, round):
        """One race, or None."""
        return self._row(f"SELECT *, {HAS_SPRINT} FROM races WHERE year = ? AND round = ?", year, round)

    def results_total(self, race_id):
        return self._row("SELECT count(*) FROM results WHERE raceId = ?", race_id)[0]

    def results(self, race_id, limit, offset):
        """A race's classification. `winnerMilliseconds` is the same in each row."""
        return self._rows(
            """SELECT *, (SELECT milliseconds FROM results WHERE raceId = ?1
                          ORDER BY positionOrder, resultId LIMIT 1) AS winnerMilliseconds
               FROM results WHERE raceId = ?1 ORDER BY positionOrder, resultId LIMIT ?2 OFFSET ?3""",
            race_id, limit, offset,
        )

    def sprint_results_total(self, race_id):
        return self._row("SELECT count(*) FROM sprint_results WHERE raceId = ?", race_id)[0]

    def sprint_results(self, race_id, limit, offset):
        """A sprint's classification; columns as in `results`."""
        return self._rows(
            """SELECT *, NULL AS fastestLapSpeed,
                   (SELECT milliseconds FROM sprint_results WHERE raceId = ?1
                    ORDER BY positionOrder, resultId LIMIT 1) AS winnerMilliseconds
               FROM sprint_results WHERE raceId = ?1 ORDER BY positionOrder, resultId LIMIT ?2 OFFSET ?3""",
            race_id, limit, offset,
        )

    def qualifying_total(self, race_id):
        return self._row("SELECT count(*) FROM qualifying WHERE raceId = ?", race_id)[0]

    def qualifying(self, race_id, limit, offset):
        """A race's qualifying classification."""
        return self._rows(
            "SELECT * FROM qualifying WHERE raceId = ? ORDER BY position, qualifyId LIMIT ? OFFSET ?",
            race_id, limit, offset,
        )

    def lap_times_total(self, race_id):
        # `record` counts from 0 without gaps; max() reads one end of the index, count(*) would read all of it.
        return self._row("SELECT ifnull(max(record) + 1, 0) FROM lap_times WHERE raceId = ?", race_id)[0]

    def lap_times(self, race_id, limit, offset):
        """A race's timings, by lap and position."""
        return self._rows(
            """SELECT lap, driverId, position, time FROM lap_times
               WHERE raceId = ? AND record >= ? AND record < ? ORDER BY record""",
            race_id, offset, offset + limit,
        )


def checksums(file):
    """The checksum that stands at the end of a file, and that of all before it; see schema.sql."""
    digest = hashlib.sha256()
    rest = file.seek(-32, os.SEEK_END)
    file.seek(0)
    while part := file.read(min(rest, 1 << 20)):
        digest.update(part)
        rest -= len(part)
    return file.read(), digest.digest()


class Identity(NamedTuple):
    """What tells a file from one that takes its place, or that it becomes."""

    file: tuple  # device and inode
    content: tuple  # bytes, and when they were written to last, in nanoseconds
    changed: int  # when anything of it changed last, in nanoseconds


def identity(path):
    """The Identity of what is at `path`; None where there is nothing."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return Identity((status.st_dev, status.st_ino), (status.st_size, status.st_mtime_ns), status.st_ctime_ns)

"""The database: one read-only connection, which threads share, and one method to each question, its SQL beside it.

Rows come back as sqlite3.Row; what the wire makes of them is in serializers.py. A file is checked before it is asked.
"""

import hashlib
import os
import sqlite3
import stat
import struct
import threading
from contextlib import ExitStack, closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

SCHEMA = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")

# A weekend has a sprint where the dump has a date for one, or results.
HAS_SPRINT = """
    sprint_date IS NOT NULL OR EXISTS (SELECT 1 FROM sprint_results WHERE raceId = races.raceId) AS hasSprint
"""


class DatabaseError(Exception):
    """A file that the service cannot serve: one line that says what is wrong with it and what to run.

    `fault` is what is wrong alone, and `passing` whether the same file may be good the next time.
    """


class Replaced(Exception):
    """What is at the path is not what was checked: another file, or the same one with other bytes in it."""


class Database:
    """The database in the file at `path`. Raises DatabaseError where that cannot be served.

    `checksum` is that of the whole file, 32 bytes: another file has another. The questions raise sqlite3.Error when the
    file has become unreadable since.
    """

    def __init__(self, path):
        self._path = path
        self._file_path = os.path.realpath(path)  # a link may be switched between any two looks at it
        # Both None where the file is not open. The second one is to see by whether somebody has written into the file:
        # SQLite does not tell its own descriptor.
        self._connection = self._file = None
        self._lock = threading.Lock()  # held by the thread that uses these
        self.spoilt = False  # whether somebody has written into the file since, so that it is of no use any more
        self.refused = None  # why what is at the path now is not served; None where this is
        try:
            if not stat.S_ISREG(os.stat(self._file_path).st_mode):
                raise DatabaseError("is not a file")  # some of what else there is would be read for ever
            with open(self._file_path, "rb") as file:
                self.identity = Identity.of(os.fstat(file.fileno()))
                self._check(file)
        except FileNotFoundError:
            raise self.error("is missing") from None
        except OSError as error:
            raise self.error(f"cannot be read ({error.strerror})", passing=True) from None
        except DatabaseError as error:
            raise self.error(str(error)) from None

    def error(self, fault, passing=False):
        """The DatabaseError that says of this file what is wrong with it."""
        error = DatabaseError(f"{self._path} {fault}; to build it, run: make load-data SOURCE=… DATABASE={self._path}")
        error.fault, error.passing = fault, passing
        return error

    def _check(self, file):
        # By its bytes alone: of a damaged file SQLite may say anything. Its header has the two numbers of schema.sql.
        header = file.read(72)
        if len(header) < 72 or not header.startswith(b"SQLite format 3\0"):
            raise DatabaseError("is not an SQLite database")
        page_size, pages, version, application_id = struct.unpack(">16xH10xI28xI4xI", header)
        with closing(sqlite3.connect(":memory:")) as expected:
            expected.executescript(SCHEMA)
            if (application_id,) != expected.execute("PRAGMA application_id").fetchone():
                raise DatabaseError("is an SQLite database, but not one of racedata")
            (wanted,) = expected.execute("PRAGMA user_version").fetchone()
        if version != wanted:
            age = "older" if version < wanted else "newer"
            raise DatabaseError(f"has schema version {version}, {age} than this service's, {wanted}")
        if self.identity.content[0] != page_size * pages + 32:  # before all of it is read: it may be very large
            raise DatabaseError("is damaged (it is not as long as it was built)")
        self.checksum, found = checksums(file)
        if found != self.checksum:
            raise DatabaseError("is damaged (it is not as it was built: its checksum differs)")

    def open(self):
        """Opens the file, where it is not open yet, to have it whatever becomes of its path.

        Raises Replaced, OSError or sqlite3.Error.
        """
        with self._lock:
            self._open()

    def close(self):
        """Closes the file; the next question opens it again."""
        with self._lock:
            if self._connection:
                self._connection.close()
                self._file.close()
                self._connection = self._file = None

    def _open(self):
        if self._connection is None:
            self._check_identity()  # before all: who opens a pipe waits for its other end
            with ExitStack() as opened:
                file = opened.enter_context(open(self._file_path, "rb", buffering=0))
                # immutable: the loader puts a new file in this one's place and never writes to it, so SQLite need not
                # lock it. mode=ro as well: without it SQLite makes a file where there is none.
                uri = f"{Path(self._file_path).as_uri()}?mode=ro&immutable=1"
                connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
                opened.enter_context(closing(connection))
                self._check_identity()
                opened.pop_all()
            connection.row_factory = sqlite3.Row
            self._connection, self._file = connection, file
        return self._connection

    def _check_identity(self):
        if identity(self._file_path) != self.identity:
            raise Replaced(f"{self._path} is not what was checked any more")

    @contextmanager
    def confirmed(self):
        """Raises Replaced at its end, whatever else went wrong, where what was read meanwhile may be wrong.

        That is so once somebody has written into the file: SQLite keeps pages it has read. A file that takes this one's
        place does no harm: whoever has the old one open goes on reading that.
        """
        try:
            yield
        finally:
            with self._lock:
                if self._file and not self._is_as_checked():
                    self.spoilt = True
                if self.spoilt or not self._file:
                    raise Replaced(f"{self._path} is not what was checked any more")

    def _is_as_checked(self):
        found = Identity.of(os.fstat(self._file.fileno()))
        if found == self.identity:
            return True
        # It was renamed, say, which is harmless; or written into by somebody who has set its time back.
        self.identity = self.identity._replace(changed=found.changed)
        return found == self.identity and checksums(self._file) == (self.checksum, self.checksum)

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
            race_id,
            limit,
            offset,
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
            race_id,
            limit,
            offset,
        )

    def qualifying_total(self, race_id):
        return self._row("SELECT count(*) FROM qualifying WHERE raceId = ?", race_id)[0]

    def qualifying(self, race_id, limit, offset):
        """A race's qualifying classification."""
        return self._rows(
            "SELECT * FROM qualifying WHERE raceId = ? ORDER BY position, qualifyId LIMIT ? OFFSET ?",
            race_id,
            limit,
            offset,
        )

    def lap_times_total(self, race_id):
        # `record` counts from 0 without gaps; max() reads one end of the index, count(*) would read all of it.
        return self._row("SELECT ifnull(max(record) + 1, 0) FROM lap_times WHERE raceId = ?", race_id)[0]

    def lap_times(self, race_id, limit, offset):
        """A race's timings, by lap and position."""
        return self._rows(
            """SELECT lap, driverId, position, time FROM lap_times
               WHERE raceId = ? AND record >= ? AND record < ? ORDER BY record""",
            race_id,
            offset,
            offset + limit,
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

    @classmethod
    def of(cls, status):
        return cls((status.st_dev, status.st_ino), (status.st_size, status.st_mtime_ns), status.st_ctime_ns)


def identity(path):
    """The Identity of what is at `path`; None where there is nothing."""
    try:
        return Identity.of(os.stat(path))
    except OSError:
        return None

#!/usr/bin/env python3
"""Builds the database from a dump: `load_data.py SOURCE DATABASE`.

SOURCE is a folder of CSV files in the layout of the Ergast database image, a zip of them, or the http(s) URL of such
a zip. racedata/schema.sql defines the tables. The loader checks each value against INTEGER, NOT NULL and REFERENCES
there, and against CHECKED below. It needs only Python, and imports nothing from the service.

It writes the new file into the folder of the old one, and replaces the old one at the very end.
"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until main() handles it: Ctrl-C during imports prints no traceback

import argparse
import fcntl
import hashlib
import os
import re
import resource
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, date, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import NamedTuple, Never

from dump import AnyPath, Column, LoadError, Parse, Progress, Table, Text, dump_folder

PROJECT = Path(__file__).resolve().parent.parent
SCHEMA = PROJECT / "racedata" / "schema.sql"
SAMPLE = str(PROJECT / "data" / "sample")

# A full dump needs a third of it. No dump may make the loader use up the memory of a service on the same machine.
MEMORY_BYTES = 120_000_000

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# In the order of loading: each table comes after those that it refers to.
REQUIRED = ("circuits", "constructors", "drivers", "status", "races", "results")
OPTIONAL = (
    "seasons",
    "qualifying",
    "sprint_results",
    "lap_times",
    "pit_stops",
    "driver_standings",
    "constructor_standings",
)


# Parsers. Each returns the value to store, or raises ValueError. Its docstring says in error messages what is expected.


def whole_number(text: str) -> int:
    """a whole number such as 25"""
    # int() alone accepts signs, spaces and underscores. 18 digits always fit into SQLite's 64 bits.
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError
    return int(text)


def from_one(text: str) -> int:
    """a whole number from 1"""
    if not whole_number(text):
        raise ValueError
    return int(text)


def year(text: str) -> int:
    """a year of four digits"""
    if not 1000 <= whole_number(text) <= 9999:
        raise ValueError
    return int(text)


number = Text(r"-?[0-9]+(\.[0-9]+)?", "a number such as 25 or 8.14")
time_of_day = Text("([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]", "a time of day such as 13:00:00")
plain_text = Text(r"[^\x00-\x1f\x7f]+", "text without control characters")
# What an address can name; see racedata/addresses.py.
ref = Text("[A-Za-z0-9_-]+", "an id of letters, digits, _ and -")
lap_time = Text(r"([0-9]+:)?[0-9]+:[0-5][0-9]\.[0-9]{3}", "a time such as 1:07.012")


def points(text: str) -> str:
    """points such as 25 or 12.5"""
    return number(text).rstrip("0").rstrip(".") if "." in text else number(text)


def day(text: str) -> str:
    """a date such as 2023-07-02"""
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError
    date.fromisoformat(text)
    return text


SESSIONS = ("fp1", "fp2", "fp3", "quali", "sprint")
CHECKED: dict[str, dict[str, Parse]] = {
    "circuits": {"circuitRef": ref, "lat": number, "lng": number},
    "constructors": {"constructorRef": ref},
    "drivers": {"driverRef": ref, "dob": day},
    "races": {
        "year": year,
        "round": from_one,
        "date": day,
        "time": time_of_day,
        **{f"{session}_date": day for session in SESSIONS},
        **{f"{session}_time": time_of_day for session in SESSIONS},
    },
    "results": {"points": points, "fastestLapTime": lap_time, "fastestLapSpeed": number},
    "sprint_results": {"points": points, "fastestLapTime": lap_time},
    "qualifying": {"q1": lap_time, "q2": lap_time, "q3": lap_time},
    "lap_times": {"time": lap_time},
    "pit_stops": {"time": time_of_day},
    "driver_standings": {"points": points},
    "constructor_standings": {"points": points},
    "seasons": {"year": year},
}


# The database.


class Numbered(NamedTuple):
    """How the rows of a table get their `record` and other computed columns."""

    key: str  # columns that together identify a row
    order: (
        str  # the order of `record`: SQL with the columns of the file and, if not per race, the race's year and round
    )
    per_race: bool = False  # whether `record` restarts at 1 in each race
    computed: Mapping[str, str] = {}  # the SQL of each other computed column


FINAL = "round = (SELECT max(round) FROM races WHERE races.year = race.year)"
CONSTRUCTORS = """
    ifnull((SELECT constructors FROM constructors_so_far AS so_far
            WHERE so_far.year = race.year AND so_far.driverId = unnumbered.driverId AND so_far.round <= race.round
            ORDER BY so_far.round DESC, so_far.resultId DESC LIMIT 1), '')
"""

NUMBERED = {
    "results": Numbered("resultId", "year, round, positionOrder, resultId"),
    "sprint_results": Numbered("resultId", "year, round, positionOrder, resultId"),
    "qualifying": Numbered("qualifyId", "year, round, position NULLS LAST, qualifyId"),
    "lap_times": Numbered("raceId, driverId, lap", "lap, position NULLS LAST, driverId", per_race=True),
    "pit_stops": Numbered("raceId, driverId, stop", "time, lap, stop, driverId", per_race=True),
    "driver_standings": Numbered(
        "driverStandingsId",
        "year, round, position NULLS LAST, driverStandingsId",
        computed={"final": FINAL, "constructors": CONSTRUCTORS},
    ),
    "constructor_standings": Numbered(
        "constructorStandingsId",
        "year, round, position NULLS LAST, constructorStandingsId",
        computed={"final": FINAL},
    ),
}

# One row per season, driver and constructor: the driver's first result with it, and all constructors up to that result.
CONSTRUCTORS_SO_FAR = (
    """CREATE TEMP TABLE constructors_so_far AS
           SELECT year, driverId, round, resultId, group_concat(constructorId, ' ')
               OVER (PARTITION BY year, driverId ORDER BY round, resultId) AS constructors
           FROM (SELECT year, driverId, round, resultId, constructorId, row_number()
                     OVER (PARTITION BY year, driverId, constructorId ORDER BY round, resultId) AS number
                 FROM results JOIN races USING (raceId))
           WHERE number = 1""",
    "CREATE INDEX constructors_so_far_order ON constructors_so_far (year, driverId, round, resultId)",
)


def columns_of(db: sqlite3.Connection, table: str) -> Iterator[Column]:
    """The columns of `table` in the schema, and how to read them."""
    parse: Parse
    parents = {child: parent for _, _, parent, child, *_ in db.execute(f"PRAGMA foreign_key_list({table})")}
    for _, name, kind, not_null, _, key in db.execute(f"PRAGMA table_info({table})").fetchall():
        if name in parents:
            # A reference has the same name on both sides.
            ids = {id for (id,) in db.execute(f"SELECT {name} FROM {parents[name]}")}
            parse, expected = reference(ids), f"a {name} of {parents[name]}.csv"
        else:
            parse = CHECKED.get(table, {}).get(name, whole_number if kind == "INTEGER" else plain_text)
            expected = parse.__doc__ or ""
        yield Column(name, parse, expected, required=bool(not_null or key))


def reference(ids: set[int]) -> Callable[[str], int]:
    """A parser of numbers that must be among `ids`."""

    def parse(text: str) -> int:
        if whole_number(text) not in ids:
            raise ValueError
        return int(text)

    return parse


def load_table(db: sqlite3.Connection, table: str, path: AnyPath, progress: Progress) -> Table:
    """Fills `table` from the CSV file at `path`. Returns the file as a Table."""
    numbered = NUMBERED.get(table)
    computed = ("record", *numbered.computed) if numbered else ()
    columns = [column for column in columns_of(db, table) if column.name not in computed]
    file = Table(path, columns, progress)
    if numbered:
        # The order of the rows is known only after all are read. Until then they are in a temporary table, on disk if
        # there are many. Its primary key finds duplicates.
        names = ", ".join(column.name for column in columns)
        db.execute(f"CREATE TEMP TABLE unnumbered ({names}, PRIMARY KEY ({numbered.key})) WITHOUT ROWID")
        insert(db, "unnumbered", file)
        progress(f"{table}.csv: numbering {file.rows_read:,} rows")
        number_rows(db, table, numbered, names)
        db.execute("DROP TABLE unnumbered")
    else:
        insert(db, table, file)
    if table in REQUIRED and not file.rows_read:
        raise LoadError(f"{path.name}: no rows; expected at least one")
    return file


def insert(db: sqlite3.Connection, table: str, file: Table) -> None:
    """Inserts the rows of a file, many in one statement: faster than one by one."""
    names = ", ".join(column.name for column in file.columns)
    row = f"({', '.join('?' for column in file.columns)})"

    @cache
    def statement(rows: int) -> str:
        # FAIL: the rows before a duplicate stay. Their number says which row it is.
        return f"INSERT OR FAIL INTO {table} ({names}) VALUES {', '.join([row] * rows)}"

    try:
        for values in file.batches():
            db.execute(statement(len(values[0])), list(chain.from_iterable(zip(*values))))
    except sqlite3.IntegrityError as error:
        # Such as `UNIQUE constraint failed: races.year, races.round`.
        (inserted,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
        raise file.duplicate(inserted + 1, re.findall(r"\.(\w+)", str(error))) from None


def number_rows(db: sqlite3.Connection, table: str, numbered: Numbered, names: str) -> None:
    """Moves the rows of `unnumbered` to `table`, in order and with their `record`."""
    # SQLite numbers from 1 what is inserted into an empty table without a value for its INTEGER PRIMARY KEY.
    if numbered.per_race:
        db.execute(f"CREATE TEMP TABLE numbered (record INTEGER PRIMARY KEY, {names})")
        for race in db.execute("SELECT raceId FROM races ORDER BY raceId").fetchall():
            db.execute(
                f"""INSERT INTO numbered ({names})
                    SELECT {names} FROM unnumbered WHERE raceId = ? ORDER BY {numbered.order}""",
                race,
            )
            db.execute(f"INSERT INTO {table} (record, {names}) SELECT record, {names} FROM numbered ORDER BY record")
            db.execute("DELETE FROM numbered")
        db.execute("DROP TABLE numbered")
    else:
        db.execute(
            f"""INSERT INTO {table} ({", ".join([names, *numbered.computed])})
                SELECT {", ".join([names, *numbered.computed.values()])}
                FROM unnumbered JOIN (SELECT raceId, year, round FROM races) AS race USING (raceId)
                ORDER BY {numbered.order}"""
        )


def checksum(paths: Iterable[AnyPath]) -> str:
    """SHA-256, in hexadecimal, of the files' joined contents."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def files_of(folder: AnyPath, source: str) -> dict[str, AnyPath]:
    """The CSV file of each table in `folder`, without optional tables that are absent."""
    files = {table: folder / f"{table}.csv" for table in REQUIRED + OPTIONAL}
    files = {table: file for table, file in files.items() if file.exists()}
    for table in REQUIRED:
        if table not in files:
            raise LoadError(f"{source}: no {table}.csv in it; expected {', '.join(f'{name}.csv' for name in REQUIRED)}")
    for table, file in files.items():
        if not file.is_file():  # a FIFO would block, a device might never end
            raise LoadError(f"{source}: {table}.csv is not a regular file; expected a CSV file")
    return files


def fill(path: Path, files: Mapping[str, AnyPath], source: str, progress: Progress) -> list[str]:
    """Builds the database at `path` from the files of a dump. Returns the lines of a report."""
    said = [f"{'table':<22}{'rows read':>12}{'rows stored':>13}"]
    remarks = []
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        # An unfinished file is deleted, so it needs no journal.
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE")
        db.executescript(SCHEMA.read_text(encoding="utf-8"))
        db.execute("BEGIN")
        for table in REQUIRED + OPTIONAL:
            rows_read = "no file"
            if table == "driver_standings":
                for statement in CONSTRUCTORS_SO_FAR:
                    db.execute(statement)
            if table in files:
                read = load_table(db, table, files[table], progress)
                rows_read = f"{read.rows_read:,}"
                remarks += [f"{table}.csv has no column {name}" for name in read.absent_columns()]
            if table == "seasons":
                db.execute("INSERT INTO seasons (year) SELECT year FROM races EXCEPT SELECT year FROM seasons")
            (stored,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
            db.execute("INSERT INTO row_counts VALUES (?, ?)", (table, stored))
            said.append(f"{table:<22}{rows_read:>12}{stored:>13,}")
        built_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        # In a URL, omit user and password; in a path, replace bytes that are not UTF-8 with `?`.
        named = re.sub("//[^/@]*@", "//", source).encode("utf-8", "replace").decode()
        db.execute("INSERT INTO build VALUES (?, ?, ?)", (named, checksum(files.values()), built_at))
        db.execute("COMMIT")
        db.execute("ANALYZE")  # statistics for the query planner
        db.execute("VACUUM")  # numbering leaves pages partly empty
        seasons = "{} to {} ({} seasons, {:,} races)".format(
            *db.execute("SELECT min(year), max(year), count(DISTINCT year), count(*) FROM races").fetchone()
        )
    append_checksum(path)
    return [*said, *remarks, seasons]


def append_checksum(path: Path) -> None:
    """Appends the SHA-256 of the file at `path` to it (see schema.sql), and waits until all of it is on disk."""
    digest = bytes.fromhex(checksum([path]))
    with path.open("ab") as file:
        file.write(digest)
        file.flush()
        os.fsync(file.fileno())


def replaceable(path: Path) -> bool:
    """Whether the file at `path` is empty or was built by an earlier load. It may be damaged."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        header = file.read(72)
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA.read_text(encoding="utf-8"))
        (application_id,) = db.execute("PRAGMA application_id").fetchone()
    return not header or (header[:16] == b"SQLite format 3\0" and header[68:] == application_id.to_bytes(4, "big"))


@contextmanager
def replacement(path: str) -> Iterator[Path]:
    """A path for a new file, which replaces the file at `path`. If the block raises, the new file is removed."""
    old = Path(os.path.realpath(path))  # if it is a symbolic link, the link stays
    if old.exists() and not replaceable(old):
        raise LoadError(f"{old}: exists and is not a racedata database; remove it, or name another file")
    folder = os.open(old.parent, os.O_RDONLY)
    try:
        lock(folder, old.parent)
        new = old.with_name(f".{old.name}.loading")
        new.unlink(missing_ok=True)  # left by a loader that was killed
        try:
            yield new
            if old.exists():
                status = old.stat()
                with suppress(PermissionError):  # only root may change the owner
                    os.chown(new, status.st_uid, status.st_gid)
                new.chmod(stat.S_IMODE(status.st_mode))
            os.replace(new, old)
            os.fsync(folder)
        finally:
            new.unlink(missing_ok=True)
    finally:
        os.close(folder)


def lock(folder: int, name: Path) -> None:
    # A lock on the folder leaves no file behind, and ends with the process, even if that is killed.
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LoadError(f"{name}: another load is running in this folder; try again when it has ended") from None


def source_of(database: str) -> str:
    """The source that the file at `database` was built from; the sample if there is no file."""
    if not os.path.exists(database):
        return SAMPLE
    try:
        with closing(sqlite3.connect(f"{Path(database).absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            source: str = db.execute("SELECT source FROM build").fetchone()[0]
            return source
    except (sqlite3.Error, UnicodeDecodeError):
        raise LoadError(f"{database}: does not say what it was built from; name a source") from None


def load(source: str, database: str, progress: Progress) -> list[str]:
    """Builds `database` from `source`. Returns what `fill` does. Raises LoadError, sqlite3.Error or OSError."""
    with replacement(database) as new, dump_folder(source, progress) as folder:
        return fill(new, files_of(folder, source), source, progress)


def identity(path: str) -> tuple[int, int, int] | None:
    """Attributes that differ between a file and the one that replaces it; None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def show_progress(text: str) -> None:
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def limit_memory() -> None:
    """Makes Python raise MemoryError instead of using more than MEMORY_BYTES."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > MEMORY_BYTES:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, hard))


def ignore_end_signals() -> None:
    for number in END_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def interrupt(number: int, frame: FrameType | None) -> Never:
    """Handles the first signal to end, and ignores later ones, which would disturb the clean-up."""
    ignore_end_signals()
    raise KeyboardInterrupt


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the database from a dump.")
    parser.add_argument(
        "source",
        help="folder of CSV files, zip of them, or http(s) URL of such a zip; "
        "if empty, what the database was built from before, or the sample",
    )
    parser.add_argument("database", help="file to build")
    arguments = parser.parse_args()
    limit_memory()
    progress = show_progress if sys.stderr.isatty() else lambda text: None
    before = identity(arguments.database)
    said: list[str] = []
    source, fault = arguments.source, ""
    try:
        try:
            for number in END_SIGNALS:
                signal.signal(number, interrupt)
            source = source or source_of(arguments.database)
            said = load(source, arguments.database, progress)
        finally:
            ignore_end_signals()
    except LoadError as error:
        fault = str(error)
    except KeyboardInterrupt:
        fault = "interrupted"
    except MemoryError:
        fault = f"{source}: needs more than {MEMORY_BYTES:,} bytes of memory; expected a dump of the data"
    except sqlite3.Error as error:
        fault = f"{arguments.database}: {error}"
    except OSError as error:
        fault = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    progress("")
    if not fault:
        *table, seasons = said
        fault = report("\n".join([*table, f"{arguments.database}: {seasons} from {source}", ""]))
    if fault:
        outcome = "nothing was changed" if identity(arguments.database) == before else "the new database is in place"
        line = "".join(character if character.isprintable() else " " for character in fault)
        sys.exit(f"load_data: {line}; {outcome}")


def report(text: str) -> str:
    """Writes `text` to stdout. Returns what went wrong, or nothing."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` may stop reading
    try:
        print(text, end="", flush=True)
    except (OSError, UnicodeError) as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes stdout once more when it ends
        return f"stdout: {getattr(error, 'strerror', error)}"
    return ""


if __name__ == "__main__":
    main()

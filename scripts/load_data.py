#!/usr/bin/env python3
"""Builds the database out of a dump: `load_data.py SOURCE DATABASE`.

SOURCE is a folder of CSV files in the layout of the Ergast database image, a zip of them, or the http(s) URL of such
a zip. What the tables hold stands in racedata/schema.sql, and the columns of the dump are read by it: INTEGER, NOT NULL
and REFERENCES there are what a value is held to here, and CHECKED below says the rest. Needs Python alone.

The new file grows beside the old one and takes its place at the very end; until then nothing has happened.
"""

import argparse
import csv
import fcntl
import hashlib
import io
import os
import re
import signal
import sqlite3
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from contextlib import closing, contextmanager
from datetime import date, datetime, timezone
from functools import lru_cache
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

SCHEMA = Path(__file__).resolve().parent.parent / "racedata" / "schema.sql"

# In the order they are loaded: what a table refers to comes before it.
REQUIRED = ("circuits", "constructors", "drivers", "status", "races", "results")
OPTIONAL = ("qualifying", "sprint_results", "lap_times")

MISSING = ("", r"\N")

DOWNLOAD_SECONDS = 600
DOWNLOAD_BYTES = 200_000_000
UNPACKED_BYTES = 2_000_000_000


class LoadError(Exception):
    """Why there will be no new database: one line."""


# What a value may be. Each function returns what is stored, or raises ValueError; its docstring says what it expects.


def whole_number(text):
    """a whole number such as 25"""
    # int() alone would take signs, spaces and underscores; SQLite holds no more than 18 digits for certain.
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError
    return int(text)


def year(text):
    """a year of four digits"""
    if len(text) != 4:
        raise ValueError
    return whole_number(text)


def number(text):
    """a number such as 25 or 8.14"""
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        raise ValueError
    return text


def points(text):
    """points such as 25 or 12.5"""
    return number(text).rstrip("0").rstrip(".") if "." in text else number(text)


def day(text):
    """a date such as 2023-07-02"""
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError
    date.fromisoformat(text)
    return text


def time_of_day(text):
    """a time of day such as 13:00:00"""
    if not re.fullmatch("([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]", text):
        raise ValueError
    return text


def lap_time(text):
    """a time such as 1:07.012"""
    if not re.fullmatch(r"([0-9]+:)?[0-9]+:[0-5][0-9]\.[0-9]+", text):
        raise ValueError
    return text


SESSIONS = ("fp1", "fp2", "fp3", "quali", "sprint")
CHECKED = {
    "circuits": {"lat": number, "lng": number},
    "drivers": {"dob": day},
    "races": {
        "year": year, "date": day, "time": time_of_day,
        **{f"{session}_date": day for session in SESSIONS}, **{f"{session}_time": time_of_day for session in SESSIONS},
    },
    "results": {"points": points, "fastestLapTime": lap_time, "fastestLapSpeed": number},
    "sprint_results": {"points": points, "fastestLapTime": lap_time},
    "qualifying": {"q1": lap_time, "q2": lap_time, "q3": lap_time},
    "lap_times": {"time": lap_time},
}


# The dump: a folder with files in it, on disk or in a zip.


@contextmanager
def dump_folder(source, progress):
    """The folder of CSV files that `source` names, as a pathlib.Path or the zipfile.Path that is like one."""
    source = os.path.expanduser(source)  # make's shell leaves the ~ of SOURCE=~/data.zip as it is
    if re.match("https?://", source):
        with tempfile.TemporaryFile() as file:
            download(source, file, progress)
            with unzipped(file, source) as folder:
                yield folder
    elif os.path.isdir(source):
        yield Path(source)
    elif os.path.exists(source):
        with open(source, "rb") as file, unzipped(file, source) as folder:
            yield folder
    else:
        raise LoadError(f"{source}: not there; expected a folder of CSV files, a zip of them, or the URL of such a zip")


@contextmanager
def unzipped(file, source):
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if any(member.flag_bits & 1 for member in members):
                raise LoadError(f"{source}: the zip is encrypted; expected one that needs no password")
            if sum(member.file_size for member in members) > UNPACKED_BYTES:
                raise LoadError(f"{source}: unpacks to more than {UNPACKED_BYTES:,} bytes; expected a dump of the data")
            root = zipfile.Path(archive)
            folders = [root, *(path for path in root.iterdir() if path.is_dir())]
            yield next((folder for folder in folders if (folder / "races.csv").exists()), root)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise LoadError(f"{source}: broken zip ({error}); expected a folder of CSV files or a zip of them") from None


def download(url, file, progress, seconds=DOWNLOAD_SECONDS, size=DOWNLOAD_BYTES):
    """Copies what `url` answers into `file`, within so many seconds and bytes."""
    end = time.monotonic() + seconds
    try:
        with urllib.request.urlopen(url, timeout=min(30, seconds)) as response:
            # read1 returns what has arrived; read would wait for a whole block, for hours if it comes in drops.
            while block := response.read1(1 << 16):
                file.write(block)
                progress(f"downloading: {file.tell():,} bytes")
                if file.tell() > size:
                    raise LoadError(f"{url}: more than {size:,} bytes; expected the zip of a dump")
                if time.monotonic() > end:
                    raise LoadError(f"{url}: not complete after {seconds:,} seconds; got {file.tell():,} bytes")
            if response.length:  # what Content-Length promised and did not come
                raise LoadError(f"{url}: the connection ended {response.length:,} bytes before the file did")
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError, ValueError) as error:
        raise LoadError(f"{url}: {getattr(error, 'reason', error)}; expected the zip of a dump") from None


class Column(NamedTuple):
    name: str
    parse: object  # from text to what is stored; raises ValueError
    expected: str  # what parse takes, in words
    required: bool

    def read(self, text):
        if text not in MISSING:
            return self.parse(text)
        if self.required:
            raise ValueError
        return None


class Table:
    """One CSV file, read row by row. `rows_read` counts; `line` and `row` are where the reading is."""

    def __init__(self, path, columns, progress):
        self.path, self.columns, self.progress = path, columns, progress
        self.rows_read, self.line, self.row = 0, 1, ()

    def rows(self):
        """A list of values to each row, in the order of `columns`."""
        with self.path.open("rb") as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, strict=True)
            try:
                header = next(reader, [])
                read = self.row_reader(header)
                for fields in reader:
                    if fields:  # a blank line has none
                        self.line = reader.line_num
                        self.row = read(fields)
                        self.rows_read += 1
                        if self.rows_read % 10_000 == 0:
                            self.progress(f"{self.path.name}: {self.rows_read:,} rows")
                        yield self.row
            except csv.Error as error:
                self.line = reader.line_num
                raise self.fault(f"broken CSV ({error}); expected fields with commas between them") from None
            except UnicodeDecodeError:
                raise self.not_utf8() from None

    def row_reader(self, header):
        """The function that makes a row out of the fields under `header`; a column not in it reads as missing."""
        for column in self.columns:
            if column.required and column.name not in header:
                raise self.fault(f"not in the header, which has {', '.join(header) or 'nothing'}", column.name)
            if header.count(column.name) > 1:
                raise self.fault("stands in the header twice; expected once", column.name)
        width = len(header)
        # One more field than the header has: there the columns that the file does not have find nothing.
        places = [header.index(column.name) if column.name in header else width for column in self.columns]
        # The same ids, lap numbers and dates come again and again; a bound keeps the memory flat all the same.
        readers = [lru_cache(maxsize=4096)(column.read) for column in self.columns]

        def read(fields):
            if len(fields) > width:
                raise self.fault(f"{len(fields)} fields; expected {width}, as in the header")
            fields += [""] * (width + 1 - len(fields))  # a short row: its last columns are missing
            try:
                return [read(fields[place]) for read, place in zip(readers, places)]
            except ValueError:
                raise self.wrong_value([fields[place] for place in places]) from None

        return read

    def wrong_value(self, values):
        for column, value in zip(self.columns, values):
            try:
                column.read(value)
            except ValueError:
                return self.fault(f"{value[:80]!r}; expected {column.expected}", column.name)

    def duplicate(self, error):
        """The fault behind an sqlite3.IntegrityError such as `UNIQUE constraint failed: races.year, races.round`."""
        names = re.findall(r"\.(\w+)", str(error))
        row = dict(zip((column.name for column in self.columns), self.row))
        value = ", ".join(repr(row[name]) for name in names)
        return self.fault(f"{value}; expected no two rows with the same", ", ".join(names))

    def not_utf8(self):
        """The fault behind a UnicodeDecodeError, which itself knows only of a place in some buffer."""
        header = []
        with self.path.open("rb") as raw:
            for self.line, line in enumerate(raw, 1):
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    place = len(next(csv.reader(["," + line[:error.start].decode()]))) - 2
                    column = header[place] if place < len(header) else None
                    return self.fault(f"{line[error.start:error.end]!r}; expected UTF-8", column)
                header = header or next(csv.reader([line.decode("utf-8-sig")]), [])

    def fault(self, what, column=None):
        place = f"{self.path.name}, line {self.line}" + (f", column {column}" if column else "")
        return LoadError(f"{place}: {what}")


# The database.


def columns_of(db, table):
    """What the schema has a row of `table` read from."""
    parents = {child: parent for _, _, parent, child, *_ in db.execute(f"PRAGMA foreign_key_list({table})")}
    for _, name, kind, not_null, _, key in db.execute(f"PRAGMA table_info({table})").fetchall():
        if name in parents:
            # Both sides of each reference have the same name.
            ids = {id for (id,) in db.execute(f"SELECT {name} FROM {parents[name]}")}
            parse, expected = reference(ids), f"a {name} of {parents[name]}.csv"
        else:
            parse = CHECKED.get(table, {}).get(name, whole_number if kind == "INTEGER" else str)
            expected = "text" if parse is str else parse.__doc__
        yield Column(name, parse, expected, required=bool(not_null or key))


def reference(ids):
    """A parser of numbers that must be among `ids`."""

    def parse(text):
        if whole_number(text) not in ids:
            raise ValueError
        return int(text)

    return parse


def load_table(db, table, path, progress):
    """Fills `table` from the CSV file at `path`; returns the rows read."""
    columns = list(columns_of(db, table))
    into = table
    if table == "lap_times":
        # `record` is a timing's place among its race's, known only when all are there. So they wait in a table of
        # their own, on disk if they are many, which also finds a lap that stands twice.
        columns = [column for column in columns if column.name != "record"]
        into = "unnumbered"
        db.execute(
            "CREATE TEMP TABLE unnumbered (raceId, driverId, lap, position, time, UNIQUE (raceId, driverId, lap))"
        )
    file = Table(path, columns, progress)
    names = ", ".join(column.name for column in columns)
    marks = ", ".join("?" for column in columns)
    try:
        db.executemany(f"INSERT INTO {into} ({names}) VALUES ({marks})", file.rows())
    except sqlite3.IntegrityError as error:
        raise file.duplicate(error) from None
    if table == "lap_times":
        progress(f"{table}.csv: numbering {file.rows_read:,} rows")
        db.execute(
            """INSERT INTO lap_times (raceId, record, driverId, lap, position, time)
               SELECT raceId, row_number() OVER (PARTITION BY raceId ORDER BY lap, position NULLS LAST, driverId) - 1,
                   driverId, lap, position, time FROM unnumbered"""
        )
        db.execute("DROP TABLE unnumbered")
    return file.rows_read


def checksum(paths):
    """SHA-256, in hexadecimal, of the files' contents one behind the other."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def fill(path, folder, source, progress):
    """Makes the database at `path` out of the dump in `folder`.

    Returns `[(table, rows read or None where there is no file, rows stored)]`, and in words what seasons there are.
    """
    files = {table: folder / f"{table}.csv" for table in REQUIRED + OPTIONAL}
    files = {table: file for table, file in files.items() if file.exists()}
    for table in REQUIRED:
        if table not in files:
            raise LoadError(f"{source}: no {table}.csv in it; expected {', '.join(f'{name}.csv' for name in REQUIRED)}")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        # What becomes of an unfinished file does not matter, so nothing is spent on saving it.
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE")
        db.executescript(SCHEMA.read_text(encoding="utf-8"))
        db.execute("BEGIN")
        summary = []
        for table in REQUIRED + OPTIONAL:
            rows_read = load_table(db, table, files[table], progress) if table in files else None
            (stored,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
            db.execute("INSERT INTO row_counts VALUES (?, ?)", (table, stored))
            summary.append((table, rows_read, stored))
        built_at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        db.execute("INSERT INTO build VALUES (?, ?, ?)", (source, checksum(files.values()), built_at))
        db.execute("COMMIT")
        progress("checking the new database")
        faults = db.execute("PRAGMA integrity_check").fetchall() + db.execute("PRAGMA foreign_key_check").fetchall()
        if faults != [("ok",)]:
            raise LoadError(f"{path}: SQLite finds the new file faulty: {faults[0]}")
        seasons = "{} to {} ({} seasons, {:,} races)".format(
            *db.execute("SELECT min(year), max(year), count(DISTINCT year), count(*) FROM races").fetchone()
        )
    digest = bytes.fromhex(checksum([path]))
    with path.open("ab") as file:
        file.write(digest)  # see schema.sql
        file.flush()
        os.fsync(file.fileno())
    return summary, seasons


def replaceable(path):
    """Whether what is at `path` is a database that an earlier load has built, damaged or not, or an empty file."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        header = file.read(72)
    (application_id,) = re.findall("application_id = (0x[0-9a-f]+)", SCHEMA.read_text(encoding="utf-8"))
    return not header or header[:16] == b"SQLite format 3\0" and header[68:] == bytes.fromhex(application_id[2:])


@contextmanager
def replacement(path):
    """A path for a new file, which takes the place of the one at `path` if all goes well and else disappears."""
    path = Path(os.path.realpath(path))  # where it is a link, the link stays
    if path.exists() and not replaceable(path):
        raise LoadError(f"{path}: is there and is no database of racedata; remove it, or name another file")
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # The lock is on the folder: it leaves nothing behind, and ends with the process however that ends.
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new = path.with_name(path.name + ".new")
        new.unlink(missing_ok=True)  # of a loader that was killed
        try:
            yield new
            os.replace(new, path)
            os.fsync(folder)
        finally:
            new.unlink(missing_ok=True)
    except BlockingIOError:
        raise LoadError(f"{path}: another load is at work in this folder; try again when it has ended") from None
    finally:
        os.close(folder)


def load(source, database, progress):
    """Builds `database` out of `source`; returns what `fill` does. Raises LoadError, sqlite3.Error or OSError."""
    with replacement(database) as new, dump_folder(source, progress) as folder:
        return fill(new, folder, source, progress)


def show_progress(text):
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description="Build the database out of a dump.")
    parser.add_argument("source", help="folder of CSV files, zip of them, or http(s) URL of such a zip")
    parser.add_argument("database", help="file to build")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends as Ctrl-C does, and leaves nothing behind
    progress = show_progress if sys.stderr.isatty() else lambda text: None
    fault = None
    try:
        summary, seasons = load(arguments.source, arguments.database, progress)
    except LoadError as error:
        fault = str(error)
    except KeyboardInterrupt:
        fault = "interrupted"
    except sqlite3.Error as error:
        fault = f"{arguments.database}: {error}"
    except OSError as error:
        fault = f"{error.filename or arguments.database}: {error.strerror or error}"
    progress("")
    if fault:
        sys.exit(f"load_data: {fault}; nothing was changed")
    print(f"{'table':<16}{'rows read':>12}{'rows stored':>13}")
    for table, rows_read, stored in summary:
        print(f"{table:<16}{'no file' if rows_read is None else format(rows_read, ','):>12}{stored:>13,}")
    print(f"{arguments.database}: {seasons}")


if __name__ == "__main__":
    main()

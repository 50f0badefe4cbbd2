"""Reading a dump: CSV files in a folder, a zip, or a zip at a URL; row by row, with the place of what is wrong.

Nothing here knows the tables or the database; load_data.py brings both.
"""

import csv
import io
import os
import re
import signal
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from contextlib import contextmanager
from functools import lru_cache
from http.client import HTTPException
from itertools import islice
from pathlib import Path
from typing import NamedTuple

MISSING = ("", r"\N")

DOWNLOAD_SECONDS = 600
DOWNLOAD_BYTES = 200_000_000
UNPACKED_BYTES = 2_000_000_000


class LoadError(Exception):
    """Why there will be no new database: one line."""


@contextmanager
def dump_folder(source, progress):
    """The folder of CSV files that `source` names, as a pathlib.Path or the zipfile.Path that is like one."""
    source = os.path.expanduser(source)  # make's shell leaves the ~ of SOURCE=~/data.zip as it is
    if re.match("https?://", source, re.IGNORECASE):
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
            if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
                raise LoadError(f"{source}: the zip is compressed in an unusual way; expected the usual, deflate")
            if any("//" in f"/{member.filename}" for member in members):  # zipfile.Path would go round for ever
                raise LoadError(f"{source}: the zip has a file without a proper name; expected a dump of the data")
            if sum(member.file_size for member in members) > UNPACKED_BYTES:
                raise LoadError(f"{source}: unpacks to more than {UNPACKED_BYTES:,} bytes; expected a dump of the data")
            root = zipfile.Path(archive)
            folders = [root, *(path for path in root.iterdir() if path.is_dir())]
            yield next((folder for folder in folders if (folder / "races.csv").exists()), root)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise LoadError(f"{source}: broken zip ({error}); expected a folder of CSV files or a zip of them") from None


class ShortRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects after 64 KB of their own bodies, which urllib reads to the end, however far that is."""

    def http_error_302(self, req, fp, code, msg, headers):
        whole = fp.read
        fp.read = lambda: whole(1 << 16)
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


@contextmanager
def time_limit(seconds):
    """Raises TimeoutError inside the block after so many seconds, whatever it waits for."""

    def end(number, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def download(url, file, progress, seconds=DOWNLOAD_SECONDS, size=DOWNLOAD_BYTES):
    """Copies what `url` answers into `file`, within so many seconds and bytes."""
    try:
        opener = urllib.request.build_opener(ShortRedirects)
        with time_limit(seconds), opener.open(url, timeout=30) as response:
            # read1 returns what has arrived, so that progress is shown however slowly it comes.
            while block := response.read1(1 << 16):
                file.write(block)
                progress(f"downloading: {file.tell():,} bytes")
                if file.tell() > size:
                    raise LoadError(f"{url}: more than {size:,} bytes; expected the zip of a dump")
            if response.length:  # what Content-Length promised and did not come
                raise LoadError(f"{url}: the connection ended {response.length:,} bytes before the file did")
    except TimeoutError:
        what = f"not complete in {seconds:,} seconds, or nothing for 30; got {file.tell():,} bytes"
        raise LoadError(f"{url}: {what}") from None
    except (urllib.error.URLError, HTTPException, ConnectionError, ValueError) as error:
        raise LoadError(f"{url}: {getattr(error, 'reason', error)}; expected the zip of a dump") from None


class Column(NamedTuple):
    name: str
    kind: str  # INTEGER or TEXT
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
    """One CSV file, read for one table. `rows_read` counts; `row` is the one that was given out last."""

    BATCH = 100  # rows that are taken apart together, a column at a time: much faster than each for itself

    def __init__(self, path, columns, progress):
        self.path, self.columns, self.progress = path, columns, progress
        self.header, self.rows_read, self.row = [], 0, ()

    def rows(self):
        """The values of each row, in the order of `columns`."""
        with self.reader() as reader:
            self.header = next(reader, [])
            self.check_header()
            plan = list(zip(self.places(), map(reading, self.columns)))
            while batch := list(islice(reader, self.BATCH)):
                rows = [fields for fields in batch if fields]  # a blank line has none
                try:
                    if set(map(len, rows)) != {len(self.header)}:
                        rows = list(map(self.filled, rows))
                    fields = [*zip(*rows), [""] * len(rows)]  # the last is for columns that are absent
                    values = [list(map(read, fields[place])) for place, read in plan] if rows else []
                except ValueError:
                    raise self.first_wrong_value() from None
                for self.row in zip(*values):
                    self.rows_read += 1
                    yield self.row
                self.progress(f"{self.path.name}: {self.rows_read:,} rows")

    @contextmanager
    def reader(self):
        """A csv.reader of the file, whose failures become faults."""
        with self.path.open("rb") as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, strict=True)
            try:
                yield reader
            except csv.Error as error:
                what = f"broken CSV ({error}); expected fields with commas between them"
                raise self.fault(what, line=reader.line_num) from None
            except UnicodeDecodeError:
                raise self.not_utf8() from None

    def check_header(self):
        for column in self.columns:
            if column.required and column.name not in self.header:
                raise self.fault(f"not in the header, which has {', '.join(self.header) or 'nothing'}", column.name)
            if self.header.count(column.name) > 1:
                raise self.fault("stands in the header twice; expected once", column.name)

    def absent_columns(self):
        return [column.name for column in self.columns if column.name not in self.header]

    def places(self):
        """To each column, which field it has; the one behind the last where it is absent."""
        places = {name: place for place, name in enumerate(self.header)}
        return [places.get(column.name, len(self.header)) for column in self.columns]

    def filled(self, fields):
        """A row of full length: of a short one, the last columns are missing."""
        if len(fields) > len(self.header):
            raise ValueError
        return fields + [""] * (len(self.header) - len(fields))

    def first_wrong_value(self):
        """The fault behind a ValueError in `rows`, which works on many rows at once: here one by one, to find it."""
        with self.reader() as reader:
            next(reader)
            for fields in reader:
                if len(fields) > len(self.header):
                    what = f"{len(fields)} fields; expected {len(self.header)}, as in the header"
                    return self.fault(what, line=reader.line_num)
                for column, place in zip(self.columns, self.places()) if fields else ():
                    value = fields[place] if place < len(fields) else ""
                    try:
                        column.read(value)
                    except ValueError:
                        what = f"{value[:80]!r}; expected {column.expected}"
                        return self.fault(what, column.name, reader.line_num)

    def duplicate(self, error):
        """The fault behind an sqlite3.IntegrityError such as `UNIQUE constraint failed: races.year, races.round`."""
        names = re.findall(r"\.(\w+)", str(error))
        row = dict(zip((column.name for column in self.columns), self.row))
        value = ", ".join(repr(row[name]) for name in names)
        with self.reader() as reader:
            next(reader)
            lines = (reader.line_num for fields in reader if fields)
            line = next(islice(lines, self.rows_read - 1, None))
        return self.fault(f"{value}; expected no two rows with the same", ", ".join(names), line)

    def not_utf8(self):
        """The fault behind a UnicodeDecodeError, which itself knows only of a place in some buffer."""
        with self.path.open("rb") as raw:
            for number, line in enumerate(raw, 1):
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    # What comes before it on the line has as many commas outside quotes as columns are passed.
                    place = re.sub(rb'"[^"]*"?', b"", line[: error.start]).count(b",")
                    column = self.header[place] if place < len(self.header) else None
                    return self.fault(f"{line[error.start : error.end]!r}; expected UTF-8", column, number)
                self.header = self.header or line.decode("utf-8-sig").strip().replace('"', "").split(",")

    def fault(self, what, column=None, line=1):
        return LoadError(f"{self.path.name}, line {line}{f', column {column}' if column else ''}: {what}")


def reading(column):
    """The function that reads a column's fields."""
    # The same ids and lap numbers come again and again, texts do not. The bound keeps the memory flat.
    return lru_cache(maxsize=4096)(column.read) if column.kind == "INTEGER" else column.read

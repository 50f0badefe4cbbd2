"""Reads a dump row by row: CSV files in a folder, in a zip, or in a zip at a URL. Errors name the file and line.

Files, zips, downloads and CSV belong here. The tables and the database belong in load_data.py.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from http.client import HTTPException, HTTPMessage
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, NamedTuple, Never

if TYPE_CHECKING:
    from _csv import Reader

    from _typeshed import WriteableBuffer

MISSING = ("", r"\N")
HTTP = re.compile("https?://", re.IGNORECASE)

# Limits of memory and time, far above what any dump needs.
LINE_BYTES = 1_000_000
BLANK_LINES = 1_000  # in a row
DOWNLOAD_SECONDS = 600
DOWNLOAD_BYTES = 200_000_000
UNPACKED_BYTES = 2_000_000_000

AnyPath = Path | zipfile.Path
Value = int | str | None
Parse = Callable[[str], int | str]
Progress = Callable[[str], None]


class LoadError(Exception):
    """The reason why no database was built, in one line."""


@contextmanager
def dump_folder(source: str, progress: Progress) -> Iterator[AnyPath]:
    """The folder of CSV files that `source` names. A zipfile.Path is used like a pathlib.Path."""
    source = os.path.expanduser(source)  # in SOURCE=~/data.zip, make's shell leaves the ~ as it is
    if HTTP.match(source):
        with tempfile.TemporaryFile() as downloaded:
            download(source, downloaded, progress)
            with unzipped(downloaded, source) as folder:
                yield folder
    elif os.path.isdir(source):
        yield Path(source)
    elif os.path.isfile(source):
        with open(source, "rb") as file, unzipped(file, source) as folder:
            yield folder
    else:
        what = "neither a file nor a folder" if os.path.exists(source) else "not found"
        raise LoadError(f"{source}: {what}; expected a folder of CSV files, a zip of them, or the URL of such a zip")


@contextmanager
def unzipped(file: IO[bytes], source: str) -> Iterator[zipfile.Path]:
    """The folder with races.csv in a zip: its root, or a folder there."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if any(member.flag_bits & 1 for member in members):
                raise LoadError(f"{source}: the zip is encrypted; expected one without a password")
            if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
                raise LoadError(f"{source}: the zip uses an unusual compression; expected deflate")
            if any("//" in f"/{member.filename}" for member in members):  # zipfile.Path would loop forever
                raise LoadError(f"{source}: the zip has a file without a proper name; expected a dump of the data")
            if sum(member.file_size for member in members) > UNPACKED_BYTES:
                raise LoadError(f"{source}: unpacks to more than {UNPACKED_BYTES:,} bytes; expected a dump of the data")
            root = zipfile.Path(archive)
            folders = [root, *(path for path in root.iterdir() if path.is_dir())]
            yield next((folder for folder in folders if (folder / "races.csv").exists()), root)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise LoadError(f"{source}: broken zip ({error}); expected a folder of CSV files or a zip of them") from None


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https. Does not read their bodies, which may be endless."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not HTTP.match(newurl):
            raise urllib.error.URLError(f"redirects to {newurl[:80]!r}; followed are http and https")
        fp.close()  # urllib would read it to its end; a closed response has none left
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError inside the block after `seconds`, whatever the block is doing."""

    def end(number: int, frame: FrameType | None) -> Never:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def download(
    url: str, file: IO[bytes], progress: Progress, seconds: float = DOWNLOAD_SECONDS, size: int = DOWNLOAD_BYTES
) -> None:
    """Copies the content of `url` into `file`. Raises LoadError if it takes more than `seconds` or `size` bytes."""
    try:
        opener = urllib.request.build_opener(Redirects)
        with time_limit(seconds), opener.open(url, timeout=30) as response:
            # read1 returns what has arrived, so that a slow download shows progress too.
            while block := response.read1(1 << 16):
                file.write(block)
                progress(f"downloading: {file.tell():,} bytes")
                if file.tell() > size:
                    raise LoadError(f"{url}: more than {size:,} bytes; expected the zip of a dump")
            if response.length:  # bytes of Content-Length that did not arrive
                raise LoadError(f"{url}: the connection ended {response.length:,} bytes before the file did")
    except TimeoutError:
        what = f"not complete in {seconds:,} seconds, or no data for 30; got {file.tell():,} bytes"
        raise LoadError(f"{url}: {what}") from None
    except (urllib.error.URLError, HTTPException, ConnectionError, ValueError) as error:
        raise LoadError(f"{url}: {getattr(error, 'reason', error)}; expected the zip of a dump") from None


class LongLine(Exception):
    """A line longer than LINE_BYTES. `line` is its number."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


class Lines(io.RawIOBase):
    """The bytes of a file. Raises LongLine before more than LINE_BYTES of a line are in memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.line, self.length = 1, 0  # the line that is being read: its number, and how many bytes it has so far

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        target = memoryview(buffer)
        block = self.file.read(len(target))
        target[: len(block)] = block
        first, last = block.find(b"\n"), block.rfind(b"\n")
        if self.length + (len(block) if first < 0 else first) > LINE_BYTES:
            raise LongLine(self.line)
        self.line += block.count(b"\n")
        self.length = self.length + len(block) if last < 0 else len(block) - last - 1
        return len(block)


class Column(NamedTuple):
    """A column of a table, and how its fields are read."""

    name: str
    kind: str  # INTEGER or TEXT
    parse: Parse  # a field's text to the stored value; raises ValueError
    expected: str  # what `parse` accepts, in words
    required: bool

    def read(self, text: str) -> Value:
        if text not in MISSING:
            return self.parse(text)
        if self.required:
            raise ValueError
        return None


class Table:
    """A CSV file that is read into a table. `row` is the last row that `rows` yielded, `rows_read` its number."""

    BATCH = 100  # rows that are parsed together, column by column, which is much faster than row by row

    def __init__(self, path: AnyPath, columns: Sequence[Column], progress: Progress) -> None:
        self.path, self.columns, self.progress = path, columns, progress
        self.header: list[str] = []
        self.rows_read = 0
        self.row: tuple[Value, ...] = ()

    def rows(self) -> Iterator[tuple[Value, ...]]:
        """The values of each row, in the order of `columns`."""
        with self.reader() as reader:
            self.header = next(reader, [])
            self.check_header()
            plan = list(zip(self.indexes(), map(parser, self.columns)))
            blank = 0
            while batch := list(islice(reader, self.BATCH)):
                rows = [fields for fields in batch if fields]  # a blank line has no fields
                blank = 0 if rows else blank + len(batch)
                if blank > BLANK_LINES:
                    raise self.fault(f"more than {BLANK_LINES:,} blank lines; expected rows", line=reader.line_num)
                try:
                    if set(map(len, rows)) != {len(self.header)}:
                        rows = list(map(self.filled, rows))
                    fields = [*zip(*rows), [""] * len(rows)]  # the last list is for absent columns
                    values = [list(map(parse, fields[index])) for index, parse in plan] if rows else []
                except ValueError:
                    raise self.first_wrong_value() from None
                for self.row in zip(*values):
                    self.rows_read += 1
                    yield self.row
                self.progress(f"{self.path.name}: {self.rows_read:,} rows")

    @contextmanager
    def opened(self) -> Iterator["io.BufferedReader[Lines]"]:
        """The bytes of the file. If a line is too long, raises a LoadError that names the line."""
        with self.path.open("rb") as file:
            try:
                yield io.BufferedReader(Lines(file), 1 << 16)
            except LongLine as error:
                raise self.fault(f"longer than {LINE_BYTES:,} bytes; expected a row", line=error.line) from None

    @contextmanager
    def reader(self) -> Iterator["Reader"]:
        """A csv.reader of the file. Turns its errors into a LoadError that names the line."""
        with self.opened() as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, strict=True)
            try:
                yield reader
            except csv.Error as error:
                what = f"broken CSV ({error}); expected fields separated by commas"
                raise self.fault(what, line=reader.line_num) from None
            except UnicodeDecodeError:
                raise self.not_utf8() from None

    def check_header(self) -> None:
        for column in self.columns:
            if column.required and column.name not in self.header:
                raise self.fault(
                    f"not in the header, which has {', '.join(self.header)[:300] or 'nothing'}", column.name
                )
            if self.header.count(column.name) > 1:
                raise self.fault("twice in the header; expected once", column.name)

    def absent_columns(self) -> list[str]:
        return [column.name for column in self.columns if column.name not in self.header]

    def indexes(self) -> list[int]:
        """The index of each column's field; for an absent column, the index after the last."""
        indexes = {name: index for index, name in enumerate(self.header)}
        return [indexes.get(column.name, len(self.header)) for column in self.columns]

    def filled(self, fields: list[str]) -> list[str]:
        """Fills up a short row: its last columns are missing values."""
        if len(fields) > len(self.header):
            raise ValueError
        return fields + [""] * (len(self.header) - len(fields))

    def first_wrong_value(self) -> LoadError:
        """The cause of a ValueError in `rows`. Reads the file again, row by row, to find the line and column."""
        with self.reader() as reader:
            next(reader)
            for fields in reader:
                if len(fields) > len(self.header):
                    what = f"{len(fields)} fields; expected {len(self.header)}, as in the header"
                    return self.fault(what, line=reader.line_num)
                for column, index in zip(self.columns, self.indexes()) if fields else ():
                    value = fields[index] if index < len(fields) else ""
                    try:
                        column.read(value)
                    except ValueError:
                        what = f"{value[:80]!r}; expected {column.expected}"
                        return self.fault(what, column.name, reader.line_num)
        raise AssertionError(f"{self.path.name} has changed while it was read")

    def duplicate(self, error: Exception) -> LoadError:
        """The cause of an sqlite3.IntegrityError such as `UNIQUE constraint failed: races.year, races.round`."""
        names = re.findall(r"\.(\w+)", str(error))
        row = dict(zip((column.name for column in self.columns), self.row))
        value = ", ".join(repr(row[name])[:80] for name in names)
        with self.reader() as reader:
            next(reader)
            lines = (reader.line_num for fields in reader if fields)
            line = next(islice(lines, self.rows_read - 1, None))
        return self.fault(f"{value}; expected no two rows with the same", ", ".join(names), line)

    def not_utf8(self) -> LoadError:
        """The cause of a UnicodeDecodeError, which has only a position in a buffer."""
        with self.opened() as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    # The column's index is the number of commas before it that are outside quotes.
                    index = re.sub(rb'"[^"]*"?', b"", line[: error.start]).count(b",")
                    column = self.header[index] if index < len(self.header) else None
                    return self.fault(f"{line[error.start : error.end]!r}; expected UTF-8", column, number)
                self.header = self.header or line.decode("utf-8-sig").strip().replace('"', "").split(",")
        raise AssertionError(f"{self.path.name} has changed while it was read")

    def fault(self, what: str, column: str | None = None, line: int = 1) -> LoadError:
        return LoadError(f"{self.path.name}, line {line}{f', column {column}' if column else ''}: {what}")


def parser(column: Column) -> Callable[[str], Value]:
    """The function that parses a column's fields."""
    # Ids and lap numbers repeat, texts do not. The maximum size limits the memory.
    return lru_cache(maxsize=4096)(column.read) if column.kind == "INTEGER" else column.read

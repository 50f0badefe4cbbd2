"""Reads a dump row by row: CSV files in a folder, in a zip, or in a zip at a URL. Errors name the file and line.

Files, zips, downloads and CSV belong here. The tables belong in stage.py, the database in load_data.py.
"""

import codecs
import csv
import hashlib
import io
import os
import re
import signal
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPException, HTTPMessage
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, NamedTuple, Never

if TYPE_CHECKING:
    from _csv import Reader

    from _typeshed import WriteableBuffer

RECOGNISED_BY = ("races.csv", "formula_one_round.csv")  # a file of each layout: ergast.py, jolpica.py
MISSING = frozenset(["", r"\N"])
HTTP = re.compile("https?://", re.IGNORECASE)
CREDENTIALS = re.compile("https?://[^/?#]*@", re.IGNORECASE)  # errors, databases and overlays would show them

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


def files_of(paths: Mapping[str, AnyPath], required: Sequence[str], source: str) -> dict[str, AnyPath]:
    """The files of a dump that exist, by table. Raises LoadError if a required one is absent, or one is no file."""
    for name in required:
        if not paths[name].exists():
            expected = ", ".join(paths[name].name for name in required)
            raise LoadError(f"{source}: no {paths[name].name} in it; expected {expected}")
    files = {name: path for name, path in paths.items() if path.exists()}
    for path in files.values():
        if not path.is_file():  # a FIFO would block, a device might never end
            raise LoadError(f"{source}: {path.name} is not a regular file; expected a CSV file")
    return files


def checksum(paths: Iterable[AnyPath]) -> str:
    """SHA-256, in hexadecimal, of the files' joined contents."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


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
        yield dump_in(Path(source), source)
    elif os.path.isfile(source):
        with open(source, "rb") as file, unzipped(file, source) as folder:
            yield folder
    else:
        what = "neither a file nor a folder" if os.path.exists(source) else "not found"
        raise LoadError(f"{source}: {what}; expected a folder of CSV files, a zip of them, or the URL of such a zip")


@contextmanager
def unzipped(file: IO[bytes], source: str) -> Iterator[AnyPath]:
    """The folder with a dump in a zip."""
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
            yield dump_in(zipfile.Path(archive), source)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise LoadError(f"{source}: broken zip ({error}); expected a folder of CSV files or a zip of them") from None


def dump_in(root: AnyPath, source: str) -> AnyPath:
    """The folder that has a dump in one of the known layouts: `root`, or a folder there. If none has, `root`."""

    def has_dump(folder: AnyPath) -> bool:
        return any((folder / name).exists() for name in RECOGNISED_BY)

    if has_dump(root):
        return root
    folders = [path for path in root.iterdir() if path.is_dir() and has_dump(path)]
    if len(folders) > 1:
        names = ", ".join(sorted(folder.name for folder in folders))
        raise LoadError(f"{source}: has several dumps, in {names[:200]}; expected one")
    return folders[0] if folders else root


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
        fp.close()  # urllib would read it to its end; a closed response has none left
        # Errors name only the scheme, because the rest may contain a key.
        scheme = urllib.parse.urlsplit(newurl).scheme[:20]
        if not HTTP.match(newurl):
            raise urllib.error.URLError(f"redirects to {scheme!r}; followed are http and https")
        if req.type == "https" and scheme.lower() != "https":
            raise urllib.error.URLError(f"redirects from https to {scheme!r}; expected https")
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
    url: str,
    file: IO[bytes],
    progress: Progress,
    seconds: float = DOWNLOAD_SECONDS,
    size: int = DOWNLOAD_BYTES,
    expected: str = "the zip of a dump",
    handlers: Sequence[urllib.request.BaseHandler] = (),
) -> None:
    """Copies the content of `url` into `file`. `expected` names it in errors; `handlers` are those of urllib.

    Raises LoadError if it takes more than `seconds` or `size` bytes.
    """
    if CREDENTIALS.match(url):
        raise LoadError("the URL of the dump has a user or password in it; expected a URL without")
    try:
        opener = urllib.request.build_opener(Redirects, *handlers)
        with time_limit(seconds), opener.open(url, timeout=30) as response:
            # read1 returns what has arrived, so that a slow download shows progress too.
            while block := response.read1(1 << 16):
                file.write(block)
                progress(f"downloading: {file.tell():,} bytes")
                if file.tell() > size:
                    raise LoadError(f"{url}: more than {size:,} bytes; expected {expected}")
            if response.length:  # bytes of Content-Length that did not arrive
                raise LoadError(f"{url}: the connection ended {response.length:,} bytes before the file did")
    except TimeoutError:
        what = f"not complete in {seconds:,} seconds, or no data for 30; got {file.tell():,} bytes"
        raise LoadError(f"{url}: {what}") from None
    except (urllib.error.URLError, HTTPException, ConnectionError, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = " ".join(str(getattr(error, "reason", error)).split())  # of a redirect loop: several lines
        raise LoadError(f"{url}: {reason}; expected {expected}") from None


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


class Text:
    """A parser of texts that match all of a pattern. They are stored as they are, or as `convert` makes of them."""

    def __init__(self, pattern: str, expected: str, convert: Callable[[str], int | str] = str) -> None:
        self.fullmatch = re.compile(pattern).fullmatch
        self.convert = convert
        self.__doc__ = expected

    def __call__(self, text: str) -> int | str:
        if not self.fullmatch(text):
            raise ValueError
        return self.convert(text)


class Known(dict[str, Value]):
    """The values of fields that were read before: numbers repeat. Faster than lru_cache."""

    def __init__(self, read: Callable[[str], Value]) -> None:
        self.read = read

    def __missing__(self, field: str) -> Value:
        if len(self) > 4096:  # keeps the memory flat
            self.clear()
        value = self[field] = self.read(field)
        return value


class Column(NamedTuple):
    """A column of a table, and how its fields are read."""

    name: str
    parse: Parse  # a field's text to the stored value; raises ValueError
    expected: str  # what `parse` accepts, in words
    required: bool

    def read(self, text: str) -> Value:
        text = text.strip(" ")  # published dumps have `Argentinian `
        if text not in MISSING:
            return self.parse(text)
        if self.required:
            raise ValueError
        return None

    def reader(self) -> Callable[[Sequence[str]], Sequence[Value]]:
        """The function that reads many fields of the column at once."""
        parse = self.parse
        if not isinstance(parse, Text):
            known = Known(self.read)
            return lambda fields: list(map(known.__getitem__, fields))

        def read_texts(fields: Sequence[str]) -> Sequence[Value]:
            if MISSING.isdisjoint(fields):
                present = fields
            elif self.required:
                raise ValueError
            else:
                present = [field for field in fields if field not in MISSING]
            if not all(map(parse.fullmatch, present)):
                return list(map(self.read, fields))
            values = present if parse.convert is str else list(map(parse.convert, present))
            if present is fields:
                return values
            known = iter(values)
            return [None if field in MISSING else next(known) for field in fields]

        return read_texts


class Table:
    """A CSV file that is read into a table. `rows_read` counts its rows, without the header and blank lines."""

    BATCH = 400  # rows that are read together, column by column: much faster than row by row

    def __init__(self, path: AnyPath, columns: Sequence[Column], progress: Progress) -> None:
        self.path, self.columns, self.progress = path, columns, progress
        self.header: list[str] = []
        self.rows_read = 0

    def batches(self) -> Iterator[list[Sequence[Value]]]:
        """The rows, up to BATCH at a time: the values of each of `columns`."""
        with self.reader() as reader:
            self.header = next(reader, [])
            self.check_header()
            plan = [(index, column.reader()) for index, column in zip(self.indexes(), self.columns)]
            blank = 0
            while batch := list(islice(reader, self.BATCH)):
                rows = batch if all(batch) else list(filter(None, batch))  # a blank line has no fields
                blank = 0 if rows else blank + len(batch)
                if blank > BLANK_LINES:
                    raise self.fault(f"more than {BLANK_LINES:,} blank lines; expected rows", line=reader.line_num)
                if not rows:
                    continue
                try:
                    fields = self.fields(rows)
                    values = [read(fields[index]) for index, read in plan]
                except ValueError:
                    raise self.first_wrong_value() from None
                self.rows_read += len(rows)
                yield values
                self.progress(f"{self.path.name}: {self.rows_read:,} rows")

    @contextmanager
    def opened(self) -> Iterator["io.BufferedReader[Lines]"]:
        """The bytes of the file without a byte order mark. If a line is too long, raises a LoadError that names it."""
        with self.path.open("rb") as file:
            try:
                lines = io.BufferedReader(Lines(file), 1 << 16)
                if lines.peek(3)[:3] == codecs.BOM_UTF8:
                    lines.read(3)
                yield lines
            except LongLine as error:
                raise self.fault(f"longer than {LINE_BYTES:,} bytes; expected a row", line=error.line) from None

    @contextmanager
    def reader(self) -> Iterator["Reader"]:
        """A csv.reader of the file. Turns its errors into a LoadError that names the line."""
        with self.opened() as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
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

    def remarks(self, rare: Sequence[str] = ()) -> list[str]:
        """A line for each column that the file lacks, except those that are `rare`."""
        absent = [column.name for column in self.columns if column.name not in [*self.header, *rare]]
        return [f"{self.path.name}: no column {name}, so it is unknown in all rows" for name in absent]

    def indexes(self) -> list[int]:
        """The index of each column's field; for an absent column, the index after the last."""
        indexes = {name: index for index, name in enumerate(self.header)}
        return [indexes.get(column.name, len(self.header)) for column in self.columns]

    def fields(self, rows: list[list[str]]) -> list[tuple[str, ...]]:
        """The fields of some rows, column by column, and after the last a column of missing fields.

        If a row is short, its last columns are missing. Raises ValueError if a row is too long.
        """
        if len(set(map(len, rows))) > 1:
            width = max(map(len, rows))
            rows = [fields + [""] * (width - len(fields)) for fields in rows]
        columns = list(zip(*rows))
        if len(columns) > len(self.header):
            raise ValueError
        return columns + [("",) * len(rows)] * (len(self.header) + 1 - len(columns))

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

    def duplicate(self, number: int, names: Sequence[str]) -> LoadError:
        """The error for row `number`, counted from 1, whose columns `names` equal those of an earlier row."""
        with self.reader() as reader:
            next(reader)
            fields = next(islice(filter(None, reader), number - 1, None))
            row = dict(zip(self.header, fields))
            value = ", ".join(row[name] for name in names)
            what = f"{value[:80]!r} is there twice; expected each once"
            return self.fault(what, ", ".join(names), reader.line_num)

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
                self.header = self.header or line.decode().strip().replace('"', "").split(",")
        raise AssertionError(f"{self.path.name} has changed while it was read")

    def fault(self, what: str, column: str | None = None, line: int = 1) -> LoadError:
        return LoadError(f"{self.path.name}, line {line}{f', column {column}' if column else ''}: {what}")

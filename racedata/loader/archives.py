"""Finds the files of a dump: in a folder, in a zip, or in a zip at a URL."""

import hashlib
import os
import re
import signal
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from types import FrameType
from typing import IO, NamedTuple, Never

from racedata.loader.csvfile import AnyPath
from racedata.loader.errors import LoadError, Progress

HTTP = re.compile("https?://", re.IGNORECASE)
CREDENTIALS = re.compile("https?://[^/?#]*@", re.IGNORECASE)  # errors, databases and overlays would show them

# Limits of memory and time, far above what any dump needs.
DOWNLOAD_SECONDS = 600
DOWNLOAD_BYTES = 200_000_000
UNPACKED_BYTES = 2_000_000_000
DIRECTORY_BYTES = 1_000_000  # of a zip


def is_address(url: str) -> bool:
    """Whether a text is an http(s) address that can be requested, without a user or password."""
    if CREDENTIALS.match(url) or not HTTP.match(url):
        return False
    try:
        parts = urllib.parse.urlsplit(url)
        return bool(parts.hostname) and parts.port != 0  # `port` raises ValueError above 65535
    except ValueError:
        return False


def check_address(url: str, name: str) -> None:
    """Raises LoadError, in which no password appears, if `url` is no such address. `name` says what it is used for."""
    if CREDENTIALS.match(url):
        raise LoadError(f"{name} has a user or password in it; expected one without")
    if not is_address(url):
        expected = "an http(s) URL with a host and, if any, a port from 1 to 65535"
        raise LoadError(f"{url}: not {name}; expected {expected}")


class Dump(NamedTuple):
    """An opened dump."""

    address: str  # folder, zip or URL, as given to the loader
    folder: AnyPath  # of the CSV files; a zipfile.Path is used like a pathlib.Path
    zip_checksum: str | None  # SHA-256, in hexadecimal; None if it is a folder

    def checksum(self, files: Iterable[AnyPath]) -> str:
        """SHA-256, in hexadecimal, of the zip; or of the files' joined contents."""
        if self.zip_checksum:
            return self.zip_checksum
        digest = hashlib.sha256()
        for path in files:
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        return digest.hexdigest()


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


@contextmanager
def opened(source: str, recognised_by: Collection[str], progress: Progress) -> Iterator[Dump]:
    """The dump that `source` names: its folder has a file with one of the names in `recognised_by`."""
    source = os.path.expanduser(source)  # in SOURCE=~/data.zip, make's shell leaves the ~ as it is
    if HTTP.match(source):
        with tempfile.TemporaryFile() as downloaded:
            download(source, downloaded, progress)
            with unzipped(downloaded, source, recognised_by) as dump:
                yield dump
    elif os.path.isdir(source):
        yield Dump(source, dump_in(Path(source), source, recognised_by), None)
    elif os.path.isfile(source):
        with open(source, "rb") as file, unzipped(file, source, recognised_by) as dump:
            yield dump
    else:
        what = "neither a file nor a folder"
        try:
            os.stat(source)
        except (FileNotFoundError, ValueError):  # ValueError: a NUL in it
            what = "not found"
        except OSError as error:  # such as no permission to enter its folder
            what = str(error.strerror)
        raise LoadError(f"{source}: {what}; expected a folder of CSV files, a zip of them, or the URL of such a zip")


@contextmanager
def unzipped(file: IO[bytes], source: str, recognised_by: Collection[str]) -> Iterator[Dump]:
    """The dump in a zip."""
    try:
        check_directory(file, source)
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
            file.seek(0)
            checksum = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # any file that is open
            yield Dump(source, dump_in(zipfile.Path(archive), source, recognised_by), checksum)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise LoadError(f"{source}: broken zip ({error}); expected a folder of CSV files or a zip of them") from None


def check_directory(file: IO[bytes], source: str) -> None:
    """Raises LoadError if the zip lists very many files: zipfile would read the whole list into memory."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - 70_000))  # the end record of a zip, with its comment, is shorter
    end = file.read()
    for found in re.finditer(rb"(PK\x06\x07.{16})?PK\x05\x06.{8}(.{4})", end, re.DOTALL):
        # A list in the format zip64 is one of more than 65,535 files or 4 GB.
        if found[1] or int.from_bytes(found[2], "little") > DIRECTORY_BYTES:
            raise LoadError(f"{source}: the zip lists too many files; expected a dump of the data")


def dump_in(root: AnyPath, source: str, recognised_by: Collection[str]) -> AnyPath:
    """The folder that has a file that a layout is recognised by: `root`, or a folder there. If none has, `root`."""

    def has_dump(folder: AnyPath) -> bool:
        return any((folder / name).exists() for name in recognised_by)

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
        if not is_address(newurl):
            raise urllib.error.URLError("redirects to what is no address, or has a user or password in it")
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
    check_address(url, "the URL of a dump")
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

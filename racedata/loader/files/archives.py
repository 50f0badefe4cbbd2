"""Finds the files of a dump: in a folder, a zip, or a zip in a zip."""

import difflib
import errno
import hashlib
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from racedata.formats import abridged
from racedata.loader.errors import LoadError, no_space_for_temporary_files
from racedata.loader.files.csvfile import AnyPath
from racedata.loader.http import DOWNLOAD_BYTES

UNPACKED_BYTES = 2_000_000_000  # far above what any dump needs

# How alike two names are, from 0 to 1, if one is a slip for the other: `driver.csv` for
# `drivers.csv`, but not `sessions.csv` for `seasons.csv`.
ALIKE = 0.88


class Dump(NamedTuple):
    """An opened dump."""

    address: str  # folder, zip or URL, as given to the loader
    folder: AnyPath  # has the CSV files; a zipfile.Path is used like a pathlib.Path
    zip: IO[bytes] | None  # None if it is a folder

    @property
    def place(self) -> str:
        """Where the files are, for errors: `it`, or `its folder data/raw`."""
        if isinstance(self.folder, zipfile.Path):
            below = self.folder.at.rstrip("/") or "."
        else:
            below = os.path.relpath(self.folder, self.address)
        return "it" if below == "." else f"its folder {below}"

    def checksum(self, files: Iterable[AnyPath]) -> str:
        """SHA-256, in hexadecimal, of the zip; or of the files' joined contents."""
        if self.zip:
            return checksum_of(self.zip)
        digest = hashlib.sha256()
        for path in files:
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        return digest.hexdigest()


def files_of(
    dump: Dump, paths: Mapping[str, AnyPath], required: Sequence[str]
) -> dict[str, AnyPath]:
    """The files of a dump that exist, by table. Raises LoadError if a required file is missing."""
    for name in required:
        if not paths[name].exists():
            expected = ", ".join(paths[name].name for name in required)
            there = names_below(dump.folder)
            hint = "; ".join(not_read(dump, paths)) or (
                f"it and its folders have {abridged(there)[:300]}" if there else "it has no files"
            )
            raise LoadError(f"no {paths[name].name} in {dump.place}; expected {expected}; {hint}")
    return {name: path for name, path in paths.items() if path.exists()}


@contextmanager
def opened(address: str, recognised_by: Collection[str], names: Collection[str]) -> Iterator[Dump]:
    """The dump at a path: its folder has a file with one of the names in `recognised_by`.

    `names` are the names of published sources, for errors.
    """
    # In SOURCE=~/data.zip, make's shell leaves the ~ as it is.
    address = os.path.expanduser(address)
    if os.path.isdir(address):
        yield Dump(address, dump_in(Path(address), address, recognised_by), None)
    elif os.path.isfile(address):
        with open(address, "rb") as file, unzipped(file, address, recognised_by) as dump:
            yield dump
    else:
        what = "neither a file nor a folder"
        try:
            os.stat(address)
        except (FileNotFoundError, ValueError):  # ValueError: a NUL in it
            what = "not found"
        except OSError as error:  # such as no permission to enter its folder
            what = str(error.strerror)
        expected = "a folder of CSV files, a zip of them, the URL of such a zip, or a name"
        raise LoadError(f"{address}: {what}; expected {expected}: {', '.join(names)}")


def first_line(file: AnyPath) -> str:
    """The first line of a text file in a dump; empty if the file is missing."""
    if not file.is_file():
        return ""
    with file.open("rb") as lines:
        return lines.readline(200).decode("utf-8", "replace").strip()


def checksum_of(file: IO[bytes]) -> str:
    """SHA-256, in hexadecimal."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # any file that is open


@contextmanager
def unzipped(file: IO[bytes], address: str, recognised_by: Collection[str]) -> Iterator[Dump]:
    """The dump in a zip, or else in a zip in it."""

    def has_dump(name: str) -> bool:
        with zip_inside(archive, name, address) as inner:
            return bool(folders_with(inner, recognised_by))

    with zip_in(file, address) as archive, ExitStack() as stack:
        root = zipfile.Path(archive)
        if not folders_with(root, recognised_by):
            zips = [name for name in names_below(root) if name.lower().endswith(".zip")]
            zips = list(filter(has_dump, zips))  # one at a time is unpacked
            if len(zips) > 1:
                raise LoadError(f"{address}: has several dumps, in {abridged(zips)}; expected one")
            if zips:
                root = stack.enter_context(zip_inside(archive, zips[0], address))
        yield Dump(address, dump_in(root, address, recognised_by), file)


@contextmanager
def zip_inside(archive: zipfile.ZipFile, name: str, address: str) -> Iterator[zipfile.Path]:
    """A zip in a zip. It may be as large as a downloaded one."""
    if archive.getinfo(name).file_size > DOWNLOAD_BYTES:
        what = f"more than {DOWNLOAD_BYTES:,} bytes"
        raise LoadError(f"{address}: {name}: {what}; expected the zip of a dump")
    with tempfile.TemporaryFile() as file:
        try:
            with archive.open(name) as member:
                shutil.copyfileobj(member, file)
            file.flush()
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise no_space_for_temporary_files() from None
            raise
        with zip_in(file, f"{address}: {name}") as inner:
            yield zipfile.Path(inner)


@contextmanager
def zip_in(file: IO[bytes], address: str) -> Iterator[zipfile.ZipFile]:
    """A zip that does not unpack to too much. Turns its errors into a LoadError that names it."""
    file.seek(0)
    if file.read(2) == b"\x1f\x8b":
        what = "a gzip file, such as a .tar.gz"
        raise LoadError(f"{address}: {what}; expected a folder of CSV files or a zip of them")
    try:
        with zipfile.ZipFile(file) as archive:
            if any(member.flag_bits & 1 for member in archive.infolist()):
                raise LoadError(f"{address}: the zip is encrypted; expected one without a password")
            if sum(member.file_size for member in archive.infolist()) > UNPACKED_BYTES:
                raise LoadError(
                    f"{address}: unpacks to more than {UNPACKED_BYTES:,} bytes; "
                    "expected a dump of the data"
                )
            yield archive
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        UnicodeDecodeError,
    ) as error:
        raise LoadError(
            f"{address}: broken zip ({error}); expected a folder of CSV files or a zip of them"
        ) from None


def dump_in(root: AnyPath, address: str, recognised_by: Collection[str]) -> AnyPath:
    """The folder with a file that identifies a layout: `root` itself, or a folder in it; in a zip,
    such as that of a repository, also a folder further down. `root` if there is none.
    """
    folders = folders_with(root, recognised_by)
    if len(folders) > 1:
        names = ", ".join(sorted(folder.name for folder in folders))
        raise LoadError(f"{address}: has several dumps, in {names[:200]}; expected one")
    return folders[0] if folders else root


def folders_with(root: AnyPath, names: Collection[str]) -> list[AnyPath]:
    """The folders that have a file with one of these names; only those nearest to `root`."""
    if isinstance(root, zipfile.Path):
        paths = [PurePosixPath(name) for name in root.root.namelist()]
        places = {path.parent for path in paths if path.name in names}
        top = min((len(place.parts) for place in places), default=0)
        return [root.joinpath(*place.parts) for place in places if len(place.parts) == top]

    def has_one(folder: Path) -> bool:
        return any((folder / name).exists() for name in names)

    if has_one(root):
        return [root]
    return [path for path in root.iterdir() if path.is_dir() and has_one(path)]


def names_below(folder: AnyPath) -> list[str]:
    """The files that `folders_with` sees, those nearest to `folder` first."""
    if isinstance(folder, zipfile.Path):
        names = [
            name.removeprefix(folder.at)
            for name in folder.root.namelist()
            if name.startswith(folder.at) and not name.endswith("/")
        ]
    else:
        names = []
        for place, folders, files in os.walk(folder):
            below = os.path.relpath(place, folder)
            names += [os.path.normpath(os.path.join(below, file)) for file in files]
            if below != ".":
                folders.clear()
    # a message is one line
    names = [name for name in names if name.isprintable() and len(name) < 300]
    return sorted(names, key=lambda name: (name.count("/"), name))


def not_read(dump: Dump, paths: Mapping[str, AnyPath]) -> list[str]:
    """A line for the report that lists the files with nearly the name of one that is absent."""
    names = {path.name for path in paths.values()}
    absent = {letters_of_file(path.name): path.name for path in paths.values() if not path.exists()}
    alike = [
        f"{name[:80]} (did you mean {absent[like[0]]}?)"
        for name in names_below(dump.folder)
        if ".csv" in name.lower()  # difflib is slow
        and os.path.basename(name) not in names
        and (like := difflib.get_close_matches(letters_of_file(name), absent, 1, ALIKE))
    ]
    return [f"not read: {abridged(alike)}"] if alike else []


def letters_of_file(name: str) -> str:
    """A file's name without what is easily mistaken: `laptimescsv` of `old/Lap-Times.CSV`."""
    return re.sub("[^a-z0-9]", "", os.path.basename(name).lower())

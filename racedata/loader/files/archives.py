"""Finds the files of a dump: in a folder or a zip."""

import hashlib
import os
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from racedata.loader.errors import LoadError
from racedata.loader.files.csvfile import AnyPath

UNPACKED_BYTES = 2_000_000_000  # far above what any dump needs


class Dump(NamedTuple):
    """An opened dump."""

    address: str  # folder, zip or URL, as given to the loader
    folder: AnyPath  # has the CSV files; a zipfile.Path is used like a pathlib.Path
    zip: IO[bytes] | None  # None if it is a folder

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
            raise LoadError(f"no {paths[name].name} in it; expected {expected}")
    return {name: path for name, path in paths.items() if path.exists()}


@contextmanager
def opened(address: str, recognised_by: Collection[str], names: Collection[str]) -> Iterator[Dump]:
    """The dump at a path: its folder has a file with one of the names in `recognised_by`.

    `names` are the names of published sources, for errors.
    """
    if os.path.isdir(address):
        yield Dump(address, dump_in(Path(address), address, recognised_by), None)
    elif os.path.isfile(address):
        with open(address, "rb") as file, unzipped(file, address, recognised_by) as dump:
            yield dump
    else:
        what = "neither a file nor a folder" if os.path.exists(address) else "not found"
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
    """The dump in a zip. Turns errors of the zip into a LoadError that names it."""
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(member.file_size for member in archive.infolist()) > UNPACKED_BYTES:
                raise LoadError(
                    f"{address}: unpacks to more than {UNPACKED_BYTES:,} bytes; "
                    "expected a dump of the data"
                )
            yield Dump(address, dump_in(zipfile.Path(archive), address, recognised_by), file)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError) as error:
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
    else:
        found = (path for name in names for path in (root / name, *root.glob(f"*/{name}")))
        paths = [PurePosixPath(path.relative_to(root)) for path in found if path.exists()]
    places = {path.parent for path in paths if path.name in names}
    top = min((len(place.parts) for place in places), default=0)
    return [root.joinpath(*place.parts) for place in places if len(place.parts) == top]

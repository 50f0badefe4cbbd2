"""Writes the database as files for other programs: `racedata export FILE`.

It writes a dump, as a zip or a folder, or a copy of the database: whole or not at all. A module in
sources/ makes the files of the dump.
"""

import argparse
import os
import sqlite3
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from pathlib import Path
from typing import IO

from racedata import database
from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.archives import unzipped
from racedata.loader.files.csvfile import AnyPath
from racedata.loader.program import add_database_argument, path_of_file, run
from racedata.loader.replacement import copy_attributes
from racedata.loader.sources import EXPORT_FILES, EXPORT_LAYOUT, EXPORT_TITLE, write_dump
from racedata.loader.temporary import temporary_folder

SUFFIXES = (".zip", ".db")  # a target with another suffix is a folder


def is_export(folder: AnyPath) -> bool:
    """Whether `racedata export` has written the files of a folder or zip."""
    file = folder / "README.txt"
    if not file.is_file():
        return False
    with file.open("rb") as lines:
        return lines.readline(200).strip() == EXPORT_TITLE.encode()


def is_our_zip(path: Path) -> bool:
    """Whether a file is a zip that `racedata export` has written, or empty."""
    if not path.is_file():
        return False
    if not path.stat().st_size:
        return True
    try:
        with path.open("rb") as file, unzipped(file, str(path), []) as dump:
            return is_export(dump.folder)
    except LoadError:  # a broken or encrypted zip
        return False


def is_our_folder(path: Path) -> bool:
    """Whether a folder is empty, or has only files that `racedata export` has written."""
    if not path.is_dir():
        return False
    names = {each.name for each in path.iterdir()}
    return not names or (names <= EXPORT_FILES and is_export(path))


def export_zip(db: sqlite3.Connection, new: Path, progress: Progress) -> list[str]:
    """Writes a zip, the same for the same database."""
    with new.open("wb") as file:
        with zipfile.ZipFile(file, "w") as archive:

            def add(name: str, parts: Iterable[str]) -> None:
                info = zipfile.ZipInfo(name)  # dated 1 January 1980
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                with archive.open(info, "w") as member:
                    for part in parts:
                        member.write(part.encode())

            lines = write_dump(db, add, progress)
        sync(file)
    return lines


def export_folder(db: sqlite3.Connection, new: Path, progress: Progress) -> list[str]:
    """Writes the files into a folder."""

    def add(name: str, parts: Iterable[str]) -> None:
        with (new / name).open("w", encoding="utf-8", newline="") as file:
            file.writelines(parts)
            sync(file)

    lines = write_dump(db, add, progress)
    umask = os.umask(0)
    os.umask(umask)
    new.chmod(0o777 & ~umask)  # a temporary folder is private
    return lines


def sync(file: IO[str] | IO[bytes]) -> None:
    """Waits until all that was written to a file is on disk."""
    file.flush()
    os.fsync(file.fileno())


def export_database(content: database.FileContent, new: Path) -> list[str]:
    """Writes a copy of the database."""
    with new.open("wb") as file:
        file.write(content.database)
        file.write(content.checksum)
        sync(file)
    return []


def export(path: str, target: str, progress: Progress) -> list[str]:
    """Writes the database at `path` to a file or folder, whole or not at all. Returns a report.

    Raises LoadError, sqlite3.Error or OSError.
    """
    old = Path(os.path.realpath(target))
    suffix = next((suffix for suffix in SUFFIXES if target.lower().endswith(suffix)), "")
    check_target(old, suffix, Path(path))
    try:
        content = database.read(path)
    except database.DatabaseError as error:
        raise LoadError(str(error)) from None
    # Not with `replacement`: an export and a load need not wait for each other.
    with folder_beside(old) as folder:
        new = folder / old.name if suffix else folder
        try:
            if suffix == ".db":
                lines = export_database(content, new)
            else:
                write = export_zip if suffix == ".zip" else export_folder
                with closing(content.connect()) as db:
                    lines = write(db, new, progress)
        except OSError as error:
            error.filename = error.filename or target  # writing to a full disk names no file
            raise
        if old.exists():
            copy_attributes(old, new)
        put_in_place(new, old)
    return [*lines, f"{target}: {size_of(old):,} bytes"]


def check_target(old: Path, suffix: str, source: Path) -> None:
    """Raises LoadError if an export cannot be written there, or would replace something else."""
    if not old.parent.is_dir():
        raise LoadError(f"{old.parent}: not a folder; expected an existing folder for {old.name}")
    if not os.path.lexists(old):
        return
    if suffix == ".db" and source.exists() and os.path.samefile(old, source):
        raise LoadError(f"{old}: is the database itself; expected another file")
    is_ours, what = {
        ".db": (database.is_replaceable, "a racedata database"),
        ".zip": (is_our_zip, "a zip that racedata has exported"),
    }.get(suffix, (is_our_folder, "a folder that is empty or that racedata has exported"))
    if not is_ours(old):
        raise LoadError(f"{old}: exists and is not {what}; remove it, or name another file")


def folder_beside(path: Path) -> AbstractContextManager[Path]:
    """A temporary folder in the same folder. The next export removes what a killed one left."""
    return temporary_folder(f".{path.name}.racedata-", "", path.parent)


def put_in_place(new: Path, old: Path) -> None:
    """Replaces the old file or folder, if any, with the new one."""
    if old.is_dir() and any(old.iterdir()):
        # Only an empty folder can be replaced in one step.
        with folder_beside(old) as before:
            os.rename(old, before)
            try:
                os.rename(new, old)
            except BaseException:
                with suppress(OSError):  # a signal may arrive after the replacement
                    os.rename(before, old)
                raise
    else:
        os.replace(new, old)
    descriptor = os.open(old.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def size_of(path: Path) -> int:
    """The size of a file, or of all files in a folder, in bytes."""
    return sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="racedata export",
        description="Write the data as files for other programs.",
        epilog="An export replaces an earlier export, but no other file or folder; "
        "a copy of the database replaces any racedata database.",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        type=path_of_file,
        help=(
            f"what to write: a name that ends with .zip gives {EXPORT_LAYOUT}, one that ends with "
            ".db a copy of the database, and any other name a folder with the files of the dump"
        ),
    )
    add_database_argument(parser)
    parsed = parser.parse_args(arguments)
    run("export", parsed.file, partial(export, parsed.database, parsed.file))

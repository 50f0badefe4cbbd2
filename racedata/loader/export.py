"""Writes the database as files for other programs: `racedata export FILE`.

It writes a dump, as a zip or a folder, or a copy of the database: whole or not at all. A module in
sources/ makes the files of the dump.
"""

import argparse
import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

from racedata import database
from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.archives import unzipped
from racedata.loader.files.csvfile import AnyPath
from racedata.loader.program import add_database_argument, path_of_file, run
from racedata.loader.replacement import copy_attributes
from racedata.loader.sources import EXPORT_FILES, EXPORT_LAYOUT, EXPORT_TITLES, Add, write_dump
from racedata.loader.temporary import temporary_folder

SUFFIXES = (".zip", ".db")  # a target with another suffix is a folder


def is_export(folder: AnyPath) -> bool:
    """Whether `racedata export` has written the files of a folder or zip."""
    file = folder / "README.txt"
    if not file.is_file():
        return False
    with file.open("rb") as lines:
        return lines.readline(200).decode("utf-8", "replace").strip() in EXPORT_TITLES


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


@contextmanager
def adding_to_zip(new: Path) -> Iterator[Add]:
    """Writes a zip, the same for the same files."""
    with new.open("wb") as file:
        with zipfile.ZipFile(file, "w") as archive:

            def add(name: str, parts: Iterable[str]) -> None:
                info = zipfile.ZipInfo(name)  # dated 1 January 1980
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                with archive.open(info, "w") as member:
                    for part in parts:
                        member.write(part.encode())

            yield add
        sync(file)


@contextmanager
def adding_to_folder(new: Path) -> Iterator[Add]:
    """Writes the files into a folder."""

    def add(name: str, parts: Iterable[str]) -> None:
        with (new / name).open("w", encoding="utf-8", newline="") as file:
            file.writelines(parts)
            sync(file)

    yield add
    umask = os.umask(0)
    os.umask(umask)
    new.chmod(0o777 & ~umask)  # a temporary folder is private


def sync(file: IO[str] | IO[bytes]) -> None:
    """Waits until all that was written to a file is on disk."""
    file.flush()
    os.fsync(file.fileno())


def export_database(content: database.FileContent, new: Path) -> None:
    """Writes a copy of the database."""
    with new.open("wb") as file:
        file.write(content.database)
        file.write(content.checksum)
        sync(file)


class Target:
    """A place where an export writes: nothing is replaced before the export is complete."""

    def __init__(self, name: str, source: Path) -> None:
        """Raises LoadError if nothing can be written there, or if something else would be lost."""
        self.name, self.old = name, Path(os.path.realpath(name))
        self.suffix = next((each for each in SUFFIXES if name.lower().endswith(each)), "")
        check_target(self.old, self.suffix, source)

    @contextmanager
    def naming_full_disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = error.filename or self.name  # writing to a full disk names no file
            raise

    def new_in(self, folder: Path) -> Path:
        return folder / self.old.name if self.suffix else folder

    def adding(self, new: Path) -> AbstractContextManager[Add]:
        return adding_to_zip(new) if self.suffix == ".zip" else adding_to_folder(new)

    def replace_with(self, new: Path) -> str:
        """Puts the new file or folder in place. Returns a line for the report."""
        if self.old.exists():
            copy_attributes(self.old, new)
        put_in_place(new, self.old)
        return f"{self.name}: {size_of(self.old):,} bytes"


def export(path: str, target: str, progress: Progress, more: str | None = None) -> list[str]:
    """Writes the database at `path` to a file or folder, whole or not at all; and what such a
    dump cannot have to `more`. Returns a report.

    Raises LoadError, sqlite3.Error or OSError.
    """
    first = Target(target, Path(path))
    rest = Target(more, Path(path)) if more else None
    if rest and ".db" in (first.suffix, rest.suffix):
        raise LoadError("--more: expected two zips or folders; a copy of the database is whole")
    if rest and rest.old == first.old:
        raise LoadError(f"--more {more}: is FILE itself; expected another file")
    try:
        content = database.read(path)
    except database.DatabaseError as error:
        raise LoadError(str(error)) from None
    # Not with `replacement`: an export and a load need not wait for each other.
    with ExitStack() as stack:
        new = first.new_in(stack.enter_context(folder_beside(first.old)))
        if first.suffix == ".db":
            with first.naming_full_disk():
                export_database(content, new)
            return [first.replace_with(new)]
        new_rest = rest.new_in(stack.enter_context(folder_beside(rest.old))) if rest else None
        with ExitStack() as writing, closing(content.connect()) as db:
            writing.enter_context(first.naming_full_disk())
            add = writing.enter_context(first.adding(new))
            add_more = writing.enter_context(rest.adding(new_rest)) if rest and new_rest else None
            lines = write_dump(db, add, add_more, progress)
        lines.append(first.replace_with(new))
        if rest and new_rest:
            lines.append(rest.replace_with(new_rest))
    return lines


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
    parser.add_argument(
        "--more",
        metavar="MORE",
        type=path_of_file,
        help="another zip or folder, for what such a dump cannot have: practice, sprint "
        "qualifying, corrections, and rows that lack a value that its tables require; "
        "`racedata load FILE MORE` loads the whole",
    )
    add_database_argument(parser)
    parsed = parser.parse_args(arguments)
    run("export", parsed.file, partial(export, parsed.database, parsed.file, more=parsed.more))

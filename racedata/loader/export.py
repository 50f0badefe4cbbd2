"""Writes the database as a dump for other programs: `racedata export FILE`.

A dump is a zip, written whole or not at all. A module in sources/ makes its files.
"""

import argparse
import os
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from io import BytesIO
from pathlib import Path

from racedata import database
from racedata.hints import MOVE
from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.archives import first_line, unzipped
from racedata.loader.program import run
from racedata.loader.replacement import replace_file
from racedata.loader.sources import EXPORT_LAYOUT, EXPORT_TITLES, write_dump
from racedata.loader.temporary import temporary_folder
from racedata.settings import FILE, add_database_argument, argument

SUFFIX = ".zip"


def is_our_zip(path: Path) -> bool:
    """Whether a file is a zip that `racedata export` has written, or empty."""
    if not path.is_file():
        return False
    if not path.stat().st_size:
        return True
    try:
        with path.open("rb") as file, unzipped(file, str(path), []) as dump:
            return first_line(dump.folder / "README.txt") in EXPORT_TITLES
    except LoadError:  # a broken or encrypted zip
        return False


class ExportFile:
    """A zip, in memory until the export is complete: nothing is replaced before."""

    def __init__(self, name: str) -> None:
        """Raises LoadError if nothing can be written there, or if something else would be lost."""
        self.name, self.path = name, Path(os.path.realpath(name))
        if not name.lower().endswith(SUFFIX):
            raise LoadError(f"{name}: expected a name that ends with {SUFFIX}")
        if not self.path.parent.is_dir():
            what = f"not a folder; expected an existing folder for {self.path.name}"
            raise LoadError(f"{self.path.parent}: {what}")
        if os.path.lexists(self.path) and not is_our_zip(self.path):
            what = "exists and is not a zip that racedata has exported"
            raise LoadError(f"{self.path}: {what}; {MOVE}")
        self.content = BytesIO()
        self.archive = zipfile.ZipFile(self.content, "w")

    def add(self, name: str, parts: Iterable[str]) -> None:
        """Adds a file. The zip is the same for the same files."""
        info = zipfile.ZipInfo(name)  # dated 1 January 1980
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
        with self.archive.open(info, "w") as member:
            for part in parts:
                member.write(part.encode())

    def write(self, path: Path) -> None:
        self.archive.close()
        try:
            with path.open("wb") as file:
                file.write(self.content.getbuffer())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # on a full disk, it names no file
            error.filename = error.filename or self.name
            raise


def export(path: str, target: str, progress: Progress, more: str | None = None) -> list[str]:
    """Writes the database at `path` to a zip, whole or not at all; and what such a dump cannot
    have to `more`. Returns a report. Raises LoadError, sqlite3.Error or OSError.
    """
    dump, rest = ExportFile(target), ExportFile(more) if more else None
    files = [dump, *([rest] if rest else [])]
    if rest and rest.path == dump.path:
        raise LoadError(f"--more {more}: is FILE itself; expected another file")
    try:
        content = database.read(path)
    except database.DatabaseError as error:
        raise LoadError(str(error)) from None
    with closing(content.connect()) as db:
        lines = write_dump(db, dump.add, rest.add if rest else None, progress)
    # Not with `replacement`: an export and a load need not wait for each other.
    with ExitStack() as stack:
        folders = [stack.enter_context(temporary_folder(file.path.parent)) for file in files]
        for file, folder in zip(files, folders):
            file.write(folder / "new.zip")
        for file, folder in zip(files, folders):
            replace_file(folder / "new.zip", file.path)
    return [*lines, *(f"{file.name}: {file.path.stat().st_size:,} bytes" for file in files)]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="racedata export",
        description="Write the data as a dump for other programs.",
        epilog="An export replaces an earlier export, but no other file. `racedata export site "
        "FOLDER --base-url URL` writes all answers of the service as files for a web server.",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        type=argument(FILE),
        help=f"the zip to write, whose name ends with {SUFFIX}: {EXPORT_LAYOUT}",
    )
    parser.add_argument(
        "--more",
        metavar="MORE",
        type=argument(FILE),
        help="another zip, for what such a dump cannot have: practice, sprint qualifying, "
        "corrections, and rows that lack a value that its tables require; "
        "`racedata load FILE MORE` loads the whole",
    )
    add_database_argument(parser)
    parsed = parser.parse_args(arguments)
    run("export", parsed.file, partial(export, parsed.database, parsed.file, more=parsed.more))

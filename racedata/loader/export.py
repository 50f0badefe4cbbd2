"""Writes the database as a dump for other programs: `racedata export FILE`.

A dump is a zip, written whole or not at all. A module in sources/ makes its files.
"""

import argparse
import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from racedata import database
from racedata.hints import MOVE
from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.archives import first_line, unzipped
from racedata.loader.program import run
from racedata.loader.replacement import replace_file
from racedata.loader.sources import EXPORT_LAYOUT, EXPORT_TITLES, Add, write_dump
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
    """A place where an export writes: nothing is replaced before the export is complete."""

    def __init__(self, name: str) -> None:
        """Raises LoadError if nothing can be written there, or if something else would be lost."""
        self.name, self.old = name, Path(os.path.realpath(name))
        if not name.lower().endswith(SUFFIX):
            raise LoadError(f"{name}: expected a name that ends with {SUFFIX}")
        if not self.old.parent.is_dir():
            what = f"not a folder; expected an existing folder for {self.old.name}"
            raise LoadError(f"{self.old.parent}: {what}")
        if os.path.lexists(self.old) and not is_our_zip(self.old):
            what = "exists and is not a zip that racedata has exported"
            raise LoadError(f"{self.old}: {what}; {MOVE}")

    @contextmanager
    def adding(self, new: Path) -> Iterator[Add]:
        """Writes the zip at `new`, the same for the same files."""
        with self.named_in_errors(), new.open("wb") as file:
            with zipfile.ZipFile(file, "w") as archive:

                def add(name: str, parts: Iterable[str]) -> None:
                    info = zipfile.ZipInfo(name)  # dated 1 January 1980
                    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                    # not the other zip, which may be open too
                    with self.named_in_errors(), archive.open(info, "w") as member:
                        for part in parts:
                            member.write(part.encode())

                yield add
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Names this place in an error that names no file, as on a full disk."""
        try:
            yield
        except OSError as error:
            error.filename = error.filename or self.name
            raise

    def replace_with(self, new: Path) -> str:
        """Puts the new file in place. Returns a line for the report."""
        replace_file(new, self.old)
        return f"{self.name}: {self.old.stat().st_size:,} bytes"


def export(path: str, target: str, progress: Progress, more: str | None = None) -> list[str]:
    """Writes the database at `path` to a zip, whole or not at all; and what such a dump cannot
    have to `more`. Returns a report. Raises LoadError, sqlite3.Error or OSError.
    """
    targets = [ExportFile(target), *([ExportFile(more)] if more else [])]
    if len({each.old for each in targets}) < len(targets):
        raise LoadError(f"--more {more}: is FILE itself; expected another file")
    try:
        content = database.read(path)
    except database.DatabaseError as error:
        raise LoadError(str(error)) from None
    # Not with `replacement`: an export and a load need not wait for each other.
    with ExitStack() as stack:
        new = [stack.enter_context(folder_beside(each.old)) / each.old.name for each in targets]
        with ExitStack() as writing, closing(content.connect()) as db:
            adds = [writing.enter_context(each.adding(path)) for each, path in zip(targets, new)]
            lines = write_dump(db, adds[0], adds[1] if more else None, progress)
        return [*lines, *(each.replace_with(path) for each, path in zip(targets, new))]


def folder_beside(path: Path) -> AbstractContextManager[Path]:
    """A temporary folder in the same folder. The next export removes what a killed one left."""
    return temporary_folder(f".{path.name}.racedata-", "", path.parent)


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

"""Builds the database from its sources: `racedata load`.

The first source is the base; the others fill its gaps, and add the seasons that it lacks. What
refreshes have added to the old database stays, unless the base is newer. Without an argument, the
sources are those of the old database. If they fail, and an earlier version of racedata built it, it
is built from its own tables.
"""

import argparse
import os
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from racedata.database import (
    OLDEST_VERSION,
    can_be_built_again,
    default_path,
    is_missing,
    is_newer,
    is_older,
)
from racedata.loader.addition import Addition
from racedata.loader.build import Report, build
from racedata.loader.copies import install_copy
from racedata.loader.corrections import CORRECTIONS, add_corrections_argument
from racedata.loader.errors import LoadError, Progress
from racedata.loader.existing import ExistingDatabase, open_read_only
from racedata.loader.notes import copied_from, note_copied
from racedata.loader.program import add_database_argument, run
from racedata.loader.replacement import copy_attributes, replaced_file, replacement
from racedata.loader.report import seasons_of
from racedata.loader.rules import is_fresher
from racedata.loader.sources import PUBLISHED, Source, addresses_in, source_at, whole_database
from racedata.loader.stage import Fill
from racedata.loader.temporary import temporary_folder

SAMPLE = str(Path(__file__).resolve().parent.parent / "sample")


def load(
    sources: Sequence[str],
    database: str,
    corrections: Path | None,
    progress: Progress,
    replace: bool = False,
) -> list[str]:
    """Builds `database` from sources, and from what refreshes have added to it. Returns a report.

    Without sources, it uses the sources of the existing database, or the sample if it is missing.
    If the file cannot be read, it raises LoadError, unless it may `replace` such a file. It also
    raises LoadError, sqlite3.Error or OSError if the load fails.
    """
    if whole := whole_database(sources or copied_from(Path(database))):
        return load_whole(whole, database, progress, replace)
    lines, additions = [], []
    with replacement(database) as new, ExitStack() as stack:
        existing = existing_at(database, replace)
        if existing:
            stack.enter_context(closing(existing))
        sources = sources or recorded_sources(existing)
        base = [stack.enter_context(source_at(sources[0]).opened(progress))]
        for source in sources[1:]:
            additional = source_at(source)
            if additional.is_rest:
                base.append(stack.enter_context(additional.opened(progress)))
                continue
            try:
                fill = stack.enter_context(additional.opened(progress))
            except LoadError as error:
                if not existing or source not in recorded_sources(existing):
                    raise
                lines.append(f"{error}; the records of this source in the database are kept")
                kept = partial(existing.fill_with, source)
                additions.append(Addition(kept, has_calendars=True))
            else:
                additions.append(Addition(fill, has_calendars=True))
        if existing and existing.was_refreshed:
            refreshed = partial(existing.fill_with, None)
            additions.append(Addition(refreshed, is_fresher, has_calendars=True))
        is_sample = os.path.realpath(sources[0]) == os.path.realpath(SAMPLE)
        report = build(
            new, in_turn(base), additions, corrections, is_sample=is_sample, progress=progress
        )
    last = f"{database}: {report.seasons} from {' and '.join(sources)}"
    return [*lines, *report.lines, *report.merged, last]


def in_turn(fills: Sequence[Fill]) -> Fill:
    """What fills one stage with an export and its rest: both have the same ids."""
    return lambda stage: [line for fill in fills for line in fill(stage)]


def load_whole(source: Source, database: str, progress: Progress, replace: bool) -> list[str]:
    """Replaces `database` with another one, as it is, unless that is older. Returns a report."""
    path = Path(database)
    if os.path.realpath(source.address) == os.path.realpath(database):
        raise LoadError(f"{database}: is the database itself; expected another file")
    with source.copied(progress) as copy, replacement(database) as new, ExitStack() as stack:
        existing = None if replace else existing_at(database, replace)
        if existing:
            stack.enter_context(closing(existing))
        install_copy(copy, new, existing)
    note_copied(path, source.name, copy.etag)
    with closing(open_read_only(path)) as db:
        return [f"{database}: {seasons_of(db)} from {source.address}"]


def existing_at(database: str, replace: bool) -> ExistingDatabase | None:
    """The database that a load replaces; None if it is missing.

    If the file cannot be read, it raises LoadError or sqlite3.Error, unless a load may `replace`
    such a file.
    """
    if is_missing(Path(database)):
        return None
    try:
        return ExistingDatabase(Path(database), OLDEST_VERSION)
    except (LoadError, sqlite3.Error):
        if replace:
            return None
        raise


def recorded_sources(existing: ExistingDatabase | None) -> list[str]:
    """The sources that a database was built from; the sample if it is missing."""
    if not existing:
        return [SAMPLE]
    if existing.is_sample:  # the sample may be in another folder now
        return [SAMPLE, *existing.loaded_sources[1:]]
    return existing.loaded_sources


def load_or_rebuild(database: str, corrections: Path | None, progress: Progress) -> list[str]:
    """Builds `database` from its recorded sources.

    If that fails and an earlier version built it, builds it from its own tables. Returns a report.
    Raises what `load` does.
    """
    try:
        return load([], database, corrections, progress)
    except (LoadError, OSError) as error:
        if not can_be_built_again(Path(database)):
            raise
        return rebuild(database, corrections, progress, f"its source failed: {error}")


def rebuild(database: str, corrections: Path | None, progress: Progress, reason: str) -> list[str]:
    """Builds `database` from its own tables, which may be of an older version. Returns a report."""
    with replacement(database) as new:
        report = build_again(Path(database), new, corrections, progress)
    return [*report.lines, f"{database}: {report.seasons} from its own tables, because {reason}"]


def build_again(old: Path, new: Path, corrections: Path | None, progress: Progress) -> Report:
    """Builds a database at `new` from the tables of the one at `old`."""
    with closing(ExistingDatabase(old, OLDEST_VERSION)) as existing:
        return build(
            new, existing.fill, [], corrections, is_sample=existing.is_sample, progress=progress
        )


def make_default_folder(database: str) -> None:
    """Makes the folder of the database if it is the default place."""
    if database == default_path(os.environ):
        os.makedirs(os.path.dirname(database), exist_ok=True)


def provide(database: str) -> None:
    """Builds what the service can begin with: the sample, or the database of an earlier version.

    It does not wait for a load or refresh that is running, which takes minutes and replaces the
    file. Exits as `run` does.
    """

    def work(progress: Progress) -> list[str]:
        path = Path(os.path.realpath(database))
        path.parent.mkdir(parents=True, exist_ok=True)
        before = replaced_file(database)
        has_database = not is_missing(path)
        # Not with `replacement`: a load that is running has locked the folder.
        with temporary_folder(f".{path.name}.", path.name, path.parent) as folder:
            new = folder / path.name
            if has_database:
                build_again(path, new, CORRECTIONS, progress)
                copy_attributes(path, new)
            else:
                with source_at(SAMPLE).opened(progress) as fill:
                    build(new, fill, [], CORRECTIONS, is_sample=True, progress=progress)
            # If the file has changed, a load has ended, and its data is better.
            if replaced_file(database) == before:
                os.replace(new, path)
        return []

    run("load", database, work)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="racedata load", description="Build the database from one or more sources."
    )
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="SOURCE",
        help="a folder of CSV files, a zip of them, the http(s) URL of such a zip, or a name: "
        f"{', '.join(PUBLISHED)}. The first source is the base; the others fill its gaps, and add "
        "the seasons that it lacks. A file or URL that ends with .db is a database, which is "
        "copied unchanged. By default, load reads the sources of the existing database again, or "
        "else the sample",
    )
    parser.add_argument(
        "--if-older",
        action="store_true",
        help="change nothing unless an earlier version of racedata built the database",
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="replace the existing database even if it is damaged, if a newer version of racedata "
        "built it, or if it is newer than the database to copy; the records that refreshes added "
        "to it are lost",
    )
    add_database_argument(parser)
    add_corrections_argument(parser)
    parsed = parser.parse_args(arguments)

    def work(progress: Progress) -> list[str]:
        path = Path(parsed.database)
        if parsed.if_older and not is_older(path):
            if is_missing(path):
                what = "the database does not exist"
            else:
                what = (
                    "a newer version built it"
                    if is_newer(path)
                    else "it was not built by an earlier version"
                )
            return [f"{parsed.database}: {what}; nothing was changed"]
        make_default_folder(parsed.database)
        sources = [address for text in parsed.sources for address in addresses_in(text)]
        if not sources:
            return load_or_rebuild(parsed.database, parsed.corrections, progress)
        return load(sources, parsed.database, parsed.corrections, progress, parsed.replace)

    run("load", parsed.database, work)

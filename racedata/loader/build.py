"""Builds the database from its sources: `racedata load`.

A source (sources/) fills a Stage (stage.py). The first source is the base; merge.py adds the
others. Here, the Stage becomes a database, with the tables of schema.sql, in a new file that
replaces the old one at the very end.

What refreshes have added to the old database stays, unless the base is newer. Without an argument,
it uses the sources of the old database. If they fail, and an earlier version of racedata built
it, it is built from its own tables.
"""

import argparse
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from racedata.database import (
    OLDEST_VERSION,
    SCHEMA,
    can_be_built_again,
    default_path,
    is_missing,
    is_newer,
    is_older,
    write_checksum,
)
from racedata.kinds import KINDS
from racedata.loader.copies import take
from racedata.loader.corrections import (
    CORRECTIONS,
    add_corrections_argument,
    apply_corrections,
    corrected,
    store_corrections,
)
from racedata.loader.errors import LoadError, Progress, counted
from racedata.loader.existing import ExistingDatabase, open_read_only
from racedata.loader.merge import Addition, filled_apart, merge
from racedata.loader.notes import copied_from, note_copied
from racedata.loader.program import add_database_argument, run
from racedata.loader.replacement import copy_attributes, replaced_file, replacement
from racedata.loader.rules import is_fresher
from racedata.loader.sources import PUBLISHED, Source, addresses_in, source_at, whole_database
from racedata.loader.sql import column_names
from racedata.loader.stage import Stage
from racedata.loader.tables import COMPUTED, TABLES, Table
from racedata.loader.temporary import temporary_folder
from racedata.loader.values import utc_now

SAMPLE = str(Path(__file__).resolve().parent.parent / "sample")

# One row per season, driver and constructor: the driver's first entry for it, and all constructors
# up to that entry. In a race, entries without a result come last. (The bare column `round` comes
# from the row with min(number).)
CONSTRUCTORS_SO_FAR = (
    """CREATE TEMP TABLE constructors_so_far AS
           SELECT year, driverId, round, number, group_concat(constructorId, ' ')
               OVER (PARTITION BY year, driverId ORDER BY number) AS constructors
           FROM (SELECT year, driverId, constructorId, min(number) AS number, round
                 FROM (SELECT *, row_number() OVER (
                               ORDER BY round, resultId NULLS LAST, constructorId) AS number
                       FROM (SELECT raceId, driverId, constructorId, resultId FROM stage.results
                             UNION ALL
                             SELECT raceId, driverId, constructorId, NULL FROM stage.entries)
                           JOIN stage.races USING (raceId))
                 GROUP BY year, driverId, constructorId)""",
    "CREATE INDEX constructors_so_far_order ON constructors_so_far (year, driverId, number)",
)


class Report(NamedTuple):
    """The report of a build."""

    lines: list[str]  # about the base and all sources
    merged: list[str]  # about the additions, and what could not be merged
    seasons: str  # `1950 to 2025 (76 seasons, 1,149 races)`


def build(
    path: Path,
    fill: Callable[[Stage], list[str]],
    additions: Sequence[Addition],
    corrections: Path | None,
    is_sample: bool,
    progress: Progress,
) -> Report:
    """Builds the database at `path` from what `fill` puts into a Stage, and the additions to it.

    Raises LoadError, sqlite3.Error or OSError.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        # An unfinished file is deleted, so it needs no journal.
        db.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE"
        )
        db.executescript(SCHEMA)
        stage = Stage(db, progress)
        db.execute("BEGIN")
        lines = fill(stage)
        if corrections:
            lines += apply_corrections(stage, corrections)
        stage.check_calendars()
        merged = []
        for addition in additions:
            # Correct an additional source before merging: races are matched by date.
            with filled_apart(corrected(addition.fill, corrections), progress) as (staged, remarks):
                progress("merging")
                merged += [*remarks, *merge(stage, staged, addition)]
        for statement in CONSTRUCTORS_SO_FAR:
            db.execute(statement)
        for table in TABLES:
            progress(f"numbering {table.name}")
            store(stage, table)
        store_corrections(stage)
        db.execute(
            "INSERT INTO seasons (year) SELECT year FROM races EXCEPT SELECT year FROM seasons"
        )
        db.execute(
            "INSERT OR IGNORE INTO entries SELECT raceId, driverId, constructorId FROM results"
        )
        describe(db, is_sample)
        for table in TABLES:
            if table.required and db.execute(f"SELECT 1 FROM {table.name}").fetchone() is None:
                (source,) = db.execute("SELECT address FROM sources ORDER BY sourceId").fetchone()
                raise LoadError(
                    f"{source}: no {table.name} that can be served; expected at least one"
                )
        lines = [*table_of_rows(stage), *lines, *what_sources_gave(db), *unknown_values(db)]
        report = Report(lines, merged, seasons_of(db))
        db.execute("COMMIT")
        db.execute("DETACH stage")
        db.execute("ANALYZE")  # statistics for the query planner
        db.execute("VACUUM")  # numbering leaves pages partly empty
    write_checksum(path)
    return report


def store(stage: Stage, table: Table) -> None:
    """Copies a staged table into the database, in order and with its computed columns."""
    db = stage.db
    stored = column_names(db, table.name)
    names = ", ".join(name for name in table.names if name in stored)
    if not table.is_numbered:
        db.execute(f"INSERT INTO {table.name} ({names}) SELECT {names} FROM stage.{table.name}")
        return
    # SQLite numbers rows from 1 if they are inserted into an empty table without a value for its
    # INTEGER PRIMARY KEY.
    if KINDS[table.name].is_numbered_by_race:
        db.execute(f"CREATE TEMP TABLE numbered (record INTEGER PRIMARY KEY, {names})")
        for race in db.execute("SELECT raceId FROM races ORDER BY raceId").fetchall():
            db.execute(
                f"""INSERT INTO numbered ({names})
                    SELECT {names} FROM stage.{table.name}
                    WHERE raceId = ? ORDER BY {table.order}""",
                race,
            )
            db.execute(
                f"""INSERT INTO {table.name} (record, {names})
                    SELECT record, {names} FROM numbered ORDER BY record"""
            )
            db.execute("DELETE FROM numbered")
        db.execute("DROP TABLE numbered")
    else:
        computed = {name: sql for name, sql in COMPUTED.items() if name in stored}
        db.execute(
            f"""INSERT INTO {table.name} ({", ".join([names, *computed])})
                SELECT {", ".join([names, *computed.values()])}
                FROM stage.{table.name} AS staged
                    JOIN (SELECT raceId, year, round FROM races) AS race USING (raceId)
                ORDER BY {table.order}"""
        )


def describe(db: sqlite3.Connection, is_sample: bool) -> None:
    """Fills the tables that describe the database."""
    for table in TABLES:
        db.execute(f"INSERT INTO row_counts SELECT ?, count(*) FROM {table.name}", (table.name,))
    db.execute("INSERT INTO build VALUES (?, ?)", (utc_now(), is_sample))
    db.execute("INSERT INTO sources SELECT * FROM stage.sources")
    db.execute("INSERT INTO origins SELECT * FROM stage.origins")
    for (id,) in db.execute("SELECT sourceId FROM sources").fetchall():
        db.execute("UPDATE sources SET gave = ? WHERE sourceId = ?", (gave(db, id), id))
    db.execute(
        """INSERT INTO coverage SELECT kind, min(year), max(year), count(*), (
               SELECT count(DISTINCT raceId) FROM origins AS other JOIN races AS run USING (raceId)
               WHERE other.kind IN ('results', origins.kind)
                   AND run.year BETWEEN min(races.year) AND max(races.year))
           FROM origins JOIN races USING (raceId)
           WHERE kind NOT IN ('races', 'sessions') GROUP BY kind"""
    )


def gave(db: sqlite3.Connection, source: int) -> str:
    """Which records are from a source: `results of 1,149 races (1950 to 2025), qualifying of …`."""
    counts = {
        kind: (races, first, last)
        for kind, races, first, last in db.execute(
            """SELECT kind, count(*), min(year), max(year) FROM origins JOIN races USING (raceId)
               WHERE sourceId = ? GROUP BY kind""",
            (source,),
        )
    }
    texts = []
    for kind in ("sessions", *KINDS):
        if kind in counts:
            races, first, last = counts[kind]
            seasons = f"{first} to {last}" if first < last else f"{first}"
            texts.append(f"{kind.replace('_', ' ')} of {counted(races, 'race')} ({seasons})")
    return ", ".join(texts)


def what_sources_gave(db: sqlite3.Connection) -> Iterator[str]:
    """A line for each source, if there are several."""
    rows = db.execute("SELECT name, gave FROM sources ORDER BY sourceId").fetchall()
    for name, gave in rows if len(rows) > 1 else ():
        yield f"{name}: {gave or 'nothing'}"


def table_of_rows(stage: Stage) -> Iterator[str]:
    """How many rows of each table were read, and how many are stored: lines for the report."""
    yield f"{'table':<22}{'rows read':>12}{'rows stored':>13}"
    stored = dict(stage.db.execute("SELECT name, rows FROM row_counts"))
    for table in TABLES:
        rows_read = f"{stage.rows[table.name]:,}" if table.name in stage.rows else "no file"
        yield f"{table.name:<22}{rows_read:>12}{stored[table.name]:>13,}"


def unknown_values(db: sqlite3.Connection) -> Iterator[str]:
    """A line that counts the unknown values of columns that are usually known, if there are any."""
    counts = []
    for table in TABLES:
        for column in table.usually_known:
            rows, last = db.execute(
                f"""SELECT count(*), max(year * 1000 + round)
                    FROM {table.name} JOIN races USING (raceId)
                    WHERE {table.name}.{column} IS NULL"""
            ).fetchone()
            if rows:
                year, round = divmod(last, 1000)
                counts.append(f"{table.name}.{column} in {rows:,} rows (the last: {year}/{round})")
    if counts:
        yield f"unknown: {', '.join(counts)}"


def seasons_of(db: sqlite3.Connection) -> str:
    """`1950 to 2025 (76 seasons, 1,149 races)`."""
    counts = db.execute(
        "SELECT min(year), max(year), count(DISTINCT year), count(*) FROM races"
    ).fetchone()
    return "{} to {} ({} seasons, {:,} races)".format(*counts)


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
        fill_base = stack.enter_context(source_at(sources[0]).opened(progress))
        for source in sources[1:]:
            try:
                fill = stack.enter_context(source_at(source).opened(progress))
            except LoadError as error:
                if not existing or source not in recorded_sources(existing):
                    raise
                lines.append(f"{error}; its records in the database are kept")
                additions.append(Addition(partial(existing.fill_with, source)))
            else:
                additions.append(Addition(fill))
        if existing and existing.was_refreshed:
            refreshed = partial(existing.fill_with, None)
            additions.append(Addition(refreshed, is_fresher, has_calendars=True))
        is_sample = os.path.realpath(sources[0]) == os.path.realpath(SAMPLE)
        report = build(new, fill_base, additions, corrections, is_sample, progress)
    last = f"{database}: {report.seasons} from {' and '.join(sources)}"
    return [*lines, *report.lines, *report.merged, last]


def load_whole(source: Source, database: str, progress: Progress, replace: bool) -> list[str]:
    """Replaces `database` with another one, as it is, unless that is older. Returns a report."""
    path = Path(database)
    if os.path.realpath(source.address) == os.path.realpath(database):
        raise LoadError(f"{database}: is the database itself; expected another file")
    with source.copied(progress) as copy, replacement(database) as new, ExitStack() as stack:
        existing = None if replace else existing_at(database, replace)
        if existing:
            stack.enter_context(closing(existing))
        take(copy, new, existing)
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
    if existing.is_sample:  # which may be in another folder now
        return [SAMPLE, *existing.loaded_sources[1:]]
    return existing.loaded_sources


def load_or_rebuild(database: str, corrections: Path | None, progress: Progress) -> list[str]:
    """Builds `database` from its recorded sources.

    If that fails and it is older, builds it from its own tables. Returns a report. Raises what
    `load` does.
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
        return build(new, existing.fill, [], corrections, existing.is_sample, progress)


def make_default_folder(database: str) -> None:
    """Makes the folder of the database if it is the default place."""
    if database == default_path(os.environ):
        os.makedirs(os.path.dirname(database), exist_ok=True)


def provide(database: str) -> None:
    """Builds what the service can begin with: the sample, or the database of an earlier version.

    It does not wait for a load or refresh that is running, which takes minutes and replaces the
    file. Exits as `run`.
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
                    build(new, fill, [], CORRECTIONS, True, progress)
            if replaced_file(database) == before:  # else a load has ended, whose data is better
                os.replace(new, path)
        return []

    run("load", database, work)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="racedata load", description="Build the database from one source or several."
    )
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="SOURCE",
        help="folder of CSV files, zip of them, http(s) URL of such a zip, or a name: "
        f"{', '.join(PUBLISHED)}; "
        "or a database: file or URL that ends with .db, which is copied as it is; "
        "the first is the base, the others fill its gaps; "
        "by default, the sources of the existing database, or the sample",
    )
    parser.add_argument(
        "--if-older",
        action="store_true",
        help="change nothing unless an earlier version of racedata built the database",
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="replace even a database that this version cannot read, because it is damaged or a "
        "newer version built it, or one that is newer than the database to copy; records that "
        "refreshes added to it are lost",
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
                    "a newer version built it" if is_newer(path) else "no earlier version built it"
                )
            return [f"{parsed.database}: {what}; nothing was changed"]
        make_default_folder(parsed.database)
        sources = [address for text in parsed.sources for address in addresses_in(text)]
        if not sources:
            return load_or_rebuild(parsed.database, parsed.corrections, progress)
        return load(sources, parsed.database, parsed.corrections, progress, parsed.replace)

    run("load", parsed.database, work)

"""Builds the database from a source: `racedata load`.

A source is a folder of CSV files, a zip of them, the http(s) URL of such a zip, or `jolpica`: the dump that Jolpica
publishes (the latest if the environment has a JOLPICA_TOKEN). A reader in sources/ fills a Stage (stage.py); here, the
Stage becomes a database, with the tables of schema.sql, in a new file that replaces the old one at the very end.

Without an argument, it reads the source of the existing database. If that fails, and an earlier version of racedata
built the database, it reads the database's own tables.
"""

import argparse
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from racedata.database import OLDEST_VERSION, SCHEMA, default_path, is_older, write_checksum
from racedata.loader import overlay
from racedata.loader.corrections import CORRECTIONS, add_corrections_argument, apply_corrections
from racedata.loader.errors import LoadError, Progress
from racedata.loader.replacement import add_database_argument, replacement, run
from racedata.loader.sources import earlier, fill_stage, open_dump
from racedata.loader.stage import Origin, Stage
from racedata.loader.tables import COMPUTED, TABLES, Table

SAMPLE = str(Path(__file__).resolve().parent.parent / "sample")

# One row per season, driver and constructor: the driver's first result with it, and all constructors up to that result.
CONSTRUCTORS_SO_FAR = (
    """CREATE TEMP TABLE constructors_so_far AS
           SELECT year, driverId, round, resultId, group_concat(constructorId, ' ')
               OVER (PARTITION BY year, driverId ORDER BY round, resultId) AS constructors
           FROM (SELECT year, driverId, round, resultId, constructorId, row_number()
                     OVER (PARTITION BY year, driverId, constructorId ORDER BY round, resultId) AS number
                 FROM dump.results JOIN dump.races USING (raceId))
           WHERE number = 1""",
    "CREATE INDEX constructors_so_far_order ON constructors_so_far (year, driverId, round, resultId)",
)


def build(
    path: Path,
    fill: Callable[[Stage], Origin],
    corrections: Path | None,
    seasons: Sequence[overlay.Season],
    progress: Progress,
) -> list[str]:
    """Builds the database at `path` from what `fill` puts into a Stage, and the `seasons` that a refresh has fetched.

    Returns the lines of a report, the last from `seasons_of`. Raises LoadError, sqlite3.Error or OSError.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        # An unfinished file is deleted, so it needs no journal.
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE")
        db.executescript(SCHEMA)
        stage = Stage(db, progress)
        db.execute("BEGIN")
        origin = fill(stage)
        changes = apply_corrections(stage, corrections) if corrections else []
        changes += overlay.apply_seasons(stage, seasons)
        if corrections:
            apply_corrections(stage, corrections)  # again: an API may have the same errors as a dump
        for statement in CONSTRUCTORS_SO_FAR:
            db.execute(statement)
        for table in TABLES:
            progress(f"numbering {table.name}")
            store(stage, table)
        db.execute("INSERT INTO seasons (year) SELECT year FROM races EXCEPT SELECT year FROM seasons")
        for table in TABLES:
            if table.required and db.execute(f"SELECT 1 FROM {table.name}").fetchone() is None:
                raise LoadError(f"{origin.source}: no {table.name} that can be served; expected at least one")
        describe(db, origin, seasons)
        lines = [*table_of_rows(stage), *origin.remarks, *changes, *unknown_values(db), seasons_of(db)]
        db.execute("COMMIT")
        db.execute("DETACH dump")
        db.execute("ANALYZE")  # statistics for the query planner
        db.execute("VACUUM")  # numbering leaves pages partly empty
    write_checksum(path)
    return lines


def store(stage: Stage, table: Table) -> None:
    """Copies a staged table into the database, in order and with its computed columns."""
    db = stage.db
    stored = earlier.names_of(db, table.name)
    names = ", ".join(name for name in table.names if name in stored)
    if not table.is_numbered:
        db.execute(f"INSERT INTO {table.name} ({names}) SELECT {names} FROM dump.{table.name}")
        return
    # SQLite numbers from 1 what is inserted into an empty table without a value for its INTEGER PRIMARY KEY.
    if table.per_race:
        db.execute(f"CREATE TEMP TABLE numbered (record INTEGER PRIMARY KEY, {names})")
        for race in db.execute("SELECT raceId FROM races ORDER BY raceId").fetchall():
            db.execute(
                f"""INSERT INTO numbered ({names})
                    SELECT {names} FROM dump.{table.name} WHERE raceId = ? ORDER BY {table.order}""",
                race,
            )
            sql = f"INSERT INTO {table.name} (record, {names}) SELECT record, {names} FROM numbered ORDER BY record"
            db.execute(sql)
            db.execute("DELETE FROM numbered")
        db.execute("DROP TABLE numbered")
    else:
        computed = {name: sql for name, sql in COMPUTED.items() if name in stored}
        db.execute(
            f"""INSERT INTO {table.name} ({", ".join([names, *computed])})
                SELECT {", ".join([names, *computed.values()])}
                FROM dump.{table.name} AS staged JOIN (SELECT raceId, year, round FROM races) AS race USING (raceId)
                ORDER BY {table.order}"""
        )


def describe(db: sqlite3.Connection, origin: Origin, seasons: Sequence[overlay.Season]) -> None:
    """Fills the tables that describe the database."""
    for table in TABLES:
        db.execute(f"INSERT INTO row_counts SELECT ?, count(*) FROM {table.name}", (table.name,))
    row = {
        "source": origin.source.encode("utf-8", "replace").decode(),  # in a path, `?` for bytes that are not UTF-8
        "isSample": origin.is_sample,
        "refreshedFrom": overlay.joined(origin.refreshed_from, (season.source for season in seasons)),
        "licence": overlay.joined(origin.licence, (season.licence for season in seasons)),
        "sourceChecksum": origin.checksum,
        "builtAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    db.execute(f"INSERT INTO build ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))


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
                f"""SELECT count(*), max(year * 1000 + round) FROM {table.name} JOIN races USING (raceId)
                    WHERE {table.name}.{column} IS NULL"""
            ).fetchone()
            if rows:
                counts.append(f"{table.name}.{column} in {rows:,} rows (the last: {last // 1000}/{last % 1000})")
    if counts:
        yield f"unknown: {', '.join(counts)}"


def seasons_of(db: sqlite3.Connection) -> str:
    """`1950 to 2025 (76 seasons, 1,149 races)`."""
    counts = db.execute("SELECT min(year), max(year), count(DISTINCT year), count(*) FROM races").fetchone()
    return "{} to {} ({} seasons, {:,} races)".format(*counts)


def recorded_source(database: str) -> str:
    """The source that the file at `database` was built from; the sample if there is no file. Raises LoadError."""
    if not os.path.exists(database):
        return SAMPLE
    with closing(earlier.open_checked(Path(database), OLDEST_VERSION)) as db:
        origin = earlier.origin(db)
    return SAMPLE if origin.is_sample else origin.source


def load(source: str, database: str, corrections: Path | None, progress: Progress, wait: bool = False) -> list[str]:
    """Builds `database` from `source`. Returns what `build` does. Raises LoadError, sqlite3.Error or OSError.

    `wait` is as in `replacement`.
    """
    is_sample = os.path.realpath(source) == os.path.realpath(SAMPLE)
    dump = open_dump(source, os.environ.get("JOLPICA_TOKEN"), progress)
    with replacement(database, wait) as new, dump as folder:
        seasons = overlay.read_seasons(overlay.folder_beside(database))
        return build(
            new,
            lambda stage: fill_stage(folder, source, stage)._replace(is_sample=is_sample),
            corrections,
            seasons,
            progress,
        )


def rebuild(database: str, corrections: Path | None, progress: Progress) -> list[str]:
    """Builds `database` from its own tables, which may be of an older schema version. Returns what `build` does."""
    with replacement(database) as new, closing(earlier.open_checked(Path(database), OLDEST_VERSION)) as old:
        seasons = overlay.read_seasons(overlay.folder_beside(database))
        return build(new, lambda stage: earlier.read(old, stage), corrections, seasons, progress)


def load_or_rebuild(database: str, corrections: Path | None, progress: Progress) -> list[str]:
    """Builds `database` from its recorded source; if that fails and it is older, from its own tables.

    Returns lines for a report. Raises what `load` does.
    """
    source = recorded_source(database)
    try:
        *lines, seasons = load(source, database, corrections, progress)
    except (LoadError, OSError) as error:
        if not is_older(Path(database)):
            raise
        *lines, seasons = rebuild(database, corrections, progress)
        return [*lines, f"{database}: {seasons} from its own tables, because its source failed: {error}"]
    return [*lines, f"{database}: {seasons} from {source}"]


def load_sample(database: str) -> None:
    """Builds `database` from the sample, or waits for the program that is building it. Exits as `run` does."""

    def work(progress: Progress) -> list[str]:
        os.makedirs(os.path.dirname(database), exist_ok=True)
        with suppress(FileExistsError):
            load(SAMPLE, database, CORRECTIONS, progress, wait=True)
        return []

    run("load", database, work)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="racedata load", description="Build the database from a dump.")
    parser.add_argument(
        "source",
        nargs="?",
        default="",
        help="folder of CSV files, zip of them, http(s) URL of such a zip, or `jolpica`; "
        "without it, what the database was built from before, or the sample",
    )
    parser.add_argument(
        "--if-older",
        action="store_true",
        help="change nothing unless an earlier version of racedata built the database",
    )
    add_database_argument(parser)
    add_corrections_argument(parser)
    parsed = parser.parse_args(arguments)

    def work(progress: Progress) -> list[str]:
        if parsed.if_older and not is_older(Path(parsed.database)):
            what = "no earlier version built it" if os.path.exists(parsed.database) else "there is no database"
            return [f"{parsed.database}: {what}; nothing was changed"]
        if parsed.database == default_path(os.environ):
            os.makedirs(os.path.dirname(parsed.database), exist_ok=True)
        if not parsed.source:
            return load_or_rebuild(parsed.database, parsed.corrections, progress)
        path = os.path.abspath(os.path.expanduser(parsed.source))  # the next load may run in another folder
        source = path if os.path.exists(path) else parsed.source
        *lines, seasons = load(source, parsed.database, parsed.corrections, progress)
        return [*lines, f"{parsed.database}: {seasons} from {source}"]

    run("load", parsed.database, work)

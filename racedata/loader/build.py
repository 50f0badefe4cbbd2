"""Builds the database from a dump: `racedata load`.

SOURCE is a folder of CSV files, a zip of them, the http(s) URL of such a zip, or `jolpica`: the dump that Jolpica
publishes (the latest if the environment has a JOLPICA_TOKEN). ergast.py or jolpica.py reads the files into a Stage
(stage.py); here, the Stage becomes a database, with the tables of racedata/schema.sql. The loader needs only Python,
and imports nothing from the service.

It writes the new file into the folder of the old one, and replaces the old one at the very end.
"""

import argparse
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from racedata.database import SCHEMA, default_path, is_older, write_checksum
from racedata.loader import overlay
from racedata.loader.corrections import add_corrections_argument, correct
from racedata.loader.dump import LoadError, Progress, dump_folder
from racedata.loader.replacement import add_database_argument, replacement, run
from racedata.loader.sources import ergast, jolpica
from racedata.loader.sources.jolpica_download import published_dump
from racedata.loader.stage import COMPUTED, NUMBERED, REQUIRED, TABLES, Reader, Source, Stage, read_only

SAMPLE = str(Path(__file__).resolve().parent.parent / "sample")

FINAL = "round = (SELECT max(round) FROM races WHERE races.year = race.year)"
CONSTRUCTORS = """
    ifnull((SELECT constructors FROM constructors_so_far AS so_far
            WHERE so_far.year = race.year AND so_far.driverId = staged.driverId AND so_far.round <= race.round
            ORDER BY so_far.round DESC, so_far.resultId DESC LIMIT 1), '')
"""

# The columns of COMPUTED but `record`, by table.
COMPUTED_AS: Mapping[str, Mapping[str, str]] = {
    "driver_standings": {"final": FINAL, "constructors": CONSTRUCTORS},
    "constructor_standings": {"final": FINAL},
}

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


# Columns that are usually known: the report counts the rows in which they are not.
USUALLY_KNOWN = {
    "results": ("positionText", "points", "grid", "laps", "statusId"),
    "sprint_results": ("positionText", "points", "grid", "laps", "statusId"),
    "lap_times": ("time",),
    "pit_stops": ("lap", "time"),
    "driver_standings": ("positionText", "points", "wins"),
    "constructor_standings": ("positionText", "points", "wins"),
}


def build(
    path: Path, read: Reader, corrections: Path | None, fetched: Sequence[overlay.Season], progress: Progress
) -> list[str]:
    """Builds the database at `path` from what `read` puts into a Stage, and what refresh.py has `fetched`.

    Returns the lines of a report, the last from `seasons_of`. Raises LoadError, sqlite3.Error or OSError.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        # An unfinished file is deleted, so it needs no journal.
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE")
        db.executescript(SCHEMA)
        stage = Stage(db, progress)
        db.execute("BEGIN")
        source = read(stage)
        changes = correct(stage, corrections) if corrections else []
        changes += overlay.apply(stage, fetched)
        if corrections:
            correct(stage, corrections)  # again: an API may have the same errors as a dump
        for statement in CONSTRUCTORS_SO_FAR:
            db.execute(statement)
        for table in TABLES:
            progress(f"numbering {table}")
            store(stage, table)
        db.execute("INSERT INTO seasons (year) SELECT year FROM races EXCEPT SELECT year FROM seasons")
        for table in REQUIRED:
            if db.execute(f"SELECT 1 FROM {table}").fetchone() is None:
                raise LoadError(f"{source.name}: no {table} that can be served; expected at least one")
        describe(db, source, fetched)
        lines = [*table_of_rows(stage), *source.remarks, *changes, *unknown_values(db), seasons_of(db)]
        db.execute("COMMIT")
        db.execute("DETACH dump")
        db.execute("ANALYZE")  # statistics for the query planner
        db.execute("VACUUM")  # numbering leaves pages partly empty
    write_checksum(path)
    return lines


def store(stage: Stage, table: str) -> None:
    """Copies a staged table into the database, in order and with its computed columns."""
    db = stage.db
    columns = [name for _, name, *_ in db.execute(f"PRAGMA main.table_info({table})") if name not in COMPUTED]
    names = ", ".join(columns)
    if table not in NUMBERED:
        db.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM dump.{table}")
        return
    # SQLite numbers from 1 what is inserted into an empty table without a value for its INTEGER PRIMARY KEY.
    numbered = NUMBERED[table]
    if numbered.per_race:
        db.execute(f"CREATE TEMP TABLE numbered (record INTEGER PRIMARY KEY, {names})")
        for race in db.execute("SELECT raceId FROM races ORDER BY raceId").fetchall():
            db.execute(
                f"""INSERT INTO numbered ({names})
                    SELECT {names} FROM dump.{table} WHERE raceId = ? ORDER BY {numbered.order}""",
                race,
            )
            db.execute(f"INSERT INTO {table} (record, {names}) SELECT record, {names} FROM numbered ORDER BY record")
            db.execute("DELETE FROM numbered")
        db.execute("DROP TABLE numbered")
    else:
        computed = COMPUTED_AS.get(table, {})
        db.execute(
            f"""INSERT INTO {table} ({", ".join([names, *computed])})
                SELECT {", ".join([names, *computed.values()])}
                FROM dump.{table} AS staged JOIN (SELECT raceId, year, round FROM races) AS race USING (raceId)
                ORDER BY {numbered.order}"""
        )


def describe(db: sqlite3.Connection, source: Source, fetched: Sequence[overlay.Season]) -> None:
    """Fills the tables that describe the database."""
    for table in TABLES:
        db.execute(f"INSERT INTO row_counts SELECT ?, count(*) FROM {table}", (table,))
    # In a path, replace bytes that are not UTF-8 with `?`.
    name = source.name.encode("utf-8", "replace").decode()
    refreshed_from = ", ".join(dict.fromkeys(season.source for season in fetched)) or None
    licence = overlay.licence(source.licence, fetched)
    built_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    db.execute(
        "INSERT INTO build VALUES (?, ?, ?, ?, ?, ?)",
        (name, source.is_sample, refreshed_from, licence, source.checksum, built_at),
    )


def table_of_rows(stage: Stage) -> Iterator[str]:
    """How many rows of each table were read, and how many are stored: lines for the report."""
    yield f"{'table':<22}{'rows read':>12}{'rows stored':>13}"
    stored = dict(stage.db.execute("SELECT name, rows FROM row_counts"))
    for table in TABLES:
        rows_read = f"{stage.rows[table]:,}" if table in stage.rows else "no file"
        yield f"{table:<22}{rows_read:>12}{stored[table]:>13,}"


def unknown_values(db: sqlite3.Connection) -> Iterator[str]:
    """A line that counts the unknown values of USUALLY_KNOWN, if there are any."""
    counts = []
    for table, columns in USUALLY_KNOWN.items():
        for column in columns:
            rows, last = db.execute(
                f"""SELECT count(*), max(year * 1000 + round) FROM {table} JOIN races USING (raceId)
                    WHERE {table}.{column} IS NULL"""
            ).fetchone()
            if rows:
                counts.append(f"{table}.{column} in {rows:,} rows (the last: {last // 1000}/{last % 1000})")
    if counts:
        yield f"unknown: {', '.join(counts)}"


def seasons_of(db: sqlite3.Connection) -> str:
    """`1950 to 2025 (76 seasons, 1,149 races)`."""
    counts = db.execute("SELECT min(year), max(year), count(DISTINCT year), count(*) FROM races").fetchone()
    return "{} to {} ({} seasons, {:,} races)".format(*counts)


def source_of(database: str) -> str:
    """The source that the file at `database` was built from; the sample if there is no file."""
    if not os.path.exists(database):
        return SAMPLE
    try:
        with closing(read_only(Path(database))) as db:
            source: str = db.execute("SELECT source FROM build").fetchone()[0]
            return source
    except (sqlite3.Error, TypeError, UnicodeDecodeError):
        raise LoadError(f"{database}: does not say what it was built from; name a source") from None


def load(source: str, database: str, corrections: Path | None, progress: Progress) -> list[str]:
    """Builds `database` from `source`. Returns what `build` does. Raises LoadError, sqlite3.Error or OSError."""
    token = os.environ.get("JOLPICA_TOKEN")
    dump = published_dump(token, progress) if source == "jolpica" else dump_folder(source, progress)
    with replacement(database) as new, dump as folder:
        read = jolpica.read if (folder / jolpica.RECOGNISED_BY).exists() else ergast.read
        fetched = overlay.read(overlay.folder_beside(database))
        is_sample = os.path.realpath(source) == os.path.realpath(SAMPLE)
        return build(
            new,
            lambda stage: read(folder, source, stage)._replace(is_sample=is_sample),
            corrections,
            fetched,
            progress,
        )


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
            return [f"{parsed.database}: no earlier version built it; nothing was changed"]
        if parsed.database == default_path(os.environ):
            os.makedirs(os.path.dirname(parsed.database), exist_ok=True)
        source = parsed.source or source_of(parsed.database)
        *lines, seasons = load(source, parsed.database, parsed.corrections, progress)
        return [*lines, f"{parsed.database}: {seasons} from {source}"]

    run("load", parsed.database, work)

#!/usr/bin/env python3
"""Builds the database from a dump: `load_data.py SOURCE DATABASE`.

SOURCE is a folder of CSV files, a zip of them, the http(s) URL of such a zip, or `jolpica`: the dump that Jolpica
publishes (the latest if the environment has a JOLPICA_TOKEN). ergast.py or jolpica.py reads the files into a Stage
(stage.py); here, the Stage becomes a database, with the tables of racedata/schema.sql. The loader needs only Python,
and imports nothing from the service.

It writes the new file into the folder of the old one, and replaces the old one at the very end.
"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until main() handles it: Ctrl-C during imports prints no traceback

import argparse
import fcntl
import os
import resource
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Never

import ergast
import jolpica
import overlay
from corrections import correct
from dump import LoadError, Progress, checksum, dump_folder
from jolpica_download import published_dump
from stage import COMPUTED, NUMBERED, TABLES, Reader, Stage

PROJECT = Path(__file__).resolve().parent.parent
SCHEMA = PROJECT / "racedata" / "schema.sql"
SAMPLE = str(PROJECT / "data" / "sample")
CORRECTIONS = PROJECT / "data" / "corrections.csv"

# A full dump needs a third of it. No dump may make the loader use up the memory of a service on the same machine.
MEMORY_BYTES = 120_000_000

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

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

    Returns the lines of a report.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        # An unfinished file is deleted, so it needs no journal.
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE")
        db.executescript(SCHEMA.read_text(encoding="utf-8"))
        stage = Stage(db, progress)
        db.execute("BEGIN")
        source = read(stage)
        overlaid = overlay.apply(stage, fetched)
        corrected = correct(stage, corrections) if corrections else []  # last: an API may have the same errors
        for statement in CONSTRUCTORS_SO_FAR:
            db.execute(statement)
        for table in TABLES:
            progress(f"numbering {table}")
            store(stage, table)
        db.execute("INSERT INTO seasons (year) SELECT year FROM races EXCEPT SELECT year FROM seasons")
        counts = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}
        db.executemany("INSERT INTO row_counts VALUES (?, ?)", counts.items())
        built_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        # In a path, replace bytes that are not UTF-8 with `?`.
        named = source.name.encode("utf-8", "replace").decode()
        licence = overlay.licence(source.licence, fetched)
        refreshed_from = ", ".join(dict.fromkeys(season.source for season in fetched)) or None
        values = (named, refreshed_from, licence, source.checksum, built_at)
        db.execute("INSERT INTO build VALUES (?, ?, ?, ?, ?)", values)
        unknown = list(unknown_values(db))
        db.execute("COMMIT")
        db.execute("DETACH dump")
        db.execute("ANALYZE")  # statistics for the query planner
        db.execute("VACUUM")  # numbering leaves pages partly empty
        seasons = "{} to {} ({} seasons, {:,} races)".format(
            *db.execute("SELECT min(year), max(year), count(DISTINCT year), count(*) FROM races").fetchone()
        )
    append_checksum(path)
    read_rows = {table: f"{stage.rows[table]:,}" if table in stage.rows else "no file" for table in TABLES}
    return [
        f"{'table':<22}{'rows read':>12}{'rows stored':>13}",
        *(f"{table:<22}{read_rows[table]:>12}{counts[table]:>13,}" for table in TABLES),
        *source.remarks,
        *overlaid,
        *corrected,
        *([f"unknown: {', '.join(unknown)}"] if unknown else []),
        seasons,
    ]


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


def unknown_values(db: sqlite3.Connection) -> Iterator[str]:
    """For each column of USUALLY_KNOWN in which values are unknown: `results.grid in 20 rows (the last: 2025/22)`."""
    for table, columns in USUALLY_KNOWN.items():
        for column in columns:
            rows, last = db.execute(
                f"""SELECT count(*), max(year * 1000 + round) FROM {table} JOIN races USING (raceId)
                    WHERE {table}.{column} IS NULL"""
            ).fetchone()
            if rows:
                yield f"{table}.{column} in {rows:,} rows (the last: {last // 1000}/{last % 1000})"


def append_checksum(path: Path) -> None:
    """Appends the SHA-256 of the file at `path` to it (see schema.sql), and waits until all of it is on disk."""
    digest = bytes.fromhex(checksum([path]))
    with path.open("ab") as file:
        file.write(digest)
        file.flush()
        os.fsync(file.fileno())


def replaceable(path: Path) -> bool:
    """Whether the file at `path` is empty or was built by an earlier load. It may be damaged."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        header = file.read(72)
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA.read_text(encoding="utf-8"))
        (application_id,) = db.execute("PRAGMA application_id").fetchone()
    return not header or (header[:16] == b"SQLite format 3\0" and header[68:] == application_id.to_bytes(4, "big"))


@contextmanager
def replacement(path: str) -> Iterator[Path]:
    """A path for a new file, which replaces the file at `path`. If the block raises, the new file is removed."""
    old = Path(os.path.realpath(path))  # if it is a symbolic link, the link stays
    if old.exists() and not replaceable(old):
        raise LoadError(f"{old}: exists and is not a racedata database; remove it, or name another file")
    folder = os.open(old.parent, os.O_RDONLY)
    try:
        lock(folder, old.parent)
        new = old.with_name(f".{old.name}.loading")
        new.unlink(missing_ok=True)  # left by a loader that was killed
        try:
            yield new
            if old.exists():
                status = old.stat()
                with suppress(PermissionError):  # only root may change the owner
                    os.chown(new, status.st_uid, status.st_gid)
                new.chmod(stat.S_IMODE(status.st_mode))
            os.replace(new, old)
            os.fsync(folder)
        finally:
            new.unlink(missing_ok=True)
    finally:
        os.close(folder)


def lock(folder: int, name: Path) -> None:
    # A lock on the folder leaves no file behind, and ends with the process, even if that is killed.
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LoadError(f"{name}: another load is running in this folder; try again when it has ended") from None


def source_of(database: str) -> str:
    """The source that the file at `database` was built from; the sample if there is no file."""
    if not os.path.exists(database):
        return SAMPLE
    try:
        with closing(sqlite3.connect(f"{Path(database).absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
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
        return build(new, lambda stage: read(folder, source, stage), corrections, fetched, progress)


def identity(path: str) -> tuple[int, int, int] | None:
    """Attributes that differ between a file and the one that replaces it; None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def show_progress(text: str) -> None:
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def limit_memory() -> None:
    """Makes Python raise MemoryError instead of using more than MEMORY_BYTES."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > MEMORY_BYTES:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, hard))


def ignore_end_signals() -> None:
    for number in END_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def interrupt(number: int, frame: FrameType | None) -> Never:
    """Handles the first signal to end, and ignores later ones, which would disturb the clean-up."""
    ignore_end_signals()
    raise KeyboardInterrupt


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the database from a dump.")
    parser.add_argument(
        "source",
        help="folder of CSV files, zip of them, http(s) URL of such a zip, or `jolpica`; "
        "if empty, what the database was built from before, or the sample",
    )
    parser.add_argument("database", help="file to build")
    parser.add_argument(
        "--corrections",
        default=str(CORRECTIONS),
        help="file of known errors of dumps, with the right values; none: load the dump as it is",
    )
    arguments = parser.parse_args()

    def work(progress: Progress) -> list[str]:
        source = arguments.source or source_of(arguments.database)
        corrections = None if arguments.corrections == "none" else Path(arguments.corrections)
        *table, seasons = load(source, arguments.database, corrections, progress)
        return [*table, f"{arguments.database}: {seasons} from {source}"]

    run("load_data", arguments.database, work)


def run(program: str, database: str, work: Callable[[Progress], list[str]]) -> None:
    """Does work that replaces `database`, and prints the lines it returns. Exits with one line if it fails."""
    limit_memory()
    progress = show_progress if sys.stderr.isatty() else lambda text: None
    before = identity(database)
    said: list[str] = []
    fault = ""
    try:
        try:
            for number in END_SIGNALS:
                signal.signal(number, interrupt)
            said = work(progress)
        finally:
            ignore_end_signals()
    except LoadError as error:
        fault = str(error)
    except KeyboardInterrupt:
        fault = "interrupted"
    except MemoryError:
        fault = f"{database}: needs more than {MEMORY_BYTES:,} bytes of memory; expected a dump of the data"
    except sqlite3.Error as error:
        fault = f"{database}: {error}"
    except OSError as error:
        fault = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    progress("")
    if not fault:
        fault = report("\n".join([*said, ""]))
    if fault:
        outcome = "nothing was changed" if identity(database) == before else "the new database is in place"
        line = "".join(character if character.isprintable() else " " for character in fault)
        sys.exit(f"{program}: {line}; {outcome}")


def report(text: str) -> str:
    """Writes `text` to stdout. Returns what went wrong, or nothing."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` may stop reading
    try:
        print(text, end="", flush=True)
    except (OSError, UnicodeError) as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes stdout once more when it ends
        return f"stdout: {getattr(error, 'strerror', error)}"
    return ""


if __name__ == "__main__":
    main()

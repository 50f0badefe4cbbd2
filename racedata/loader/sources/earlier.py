"""Reads a database that was built before into a Stage: its own tables, also those of an older schema version.

What an older version does not have is unknown. `racedata load` uses this if the source cannot be read.
"""

import sqlite3
from pathlib import Path

from racedata import database
from racedata.loader.csvfile import BATCH
from racedata.loader.errors import LoadError
from racedata.loader.sources.ergast import make_uniform
from racedata.loader.stage import Origin, Stage
from racedata.loader.tables import SESSIONS, TABLES

# Schema versions 2 and 3 do not store resultId, but what depends on it: the order of rows of a race with the same
# positionOrder, and that of `constructors` in the standings. These are the records whose resultId must be higher than
# their place says: a driver's result that comes before another with a constructor that the standings name earlier, and
# the rows that are equal to it and come after it.
LATER_RESULTS = """
    SELECT equal.record
    FROM results JOIN results AS other USING (raceId, driverId) JOIN driver_standings USING (raceId, driverId)
        JOIN results AS equal USING (raceId, positionOrder)
    WHERE instr(' ' || constructors || ' ', ' ' || other.constructorId || ' ')
        < instr(' ' || constructors || ' ', ' ' || results.constructorId || ' ')
        AND results.record < other.record AND results.record <= equal.record"""
RESULT_ID = f"row_number() OVER (ORDER BY record IN ({LATER_RESULTS}), record)"


def open_read_only(path: Path) -> sqlite3.Connection:
    """A connection to a database file, without locks: no program changes such a file, they only replace it."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)


def open_checked(path: Path, oldest: int = database.SCHEMA_VERSION) -> sqlite3.Connection:
    """A connection to a file that is undamaged, and of a schema version from `oldest` on. Raises LoadError."""
    try:
        database.read(path, oldest)
    except database.DatabaseError as error:
        raise LoadError(str(error)) from None
    return open_read_only(path)


def schema_version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def names_of(db: sqlite3.Connection, table: str) -> list[str]:
    """The names of a table's columns; none if there is no such table."""
    return [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")]


def read(db: sqlite3.Connection, stage: Stage) -> Origin:
    """Fills the stage with the tables of a database. If a table lacks the dump's id, `record` takes its place."""
    for table in TABLES:
        stored = names_of(db, table.name)
        names = [name for name in table.names if name in stored]
        if not names:
            continue
        columns = list(names)
        if table.id and table.id not in stored:
            is_made = table.name == "results" and schema_version(db) > 1  # version 1 has no standings
            names, columns = [table.id, *names], [RESULT_ID if is_made else "record", *columns]
        copy(db, f"SELECT {', '.join(columns)} FROM {table.name}", stage, table.name, names)
    if schema_version(db) < 4:
        copy_sessions(db, stage)
    if schema_version(db) < 3:
        make_uniform(stage)
    return origin(db)


def copy(db: sqlite3.Connection, sql: str, stage: Stage, table: str, names: list[str]) -> None:
    """Inserts the rows of a query."""
    found = db.execute(sql)
    stage.insert(table, names, [])
    while rows := found.fetchmany(BATCH):
        stage.insert(table, names, list(zip(*rows)))


def copy_sessions(db: sqlite3.Connection, stage: Stage) -> None:
    """Inserts the sessions that are columns of `races`, as they were before schema version 4."""
    for session in SESSIONS:
        date, time = f"{session}_date", f"{session}_time"
        if date in names_of(db, "races"):
            sql = f"SELECT raceId, '{session}', {date}, {time} FROM races WHERE coalesce({date}, {time}) NOT NULL"
            copy(db, sql, stage, "sessions", ["raceId", "session", "date", "time"])


def origin(db: sqlite3.Connection) -> Origin:
    """What a database says of its source."""
    cursor = db.execute("SELECT * FROM build")
    row = dict(zip((name for name, *_ in cursor.description), cursor.fetchone()))
    # Before schema version 4, the sample was in the folder `data` of a checkout.
    is_sample = row["isSample"] if "isSample" in row else Path(row["source"]).parts[-2:] == ("data", "sample")
    return Origin(
        row["source"],
        row.get("licence"),
        row["sourceChecksum"],
        is_sample=bool(is_sample),
        refreshed_from=row.get("refreshedFrom"),
    )

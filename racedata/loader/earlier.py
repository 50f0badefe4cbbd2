"""Reads an existing database into a Stage, of this or an older schema version.

What an older version does not have is unknown.
"""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from racedata import database
from racedata.kinds import WEEKEND
from racedata.loader.errors import LoadError
from racedata.loader.files.csvfile import BATCH
from racedata.loader.stage import Origin, Stage
from racedata.loader.tables import TABLES

# Schema versions 2 and 3 do not store resultId, but what depends on it: the order of rows of a race
# with the same positionOrder, and that of `constructors` in the standings. These are the records
# whose resultId must be higher than their place says: a driver's result that comes before another
# with a constructor that the standings name earlier, and the rows that are equal to it and come
# after it.
LATER_RESULTS = """
    SELECT equal.record
    FROM results JOIN results AS other USING (raceId, driverId) JOIN driver_standings USING (raceId, driverId)
        JOIN results AS equal USING (raceId, positionOrder)
    WHERE instr(' ' || constructors || ' ', ' ' || other.constructorId || ' ')
        < instr(' ' || constructors || ' ', ' ' || results.constructorId || ' ')
        AND results.record < other.record AND results.record <= equal.record"""
RESULT_ID = f"row_number() OVER (ORDER BY record IN ({LATER_RESULTS}), record)"

# Staged are only the entries without a result: results may change, and build.py adds them.
RESULTS_ARE_ENTRIES = """
    DELETE FROM stage.entries
    WHERE (raceId, driverId, constructorId) IN (SELECT raceId, driverId, constructorId FROM stage.results)"""


def read_only_uri(path: Path) -> str:
    """The URI of a database file, to be read without locks: no program changes such a file, they
    only replace it.
    """
    return f"{path.absolute().as_uri()}?mode=ro&immutable=1"


def open_read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(read_only_uri(path), uri=True)


def open_checked(path: Path, oldest: int = database.SCHEMA_VERSION) -> sqlite3.Connection:
    """A connection to a file that is undamaged, and of a schema version from `oldest` on. Raises
    LoadError.
    """
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


def read(db: sqlite3.Connection, stage: Stage) -> list[str]:
    """Fills the stage with the tables of a database. If a table lacks the dump's id, `record` takes
    its place.

    Returns no lines for a report.
    """
    for table in TABLES:
        stored = names_of(db, table.name)
        names = [name for name in table.names if name in stored]
        if not names:
            continue
        columns = list(names)
        if table.id and table.id not in stored:
            # version 1 has no standings
            is_made = table.name == "results" and schema_version(db) > 1
            names, columns = [table.id, *names], [RESULT_ID if is_made else "record", *columns]
        # Before, the loader accepted a driver twice in a session. The first row counts, but unknown
        # numbers may differ.
        first = f"WHERE rowid IN (SELECT min(rowid) FROM {table.name} GROUP BY {', '.join(table.unique)})"
        unknown = " OR number IS NULL" if "number" in table.unique else ""
        sql = f"SELECT {', '.join(columns)} FROM {table.name} {first + unknown if table.id else ''}"
        copy(db, sql, stage, table.name, names)
    stage.db.execute(RESULTS_ARE_ENTRIES)
    if schema_version(db) < 4:
        copy_sessions(db, stage)
    if schema_version(db) < 3:
        # here: sources/ imports this module
        from racedata.loader.sources.ergast import make_uniform

        make_uniform(stage)
    if schema_version(db) < 5:
        name_origins(db, stage)
    else:
        for name in ("sources", "origins"):
            copy(db, f"SELECT * FROM {name}", stage, name, names_of(db, name))
    correct_future_times(stage.db)
    return []


def correct_future_times(db: sqlite3.Connection) -> None:
    """Corrects times in the future, from a clock that was ahead: else no dump would be newer until
    then.

    What was fetched at such a time counts as old: as fetched on the day of the race.
    """
    (newest,) = db.execute(
        "SELECT max(date) FROM stage.results JOIN stage.races USING (raceId)"
    ).fetchone()
    # the clock may also be behind
    today = max(datetime.now(UTC).strftime("%Y-%m-%d"), newest or "")
    db.execute(
        "UPDATE stage.sources SET readAt = ?1 || 'T00:00:00Z' WHERE date(readAt) > ?1", (today,)
    )
    db.execute(
        """UPDATE stage.origins SET fetchedAt = min(date, ?1) || 'T00:00:00Z' FROM stage.races
           WHERE races.raceId = origins.raceId AND date(fetchedAt) > ?1""",
        (today,),
    )


def copy(db: sqlite3.Connection, sql: str, stage: Stage, table: str, names: list[str]) -> None:
    """Inserts the rows of a query."""
    found = db.execute(sql)
    stage.insert(table, names, [])
    while rows := found.fetchmany(BATCH):
        stage.insert(table, names, list(zip(*rows)))


def copy_sessions(db: sqlite3.Connection, stage: Stage) -> None:
    """Inserts the sessions that are columns of `races`, as they were before schema version 4."""
    for session in (each.name for each in WEEKEND):
        date, time = f"{session}_date", f"{session}_time"
        if date in names_of(db, "races"):
            sql = f"SELECT raceId, '{session}', {date}, {time} FROM races WHERE coalesce({date}, {time}) NOT NULL"
            copy(db, sql, stage, "sessions", ["raceId", "session", "date", "time"])


def name_origins(db: sqlite3.Connection, stage: Stage) -> None:
    """Says what is known of origins before schema version 5: one dump, and the addresses of APIs."""
    build = build_row(db)
    origin = Origin(build["source"], build["source"], build.get("licence"), build["sourceChecksum"])
    stage.name_origin(origin, build["builtAt"])
    apis = (build.get("refreshedFrom") or "").split(", ") if build.get("refreshedFrom") else []
    for id, address in enumerate(apis, 2):
        row = (id, address, address, None, None, build["builtAt"], 0, "", 0)
        stage.db.execute(f"INSERT INTO stage.sources VALUES ({', '.join('?' * len(row))})", row)
    if apis:  # a refresh has fetched the latest season, so a load keeps it until a dump is newer
        stage.db.execute(
            """UPDATE stage.origins SET sourceId = ?, fetchedAt = ? WHERE raceId IN (
                   SELECT raceId FROM stage.races
                   WHERE year = (SELECT max(year) FROM stage.results JOIN stage.races USING (raceId)))""",
            (len(apis) + 1, build["builtAt"]),
        )


def build_row(db: sqlite3.Connection) -> dict[str, Any]:
    """The row of `build`, whose columns depend on the schema version."""
    cursor = db.execute("SELECT * FROM build")
    return dict(zip((name for name, *_ in cursor.description), cursor.fetchone()))


def is_sample(db: sqlite3.Connection) -> bool:
    """Whether the base of a database is the sample."""
    row = build_row(db)
    # Before schema version 4, the sample was in the folder `data` of a checkout.
    return bool(
        row["isSample"]
        if "isSample" in row
        else Path(row["source"]).parts[-2:] == ("data", "sample")
    )


def loaded_sources(db: sqlite3.Connection) -> list[str]:
    """The addresses of the sources of the last load, in its order."""
    if schema_version(db) < 5:
        return [build_row(db).get("source", "")]
    return [
        address
        for (address,) in db.execute("SELECT address FROM sources WHERE isLoaded ORDER BY sourceId")
    ]


def was_refreshed(db: sqlite3.Connection) -> bool:
    """Whether a refresh has added records to a database."""
    if schema_version(db) < 5:
        return bool(build_row(db).get("refreshedFrom"))
    return db.execute("SELECT 1 FROM origins WHERE fetchedAt NOT NULL").fetchone() is not None


def keep(stage: Stage, address: str | None) -> None:
    """Of a stage that `read` has filled, keeps what was loaded from a source; if None, what
    refreshes have fetched.
    """
    stage.db.execute("UPDATE stage.sources SET isLoaded = address IS ?", (address,))
    others = """FROM stage.origins WHERE iif(?1 IS NULL, fetchedAt IS NULL,
        fetchedAt NOT NULL OR sourceId NOT IN (SELECT sourceId FROM stage.sources WHERE isLoaded))"""
    stage.db.execute(
        f"DELETE FROM stage.sessions WHERE raceId IN (SELECT raceId {others} AND kind = 'sessions')",
        (address,),
    )
    stage.db.execute(f"DELETE {others}", (address,))

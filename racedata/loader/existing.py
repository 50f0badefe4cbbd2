"""The database that exists: opened, and asked what it has. It is checked when it is first opened,
and again only if the file has changed.

Its schema version may be older, from OLDEST_VERSION on: then only the attributes, `sources` and
parts.Tables work. Columns that it lacks are unknown, and tables that it lacks are empty.
"""

import os
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from racedata import database
from racedata.loader.errors import LoadError
from racedata.loader.schedule import Expected
from racedata.loader.store import StoredSource
from racedata.model import KINDS, RECORDS

LAST_SEASON = 9999  # the last year that a date can have

# the latest season with results
LATEST = "SELECT max(year) FROM results JOIN races USING (raceId)"
# Earlier seasons with races that have no results, unless their calendar was fetched long after the
# last race: then, the API lacks these results too.
UNFINISHED = f"""
    SELECT year FROM races JOIN origins ON origins.raceId = races.raceId AND kind = 'races'
    WHERE year < ({LATEST}) GROUP BY year
    HAVING sum(races.raceId NOT IN (SELECT raceId FROM results)) > 0
        AND min(ifnull(fetchedAt, '')) < date(max(date), '+30 days')"""

# The parts that only count until another source has them.
PROVISIONAL = """
    SELECT raceId, kind FROM origins JOIN sources USING (sourceId)
    WHERE isProvisional AND kind NOT IN ('races', 'sessions')"""


def read_only_uri(path: Path) -> str:
    """The URI to read a database file without locks: programs replace it, but never change it."""
    return f"{path.absolute().as_uri()}?mode=ro&immutable=1"


def open_read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(read_only_uri(path), uri=True)


@lru_cache(maxsize=1)
def check_once(path: Path, oldest: int, state: database.FileState | None) -> None:
    """Checks a database file. A refresh opens the same one several times."""
    database.read(path, oldest)


class ExistingDatabase:
    """A database, read only. Raises LoadError unless it is undamaged and of a schema version from
    `oldest` on; sqlite3.Error if it does not say how it was built.
    """

    def __init__(self, path: Path, oldest: int = database.SCHEMA_VERSION) -> None:
        try:
            check_once(path, oldest, database.file_state(str(path)))
        except database.DatabaseError as error:
            raise LoadError(str(error)) from None
        self.path = path
        self.db = open_read_only(path)
        try:
            self.built_at, is_sample, *state = self.db.execute(
                "SELECT builtAt, isSample, storeId, revision FROM build"
            ).fetchone()
            # the id and the revision of the store from which it was built
            self.state: tuple[str, int] = state[0], state[1]
            self.is_sample = bool(is_sample)  # whether its base is the sample
            self.db.execute("SELECT 1 FROM origins LIMIT 1")  # without it, nothing can be kept
        except sqlite3.Error:
            self.close()
            raise

    def close(self) -> None:
        self.db.close()

    def sources(self) -> list[StoredSource]:
        """The sources, by their numbers, which count from 1."""
        rows = self.db.execute(
            """SELECT name, address, licence, checksum, readAt, isLoaded, isProvisional
               FROM sources ORDER BY sourceId"""
        )
        return [
            StoredSource(*facts)._replace(is_loaded=bool(loaded), is_provisional=bool(provisional))
            for *facts, loaded, provisional in rows
        ]

    def first_season(self, listed: Sequence[int]) -> int:
        """The first season to bring, if a source lists these.

        It is unfinished, missing, or the latest with results.
        """
        years = {year for (year,) in self.db.execute("SELECT DISTINCT year FROM races")}
        (latest,) = self.db.execute(LATEST).fetchone()
        # The sample lacks most seasons, even before its first.
        missing = {year for year in listed if year > min(years) or self.is_sample} - years
        return min([int(latest), *unfinished_in(self.db), *missing])


def unfinished_in(db: sqlite3.Connection) -> set[int]:
    return {year for (year,) in db.execute(UNFINISHED)}


def expected_records(db: sqlite3.Connection) -> list[Expected]:
    """The records of all races of the latest season with results, and of later seasons.

    If the time of a session is unknown, it is noon UTC; if its day is unknown too, it is the day of
    the race.
    """
    with_results = "EXISTS (SELECT 1 FROM results WHERE raceId = races.raceId)"
    latest = db.execute(
        f"SELECT year FROM races WHERE {with_results} ORDER BY year DESC, round DESC"
    ).fetchone()
    expected = []
    for kind in RECORDS:
        for session in KINDS[kind].sessions:
            of_session = "AND session = :number" if len(KINDS[kind].sessions) > 1 else ""
            rows = db.execute(
                f"""SELECT year, round, ifnull(sessions.date, races.date),
                        CASE WHEN :session = 'race' THEN races.time
                            WHEN sessions.date NOT NULL THEN sessions.time END,
                        EXISTS (SELECT 1 FROM {kind} WHERE raceId = races.raceId {of_session}),
                        EXISTS (SELECT 1 FROM origins JOIN sources USING (sourceId)
                            WHERE raceId = races.raceId AND kind = :kind AND isProvisional)
                    FROM races
                        LEFT JOIN sessions ON sessions.raceId = races.raceId AND session = :session
                    WHERE year >= :latest AND (session NOT NULL OR :session IN ('quali', 'race'))
                    ORDER BY year, round""",
                {
                    "session": session,
                    "number": session[-1],  # of fp1, fp2 and fp3
                    "kind": kind,
                    "latest": latest[0] if latest else 0,
                },
            )
            for year, round, date, time, is_stored, is_provisional in rows:
                starts = datetime.fromisoformat(f"{date}T{time or '12:00:00'}").replace(tzinfo=UTC)
                stored = bool(is_stored), bool(is_stored and is_provisional)
                expected.append(Expected(year, round, session, kind, starts, *stored))
    return expected


def checksum_at_end(path: Path) -> str:
    """The checksum at the end of a database file. Raises OSError if it cannot be read."""
    with path.open("rb") as file:
        file.seek(-database.CHECKSUM_BYTES, os.SEEK_END)
        return file.read().hex()

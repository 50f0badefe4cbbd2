"""The database that is there before a refresh: what it has, and what it lacks."""

import os
from collections.abc import Collection, Sequence
from contextlib import closing
from itertools import zip_longest
from pathlib import Path

from racedata.database import CHECKSUM_BYTES
from racedata.loader import earlier
from racedata.loader.tables import TABLES, Table
from racedata.loader.values import Value

LAST_SEASON = 9999  # that a date can have
RACES = 22  # of a season that is not here, to tell how many requests it takes

LATEST = "SELECT max(year) FROM results JOIN races USING (raceId)"  # season with results
# Earlier seasons with races that have no results, unless their calendar was fetched long after the
# last race: then, the API has no more of them.
UNFINISHED = f"""
    SELECT year FROM races JOIN origins ON origins.raceId = races.raceId AND kind = 'races'
    WHERE year < ({LATEST}) GROUP BY year
    HAVING sum(races.raceId NOT IN (SELECT raceId FROM results)) > 0
        AND min(ifnull(fetchedAt, '')) < date(max(date), '+30 days')"""


# The kinds of races whose records only count until another source has them.
PROVISIONAL = """
    SELECT raceId, kind FROM origins JOIN sources USING (sourceId)
    WHERE isProvisional AND kind NOT IN ('races', 'sessions')"""


class OldDatabase:
    """The database that is refreshed, read only. Raises LoadError if it is damaged."""

    def __init__(self, path: Path) -> None:
        self.db = earlier.open_checked(path)

    def close(self) -> None:
        self.db.close()

    def newest(self) -> str:
        """The date of the latest race with results."""
        (found,) = self.db.execute(
            "SELECT max(date) FROM results JOIN races USING (raceId)"
        ).fetchone()
        return found or ""

    def unfinished(self) -> set[int]:
        return {year for (year,) in self.db.execute(UNFINISHED)}

    def first_season(self, listed: Sequence[int]) -> int:
        """The first season to bring of those that a source lists: unfinished, missing, or the
        latest with results.
        """
        years = {year for (year,) in self.db.execute("SELECT DISTINCT year FROM races")}
        (latest,) = self.db.execute(LATEST).fetchone()
        # The sample lacks most seasons, also before its first.
        missing = {
            year for year in listed if year > min(years) or earlier.is_sample(self.db)
        } - years
        return min([int(latest), *self.unfinished(), *missing])

    def races_to_fetch(self, season: int) -> int:
        """How many races of a season are fetched with their details, at most."""
        races, run = self.db.execute(
            "SELECT count(*), count(raceId IN (SELECT raceId FROM results) OR NULL) FROM races WHERE year = ?",
            (season,),
        ).fetchone()
        return max(races - run, 1) if races else RACES

    def races_with_results(self, season: int) -> list[tuple[int, int, str]]:
        """The `(raceId, round, name)` of races of a season, by round."""
        return self.db.execute(
            """SELECT raceId, round, name FROM races
               WHERE year = ? AND raceId IN (SELECT raceId FROM results) ORDER BY round""",
            (season,),
        ).fetchall()

    def count(self, table: Table, race_id: int | None) -> int:
        """How many rows of a table a race has."""
        (rows,) = self.db.execute(
            f"SELECT count(*) FROM {table.name} WHERE raceId = ?", (race_id,)
        ).fetchone()
        return int(rows)

    def rows(self, table: Table, race_id: int | None) -> list[dict[str, Value]]:
        """The rows of a race in a classification, as api_rows.py makes them: references and texts
        instead of ids.
        """
        names = list(table.paths)
        texts = {"driverId": "driverRef", "constructorId": "constructorRef", "statusId": "status"}
        found = self.db.execute(
            f"""SELECT {", ".join(texts.get(name) or f"classified.{name}" for name in names)}
                FROM {table.name} AS classified
                JOIN drivers USING (driverId) JOIN constructors USING (constructorId)
                {"LEFT JOIN status USING (statusId)" * ("statusId" in names)} WHERE raceId = ?""",
            (race_id,),
        )
        return [dict(zip(names, row)) for row in found]

    def race_id(self, year: int, round: int) -> int | None:
        found = self.db.execute(
            "SELECT raceId FROM races WHERE year = ? AND round = ?", (year, round)
        ).fetchone()
        return int(found[0]) if found else None

    def without_laps(self, also_from_apis: bool) -> dict[int, int]:
        """The seasons of races, by raceId, whose results a refresh gave, but from no API, and that
        have no laps, or provisional ones.
        """
        found = self.db.execute(
            f"""SELECT raceId, year
               FROM origins JOIN sources USING (sourceId) JOIN races USING (raceId)
               WHERE kind = 'results' AND fetchedAt NOT NULL AND (sources.name NOT LIKE 'http%' OR ?)
                   AND (raceId NOT IN (SELECT raceId FROM lap_times)
                       OR (raceId, 'lap_times') IN ({PROVISIONAL}))""",
            (also_from_apis,),
        )
        return dict(found.fetchall())

    def provisional(self, kinds: Collection[str]) -> set[int]:
        """The races of which records of one of these kinds are provisional."""
        return {race for race, kind in self.db.execute(PROVISIONAL) if kind in kinds}

    def statuses(self) -> set[Value]:
        return {text for (text,) in self.db.execute("SELECT status FROM status")}

    def differences(self, path: Path) -> list[str]:
        """A line for each table that has other rows in the database at `path`."""
        lines = []
        with closing(earlier.open_read_only(path)) as new:
            for table in TABLES:
                before, now = (
                    db.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]
                    for db in (self.db, new)
                )
                rows = zip_longest(
                    *(db.execute(f"SELECT * FROM {table.name}") for db in (self.db, new))
                )
                changed = sum(old != other for old, other in rows)
                if now != before:
                    lines.append(f"{table.name:<22}{now:>12,} rows ({now - before:+,})")
                elif changed:
                    lines.append(f"{table.name:<22}{now:>12,} rows, {changed:,} changed")
            before, now = (len(db.execute(PROVISIONAL).fetchall()) for db in (self.db, new))
            if not lines and now < before:
                lines.append(f"{'confirmed':<22}{before - now:>12,} kinds of records of a race")
            if not lines and {year for (year,) in new.execute(UNFINISHED)} < self.unfinished():
                lines.append("a season here is as complete as that of the source")
        return lines


def checksum_at_end(path: Path) -> str:
    """The checksum of a database, which its file ends with."""
    with path.open("rb") as file:
        file.seek(-CHECKSUM_BYTES, os.SEEK_END)
        return file.read().hex()

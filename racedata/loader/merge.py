"""Merges an addition into a stage: records of another source, of a refresh or the old database.

Here is the SQL. matching.py says which race and driver is which, rules.py which record wins.
Sessions are from the source of the race, or from another source if it has no dates for them.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from racedata.database import SCHEMA
from racedata.kinds import KINDS
from racedata.loader.corrections import merge_corrections, merge_corrections_of_list
from racedata.loader.errors import LoadError, Progress, listed
from racedata.loader.matching import LISTS, calendar, find, match_calendars, same_races
from racedata.loader.rules import (
    Part,
    Rule,
    is_too_small,
    lost_races,
    may_replace_calendar,
    only_adds,
    part_of,
)
from racedata.loader.sql import insertion, update_known
from racedata.loader.stage import Stage, of_kind
from racedata.loader.tables import BY_NAME, FASTEST_LAP, RECORDS, Table
from racedata.loader.temporary import temporary_folder

DAYS_FROM_RACE = 4  # that a session is away from the race, at most


class Addition(NamedTuple):
    """What to merge, and how. It always fills gaps."""

    fill: Callable[[Stage], list[str]]  # fills a Stage with it, and returns lines for the report
    rule: Rule = only_adds  # which of its records replace records of the base
    years: Collection[int] | None = None  # the seasons to merge; None: all
    # whether its calendars may replace those here, by the same rule
    has_calendars: bool = False
    # whether it may delete races that it lacks, and replace records of more drivers
    may_shrink: bool = True
    # Whether races without results that its calendar of a season lacks are cancelled. Otherwise
    # that calendar is not used.
    are_cancelled: Callable[[int, Sequence[str]], bool] = lambda year, races: False
    # whether its facts about drivers, constructors and circuits are used too
    updates_lists: bool = False


@contextmanager
def filled_apart(
    fill: Callable[[Stage], list[str]], progress: Progress
) -> Iterator[tuple[Path, list[str]]]:
    """A Stage in a file of its own, for `merge`: the path of that file, and what `fill` returns."""
    with temporary_folder("racedata-", "stage.db") as folder:
        path = folder / "stage.db"
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
            db.executescript(SCHEMA)
            stage = Stage(db, progress, str(path))
            db.execute("BEGIN")
            lines = fill(stage)
            db.execute("COMMIT")
        yield path, lines


def merge(stage: Stage, path: Path, addition: Addition) -> list[str]:
    """Merges the file that the addition has filled into `stage`. Returns lines for the report."""
    db = stage.db
    db.execute("COMMIT")  # no file can be attached in a transaction
    db.execute("ATTACH ? AS addition", (str(path),))
    db.execute("ATTACH ':memory:' AS ids")
    db.execute("BEGIN")
    work = Merge(db, addition)
    years = db.execute("SELECT DISTINCT year FROM addition.races ORDER BY year").fetchall()
    for (year,) in years:
        if addition.years is None or year in addition.years:
            work.match_season(year)
    work.copy_records()
    db.execute("COMMIT")
    db.execute("DETACH ids")
    db.execute("DETACH addition")
    db.execute("BEGIN")
    return work.report()


class Merge:
    """The merge of the attached `addition` into `stage`.

    The tables in `ids` map ids in the addition (`added`) to ids in the stage (`id`).
    """

    def __init__(self, db: sqlite3.Connection, addition: Addition) -> None:
        self.db, self.addition = db, addition
        self.unmatched: list[str] = []  # races that are not here
        self.smaller: list[str] = []  # parts with fewer drivers than here
        self.missing: list[str] = []  # races here that may be cancelled
        for name in (*LISTS, "races", "sources"):
            unique = "UNIQUE" if name == "drivers" else ""
            db.execute(
                f"CREATE TABLE ids.{name} (added INTEGER PRIMARY KEY, id INTEGER NOT NULL {unique})"
            )
        # The parts that are taken; and the races whose sessions are not taken, whatever the rule
        # says.
        db.execute(
            """CREATE TABLE ids.parts (
                   kind TEXT, added INTEGER, id INTEGER, PRIMARY KEY (kind, added))"""
        )
        db.execute("CREATE TABLE ids.without_sessions (added INTEGER PRIMARY KEY)")
        # A driver has one fastest lap in a race, but may have two results: shared cars. The number
        # and the place are those of the car.
        columns = ", ".join(FASTEST_LAP)
        db.execute(
            f"""CREATE TABLE ids.fastest (
                    raceId, driverId, car, place, {columns}, PRIMARY KEY (raceId, driverId))"""
        )
        # The date of the latest race with results that each source has, by schema.
        self.newest: dict[str, dict[str, str]] = {
            schema: dict(
                db.execute(
                    f"""SELECT name, max(date) FROM {schema}.origins
                        JOIN (SELECT raceId, date FROM {schema}.races) USING (raceId)
                        JOIN (SELECT sourceId, name FROM {schema}.sources) USING (sourceId)
                        WHERE kind = 'results' AND fetchedAt IS NULL
                        GROUP BY sourceId ORDER BY sourceId"""
                )
            )
            for schema in ("addition", "stage")
        }
        self.provisional: dict[str, set[str]] = {
            schema: {
                name
                for (name,) in db.execute(f"SELECT name FROM {schema}.sources WHERE isProvisional")
            }
            for schema in ("addition", "stage")
        }

    def add_sources(self) -> None:
        """Adds or updates the sources that a load has read, or of which a part is taken."""
        # The later reading wins, but the next load reuses the addresses of this load.
        self.db.execute(
            """INSERT INTO stage.sources
                   (name, address, licence, checksum, readAt, isLoaded, gave, isProvisional)
               SELECT name, address, licence, checksum, readAt, isLoaded, gave, isProvisional
               FROM addition.sources
               WHERE isLoaded OR sourceId IN (
                   SELECT sourceId FROM ids.parts JOIN addition.origins USING (kind)
                   WHERE added = raceId)
               ORDER BY sourceId
               ON CONFLICT (name) DO UPDATE SET
                   address = iif(isLoaded AND NOT excluded.isLoaded, address, excluded.address),
                   licence = iif(excluded.readAt >= readAt, excluded.licence, licence),
                   checksum = iif(excluded.readAt >= readAt, excluded.checksum, checksum),
                   readAt = max(excluded.readAt, readAt),
                   isLoaded = max(excluded.isLoaded, isLoaded)"""
        )
        self.db.execute(
            """INSERT INTO ids.sources
               SELECT new.sourceId, old.sourceId
               FROM addition.sources AS new JOIN stage.sources AS old USING (name)"""
        )

    # Races.

    def match_season(self, year: int) -> None:
        """Finds the races of a season here."""
        if (
            self.addition.has_calendars
            and self.may_replace_calendar(year)
            and not self.would_lose(year)
        ):
            ids = self.replace_calendar(year)
        else:
            ids = same_races(self.db, year)
            rows = self.db.execute(
                """SELECT raceId, round, name FROM addition.races
                   WHERE year = ?
                       AND raceId IN (SELECT raceId FROM addition.origins WHERE kind <> 'races')
                   ORDER BY round""",
                (year,),
            )
            self.unmatched += [
                f"{year}/{round} {name}" for race, round, name in rows if race not in ids
            ]
        self.db.executemany("INSERT INTO ids.races VALUES (?, ?)", ids.items())

    def may_replace_calendar(self, year: int) -> bool:
        """Whether the calendar of a season is missing here, or may be replaced."""
        new, old = (
            {
                self.part(schema, *row)
                for row in self.db.execute(
                    f"""SELECT name, fetchedAt FROM {schema}.origins
                        JOIN (SELECT raceId, year FROM {schema}.races) USING (raceId)
                        JOIN (SELECT sourceId, name FROM {schema}.sources) USING (sourceId)
                        WHERE year = ? AND kind = 'races'""",
                    (year,),
                )
            }
            for schema in ("addition", "stage")
        )
        return may_replace_calendar(self.addition.rule, new, old)

    def would_lose(self, year: int) -> bool:
        """Whether the new calendar lacks races that must not go. Notes them for the report."""
        if self.addition.may_shrink:
            return False
        old = calendar(self.db, "stage", year)
        kept = match_calendars(calendar(self.db, "addition", year), old).values()
        results = {race for (race,) in self.db.execute("SELECT DISTINCT raceId FROM stage.results")}
        lost = lost_races(
            [race.name for race in old if race.id not in kept],
            {race.name for race in old if race.id in results},
            partial(self.addition.are_cancelled, year),
        )
        if lost is None:
            return False
        if lost.with_results:
            self.smaller.append(f"the calendar of {year} without {lost.with_results}")
        else:
            self.missing += [f"{year} {name}" for name in lost.names]
        return True

    def part(self, schema: str, source: str, fetched_at: str | None) -> Part:
        return part_of(source, fetched_at, self.newest[schema], source in self.provisional[schema])

    def replace_calendar(self, year: int) -> dict[int, int]:
        """Replaces the races of a season. Returns the ids here, by those in `addition`."""
        db = self.db
        old, new = calendar(db, "stage", year), calendar(db, "addition", year)
        ids = match_calendars(new, old)
        for race in {race.id for race in old} - set(ids.values()):
            for table in (*RECORDS, "entries", "sessions", "origins"):
                db.execute(f"DELETE FROM stage.{table} WHERE raceId = ?", (race,))
        free = self.next_id("races", "raceId")
        for race_there in new:
            if race_there.id not in ids:
                ids[race_there.id], free = free, free + 1
        self.add_to_list("circuits", f"SELECT circuitId FROM addition.races WHERE year = {year}")
        # Sessions and times stay if the new calendar has none: see take_sessions.
        db.execute(
            """INSERT OR IGNORE INTO stage.origins SELECT raceId, 'sessions', sourceId, fetchedAt
               FROM stage.origins JOIN stage.races USING (raceId)
               WHERE kind = 'races' AND year = ?
                   AND raceId IN (SELECT raceId FROM stage.sessions)""",
            (year,),
        )
        for there, here in ids.items():
            db.execute("INSERT INTO ids.parts VALUES ('races', ?, ?)", (there, here))
        same = "ids.parts JOIN stage.races AS here ON here.raceId = parts.id"
        db.execute(
            f"""UPDATE addition.races AS new SET time = here.time FROM {same}
                WHERE parts.kind = 'races' AND parts.added = new.raceId AND new.time IS NULL
                    AND new.date = here.date"""
        )
        moved = f"""raceId IN (
            SELECT parts.id FROM {same} JOIN addition.races AS new ON new.raceId = parts.added
            WHERE parts.kind = 'races' AND abs(julianday(new.date) - julianday(here.date)) > 1)"""
        db.execute(f"DELETE FROM stage.sessions WHERE {moved}")
        db.execute(f"DELETE FROM stage.origins WHERE kind = 'sessions' AND {moved}")
        db.execute("DELETE FROM stage.races WHERE year = ?", (year,))
        db.execute("INSERT OR IGNORE INTO stage.seasons (year) VALUES (?)", (year,))
        db.execute(
            """UPDATE stage.seasons SET url = ifnull(
                   (SELECT url FROM addition.seasons AS new WHERE new.year = ?1), url)
               WHERE year = ?1""",
            (year,),
        )
        self.copy(BY_NAME["races"], "races", year)
        return ids

    def take_sessions(self) -> None:
        """Notes the races whose sessions are taken, and sets the times of races that have none.

        Sessions are taken with the race, or if those here have no date, or by the rule. Those that
        came with the race stay with it.
        """
        db = self.db
        db.execute(
            """INSERT OR IGNORE INTO addition.origins
               SELECT raceId, 'sessions', sourceId, fetchedAt FROM addition.origins
               WHERE kind = 'races' AND raceId IN (SELECT raceId FROM addition.sessions)"""
        )
        db.execute(
            """DELETE FROM stage.origins WHERE kind = 'sessions' AND raceId IN (
                   SELECT parts.id FROM ids.parts JOIN addition.origins AS new ON new.raceId = added
                   WHERE parts.kind = 'races' AND new.kind = 'sessions')"""
        )
        # Not taken are those without a date or far from the race; and any, if those here have a
        # date and came with the race.
        db.execute(
            f"""INSERT INTO ids.without_sessions
                SELECT matched.added
                FROM ids.races AS matched JOIN stage.races AS here ON here.raceId = id
                WHERE added NOT IN (SELECT added FROM ids.parts WHERE kind = 'races')
                    AND (ifnull((SELECT max(abs(julianday(there.date) - julianday(here.date)))
                                 FROM addition.sessions AS there
                                 WHERE there.raceId = matched.added) > {DAYS_FROM_RACE}, 1)
                        OR (id IN (SELECT raceId FROM stage.sessions WHERE date NOT NULL)
                            AND id NOT IN (
                                SELECT raceId FROM stage.origins WHERE kind = 'sessions')))"""
        )
        self.take("sessions")
        db.execute(
            """UPDATE stage.races AS here SET time = there.time
               FROM addition.races AS there
                   JOIN ids.races AS matched ON matched.added = there.raceId
               WHERE here.raceId = matched.id AND here.time IS NULL AND here.date = there.date
                   AND there.raceId IN (
                       SELECT raceId FROM addition.origins
                       WHERE kind = 'races' OR (kind = 'sessions' AND raceId NOT IN (
                           SELECT added FROM ids.without_sessions)))"""
        )

    # Records.

    def copy_records(self) -> None:
        """Copies all parts that are missing here, or replace parts here."""
        self.take_sessions()
        for kind in KINDS:
            self.take(kind)
        self.add_sources()
        for name in ("drivers", "constructors", "status"):
            id = BY_NAME[name].names[0]
            rows_of = {kind: f"addition.{kind}" for kind in RECORDS if id in BY_NAME[kind].names}
            needed = [*rows_of.items()]
            if id in BY_NAME["entries"].names:
                needed.append(("results", "addition.entries"))
            if name == "drivers":
                laps = f"(SELECT * FROM {of_kind('fastest_laps', 'addition')})"
                needed.append(("fastest_laps", laps))
            self.add_to_list(
                name,
                " UNION ".join(
                    f"SELECT {id} FROM {rows} JOIN ids.parts ON kind = '{kind}' AND added = raceId"
                    for kind, rows in needed
                ),
            )
        self.note_fastest_laps()
        self.note_cars()
        for kind in ("sessions", *RECORDS):
            self.copy(BY_NAME[kind], kind)
        # With its results, a source gives the entries without one. If it knows of none, those here
        # stay, except of drivers who have a result now.
        self.db.execute(
            """DELETE FROM stage.entries
               WHERE raceId IN (SELECT id FROM ids.parts JOIN addition.entries ON raceId = added
                                WHERE kind = 'results')
                   OR (raceId IN (SELECT id FROM ids.parts WHERE kind = 'results')
                       AND (raceId, driverId) IN (SELECT raceId, driverId FROM stage.results))"""
        )
        self.copy(BY_NAME["entries"], "results")
        self.set_fastest_laps()
        merge_corrections(self.db)
        self.db.execute(
            """INSERT OR REPLACE INTO stage.origins
               SELECT parts.id, kind, sources.id, fetchedAt
               FROM ids.parts JOIN addition.origins USING (kind)
               JOIN ids.sources ON sources.added = sourceId WHERE parts.added = raceId"""
        )
        self.db.execute(
            """DELETE FROM stage.origins AS old WHERE kind = 'sessions' AND EXISTS (
                   SELECT 1 FROM stage.origins AS race
                   WHERE race.raceId = old.raceId AND race.kind = 'races'
                       AND race.sourceId = old.sourceId AND race.fetchedAt IS old.fetchedAt)"""
        )

    def take(self, kind: str) -> None:
        """Notes the races whose records of a kind are taken."""
        found = self.db.execute(
            """SELECT races.added, races.id, new_source.name, new.fetchedAt,
                   old_source.name, old.fetchedAt
               FROM ids.races
               JOIN addition.origins AS new ON new.raceId = races.added AND new.kind = ?1
               JOIN addition.sources AS new_source ON new_source.sourceId = new.sourceId
               LEFT JOIN stage.origins AS old ON old.raceId = races.id AND old.kind = ?1
               LEFT JOIN stage.sources AS old_source ON old_source.sourceId = old.sourceId
               WHERE ?1 <> 'sessions' OR races.added NOT IN (SELECT added FROM ids.without_sessions)
            """,
            (kind,),
        ).fetchall()
        taken = self.db.execute("SELECT added FROM ids.parts WHERE kind = 'results'")
        with_results = {there for (there,) in taken}
        for there, here, source, fetched_at, old_source, old_fetched_at in found:
            if old_source is not None:
                new, old = (
                    self.part("addition", source, fetched_at),
                    self.part("stage", old_source, old_fetched_at),
                )
                if not self.addition.rule(new, old):
                    continue
                may_shrink = self.addition.may_shrink or (
                    old.is_provisional and not new.is_provisional
                )
                if not may_shrink and self.is_too_small(kind, there, here, there in with_results):
                    self.smaller.append(f"{kind} of {self.name_of(here)}")
                    continue
            self.db.execute("INSERT INTO ids.parts VALUES (?, ?, ?)", (kind, there, here))

    def is_too_small(self, kind: str, there: int, here: int, with_results: bool) -> bool:
        if kind == "sessions":  # which nobody drives
            return False
        return is_too_small(
            kind,
            self.entrants(kind, "addition", there),
            self.entrants(kind, "stage", here),
            with_results,
        )

    def entrants(self, kind: str, schema: str, race: int) -> int:
        """How many drivers or constructors have records of a kind in a race."""
        entrant = "constructorId" if kind == "constructor_standings" else "driverId"
        rows = f"(SELECT raceId, {entrant} FROM {of_kind(kind, schema)})"
        (count,) = self.db.execute(
            f"SELECT count(DISTINCT {entrant}) FROM {rows} WHERE raceId = ?", (race,)
        ).fetchone()
        return int(count)

    def name_of(self, race: int) -> str:
        found = self.db.execute(
            "SELECT year, round, name FROM stage.races WHERE raceId = ?", (race,)
        ).fetchone()
        return "{}/{} {}".format(*found)

    def add_to_list(self, name: str, needed: str) -> None:
        """Finds rows of a list here, and adds those that are missing.

        `needed` is the SQL of their ids in the addition.
        """
        db, table = self.db, BY_NAME[name]
        id, *names = table.names  # the second is the reference or text, which stays
        rows = db.execute(
            f"""SELECT {", ".join(table.names)} FROM addition.{name}
                WHERE {id} IN ({needed}) AND {id} NOT IN (SELECT added FROM ids.{name})
                ORDER BY {id}"""
        ).fetchall()
        for there, *values in rows:
            row = dict(zip(names, values))
            here = find(db, name, row)
            if here is None:
                # A status keeps its id if that is free, because addresses have it.
                is_free = (
                    name == "status"
                    and not db.execute(
                        f"SELECT 1 FROM stage.{name} WHERE {id} = ?", (there,)
                    ).fetchone()
                )
                here = there if is_free else self.next_id(name, id)
                db.execute(insertion(f"stage.{name}", len(table.names)), (here, *values))
                merge_corrections_of_list(db, name, values[0], here, names)
            elif self.addition.updates_lists and name != "status":
                facts = {column: row[column] for column in names[1:]}
                update_known(db, f"stage.{name}", facts, id, here)
                known = [column for column, value in facts.items() if value is not None]
                merge_corrections_of_list(db, name, values[0], here, known)
            try:
                db.execute(f"INSERT INTO ids.{name} VALUES (?, ?)", (there, here))
            except sqlite3.IntegrityError:
                raise self.two_in_one(there, here) from None

    def two_in_one(self, there: int, here: int) -> LoadError:
        """The error for two drivers in the addition that are one driver here."""
        names = self.db.execute(
            """SELECT (SELECT group_concat(name) FROM addition.sources),
                   there.driverRef, other.driverRef, here.driverRef
               FROM ids.drivers JOIN addition.drivers AS other ON other.driverId = added,
                   addition.drivers AS there JOIN stage.drivers AS here
               WHERE id = here.driverId AND here.driverId = ? AND there.driverId = ?""",
            (here, there),
        ).fetchone()
        text = "{}: drivers {!r} and {!r} are both {!r}, by reference, or by birth date and surname"
        return LoadError(
            f"{text.format(*names)}; expected only one: correct that source, or leave it out"
        )

    def copy(self, table: Table, kind: str, year: int | None = None) -> None:
        """Replaces the rows of the parts that are taken, of one season or of all."""
        db, joins, values = self.db, [], {}
        for column in table.columns:
            if column.name == "raceId":
                values["raceId"] = "parts.id"
            elif column.parent:
                joins.append(
                    f"LEFT JOIN ids.{column.parent} ON {column.parent}.added = new.{column.name}"
                )
                values[column.name] = f"{column.parent}.id"
            elif column.name != table.id and not (kind == "results" and column.name in FASTEST_LAP):
                values[column.name] = f"new.{column.name}"
        if {"driverId", "constructorId"} <= {*values} and kind != "results":
            joins.append(
                """LEFT JOIN ids.cars ON cars.race = parts.id AND cars.driver = drivers.id
                       AND cars.added = new.constructorId"""
            )
            values["constructorId"] = "ifnull(cars.id, constructors.id)"
        if table.id:
            # New rows get the ids of the rows that they replace, then free ones. So merging twice
            # changes nothing.
            free = self.next_id(table.name, table.id)
            db.execute(
                f"""CREATE TABLE ids.replaced AS SELECT raceId, {table.id} AS id,
                        row_number() OVER (PARTITION BY raceId ORDER BY {table.id}) AS n
                    FROM stage.{table.name}
                    WHERE raceId IN (SELECT id FROM ids.parts WHERE kind = ?)""",
                (kind,),
            )
            joins.append(
                "LEFT JOIN ids.replaced ON replaced.raceId = parts.id AND replaced.n = new.n"
            )
            number = f"row_number() OVER (ORDER BY replaced.id NOT NULL, new.{table.id})"
            values = {table.id: f"ifnull(replaced.id, {free - 1} + {number})", **values}
        if kind == table.name != "races":
            db.execute(
                f"""DELETE FROM stage.{table.name}
                    WHERE raceId IN (SELECT id FROM ids.parts WHERE kind = ?)""",
                (kind,),
            )
        of_race = (
            f", row_number() OVER (PARTITION BY raceId ORDER BY {table.id}) AS n"
            if table.id
            else ""
        )
        of_year = (
            ""
            if year is None
            else f"WHERE parts.added IN (SELECT raceId FROM addition.races WHERE year = {year})"
        )
        db.execute(
            f"""INSERT INTO stage.{table.name} ({", ".join(values)})
                SELECT {", ".join(values.values())}
                FROM (SELECT *{of_race} FROM addition.{table.name}) AS new
                JOIN ids.parts ON parts.kind = ? AND parts.added = new.raceId
                {" ".join(joins)} {of_year}""",
            (kind,),
        )
        db.execute("DROP TABLE IF EXISTS ids.replaced")

    def note_cars(self) -> None:
        """Notes the cars that have another constructor in the results here, which stay.

        Then that one counts in other sessions of the race too: sources differ in what they call a
        car, and in the facts.
        """
        self.db.execute(
            """CREATE TABLE ids.cars (race, driver, added, id, PRIMARY KEY (race, driver, added))"""
        )
        self.db.execute(
            """INSERT INTO ids.cars
               SELECT races.id, drivers.id, there.constructorId, here.constructorId
               FROM ids.races JOIN addition.results AS there ON there.raceId = races.added
               JOIN ids.drivers ON drivers.added = there.driverId
               JOIN stage.results AS here ON here.raceId = races.id AND here.driverId = drivers.id
               WHERE races.id NOT IN (SELECT id FROM ids.parts WHERE kind = 'results')
               GROUP BY races.id, drivers.id
               HAVING count(DISTINCT there.constructorId) = 1
                   AND count(DISTINCT here.constructorId) = 1"""
        )

    def note_fastest_laps(self) -> None:
        """Notes the fastest laps that are taken, and those here if only the results are taken."""
        columns = ", ".join(FASTEST_LAP)
        self.db.execute(
            f"""INSERT OR IGNORE INTO ids.fastest
                SELECT parts.id, drivers.id, number, positionText, {columns}
                FROM (SELECT * FROM {of_kind("fastest_laps", "addition")}) AS new
                JOIN ids.parts ON kind = 'fastest_laps' AND parts.added = new.raceId
                JOIN ids.drivers ON drivers.added = new.driverId ORDER BY positionOrder"""
        )
        self.db.execute(
            f"""INSERT OR IGNORE INTO ids.fastest
                SELECT raceId, driverId, number, positionText, {columns}
                FROM (SELECT * FROM {of_kind("fastest_laps", "stage")}) AS old
                WHERE raceId IN (SELECT id FROM ids.parts WHERE kind = 'results')
                    AND raceId NOT IN (SELECT id FROM ids.parts WHERE kind = 'fastest_laps')
                ORDER BY positionOrder"""
        )

    def set_fastest_laps(self) -> None:
        unknown = ", ".join(f"{name} = NULL" for name in FASTEST_LAP)
        self.db.execute(
            f"""UPDATE stage.results SET {unknown}
                WHERE raceId IN (SELECT id FROM ids.parts WHERE kind = 'fastest_laps')"""
        )
        columns = ", ".join(FASTEST_LAP)
        self.db.execute(
            f"""UPDATE stage.results
                SET ({columns}) = ({", ".join(f"new.{name}" for name in FASTEST_LAP)})
                FROM (
                    SELECT resultId, fastest.*, row_number() OVER (
                        PARTITION BY raceId, driverId
                        -- a source may have another number of the car, or mix them up
                        ORDER BY laps < fastestLap, number IS car DESC, positionText IS place DESC,
                            positionOrder, resultId) AS n
                    FROM ids.fastest JOIN (
                        SELECT resultId, raceId, driverId, number, laps, positionText, positionOrder
                        FROM stage.results) USING (raceId, driverId)) AS new
                WHERE n = 1 AND results.resultId = new.resultId"""
        )

    def next_id(self, table: str, id: str) -> int:
        (last,) = self.db.execute(f"SELECT max({id}) FROM stage.{table}").fetchone()
        return (last or 0) + 1

    def report(self) -> list[str]:
        lines = []
        for what, names in (
            # the newest first
            ("match no race of the database, or two; not added", self.unmatched[::-1]),
            ("fewer records than the database has; not used", self.smaller),
            ("missing from the calendar; it is not used unless they stay missing", self.missing),
        ):
            if names:
                lines.append(f"{listed(names)}: {what}")
        return lines

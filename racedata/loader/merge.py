"""Merges an addition into a stage: records of another source, of a refresh or the old database.

It decides which parts are taken. matching.py says which race and driver is which, rules.py which
record wins, and transfer.py copies the rows.
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
from racedata.loader.corrections import merge_corrections
from racedata.loader.errors import Progress, listed
from racedata.loader.matching import calendar, match_calendars, same_races
from racedata.loader.rules import (
    Part,
    Rule,
    is_too_small,
    lost_races,
    may_replace_calendar,
    only_adds,
    part_of,
)
from racedata.loader.stage import Stage, of_kind
from racedata.loader.tables import BY_NAME, RECORDS
from racedata.loader.temporary import temporary_folder
from racedata.loader.transfer import (
    add_to_list,
    copy_rows,
    create_ids,
    ids_in_parts,
    next_id,
    note_cars,
    note_fastest_laps,
    set_fastest_laps,
)

DAYS_FROM_RACE = 4  # that a session is away from the race, at most


class Addition(NamedTuple):
    """What to merge, and how. It always fills gaps."""

    fill: Callable[[Stage], list[str]]  # fills a Stage with it, and returns lines for the report
    rule: Rule = only_adds  # which of its records replace records of the base
    years: Collection[int] | None = None  # the seasons to merge; None: all
    # whether its calendars may replace those of the stage, by the same rule
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
        self.unmatched: list[str] = []  # races that the stage lacks
        self.smaller: list[str] = []  # parts with fewer drivers than in the stage
        self.missing: list[str] = []  # races of the stage that may be cancelled
        create_ids(db)
        # the races whose sessions are not taken, whatever the rule says
        db.execute("CREATE TABLE ids.without_sessions (added INTEGER PRIMARY KEY)")
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
        """Finds the races of a season in the stage."""
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
        """Whether the calendar of a season is missing in the stage, or may be replaced."""
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
        """Replaces the races of a season. Returns the new ids by those in the addition."""
        db = self.db
        old, new = calendar(db, "stage", year), calendar(db, "addition", year)
        ids = match_calendars(new, old)
        for id in {race.id for race in old} - set(ids.values()):
            for table in (*RECORDS, "entries", "sessions", "origins"):
                db.execute(f"DELETE FROM stage.{table} WHERE raceId = ?", (id,))
        free = next_id(db, "races", "raceId")
        for race in new:
            if race.id not in ids:
                ids[race.id], free = free, free + 1
        for added, id in ids.items():
            db.execute("INSERT INTO ids.parts VALUES ('races', ?, ?)", (added, id))
        circuits = """SELECT circuitId FROM addition.races
                      JOIN ids.parts ON kind = 'races' AND added = raceId"""
        add_to_list(db, "circuits", circuits, self.addition.updates_lists)
        self.keep_times(year)
        db.execute("DELETE FROM stage.races WHERE year = ?", (year,))
        db.execute("INSERT OR IGNORE INTO stage.seasons (year) VALUES (?)", (year,))
        db.execute(
            """UPDATE stage.seasons SET url = ifnull(
                   (SELECT url FROM addition.seasons AS new WHERE new.year = ?1), url)
               WHERE year = ?1""",
            (year,),
        )
        copy_rows(self.db, BY_NAME["races"], "races", year)
        return ids

    def keep_times(self, year: int) -> None:
        """Keeps sessions and times that a new calendar lacks, unless the race has moved.

        For sessions that it has, see take_sessions.
        """
        db = self.db
        db.execute(
            """INSERT OR IGNORE INTO stage.origins SELECT raceId, 'sessions', sourceId, fetchedAt
               FROM stage.origins JOIN stage.races USING (raceId)
               WHERE kind = 'races' AND year = ?
                   AND raceId IN (SELECT raceId FROM stage.sessions)""",
            (year,),
        )
        same = "ids.parts JOIN stage.races AS old ON old.raceId = parts.id"
        db.execute(
            f"""UPDATE addition.races AS new SET time = old.time FROM {same}
                WHERE parts.kind = 'races' AND parts.added = new.raceId AND new.time IS NULL
                    AND new.date = old.date"""
        )
        moved = f"""raceId IN (
            SELECT parts.id FROM {same} JOIN addition.races AS new ON new.raceId = parts.added
            WHERE parts.kind = 'races' AND abs(julianday(new.date) - julianday(old.date)) > 1)"""
        db.execute(f"DELETE FROM stage.sessions WHERE {moved}")
        db.execute(f"DELETE FROM stage.origins WHERE kind = 'sessions' AND {moved}")

    def take_sessions(self) -> None:
        """Notes the races whose sessions are taken, and sets the times of races that have none.

        Sessions are taken with the race, or if the stage has no dates, or by the rule. Sessions
        that came with the race stay with it.
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
        # Leave out sessions without a date or far from the race, and all sessions if the race of
        # the stage came with dated ones.
        db.execute(
            f"""INSERT INTO ids.without_sessions
                SELECT matched.added
                FROM ids.races AS matched JOIN stage.races AS old ON old.raceId = id
                WHERE added NOT IN (SELECT added FROM ids.parts WHERE kind = 'races')
                    AND (ifnull((SELECT max(abs(julianday(new.date) - julianday(old.date)))
                                 FROM addition.sessions AS new
                                 WHERE new.raceId = matched.added) > {DAYS_FROM_RACE}, 1)
                        OR (id IN (SELECT raceId FROM stage.sessions WHERE date NOT NULL)
                            AND id NOT IN (
                                SELECT raceId FROM stage.origins WHERE kind = 'sessions')))"""
        )
        self.take("sessions")
        db.execute(
            """UPDATE stage.races AS old SET time = new.time
               FROM addition.races AS new
                   JOIN ids.races AS matched ON matched.added = new.raceId
               WHERE old.raceId = matched.id AND old.time IS NULL AND old.date = new.date
                   AND new.raceId IN (
                       SELECT raceId FROM addition.origins
                       WHERE kind = 'races' OR (kind = 'sessions' AND raceId NOT IN (
                           SELECT added FROM ids.without_sessions)))"""
        )

    # Records.

    def copy_records(self) -> None:
        """Copies all parts that the stage lacks, or that replace its own."""
        self.take_sessions()
        for kind in KINDS:
            self.take(kind)
        self.add_sources()
        for name in ("drivers", "constructors", "status"):
            add_to_list(self.db, name, ids_in_parts(name), self.addition.updates_lists)
        note_fastest_laps(self.db)
        note_cars(self.db)
        for kind in ("sessions", *RECORDS):
            copy_rows(self.db, BY_NAME[kind], kind)
        # A source that gives the results of a race also gives its entries without a result. If it
        # has none, those of the stage stay, except those of drivers who now have a result.
        self.db.execute(
            """DELETE FROM stage.entries
               WHERE raceId IN (SELECT id FROM ids.parts JOIN addition.entries ON raceId = added
                                WHERE kind = 'results')
                   OR (raceId IN (SELECT id FROM ids.parts WHERE kind = 'results')
                       AND (raceId, driverId) IN (SELECT raceId, driverId FROM stage.results))"""
        )
        copy_rows(self.db, BY_NAME["entries"], "results")
        set_fastest_laps(self.db)
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
        parts = self.db.execute("SELECT added FROM ids.parts WHERE kind = 'results'")
        with_results = {added for (added,) in parts}
        for added, id, source, fetched_at, old_source, old_fetched_at in found:
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
                if not may_shrink and self.is_too_small(kind, added, id, added in with_results):
                    self.smaller.append(f"{kind} of {self.name_of(id)}")
                    continue
            self.db.execute("INSERT INTO ids.parts VALUES (?, ?, ?)", (kind, added, id))

    def is_too_small(self, kind: str, added: int, id: int, with_results: bool) -> bool:
        if kind == "sessions":  # which nobody drives
            return False
        return is_too_small(
            kind,
            self.entrants(kind, "addition", added),
            self.entrants(kind, "stage", id),
            with_results,
        )

    def entrants(self, kind: str, schema: str, race: int) -> int:
        """How many drivers or constructors have records of a kind in a race."""
        table = BY_NAME[KINDS[kind].table or kind]
        entrant = "driverId" if "driverId" in table.names else "constructorId"
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

    def report(self) -> list[str]:
        lines = []
        for what, names in (
            # the newest first
            ("match no race of the database, or two; not added", self.unmatched[::-1]),
            ("fewer records than the database has; not used", self.smaller),
            ("missing from the calendar, which is not used unless they stay missing", self.missing),
        ):
            if names:
                lines.append(f"{listed(names)}: {what}")
        return lines

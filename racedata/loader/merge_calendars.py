"""Merges the calendars of an addition into a stage: seasons, races, and the sessions of weekends.

Sessions are from the source of the race, or from another source if it has no dates for them.
"""

import sqlite3
from functools import partial

from racedata.loader.addition import Addition
from racedata.loader.matching import calendar, match_calendars, same_races
from racedata.loader.parts import Parts
from racedata.loader.rules import LostRaces, lost_races, may_replace_calendar
from racedata.loader.transfer import add_to_list, copy_rows, next_id
from racedata.model import BY_NAME, RECORDS

DAYS_FROM_RACE = 4  # maximum between a session and its race


class Calendars:
    """The calendars of the attached `addition` and of the `stage`."""

    def __init__(self, db: sqlite3.Connection, addition: Addition, parts: Parts) -> None:
        self.db, self.addition, self.parts = db, addition, parts
        self.unmatched: list[str] = []  # races that the stage lacks
        self.smaller: list[str] = []  # calendars that lack a race with results
        self.missing: list[str] = []  # races of the stage that may be cancelled

    def merge_season(self, year: int) -> None:
        """Replaces the calendar of a season if it may, and notes which race is which."""
        may_replace = self.may_replace_calendar(year)
        lost = self.lost_races(year) if may_replace else None
        if lost is not None:
            self.note_lost(year, lost)
        if may_replace and lost is None:
            ids = self.replace_calendar(year)
        else:
            ids = self.match_races(year)
        self.db.executemany("INSERT INTO ids.races VALUES (?, ?)", ids.items())

    def match_races(self, year: int) -> dict[int, int]:
        """The ids of a season's races in the stage, by those in the addition.

        Notes the races that have records, but no match.
        """
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
        return ids

    def may_replace_calendar(self, year: int) -> bool:
        """Whether the calendar of a season is missing in the stage, or may be replaced."""
        if not self.addition.has_calendars:
            return False
        new, old = (
            {
                self.parts.part(schema, *row)
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

    def lost_races(self, year: int) -> LostRaces | None:
        """The races that the new calendar lacks and that must stay; None if there are none."""
        if self.addition.may_shrink:
            return None
        old = calendar(self.db, "stage", year)
        kept = match_calendars(calendar(self.db, "addition", year), old).values()
        results = {race for (race,) in self.db.execute("SELECT DISTINCT raceId FROM stage.results")}
        return lost_races(
            [race.name for race in old if race.id not in kept],
            {race.name for race in old if race.id in results},
            partial(self.addition.are_cancelled, year),
        )

    def note_lost(self, year: int, lost: LostRaces) -> None:
        """Notes for the report why a calendar is not used."""
        if lost.with_results:
            self.smaller.append(f"the calendar of {year}, which lacks {lost.with_results}")
        else:
            self.missing += [f"{year} {name}" for name in lost.names]

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

        For sessions that it has, see choose_sessions.
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

    def choose_sessions(self) -> None:
        """Notes the races whose sessions are taken.

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
        self.parts.choose("sessions")

    def add_times(self) -> None:
        """Sets the times of races that have none, if the sessions of the addition may be used."""
        self.db.execute(
            """UPDATE stage.races AS old SET time = new.time
               FROM addition.races AS new
                   JOIN ids.races AS matched ON matched.added = new.raceId
               WHERE old.raceId = matched.id AND old.time IS NULL AND old.date = new.date
                   AND new.raceId IN (
                       SELECT raceId FROM addition.origins
                       WHERE kind = 'races' OR (kind = 'sessions' AND raceId NOT IN (
                           SELECT added FROM ids.without_sessions)))"""
        )

"""Decides which parts of an addition a merge takes, and notes them in `ids.parts`.

A part is a kind of records of one race; rules.py says which one wins.
"""

import sqlite3

from racedata.loader.addition import Addition
from racedata.loader.rules import Part, is_too_small, part_of
from racedata.loader.stage import of_kind
from racedata.model import BY_NAME, KINDS


class Parts:
    """The parts of the attached `addition` and of the `stage`."""

    def __init__(self, db: sqlite3.Connection, addition: Addition) -> None:
        self.db, self.addition = db, addition
        self.smaller: list[str] = []  # parts with fewer drivers than in the stage
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

    def part(self, schema: str, source: str, fetched_at: str | None) -> Part:
        """A part of one of the two, by the facts about its source."""
        return part_of(source, fetched_at, self.newest[schema], source in self.provisional[schema])

    def choose(self, kind: str) -> None:
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
                new = self.part("addition", source, fetched_at)
                old = self.part("stage", old_source, old_fetched_at)
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
        if kind == "sessions":  # they have no entrants
            return False
        return is_too_small(
            kind,
            self.entrants(kind, "addition", added),
            self.entrants(kind, "stage", id),
            with_results,
        )

    def entrants(self, kind: str, schema: str, race: int) -> int:
        """How many drivers or constructors have records of a kind in a race."""
        table = BY_NAME[KINDS[kind].part_of or kind]
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

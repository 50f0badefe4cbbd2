"""Applies corrections to a Stage, and notes in the table `corrections` what was applied.

correction_lines.py says what a correction is about.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from racedata.loader.correction_lines import NOTED, ORDER, REFERENCES, Facts, Line, Step, in_file
from racedata.loader.errors import LoadError
from racedata.loader.parts import LIST_OF, REFERENCE
from racedata.loader.sql import insert, insertion
from racedata.loader.stage import Stage
from racedata.model import LIST_BY_SINGULAR
from racedata.values import Value

# The columns of the table `corrections` that it shares with other tables.
SHARED = ("year", "raceId", "driverId", "constructorId")
COLUMNS = (*NOTED, *SHARED)


class Applied(NamedTuple):
    """What corrections have changed."""

    values: int  # how many
    rows: int  # how many were removed or added
    remarks: list[str]  # a line for each correction that does not fit


def apply_corrections(stage: Stage, lines: Iterable[Line]) -> Applied:
    """Applies and notes corrections. Raises LoadError for one that makes no sense."""
    races = {*stage.db.execute("SELECT year, round FROM stage.races")}
    targets, remarks = list[Target](), list[str]()
    for line in lines:
        if "raceId" not in line.key or tuple(line.key["raceId"]) in races:
            targets.append(Target(stage.db, line))
        elif line.is_own:
            remarks.append(absent(line))

    def fitting(step: Step) -> Iterator[Target]:
        return (each for each in targets if each.line.step is step and each.fits(remarks))

    rows = sum(target.remove() for target in fitting(Step.REMOVE))
    values = sum(target.change() for target in fitting(Step.CHANGE))
    rows += sum(target.add() for target in fitting(Step.ADD))
    return Applied(values, rows, remarks)


def absent(line: Line) -> str:
    """The remark on an own correction of what no source has: perhaps its key is wrong. The
    project's file is for all sources, so each lacks some of its rows.
    """
    return f"correction not applied: {line.correction}: the data has no such row"


def note_corrections(stage: Stage, lines: Iterable[Line]) -> None:
    """Notes corrections that the data of a source already has."""
    for line in lines:
        target = Target(stage.db, line)
        if target.is_right:
            target.note(line.correction.wrong, line.correction.right)


def fill_corrections(stage: Stage) -> None:
    """Copies the table into the database, in the order of answers."""
    names = ", ".join(COLUMNS)
    stage.db.execute(
        f"""INSERT INTO corrections ({names})
            SELECT {names} FROM stage.corrections
            LEFT JOIN (SELECT raceId, round FROM races) USING (raceId)
            ORDER BY year, round, tableName, key, columnName"""
    )


def sql_of_id(name: str) -> str:
    """The SQL of a value of a key, from its parts: of `raceId`, from a year and a round."""
    if name == "raceId":
        return "(SELECT raceId FROM stage.races WHERE year = ? AND round = ?)"
    if name in REFERENCE:
        return f"(SELECT {name} FROM stage.{LIST_OF[name]} WHERE {REFERENCE[name]} = ?)"
    return "?"


class Target:
    """The row that a line is about."""

    def __init__(self, db: sqlite3.Connection, line: Line) -> None:
        self.db, self.line, self.name = db, line, line.table.name
        ids = ", ".join(map(sql_of_id, line.key))
        values = list(chain.from_iterable(line.key.values()))
        self.ids = dict(zip(line.key, db.execute(f"SELECT {ids}", values).fetchone()))
        self.where = " AND ".join(f"corrected.{name} = ?" for name in line.key)

    # Whether it fits.

    def select(self, what: str, facts: Facts | None = None) -> Any:
        """What one row says, of those with the key and these facts; None if there is none."""
        same = [self.line.columns[name].same for name in facts or ()]
        return self.db.execute(
            f"""SELECT {what} FROM stage.{self.name} AS corrected
                WHERE {" AND ".join([self.where, *same])}""",
            [*self.ids.values(), *(facts or {}).values()],
        ).fetchone()

    def count(self, facts: Facts | None = None) -> int:
        """How many rows have the key, and these facts."""
        return int(self.select("count(*)", facts)[0])

    def has_others(self) -> bool:
        """Whether the race has rows of this table: otherwise, no source is wrong about one."""
        table = "results" if self.name == "entries" else self.name
        sql = f"SELECT 1 FROM stage.{table} WHERE raceId = ?"
        return self.db.execute(sql, (self.ids["raceId"],)).fetchone() is not None

    @property
    def is_wrong(self) -> bool:
        if self.line.step is Step.ADD:
            return not self.count() and self.has_others()
        return self.count(self.line.old) > 0

    @property
    def is_right(self) -> bool:
        """Whether the table has what it has after the correction. Another one may have put another
        row in the place of this one.
        """
        if self.line.step is Step.REMOVE:
            return not self.count(self.line.old) and self.has_others()
        return self.count(self.line.new) > 0

    def found(self, facts: Facts | None = None) -> str | None:
        """What the row has, as the file writes it. None if it has no value, or there is no row."""
        names = self.line.old or self.line.new or {}
        shown = [self.line.columns[name].shown for name in names]
        row = self.select(", ".join(shown) or "1", facts)
        return row and self.line.words(row)

    def fits(self, remarks: list[str]) -> bool:
        """Whether the correction can be applied. Adds a remark if that should be looked at."""
        line = self.line
        if self.is_wrong:
            if obstacle := self.obstacle():
                remarks.append(f"correction not applied: {line.correction}: {obstacle}")
            return not obstacle
        if line.is_own and not self.count() and not self.is_right:
            remarks.append(absent(line))
        # The source may be right already: with the value, without the row, or with the missing row.
        is_right = line.step is Step.ADD or (line.step is Step.CHANGE and self.is_right)
        is_silent = is_right or line.correction.is_by_rule
        if not is_silent and (found := self.found()) is not None:
            what = f"{line.correction} is {found}, not {in_file(line.correction.wrong)}"
            remarks.append(f"obsolete correction, not applied: {what}")
        return False

    def obstacle(self) -> str:
        """Why a correction cannot be applied; empty if it can."""
        line = self.line
        if line.step is Step.REMOVE and (rows := self.count()) > 1:
            return f"{rows} rows; expected a key that ends with the number of the car"
        unknown = [(id, line.key[id][0]) for id, known in self.ids.items() if known is None]
        constructor = (line.new or {}).get("constructor")
        if constructor is not None and self.id_of("constructor", str(constructor)) is None:
            unknown.append(("constructorId", constructor))
        if not unknown:
            return ""
        id, text = unknown[0]
        return f"{text!r}; expected a {id.removesuffix('Id')} of the source"

    # Changes. Each returns how many rows or values have changed.

    def change(self) -> int:
        """Replaces the wrong value."""
        ((name, old),), ((_, new),) = (self.line.old or {}).items(), (self.line.new or {}).items()
        column = self.line.columns[name]
        self.note(self.found(self.line.old), None if new is None else str(new))
        try:
            return self.db.execute(
                f"""UPDATE stage.{self.name} AS corrected SET {column.name} = ?
                    WHERE {self.where} AND {column.same}""",
                [self.stored(name, new), *self.ids.values(), old],
            ).rowcount
        except sqlite3.IntegrityError:
            expected = "a known value" if new is None else "no two rows with the same key"
            right = in_file(self.line.correction.right)
            raise LoadError(f"{self.line.place}: {right!r}; expected {expected}") from None

    def remove(self) -> int:
        self.note(self.found(), None)
        self.db.execute(
            f"DELETE FROM stage.{self.name} AS corrected WHERE {self.where}",
            list(self.ids.values()),
        )
        return 1

    def add(self) -> int:
        """Inserts the row. SQLite gives it an id after all others, so that theirs stay."""
        facts = self.line.new or {}
        row = {self.line.columns[name].name: self.stored(name, facts[name]) for name in facts}
        if ORDER in self.line.columns and ORDER not in row:
            sql = f"SELECT max({ORDER}) + 1 FROM stage.{self.name} WHERE raceId = ?"
            (row[ORDER],) = self.db.execute(sql, (self.ids["raceId"],)).fetchone()
        insert(self.db, f"stage.{self.name}", {**row, **self.ids})
        self.note(None, self.line.words(facts.values()))
        return 1

    # Ids.

    def stored(self, name: str, value: Value) -> Value:
        """The value in the database: for a constructor or a status, its id."""
        return self.id_of(name, str(value)) if name in REFERENCES and value is not None else value

    def id_of(self, name: str, text: str) -> int | None:
        """The id of what the file names. None if it is unknown.

        An unknown status is added. A constructor or a driver has more facts, so it cannot be added.
        """
        id = LIST_BY_SINGULAR[name].id_key
        where = f"stage.{LIST_OF[id]} WHERE {REFERENCE[id]} = ? COLLATE NOCASE"
        known: int | None = self.db.execute(f"SELECT min({id}) FROM {where}", (text,)).fetchone()[0]
        if known is None and name == "status":
            self.db.execute(
                f"INSERT INTO stage.status SELECT ifnull(max({id}), 0) + 1, ? FROM stage.status",
                (text,),
            )
            return self.id_of(name, text)
        return known

    # The table `corrections`.

    def note(self, wrong: str | None, right: str | None) -> None:
        """Adds the correction to the table of corrections, with what it is about."""
        about = dict(self.ids)
        own = self.line.table.names[0]
        if own in SHARED and own not in about:
            (about[own],) = self.select(own)
        if "year" not in about and "raceId" in about:
            sql = "SELECT year FROM stage.races WHERE raceId = ?"
            (about["year"],) = self.db.execute(sql, (about["raceId"],)).fetchone()
        written = self.line.correction
        self.db.execute(
            f"""{insertion("stage.corrections", COLUMNS)}
                ON CONFLICT DO UPDATE SET value = excluded.value, witnesses = excluded.witnesses""",
            [
                *(written.table, written.key, written.column, wrong, right, written.witnesses),
                *map(about.get, SHARED),
            ],
        )

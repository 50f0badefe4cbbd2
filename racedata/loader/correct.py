"""Applies corrections to a Stage, and notes in the table `corrections` what was applied.

correction_lines.py says what a correction is about.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from racedata.loader.correction_lines import (
    DRIVER,
    NOTED,
    ORDER,
    REFERENCES,
    Facts,
    Line,
    Step,
    in_file,
)
from racedata.loader.errors import LoadError
from racedata.loader.parts import LIST_OF, REFERENCE
from racedata.loader.sql import column_names, insert, insertion
from racedata.loader.stage import Stage
from racedata.model import LIST_BY_SINGULAR
from racedata.values import Value

# The columns of the table `corrections` that it shares with other tables.
SHARED = ("year", "raceId", "driverId", "constructorId")
COLUMNS = (*NOTED, *SHARED)


class Applied(NamedTuple):
    """What corrections have changed."""

    values: int  # how many
    rows: int  # how many were removed, added, or given to another driver
    remarks: list[str]  # a line for each correction that does not fit
    absent: list[str]  # corrections of the operator's own file about what the data does not have


def apply_corrections(stage: Stage, lines: Iterable[Line]) -> Applied:
    """Applies and notes corrections. Raises LoadError for one that makes no sense."""
    races = {*stage.db.execute("SELECT year, round FROM stage.races")}
    targets, remarks, absent = list[Target](), list[str](), list[str]()
    for line in lines:
        if "raceId" not in line.key or tuple(line.key["raceId"]) in races:
            targets.append(Target(stage.db, line))
        elif line.is_own:
            absent.append(str(line.correction))

    def fitting(step: Step) -> Iterator[Target]:
        for target in targets:
            if target.line.step is step:
                if target.fits(remarks):
                    yield target
                elif target.is_absent:
                    absent.append(str(target.line.correction))

    rows = sum(target.remove() for target in fitting(Step.REMOVE))
    values = sum(target.change() for target in fitting(Step.CHANGE))
    rows += move(list(fitting(Step.MOVE)), remarks)
    rows += sum(target.add() for target in fitting(Step.ADD))
    return Applied(values, rows, remarks, absent)


def move(targets: list["Target"], remarks: list[str]) -> int:
    """Gives rows to other drivers, all at once: two drivers may have each other's rows.

    Returns how many.
    """
    moves = [(target, target.take()) for target in targets]
    while blocked := [(target, row) for target, row in moves if target.is_occupied(row)]:
        for target, row in blocked:
            target.insert(row)
            what = f"{target.line.driver!r} has such a row already"
            remarks.append(f"correction not applied: {target.line.correction}: {what}")
        moves = [each for each in moves if each not in blocked]
    for target, row in moves:
        target.note(target.reference(row["driverId"]), target.reference(target.new_driver))
        target.insert({**row, "driverId": target.new_driver})
    return len(moves)


def note_corrections(stage: Stage, lines: Iterable[Line]) -> None:
    """Notes corrections that the data of a source already has."""
    for line in sorted(lines, key=lambda line: line.step is not Step.MOVE):
        target = Target(stage.db, line)
        if target.is_right or any(each.is_right for each in target.moved()):
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
    """The row that a line is about; with `driver`, the same row of another driver."""

    def __init__(self, db: sqlite3.Connection, line: Line, driver: str = "") -> None:
        self.db, self.line, self.name = db, line, line.table.name
        key = line.key | ({"driverId": [driver]} if driver else {})
        ids = ", ".join(map(sql_of_id, key))
        values = list(chain.from_iterable(key.values()))
        self.ids = dict(zip(key, db.execute(f"SELECT {ids}", values).fetchone()))
        self.where = " AND ".join(f"corrected.{name} = ?" for name in key)

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
        if self.line.step is Step.MOVE:
            return Target(self.db, self.line, self.line.driver).count() > 0
        return self.count(self.line.new) > 0

    @property
    def is_absent(self) -> bool:
        """Whether an own correction is about a row that no source has: perhaps its key is wrong.
        The project's file is for all sources, so each lacks some of its rows.
        """
        return self.line.is_own and not self.count() and not self.is_right

    def moved(self) -> Iterator["Target"]:
        """The row, if a correction was applied that gave it to another driver."""
        rows = self.db.execute(
            "SELECT value FROM stage.corrections WHERE (tableName, key, columnName) = (?, ?, ?)",
            (self.name, self.line.correction.key, DRIVER),
        )
        return (Target(self.db, self.line, driver) for (driver,) in rows.fetchall())

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
        if line.step in (Step.REMOVE, Step.MOVE) and (rows := self.count()) > 1:
            return f"{rows} rows; expected a key that ends with the number of the car"
        texts = [("constructor", (line.new or {}).get("constructor"))]
        if line.step is Step.MOVE:
            texts.append((DRIVER, line.driver))
        if line.step is Step.ADD:
            texts += [
                (name, line.key[id][0])
                for name in (DRIVER, "constructor")
                if (id := LIST_BY_SINGULAR[name].id_key) in line.key
            ]
        for name, text in texts:
            if text is not None and self.id_of(name, str(text)) is None:
                return f"{text!r}; expected a {name} of the source"
        return ""

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
        self.take()
        return 1

    def add(self) -> int:
        """Inserts the row. Its id comes after all others, so that theirs stay."""
        facts = self.line.new or {}
        row = {self.line.columns[name].name: self.stored(name, facts[name]) for name in facts}
        if id := self.line.table.id:
            sql = f"SELECT max({id}) + 1 FROM stage.{self.name}"
            (row[id],) = self.db.execute(sql).fetchone()
        if ORDER in self.line.columns and ORDER not in row:
            sql = f"SELECT max({ORDER}) + 1 FROM stage.{self.name} WHERE raceId = ?"
            (row[ORDER],) = self.db.execute(sql, (self.ids["raceId"],)).fetchone()
        self.insert({**row, **self.ids})
        self.note(None, self.line.words(facts.values()))
        return 1

    def take(self) -> dict[str, Value]:
        """Deletes the row, and returns it."""
        names = column_names(self.db, self.name, "stage")
        row = dict(zip(names, self.select("*")))
        self.db.execute(
            f"DELETE FROM stage.{self.name} AS corrected WHERE {self.where}",
            list(self.ids.values()),
        )
        return row

    def insert(self, row: Facts) -> None:
        try:
            insert(self.db, f"stage.{self.name}", row)
        except sqlite3.IntegrityError:
            right = in_file(self.line.correction.right)
            what = f"{right!r}; expected no two rows with the same key"
            raise LoadError(f"{self.line.place}: {what}") from None

    def is_occupied(self, row: Facts) -> bool:
        """Whether the new driver has such a row as this one already."""
        key = {name: row[name] for name in self.line.table.unique} | {"driverId": self.new_driver}
        terms = " AND ".join(f"{name} IS ?" for name in key)
        sql = f"SELECT 1 FROM stage.{self.name} WHERE {terms}"
        return self.db.execute(sql, list(key.values())).fetchone() is not None

    # Ids.

    @property
    def new_driver(self) -> int | None:
        return self.id_of(DRIVER, self.line.driver)

    def reference(self, driver: Value) -> str:
        sql = "SELECT driverRef FROM stage.drivers WHERE driverId = ?"
        (found,) = self.db.execute(sql, (driver,)).fetchone()
        return str(found)

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
        line = self.line.correction
        self.db.execute(
            f"""{insertion("stage.corrections", COLUMNS)}
                ON CONFLICT DO UPDATE SET value = excluded.value, witnesses = excluded.witnesses""",
            [
                *(line.table, line.key, line.column, wrong, right, line.witnesses),
                *map(about.get, SHARED),
            ],
        )

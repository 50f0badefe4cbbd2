"""Applies corrections.csv, the known errors of dumps, to a Stage; notes which were applied.

docs/data.md describes the file. The table `corrections` has what was applied.
"""

import os
import sqlite3
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from racedata.formats import counted
from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.csvfile import AnyPath, CsvFile, Field
from racedata.loader.stage import Stage
from racedata.model import BY_NAME, TABLES, Table
from racedata.settings import LoaderSettings
from racedata.values import Parser, Value, number, one_of, plain_text, reference, text

CORRECTIONS = Path(__file__).resolve().parent / "corrections.csv"

# The SQL for a column in a key. A key has years, rounds and references instead of ids:
# `2023/18/alonso`.
IN_KEY = {
    "raceId": "raceId = (SELECT raceId FROM stage.races WHERE year = ? AND round = ?)",
    "driverId": "driverId = (SELECT driverId FROM stage.drivers WHERE driverRef = ?)",
    "constructorId": """constructorId = (
        SELECT constructorId FROM stage.constructors WHERE constructorRef = ?)""",
}
# Numbers have no leading zeros, so that two keys that differ name two rows.
PART = r"(?!0[0-9])[A-Za-z0-9_-]+"
KEY = Parser("the key of a row, such as alonso or 2023/18/alonso", f"{PART}(/{PART})*")
FIELDS = [
    Field("table", one_of([table.name for table in TABLES if table.key]), required=True),
    Field("key", KEY, required=True),
    Field("column", text("the name of a column"), required=True),
    Field("wrong", plain_text, required=False),
    Field("right", plain_text, required=False),
    Field("source", text("the evidence that the value is wrong"), required=True),
]
HEADER = ",".join(field.name for field in FIELDS)

# Ids differ between dumps, so the file has a text instead. By the name in the file: the column with
# the id, the table that it refers to, and the column of that table with the text.
REFERENCES = {
    "constructor": ("constructorId", "constructors", "constructorRef"),
    "status": ("statusId", "status", "status"),
}
# The columns that the table `corrections` shares with other tables.
ABOUT = ("year", "raceId", "driverId", "constructorId")
# The columns of the table `corrections` that a Correction has.
NOTED = ("tableName", "key", "columnName", "sourceValue", "value", "witnesses")
COLUMNS = ", ".join((*NOTED, *ABOUT))


class Correction(NamedTuple):
    """A line of the file."""

    table: str
    key: str
    column: str
    wrong: str | None  # None for an unknown value
    right: str | None
    witnesses: str

    def __str__(self) -> str:
        return f"{self.table} {self.key} {self.column}"


class Corrected(NamedTuple):
    """A column that can be corrected."""

    name: str  # in the database
    parse: Parser
    shown: str  # the SQL of its value, as it is in the file
    same: str  # the SQL that compares this value with another


def add_corrections_argument(parser: ArgumentParser) -> None:
    """Adds `--corrections`: a path, or None for `none`. Empty means the project's own file."""
    parser.add_argument(
        "--corrections",
        metavar="FILE",
        default=LoaderSettings.read(os.environ).corrections,
        type=lambda text: None if text == "none" else Path(text) if text else CORRECTIONS,
        help="a file that lists known errors in sources and the right values; the word none "
        "leaves the data as it is",
    )


def corrections_at(path: Path | None, progress: Progress) -> list[Correction]:
    """The corrections in a file, if any. Raises LoadError for a file that is not such a list."""
    if path is None:
        return []
    if not path.is_file():  # a pipe could be read only once
        what = "not a regular file" if path.exists() else "no such file"
        raise LoadError(f"{path}: {what}; expected a file of corrections, or the word none")
    return list(corrections_in(path, progress))


def apply_corrections(
    stage: Stage, file: str, corrections: Iterable[Correction]
) -> tuple[int, list[str]]:
    """Applies and notes corrections. `file` begins errors.

    Returns how many values were corrected, and a line for each correction that does not fit.
    Raises LoadError for a correction that makes no sense.
    """
    count = 0
    not_applied = []
    for correction in corrections:
        rows, line = apply(stage, file, correction)
        count += rows
        if line:
            not_applied.append(line)
    return count, not_applied


def note_corrections(stage: Stage, file: str, corrections: Iterable[Correction]) -> None:
    """Notes corrections that the data of a source already has."""
    for correction in corrections:
        row = RowToCorrect(stage.db, file, correction)
        if row.is_right:
            row.note(correction.wrong, correction.right)


class CorrectedRows:
    """Corrects rows before they are matched: of lists, and the dates of calendars."""

    def __init__(self, corrections: Iterable[Correction]) -> None:
        self.by_row: dict[tuple[str, str], list[Correction]] = {}
        for each in corrections:
            self.by_row.setdefault((each.table, each.key.lower()), []).append(each)

    def row(self, table: str, key: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of a row with the right values."""
        changes = {
            each.column: each.right
            for each in self.by_row.get((table, key.lower()), ())
            if row.get(each.column) == each.wrong
        }
        return {**row, **changes}

    def calendar(self, season: int, races: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """A copy of the races of a season."""
        return [self.row("races", f"{season}/{race['round']}", race) for race in races]


def corrections_in(path: AnyPath, progress: Progress) -> Iterator[Correction]:
    """The corrections in a file. Raises LoadError if two correct the same value."""
    file = CsvFile(path, FIELDS, progress)
    found: set[tuple[str, str, str]] = set()
    for batch in file.batches():
        for row in zip(*batch):
            texts = [None if value is None else str(value) for value in row]
            correction = Correction(*texts)  # type: ignore[arg-type]  # see FIELDS
            corrected_value = (correction.table, correction.key.casefold(), correction.column)
            if corrected_value in found:
                raise file.duplicate(len(found) + 1, ["table", "key", "column"])
            found.add(corrected_value)
            yield correction


def apply(stage: Stage, file: str, correction: Correction) -> tuple[int, str]:
    """Applies one correction.

    Returns how many rows have changed, and a line for the report if the correction does not fit.
    """
    row = RowToCorrect(stage.db, file, correction)
    if not row.is_wrong:
        if row.is_right or row.found is None:  # the dump has the right value, or none
            return 0, ""
        what = f"{correction} is {row.found}, not {in_file(correction.wrong)}"
        return 0, f"obsolete correction, not applied: {what}"
    stored = row.new
    if correction.column in REFERENCES and row.new is not None:
        stored = id_of(stage.db, correction.column, str(row.new))
        if stored is None:
            what = f"{correction}: {row.new!r}; expected a constructor of the source"
            return 0, f"correction not applied: {what}"
    changed = row.update(stored)
    row.note(in_words(row.found), in_words(row.new))
    return changed, ""


class RowToCorrect:
    """The row that a correction in a file is about. Raises LoadError for a wrong correction."""

    def __init__(self, db: sqlite3.Connection, file: str, correction: Correction) -> None:
        self.db, self.correction, self.place = db, correction, f"{file}: {correction}"
        table = BY_NAME[correction.table]
        columns = columns_of(table.name)
        if correction.column not in columns:
            raise LoadError(f"{self.place}: no such column; expected one of {', '.join(columns)}")
        self.column = columns[correction.column]
        self.where, self.parts = condition(table, correction.key)
        if self.where.count("?") != len(self.parts):
            expected = " or ".join(map(str, lengths_of_key(table)))
            parts = counted(len(self.parts), "part")
            raise LoadError(f"{self.place}: a key of {parts}; expected {expected}")
        self.old, self.new = self.parsed(correction.wrong), self.parsed(correction.right)
        # without such a row, the value is neither wrong nor right
        row: Sequence[Any] = db.execute(
            f"""SELECT {self.column.same}, {self.column.same}, {self.column.shown},
                    {", ".join(of_row_in(table, name) for name in ABOUT)}
                FROM stage.{table.name} AS corrected WHERE {self.where} ORDER BY 1 DESC""",
            [self.old, self.new, *self.parts],
        ).fetchone() or (False, False, None)
        self.is_wrong, self.is_right, self.found = row[:3]
        self.about = row[3:]  # the values of ABOUT

    def parsed(self, text: str | None) -> Value:
        try:
            return None if text is None else self.column.parse(text)
        except ValueError:
            expected = self.column.parse.expected
            raise LoadError(f"{self.place}: {text!r}; expected {expected}") from None

    def update(self, stored: Value) -> int:
        """Replaces the wrong value. Returns how many rows have changed."""
        try:
            return self.db.execute(
                f"""UPDATE stage.{self.correction.table} AS corrected SET {self.column.name} = ?
                    WHERE {self.where} AND {self.column.same}""",
                [stored, *self.parts, self.old],
            ).rowcount
        except sqlite3.IntegrityError:
            expected = "a known value" if self.new is None else "no two rows with the same key"
            right = in_file(self.correction.right)
            raise LoadError(f"{self.place}: {right!r}; expected {expected}") from None

    def note(self, wrong: str | None, right: str | None) -> None:
        """Adds the correction to the table of corrections."""
        self.db.execute(
            f"""INSERT INTO stage.corrections ({COLUMNS})
                VALUES ({", ".join("?" * (6 + len(ABOUT)))})
                ON CONFLICT DO UPDATE SET value = excluded.value, witnesses = excluded.witnesses""",
            [*self.correction[:3], wrong, right, self.correction.witnesses, *self.about],
        )


def in_file(text: str | None) -> str:
    return r"\N" if text is None else text


def in_words(value: Value) -> str | None:
    return None if value is None else str(value)


@cache  # more than a thousand corrections need the columns of a few tables
def columns_of(name: str) -> dict[str, Corrected]:
    """The columns of a table that can be corrected, by their names in the file."""
    table, found = BY_NAME[name], {}
    for column in table.columns:
        if not column.name.endswith("Id"):
            # Some sources write 205.460, and some 205.46.
            same = "CAST({0} AS REAL) IS CAST(? AS REAL)" if column.parse is number else "{0} IS ?"
            found[column.name] = Corrected(
                column.name, column.parse, column.name, same.format(column.name)
            )
    for column_name, (id, parent, words) in REFERENCES.items():
        if id in table.names and id not in (*table.key, table.names[0]):
            shown = (
                f"(SELECT {words} FROM stage.{parent} AS other WHERE other.{id} = corrected.{id})"
            )
            parse = reference if parent == "constructors" else plain_text
            found[column_name] = Corrected(id, parse, shown, f"{shown} COLLATE NOCASE IS ?")
    return found


def lengths_of_key(table: Table) -> list[int]:
    """How many parts a key may have.

    If a driver has two rows, with two cars, the number of the car is the last part.
    """
    parts = sum(IN_KEY.get(name, "?").count("?") for name in table.key)
    return [parts] if table.unique == table.key else [parts, parts + 1]


def condition(table: Table, key: str) -> tuple[str, list[str]]:
    """The condition for the rows with a key, and the parts of the key: the values that it needs."""
    parts = key.split("/")
    terms = [IN_KEY.get(name, f"{name} = ?") for name in table.key]
    if len(parts) == lengths_of_key(table)[-1]:
        terms += [f"{name} = ?" for name in table.unique[len(table.key) :]]
    return " AND ".join(terms), parts


def of_row_in(table: Table, name: str) -> str:
    """The SQL of a column of ABOUT, for a row of a table."""
    if name in (*table.key, table.names[0]):
        return f"corrected.{name}"
    if name == "year" and "raceId" in table.names:
        return "(SELECT year FROM stage.races WHERE races.raceId = corrected.raceId)"
    return "NULL"


def id_of(db: sqlite3.Connection, column: str, text: str) -> int | None:
    """The id of a status or constructor that the file names. None if the constructor is unknown.

    An unknown status is added. A constructor has more facts, so it cannot be added.
    """
    id, parent, name = REFERENCES[column]
    sql = f"SELECT min({id}) FROM stage.{parent} WHERE {name} = ? COLLATE NOCASE"
    found: int | None = db.execute(sql, (text,)).fetchone()[0]
    if found is None and parent == "status":
        db.execute(
            f"INSERT INTO stage.status SELECT ifnull(max({id}), 0) + 1, ? FROM stage.status",
            (text,),
        )
        return id_of(db, column, text)
    return found


def store_corrections(stage: Stage) -> None:
    """Copies the table into the database, in the order of answers.

    Leaves out corrections whose value is not the one that counts.
    """
    db = stage.db
    rows = db.execute(
        f"""SELECT record, tableName, key, columnName, value, {", ".join(ABOUT)}
            FROM stage.corrections"""
    ).fetchall()
    for record, table, key, column, value, *about in rows:
        if not has_value(db, BY_NAME[table], key, column, value, dict(zip(ABOUT, about))):
            db.execute("DELETE FROM stage.corrections WHERE record = ?", (record,))
    db.execute(
        f"""INSERT INTO corrections ({COLUMNS})
            SELECT {COLUMNS} FROM stage.corrections
            LEFT JOIN (SELECT raceId, round FROM races) USING (raceId)
            ORDER BY year, round, tableName, key, columnName"""
    )


def has_value(
    db: sqlite3.Connection,
    table: Table,
    key: str,
    column: str,
    value: str | None,
    about: Mapping[str, int | None],
) -> bool:
    """Whether the row of a correction still has the corrected value.

    Ids name the row: sources may give a race another round, or a driver another reference.
    """
    terms, values, parts = [], list[Value](), key.split("/")
    own = table.names[0]
    for name in [own] if about.get(own) and own not in table.key else table.key:
        length = IN_KEY.get(name, "?").count("?")
        terms.append(f"{name} = ?")
        values.append(about[name] if name in IN_KEY else parts[0])
        parts = parts[length:]
    found = columns_of(table.name)[column]
    new = None if value is None else found.parse(value)
    where = " AND ".join([*terms, found.same])
    sql = f"SELECT 1 FROM stage.{table.name} AS corrected WHERE {where}"
    return db.execute(sql, [*values, new]).fetchone() is not None

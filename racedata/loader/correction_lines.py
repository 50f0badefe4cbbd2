"""What a line of the file of corrections says: which row, what is wrong about it, what is right.

It has the SQL for a row and its facts, and runs none. docs/data.md describes the file.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import cache
from typing import NamedTuple

from racedata.formats import counted
from racedata.loader.errors import LoadError
from racedata.loader.parts import LIST_OF, REFERENCE
from racedata.model import LIST_BY_SINGULAR, TABLE_BY_NAME, Table
from racedata.values import Parser, Value, number, plain_text, reference, round_number, year

Facts = Mapping[str, Value]  # by the name of a column in the file

ROW = "row"  # the column that means the whole row: it is missing, or one too many
ORDER = "positionOrder"  # an added row without it is the last of its race
# Ids differ between dumps, so the file has a reference or a text instead, named without `Id`.
REFERENCES = ("constructor", "status")


class Correction(NamedTuple):
    """A correction, as the file has it."""

    table: str
    key: str
    column: str
    wrong: str | None  # None for an unknown value
    right: str | None
    witnesses: str
    is_by_rule: bool = False  # then it is not reported as obsolete: a rule is about one source

    def __str__(self) -> str:
        return f"{self.table} {self.key} {self.column}"


# The columns of the table `corrections` that a Correction has.
NOTED = ("tableName", "key", "columnName", "sourceValue", "value", "witnesses")


class Step(IntEnum):
    """What a correction does, in the order in which all are applied.

    A row too many may be in the way of another. A missing row may be where another one was.
    """

    REMOVE = 0
    CHANGE = 1
    ADD = 2


class CorrectableColumn(NamedTuple):
    """A column that can be corrected."""

    name: str  # in the database
    parse: Parser
    shown: str  # the SQL of its value, as the file writes it
    same: str  # the SQL that compares `shown` with another value
    required: bool  # whether each row needs a value


class Line:
    """A correction, parsed. Raises LoadError if it makes no sense; `file` begins the error.

    `is_own` says whether it is in a file of the operator, who knows which sources are loaded.
    """

    def __init__(self, file: str, correction: Correction, is_own: bool = False) -> None:
        self.file, self.correction, self.is_own = file, correction, is_own
        self.place = f"{file}: {correction}"
        self.table = TABLE_BY_NAME[correction.table]
        self.columns = correctable_columns(self.table.name, "stage")
        column, wrong, right = correction.column, correction.wrong, correction.right
        # Calendars are chosen as a whole.
        has_rows = "raceId" in self.table.key and self.table.name != "sessions"
        words = [ROW] if has_rows else []
        if column not in (*self.columns, *words):
            expected = ", ".join((*self.columns, *words))
            raise LoadError(f"{self.place}: no such column; expected one of {expected}")
        self.key = self.parsed_key()
        self.old: Facts | None
        self.new: Facts | None
        if column == ROW:
            self.old, self.new = self.facts_in(wrong), self.facts_in(right)
            if (self.old is None) == (self.new is None):
                what = r"\N as wrong, if the row is missing, or as right, if it is one too many"
                raise LoadError(f"{self.place}: expected {what}")
            self.step = Step.ADD if self.old is None else Step.REMOVE
            self.check_required()
        else:
            parse, self.step = self.columns[column].parse, Step.CHANGE
            self.old = {column: wrong and self.parsed(parse, wrong)}
            self.new = {column: right and self.parsed(parse, right)}

    def parsed_key(self) -> dict[str, list[Value]]:
        """The parts of the key, by column."""
        parts = self.correction.key.split("/")
        # If a driver has two rows, with two cars, the number of the car is the last part.
        keys = [
            {name: key_parsers(name, self.table) for name in names}
            for names in dict.fromkeys([self.table.key, self.table.unique])
        ]
        lengths = [sum(map(len, key.values())) for key in keys]
        if len(parts) not in lengths:
            had, expected = counted(len(parts), "part"), " or ".join(map(str, lengths))
            raise LoadError(f"{self.place}: a key of {had}; expected {expected}")
        rest = iter(parts)
        return {
            name: [self.parsed(parse, next(rest)) for parse in parsers]
            for name, parsers in keys[lengths.index(len(parts))].items()
        }

    def parsed(self, parse: Parser, text: str | None) -> Value:
        try:
            return parse(text or "")
        except ValueError:
            shown = in_file(text)
            raise LoadError(f"{self.place}: {shown!r}; expected {parse.expected}") from None

    @property
    def names(self) -> list[str]:
        """The names of facts about a row: its columns that are not in the key."""
        return [name for name in self.columns if name not in self.key]

    def facts_in(self, text: str | None) -> dict[str, Value] | None:
        r"""The facts about a row, from `name=value; name=value`. None for `\N`."""
        if text is None:
            return None
        facts: dict[str, Value] = {}
        for part in text.split(";"):
            name, equals, value = map(str.strip, part.partition("="))
            if name in self.key and value == str(self.key[name][0]):
                continue  # as `racedata check --against` writes the number of a car
            if not equals or name not in self.names or name in facts:
                expected = f"name=value, each once, with names of {', '.join(self.names)}"
                raise LoadError(f"{self.place}: {part.strip()!r}; expected {expected}")
            is_unknown = value == in_file(None)
            facts[name] = None if is_unknown else self.parsed(self.columns[name].parse, value)
        return facts

    def check_required(self) -> None:
        """Raises LoadError if a missing row would lack what each row has."""
        required = [name for name in self.names if self.columns[name].required and name != ORDER]
        if self.new is not None and any(self.new.get(name) is None for name in required):
            others = ", ".join(name for name in self.names if name not in required)
            what = f"a row with {' and '.join(required)}, and if known {others}"
            raise LoadError(f"{self.place}: {self.correction.right!r}; expected {what}")

    def words(self, values: Iterable[Value]) -> str | None:
        """Values of the facts, as the file has them: one, or several with their names."""
        known = list(values)
        if self.step is Step.CHANGE:
            return None if known[0] is None else str(known[0])
        names = self.old or self.new or {}
        return "; ".join(f"{name}={in_file(value)}" for name, value in zip(names, known))


def known_facts(facts: Facts) -> str:
    """Known facts about a row, as the file has them: `name=value; name=value`."""
    return "; ".join(f"{name}={value}" for name, value in facts.items() if value is not None)


def in_file(value: Value) -> str:
    return r"\N" if value is None else str(value)


def key_columns(table: Table) -> list[str]:
    """The columns that name a row of a list, or one within its race."""
    return [name for name in table.key if name != "raceId" and table.name != "races"]


def key_parsers(name: str, table: Table) -> list[Parser]:
    """How each part of a key is read that names a value of a column: `2023/18` names a race."""
    if name == "raceId":
        return [year, round_number]
    if name in REFERENCE:
        return [reference]
    return [column.parse for column in table.columns if column.name == name]


def sql_of_text(id: str, schema: str) -> str:
    """The SQL of the reference, or of the text, for an id of the row `corrected`."""
    list_of_id = f"{schema}.{LIST_OF[id]} AS other"
    return f"(SELECT {REFERENCE[id]} FROM {list_of_id} WHERE other.{id} = corrected.{id})"


@cache  # more than a thousand corrections need the columns of a few tables
def correctable_columns(table_name: str, schema: str) -> dict[str, CorrectableColumn]:
    """The columns of a table that can be corrected, by their names in the file. Their SQL is for a
    query in a schema that calls the table `corrected`.
    """
    table, corrected = TABLE_BY_NAME[table_name], {}
    columns = {column.name: column for column in table.columns}
    for name, column in columns.items():
        # a calendar is chosen as a whole, so no race moves to another season
        if not name.endswith("Id") and name != "year":
            # Some sources write 205.460, and some 205.46.
            same = "CAST({0} AS REAL) IS CAST(? AS REAL)" if column.parse is number else "{0} IS ?"
            corrected[name] = CorrectableColumn(
                name, column.parse, name, same.format(name), column.required
            )
    for singular in REFERENCES:
        id = LIST_BY_SINGULAR[singular].id_key
        if id in columns and id not in (*table.key, table.names[0]):
            shown = sql_of_text(id, schema)
            parse = reference if singular == "constructor" else plain_text
            same = f"{shown} COLLATE NOCASE IS ?"
            corrected[singular] = CorrectableColumn(id, parse, shown, same, columns[id].required)
    return corrected

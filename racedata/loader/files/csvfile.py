"""Reads a CSV file row by row, and checks each field; writes a line of one. Errors name file, line
and column.

values.py turns a text into a value. The meaning of the fields does not belong here.
"""

import csv
import io
import re
import sqlite3
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from racedata.formats import counted
from racedata.loader.errors import LoadError, Progress
from racedata.loader.sql import insertion
from racedata.values import Parser, Value

if TYPE_CHECKING:
    from _csv import Reader

AnyPath = Path | zipfile.Path
Insert = Callable[[list[Sequence[Value]]], object]  # gets rows, column by column

MISSING = frozenset(["", r"\N"])  # fields without a value
BATCH = 400  # rows read together, column by column: much faster than row by row
# How Python shows a byte that is not UTF-8. No parser accepts it.
NOT_UTF8 = re.compile("[\udc80-\udcff]")


def csv_line(values: Sequence[object]) -> str:
    """A line of a CSV file, without its end. None is an empty field."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(values)
    return text.getvalue()


class Remembered(dict[str, Value]):
    """The values of fields that were read before. Faster than lru_cache."""

    def __init__(self, value_of: Callable[[str], Value]) -> None:
        self.value_of = value_of

    def __missing__(self, text: str) -> Value:
        value = self.value_of(text)
        if len(self) > 4096:  # keeps the memory flat
            self.clear()
        if len(text) < 100:
            self[text] = value
        return value


class Field(NamedTuple):
    """A column of a CSV file, by its name in the header."""

    name: str
    parse: Parser
    required: bool

    def value_of(self, text: str) -> Value:
        """The value of a field. Raises ValueError."""
        text = text.strip(" ")  # published dumps have `Argentinian `
        if text not in MISSING:
            return self.parse(text)
        if self.required:
            raise ValueError
        return None

    def values_of_many(self) -> Callable[[Sequence[str]], Sequence[Value]]:
        """The function that returns the values of many fields at once."""
        value_of = Remembered(self.value_of).__getitem__
        return lambda texts: list(map(value_of, texts))


@dataclass
class CsvFile:
    """A CSV file, and the columns to read."""

    path: AnyPath
    fields: Sequence[Field]
    progress: Progress
    needs_all_columns: bool = False
    header: Sequence[str] = ()
    rows_read: int = 0  # without the header and blank lines

    def batches(self) -> Iterator[list[Sequence[Value]]]:
        """The rows, up to BATCH at a time: for each of `fields`, its values."""
        with self.open_rows() as reader:
            self.header = next(reader, [])
            self.check_header()
            plan = [
                (index, field.values_of_many()) for index, field in zip(self.indexes(), self.fields)
            ]
            while batch := list(islice(reader, BATCH)):
                # a blank line has no fields
                rows = batch if all(batch) else list(filter(None, batch))
                if not rows:
                    continue
                try:
                    texts = self.columns_of(rows)
                    values = [values_of(texts[index]) for index, values_of in plan]
                except ValueError:
                    raise self.first_wrong_value() from None
                self.rows_read += len(rows)
                yield values
                self.progress(f"{self.path.name}: {counted(self.rows_read, 'row')}")

    def insert_into(self, db: sqlite3.Connection, table: str, insert: Insert | None = None) -> None:
        """Inserts the rows into a table that has a column for each field. Raises LoadError for a
        duplicate.

        `insert`, if given, inserts each batch, in row order.
        """
        statement = insertion(table, tuple(field.name for field in self.fields))
        insert = insert or (lambda batch: db.executemany(statement, zip(*batch)))
        count = f"SELECT count(*) FROM {table}"
        (before,) = db.execute(count).fetchone()  # from another file
        try:
            for batch in self.batches():
                insert(batch)
        except sqlite3.IntegrityError as error:
            # Such as `UNIQUE constraint failed: races.year, races.round`.
            (after,) = db.execute(count).fetchone()
            number, names = after - before + 1, re.findall(r"\.(\w+)", str(error))
            raise self.duplicate(number, names) from None

    @contextmanager
    def open_rows(self) -> Iterator["Reader"]:
        """A csv.reader of the file. Turns its errors into a LoadError that names the line."""
        with self.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
            reader = csv.reader(text, strict=True)
            try:
                yield reader
            except csv.Error as error:
                what = f"broken CSV ({error}); expected fields separated by commas"
                raise self.fault(what, line=reader.line_num) from None

    def check_header(self) -> None:
        if wrong := NOT_UTF8.search(",".join(self.header)):
            raise self.fault(not_utf8(wrong))
        for field in self.fields:
            if (field.required or self.needs_all_columns) and field.name not in self.header:
                raise self.fault(
                    f"not in the header, which has {', '.join(self.header)[:300] or 'nothing'}",
                    field.name,
                )
            if self.header.count(field.name) > 1:
                raise self.fault("twice in the header; expected once", field.name)

    def remarks(self, rare: Sequence[str] = ()) -> list[str]:
        """A line for each column that the file lacks, except those that are `rare`."""
        absent = [field.name for field in self.fields if field.name not in [*self.header, *rare]]
        return [
            f"{self.path.name}: no column {name}, so it is unknown in all rows" for name in absent
        ]

    def indexes(self) -> list[int]:
        """The index of each of `fields` in a row; for one that the file lacks, the index after the
        last.
        """
        indexes = {name: index for index, name in enumerate(self.header)}
        return [indexes.get(field.name, len(self.header)) for field in self.fields]

    def columns_of(self, rows: list[list[str]]) -> list[tuple[str, ...]]:
        """The texts of some rows, column by column; after the last column, one of missing texts.

        If a row is short, its last columns are missing. Raises ValueError if a row is too long.
        """
        if len(set(map(len, rows))) > 1:
            width = max(map(len, rows))
            rows = [row + [""] * (width - len(row)) for row in rows]
        columns = list(zip(*rows))
        if len(columns) > len(self.header):
            raise ValueError
        return columns + [("",) * len(rows)] * (len(self.header) + 1 - len(columns))

    def first_wrong_value(self) -> LoadError:
        """The cause of a ValueError in `batches`. Reads the file again, row by row, to find the
        line and column.
        """
        with self.open_rows() as reader:
            next(reader)
            for row in reader:
                if len(row) > len(self.header):
                    fields = counted(len(row), "field")
                    what = f"{fields}; expected {len(self.header)}, as in the header"
                    return self.fault(what, line=reader.line_num)
                for field, index in zip(self.fields, self.indexes()) if row else ():
                    text = row[index] if index < len(row) else ""
                    try:
                        field.value_of(text)
                    except ValueError:
                        what = f"{text[:80]!r}; expected {field.parse.expected}"
                        if wrong := NOT_UTF8.search(text):
                            what = not_utf8(wrong)
                        return self.fault(what, field.name, reader.line_num)
        raise LoadError(f"{self.path.name}: changed while it was being read; try again")

    def duplicate(self, number: int, names: Sequence[str]) -> LoadError:
        """The error for row `number`, counted from 1: an earlier row has the same `names`."""
        line, fields = self.found_again(number)
        row = dict(zip(self.header, fields))
        key = ", ".join(row[name] for name in names)
        what = f"{key[:80]!r} appears twice; expected once"
        return self.fault(what, ", ".join(names), line)

    def line_of(self, number: int) -> int:
        """The line of row `number`, counted from 1."""
        return self.found_again(number)[0]

    def found_again(self, number: int) -> tuple[int, list[str]]:
        """The line and the fields of row `number`. Reads the file again."""
        with self.open_rows() as reader:
            next(reader)
            row = next(islice(filter(None, reader), number - 1, None))
            return reader.line_num, row

    def fault(self, what: str, column: str | None = None, line: int = 1) -> LoadError:
        place = f"{self.path.name}, line {line}"
        if column:
            place += f", {'columns' if ', ' in column else 'column'} {column}"
        return LoadError(f"{place}: {what}")


def not_utf8(found: re.Match[str]) -> str:
    return f"{found[0].encode(errors='surrogateescape')!r}; expected UTF-8"

"""Reads a CSV file row by row, and checks each field; writes a line of one. Errors name file, line
and column.

values.py turns a text into a value. The meaning of the fields does not belong here.
"""

import csv
import io
import re
import sqlite3
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
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


@dataclass
class CsvFile:
    """A CSV file, and the columns to read."""

    path: AnyPath
    fields: Sequence[Field]
    progress: Progress
    needs_all_columns: bool = False
    header: Sequence[str] = ()
    rows_read: int = 0  # without the header and blank lines
    # the latest batch: the last line of each row, and its texts
    lines: Sequence[int] = ()
    rows: Sequence[list[str]] = ()

    def batches(self) -> Iterator[list[Sequence[Value]]]:
        """The rows, up to BATCH at a time: for each of `fields`, its values."""
        with self.open_rows() as reader:
            self.header = next(reader, [])
            self.check_header()
            # most columns have few distinct texts
            parsers = [lru_cache(1024)(field.value_of) for field in self.fields]
            # a blank line has no fields
            rows = ((reader.line_num, row) for row in reader if row)
            while batch := list(islice(rows, BATCH)):
                self.lines, self.rows = zip(*batch)
                try:
                    texts = self.columns_of(self.rows)
                    values: list[Sequence[Value]] = [
                        [*map(value_of, texts[index])]
                        for index, value_of in zip(self.indexes(), parsers)
                    ]
                except ValueError:
                    raise self.first_wrong_value() from None
                self.rows_read += len(batch)
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
            at = after - before - (self.rows_read - len(self.rows))  # in the batch
            names = re.findall(r"\.(\w+)", str(error))
            row = dict(zip(self.header, self.rows[at]))
            raise self.duplicate(self.lines[at], {name: row[name] for name in names}) from None

    @contextmanager
    def open_rows(self) -> Iterator["Reader"]:
        """A csv.reader of the file. Turns its errors into a LoadError that names the line."""
        with self.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
            reader = csv.reader(text, strict=True)
            try:
                yield reader
            except csv.Error as error:
                what = f"broken CSV ({error}); expected fields separated by commas"
                raise self.fault(what, reader.line_num) from None

    def check_header(self) -> None:
        if wrong := NOT_UTF8.search(",".join(self.header)):
            raise self.fault(not_utf8(wrong))
        for field in self.fields:
            if (field.required or self.needs_all_columns) and field.name not in self.header:
                found = ", ".join(self.header)[:300] or "nothing"
                raise self.fault(f"not in the header, which has {found}", column=field.name)
            if self.header.count(field.name) > 1:
                raise self.fault("twice in the header; expected once", column=field.name)

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

    def columns_of(self, rows: Sequence[list[str]]) -> list[tuple[str, ...]]:
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
        """The cause of a ValueError in `batches`: looks at the fields one by one."""
        for line, row in zip(self.lines, self.rows):
            if len(row) > len(self.header):
                fields = counted(len(row), "field")
                return self.fault(f"{fields}; expected {len(self.header)}, as in the header", line)
            for field, index in zip(self.fields, self.indexes()):
                text = row[index] if index < len(row) else ""
                try:
                    field.value_of(text)
                except ValueError:
                    what = f"{text[:80]!r}; expected {field.parse.expected}"
                    if wrong := NOT_UTF8.search(text):
                        what = not_utf8(wrong)
                    return self.fault(what, line, field.name)
        raise AssertionError("each field has a value")

    def duplicate(self, line: int, key: Mapping[str, str]) -> LoadError:
        """The error for a line: an earlier one has the same values of these columns."""
        what = f"{', '.join(key.values())[:80]!r} appears twice; expected once"
        return self.fault(what, line, ", ".join(key))

    def fault(self, what: str, line: int = 1, column: str = "") -> LoadError:
        place = f"{self.path.name}, line {line}"
        if column:
            place += f", {'columns' if ', ' in column else 'column'} {column}"
        return LoadError(f"{place}: {what}")


def not_utf8(found: re.Match[str]) -> str:
    return f"{found[0].encode(errors='surrogateescape')!r}; expected UTF-8"

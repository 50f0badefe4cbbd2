"""A dump of CSV files, to change before it is loaded."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from racedata.loader.load import load
from support.loads import loader_settings, select


class ChangedDump:
    """The files of a dump: `{name: [header, *rows]}`, all of them lists of fields."""

    def __init__(self, folder: Path, files: dict[str, list[list[str]]], prefix: str = "") -> None:
        self.folder, self.database = folder / "source", folder / "x.db"
        self.files, self.prefix = files, prefix

    def change(self, name: str, line: int, /, **fields: str) -> None:
        """Changes fields of the row in a line."""
        header, row = self.files[name][0], self.files[name][line - 1]
        for column, value in fields.items():
            row[header.index(column)] = value

    def line(self, name: str, /, **fields: str) -> int:
        """The line of the row that has these fields."""
        header, *rows = self.files[name]
        [line] = [
            line
            for line, row in enumerate(rows, 2)
            if fields.items() <= dict(zip(header, row)).items()
        ]
        return line

    def last(self, name: str) -> int:
        """The number of the last line."""
        return len(self.files[name])

    def add(self, name: str, /, **fields: str) -> None:
        """Adds a copy of the last row with other values."""
        self.files[name].append([*self.files[name][-1]])
        self.change(name, self.last(name), **fields)

    def load(self) -> list[str]:
        """The lines of the loader's report."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for name, rows in self.files.items():
            path = self.folder / f"{self.prefix}{name}.csv"
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(rows)
        return load([str(self.folder)], loader_settings(self.database), lambda text: None)

    def stored(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query, from the database that is built from the dump."""
        self.load()
        return select(self.database, sql)


class Case(NamedTuple):
    """What a query finds in the database built from a dump, perhaps with changes."""

    title: str  # the rule, in a sentence
    changes: list[
        tuple[str, dict[str, str], dict[str, str]]
    ]  # a file, a row's fields, and new ones
    sql: str
    rows: list[tuple[Any, ...]]

    def check(self, dump: ChangedDump) -> None:
        for name, key, fields in self.changes:
            if key:
                dump.change(name, dump.line(name, **key), **fields)
            else:
                dump.add(name, **fields)
        assert dump.stored(self.sql) == self.rows


def cases_in(path: Path) -> list[Any]:
    """The cases in a text, as parameters of a test: a title, changes, a query, and a JSON array for
    each row. A change names a file, the fields of its row, if any, and the new ones, as JSON: a row
    without fields is a copy of the last one.
    """
    cases = []
    for text in path.read_text(encoding="utf-8").split("\n# ")[1:]:
        title, *lines = text.strip().splitlines()
        changes = [line[2:].split(" ", 1) for line in lines if line.startswith("! ")]
        found = [tuple(json.loads(line)) for line in lines if line.startswith("[")]
        case = Case(
            title,
            [(name, *json.loads(f"[{fields}]")) for name, fields in changes],
            "\n".join(line for line in lines if line[0] not in "!["),
            found,
        )
        cases.append(pytest.param(case, id=title))
    return cases

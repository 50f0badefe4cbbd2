"""A dump of CSV files, to change before it is loaded."""

import csv
import shutil
from pathlib import Path
from typing import Any

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

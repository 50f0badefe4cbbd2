"""The SQL of a reader of dumps, in a file of the same name: it turns a dump's files into a Stage.

A reader makes a temporary table for each file of the dump, loads them, and fills the Stage from
them. The SQL has sections, and paragraphs of one statement. A section begins with a paragraph of
its own, which is only a comment: `-- [name]`, and what the section does.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files

from racedata.loader.files.csvfile import AnyPath, CsvFile, Field
from racedata.loader.stage import Stage
from racedata.values import Parser, plain_text, whole_number

FILLED = re.compile(r"^INSERT INTO stage\.(\w+)", re.MULTILINE)
TITLE = re.compile(r"^-- \[(\w+)\].*\n(?:--.*\n)*\n", re.MULTILINE)
CREATED = re.compile(r"^CREATE TEMP TABLE (\w+)", re.MULTILINE)


def sections_of(name: str) -> dict[str, list[str]]:
    """The statements of a file, by section."""
    text = files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
    _, *found = TITLE.split(text)
    return {
        section: statements.strip("\n").split("\n\n")
        for section, statements in zip(found[::2], found[1::2])
    }


def tables_in(statements: Sequence[str]) -> list[str]:
    """The names of the tables that statements make."""
    return [found[1] for each in statements if (found := CREATED.search(each))]


def run(stage: Stage, statements: Sequence[str]) -> None:
    """Executes statements."""
    for statement in statements:
        rows = stage.db.execute(statement).rowcount
        if filled := FILLED.search(statement):
            stage.rows[filled[1]] = rows


def fields_of(
    db: sqlite3.Connection,
    table: str,
    parsers: Mapping[str, Parser],
    ids_of: Callable[[str], Parser],
) -> Iterator[Field]:
    """How the columns of a file are read: by a parser, or as whole numbers or texts.

    `ids_of` makes the parser of a column that refers to a table.
    """
    parents = {
        child: parent
        for _, _, parent, child, *_ in db.execute(f"PRAGMA temp.foreign_key_list({table})")
    }
    columns = db.execute(f"PRAGMA temp.table_info({table})").fetchall()
    for _, column, type, not_null, _, key in columns:
        usual = whole_number if type == "INTEGER" else plain_text
        parse = ids_of(parents[column]) if column in parents else parsers.get(column, usual)
        yield Field(column, parse, bool(not_null or key))


def load(stage: Stage, table: str, path: AnyPath, fields: Iterator[Field]) -> None:
    """Loads a file into its temporary table. A dump has all columns: one that is absent was
    renamed.
    """
    file = CsvFile(path, list(fields), stage.progress, needs_all_columns=True)
    file.insert_into(stage.db, f"temp.{table}")

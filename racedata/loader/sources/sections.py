"""Layouts of dumps that an SQL file describes: it turns their files into a Stage.

The SQL has sections, and paragraphs of one statement. A section begins with a paragraph of its own,
which is only a comment: `-- [name]`, and what the section does. The statements of `tables` make a
temporary table for each file of the dump, and those of `own` for files of the project. `lists` and
`records` fill the Stage from them, and `statuses` finds the texts of statuses.

The type of a column names a parser in values.py: `TEXT DAY`. By default, it is a whole number or a
plain text. Columns are found by name; other columns and files are ignored.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from racedata import values
from racedata.loader.files.archives import Dump, files_of
from racedata.loader.files.csvfile import AnyPath, CsvFile, Field
from racedata.loader.same_bytes import build_time
from racedata.loader.sources.statuses import insert_statuses
from racedata.loader.stage import Stage, ids_of
from racedata.loader.store import StoredSource
from racedata.values import Parser, id_in, key_in

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


def read(
    name: str, licence: str, file_name: Callable[[str], str], dump: Dump, stage: Stage
) -> StoredSource:
    """Fills the stage from a dump in the layout of `name`.sql. Raises LoadError.

    `file_name` makes the name of a file of the dump from that of its table.
    """
    sections = sections_of(name)
    own = run(stage, sections.get("own", []))
    tables = run(stage, sections["tables"])
    paths = files_of(dump, {table: dump.folder / file_name(table) for table in tables}, tables)
    own_paths = {table: Path(__file__).with_name(f"{table}.csv") for table in own}
    for table, path in {**own_paths, **paths}.items():
        # A dump has all columns: one that is absent was renamed.
        file = CsvFile(
            path, [*fields_of(stage.db, table, paths)], stage.progress, needs_all_columns=True
        )
        file.insert_into(stage.db, f"temp.{table}")
    run(stage, sections["lists"])
    insert_statuses(stage, sections["statuses"][0])
    run(stage, sections["records"])
    checksum = dump.checksum(paths.values())
    return StoredSource(name, dump.address, licence, checksum, build_time())


def run(stage: Stage, statements: Sequence[str]) -> list[str]:
    """Executes statements. Returns the names of the tables that they make."""
    for statement in statements:
        rows = stage.db.execute(statement).rowcount
        if filled := FILLED.search(statement):
            stage.rows[filled[1]] = rows
    return [found[1] for each in statements if (found := CREATED.search(each))]


def fields_of(db: sqlite3.Connection, table: str, paths: dict[str, AnyPath]) -> Iterator[Field]:
    """How the columns of a file are read."""
    references = db.execute(f"PRAGMA temp.foreign_key_list({table})")
    parents = {child: parent for _, _, parent, child, *_ in references}
    columns = db.execute(f"PRAGMA temp.table_info({table})").fetchall()
    for _, column, type, not_null, _, key in columns:
        if column in parents:
            parse = parser_of_ids(db, parents[column], paths)
        else:
            kind, _, word = type.partition(" ")
            usual = "whole_number" if kind == "INTEGER" else "plain_text"
            parse = getattr(values, word.lower() or usual)
        yield Field(column, parse, bool(not_null or key))


def parser_of_ids(db: sqlite3.Connection, table: str, paths: dict[str, AnyPath]) -> Parser:
    """A parser of the ids in a file. The value of one that is a text is the number of its row."""
    expected = f"an id of {paths[table].name}"
    (type,) = db.execute(
        "SELECT type FROM pragma_table_info(?) WHERE name = 'id'", (table,)
    ).fetchone()
    if type == "INTEGER":
        return id_in(ids_of(db, f"temp.{table}", "id"), expected)
    return key_in(dict(db.execute(f"SELECT id, rowid FROM temp.{table}")), expected)

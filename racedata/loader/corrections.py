"""Applies corrections.csv to a Stage: known errors of dumps. data/README.md describes the file."""

import sqlite3
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from racedata.loader.errors import LoadError
from racedata.loader.files.csvfile import MISSING, CsvFile, Field
from racedata.loader.stage import Stage
from racedata.loader.tables import BY_NAME, TABLES, Table
from racedata.loader.values import Value, number, one_of, plain_text, text

CORRECTIONS = Path(__file__).resolve().parent / "corrections.csv"

# The SQL for a column in a key. A key has years, rounds and references instead of ids:
# `2023/18/alonso`.
IN_KEY = {
    "raceId": "raceId = (SELECT raceId FROM stage.races WHERE year = ? AND round = ?)",
    "driverId": "driverId = (SELECT driverId FROM stage.drivers WHERE driverRef = ?)",
    "constructorId": """constructorId = (
        SELECT constructorId FROM stage.constructors WHERE constructorRef = ?)""",
}
FIELDS = [
    Field("table", one_of([table.name for table in TABLES if table.key]), required=True),
    Field("key", text("the key of a row, such as alonso or 2023/18/alonso"), required=True),
    Field("column", text("the name of a column"), required=True),
    Field("wrong", plain_text, required=False),
    Field("right", plain_text, required=False),
    Field("source", text("how we know that the value is wrong"), required=True),
]
HEADER = ",".join(field.name for field in FIELDS)


def add_corrections_argument(parser: ArgumentParser) -> None:
    """Adds `--corrections`: a path, or None for `none`.

    Empty, as `make` passes it, it is the project's own file.
    """
    parser.add_argument(
        "--corrections",
        metavar="FILE",
        default=CORRECTIONS,
        type=lambda text: None if text == "none" else Path(text) if text else CORRECTIONS,
        help="file of known errors of dumps, with the right values; none: leave the data as it is",
    )


def corrected(
    fill: Callable[[Stage], list[str]], path: Path | None
) -> Callable[[Stage], list[str]]:
    """A function that does what `fill` does, then applies the corrections in a file, if any."""

    def fill_and_correct(stage: Stage) -> list[str]:
        lines = fill(stage)
        if path:
            apply_corrections(stage, path)
        stage.check_calendars()
        return lines

    return fill_and_correct


def apply_corrections(stage: Stage, path: Path) -> list[str]:
    """Applies the corrections in a file. Returns lines: how many, and which are obsolete.

    Raises LoadError for a file that is not such a list.
    """
    if not path.is_file():
        raise LoadError(f"{path}: no such file; expected a list of corrections, or none")
    counts: Counter[str] = Counter()
    obsolete = []
    for batch in CsvFile(path, FIELDS, stage.progress).batches():
        for row in zip(*batch):
            table, key, column, wrong, right, _ = (
                r"\N" if value is None else str(value) for value in row
            )
            rows, stored = correct_value(stage, path, BY_NAME[table], key, column, wrong, right)
            counts[f"{table}.{column}"] += rows
            if stored is not None:
                what = f"{table} {key} {column} is {stored}, not {wrong}"
                obsolete.append(f"obsolete correction, not applied: {what}")
    applied = ", ".join(f"{column} in {rows:,} rows" for column, rows in counts.items() if rows)
    return [f"corrected: {applied}", *obsolete] if applied else obsolete


def correct_value(
    stage: Stage, path: Path, table: Table, key: str, column_name: str, wrong: str, right: str
) -> tuple[int, Value]:
    """Applies one correction, which names a row by its `key`.

    Returns how many rows have changed. If the correction is obsolete, also the value that the row
    has.
    """
    place = f"{path.name}: {table.name} {key} {column_name}"
    columns = {column.name: column for column in table.columns if not column.name.endswith("Id")}
    if column_name not in columns:
        raise LoadError(f"{place}: no such column; expected one of {', '.join(columns)}")
    where = " AND ".join(IN_KEY.get(name, f"{name} = ?") for name in table.key)
    parts = key.split("/")
    if len(parts) != where.count("?"):
        raise LoadError(f"{place}: a key of {len(parts)} parts; expected {where.count('?')}")
    parse = columns[column_name].parse
    try:
        new, old = (None if value in MISSING else parse(value) for value in (right, wrong))
    except ValueError:
        raise LoadError(f"{place}: {wrong!r} or {right!r}; expected {parse.expected}") from None
    # Some sources write 205.460, and some 205.46.
    compared = (
        f"CAST({column_name} AS REAL) IS CAST(? AS REAL)"
        if parse is number
        else f"{column_name} IS ?"
    )
    sql = f"UPDATE stage.{table.name} SET {column_name} = ? WHERE {where} AND {compared}"
    try:
        changed = stage.db.execute(sql, [new, *parts, old]).rowcount
    except sqlite3.IntegrityError:
        what = "must be known" if new is None else "would make two rows the same"
        raise LoadError(f"{place}: {right!r}; it {what}") from None
    if changed:
        return changed, None
    stored = stage.db.execute(
        f"SELECT {column_name}, {compared} FROM stage.{table.name} WHERE {where}", [new, *parts]
    ).fetchone()
    # The dump does not have that row or value, or has it right.
    return 0, None if stored is None or stored[1] else stored[0]

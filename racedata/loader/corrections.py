"""Applies corrections.csv, which lists known errors of dumps, to a Stage. data/README.md describes the file."""

from argparse import ArgumentParser
from pathlib import Path

from racedata.loader.dump import MISSING, Column, LoadError, Table, Text
from racedata.loader.stage import Stage, plain_text

CORRECTIONS = Path(__file__).resolve().parent / "corrections.csv"

RACE = "raceId = (SELECT raceId FROM dump.races WHERE year = ? AND round = ?)"
DRIVER = "driverId = (SELECT driverId FROM dump.drivers WHERE driverRef = ?)"
CONSTRUCTOR = "constructorId = (SELECT constructorId FROM dump.constructors WHERE constructorRef = ?)"
# The SQL that finds a row by the parts of a key, such as `2023/18/alonso`.
KEYS = {
    "circuits": "circuitRef = ?",
    "constructors": "constructorRef = ?",
    "drivers": "driverRef = ?",
    "seasons": "year = ?",
    "races": "year = ? AND round = ?",
    "sessions": f"{RACE} AND session = ?",
    "results": f"{RACE} AND {DRIVER}",
    "sprint_results": f"{RACE} AND {DRIVER}",
    "qualifying": f"{RACE} AND {DRIVER}",
    "lap_times": f"{RACE} AND {DRIVER} AND lap = ?",
    "pit_stops": f"{RACE} AND {DRIVER} AND stop = ?",
    "driver_standings": f"{RACE} AND {DRIVER}",
    "constructor_standings": f"{RACE} AND {CONSTRUCTOR}",
}

COLUMNS = [
    Column("table", Text("|".join(KEYS), ""), f"one of {', '.join(KEYS)}", required=True),
    Column("key", plain_text, "the key of a row, such as alonso or 2023/18/alonso", required=True),
    Column("column", plain_text, "the name of a column", required=True),
    Column("wrong", plain_text, "", required=False),
    Column("right", plain_text, "", required=False),
    Column("source", plain_text, "how we know that the value is wrong", required=True),
]


def add_corrections_argument(parser: ArgumentParser) -> None:
    """Adds `--corrections`: the path of a file, or None for `none`. If it is empty, it is the project's own file."""
    parser.add_argument(
        "--corrections",
        default=CORRECTIONS,
        type=lambda text: None if text == "none" else Path(text) if text else CORRECTIONS,
        help="file of known errors of dumps, with the right values; none: leave the data as it is",
    )


def correct(stage: Stage, path: Path) -> list[str]:
    """Applies the corrections in the file at `path`. Returns a line for each one that concerns the dump.

    Raises LoadError for a file that is not such a list.
    """
    if not path.is_file():
        raise LoadError(f"{path}: no such file; expected a list of corrections, or none")
    said = []
    file = Table(path, COLUMNS, stage.progress)
    for batch in file.batches():
        for row in zip(*batch):
            table, key, column, wrong, right, _ = map(str, [value if value is not None else r"\N" for value in row])
            said += apply(stage, path, table, key, column, wrong, right)
    return said


def apply(stage: Stage, path: Path, table: str, key: str, column: str, wrong: str, right: str) -> list[str]:
    """Applies one correction, which names a row by its `key`. Returns lines for the report."""
    place = f"{path.name}: {table} {key} {column}"
    fields = {field.name: field for field in stage.fields(table) if not field.name.endswith("Id")}
    if column not in fields:
        raise LoadError(f"{place}: no such column; expected one of {', '.join(fields)}")
    parts = key.split("/")
    if len(parts) != KEYS[table].count("?"):
        raise LoadError(f"{place}: a key of {len(parts)} parts; expected {KEYS[table].count('?')}")
    field = fields[column]
    try:
        values = [None if value in MISSING else field.parse(value) for value in (right, wrong)]
    except ValueError:
        raise LoadError(f"{place}: {wrong!r} or {right!r}; expected {field.parse.__doc__}") from None
    there = f"dump.{table} WHERE {KEYS[table]}"
    actual = stage.db.execute(f"SELECT {column} FROM {there}", parts).fetchone()
    if actual is None:  # the dump does not have that row
        return []
    changed = stage.db.execute(
        f"UPDATE dump.{table} SET {column} = ? WHERE {KEYS[table]} AND {column} IS ?", [values[0], *parts, values[1]]
    )
    if changed.rowcount:
        return [f"corrected: {table} {key} {column}: {wrong} to {right}"]
    return [f"obsolete correction, not applied: {table} {key} {column} is {actual[0]}, not {wrong}"]

"""Reads the database and reports doubts about its data, the most doubtful first: `racedata check`.

With `--against SOURCE`, the doubts are the differences from another source, which against.py finds.

The checks are in checks/. Some doubts are errors of the dump; others are history, such as shared
cars and penalties. corrections.csv is the place for errors that are proven. The check changes
nothing.
"""

import argparse
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from textwrap import wrap
from zoneinfo import ZoneInfo

from racedata.formats import counted
from racedata.loader import checks
from racedata.loader.against import compare
from racedata.loader.corrections import HEADER
from racedata.loader.errors import Progress
from racedata.loader.existing import ExistingDatabase
from racedata.loader.matching import letters_of
from racedata.loader.program import add_database_argument, run
from racedata.loader.sql import add_milliseconds

ROWS_SHOWN = 10


def aligned(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """The lines of a table with aligned columns."""
    cells = [
        list(heads),
        *(["-" if value is None else str(value) for value in row] for row in rows),
    ]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for row in cells:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()


def paragraph(
    headline: str,
    meaning: str,
    heads: Iterable[str],
    rows: Sequence[Iterable[object]],
    rows_shown: int | None,
) -> Iterator[str]:
    """The lines for what was found. `rows_shown` limits the rows; None shows all."""
    yield headline
    yield from wrap(meaning, 98, initial_indent="  ", subsequent_indent="  ")
    yield from aligned(heads, rows[:rows_shown])
    if rows_shown is not None and len(rows) > rows_shown:
        yield f"  and {len(rows) - rows_shown:,} more; --all shows them"
    yield ""


def report(path: Path, rows_shown: int | None) -> Iterator[str]:
    """The lines of the report: a paragraph per check that found something, then the other checks.

    Raises LoadError for a file that is not such a database.
    """
    nothing: list[str] = []
    found = 0
    with closing(ExistingDatabase(path)) as existing:
        db = existing.db
        prepare(db)
        for check in sorted(checks.ALL, key=lambda check: check.is_history):
            (looked_at,) = db.execute(f"SELECT count(*) FROM {check.rows}").fetchone()
            doubts = db.execute(check.sql)
            rows = doubts.fetchall()
            if rows:
                found += len(rows)
                headline = f"{len(rows):,} found in {counted(looked_at, 'row')}: {check.title}"
                heads = [column[0] for column in doubts.description]
                yield from paragraph(headline, check.meaning, heads, rows, rows_shown)
            else:
                nothing.append(f"  {looked_at:>9,} rows: {check.title}")
    yield from ["These checks found nothing:", *nothing, ""]
    number = len(checks.ALL)
    yield f"{number - len(nothing)} of {number} checks reported {counted(found, 'doubtful fact')}"


def prepare(db: sqlite3.Connection) -> None:
    """Creates the functions, views and temporary tables that the checks read."""
    add_milliseconds(db)
    db.create_function("letters", 1, lambda name: name and letters_of(name), deterministic=True)
    db.create_function("local_time", 3, local_time, deterministic=True)
    db.executescript(checks.PREPARATION)


def local_time(date: str, time: str, zone: str) -> str:
    """A time in UTC by the clock of a zone of the IANA database, as HH:MM:SS."""
    return datetime.fromisoformat(f"{date}T{time}Z").astimezone(ZoneInfo(zone)).strftime("%H:%M:%S")


def report_against(
    path: Path, source: str, rows_shown: int | None, progress: Progress
) -> Iterator[str]:
    """The lines of the report on differences from a source: a paragraph per group.

    Raises what `compare` does.
    """
    found, remarks = compare(path, source, progress)
    if found:
        yield (
            "Each row ends with a line for corrections.csv. Add it if another independent source "
            "confirms the value."
        )
        yield ""
    for group, rows in found:
        headline = f"{len(rows):,}: {group.title}"
        yield from paragraph(headline, group.meaning, ("race", HEADER), rows, rows_shown)
    yield from remarks
    differences = counted(sum(len(rows) for _, rows in found), "difference")
    yield f"{differences} of {counted(len(found), 'kind')}"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="racedata check",
        description="Report facts in a database that contradict each other, the most doubtful "
        "first.",
        epilog="Exit status: 0 if the database could be read, whatever was found; else 1, or 2 for "
        "wrong arguments.",
    )
    add_database_argument(parser)
    parser.add_argument(
        "--against",
        metavar="SOURCE",
        help="instead, compare the database with another source, which can be anything that "
        "racedata load reads, and report every fact that differs",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help=f"show all rows, not only the first {ROWS_SHOWN} of each check",
    )
    parsed = parser.parse_args(arguments)
    path, rows_shown = Path(parsed.database), None if parsed.all else ROWS_SHOWN

    def work(progress: Progress) -> list[str]:
        if parsed.against is None:
            return list(report(path, rows_shown))
        return list(report_against(path, parsed.against, rows_shown, progress))

    run("check", parsed.database, work, replaces=False)

"""Reads the database and reports doubts about its data, the most doubtful first: `racedata check`.

With `--against SOURCE`, the doubts are the facts about which another source disagrees, which
discrepancies.py finds.

The checks are in checks/. Some doubts are errors of the dump; others are history, such as shared
cars and penalties. corrections.csv is the place for errors that are proven. The check changes
nothing.
"""

import argparse
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from textwrap import wrap
from zoneinfo import ZoneInfo

from racedata.formats import counted, public_name
from racedata.loader import checks
from racedata.loader.build import build_database
from racedata.loader.compare.differences import GROUPS, Group
from racedata.loader.corrections import HEADER, corrections_of
from racedata.loader.delivery import delivery_of
from racedata.loader.errors import LoadError, Progress
from racedata.loader.existing import ExistingDatabase, open_read_only
from racedata.loader.files.csvfile import csv_line
from racedata.loader.matching import letters_of
from racedata.loader.program import run
from racedata.loader.rebuild import store_of
from racedata.loader.sources import Source, addresses_in, source_at
from racedata.loader.sql import add_milliseconds
from racedata.loader.store import Store
from racedata.loader.temporary import temporary_folder
from racedata.loader.update import check_calendars, put_whole
from racedata.model import TABLE_OF
from racedata.settings import LoaderSettings, add_database_argument

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
    facts = 0
    with closing(ExistingDatabase(path)) as existing:
        db = existing.db
        add_views(db)
        for check in sorted(checks.ALL, key=lambda check: check.is_history):
            (looked_at,) = db.execute(f"SELECT count(*) FROM {check.rows}").fetchone()
            doubts = db.execute(check.sql)
            rows = doubts.fetchall()
            if rows:
                facts += len(rows)
                headline = f"{len(rows):,} found in {counted(looked_at, 'row')}: {check.title}"
                heads = [column[0] for column in doubts.description]
                yield from paragraph(headline, check.meaning, heads, rows, rows_shown)
            else:
                nothing.append(f"  {looked_at:>9,} rows: {check.title}")
    yield from ["These checks found nothing:", *nothing, ""]
    number = len(checks.ALL)
    yield f"{number - len(nothing)} of {number} checks reported {counted(facts, 'doubtful fact')}"


def add_views(db: sqlite3.Connection) -> None:
    """Creates the functions, views and temporary tables that the checks read."""
    add_milliseconds(db)
    db.create_function("letters", 1, lambda name: name and letters_of(name), deterministic=True)
    db.create_function("local_time", 3, local_time, deterministic=True)
    db.executescript(checks.PREPARATION)


def local_time(date: str, time: str, zone: str) -> str:
    """A time in UTC by the clock of a zone of the IANA database, as HH:MM:SS."""
    return datetime.fromisoformat(f"{date}T{time}Z").astimezone(ZoneInfo(zone)).strftime("%H:%M:%S")


def report_against(
    path: Path, address: str, rows_shown: int | None, progress: Progress
) -> Iterator[str]:
    """The lines of the report on differences from a source: a paragraph per group.

    Raises what `compare` does.
    """
    sections, remarks = compare(path, address, progress)
    if sections:
        yield (
            "Each row ends with a line for corrections.csv. Add it if another independent source "
            "confirms the value."
        )
        yield ""
    for group, rows in sections:
        headline, meaning = f"{len(rows):,}: {group.title}", f"{group.meaning} {group.settles}"
        yield from paragraph(headline, meaning, ("race", HEADER), rows, rows_shown)
    yield from remarks
    differences = counted(sum(len(rows) for _, rows in sections), "difference")
    yield f"{differences} of {counted(len(sections), 'kind')}"


# Of a group of differences, the largest first: the race, and a line for corrections.csv.
Section = tuple[Group, Sequence[tuple[str, str]]]


def compare(path: Path, address: str, progress: Progress) -> tuple[list[Section], list[str]]:
    """How a source differs from the database at `path`, and what does not count.

    It builds another database from a copy of the store and that source. Raises LoadError,
    sqlite3.Error or OSError.
    """
    if len(addresses := addresses_in(address)) != 1:
        raise LoadError(f"--against {address!r}: expected one source")
    ExistingDatabase(path).close()  # raises LoadError if it is missing, or of an earlier version
    with store_of(path) as store, temporary_folder() as folder:
        settings = LoaderSettings.read(os.environ)
        corrections = corrections_of(store, settings.corrections)
        with store.transaction():
            names = put_last(store, source_at(addresses[0]), progress)
            check_calendars(store, corrections)
            new = folder / path.name
            built = build_database(new, store, corrections, progress)
        with closing(open_read_only(new)) as db:
            found = differences_from(db, [public_name(name) for name in names])
    return found, built.remarks


def put_last(store: Store, source: Source, progress: Progress) -> list[str]:
    """Puts a source into the store, behind all others. A source that is in the list keeps its
    place. Returns its name; of a database, the names of its sources.
    """
    listed = store.sources()
    with source.opened(progress) as (tables, added):
        if not any(each.ids for each in listed):
            # without ids, the first dump of the list stays the base
            added = [each._replace(ids=None) for each in added]
        for number, each in enumerate(added, 1):
            put_whole(store, delivery_of(each, tables, number))
    names = [each.name for each in added]
    store.order(list(dict.fromkeys([*(each.name for each in listed), *names])))
    return names


def differences_from(db: sqlite3.Connection, names: Sequence[str]) -> list[Section]:
    """The open and explained facts about which one of these sources contradicts the database."""
    marks = ", ".join("?" * len(names))
    by_doubt: dict[int, list[tuple[str, str]]] = {}
    for doubt, race, kind, *fact in db.execute(
        f"""SELECT DISTINCT doubt, ifnull(races.year || '/' || round || ' ' || name, '-'), kind,
                key, columnName, discrepancies.value, said.value
            FROM discrepancies JOIN discrepancy_values AS said USING (record)
                LEFT JOIN races USING (raceId)
            WHERE said.source IN ({marks}) AND said.value IS NOT discrepancies.value
                AND state <> 'resolved'
            ORDER BY record""",
        names,
    ):
        by_doubt.setdefault(doubt, []).append((race, line_of(TABLE_OF[kind].name, *fact)))
    return [(GROUPS[doubt - 1], rows) for doubt, rows in by_doubt.items()]


def line_of(table: str, key: str, column: str, wrong: str | None, right: str | None) -> str:
    """A line for corrections.csv, without its source."""
    values = [r"\N" if value is None else value for value in (wrong, right)]
    return csv_line([table, key, column, *values, None])


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
        help="instead, compare the sources of the database with another one, which can be anything "
        "that racedata load reads, and report every fact about which it disagrees",
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

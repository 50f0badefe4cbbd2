"""What a build reports about the database: rows, seasons, and what each source gave."""

import sqlite3
from collections.abc import Iterator, Mapping

from racedata.formats import counted
from racedata.licences import SOURCES, licence_of_file
from racedata.model import KINDS, TABLES


def contribution(db: sqlite3.Connection, source: int) -> str:
    """Which records are from a source: `results of 1,149 races (1950 to 2025), qualifying of …`."""
    counts = {
        kind: (races, first, last)
        for kind, races, first, last in db.execute(
            """SELECT kind, count(*), min(year), max(year) FROM origins JOIN races USING (raceId)
               WHERE sourceId = ? GROUP BY kind""",
            (source,),
        )
    }
    texts = []
    for kind in ("sessions", *KINDS):
        if kind in counts:
            races, first, last = counts[kind]
            seasons = f"{first} to {last}" if first < last else f"{first}"
            texts.append(f"{kind.replace('_', ' ')} of {counted(races, 'race')} ({seasons})")
    return ", ".join(texts)


def contributions(db: sqlite3.Connection) -> Iterator[str]:
    """A line for each source, if there are several."""
    rows = db.execute("SELECT name, gave FROM sources ORDER BY sourceId").fetchall()
    for name, records in rows if len(rows) > 1 else ():
        yield f"{name}: {records or 'nothing'}"


def licence(db: sqlite3.Connection) -> str:
    """A line that says the licence of the database."""
    return f"licence of the whole: {licence_of_file(db.execute(SOURCES))}"


def table_of_rows(read: Mapping[str, int], stored: Mapping[str, int]) -> Iterator[str]:
    """How many rows of each table the first source has, and how many the database: lines for the
    report.
    """
    yield f"{'table':<22}{'first source':>12}{'database':>13}"
    for table in TABLES:
        rows_read = f"{read[table.name]:,}" if table.name in read else "no file"
        yield f"{table.name:<22}{rows_read:>12}{stored[table.name]:>13,}"


def seasons_of(db: sqlite3.Connection) -> str:
    """`1950 to 2025 (76 seasons, 1,149 races)`."""
    first, last, seasons, races = db.execute(
        "SELECT min(year), max(year), count(DISTINCT year), count(*) FROM races"
    ).fetchone()
    return f"{first} to {last} ({counted(seasons, 'season')}, {counted(races, 'race')})"

"""Writes a database as a dump in the layout of the Ergast database image: `racedata export`.

It maps the tables of the database to files and columns. ergast.py reads them back.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from racedata.formats import plural, public_name, short_time
from racedata.licences import SOURCES, licence_of_file
from racedata.loader.errors import Progress
from racedata.loader.files.csvfile import BATCH
from racedata.loader.sources.sections import sections_of
from racedata.loader.sql import add_milliseconds
from racedata.model import TABLE_BY_NAME, Table

LAYOUT = "a dump in Ergast's CSV layout"  # for the help
TITLE = "Formula One data in the CSV layout of Ergast, exported by racedata"
REST_TITLE = "The rest of Formula One data in the CSV layout of Ergast, exported by racedata"
TITLES = (TITLE, REST_TITLE)  # the first lines of README.txt
LICENCE = """{first}

Each licence applies to the records of its source.

{sources}"""

# Columns with texts that are numbers in Ergast's schema, and so need no quotes.
NUMBERS = ("points", "lat", "lng", "alt")
# The files of Ergast's dump: a query for each.
SQL = sections_of("ergast_files")
ERGAST = {name: sql for name, (sql,) in SQL.items()}
# The columns that are NOT NULL in Ergast's tables, or known in each row of Ergast's dump.
REQUIRED = {
    "circuits": ("circuitRef", "name", "url"),
    "constructor_standings": ("points", "wins"),
    "constructors": ("constructorRef", "name", "url"),
    "driver_standings": ("points", "wins"),
    "drivers": ("driverRef", "forename", "surname", "url"),
    "pit_stops": ("lap", "time", "milliseconds"),
    "qualifying": ("number", "position"),
    "results": ("grid", "positionText", "positionOrder", "points", "laps", "statusId"),
    "seasons": ("url",),
    "sprint_results": (
        *("number", "grid", "positionText", "positionOrder", "points", "laps", "statusId"),
    ),
}
# The tables that others refer to, by a column of the same name; and the column, if any, in which no
# two rows may have the same value. In Ergast's schema, races do not refer to seasons.
PARENTS = {
    "circuits": ("circuitId", "url"),
    "constructors": ("constructorId", "name"),
    "drivers": ("driverId", "url"),
    "status": ("statusId", ""),
    "races": ("raceId", "url"),
}
# What files have that Ergast's dump lacks, if the label of the table does not say it.
DESCRIPTIONS = {
    "practice": "practice results; the session column has the number of the practice session "
    "(1, 2 or 3)",
    "sessions": "the sessions of each weekend, except the race",
    "sprint_qualifying": "the session that sets the sprint's grid; its columns are those of "
    "qualifying.csv",
}


def all_rows(table: Table) -> str:
    """The query for the columns of a table that a load reads, in the order of answers."""
    names = [f"record AS {name}" if name == table.id else name for name in table.names]
    order = " ORDER BY record" if table.is_numbered else ""
    return f"SELECT {', '.join(names)} FROM {table.name}{order}"


# The others, which are written only if they have rows. Their columns are those of the database, or
# of the project's own corrections.csv.
OTHERS = {
    "corrections": (
        "corrected values in these files: the source's value, the right one, and the evidence",
        """SELECT tableName AS "table", key, columnName AS "column", sourceValue AS wrong,
               value AS right, witnesses AS source FROM corrections ORDER BY record""",
    ),
    "entries": (
        "drivers who entered a race and have no row in results.csv",
        """SELECT raceId, driverId, constructorId FROM entries
           EXCEPT SELECT raceId, driverId, constructorId FROM results""",
    ),
    **{
        name: (DESCRIPTIONS.get(name, table.label.lower()), all_rows(table))
        for name, table in sorted(TABLE_BY_NAME.items())
        if name not in (*ERGAST, "entries")
    },
}


Row = tuple[object, ...]
Add = Callable[[str, Iterable[str]], None]  # adds a file: its name, and its text in parts


def finish_time(own: int | None, first: int | None) -> str | None:
    """The time of a result: the winner's own, even for a second driver of the same car;
    otherwise the gap to it.
    """
    if own is None or first is None:
        return None
    # In one published dump, a driver is faster than the winner, and has `+-1:59:11.640`.
    sign = "+-" if own < first else "+"
    return short_time(own) if own == first else f"{sign}{short_time(abs(own - first))}"


class Strict:
    """Knows which rows Ergast's tables can have."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.left_out = Counter[str]()  # how many other rows each file would have
        self.ids: dict[str, set[object]] = {}  # by column, of the rows that its tables can have
        for name, (id, unique) in PARENTS.items():
            cursor = db.execute(ERGAST[name])
            names = [column for column, *_ in cursor.description]
            at, is_kept = names.index(id), self.rule(name, names)
            seen: set[object] = set()
            ids = set()
            for row in cursor:
                value = row[names.index(unique)] if unique else None
                if is_kept(row) and (value is None or value not in seen):
                    seen.add(value)
                    ids.add(row[at])
            self.ids[id] = ids

    def rule(self, name: str, names: Sequence[str]) -> Callable[[Row], bool]:
        """Says of each row of a file whether Ergast's table can have it."""
        required = [names.index(column) for column in REQUIRED.get(name, ())]
        references = [
            (at, self.ids[column]) for at, column in enumerate(names) if column in self.ids
        ]
        return lambda row: (
            all(row[at] is not None for at in required)
            and all(row[at] is None or row[at] in ids for at, ids in references)
        )


def lines_of(
    db: sqlite3.Connection, name: str, sql: str, strict: Strict | None, is_rest: bool
) -> Iterator[str]:
    """The lines of a CSV file with the rows of a query, the header first, several at a time.

    With `strict`, only the rows that Ergast's table can have; or the others, if `is_rest`.
    """
    cursor = db.execute(sql)
    names = [name for name, *_ in cursor.description]
    yield ",".join(names) + "\n"
    are_numbers = [name in NUMBERS for name in names]
    is_kept = strict.rule(name, names) if strict else None
    while rows := cursor.fetchmany(BATCH):
        if strict and is_kept:
            kept = [row for row in rows if is_kept(row) != is_rest]
            if not is_rest and len(kept) < len(rows):
                strict.left_out[name] += len(rows) - len(kept)
            rows = kept
        yield "".join(",".join(map(field, row, are_numbers)) + "\n" for row in rows)


def field(value: object, is_number: bool) -> str:
    if value is None:
        return r"\N"
    text = str(value)
    return text if is_number or isinstance(value, int) else '"{}"'.format(text.replace('"', '""'))


def write_dump(
    db: sqlite3.Connection, add: Add, add_more: Add | None, progress: Progress
) -> list[str]:
    """Adds all files of a dump; with `add_more`, also all files with the rest. Returns a report."""
    db.create_function(
        "clock", 1, lambda time: None if time is None else short_time(time), deterministic=True
    )
    db.create_function("finish_time", 2, finish_time, deterministic=True)
    add_milliseconds(db)
    strict = Strict(db)
    lines = [
        written(add, f"{name}.csv", lines_of(db, name, sql, strict, False), progress)
        for name, sql in ERGAST.items()
    ]
    left_out = ", ".join(f"{count:,} of {name}" for name, count in strict.left_out.items())
    add("README.txt", [readme(db, left_out)])
    add("licence.txt", [licences(db)])
    if left_out:
        what = "they lack a value that Ergast's tables require, or name a row that does"
        where = "" if add_more else "; --more MORE writes them"
        lines.append(f"left out: {left_out}: {what}{where}")
    if add_more:
        lines.append("more:")
        lines += write_rest(db, add_more, strict, progress)
    return lines


def write_rest(db: sqlite3.Connection, add: Add, strict: Strict, progress: Progress) -> list[str]:
    """Adds all files with what the dump does not have. Returns a line for the report for each."""
    others = {
        name: (what, sql)
        for name, (what, sql) in OTHERS.items()
        if db.execute(f"SELECT 1 FROM ({sql})").fetchone()
    }
    text = text_of("export_rest_readme").format(
        title=REST_TITLE,
        left_out="\n".join(f"- {name}.csv" for name in strict.left_out) or "(none)",
        others="\n".join(f"- {name}.csv: {what}" for name, (what, _) in others.items()) or "(none)",
    )
    add("README.txt", [text])
    add("licence.txt", [licences(db)])
    return [
        *(
            written(add, f"{name}.csv", lines_of(db, name, ERGAST[name], strict, True), progress)
            for name in strict.left_out
        ),
        *(
            written(add, f"{name}.csv", lines_of(db, name, sql, None, False), progress)
            for name, (_, sql) in others.items()
        ),
    ]


def written(add: Add, file: str, parts: Iterator[str], progress: Progress) -> str:
    """Adds a file. Returns a line for the report."""
    rows = 0

    def counted() -> Iterator[str]:
        nonlocal rows
        yield next(parts)
        for part in parts:
            rows += part.count("\n")
            progress(f"{file}: {rows:,} rows")
            yield part

    add(file, counted())
    return f"{file.removesuffix('.csv'):<22}{rows:>12,} {plural('row', rows)}"


def text_of(name: str) -> str:
    """A text of an export, with places for facts about the database."""
    return Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8")


def readme(db: sqlite3.Connection, left_out: str) -> str:
    first, last, races = db.execute("SELECT min(year), max(year), count(*) FROM races").fetchone()
    (revision,) = db.execute("SELECT revision FROM build").fetchone()
    return text_of("export_readme").format(
        title=TITLE,
        seasons=f"Seasons: {first} to {last}. Races: {races:,}. Revision: {revision}.",
        ergast="\n".join(f"- {name}.csv" for name in ERGAST),
        left_out=left_out or "here none",
    )


def licences(db: sqlite3.Connection) -> str:
    """The text of `licence.txt`. A load takes its first line as the licence of the dump."""
    sources = db.execute(
        """SELECT name, address, licence, substr(readAt, 1, 10), gave FROM sources
           WHERE sourceId = 1 OR gave <> '' ORDER BY sourceId"""
    ).fetchall()
    paragraphs = [
        f"{public_name(name)}\n  address: {public_name(address)}\n"
        f"  licence: {licence or 'not stated'}\n  read: {day}\n  records: {gave or 'none'}\n"
        for name, address, licence, day, gave in sources
    ]
    whole = licence_of_file((public_name(name), licence) for name, licence in db.execute(SOURCES))
    first = "" if len(sources) == 1 and not sources[0][2] else whole
    return LICENCE.format(first=first, sources="\n".join(paragraphs))

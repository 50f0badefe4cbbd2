"""Reads a dump in the layout of the Ergast database image into a Stage: one CSV file per table, columns by name."""

import re
import sqlite3
from collections.abc import Iterator, Sequence

from racedata.loader.dump import AnyPath, Column, LoadError, Parse, Table, Value, checksum, files_of
from racedata.loader.stage import REQUIRED, SESSIONS, TABLES, Source, Stage, day, reference, time_of_day

# Since 2023, this layout has the session that sets the sprint's grid in the columns of the second practice, which
# these weekends do not have.
SPRINT_GRID = """
    UPDATE dump.sessions SET session = 'sq'
    WHERE session = 'fp2' AND raceId IN (SELECT raceId FROM dump.races WHERE year >= 2023)
        AND raceId NOT IN (SELECT raceId FROM dump.sessions WHERE session = 'sq')
        AND (raceId IN (SELECT raceId FROM dump.sessions WHERE session = 'sprint' AND date NOT NULL)
             OR raceId IN (SELECT raceId FROM dump.sprint_results))
"""
# The columns of races.csv with the date and time of a session.
SESSION_COLUMNS = [
    Column(f"{session}_{what}", parse, parse.__doc__ or "", required=False)
    for session in SESSIONS
    for what, parse in (("date", day), ("time", time_of_day))
]
RARE = ("sq_date", "sq_time")

LICENCES = {
    # what the project's pages say about its dump
    "https://github.com/TracingInsights/RaceData/": "CC0 1.0",
}


def read(folder: AnyPath, source: str, stage: Stage) -> Source:
    """Fills the stage from the CSV files in `folder`. Raises LoadError."""
    files = files_of({table: folder / f"{table}.csv" for table in TABLES if table != "sessions"}, REQUIRED, source)
    remarks = []
    for table, path in files.items():
        columns = [*columns_of(stage, table), *(SESSION_COLUMNS if table == "races" else [])]
        file = Table(path, columns, stage.progress)
        insert(stage, table, file)
        if table in REQUIRED and not file.rows_read:
            raise LoadError(f"{path.name}: no rows; expected at least one")
        remarks += file.remarks(RARE)
    stage.db.execute(SPRINT_GRID)
    # Ergast writes rank 0 if no lap of the driver counts.
    for table in ("results", "sprint_results"):
        speed = "fastestLapSpeed = NULL, " * (table == "results")
        stage.db.execute(
            f"UPDATE dump.{table} SET {speed}rank = NULL, fastestLap = NULL, fastestLapTime = NULL WHERE rank = 0"
        )
    return Source(source, licence(folder, source), checksum(files.values()), remarks=remarks)


def licence(folder: AnyPath, source: str) -> str | None:
    """The first line of `licence.txt` in the dump, or what is known of its address."""
    file = folder / "licence.txt"
    if file.is_file():
        with file.open("rb") as lines:
            return lines.readline(200).decode("utf-8", "replace").strip() or None
    return next((name for start, name in LICENCES.items() if source.startswith(start)), None)


def columns_of(stage: Stage, table: str) -> Iterator[Column]:
    """The columns of a staged table, and how to read them."""
    for field in stage.fields(table):
        parse: Parse
        if field.parent:
            ids = {id for (id,) in stage.db.execute(f"SELECT {field.name} FROM dump.{field.parent}")}
            parse, expected = reference(ids), f"a {field.name} of {field.parent}.csv"
        else:
            parse, expected = field.parse, field.parse.__doc__ or ""
        yield Column(field.name, parse, expected, field.required)


def insert(stage: Stage, table: str, file: Table) -> None:
    """Inserts the rows of a file. Raises LoadError for a duplicate."""
    names = [column.name for column in file.columns if column not in SESSION_COLUMNS]
    stage.insert(table, names, [])
    try:
        for values in file.batches():
            stage.insert(table, names, values[: len(names)])
            if table == "races":
                insert_sessions(stage, values[0], values[len(names) :])
    except sqlite3.IntegrityError as error:
        # Such as `UNIQUE constraint failed: races.year, races.round`.
        (inserted,) = stage.db.execute(f"SELECT count(*) FROM dump.{table}").fetchone()
        raise file.duplicate(inserted + 1, re.findall(r"\.(\w+)", str(error))) from None


def insert_sessions(stage: Stage, race_ids: Sequence[Value], columns: Sequence[Sequence[Value]]) -> None:
    """Inserts the sessions of some races, whose dates and times are in SESSION_COLUMNS."""
    for index, session in enumerate(SESSIONS):
        dates_and_times = zip(race_ids, *columns[2 * index : 2 * index + 2])
        known = [(race, session, *when) for race, *when in dates_and_times if any(when)]
        stage.insert("sessions", ["raceId", "session", "date", "time"], list(zip(*known)))

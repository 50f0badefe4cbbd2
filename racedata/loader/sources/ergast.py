"""Reads a dump in the layout of the Ergast database image into a Stage: one CSV file per table,
columns by name.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from racedata.loader.correct import note_corrections
from racedata.loader.corrections import CORRECTIONS, corrections_in
from racedata.loader.errors import LoadError
from racedata.loader.files.archives import Dump, files_of, first_line
from racedata.loader.files.csvfile import AnyPath, CsvFile, Field
from racedata.loader.same_bytes import build_time
from racedata.loader.sources.ergast_files import REST_TITLE, TITLES
from racedata.loader.stage import Stage, ids_of
from racedata.loader.store import StoredSource
from racedata.model import TABLE_BY_NAME, TABLES, WEEKEND, Table
from racedata.values import Value, day, id_in, time_of_day

# The columns of races.csv with the dates and times of sessions, which are a table of their own
# here.
SESSION_FIELDS = [
    Field(f"{session.name}_{what}", parse, required=False)
    for session in WEEKEND
    for what, parse in (("date", day), ("time", time_of_day))
]
RARE = ("sq_date", "sq_time", "alt")  # no remark says that a dump lacks them

# Since 2023, sprint weekends have a session that sets the sprint's grid, and no second practice.
# This layout has that session in the columns of the second practice.
SPRINT_GRID = """
    UPDATE stage.sessions SET session = 'sq'
    WHERE session = 'fp2' AND raceId IN (SELECT raceId FROM stage.races WHERE year >= 2023)
        AND raceId NOT IN (SELECT raceId FROM stage.sessions WHERE session = 'sq')
        AND (raceId IN (SELECT raceId FROM stage.sessions
                        WHERE session = 'sprint' AND date NOT NULL)
             OR raceId IN (SELECT raceId FROM stage.sprint_results))
"""
# Ergast writes rank 0 if no lap of the driver counts.
NO_FASTEST_LAP = """
    UPDATE stage.{} SET {} rank = NULL, fastestLap = NULL, fastestLapTime = NULL WHERE rank = 0
"""

# its pages say that the dump is CC0
TRACINGINSIGHTS = "https://github.com/TracingInsights/RaceData/"


def is_rest(dump: Dump) -> bool:
    """Whether these are the files of `racedata export --more`."""
    return title_of(dump) == REST_TITLE


def file_of(folder: AnyPath, table: str) -> AnyPath:
    """The file of a table: `lap_times.csv`, or as Kaggle's old copies call it, `lapTimes.csv`."""
    first, *words = table.split("_")
    other = folder / f"{first}{''.join(map(str.capitalize, words))}.csv"
    return other if words and other.exists() else folder / f"{table}.csv"


def title_of(dump: Dump) -> str:
    return first_line(dump.folder / "README.txt")


def read(dump: Dump, stage: Stage) -> StoredSource:
    """Fills the stage from the CSV files of a dump. Raises LoadError.

    The rest of an export is read into the stage that has the rows of its dump.
    """
    is_the_rest, is_export = is_rest(dump), title_of(dump) in TITLES
    if is_the_rest and not stage.rows:
        raise LoadError(
            "is the rest of an export; expected its dump before it: racedata load FILE MORE"
        )
    paths = {table.name: file_of(dump.folder, table.name) for table in TABLES}
    required = [table.name for table in TABLES if table.required and not is_the_rest]
    files = files_of(dump, paths, required)
    # Only what `racedata export` has written has this file, with all sessions.
    has_sessions = "sessions" in files
    corrections = dump.folder / CORRECTIONS.name
    if is_the_rest and has_sessions:
        stage.db.execute("DELETE FROM stage.sessions")  # the rest has every session
    for name, path in files.items():
        table = TABLE_BY_NAME[name]
        fields = [
            *fields_of(stage, table),
            *(SESSION_FIELDS if name == "races" and not has_sessions else []),
        ]
        file = CsvFile(path, fields, stage.progress)
        stage.rows.setdefault(name, 0)
        file.insert_into(stage.db, f"stage.{name}", partial(insert, stage, table))
        stage.remarks += file.remarks(RARE)
    if not is_the_rest:
        for kind in ("driver", "constructor", "circuit"):
            stage.add_ids(kind)
    if not has_sessions and not is_the_rest:
        stage.db.execute(SPRINT_GRID)
        if not is_export:
            stage.db.execute(NO_FASTEST_LAP.format("results", "fastestLapSpeed = NULL,"))
            stage.db.execute(NO_FASTEST_LAP.format("sprint_results", ""))
    elif corrections.is_file():
        note_corrections(stage, corrections_in(corrections, stage.progress))
    is_published = dump.address.startswith(TRACINGINSIGHTS)
    licence = first_line(dump.folder / "licence.txt") or ("CC0 1.0" if is_published else None)
    name = "tracinginsights" if is_published else dump.address
    checksum = dump.checksum(files.values())
    return StoredSource(name, dump.address, licence, checksum, build_time(), ids=name)


def fields_of(stage: Stage, table: Table) -> Iterator[Field]:
    """How the columns of a table are read from its file."""
    for column in table.columns:
        parse = column.parse
        if column.parent:
            ids = ids_of(stage.db, f"stage.{column.parent}", column.name)
            parse = id_in(ids, f"a {column.name} of {column.parent}.csv")
        yield Field(column.name, parse, column.required)


def insert(stage: Stage, table: Table, batch: Sequence[Sequence[Value]]) -> None:
    """Inserts some rows of a file, given as columns; after those of races, the columns of
    SESSION_FIELDS.
    """
    count = len(table.names)
    stage.insert_rows(table.name, table.names, zip(*batch[:count]))
    race_ids, columns = batch[0], batch[count:]
    for session, dates, times in zip(WEEKEND, columns[::2], columns[1::2]):
        known = [
            (id, session.name, date, time)
            for id, date, time in zip(race_ids, dates, times)
            if date or time
        ]
        stage.insert_rows("sessions", ["raceId", "session", "date", "time"], known)

"""Reads a dump in Jolpica's own layout into a Stage: a `formula_one_….csv` per table of its
database, linked by ids.

The SQL is in jolpica.sql. Columns are found by name; other columns and files are ignored.
jolpica_download.py downloads the dump that Jolpica publishes.
"""

import sqlite3
from collections.abc import Iterator
from itertools import compress

from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.archives import Dump, files_of
from racedata.loader.files.csvfile import AnyPath, CsvFile, Field
from racedata.loader.sources import sections
from racedata.loader.sources.sections import run, sections_of, tables_in
from racedata.loader.sources.statuses import insert_statuses
from racedata.loader.sql import insertion
from racedata.loader.stage import SourceFacts, Stage, ids_of
from racedata.values import (
    Parser,
    Value,
    clock_duration,
    clock_lap_time,
    day,
    degrees,
    flag,
    id_in,
    moment,
    number,
    points,
    reference,
    round_number,
    row_id,
    speed,
    time_with_fraction,
    year,
)

RECOGNISED_BY = "formula_one_round.csv"
LICENCE = "CC BY-NC-SA 4.0"

SQL = sections_of("jolpica")
OPTIONAL_FILES = ("lap", "pitstop", "driverchampionship", "teamchampionship")
REQUIRED_FILES = tuple(name for name in tables_in(SQL["tables"]) if name not in OPTIONAL_FILES)
LAP_TIMES = ("raceId", "driverId", "lap", "position", "time")

# Parsers for columns other than whole numbers and plain text.
PARSERS: dict[str, dict[str, Parser]] = {
    "season": {"year": year},
    "circuit": {
        "reference": reference,
        "latitude": degrees,
        "longitude": degrees,
        "altitude": number,
    },
    "team": {"reference": reference},
    "driver": {"reference": reference, "date_of_birth": day},
    "round": {"number": round_number, "is_cancelled": flag},
    "session": {"timestamp": moment, "has_time_data": flag},
    "sessionentry": {"is_classified": flag, "points": points, "time": clock_duration},
    "lap": {
        "id": row_id,
        "time": clock_lap_time,
        "average_speed": speed,
        "is_entry_fastest_lap": flag,
        "is_deleted": flag,
    },
    "pitstop": {"local_timestamp": time_with_fraction, "duration": clock_duration},
    "driverchampionship": {"points": points, "is_eligible": flag},
    "teamchampionship": {"points": points, "is_eligible": flag},
}

# The file without which the Stage lacks a table.
FILE_OF = {
    "pit_stops": "pitstop",
    "driver_standings": "driverchampionship",
    "constructor_standings": "teamchampionship",
}


def read(dump: Dump, stage: Stage) -> SourceFacts:
    """Fills the stage from the files of a dump. Raises LoadError."""
    db = stage.db
    paths = {
        name: dump.folder / f"formula_one_{name}.csv" for name in REQUIRED_FILES + OPTIONAL_FILES
    }
    files = files_of(dump, paths, REQUIRED_FILES)
    run(stage, SQL["tables"])
    remarks = [remark for name in REQUIRED_FILES for remark in load(stage, name, files)]
    if without_race := db.execute(SQL["without_race"][0]).fetchone():
        year, round = without_race
        what = f"{year}/{round} has sessions with entries, but none of type R; expected a race"
        raise LoadError(f"{files['session'].name}: {what}")
    run(stage, SQL["lists"])
    insert_statuses(stage, SQL["statuses"][0])
    if "lap" in files:
        remarks += load_laps(stage, files)
    remarks += [
        remark
        for name in OPTIONAL_FILES[1:]
        if name in files
        for remark in load(stage, name, files)
    ]
    run(stage, SQL["records"], {table for table, file in FILE_OF.items() if file not in files})
    return SourceFacts(
        name="jolpica",
        address=dump.address,
        licence=LICENCE,
        checksum=dump.checksum(files.values()),
        remarks=[*remarks, *left_out(db)],
    )


def left_out(db: sqlite3.Connection) -> Iterator[str]:
    """Lines for the report about omitted rows."""
    for query in SQL["omitted"]:
        what = query.partition("\n")[0].removeprefix("-- ")
        (rows,) = db.execute(query).fetchone()
        if rows:
            yield f"left out: {what}: {rows:,}"
    if unknown := db.execute(SQL["unknown_sessions"][0]).fetchall():
        types = ", ".join(f"{type} ({sessions:,})" for type, sessions in unknown)
        yield f"left out: sessions of unknown types: {types[:200]}"


def fields_of(stage: Stage, name: str, files: dict[str, AnyPath]) -> Iterator[Field]:
    """How the columns of a file are read."""

    def parser_of_ids(parent: str) -> Parser | None:
        if parent not in files:
            return None
        return id_in(ids_of(stage.db, f"temp.{parent}", "id"), f"an id of {files[parent].name}")

    return sections.fields_of(stage.db, name, PARSERS.get(name, {}), parser_of_ids)


def load(stage: Stage, name: str, files: dict[str, AnyPath]) -> list[str]:
    """Loads a file into its temporary table. Returns remarks."""
    fields = fields_of(stage, name, files)
    return sections.load(stage, name, files[name], fields, name in REQUIRED_FILES)


def load_laps(stage: Stage, files: dict[str, AnyPath]) -> list[str]:
    """Loads the laps of races into the Stage; and into the table `lap`, fastest laps and laps with
    a pit stop. Returns remarks.

    A temporary table of all laps would take longer than the rest of the dump.
    """
    db = stage.db
    with_stop = laps_with_stop(files, stage.progress)
    entries = "SELECT id, raceId, driverId FROM entry WHERE type = 'R'"
    in_race: dict[Value, tuple[int, int]] = {
        id: (race, driver) for id, race, driver in db.execute(entries)
    }
    file = CsvFile(files["lap"], list(fields_of(stage, "lap", files)), stage.progress)
    names = tuple(field.name for field in file.fields)
    statement = insertion("temp.lap", names)
    stage.insert("lap_times", LAP_TIMES, [])
    for batch in file.batches():
        laps = dict(zip(names, batch))
        entry_ids, fastest = laps["session_entry_id"], laps["is_entry_fastest_lap"]
        numbers, positions, times = laps["number"], laps["position"], laps["time"]
        needed = [bool(fast) or id in with_stop for id, fast in zip(laps["id"], fastest)]
        # A fastest lap without a position is not from a list of all laps.
        listed = [
            number is not None and entry in in_race and (position is not None or not fast)
            for entry, number, position, fast in zip(entry_ids, numbers, positions, fastest)
        ]
        db.executemany(statement, compress(zip(*batch), needed))
        if any(listed):
            races_and_drivers = zip(*(in_race[entry] for entry in compress(entry_ids, listed)))
            columns = (list(compress(each, listed)) for each in (numbers, positions, times))
            stage.insert("lap_times", LAP_TIMES, [*races_and_drivers, *columns])
    return [*file.remarks(), *leave_out_single_laps(stage)]


def laps_with_stop(files: dict[str, AnyPath], progress: Progress) -> set[Value]:
    """The ids of the laps that have a pit stop."""
    if "pitstop" not in files:
        return set()
    file = CsvFile(files["pitstop"], [Field("lap_id", row_id, False)], progress)
    return {id for (ids,) in file.batches() for id in ids}


def leave_out_single_laps(stage: Stage) -> list[str]:
    """Deletes the laps of races for which only each driver's fastest lap is known. Returns
    remarks.
    """
    rows = stage.db.execute(SQL["single_laps"][0]).rowcount
    stage.rows["lap_times"] -= rows
    return [f"left out: laps from races with only one lap per driver: {rows:,}"] if rows else []

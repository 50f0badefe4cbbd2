"""Reads a dump in Jolpica's own layout into a Stage: a `formula_one_….csv` per table of its
database, linked by ids.

The SQL is in jolpica.sql. Columns are found by name; other columns and files are ignored.
jolpica_download.py downloads the dump that Jolpica publishes.
"""

from collections.abc import Iterator

from racedata.loader.files.archives import Dump, files_of
from racedata.loader.files.csvfile import AnyPath, Field
from racedata.loader.same_bytes import build_time
from racedata.loader.sources import sections
from racedata.loader.sources.sections import run, sections_of, tables_in
from racedata.loader.sources.statuses import insert_statuses
from racedata.loader.stage import Stage, ids_of
from racedata.loader.store import StoredSource
from racedata.values import (
    Parser,
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
    speed,
    time_with_fraction,
    whole_number,
    year,
)

RECOGNISED_BY = "formula_one_round.csv"
LICENCE = "CC BY-NC-SA 4.0"

SQL = sections_of("jolpica")
FILES = tables_in(SQL["tables"])

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
        "id": whole_number,
        "time": clock_lap_time,
        "average_speed": speed,
        "is_entry_fastest_lap": flag,
        "is_deleted": flag,
    },
    "pitstop": {"local_timestamp": time_with_fraction, "duration": clock_duration},
    "driverchampionship": {"points": points, "is_eligible": flag},
    "teamchampionship": {"points": points, "is_eligible": flag},
}


def read(dump: Dump, stage: Stage) -> tuple[StoredSource, list[str]]:
    """Fills the stage from the files of a dump. Raises LoadError."""
    files = files_of(dump, {name: dump.folder / f"formula_one_{name}.csv" for name in FILES}, FILES)
    run(stage, SQL["tables"])
    for name in FILES:
        sections.load(stage, name, files[name], fields_of(stage, name, files))
    run(stage, SQL["lists"])
    insert_statuses(stage, SQL["statuses"][0])
    run(stage, SQL["records"])
    checksum = dump.checksum(files.values())
    return StoredSource("jolpica", dump.address, LICENCE, checksum, build_time()), []


def fields_of(stage: Stage, name: str, files: dict[str, AnyPath]) -> Iterator[Field]:
    """How the columns of a file are read."""

    def parser_of_ids(parent: str) -> Parser:
        return id_in(ids_of(stage.db, f"temp.{parent}", "id"), f"an id of {files[parent].name}")

    return sections.fields_of(stage.db, name, PARSERS.get(name, {}), parser_of_ids)

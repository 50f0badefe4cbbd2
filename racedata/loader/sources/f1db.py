"""Reads the CSV release of f1db into a Stage: one file per table, linked by ids such as
`max-verstappen`.

The SQL is in f1db.sql. Columns are found by name; other columns and files are ignored. What the
project knows of ids is in f1db_ids.csv: each row is an id that does not follow the rules below. If
several rows fit a result, the first one counts. Errors of other sources do not belong there:
fill.py gives a car the constructor of the results that count.
"""

import csv
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from racedata.loader.files.archives import Dump, files_of
from racedata.loader.same_bytes import build_time
from racedata.loader.sources.sections import fields_of, load, run, sections_of, tables_in
from racedata.loader.sources.statuses import insert_statuses
from racedata.loader.sql import insertion
from racedata.loader.stage import Stage
from racedata.loader.store import StoredSource
from racedata.values import (
    Parser,
    day,
    from_one,
    hour_and_minute,
    hyphenated_id,
    key_in,
    number,
    one_of,
    points,
    position_or_reason,
    round_number,
    short_lap_time,
    whole_number,
    year,
)

RECOGNISED_BY = "f1db-races.csv"
LICENCE = "CC BY 4.0"
IDS = Path(__file__).with_name("f1db_ids.csv")
KNOWN_UNTIL = 2025  # the last season whose ids were compared with Ergast's

SQL = sections_of("f1db")
TABLES = tables_in(SQL["tables"])

# Parsers for columns other than whole numbers and plain text.
PARSERS: dict[str, Parser] = {
    "id": hyphenated_id,
    "engineManufacturerId": hyphenated_id,
    "positionText": position_or_reason,
    "sharedCar": one_of(("true", "false")),
    "points": points,
    "timeMillis": whole_number,
    "stop": from_one,
    "dateOfBirth": day,
    "latitude": number,
    "longitude": number,
    **dict.fromkeys(("time", "q1", "q2", "q3"), short_lap_time),
}
SESSIONS = (
    *("freePractice1", "freePractice2", "freePractice3"),
    *("qualifying", "sprintRace", "sprintQualifying"),
)
RACE_PARSERS: dict[str, Parser] = {
    "year": year,
    "round": round_number,
    **{f"{session}Date": day for session in SESSIONS},
    **{f"{session}Time": hour_and_minute for session in SESSIONS},
    "date": day,
    "time": hour_and_minute,
}

CONSTRUCTOR = ("constructorId", "constructorRef", "name", "nationality")  # columns

IdRule = Mapping[str, str]  # a row of f1db_ids.csv
# The columns of f1db_ids.csv that a result must fit. An empty one fits all.
CONDITIONS = ("engine", "first_year", "last_year", "first_round", "last_round", "driver")


class Rule(NamedTuple):
    """A row of f1db_ids.csv, or the row for a constructor without one. None fits all."""

    engine: str | None
    first_year: int | None
    last_year: int | None
    first_round: int | None
    last_round: int | None
    driver: int | None
    constructor: int  # the constructor of the results that fit

    def fits(self, engine: str | None, year: int, round: int, driver: int | None) -> bool:
        return (
            self.engine in (None, engine)
            and (self.first_year or year) <= year <= (self.last_year or year)
            and (self.first_round or round) <= round <= (self.last_round or round)
            and self.driver in (None, driver)
        )


def read(dump: Dump, stage: Stage) -> tuple[StoredSource, list[str]]:
    """Fills the stage from the files of a release. Raises LoadError."""
    db = stage.db
    paths = {table: dump.folder / file_name(table) for table in TABLES}
    files = files_of(dump, paths, TABLES)
    run(stage, SQL["tables"])
    for table in TABLES:
        parsers = RACE_PARSERS if table == "f1db_races" else PARSERS
        fields = fields_of(db, table, parsers, lambda parent: parser_of_ids(db, parent))
        load(stage, table, files[table], fields)
    with IDS.open(newline="", encoding="utf-8") as file:
        rules = list(csv.DictReader(file))
    for kind, references in (
        ("circuit", circuit_references(db, rules)),
        ("driver", driver_references(db, rules)),
    ):
        db.create_function(f"{kind}_reference", 1, references.get, deterministic=True)
        stage.add_ids(kind, [(reference, id) for id, reference in references.items()])
    run(stage, SQL["lists"])
    add_constructors(stage, rules)
    insert_statuses(stage, SQL["statuses"][0])
    run(stage, SQL["records"])
    checksum = dump.checksum(files.values())
    return StoredSource("f1db", dump.address, LICENCE, checksum, build_time()), []


def file_name(table: str) -> str:
    """The name of the file of a temporary table."""
    return f"{table.replace('_', '-')}.csv"


def parser_of_ids(db: sqlite3.Connection, table: str) -> Parser:
    """A parser of the ids in a file: their values are the numbers of the rows."""
    return key_in(rows_by_id(db, table), f"an id of {file_name(table)}")


def rows_by_id(db: sqlite3.Connection, table: str) -> dict[str, int]:
    """The numbers of the rows of a file."""
    return dict(db.execute(f"SELECT CAST(id AS TEXT), rowid FROM temp.{table}"))


def by_rule(id: str) -> str:
    """The reference of an id that is not in f1db_ids.csv: the same words."""
    return id.replace("-", "_")


def circuit_references(db: sqlite3.Connection, rules: Iterable[IdRule]) -> dict[str, str]:
    """The references of all circuits, by id."""
    listed = {rule["id"]: rule["reference"] for rule in rules if rule["kind"] == "circuit"}
    ids = [id for (id,) in db.execute("SELECT id FROM f1db_circuits ORDER BY rowid")]
    return {id: listed.get(id, by_rule(id)) for id in ids}


def driver_references(db: sqlite3.Connection, rules: Iterable[IdRule]) -> dict[str, str]:
    """The references of all drivers, by id: the last word if Ergast named them, else all words.

    If two would have the same, the one with more results has it.
    """
    references = {rule["id"]: rule["reference"] for rule in rules if rule["kind"] == "driver"}
    used = {reference.lower() for reference in references.values()}
    found = db.execute(SQL["results_of_drivers"][0], [KNOWN_UNTIL]).fetchall()
    for id, results in found:
        last = id.rpartition("-")[2]
        if id not in references:
            references[id] = last if results and last not in used else by_rule(id)
            used.add(references[id])
    return references


def add_constructors(stage: Stage, rules: Iterable[IdRule]) -> None:
    """Inserts the constructors, and adds the SQL function that finds the constructor of a row."""
    db = stage.db
    names = {rule["reference"]: rule["name"] for rule in rules if rule["name"]}
    drivers = rows_by_id(db, "f1db_drivers")
    constructors = {id: facts for id, *facts in db.execute(SQL["constructors"][0])}
    listed, others = rules_of_constructors(rules, constructors, drivers)
    numbers: dict[str, int] = {}
    # First the constructors whose references follow from their ids, then those of f1db_ids.csv.
    for rule in [*others, *listed]:
        reference = rule["reference"]
        if reference not in numbers:
            numbers[reference] = len(numbers) + 1
            _, name, nationality = constructors[rule["id"]]
            row = (numbers[reference], reference, names.get(reference, name), nationality)
            db.execute(insertion("stage.constructors", CONSTRUCTOR), row)
    stage.rows["constructors"] = len(numbers)
    stage.add_ids("constructor", [(rule["reference"], rule["id"]) for rule in [*others, *listed]])
    of_id: dict[int, list[Rule]] = defaultdict(list)
    for rule in [*listed, *others]:
        engine, *limits, driver = (rule[condition] for condition in CONDITIONS)
        years_and_rounds = (int(text) if text else None for text in limits)
        facts = (engine or None, *years_and_rounds, drivers.get(driver), numbers[rule["reference"]])
        of_id[constructors[rule["id"]][0]].append(Rule._make(facts))

    def constructor(id: int, *facts: Any) -> int | None:
        return next((rule.constructor for rule in of_id[id] if rule.fits(*facts)), None)

    db.create_function("constructor", 5, constructor, deterministic=True)


def rules_of_constructors(
    rules: Iterable[IdRule], constructors: Collection[str], drivers: Collection[str]
) -> tuple[list[IdRule], list[IdRule]]:
    """The rules that fit the release; and a rule without conditions for each other constructor."""
    listed = [
        rule
        for rule in rules
        if rule["kind"] == "constructor"
        and rule["id"] in constructors
        and (not rule["driver"] or rule["driver"] in drivers)
    ]
    always = {rule["id"] for rule in listed if not any(rule[condition] for condition in CONDITIONS)}
    others: list[IdRule] = [
        {"id": id, "reference": by_rule(id), **dict.fromkeys(CONDITIONS, "")}
        for id in constructors
        if id not in always
    ]
    return listed, others

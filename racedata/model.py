"""The kinds of records, the sessions of a weekend and the tables, each declared once for both
halves.

schema.sql has the columns. A fact about them that is a plain value is here, even if only one module
needs it: a new kind or column is then one declaration. Anything that takes code or SQL is in the
module that runs it: filters, how a source finds the records. Two exceptions are short SQL that
belongs to a declaration, for build.py: COMPUTED, and the `order` of a table.

| Name | What it has |
|---|---|
| DECLARED | all declarations, in the order of loading |
| TABLES, TABLE_BY_NAME | those that are tables: all but the fastest laps, columns of `results` |
| KINDS | those with records of races, by name: tables, and the fastest laps |
| RECORDS | the names of the kinds that are tables |
| TABLE_OF | by the name of any declaration, the table that has its rows |

The loader has others: `LISTS` and `PARTS` (what a source is taken apart into) are in parts.py,
`IDENTIFIED` (the lists that sources are compared in) is in sides.py, and `OUTSIDE_RACES` (what no
race has) in changes.py.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from itertools import chain
from typing import NamedTuple

from racedata.database import SCHEMA
from racedata.values import (
    Parser,
    day,
    duration,
    from_one,
    lap_time,
    number,
    one_of,
    plain_text,
    points,
    reference,
    round_number,
    short_lap_time,
    status_text,
    time_of_day,
    utc_time,
    whole_number,
    year,
)


class Session(NamedTuple):
    name: str  # in the table `sessions`, which lacks the race itself
    # Its key in a race object; empty for the race, whose date and time are the object's own fields.
    key: str
    label: str
    group: str  # the name by which calendars choose it; KIND_BY_GROUP has its records
    minutes: int  # its usual duration
    seasons: range = range(10_000)  # in which races have the key


RACE = Session("race", "", "Race", "race", 120)
SHOOTOUT = Session(
    "sq", "SprintShootout", "Sprint Shootout", "sprintqualifying", 45, range(2023, 2024)
)
SPRINT_QUALIFYING = SHOOTOUT._replace(
    key="SprintQualifying", label="Sprint Qualifying", seasons=range(2024, 10_000)
)
SESSIONS = (
    Session("fp1", "FirstPractice", "Practice 1", "practice", 60),
    Session("fp2", "SecondPractice", "Practice 2", "practice", 60),
    Session("fp3", "ThirdPractice", "Practice 3", "practice", 60),
    Session("quali", "Qualifying", "Qualifying", "qualifying", 60),
    SHOOTOUT,
    SPRINT_QUALIFYING,
    Session("sprint", "Sprint", "Sprint", "sprint", 60),
    RACE,
)
# the sessions in the table `sessions`
WEEKEND = tuple(session for session in SESSIONS if session not in (SHOOTOUT, RACE))
SESSION_GROUPS = tuple(dict.fromkeys(session.group for session in SESSIONS))


# Columns of the database that no dump has, and the SQL that computes them; see build.py. No dump
# has `record` either.
COMPUTED = {
    "colour": "newest_colour(constructorRef)",
    "final": "round = (SELECT max(round) FROM races WHERE races.year = race.year)",
    "constructors": """
        ifnull((SELECT constructors FROM constructors_so_far AS so_far
                WHERE so_far.year = race.year AND so_far.driverId = staged.driverId
                    AND so_far.round <= race.round
                ORDER BY so_far.number DESC LIMIT 1), '')""",
}


class Column(NamedTuple):
    """A column of a table. It is declared if its values are neither whole numbers nor plain texts,
    if an API has it, if sources are compared in it, or if its unknown values are counted. All that
    is known of the others is in schema.sql.
    """

    name: str
    parse: Parser  # references are checked by the readers in sources/
    path: str = ""  # of its value in an object of an API: `Time.millis`
    api_parser: Parser | None = None  # if an API writes the value in another way
    is_compared: bool = False  # whether sources that differ in it disagree: see discrepancies.py
    # What schema.sql says.
    type: str = "INTEGER"  # or TEXT
    required: bool = False
    parent: str | None = None  # the table that it refers to, by a column of the same name

    @property
    def parse_api(self) -> Parser:
        """Parses an API's value: for an id column, a reference or text."""
        return self.api_parser or self.parse


class Table(NamedTuple):
    """A table of the database that sources fill.

    With `sessions`, it is a kind of records, one of KINDS: in one race, all records of a kind are
    from one source, which the table `origins` names.
    """

    name: str
    # columns that identify a row, in corrections too; shared cars may have the same key
    key: tuple[str, ...] = ()
    facts: tuple[Column, ...] = ()  # about its columns; of a list, in the order of answers
    singular: str = ""  # of a list: what one of its rows is, such as `driver`
    required: bool = False  # a database without rows of it would be of no use
    id: str = ""  # the dump's id of a row, if `record` replaces it in the database
    # The order of `record` within a race: SQL with the columns of the row. Empty without `record`.
    order: str = ""
    is_numbered_by_race: bool = False  # whether `record` restarts at 1 in each race
    # The endpoint of the service, and of an API in Ergast's format; and the keys in MRData down to
    # the records.
    endpoint: str = ""
    keys: tuple[str, ...] = ()
    label: str = ""
    sessions: tuple[str, ...] = ()  # names of the sessions after which sources publish it
    in_table: str = ""  # the table that has its columns, if it is no table of its own
    is_in_every_api: bool = True  # whether Ergast has it, and so every API in its format
    is_fetched_by_season: bool = False  # from an API; otherwise race by race
    # whether a race without it lacks something; only some weekends have a sprint
    has_every_race: bool = True

    @property
    def id_key(self) -> str:
        """The column with the ids of a list, and their key in an answer: `driverId`."""
        return f"{self.singular}Id"

    @property
    def is_numbered(self) -> bool:
        return bool(self.order)

    @property
    def unique(self) -> tuple[str, ...]:
        """Columns that no two rows share. Until 1978, some drivers drove two cars in one race."""
        return (*self.key, "number") if self.name == "results" else self.key

    @property
    def compared(self) -> tuple[str, ...]:
        """The columns that each build compares between sources: see discrepancies.py."""
        return tuple(
            column.name
            for column in self.facts
            if column.is_compared and column.name not in self.key
        )

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the staged table: the database's, as far as a dump has them, and `id`."""
        return columns_of_tables()[self.name]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def paths(self) -> dict[str, str]:
        """By column, the path of its value in an object of an API."""
        return {column.name: column.path for column in self.columns if column.path}


@cache
def columns_of_tables() -> Mapping[str, tuple[Column, ...]]:
    """The columns of each staged table: what schema.sql says, and the facts."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        return {table.name: tuple(columns_in(db, table)) for table in TABLES}


def columns_in(db: sqlite3.Connection, table: Table) -> Iterator[Column]:
    of_kinds = [kind.facts for kind in KINDS.values() if kind.in_table == table.name]
    known = {column.name: column for column in (*table.facts, *chain.from_iterable(of_kinds))}
    references = db.execute(f"PRAGMA foreign_key_list({table.name})")
    parents = {child: parent for _, _, parent, child, *_ in references}
    if table.id:
        yield Column(table.id, whole_number, required=True)
    for _, name, type, not_null, _, primary in db.execute(f"PRAGMA table_info({table.name})"):
        if name not in COMPUTED and name not in ("record", table.id):
            usual = Column(name, whole_number if type == "INTEGER" else plain_text)
            yield known.get(name, usual)._replace(
                type=type, required=bool(not_null or primary), parent=parents.get(name)
            )


# Columns that several tables have.
DRIVER = Column("driverId", whole_number, "Driver.driverId", reference)
CONSTRUCTOR = Column(
    "constructorId", whole_number, "Constructor.constructorId", reference, is_compared=True
)
NUMBER = Column("number", whole_number, "number", is_compared=True)
POSITION = Column("position", whole_number, "position", is_compared=True)
URL = Column("url", plain_text, "url")
POINTS = Column("points", points, "points", is_compared=True)
# The letters that a result may have as its positionText, in the order of the page of a race.
LETTERS = {
    "R": "retired",
    "D": "disqualified",
    "E": "excluded",
    "W": "withdrawn",
    "F": "failed to qualify",
    "N": "not classified",
}
# The report has the compared columns in this order.
RESULT_FACTS = (
    Column("positionText", plain_text, "positionText", is_compared=True),
    Column("positionOrder", whole_number, "position", is_compared=True),
    POINTS,
    Column("grid", whole_number, "grid", is_compared=True),
    Column("laps", whole_number, "laps", is_compared=True),
    Column("milliseconds", whole_number, "Time.millis", is_compared=True),
    NUMBER,
    DRIVER,
    CONSTRUCTOR,
    Column("statusId", whole_number, "status", status_text),
)
FASTEST_FACTS = (
    Column("fastestLap", whole_number, "FastestLap.lap", is_compared=True),
    Column("rank", whole_number, "FastestLap.rank", is_compared=True),
    Column("fastestLapTime", lap_time, "FastestLap.Time.time", short_lap_time, is_compared=True),
)
QUALIFYING_FACTS = (
    POSITION,
    *(
        Column(name, lap_time, name.upper(), short_lap_time, is_compared=True)
        for name in ("q1", "q2", "q3")
    ),
    NUMBER,
    DRIVER,
    CONSTRUCTOR,
)
STANDING_FACTS = (
    Column("positionText", plain_text, "positionText"),
    POINTS,
    Column("wins", whole_number, "wins", is_compared=True),
    POSITION,
)
# The keys down to the records.
RACE_KEYS = ("RaceTable", "Races")
STANDINGS_KEYS = ("StandingsTable", "StandingsLists")

# In the order of loading: each table comes after those that it refers to.
DECLARED = (
    Table(
        "circuits",
        key=("circuitRef",),
        facts=(
            Column("circuitRef", reference, "circuitId"),
            URL,
            Column("name", plain_text, "circuitName", is_compared=True),
            Column("lat", number, "Location.lat", is_compared=True),
            Column("lng", number, "Location.long", is_compared=True),
            Column("alt", number),
            Column("location", plain_text, "Location.locality"),
            Column("country", plain_text, "Location.country", is_compared=True),
        ),
        singular="circuit",
        required=True,
    ),
    Table(
        "constructors",
        key=("constructorRef",),
        facts=(
            Column("constructorRef", reference, "constructorId"),
            URL,
            Column("name", plain_text, "name", is_compared=True),
            Column("nationality", plain_text, "nationality", is_compared=True),
        ),
        singular="constructor",
        required=True,
    ),
    Table(
        "drivers",
        key=("driverRef",),
        facts=(
            Column("driverRef", reference, "driverId"),
            Column("number", whole_number, "permanentNumber"),
            Column("code", plain_text, "code"),
            URL,
            Column("forename", plain_text, "givenName", is_compared=True),
            Column("surname", plain_text, "familyName", is_compared=True),
            Column("dob", day, "dateOfBirth", is_compared=True),
            Column("nationality", plain_text, "nationality", is_compared=True),
        ),
        singular="driver",
        required=True,
    ),
    Table(
        "status",
        singular="status",
        required=True,
        endpoint="status",
        keys=("StatusTable", "Status"),
    ),
    Table(
        "races",
        key=("year", "round"),
        facts=(
            Column("year", year, "season"),
            Column("round", round_number, "round"),
            URL,
            Column("name", plain_text, "raceName", is_compared=True),
            Column("date", day, "date", is_compared=True),
            Column("time", time_of_day, "time", utc_time, is_compared=True),
        ),
        required=True,
        endpoint="races",
        keys=RACE_KEYS,
    ),
    Table(
        "results",
        key=("raceId", "driverId"),
        facts=RESULT_FACTS,
        required=True,
        id="resultId",
        order="positionOrder, resultId",
        endpoint="results",
        keys=(*RACE_KEYS, "Results"),
        label="Results",
        sessions=("race",),
        is_fetched_by_season=True,
    ),
    Table(
        "fastest_laps",
        facts=(
            *FASTEST_FACTS,
            # few sources have it
            Column("fastestLapSpeed", number, "FastestLap.AverageSpeed.speed"),
        ),
        label="Fastest laps",
        sessions=("race",),
        in_table="results",
    ),
    Table("entries", key=("raceId", "driverId")),  # the stage has only those without a result
    Table(
        "sessions",
        key=("raceId", "session"),
        facts=(
            Column("session", one_of([session.name for session in WEEKEND])),
            Column("date", day, "date", is_compared=True),
            Column("time", time_of_day, "time", utc_time, is_compared=True),
        ),
    ),
    Table(
        "seasons",
        key=("year",),
        facts=(Column("year", year), URL),
        endpoint="seasons",
        keys=("SeasonTable", "Seasons"),
    ),
    Table(
        "qualifying",
        key=("raceId", "driverId"),
        facts=QUALIFYING_FACTS,
        id="qualifyId",
        order="position NULLS LAST, qualifyId",
        endpoint="qualifying",
        keys=(*RACE_KEYS, "QualifyingResults"),
        label="Qualifying",
        sessions=("quali",),
        is_fetched_by_season=True,
    ),
    Table(
        "sprint_results",
        key=("raceId", "driverId"),
        facts=(*RESULT_FACTS, *FASTEST_FACTS),
        id="resultId",
        order="positionOrder, resultId",
        endpoint="sprint",
        keys=(*RACE_KEYS, "SprintResults"),
        label="Sprints",
        sessions=("sprint",),
        is_fetched_by_season=True,
        has_every_race=False,
    ),
    Table(
        "sprint_qualifying",
        key=("raceId", "driverId"),
        facts=QUALIFYING_FACTS,
        id="sprintQualifyId",
        order="position NULLS LAST, sprintQualifyId",
        endpoint="sprintqualifying",
        keys=(*RACE_KEYS, "SprintQualifyingResults"),
        label="Sprint qualifying",
        sessions=("sq",),
        is_in_every_api=False,
        has_every_race=False,
    ),
    Table(
        "practice",
        key=("raceId", "session", "driverId"),
        facts=(
            Column("session", from_one, "session"),
            POSITION,
            Column("laps", whole_number, "laps", is_compared=True),
            Column("milliseconds", whole_number, "Time.millis", is_compared=True),
            NUMBER,
            DRIVER,
            CONSTRUCTOR,
        ),
        order="""session, position NULLS LAST,
            (SELECT driverRef FROM drivers WHERE drivers.driverId = staged.driverId)""",
        endpoint="practice",
        keys=(*RACE_KEYS, "PracticeResults"),
        label="Practice",
        sessions=("fp1", "fp2", "fp3"),
        is_in_every_api=False,
    ),
    Table(
        "lap_times",
        key=("raceId", "driverId", "lap"),
        facts=(
            DRIVER._replace(path="driverId"),
            Column("lap", whole_number, "lap"),
            POSITION,
            Column("time", lap_time, "time", short_lap_time, is_compared=True),
        ),
        order="lap, position NULLS LAST, driverId",
        is_numbered_by_race=True,
        endpoint="laps",
        keys=(*RACE_KEYS, "Laps", "Timings"),
        label="Lap timings",
        sessions=("race",),
    ),
    Table(
        "pit_stops",
        key=("raceId", "driverId", "stop"),
        facts=(
            DRIVER._replace(path="driverId"),
            Column("stop", whole_number, "stop"),
            Column("lap", whole_number, "lap", is_compared=True),
            Column("time", time_of_day, "time", is_compared=True),
            Column("milliseconds", whole_number, "duration", duration, is_compared=True),
        ),
        order="time NULLS LAST, lap NULLS LAST, stop, driverId",
        is_numbered_by_race=True,
        endpoint="pitstops",
        keys=(*RACE_KEYS, "PitStops"),
        label="Pit stops",
        sessions=("race",),
    ),
    Table(
        "driver_standings",
        key=("raceId", "driverId"),
        facts=(*STANDING_FACTS, DRIVER),
        id="driverStandingsId",
        order="position NULLS LAST, driverStandingsId",
        endpoint="driverstandings",
        keys=(*STANDINGS_KEYS, "DriverStandings"),
        label="Driver standings",
        sessions=("race",),
    ),
    Table(
        "constructor_standings",
        key=("raceId", "constructorId"),
        facts=(*STANDING_FACTS, CONSTRUCTOR),
        id="constructorStandingsId",
        order="position NULLS LAST, constructorStandingsId",
        endpoint="constructorstandings",
        keys=(*STANDINGS_KEYS, "ConstructorStandings"),
        label="Constructor standings",
        sessions=("race",),
    ),
)
TABLES = tuple(table for table in DECLARED if not table.in_table)
TABLE_BY_NAME = {table.name: table for table in TABLES}
LIST_BY_SINGULAR = {table.singular: table for table in TABLES if table.singular}
# The table with the rows of a kind, or of a list: the fastest laps are in `results`.
TABLE_OF = {kind.name: TABLE_BY_NAME[kind.in_table or kind.name] for kind in DECLARED}
# The tables, and the columns of one, that have records of races, in the order of lists for people.
KINDS: dict[str, Table] = {
    name: kind
    for name in (
        "results",
        "fastest_laps",
        "qualifying",
        "practice",
        "sprint_results",
        "sprint_qualifying",
        "pit_stops",
        "lap_times",
        "driver_standings",
        "constructor_standings",
    )
    for kind in DECLARED
    if kind.name == name
}
RECORDS = tuple(kind.name for kind in KINDS.values() if not kind.in_table)
STANDINGS = tuple(kind.name for kind in KINDS.values() if kind.keys[:2] == STANDINGS_KEYS)
FASTEST_LAP = tuple(column.name for column in KINDS["fastest_laps"].facts)  # columns of results
# By table and column: the kind of a value that is of another kind than the rest of its row.
KIND_OF_COLUMN = {("results", column): "fastest_laps" for column in FASTEST_LAP}
# By the name of the endpoint.
API_ENDPOINTS = {table.endpoint: table for table in TABLES if table.endpoint}
KIND_BY_ENDPOINT = {kind.endpoint: kind for kind in KINDS.values() if kind.endpoint}
# The kind with the places in a session, by the session's group. Its endpoint has the name of the
# group, except for the race.
KIND_BY_GROUP = {
    group: KIND_BY_ENDPOINT["results" if group == RACE.group else group] for group in SESSION_GROUPS
}

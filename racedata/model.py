"""The kinds of records, the sessions of a weekend and the tables, each declared once for both
halves.

schema.sql has the columns. A fact about them that is a plain value is here, even if only one module
needs it: a new kind or column is then one declaration. Anything that takes code or SQL is in the
module that runs it: filters, how a source finds the records.
"""

import sqlite3
from collections.abc import Mapping
from functools import cache
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
    row_id,
    short_lap_time,
    status_text,
    time_of_day,
    utc_time,
    whole_number,
    year,
)


class Session(NamedTuple):
    """A session of a weekend."""

    name: str  # in the table `sessions`, which lacks the race itself
    # Its key in a race object; empty for the race, whose date and time are the object's own fields.
    key: str
    label: str
    group: str  # the name by which calendars choose it
    minutes: int  # its usual duration


RACE = Session("race", "", "Race", "race", 120)
SPRINT_QUALIFYING = Session("sq", "SprintQualifying", "Sprint Qualifying", "sprintqualifying", 45)
# its name in 2023
SHOOTOUT = SPRINT_QUALIFYING._replace(key="SprintShootout", label="Sprint Shootout")
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


class Kind(NamedTuple):
    """A kind of records. In one race, all records of a kind are from one source."""

    name: str  # in the table `origins`; also the table that has the records
    label: str
    sessions: tuple[str, ...]  # names of the sessions after which sources publish it
    compared: tuple[str, ...]  # columns that `racedata check --against` compares
    # The endpoint of the service, and of an API in Ergast's format; and the keys in MRData down to
    # the records. A kind without an endpoint is columns of another table.
    endpoint: str = ""
    keys: tuple[str, ...] = ()
    table: str = ""  # the table that has the columns
    is_in_every_api: bool = True  # whether Ergast has it, and so every API in its format
    is_fetched_by_season: bool = False  # from an API; otherwise race by race
    is_numbered_by_race: bool = False  # whether the column `record` restarts at 1 in each race
    # whether a race without it lacks something; only some weekends have a sprint
    has_every_race: bool = True

    @property
    def key(self) -> str:
        """The key of the records in an object of an answer, such as a race. Needs an endpoint."""
        return self.keys[2]


# The keys down to the records, and the columns that are compared.
RACE_KEYS = ("RaceTable", "Races")
STANDINGS_KEYS = ("StandingsTable", "StandingsLists")
COMPARED_RESULT = (
    "positionText",
    "positionOrder",
    "points",
    "laps",
    "milliseconds",
    "grid",
    "number",
)
COMPARED_FASTEST_LAP = ("fastestLap", "rank", "fastestLapTime")  # few sources have the speed
COMPARED_QUALIFYING = ("position", "q1", "q2", "q3", "number")
COMPARED_STANDING = ("points", "wins", "position")

# In the order of lists for people.
KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "results",
            "Results",
            ("race",),
            COMPARED_RESULT,
            endpoint="results",
            keys=(*RACE_KEYS, "Results"),
            is_fetched_by_season=True,
        ),
        Kind("fastest_laps", "Fastest laps", ("race",), COMPARED_FASTEST_LAP, table="results"),
        Kind(
            "qualifying",
            "Qualifying",
            ("quali",),
            COMPARED_QUALIFYING,
            endpoint="qualifying",
            keys=(*RACE_KEYS, "QualifyingResults"),
            is_fetched_by_season=True,
        ),
        Kind(
            "practice",
            "Practice",
            ("fp1", "fp2", "fp3"),
            ("position", "laps", "milliseconds", "number"),
            endpoint="practice",
            keys=(*RACE_KEYS, "PracticeResults"),
            is_in_every_api=False,
        ),
        Kind(
            "sprint_results",
            "Sprints",
            ("sprint",),
            (*COMPARED_RESULT, *COMPARED_FASTEST_LAP),
            endpoint="sprint",
            keys=(*RACE_KEYS, "SprintResults"),
            is_fetched_by_season=True,
            has_every_race=False,
        ),
        Kind(
            "sprint_qualifying",
            "Sprint qualifying",
            ("sq",),
            COMPARED_QUALIFYING,
            endpoint="sprintqualifying",
            keys=(*RACE_KEYS, "SprintQualifyingResults"),
            is_in_every_api=False,
            has_every_race=False,
        ),
        Kind(
            "pit_stops",
            "Pit stops",
            ("race",),
            ("lap", "time", "milliseconds"),
            endpoint="pitstops",
            keys=(*RACE_KEYS, "PitStops"),
            is_numbered_by_race=True,
        ),
        Kind(
            "lap_times",
            "Lap timings",
            ("race",),
            ("position", "time"),
            endpoint="laps",
            keys=(*RACE_KEYS, "Laps", "Timings"),
            is_numbered_by_race=True,
        ),
        Kind(
            "driver_standings",
            "Driver standings",
            ("race",),
            COMPARED_STANDING,
            endpoint="driverstandings",
            keys=(*STANDINGS_KEYS, "DriverStandings"),
        ),
        Kind(
            "constructor_standings",
            "Constructor standings",
            ("race",),
            COMPARED_STANDING,
            endpoint="constructorstandings",
            keys=(*STANDINGS_KEYS, "ConstructorStandings"),
        ),
    )
}


# Columns of the database that no dump has, and the SQL that computes them; see build.py. No dump
# has `record` either.
COMPUTED = {
    "final": "round = (SELECT max(round) FROM races WHERE races.year = race.year)",
    "constructors": """
        ifnull((SELECT constructors FROM constructors_so_far AS so_far
                WHERE so_far.year = race.year AND so_far.driverId = staged.driverId
                    AND so_far.round <= race.round
                ORDER BY so_far.number DESC LIMIT 1), '')""",
}


@cache
def empty_database() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.executescript(SCHEMA)
    return db


class Column(NamedTuple):
    """A column of a staged table."""

    name: str
    type: str  # INTEGER or TEXT
    required: bool
    parent: str | None  # the table that it refers to, by a column of the same name
    parse: Parser  # references are checked by the readers in sources/
    parse_api: Parser  # parses an API's value: for an id column, a reference or text


class ApiEndpoint(NamedTuple):
    """An endpoint of an API in the format that the service answers in."""

    name: str  # in addresses
    # the key of its table in MRData, and the keys of the lists inside, down to the rows
    keys: tuple[str, ...]


class Table(NamedTuple):
    """A table of the database that a dump fills."""

    name: str
    # columns that identify a row, in corrections too; shared cars may have the same key
    key: tuple[str, ...] = ()
    parse: Mapping[str, Parser] = {}  # columns that are not just whole numbers or plain text
    parse_api: Mapping[str, Parser] = {}  # columns that an API writes in another way
    usually_known: tuple[str, ...] = ()  # columns whose unknown values the report counts
    required: bool = False  # a database without rows of it would be of no use
    id: str = ""  # the dump's id of a row, if `record` replaces it in the database
    # the order of `record`: SQL with the columns of the row and, if not per race, the race's year
    # and round
    order: str = ""
    paths: Mapping[str, str] = {}  # by column, the path of its value in an object of an API

    @property
    def is_numbered(self) -> bool:
        return bool(self.order)

    @property
    def endpoint(self) -> ApiEndpoint | None:
        return ENDPOINTS.get(self.name)

    @property
    def unique(self) -> tuple[str, ...]:
        """Columns that no two rows share. Until 1978, some drivers drove two cars in one race."""
        return (*self.key, "number") if self.name == "results" else self.key

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the staged table: those of the database that a dump has, and `id`."""
        return columns_of(self.name)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


@cache
def columns_of(name: str) -> tuple[Column, ...]:
    table, db = BY_NAME[name], empty_database()
    parents = {
        child: parent for _, _, parent, child, *_ in db.execute(f"PRAGMA foreign_key_list({name})")
    }

    def column(name: str, type: str, required: bool) -> Column:
        parent = parents.get(name)
        default = row_id if name == table.id else whole_number if type == "INTEGER" else plain_text
        parse = table.parse.get(name, default)
        parse_api = status_text if parent == "status" else reference if parent else parse
        return Column(
            name=name,
            type=type,
            required=required,
            parent=parent,
            parse=parse,
            parse_api=table.parse_api.get(name, parse_api),
        )

    found = [
        column(name, type, bool(not_null or primary))
        for _, name, type, not_null, _, primary in db.execute(f"PRAGMA table_info({name})")
        if name not in COMPUTED and name != "record"
    ]
    if table.id and table.id not in (column.name for column in found):
        found.insert(0, column(table.id, "INTEGER", True))
    return tuple(found)


LAP_TIME_API = {"fastestLapTime": short_lap_time}
CLASSIFIED_PATHS = {
    "driverId": "Driver.driverId",
    "constructorId": "Constructor.constructorId",
    "number": "number",
}
RESULT_PATHS = {
    **CLASSIFIED_PATHS,
    "grid": "grid",
    "positionText": "positionText",
    "positionOrder": "position",
    "points": "points",
    "laps": "laps",
    "milliseconds": "Time.millis",
    "fastestLap": "FastestLap.lap",
    "rank": "FastestLap.rank",
    "fastestLapTime": "FastestLap.Time.time",
    "statusId": "status",
}
USUAL_RESULT = ("positionText", "points", "grid", "laps", "statusId")
STANDING_PATHS = {name: name for name in ("points", "position", "positionText", "wins")}

# In the order of loading: each table comes after those that it refers to.
TABLES = (
    Table(
        "circuits",
        key=("circuitRef",),
        parse={"circuitRef": reference, "lat": number, "lng": number, "alt": number},
        required=True,
        paths={
            "circuitRef": "circuitId",
            "name": "circuitName",
            "location": "Location.locality",
            "country": "Location.country",
            "lat": "Location.lat",
            "lng": "Location.long",
            "url": "url",
        },
    ),
    Table(
        "constructors",
        key=("constructorRef",),
        parse={"constructorRef": reference},
        required=True,
        paths={
            "constructorRef": "constructorId",
            "name": "name",
            "nationality": "nationality",
            "url": "url",
        },
    ),
    Table(
        "drivers",
        key=("driverRef",),
        parse={"driverRef": reference, "dob": day},
        required=True,
        paths={
            "driverRef": "driverId",
            "number": "permanentNumber",
            "code": "code",
            "forename": "givenName",
            "surname": "familyName",
            "dob": "dateOfBirth",
            "nationality": "nationality",
            "url": "url",
        },
    ),
    Table("status", required=True),
    Table(
        "races",
        key=("year", "round"),
        parse={"year": year, "round": round_number, "date": day, "time": time_of_day},
        parse_api={"time": utc_time},
        required=True,
        paths={
            "year": "season",
            "round": "round",
            "name": "raceName",
            "date": "date",
            "time": "time",
            "url": "url",
        },
    ),
    Table(
        "results",
        key=("raceId", "driverId"),
        parse={"points": points, "fastestLapTime": lap_time, "fastestLapSpeed": number},
        parse_api=LAP_TIME_API,
        usually_known=USUAL_RESULT,
        required=True,
        id="resultId",
        order="year, round, positionOrder, resultId",
        paths={**RESULT_PATHS, "fastestLapSpeed": "FastestLap.AverageSpeed.speed"},
    ),
    Table("entries", key=("raceId", "driverId")),  # the stage has only those without a result
    Table(
        "sessions",
        key=("raceId", "session"),
        parse={
            "session": one_of([session.name for session in WEEKEND]),
            "date": day,
            "time": time_of_day,
        },
        parse_api={"time": utc_time},
        paths={"date": "date", "time": "time"},
    ),
    Table(
        "seasons",
        key=("year",),
        parse={"year": year},
        paths={"url": "url"},
    ),
    Table(
        "qualifying",
        key=("raceId", "driverId"),
        parse={"q1": lap_time, "q2": lap_time, "q3": lap_time},
        parse_api={"q1": short_lap_time, "q2": short_lap_time, "q3": short_lap_time},
        id="qualifyId",
        order="year, round, position NULLS LAST, qualifyId",
        paths={**CLASSIFIED_PATHS, "position": "position", "q1": "Q1", "q2": "Q2", "q3": "Q3"},
    ),
    Table(
        "sprint_results",
        key=("raceId", "driverId"),
        parse={"points": points, "fastestLapTime": lap_time},
        parse_api=LAP_TIME_API,
        usually_known=USUAL_RESULT,
        id="resultId",
        order="year, round, positionOrder, resultId",
        paths=RESULT_PATHS,
    ),
    Table(
        "sprint_qualifying",
        key=("raceId", "driverId"),
        parse={"q1": lap_time, "q2": lap_time, "q3": lap_time},
        parse_api={"q1": short_lap_time, "q2": short_lap_time, "q3": short_lap_time},
        id="sprintQualifyId",
        order="year, round, position NULLS LAST, sprintQualifyId",
        paths={**CLASSIFIED_PATHS, "position": "position", "q1": "Q1", "q2": "Q2", "q3": "Q3"},
    ),
    Table(
        "practice",
        key=("raceId", "session", "driverId"),
        parse={"session": from_one},
        order="""year, round, session, position NULLS LAST,
            (SELECT driverRef FROM drivers WHERE drivers.driverId = staged.driverId)""",
        paths={
            **CLASSIFIED_PATHS,
            "session": "session",
            "position": "position",
            "laps": "laps",
            "milliseconds": "Time.millis",
        },
    ),
    Table(
        "lap_times",
        key=("raceId", "driverId", "lap"),
        parse={"time": lap_time},
        parse_api={"time": short_lap_time},
        usually_known=("time",),
        order="lap, position NULLS LAST, driverId",
        paths={"driverId": "driverId", "lap": "lap", "position": "position", "time": "time"},
    ),
    Table(
        "pit_stops",
        key=("raceId", "driverId", "stop"),
        parse={"time": time_of_day},
        parse_api={"milliseconds": duration},
        usually_known=("lap", "time"),
        order="time NULLS LAST, lap NULLS LAST, stop, driverId",
        paths={
            "driverId": "driverId",
            "stop": "stop",
            "lap": "lap",
            "time": "time",
            "milliseconds": "duration",
        },
    ),
    Table(
        "driver_standings",
        key=("raceId", "driverId"),
        parse={"points": points},
        usually_known=("positionText", "points", "wins"),
        id="driverStandingsId",
        order="year, round, position NULLS LAST, driverStandingsId",
        paths={"driverId": "Driver.driverId", **STANDING_PATHS},
    ),
    Table(
        "constructor_standings",
        key=("raceId", "constructorId"),
        parse={"points": points},
        usually_known=("positionText", "points", "wins"),
        id="constructorStandingsId",
        order="year, round, position NULLS LAST, constructorStandingsId",
        paths={"constructorId": "Constructor.constructorId", **STANDING_PATHS},
    ),
)
BY_NAME = {table.name: table for table in TABLES}
# The tables with records of races: one per kind, except kinds that are columns of another table.
RECORDS = tuple(kind.name for kind in KINDS.values() if not kind.table)
FASTEST_LAP = ("fastestLap", "rank", "fastestLapTime", "fastestLapSpeed")  # columns of results
ENDPOINTS = {
    "seasons": ApiEndpoint("seasons", ("SeasonTable", "Seasons")),
    "races": ApiEndpoint("races", ("RaceTable", "Races")),
    "status": ApiEndpoint("status", ("StatusTable", "Status")),
    **{
        kind.name: ApiEndpoint(kind.endpoint, kind.keys) for kind in KINDS.values() if kind.endpoint
    },
}
API_ENDPOINTS = {endpoint.name: endpoint for endpoint in ENDPOINTS.values()}
# Tables with the records of a race, by the name of the endpoint that has them.
RACE_TABLES = {kind.endpoint: BY_NAME[kind.name] for kind in KINDS.values() if kind.endpoint}

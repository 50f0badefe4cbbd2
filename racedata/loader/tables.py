"""Facts about each table that schema.sql does not have: one `Table` per table.

How it is read, numbered and corrected, and where an API has its values.
"""

import sqlite3
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from racedata.database import SCHEMA
from racedata.kinds import KINDS, WEEKEND
from racedata.loader.values import (
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

"""One function per JSON object in answers: it makes a dict from a row, with its keys in order.

Every leaf is a string, and unknown values are left out. The schemas of the objects are in
openapi.json. HTTP and SQL do not belong here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

import orjson

from racedata.formats import Json, hours_to_thousandths, lap_time, public_name, short_time
from racedata.model import SESSIONS, Session, Table

AnyRow = Any  # sqlite3.Row, or anything else with columns by name
# Writes a time: `format_time(milliseconds, the winner's milliseconds)`. Only a gap depends on the
# winner's.
TimeFormat = Callable[[int, int | None], str]
Objects = Mapping[int, Json]  # JSON objects by their id in the database

SESSION_BY_KEY = {session.key: session for session in SESSIONS}  # by its key in a race
# In the order of answers, in which the sprint is before its qualifying.
SCHEDULED = sorted(SESSIONS, key=lambda session: session.group == "sprintqualifying")


class Texts(dict[int, str]):
    """Whole numbers as text. To find a small one takes less time than to make it."""

    def __missing__(self, number: int) -> str:
        return str(number)


TEXTS = Texts({number: str(number) for number in range(256)})


class Shared(dict[str, Any]):
    """An object that many answers repeat, such as a driver, with its JSON: it is written only once.

    Nothing may change it later.
    """

    __slots__ = ("fragment",)

    def __init__(self, facts: Json) -> None:
        super().__init__(facts)
        self.fragment = orjson.Fragment(orjson.dumps(facts))


def json_bytes(answer: Json) -> bytes:
    # orjson passes each object of a subclass to the function, and writes what it returns.
    return orjson.dumps(answer, attrgetter("fragment"), orjson.OPT_PASSTHROUGH_SUBCLASS)


def json_object(**facts: Any) -> Json:
    """The facts that are not None. Numbers become text; texts and objects stay as they are.

    Records of large pages are made without it, because that is faster.
    """
    # An unknown fact is left out (D5).
    return {
        name: str(fact) if type(fact) is int else fact
        for name, fact in facts.items()
        if fact is not None
    }


def mrdata(series: str, url: str, limit: int, offset: int, total: int, **table: Json) -> Json:
    """The envelope of every answer; `table` is its one table by name, such as `RaceTable`."""
    # `limit` and `offset` are the values that were used (D4)
    return {
        "MRData": {
            **json_object(
                xmlns="", series=series, url=url, limit=limit, offset=offset, total=total
            ),
            **table,
        }
    }


# The key under which a table echoes each filter, in order. Filters on qualifying, sprints and
# practice are not echoed.
ECHO = {
    "circuits": "circuitId",
    "constructors": "constructorId",
    "constructorstandings": "constructorStandings",
    "drivers": "driverId",
    "driverstandings": "driverStandings",
    "grid": "grid",
    "fastest": "fastest",
    "results": "position",
    "status": "status",
    "pitstops": "stop",
    "laps": "lap",
}


def echo(season: int | None, round: int | None, filters: Mapping[str, int | str]) -> Json:
    """The part of a table that repeats the request."""
    return json_object(
        season=season, round=round, **{key: filters.get(name) for name, key in ECHO.items()}
    )


def standings_list(race: AnyRow) -> Json:
    """The list of standings after a race, without its records."""
    return json_object(season=race["year"], round=race["round"])


def season(row: AnyRow) -> Json:
    return json_object(season=row["year"], url=row["url"])


def shared(table: Table, row: AnyRow) -> Shared:
    """The object of a driver, constructor or circuit, which model.py describes."""
    facts: Json = {}
    for column in table.facts:
        *outer, key = column.path.split(".")
        place = facts
        for name in outer:
            place = place.setdefault(name, {})
        if column.path and row[column.name] is not None:
            place[key] = str(row[column.name])
    return Shared(facts)


def race(row: AnyRow, circuits: Objects) -> Json:
    """A race without its session schedule: the object under which records are nested."""
    return json_object(
        season=row["year"],
        round=row["round"],
        url=row["url"],
        raceName=row["name"],
        Circuit=circuits[row["circuitId"]],
        date=row["date"],
        time=utc(row["time"]),
    )


def schedule(year: int, rows: Mapping[str, AnyRow], has_sprint: bool) -> Json:
    """The sessions of a weekend other than the race, from their rows by name."""
    found: dict[str, Json | None] = {
        name: json_object(date=row["date"], time=utc(row["time"])) for name, row in rows.items()
    }
    # Even if it is empty: clients request a sprint only if they see its key (D27).
    found["sprint"] = found.get("sprint", {}) if has_sprint else None
    return json_object(
        **{each.key: found.get(each.name) for each in SCHEDULED if year in each.seasons}
    )


def sessions_of(race: Json) -> Iterator[tuple[Session, Json]]:
    """The sessions of a race that have a date, each with the object that has it."""
    for key, session in SESSION_BY_KEY.items():
        at = race.get(key, {}) if key else race
        if "date" in at:
            yield session, at


def utc(time: str | None) -> str | None:
    return time and f"{time}Z"


def result(
    row: AnyRow,
    drivers: Objects,
    constructors: Objects,
    statuses: Mapping[int | None, str],
    format_time: TimeFormat,
    winner: int | None,
) -> Json:
    """A row of a race or sprint classification; `winner` is the winner's time in milliseconds.

    Columns are taken by their position in RecordTable.columns, as in all records of large pages.
    """
    # fmt: off
    (
        _, driver, constructor, number, grid, text, position, points, laps, milliseconds,
        lap, rank, lap_time, speed, status,
    ) = row
    # fmt: on
    record: Json = {} if number is None else {"number": TEXTS[number]}
    record["position"] = TEXTS[position]  # never missing (D26)
    if text is not None:
        record["positionText"] = text
    if points is not None:
        record["points"] = points
    record["Driver"] = drivers[driver]
    record["Constructor"] = constructors[constructor]
    if grid is not None:
        record["grid"] = TEXTS[grid]
    if laps is not None:
        record["laps"] = TEXTS[laps]
    if status is not None:
        record["status"] = statuses[status]
    if milliseconds is not None:
        record["Time"] = {"millis": str(milliseconds), "time": format_time(milliseconds, winner)}
    if lap is not None or lap_time is not None:
        record["FastestLap"] = fastest_lap(rank, lap, lap_time, speed)
    return record


def fastest_lap(rank: int | None, lap: int | None, time: str | None, speed: str | None) -> Json:
    """The object `FastestLap`; a result has it if its lap or its time is known."""
    record: Json = {} if rank is None else {"rank": TEXTS[rank]}
    if lap is not None:
        record["lap"] = TEXTS[lap]
    if time is not None:
        record["Time"] = {"time": time}
    if speed is not None:
        record["AverageSpeed"] = {"units": "kph", "speed": speed}
    return record


def qualifying_result(row: AnyRow, drivers: Objects, constructors: Objects) -> Json:
    """A row of the classification of a qualifying, or of a sprint qualifying."""
    _, driver, constructor, number, position, q1, q2, q3 = row
    record: Json = {} if number is None else {"number": TEXTS[number]}
    if position is not None:
        record["position"] = TEXTS[position]
    record["Driver"] = drivers[driver]
    record["Constructor"] = constructors[constructor]
    if q1 is not None:
        record["Q1"] = q1
    if q2 is not None:
        record["Q2"] = q2
    if q3 is not None:
        record["Q3"] = q3
    return record


def practice_result(row: AnyRow, drivers: Objects, constructors: Objects) -> Json:
    """A row of the classification of a practice; `Time` is the time of the best lap."""
    _, session, driver, constructor, number, position, laps, milliseconds = row
    record: Json = {"session": TEXTS[session]}
    if number is not None:
        record["number"] = TEXTS[number]
    if position is not None:
        record["position"] = TEXTS[position]
    record["Driver"] = drivers[driver]
    record["Constructor"] = constructors[constructor]
    if laps is not None:
        record["laps"] = TEXTS[laps]
    if milliseconds is not None:
        record["Time"] = {"millis": str(milliseconds), "time": lap_time(milliseconds)}
    return record


def laps(rows: Iterable[AnyRow], drivers: Objects) -> list[Json]:
    """Timings grouped into laps; a page may begin and end in the middle of one."""
    return [
        {
            "number": TEXTS[lap],
            "Timings": [
                timing(drivers[id]["driverId"], position, time)
                for _, id, _, position, time in timings
            ],
        }
        for lap, timings in groupby(rows, key=itemgetter(2))
    ]


def timing(driver: str, position: int | None, time: str | None) -> Json:
    if position is None or time is None:
        return json_object(driverId=driver, position=position, time=time)
    # Most records are timings, so the usual one takes no call.
    return {"driverId": driver, "position": TEXTS[position], "time": time}


def pit_stop(row: AnyRow, drivers: Objects, _: Objects) -> Json:
    """`time` is the local time of day."""
    _, driver, stop, lap, time, milliseconds = row
    record: Json = {"driverId": drivers[driver]["driverId"]}
    if lap is not None:
        record["lap"] = TEXTS[lap]
    record["stop"] = TEXTS[stop]
    if time is not None:
        record["time"] = time
    if milliseconds is not None:
        record["duration"] = short_time(milliseconds)
    return record


def standing(row: AnyRow, **entrant: Any) -> Json:
    """A row of a championship; `entrant` is `Driver` and `Constructors`, or `Constructor`."""
    position, text, points, wins = row["position"], row["positionText"], row["points"], row["wins"]
    record: Json = {} if position is None else {"position": TEXTS[position]}
    if text is not None:
        record["positionText"] = text
    if points is not None:
        record["points"] = points
    if wins is not None:
        record["wins"] = TEXTS[wins]
    return record | entrant


def driver_standing(row: AnyRow, drivers: Objects, constructors: Objects) -> Json:
    of_driver = [constructors[int(id)] for id in row["constructors"].split()]
    return standing(row, Driver=drivers[row["driverId"]], Constructors=of_driver)


def constructor_standing(row: AnyRow, _: Objects, constructors: Objects) -> Json:
    return standing(row, Constructor=constructors[row["constructorId"]])


def provenance(row: AnyRow, laps: AnyRow | None = None) -> Json:
    """Where the records of a race are from, and the fastest laps in results."""
    return json_object(
        source=public_name(row["source"]),
        readAt=row["readAt"],
        provisional="true" if row["isProvisional"] else None,
        corrected=row["corrected"],
        disputed=row["disputed"],
        FastestLaps=laps and provenance(laps),
    )


def race_time(milliseconds: int, winner: int | None) -> str:
    """H:MM:SS.mmm for every driver: `0:03:27.071` (D25)."""
    return "%d:%02d:%02d.%03d" % hours_to_thousandths(milliseconds)  # noqa: UP031 (half the time of str.format)


def sprint_time(milliseconds: int, winner: int | None) -> str:
    """MM:SS.mmm, or H:MM:SS.mmm if it is an hour or more."""
    hours, minutes, seconds, thousandths = hours_to_thousandths(milliseconds)
    minutes_and_seconds = f"{minutes:02}:{seconds:02}.{thousandths:03}"
    return f"{hours}:{minutes_and_seconds}" if hours else minutes_and_seconds


def gap_time(milliseconds: int, winner: int | None) -> str:
    """The gap to the winner, `+1:04.278`; for a driver without a gap, the time: `3:27.071`.

    The winner has no gap, nor has a driver who shared the winner's car (1951, 1956, 1957), or a
    faster driver who was disqualified.
    """
    gap = 0 if winner is None else milliseconds - winner
    return f"+{short_time(gap)}" if gap > 0 else short_time(milliseconds)


# `Time.time` by the setting `finish_times`.
RACE_TIMES: Mapping[str, TimeFormat] = {"total": race_time, "gap": gap_time}
SPRINT_TIMES: Mapping[str, TimeFormat] = {"total": sprint_time, "gap": gap_time}

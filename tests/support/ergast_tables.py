"""The tables of Ergast's documentation, with its types."""

from collections.abc import Callable
from pathlib import Path

# The columns that Ergast declares as other than text, and those that may be unknown.
INTEGERS = {
    *("circuitId", "constructorId", "driverId", "raceId", "statusId", "resultId", "qualifyId"),
    *("constructorResultsId", "constructorStandingsId", "driverStandingsId", "year", "round"),
    *("alt", "number", "position", "positionOrder", "grid", "laps", "lap", "stop", "wins", "rank"),
    *("milliseconds", "fastestLap"),
}

FLOATS = {"lat", "lng", "points"}

OPTIONAL: dict[str, set[str]] = {
    "circuits": {"location", "country", "lat", "lng", "alt"},
    "constructor_results": {"points", "status"},
    "constructor_standings": {"position", "positionText"},
    "constructors": {"nationality"},
    "driver_standings": {"position", "positionText"},
    "drivers": {"number", "code", "dob", "nationality"},
    "lap_times": {"position", "time", "milliseconds"},
    "pit_stops": {"duration", "milliseconds"},
    "qualifying": {"position", "q1", "q2", "q3"},
    "races": {
        *("time", "url", "fp1_date", "fp1_time", "fp2_date", "fp2_time", "fp3_date", "fp3_time"),
        *("quali_date", "quali_time", "sprint_date", "sprint_time"),
    },
    "results": {
        *("number", "position", "time", "milliseconds", "fastestLap", "rank", "fastestLapTime"),
        "fastestLapSpeed",
    },
    "seasons": set(),
    "sprint_results": {
        *("position", "time", "milliseconds", "fastestLap", "rank", "fastestLapTime")
    },
    "status": set(),
}

KEYS = {
    "lap_times": "raceId, driverId, lap",
    "pit_stops": "raceId, driverId, stop",
    "seasons": "year",
}

UNIQUE = {"circuits": "url", "constructors": "name", "drivers": "url", "races": "url"}

PARENTS = {
    "circuitId": "circuits",
    "constructorId": "constructors",
    "driverId": "drivers",
    "statusId": "status",
    "raceId": "races",
}

FILES = [*PARENTS.values(), *sorted(OPTIONAL.keys() - set(PARENTS.values()))]


def create(name: str, folder: Path, quote: Callable[[str], str]) -> str:
    """Ergast's table, with foreign keys, for the file of a dump."""
    header = (folder / f"{name}.csv").read_text(encoding="utf-8").partition("\n")[0].split(",")

    def type_of(column: str) -> str:
        if column in INTEGERS:
            return "int"
        if column in FLOATS:
            return "float"
        if column == "dob" or column.endswith("date"):
            return "date"
        is_clock = column.endswith("_time") or (column == "time" and name in ("races", "pit_stops"))
        return "time" if is_clock else "varchar(3)" if column == "code" else "varchar(255)"

    columns = [
        f"{quote(column)} {type_of(column)}{'' if column in OPTIONAL[name] else ' NOT NULL'}"
        for column in header
    ]
    key = KEYS.get(name, header[0])
    columns.append(f"PRIMARY KEY ({', '.join(map(quote, key.split(', ')))})")
    if name in UNIQUE:
        columns.append(f"UNIQUE ({quote(UNIQUE[name])})")
    columns += [
        f"FOREIGN KEY ({quote(column)}) REFERENCES {parent} ({quote(column)})"
        for column, parent in PARENTS.items()
        if column in header and parent != name
    ]
    return f"CREATE TABLE {name} ({', '.join(columns)});"

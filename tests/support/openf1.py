"""OpenF1 as a server answers: rows of recorded sessions, its filters, its 404s, 401s and 429s.

Also what tests of it read from a database and change in the rows.
"""

import json
import urllib.parse
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from racedata.model import RECORDS
from support import EXPECTED
from support.apis import Answer, Server, refreshed
from support.loads import changed, select

Json = dict[str, Any]
Rows = dict[str, list[Json]]  # by endpoint
ENDPOINTS = ("sessions", "drivers", "session_result", "starting_grid", "pit", "laps", "position")
RACE = 9213  # session_key of the race in Austin
SUNDAY = 1698019200  # 23 October 2023, 0:00 UTC: after the race in Austin
GIVEN = [kind for kind in RECORDS if "standings" not in kind]
RESULT = "classified.number, constructorRef, positionText, positionOrder, laps, milliseconds"

# What OpenF1 says instead of rows, as public clients of api.openf1.org quote it in 2026. Until
# 2025, it answered an empty list instead of the 404 (query_api/app.py in br-g/openf1).
LIVE = {
    "detail": "Live F1 session in progress. Global API access (including past sessions) is "
    "restricted to authenticated users until the session ends."
}
NOTHING = {"detail": "No results found."}


def recorded_rows(folder: Path) -> Rows:
    """The rows of a season that was recorded, by endpoint."""
    return {
        name: json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        for name in ENDPOINTS
        for path in [folder / f"{name}.json"]
    }


def excerpt() -> Rows:
    """The rows of two weekends, by endpoint: Austria and Austin in 2023, and the laps of Austin."""
    found = json.loads((EXPECTED / "openf1" / "2023.json").read_text(encoding="utf-8"))
    laps = found.pop("laps")
    rows = {
        name: [dict(zip(table["columns"], row)) for row in table["rows"]]
        for name, table in found.items()
    }
    # The drivers of a weekend are those of each session.
    rows["drivers"] = [
        {**driver, "session_key": session["session_key"]}
        for session in rows["sessions"]
        for driver in rows["drivers"]
        if driver["meeting_key"] == session["meeting_key"]
    ]
    keys = {name: laps[name] for name in ("session_key", "meeting_key")}
    rows["laps"] = [
        {**keys, "driver_number": int(number), "lap_number": lap, "lap_duration": duration}
        for number, durations in laps["durations"].items()
        for lap, duration in enumerate(durations, 1)
        if duration is not None
    ]
    return rows


class OpenF1Server:
    """What OpenF1 answers from rows by endpoint: the `answer` for `served`.

    `is_live` says whether a session is running: then everything is refused.
    """

    def __init__(
        self,
        rows: Mapping[str, Sequence[Json]],
        is_live: Callable[[], bool] = lambda: False,
        is_published: Callable[[str, Json], bool] = lambda endpoint, row: True,
    ) -> None:
        self.rows, self.is_live, self.is_published = rows, is_live, is_published

    def answer(self, path: str) -> Answer:
        address, _, query = path.partition("?")
        endpoint = address.rpartition("/")[2]
        if self.is_live():
            return json_answer(401, LIVE)
        found = [
            row
            for row in self.rows.get(endpoint, ())
            if all(str(row.get(name)) == value for name, value in urllib.parse.parse_qsl(query))
            and self.is_published(endpoint, row)
        ]
        return json_answer(200, found) if found else json_answer(404, NOTHING)


def json_answer(status: int, found: object) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(found).encode()


# As slowapi answers, which limited OpenF1's requests in 2024 (query_api/app.py): no Retry-After.
TOO_MANY = json_answer(429, {"error": "Rate limit exceeded: 30 per 1 minute"})


def without_records(database: Path, *kinds: str, rounds: tuple[int, ...] = (9, 18)) -> Path:
    """A database without these records of the two weekends, or of one."""
    numbers = ", ".join(map(str, rounds))
    ids = f"SELECT raceId FROM races WHERE year = 2023 AND round IN ({numbers})"
    for kind in kinds:
        changed(database, f"DELETE FROM {kind} WHERE raceId IN ({ids})")
        changed(database, f"DELETE FROM origins WHERE kind = '{kind}' AND raceId IN ({ids})")
    if "results" in kinds:
        changed(database, f"DELETE FROM origins WHERE kind = 'fastest_laps' AND raceId IN ({ids})")
        changed(database, f"DELETE FROM entries WHERE raceId IN ({ids})")
    return database


def refresh(database: Path, server: Server, now: float = SUNDAY) -> list[str]:
    """Refreshes 2023 from OpenF1. Returns the messages about the two weekends."""
    said, _ = refreshed(database, f"openf1:{server.url}", season=2023, now=now)
    return [line for line in said if "is left out: OpenF1 has no race" not in line]


def facts(
    database: Path, kind: str, columns: str, round: int, year: int = 2023
) -> list[tuple[Any, ...]]:
    """The rows of a kind of a race, with the drivers' ids."""
    joins = "JOIN constructors USING (constructorId) JOIN status USING (statusId)"
    return select(
        database,
        f"""SELECT driverRef, {columns} FROM {kind} AS classified JOIN races USING (raceId)
            JOIN drivers USING (driverId) {joins * kind.endswith("results")}
            WHERE races.year = {year} AND races.round = {round} ORDER BY record""",
    )


def provisional(database: Path) -> dict[str, str]:
    """Which records are provisional: the races' rounds, by kind."""
    return dict(
        select(
            database,
            """SELECT kind, group_concat(round) FROM origins JOIN sources USING (sourceId)
               JOIN races USING (raceId) WHERE isProvisional GROUP BY kind""",
        )
    )


def rounds_with(database: Path, kind: str) -> set[int]:
    """The rounds of 2023 that have records of a kind."""
    found = select(
        database, f"SELECT DISTINCT round FROM {kind} JOIN races USING (raceId) WHERE year = 2023"
    )
    return {round for (round,) in found}


def in_austin(rows: Rows, endpoint: str) -> list[Json]:
    """The rows of the weekend in Austin."""
    return [row for row in rows[endpoint] if row["meeting_key"] == 1222]


def of_race(rows: Rows, endpoint: str) -> Json:
    """The first row of the race in Austin."""
    return next(row for row in rows[endpoint] if row["session_key"] == RACE)


def repair_laps(rows: Rows, sample_database: Path) -> None:
    """Adds the two laps that OpenF1 lacks, and when each lap began. Replaces the places with those
    at the end of each lap.
    """
    rows["position"] = []
    keys = {"session_key": RACE, "meeting_key": 1222}
    for number, lap, duration in ((4, 41, 100.733), (20, 7, 103.874)):
        lap_row = {"driver_number": number, "lap_number": lap, "lap_duration": duration}
        rows["laps"].append({**keys, **lap_row})
    numbers = dict(facts(sample_database, "results", "classified.number", 18))
    now = {number: datetime(2023, 10, 22, 19, 3, tzinfo=UTC) for number in numbers.values()}
    laps: dict[tuple[int, int], list[Json]] = defaultdict(list)
    for row in rows["laps"]:
        laps[row["driver_number"], row["lap_number"]].append(row)
    for driver, lap, position, time in facts(
        sample_database, "lap_times", "lap, position, classified.time", 18
    ):
        number, (minutes, seconds) = numbers[driver], time.split(":")
        for row in laps[number, lap]:
            row["date_start"] = now[number].isoformat()
        now[number] += timedelta(minutes=int(minutes), seconds=float(seconds))
        change = {"driver_number": number, "date": now[number].isoformat(), "position": position}
        rows["position"].append({**keys, **change})


def halve(results: list[Json]) -> None:
    """Leaves only the first eleven results in their session."""
    for row in results[11:]:
        row["session_key"] = row["meeting_key"] = 0

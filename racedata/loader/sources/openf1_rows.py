"""Rows of OpenF1 as rows of a Stage: which driver and constructor they mean, and what can be known.

Doubtful values are left out. Requests do not belong here.
"""

import csv
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from racedata.formats import Json, abridged, lap_time, plural, without_accents
from racedata.loader.errors import LoadError
from racedata.values import Value

with Path(__file__).with_name("openf1_ids.csv").open(newline="", encoding="utf-8") as file:
    IDS = list(csv.DictReader(file))
# The circuits as OpenF1 numbers them. Its names of places change; these keys do not.
CIRCUITS = {int(row["id"]): row["reference"] for row in IDS if row["kind"] == "circuit"}
CONSTRUCTORS = {row["id"]: row["reference"] for row in IDS if row["kind"] == "constructor"}

# Since 2023, where OpenF1 begins.
POINTS = (25, 18, 15, 12, 10, 8, 6, 4, 2, 1)
SPRINT_POINTS = (8, 7, 6, 5, 4, 3, 2, 1)
LAST_FASTEST_LAP_POINT = 2024  # the last season with a point for the fastest lap

ACTIVE = 5  # maximum seasons since a driver's last race: a namesake may have the same acronym
SHORTEST_RACE = 20 * 60_000  # milliseconds; OpenF1 has had half a second


class WrongValue(LoadError):
    """A wrong value in an answer. OpenF1's other values may be right."""


class Undecided(Exception):
    """Why records are left out."""


class OpenF1Row(dict[str, Any]):
    """A row of an answer. `place` is the address that messages name.

    Its functions return values, and raise WrongValue for a value of another type.
    """

    def __init__(self, facts: Json, url: str, query: str) -> None:
        super().__init__(facts)
        endpoint, key = query.partition("?")[0], facts.get("session_key")
        self.place = f"{url}/{f'{endpoint}?session_key={key}' if type(key) is int else query}"

    def wrong(self, name: str, value: object, expected: str) -> WrongValue:
        what = "missing" if value is None else repr(str(value)[:80])
        return WrongValue(f"{self.place}, {name}: {what}; expected {expected}")

    def whole(self, name: str) -> int | None:
        value = self.get(name)
        if value is None or (type(value) is int and 0 <= value < 1_000_000):
            return value
        raise self.wrong(name, value, "a whole number")

    def number(self, name: str) -> int:
        value = self.whole(name)
        if value is None:
            raise self.wrong(name, value, "a whole number")
        return value

    def milliseconds(self, name: str) -> int | None:
        return self.in_milliseconds(self.get(name), name)

    def in_milliseconds(self, seconds: float | None, name: str) -> int | None:
        if seconds is None:
            return None
        if type(seconds) not in (int, float) or not 0 < seconds < 100_000:
            raise self.wrong(name, seconds, "seconds, more than 0")
        return round(seconds * 1000)

    def text(self, name: str) -> str:
        value = self.get(name)
        if not isinstance(value, str):
            raise self.wrong(name, value, "text")
        return value

    def moment(self, name: str) -> datetime | None:
        """A time in UTC, even if it names no zone; None if it is missing."""
        if self.get(name) is None:
            return None
        try:
            moment = datetime.fromisoformat(self.text(name))
            moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
            # Adding a duration to the first or the last possible time would fail.
            if not FIRST_YEAR <= moment.year <= LAST_YEAR:
                raise ValueError
            return moment
        except (ValueError, OverflowError):  # the latter in the year 1 or 9999
            raise self.wrong(name, self.get(name), "a date and time in UTC") from None

    def offset(self) -> timedelta:
        """How far the local clock is ahead of UTC: `-05:00:00`."""
        value = self.get("gmt_offset")
        match = OFFSET.fullmatch(value) if isinstance(value, str) else None
        if not match:
            raise self.wrong("gmt_offset", value, "hours, minutes and seconds")
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return -offset if match[1] else offset


FIRST_YEAR, LAST_YEAR = 1950, 2999  # as the years of races
OFFSET = re.compile(r"(-?)(\d\d):(\d\d):\d\d", re.ASCII)


class Entrants:
    """The drivers and constructors of a season in the database, by references, with their numbers
    in it.
    """

    def __init__(self, db: sqlite3.Connection, year: int) -> None:
        # references and surnames, by acronym
        self.drivers: dict[str, list[tuple[str, str]]] = defaultdict(list)
        last = """SELECT max(year) FROM results JOIN races USING (raceId)
                  WHERE results.driverId = drivers.driverId AND year <= ?"""
        for code, reference, surname, active in db.execute(
            f"SELECT code, driverRef, surname, ({last}) FROM drivers WHERE code NOT NULL", (year,)
        ):
            if active is None or active >= year - ACTIVE:
                self.drivers[code].append((reference, without_accents(surname)))
        found = db.execute("SELECT constructorRef FROM constructors")
        self.constructors = {reference for (reference,) in found}
        # How many drivers a race has: the most in the latest season with results.
        (self.field,) = db.execute(
            """SELECT ifnull(max(drivers), 0) FROM (
                   SELECT count(*) AS drivers FROM results JOIN races USING (raceId)
                   WHERE year = (SELECT max(year) FROM results JOIN races USING (raceId)
                                 WHERE year <= ?) GROUP BY raceId)""",
            (year,),
        ).fetchone()
        self.numbers: dict[int, str] = {}  # drivers, by number
        self.teams: dict[str, str] = {}  # constructors, by driver
        for number, driver, constructor in db.execute(
            """SELECT results.number, driverRef, constructorRef FROM results
               JOIN races USING (raceId) JOIN drivers USING (driverId)
               JOIN constructors USING (constructorId)
               WHERE year = ? ORDER BY round, record""",
            (year,),
        ):
            self.numbers[number], self.teams[driver] = driver, constructor

    def driver(self, number: int, acronym: str, name: str) -> str | None:
        """The driver with an acronym and name; None if there is none, or two, or the number is
        another driver's.
        """
        name = without_accents(name)
        found = [driver for driver, surname in self.drivers.get(acronym, []) if surname in name]
        return found[0] if found == [self.numbers.get(number, *found[:1])] else None

    def constructor(self, team: object, driver: str) -> str | None:
        """The constructor with the name that OpenF1 has; without a name, the driver's latest."""
        if team is None:
            return self.teams.get(driver)
        reference = CONSTRUCTORS.get(str(team))
        return reference if reference in self.constructors else None


class Entry(NamedTuple):
    """A driver of a session, for its constructor: their references."""

    driver: str
    constructor: str


def entries_of(rows: Sequence[OpenF1Row], entrants: Entrants, session: int) -> dict[int, Entry]:
    """The drivers of a session by number, from the rows of the whole weekend.

    A session may have rows of another series. In a weekend, a number belongs to one driver: the one
    whom most sessions name. A wrong value counts only in the row of its own session.
    """
    named: dict[int, Counter[str]] = defaultdict(Counter)
    teams: dict[str, dict[int, str | None]] = defaultdict(dict)  # by driver and session
    for row in rows:
        try:
            number = row.number("driver_number")
            driver = entrants.driver(number, row.text("name_acronym"), row.text("full_name"))
            key = row.number("session_key")
        except WrongValue:
            if row.get("session_key") == session:
                raise
            continue
        if driver is not None:
            named[number][driver] += 1
            constructor = entrants.constructor(row.get("team_name"), driver)
            teams[driver][key] = constructor
    entries = {}
    for number, drivers in named.items():
        (driver, count), *others = drivers.most_common(2)
        known = [team for team in teams[driver].values() if team is not None]
        constructor = teams[driver].get(session) or (known[-1] if known else None)
        if constructor is not None and not (others and others[0][1] == count):
            entries[number] = Entry(driver, constructor)
    return entries


# Classifications.


def in_order(rows: Sequence[OpenF1Row]) -> list[OpenF1Row]:
    """The rows of a classification: by place, then those without one, disqualified drivers last:
    OpenF1 may leave their rows where they were.
    """
    return sorted(rows, key=lambda row: (row.whole("position") or 999, is_disqualified(row)))


def is_disqualified(row: OpenF1Row) -> bool:
    """Whether a driver was disqualified: the flag says so, or there is a total time without a
    place.
    """
    finished = isinstance(row.get("duration"), (int, float)) and not row.get("dnf")
    return bool(row.get("dsq")) or (row.get("position") is None and finished)


def cars_of(numbers: Sequence[int]) -> str:
    """`car 1`, or `cars 1, 4`."""
    return f"{plural('car', len(numbers))} {', '.join(map(str, numbers))}"


def entrants_of(
    rows: Sequence[OpenF1Row], entries: Mapping[int, Entry], unknown: Collection[int] = ()
) -> Iterator[tuple[int, OpenF1Row, dict[str, Value]]]:
    """Each row of a classification, and how its row in a Stage begins: `(n, row, facts)`.

    Omits the `unknown` cars, but checks their rows too. Raises Undecided for any other car without
    an entry.
    """
    numbers = Counter(row.number("driver_number") for row in rows)
    if others := sorted(numbers.keys() - entries.keys() - {*unknown}):
        raise Undecided(f"no driver for {cars_of(others)}")
    drivers = {entries[number].driver for number in numbers if number in entries}
    if len(drivers) + len(unknown) < len(rows):
        raise Undecided("a driver appears twice")
    places = [row["position"] for row in rows if row.whole("position")]
    if sorted(places) != list(range(1, len(places) + 1)):
        raise Undecided(f"inconsistent places {', '.join(map(str, sorted(places)))[:60]}")
    for n, row in enumerate(in_order(rows), 1):
        number = row["driver_number"]
        if number in unknown:
            continue
        entry = entries[number]
        facts = {"driverId": entry.driver, "constructorId": entry.constructor, "number": number}
        yield n, row, facts


def practice_rows(
    rows: Sequence[OpenF1Row], entries: Mapping[int, Entry]
) -> tuple[list[dict[str, Value]], str]:
    """The rows of a practice session, and a remark on the omitted ones.

    In half of all first sessions, a test driver drives, whom the database may not have.
    """
    numbers = {row.number("driver_number") for row in rows}
    unknown = sorted(numbers - entries.keys())
    if 2 * len(unknown) >= len(rows):  # another series
        unknown = []
    made: list[dict[str, Value]] = [
        {
            **facts,
            "position": row.whole("position"),
            "laps": row.whole("number_of_laps"),
            "milliseconds": row.milliseconds("duration"),
        }
        for _, row, facts in entrants_of(rows, entries, unknown)
    ]
    times = [time for row in in_order(rows) if (time := row.milliseconds("duration"))]
    if times != sorted(times):
        raise Undecided("times that contradict the places")
    return made, f"{cars_of(unknown)}: no driver is known" if unknown else ""


def qualifying_rows(
    rows: Sequence[OpenF1Row], entries: Mapping[int, Entry], is_sprint: bool
) -> list[dict[str, Value]]:
    """The rows of a qualifying session. As in f1db, everybody has a place, except in sprint
    qualifying.
    """
    made = []
    for n, row, facts in entrants_of(rows, entries):
        parts = row.get("duration")
        if not (isinstance(parts, list) and len(parts) == 3):
            raise row.wrong("duration", row.get("duration"), "a list of three")
        times = [row.in_milliseconds(part, "duration") for part in parts]
        texts = [None if time is None else lap_time(time) for time in times]
        position = row.whole("position") if is_sprint else n
        made.append({**facts, "position": position, **dict(zip(("q1", "q2", "q3"), texts))})
    return made


def result_rows(
    rows: Sequence[OpenF1Row],
    entries: Mapping[int, Entry],
    grid: Mapping[int, int],
    year: int,
    is_sprint: bool,
) -> tuple[list[dict[str, Value]], str]:
    """The rows of a race or sprint, and a remark on what they lack."""
    made, remarks = [], []
    points_right = are_points_right(rows, year, is_sprint)
    if not points_right:
        remarks.append("the points, because they contradict the places")
    times_right = are_times_right(rows)
    if not times_right:
        remarks.append("the times, because they contradict the gaps")
    for n, row, facts in entrants_of(rows, entries):
        position, status = row.whole("position"), status_of(row)
        if position and (row.get("dsq") or row.get("dns")):
            what = "was disqualified" if row.get("dsq") else "did not start"
            raise Undecided(f"car {row['driver_number']} {what}, but has place {position}")
        facts |= {
            "grid": grid.get(row["driver_number"]),
            "positionText": str(position) if position else POSITION_TEXTS.get(status or ""),
            "positionOrder": n,
            "points": f"{float(row['points']):g}" if points_right else None,
            "laps": row.whole("number_of_laps"),
            "milliseconds": row.milliseconds("duration") if times_right else None,
            "statusId": status,
        }
        made.append(facts)
    return made, "; without ".join(remarks)


POSITION_TEXTS = {"Retired": "R", "Disqualified": "D", "Did not start": "W"}


def status_of(row: OpenF1Row) -> str | None:
    """The status. OpenF1 does not say why a driver retired."""
    gap = row.get("gap_to_leader")
    if is_disqualified(row):
        return "Disqualified"
    if row.get("dns"):
        return "Did not start"
    if row.get("dnf"):
        return "Retired"
    if isinstance(gap, (int, float)):
        return "Finished"
    behind = LAPS_BEHIND.fullmatch(gap) if isinstance(gap, str) else None
    return f"+{behind[1]} {plural('Lap', int(behind[1]))}" if behind else None


LAPS_BEHIND = re.compile(r"\+?([0-9]{1,3}) laps?", re.IGNORECASE)


def are_points_right(rows: Sequence[OpenF1Row], year: int, is_sprint: bool) -> bool:
    """Whether the points match the places. In a shortened race they do not, so they are unknown
    here.
    """
    table = SPRINT_POINTS if is_sprint else POINTS
    extra = 0
    for row in rows:
        points, position = row.get("points"), row.whole("position")
        if type(points) not in (int, float):
            return False
        by_place = table[position - 1] if position and position <= len(table) else 0
        if points != by_place:
            if points != by_place + 1 or not position or position > 10 or is_sprint:
                return False
            extra += 1
    return extra <= (1 if year <= LAST_FASTEST_LAP_POINT else 0)


def are_times_right(rows: Sequence[OpenF1Row]) -> bool:
    """Whether the total times are the winner's time plus the gaps, and long enough for a race."""
    timed = [
        (row["duration"], row["gap_to_leader"])
        for row in in_order(rows)
        if row.whole("position")
        and isinstance(row.get("duration"), (int, float))
        and isinstance(row.get("gap_to_leader"), (int, float))
    ]
    if not timed:
        return True
    first = timed[0][0]
    return (
        first * 1000 >= SHORTEST_RACE
        and timed == sorted(timed)
        and all(abs(duration - gap - first) < 0.0015 for duration, gap in timed)
    )


def grid_of(
    rows: Sequence[OpenF1Row], qualified: Sequence[OpenF1Row], started: Collection[int], year: int
) -> dict[int, int]:
    """The places on the grid by number, as far as they are known.

    A start from the pit lane looks like one of the last places. So a place is known only if the
    driver, or one behind, has not lost any place since qualifying, and is not among the last. Since
    2025, such a start also shifts those who qualified behind that driver. A penalty looks the same.
    """
    places = {row.number("driver_number"): row.whole("position") for row in rows}
    known = {number: n for number, n in places.items() if n and number in started}
    best = {row.number("driver_number"): row.whole("position") for row in qualified}
    if sorted(n or 0 for n in places.values()) != list(range(1, len(rows) + 1)):
        raise Undecided(f"inconsistent places {abridged(sorted(str(n) for n in places.values()))}")
    certain = [n for number, n in known.items() if n <= (best.get(number) or 0)]
    last = min(max(certain, default=0), len(places) - PIT_LANE)
    if year >= SHIFTED_SINCE:
        behind = [best.get(number) for number, n in places.items() if (n or 0) > last]
        last = min([last, *(n - 1 for n in behind if n)])
    return {number: n for number, n in known.items() if n <= last}


PIT_LANE = 3  # the most starts from there in a race that looked like the last places
SHIFTED_SINCE = 2025  # the first season in which such a start shifts others

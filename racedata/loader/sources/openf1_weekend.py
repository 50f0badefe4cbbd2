"""The weekend of a race in OpenF1: fetched with a few requests, and taken apart."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from racedata.loader.sources.openf1_laps import Laps, fastest_laps, lap_rows, laps_of, stop_rows
from racedata.loader.sources.openf1_rows import (
    Entrants,
    Entry,
    OpenF1Row,
    Undecided,
    WrongValue,
    entries_of,
    grid_of,
    practice_rows,
    qualifying_rows,
    result_rows,
)
from racedata.loader.sources.own_calendar import RowsByTable
from racedata.model import KINDS
from racedata.values import Value

# OpenF1's names of sessions, and ours. Sprint qualifying was the shootout in 2023.
SESSION_NAMES = {
    "Practice 1": "fp1",
    "Practice 2": "fp2",
    "Practice 3": "fp3",
    "Qualifying": "quali",
    "Sprint Shootout": "sq",
    "Sprint Qualifying": "sq",
    "Sprint": "sprint",
    "Race": "race",
}


class WantedRace(NamedTuple):
    """A race of the database's calendar, and the kinds that are wanted of it."""

    year: int
    round: int
    name: str
    circuit: str
    date: datetime
    kinds: Collection[str]

    @property
    def label(self) -> str:
        return f"{self.year}/{self.round} {self.name}"


# The rows of an endpoint that a weekend has, or one session of it.
RowsOf = Callable[[str, int | None], list[OpenF1Row]]


# How many drivers may be missing from a session's results: OpenF1 omits those who did not start.
ABSENT = 2


class Weekend:
    """What is fetched of the weekend of a race, with at most eight requests: session_result,
    drivers, starting_grid, pit, laps of the race and of the sprint, position; and the sessions of
    the season.
    """

    def __init__(
        self,
        rows_of: RowsOf,
        race: WantedRace,
        sessions: Mapping[str, OpenF1Row],
        results: Sequence[OpenF1Row],
        entrants: Entrants,
    ) -> None:
        self.rows_of, self.race, self.sessions = rows_of, race, sessions
        self.results, self.entrants = results, entrants
        self.drivers = rows_of("drivers", None)
        self.remarks: list[str] = []
        self.grid: list[OpenF1Row] | None = None
        self.rows: RowsByTable = {}

    def of_session(self, name: str, rows: Sequence[OpenF1Row] | None = None) -> list[OpenF1Row]:
        """The rows of a session: among `rows`, or else among the results."""
        session = self.sessions.get(name)
        rows = self.results if rows is None else rows
        return [row for row in rows if session and row.get("session_key") == session["session_key"]]

    def fetch(self) -> RowsByTable:
        """Fetches the wanted records. Omitted ones become remarks with the reason."""
        for name in dict.fromkeys(SESSION_NAMES.values()):
            for kind in self.kinds_after(name):
                label = f"{self.race.label}, {kind.replace('_', ' ')} ({name})"
                try:
                    if lacking := self.add_records(kind, name):
                        self.remarks.append(f"{label} without {lacking}")
                except (Undecided, WrongValue) as why:
                    self.remarks.append(f"{label} left out: {why}")
        return self.rows

    def kinds_after(self, name: str) -> list[str]:
        """The wanted kinds of records of a session; none if the weekend lacks it."""
        if name not in self.sessions:
            return []
        wanted = {*self.race.kinds}
        if "lap_times" in wanted:
            wanted.discard("fastest_laps")  # they come with the laps
        return [kind for kind in KINDS if kind in wanted and name in KINDS[kind].sessions]

    def add_records(self, kind: str, name: str) -> str:
        """Adds the rows of a kind that a session has. Returns the omitted ones."""
        results = self.of_session(name)
        if not results:
            return ""
        entries = entries_of(self.drivers, self.entrants, self.sessions[name]["session_key"])
        absent = self.absent(name, len(results), entries)
        if kind == "pit_stops":
            self.add_stops(name, len(results), entries)
            return ""
        if kind in ("lap_times", "fastest_laps"):
            self.add_laps(name, results, entries)
            return ""
        remark = self.add_classification(kind, name, results, entries)
        return "; without ".join(filter(None, [absent, remark]))

    def add_classification(
        self, kind: str, name: str, results: Sequence[OpenF1Row], entries: Mapping[int, Entry]
    ) -> str:
        """Adds the rows of a session's result. Returns the omitted values."""
        if kind == "practice":
            rows, remark = practice_rows(results, entries)
            rows = [{"session": int(name[-1]), **row} for row in rows]
        elif kind in ("qualifying", "sprint_qualifying"):
            rows, remark = qualifying_rows(results, entries, kind == "sprint_qualifying"), ""
        else:
            of_sprint = name == "sprint"
            grid = self.grid_of("sq" if of_sprint else "quali", results)
            rows, remark = result_rows(results, entries, grid, self.race.year, of_sprint)
            if of_sprint:
                self.add_fastest_laps_of_sprint(rows, results, entries)
        self.add(kind, rows)
        return remark

    def add_stops(self, name: str, drivers: int, entries: Mapping[int, Entry]) -> None:
        """Adds the pit stops of a race."""
        session = self.sessions[name]
        if stops := self.rows_of("pit", session["session_key"]):
            self.add("pit_stops", stop_rows(stops, entries, drivers, session.offset()))

    def absent(self, name: str, count: int, entries: Mapping[int, Entry]) -> str:
        """How many drivers the results of a session lack, as a text. Raises Undecided if too many.

        In a practice session, some drivers may not have a lap.
        """
        key = self.sessions[name]["session_key"]
        numbers = {row.get("driver_number") for row in self.drivers if row["session_key"] == key}
        expected = max(len(numbers & {*entries}), self.entrants.field)
        least = expected // 2 + 1
        if not name.startswith("fp"):
            others = (self.of_session(each) for each in self.sessions if not each.startswith("fp"))
            expected = max(expected, *map(len, others))
            least = expected - ABSENT
        if count < least:
            raise Undecided(f"only {count} of {expected} drivers")
        return f"{expected - count} of {expected} drivers" if count < expected else ""

    def add(self, table: str, rows: list[dict[str, Value]]) -> None:
        self.rows.setdefault(table, []).extend(rows)

    def grid_of(self, qualifying: str, results: Sequence[OpenF1Row]) -> dict[int, int]:
        if qualifying not in self.sessions:
            return {}
        if self.grid is None:
            self.grid = self.rows_of("starting_grid", None)
        started = {row.number("driver_number") for row in results if not row.get("dns")}
        rows = self.of_session(qualifying, self.grid)
        try:
            return (
                grid_of(rows, self.of_session(qualifying), started, self.race.year) if rows else {}
            )
        except (Undecided, WrongValue) as why:
            self.remarks.append(f"{self.race.label}, grid ({qualifying}) left out: {why}")
            return {}

    def add_fastest_laps_of_sprint(
        self,
        rows: Sequence[dict[str, Value]],
        results: Sequence[OpenF1Row],
        entries: Mapping[int, Entry],
    ) -> None:
        """Adds the fastest laps to the rows of a sprint, if all laps are present and right."""
        try:
            found = self.rows_of("laps", self.sessions["sprint"]["session_key"])
            laps = laps_of(found, results) if found else None
        except (Undecided, WrongValue) as why:
            label = f"{self.race.label}, fastest laps (sprint)"
            self.remarks.append(f"{label} left out: {why}")
            return
        if laps:
            join_fastest_laps(rows, laps, entries)

    def add_laps(
        self, name: str, results: Sequence[OpenF1Row], entries: Mapping[int, Entry]
    ) -> None:
        """Adds the laps, and the fastest ones to the results."""
        key = self.sessions[name]["session_key"]
        rows = self.rows_of("laps", key)
        if not rows:
            return
        laps = laps_of(rows, results)
        if unknown := {number for number, _ in laps.times} - set(entries):
            raise Undecided(f"no driver for car {min(unknown)}")
        if "lap_times" in self.race.kinds:
            places = self.rows_of("position", key) if laps.ends else []
            self.add("lap_times", lap_rows(laps, places, entries))
        if "fastest_laps" in self.race.kinds:
            if "results" not in self.rows:
                grid = self.grid_of("quali", results)
                found, _ = result_rows(results, entries, grid, self.race.year, False)
                self.add("results", found)
            join_fastest_laps(self.rows["results"], laps, entries)


def join_fastest_laps(
    rows: Sequence[dict[str, Value]], laps: Laps, entries: Mapping[int, Entry]
) -> None:
    """Adds the fastest laps of drivers to the rows of their results."""
    of_drivers = {entries[number].driver: row for number, row in fastest_laps(laps).items()}
    for row in rows:
        row |= of_drivers.get(str(row["driverId"]), {})

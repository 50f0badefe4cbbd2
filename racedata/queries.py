"""Queries: the filters of an address as SQL over the tables of schema.sql, and a directory of objects used by answers.

SQL text consists of constants only; values are always bound. HTTP and the JSON of answers do not belong here.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from sqlite3 import Row
from typing import Any

from racedata import serializers
from racedata.addresses import Address, Value
from racedata.serializers import Json
from racedata.snapshot import Snapshot

Filters = Mapping[str, Value]  # values of columns, by filter

# The filters for a row of `results`, which is one driver in one race, and the column that each filter compares.
ENTRY: Mapping[str, str] = {
    "constructors": "constructorId",
    "drivers": "driverId",
    "grid": "grid",
    "fastest": "rank",
    "results": "positionText",
    "status": "statusId",
}


STANDINGS = ("driver_standings", "constructor_standings")


class NotRun(LookupError):
    """`last` was requested for a season in which no race has results."""


@dataclass(frozen=True)
class Selection:
    """What an address selects, in database ids.

    `filters` has the filters with the values of their columns. For season and round, it has `race` (a raceId) if there
    is a round, else `season`. It is None if nothing can match, because an id or a round does not exist.
    """

    season: int | None
    round: int | None
    filters: Filters | None


class Directory:
    """The JSON objects that many answers use, read once per database: by id, in the order of answers."""

    def __init__(self, data: Snapshot) -> None:
        def by_id(table: str, id: str) -> dict[Any, Row]:
            return {row[id]: row for row in data.rows(f"SELECT * FROM {table} ORDER BY {id}")}

        circuits, constructors, drivers = (
            by_id(table, id)
            for table, id in [("circuits", "circuitId"), ("constructors", "constructorId"), ("drivers", "driverId")]
        )
        # Lists in answers are in the order of these dicts.
        self.seasons = {year: serializers.season(row) for year, row in by_id("seasons", "year").items()}
        self.circuits = in_order(circuits, serializers.circuit, lambda row: row["circuitRef"].lower())
        self.constructors = in_order(constructors, serializers.constructor, lambda row: row["constructorRef"].lower())
        self.drivers = in_order(
            drivers, serializers.driver, lambda row: (plain(row["surname"]), row["driverRef"].lower())
        )
        self.statuses = {id: row["status"] for id, row in by_id("status", "statusId").items()}
        races = data.rows(
            """SELECT *, sprint_date IS NOT NULL
                   OR EXISTS (SELECT 1 FROM sprint_results WHERE raceId = races.raceId) AS hasSprint
               FROM races ORDER BY year, round"""
        )
        self.race_rows = {row["raceId"]: row for row in races}
        self.races = {id: serializers.race(row, self.circuits) for id, row in self.race_rows.items()}
        self.calendar = {id: {**race, **serializers.schedule(self.race_rows[id])} for id, race in self.races.items()}
        self.race_order = {id: number for number, id in enumerate(self.races)}
        self.race_ids = {(row["year"], row["round"]): id for id, row in self.race_rows.items()}
        # Ids in addresses are case-insensitive.
        self.ids = {
            "circuits": {row["circuitRef"].lower(): id for id, row in circuits.items()},
            "constructors": {row["constructorRef"].lower(): id for id, row in constructors.items()},
            "drivers": {row["driverRef"].lower(): id for id, row in drivers.items()},
        }
        self.last_races = self.latest(data, "results")
        self.latest_standings = {table: self.latest(data, table) for table in STANDINGS}

    def latest(self, data: Snapshot, table: str) -> dict[int, int]:
        """The raceId of the latest race with rows in `table`, by season."""
        found = {id for (id,) in data.rows(f"SELECT DISTINCT raceId FROM {table}")}
        return {row["year"]: id for id, row in self.race_rows.items() if id in found}

    def select(self, address: Address) -> Selection:
        """The Selection of an address. Raises NotRun."""
        season, round = self.place(address.season, address.round)
        filters: dict[str, Value] = {}
        if round is not None:
            race = self.race_ids.get((season or 0, round))
            if race is None:
                return Selection(season, round, None)
            filters["race"] = race
        elif season is not None:
            filters["season"] = season
        for name, value in address.filters.items():
            if name in self.ids:
                id = self.ids[name].get(str(value))
                if id is None:
                    return Selection(season, round, None)
                filters[name] = id
            elif name != "fastest" or value != 0:  # Ergast: rank 0 is no rank, and `fastest/0` no filter
                filters[name] = value
        return Selection(season, round, filters)

    def place(self, season: Value | None, round: Value | None) -> tuple[int | None, int | None]:
        """Season and round as numbers. `current`, `last` and `next` depend on the database, never on a clock."""
        year = max(self.last_races) if season == "current" else season
        if year is None or isinstance(year, str):
            return None, None
        last = self.race_rows[self.last_races[year]]["round"] if year in self.last_races else 0
        if round == "last":
            if not last:
                raise NotRun(f"No race of season {year} has results yet, so it has no last round.")
            return year, last
        if round == "next":
            ahead = [number for season, number in self.race_ids if season == year and number > last]
            return (year, min(ahead)) if ahead else (year + 1, 1)
        return year, None if round is None else int(round)


def in_order(rows: Mapping[int, Row], make: Callable[[Row], Json], key: Callable[[Row], Any]) -> dict[int, Json]:
    """The objects that `make` makes of rows, by id, sorted by `key`."""
    return {id: make(row) for id, row in sorted(rows.items(), key=lambda item: key(item[1]))}


def plain(text: str) -> str:
    """A text without letter case and accents, as the key by which names are sorted."""
    decomposed = unicodedata.normalize("NFD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))


class Where:
    """The conditions of a query, and the values they bind."""

    def __init__(self) -> None:
        self.terms: list[str] = []
        self.values: list[Value] = []

    def add(self, term: str, values: Iterable[Value]) -> None:
        self.terms.append(term)
        self.values.extend(values)

    def equal(self, columns: Mapping[str, str], filters: Filters) -> None:
        """Adds `column = value` for each filter that is given."""
        for name, column in columns.items():
            if name in filters:
                self.add(f"{column} = ?", [filters[name]])

    def race(self, filters: Filters) -> None:
        """Adds the conditions for season, round and circuit. (`final` is for standings only: see `chosen`.)"""
        self.equal({"race": "raceId"}, filters)
        if "final" in filters:
            self.add("final = 1", [])
        calendar = Where()
        if "race" not in filters:
            calendar.equal({"season": "year"}, filters)
        calendar.equal({"circuits": "circuitId"}, filters)
        if calendar.terms:
            self.add(f"raceId IN (SELECT raceId FROM races{calendar})", calendar.values)

    def __str__(self) -> str:
        return f" WHERE {' AND '.join(self.terms)}" if self.terms else ""


@dataclass(frozen=True)
class Source:
    """The rows that an endpoint serves: a table whose `record` numbers them in the order of answers."""

    table: str
    own: Mapping[str, str]  # filters that are columns of the table itself
    columns: str = "*"
    # Filters for the row of `results` with the same race and driver.
    entry: Collection[str] = ()
    counted_per_race: bool = False  # `record` counts from 1 in each race, else over the whole table

    @property
    def filters(self) -> frozenset[str]:
        """All filters that these rows accept."""
        return frozenset({"circuits", *self.own, *self.entry})

    def where(self, filters: Filters) -> Where:
        where = Where()
        where.race(filters)
        where.equal(self.own, filters)
        # The other filters must all match the same row of `results`, so they go into one subquery.
        left = {name: ENTRY[name] for name in self.entry if name in filters and name not in self.own}
        if left:
            entry = Where()
            entry.race(filters)
            entry.equal({"drivers": "driverId", **left}, filters)
            where.add(f"(raceId, driverId) IN (SELECT raceId, driverId FROM results{entry})", entry.values)
        return where

    def page(self, data: Snapshot, filters: Filters, limit: int, offset: int) -> tuple[int, list[Row]]:
        """The number of rows that match, and those of a page."""
        where = self.where(filters)
        # If rows are numbered without gaps, the last number is the total, and a page is a range of numbers. No row
        # before the page is read, so the last page of lap timings is as fast as the first.
        numbered = where.terms == (["raceId = ?"] if self.counted_per_race else [])
        count = "ifnull(max(record), 0)" if numbered else "count(*)"
        (total,) = data.row(f"SELECT {count} FROM {self.table}{where}", tuple(where.values))
        if limit == 0 or offset >= total:
            return total, []
        if numbered:
            where.add("record > ? AND record <= ?", (offset, offset + limit))
            page = ""
        else:
            where.values += (limit, offset)
            page = " LIMIT ? OFFSET ?"
        sql = f"SELECT {self.columns} FROM {self.table}{where} ORDER BY record{page}"
        return total, data.rows(sql, tuple(where.values))


RESULTS = Source("results", ENTRY)
SPRINT = Source(
    "sprint_results",
    # Not `results` and `fastest`: it would not be clear whether they mean the race or the sprint.
    {
        "constructors": "constructorId",
        "drivers": "driverId",
        "grid": "grid",
        "status": "statusId",
        "sprint": "positionText",
    },
    "*, NULL AS fastestLapSpeed",
)
QUALIFYING = Source(
    "qualifying",
    # In a few races the two tables name different constructors; the qualifying row's own counts here.
    {"constructors": "constructorId", "drivers": "driverId", "qualifying": "position"},
    entry=ENTRY,
)
LAPS = Source(
    "lap_times",
    {"drivers": "driverId", "laps": "lap"},
    "lap, driverId, position, time, raceId",
    entry=ENTRY,
    counted_per_race=True,
)


PITSTOPS = Source(
    "pit_stops",
    {"drivers": "driverId", "laps": "lap", "pitstops": "stop"},
    entry=ENTRY,
    counted_per_race=True,
)
DRIVER_STANDINGS = Source("driver_standings", {"drivers": "driverId", "driverstandings": "positionText"})
CONSTRUCTOR_STANDINGS = Source(
    "constructor_standings", {"constructors": "constructorId", "constructorstandings": "positionText"}
)


def winner_time(data: Snapshot, source: Source, race_id: int) -> int | None:
    """The milliseconds of the first row of a classification: gaps are counted from it."""
    sql = f"SELECT milliseconds FROM {source.table} WHERE raceId = ? ORDER BY record LIMIT 1"
    time: int | None = data.row(sql, (race_id,))["milliseconds"]
    return time


def entries(filters: Filters) -> Where:
    """The rows of `results` that match."""
    where = Where()
    where.race(filters)
    where.equal(ENTRY, filters)
    if "qualifying" in filters:
        qualifying = "SELECT raceId, driverId FROM qualifying WHERE position = ?"
        where.add(f"(raceId, driverId) IN ({qualifying})", [filters["qualifying"]])
    return where


def races(data: Snapshot, directory: Directory, filters: Filters) -> list[int]:
    """The raceIds that match, in order. Uses `results` if a filter needs it, else only the calendar."""
    where = entries(filters)
    if not where.terms:
        return list(directory.races)
    table = "results" if any(name in filters for name in ENTRY) else "races"
    found = data.rows(f"SELECT DISTINCT raceId FROM {table}{where}", tuple(where.values))
    return sorted((id for (id,) in found), key=directory.race_order.__getitem__)


def entrants(data: Snapshot, column: str, filters: Filters) -> set[int]:
    """The driverIds or constructorIds of the rows of `results` that match."""
    where = entries(filters)
    return {id for (id,) in data.rows(f"SELECT DISTINCT {column} FROM results{where}", tuple(where.values))}


def statuses(data: Snapshot, filters: Filters) -> list[tuple[int, int]]:
    """`(statusId, count)` of the rows of `results` that match."""
    where = entries(filters)
    where.add("statusId IS NOT NULL", [])
    rows = data.rows(f"SELECT statusId, count(*) FROM results{where} GROUP BY statusId", tuple(where.values))
    return [(id, count) for id, count in rows]


def chosen(directory: Directory, table: str, filters: Filters) -> Filters | None:
    """The filters of standings, with a race or `final` in place of the season; None if the season has no standings.

    A season has many lists of standings, one after each race. With a round, this chooses the list after that round.
    With only a season, it chooses the latest list; without a season, the `final` list of each finished season.
    """
    if "race" in filters:
        return filters
    if "season" not in filters:
        return {**filters, "final": 1}
    latest = directory.latest_standings[table].get(int(filters["season"]))
    return None if latest is None else {**filters, "race": latest}


def standing(data: Snapshot, directory: Directory, source: Source, column: str, filters: Filters) -> set[int]:
    """The values of a column in the rows of the chosen standings that match: driverIds, constructorIds or raceIds."""
    lists = chosen(directory, source.table, filters)
    if lists is None:
        return set()
    where = source.where(lists)
    return {id for (id,) in data.rows(f"SELECT DISTINCT {column} FROM {source.table}{where}", tuple(where.values))}


def loaded(data: Snapshot) -> dict[str, Any]:
    """The number of seasons, the first and the last; and season and round of the latest race with the most data."""
    seasons = data.row("SELECT count(DISTINCT year) AS seasons, min(year) AS first, max(year) AS last FROM races")
    fullest = data.row(
        """SELECT year AS season, round FROM races WHERE raceId IN (SELECT raceId FROM results) ORDER BY
               EXISTS (SELECT 1 FROM qualifying WHERE raceId = races.raceId)
               + EXISTS (SELECT 1 FROM sprint_results WHERE raceId = races.raceId)
               + EXISTS (SELECT 1 FROM pit_stops WHERE raceId = races.raceId)
               + EXISTS (SELECT 1 FROM lap_times WHERE raceId = races.raceId) DESC,
               year DESC, round DESC LIMIT 1"""
    )
    return {**dict(seasons), **dict(fullest)}

"""Queries of the endpoints: filters as SQL over the tables of schema.sql, and what answers add.

SQL text consists of constants only; values are always bound. HTTP and the JSON of answers do not
belong here. What only pages show is in pages/queries.sql.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from sqlite3 import Row
from typing import Any

from racedata.model import KIND_OF_COLUMN, KINDS, STANDINGS, Table
from racedata.service.addresses import Value
from racedata.service.snapshot import Snapshot

# What records must match, by name:
# - the filters of an address (`FILTERS` in addresses.py); an id such as `alonso` is here the number
#   that the database gives it;
# - its season and round: `race` (a raceId) if it has a round, else `season`, or `from_season` if
#   later seasons match too;
# - `final` instead of season and round: the standings at the end of each season;
# - an endpoint's own parameters: `since`, `state`. No filter has such a name.
Wanted = Mapping[str, Value]

# The column that each of them compares, in whatever table.
COLUMNS: Mapping[str, str] = {
    "race": "raceId",
    "season": "year",
    "circuits": "circuitId",
    "constructors": "constructorId",
    "drivers": "driverId",
    "grid": "grid",
    "fastest": "rank",
    "results": "positionText",
    "status": "statusId",
    "laps": "lap",
    "pitstops": "stop",
    "qualifying": "position",  # the final one (D16)
    "sprint": "positionText",
    "sprintqualifying": "position",
    "practice": "session",
    "driverstandings": "positionText",
    "constructorstandings": "positionText",
    "state": "state",
}
# Those that compare a column of `races`, and of `results`, which has a row for a driver in a race.
OF_CALENDAR = ("season", "circuits")
OF_RESULT = ("constructors", "drivers", "grid", "fastest", "results", "status")
# Filters that are not about a result. Queries with only these read `entries`, which includes
# drivers without a result.
ENTRY_FILTERS = {"race", "season", "from_season", "circuits", "constructors", "drivers"}


@dataclass
class Where:
    """The conditions of a query, and the values they bind."""

    terms: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def add(self, term: str, values: Iterable[Value]) -> None:
        self.terms.append(term)
        self.values.extend(values)

    def equal(self, names: Iterable[str], wanted: Wanted) -> None:
        """Adds `column = value` for each of these filters that is given."""
        for name in names:
            if name in wanted:
                self.add(f"{COLUMNS[name]} = ?", [wanted[name]])

    def among(self, column: str, values: Collection[Value]) -> None:
        self.add(f"{column} IN ({', '.join('?' * len(values))})", values)

    def race(self, wanted: Wanted) -> None:
        """Adds the conditions for season, round and circuit."""
        self.equal(["race"], wanted)
        if "final" in wanted:
            self.add("final = 1", [])
        calendar = Where()
        calendar.equal(OF_CALENDAR, wanted)
        if "from_season" in wanted:
            calendar.add("year >= ?", [wanted["from_season"]])
        if calendar.terms:
            self.add(f"raceId IN (SELECT raceId FROM races{calendar})", calendar.values)

    def __str__(self) -> str:
        return f" WHERE {' AND '.join(self.terms)}" if self.terms else ""


@dataclass(frozen=True)
class RecordTable:
    """The rows of an endpoint: a table whose `record` numbers them in the order of answers."""

    kind: Table
    own: Collection[str]  # filters that compare a column of the table itself
    # whether the other filters OF_RESULT compare the row of `results` with the same race and driver
    is_of_result: bool = False
    select: Sequence[str] = ()  # the columns that answers need, if not those that an API has

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def columns(self) -> Sequence[str]:
        """The columns that answers need: the race, and what an API has, in the order of schema.sql.

        serializers.py takes them by their position.
        """
        return self.select or ("raceId", *self.kind.paths)

    @cached_property
    def selected(self) -> str:
        return ", ".join(self.columns)

    @property
    def filters(self) -> frozenset[str]:
        """The filters of the table itself, of `results` and of `races`."""
        of_result = OF_RESULT if self.is_of_result else ()
        of_race = () if self.name in STANDINGS else ("circuits",)
        return frozenset({*self.own, *of_result, *of_race})

    def where(self, wanted: Wanted) -> Where:
        where = Where()
        where.race(wanted)
        where.equal(self.own, wanted)
        # The other filters must all match the same row of `results`, so they go into one subquery.
        others = [name for name in OF_RESULT if name in wanted and name not in self.own]
        if others and self.is_of_result:
            same_row = Where()
            same_row.race(wanted)
            # also the driver that the table itself compares: the subquery then finds few rows
            same_row.equal(["drivers", *others], wanted)
            where.add(
                f"(raceId, driverId) IN (SELECT raceId, driverId FROM results{same_row})",
                same_row.values,
            )
        return where

    def page(
        self, data: Snapshot, wanted: Wanted, limit: int, offset: int
    ) -> tuple[int, list[Row]]:
        """The number of rows that match, and the rows of a page."""
        if self.kind.is_numbered_by_race and "race" not in wanted:
            return self.page_of_season(data, wanted, limit, offset)
        return self.page_of_list(data, wanted, limit, offset)

    def page_of_list(
        self, data: Snapshot, wanted: Wanted, limit: int, offset: int
    ) -> tuple[int, list[Row]]:
        """Like `page`, for rows that are numbered from 1: those of the table, or of a race."""
        where = self.where(wanted)
        # Without another filter, the numbers have no gaps, so the last one is the total.
        is_unfiltered = wanted.keys() == ({"race"} if self.kind.is_numbered_by_race else set())
        count = "ifnull(max(record), 0)" if is_unfiltered else "count(*)"
        total: int = data.value(f"SELECT {count} FROM {self.name}{where}", where.values)
        if limit == 0 or offset >= total:
            return total, []
        if is_unfiltered:
            # No row before the page is read: the last page of timings is as fast as the first.
            where.add("record > ? AND record <= ?", [offset, offset + limit])
            sql = f"SELECT {self.selected} FROM {self.name}{where} ORDER BY record"
            return total, data.rows(sql, where.values)
        # Few rows of a season match. The plus makes SQLite search them by race, and sort them.
        # Without it, SQLite would read the matching rows of all seasons, in order: a millisecond
        # more for `2023/practice/1` and `2023/results/R`.
        order = "+record" if "season" in wanted else "record"
        sql = f"SELECT {self.selected} FROM {self.name}{where} ORDER BY {order} LIMIT ? OFFSET ?"
        return total, data.rows(sql, (*where.values, limit, offset))

    def page_of_season(
        self, data: Snapshot, wanted: Wanted, limit: int, offset: int
    ) -> tuple[int, list[Row]]:
        """Like `page`, for a season (D19). Races on other pages are only counted."""
        calendar = Where()
        calendar.equal(OF_CALENDAR, wanted)
        others = {name: value for name, value in wanted.items() if name not in OF_CALENDAR}
        sql = f"SELECT raceId FROM races{calendar} ORDER BY year, round"
        total, rows = 0, list[Row]()
        for (race,) in data.rows(sql, calendar.values):
            before, left = max(offset - total, 0), limit - len(rows)
            count, page = self.page_of_list(data, {**others, "race": race}, left, before)
            total += count
            rows += page
        return total, rows


RESULTS = RecordTable(KINDS["results"], OF_RESULT)
SPRINT = RecordTable(
    KINDS["sprint_results"],
    # Not `results` and `fastest`: it would not be clear whether they mean the race or the sprint
    # (D21).
    ("constructors", "drivers", "grid", "status", "sprint"),
    # the columns of RESULTS, of which sprints lack some
    select=[
        name if name in {"raceId", *KINDS["sprint_results"].paths} else "NULL"
        for name in RESULTS.columns
    ],
)
QUALIFYING = RecordTable(
    KINDS["qualifying"],
    # In a few races, the two tables name different constructors; here, the one in the row counts.
    ("constructors", "drivers", "qualifying"),
    is_of_result=True,
)
SPRINT_QUALIFYING = RecordTable(
    KINDS["sprint_qualifying"], ("constructors", "drivers", "sprintqualifying")
)
PRACTICE = RecordTable(KINDS["practice"], ("constructors", "drivers", "practice"))
LAPS = RecordTable(KINDS["lap_times"], ("drivers", "laps"), is_of_result=True)  # all of them (D20)
PITSTOPS = RecordTable(KINDS["pit_stops"], ("drivers", "laps", "pitstops"), is_of_result=True)
DRIVER_STANDINGS = RecordTable(
    KINDS["driver_standings"], ("drivers", "driverstandings"), select=("*",)
)
CONSTRUCTOR_STANDINGS = RecordTable(
    KINDS["constructor_standings"], ("constructors", "constructorstandings")
)


def winner_time(data: Snapshot, classification: RecordTable, race_id: int) -> int | None:
    """The time of the first row of a classification in milliseconds; gaps are from it."""
    sql = f"SELECT milliseconds FROM {classification.name} WHERE raceId = ? ORDER BY record LIMIT 1"
    time: int | None = data.value(sql, (race_id,))
    return time


def entries_or_results(wanted: Wanted) -> str:
    """The table to search for drivers in races."""
    return "entries" if wanted.keys() <= ENTRY_FILTERS else "results"


def where_results(wanted: Wanted) -> Where:
    """The conditions for rows of `results`.

    They also fit another table that has the columns: `entries` for a filter on drivers, `races` for
    one on circuits.
    """
    where = RESULTS.where(wanted)
    if "qualifying" in wanted:
        qualifying = "SELECT raceId, driverId FROM qualifying WHERE position = ?"
        where.add(f"(raceId, driverId) IN ({qualifying})", [wanted["qualifying"]])
    return where


def ids_of_races(data: Snapshot, wanted: Wanted) -> set[int]:
    """The raceIds that match. Without a filter on drivers, every race in the calendar (D22)."""
    table = entries_or_results(wanted) if any(name in wanted for name in OF_RESULT) else "races"
    return distinct(data, "raceId", table, where_results(wanted))


def ids_in_results(data: Snapshot, column: str, wanted: Wanted) -> set[int]:
    """The driverIds or constructorIds in the results or entries that match."""
    return distinct(data, column, entries_or_results(wanted), where_results(wanted))


def status_counts(data: Snapshot, wanted: Wanted) -> list[tuple[int, int]]:
    """`(statusId, count)` of the rows of `results` that match."""
    where = where_results(wanted)
    where.add("statusId IS NOT NULL", [])
    rows = data.rows(
        f"SELECT statusId, count(*) FROM results{where} GROUP BY statusId", where.values
    )
    return [(id, count) for id, count in rows]


ROUND_OF_NOTE = "(SELECT round FROM races WHERE races.raceId = note.raceId) AS round"
IDS_OF_NOTE = """
    (SELECT driverRef FROM drivers WHERE drivers.driverId = note.driverId) AS driverId,
    (SELECT constructorRef FROM constructors
     WHERE constructors.constructorId = note.constructorId) AS constructorId,
    (SELECT circuitRef FROM circuits WHERE circuits.circuitId = note.circuitId) AS circuitId"""
# By table, what answers say of a note, in the order of its JSON. `record` is not in the JSON.
NOTES: Mapping[str, str] = {
    "corrections": f"""year AS season, {ROUND_OF_NOTE}, tableName AS "table", key,
        columnName AS "column", sourceValue, value, witnesses""",
    "changes": f"""revision, changedAt AS time, year AS season, round, raceName, kind, key,
        {IDS_OF_NOTE}, columnName AS "column", oldValue, value, oldSource, source, reason""",
    "discrepancies": f"""record, year AS season, {ROUND_OF_NOTE},
        (SELECT name FROM races WHERE races.raceId = note.raceId) AS raceName, kind, key,
        {IDS_OF_NOTE}, columnName AS "column", value, state, explanation""",
}


def notes(
    table: str, data: Snapshot, wanted: Wanted, limit: int, offset: int
) -> tuple[int, list[Row]]:
    """How many `corrections`, `changes` or `discrepancies` match, and one page of them."""
    where = where_notes(wanted)
    total: int = data.value(f"SELECT count(*) FROM {table}{where}", where.values)
    sql = f"SELECT {NOTES[table]} FROM {table} AS note{where} ORDER BY record LIMIT ? OFFSET ?"
    if limit == 0 or offset >= total:
        return total, []
    return total, data.rows(sql, (*where.values, limit, offset))


def where_notes(wanted: Wanted) -> Where:
    where = Where()
    where.equal(("race", "season", "drivers", "circuits", "state"), wanted)
    if "constructors" in wanted:
        by_entry = (
            "(raceId, driverId) IN (SELECT raceId, driverId FROM entries WHERE constructorId = ?)"
        )
        where.add(f"(constructorId = ? OR {by_entry})", [wanted["constructors"]] * 2)
    if "since" in wanted:
        where.add("changedAt >= ?", [wanted["since"]])
    return where


def values_of_sources(data: Snapshot, records: Sequence[int]) -> dict[int, list[Row]]:
    """What each source says about discrepancies, by `record`: the most trusted first."""
    rows = data.rows(
        f"""SELECT record, source, value FROM discrepancy_values
            WHERE record IN ({", ".join("?" * len(records))}) ORDER BY record, place""",
        records,
    )
    return {record: list(found) for record, found in groupby(rows, lambda row: row["record"])}


def sources_compared(data: Snapshot) -> list[str]:
    """The sources that disagree about something, the most trusted first."""
    sql = "SELECT source FROM discrepancy_values GROUP BY source ORDER BY min(place)"
    return [source for (source,) in data.rows(sql)]


def discrepancy_counts(
    data: Snapshot, wanted: Wanted, limit: int, offset: int
) -> tuple[int, list[Row]]:
    """How many discrepancies there are of each kind, season and state: the number of these counts,
    and those of a page.
    """
    where = where_notes(wanted)
    rows = data.rows(
        f"""SELECT kind, year AS season, state, count(*) AS count FROM discrepancies{where}
            GROUP BY kind, year, state ORDER BY kind, year, state""",
        where.values,
    )
    return len(rows), rows[offset : offset + limit]


def origins(data: Snapshot, kind: str, races: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Where the records of a kind are from, by raceId: the source, when it said so, whether they
    are provisional, and how many of their values are corrected and disputed.
    """
    among = f"raceId IN ({', '.join('?' * len(races))})"
    corrections = f"SELECT raceId, tableName, columnName FROM corrections WHERE {among}"
    corrected = Counter(
        race
        for race, table, column in data.rows(corrections, races)
        if KIND_OF_COLUMN.get((table, column), table) == kind
    )
    rows = data.rows(
        f"""SELECT raceId, name AS source, ifnull(fetchedAt, readAt) AS readAt, isProvisional,
                (SELECT count(*) FROM discrepancies WHERE discrepancies.raceId = origins.raceId
                 AND discrepancies.kind = origins.kind AND state = 'open') AS disputed
            FROM origins JOIN sources USING (sourceId)
            WHERE kind = ? AND {among}""",
        (kind, *races),
    )
    return {row["raceId"]: {**row, "corrected": corrected[row["raceId"]]} for row in rows}


def ids_of_sources(
    data: Snapshot, references: Mapping[str, Collection[str]] | None = None
) -> list[Row]:
    """What each source calls drivers, constructors and circuits: all, or those with these own ids,
    by kind.
    """
    where = Where()
    if references is not None:
        terms = [
            f"kind = ? AND reference IN ({', '.join('?' * len(ids))})"
            for ids in references.values()
        ]
        values = [value for kind, ids in references.items() for value in (kind, *ids)]
        where.add(f"({' OR '.join(terms)})", values)
    columns = "kind, reference AS id, source, ids.id AS sourceId"
    return data.rows(f"SELECT {columns} FROM ids{where} ORDER BY record", where.values)


def example_race(data: Snapshot) -> tuple[int, int]:
    """Season and round of the latest of the races with results and the most kinds of records."""
    kinds = (kind.name for kind in KINDS.values() if kind.endpoint)
    number = " + ".join(
        f"EXISTS (SELECT 1 FROM {kind} WHERE raceId = races.raceId)" for kind in kinds
    )
    season, round = data.row(
        f"""SELECT year, round FROM races WHERE raceId IN (SELECT raceId FROM results)
            ORDER BY {number} DESC, year DESC, round DESC LIMIT 1"""
    )
    return season, round


def distinct(data: Snapshot, column: str, table: str, where: Where) -> set[int]:
    """The values of a column of numbers in the rows that match."""
    return {
        value
        for (value,) in data.rows(f"SELECT DISTINCT {column} FROM {table}{where}", where.values)
    }

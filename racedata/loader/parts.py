"""What one source says, taken apart: calendars, lists, and parts.

A part is all rows of one kind of one race. Its rows have references and texts instead of ids, so
that parts of several sources can stand side by side. store.py keeps them.
"""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from racedata.loader.sql import column_names
from racedata.model import FASTEST_LAP, RECORDS, TABLE_BY_NAME, TABLE_OF
from racedata.values import Value

Row = dict[str, Value]

LISTS = ("circuits", "constructors", "drivers", "status")
# The column of each list by which other rows refer to it in a part.
REFERENCE = {
    "circuitId": "circuitRef",
    "constructorId": "constructorRef",
    "driverId": "driverRef",
    "statusId": "status",
}
# A list, by the column that refers to it.
LIST_OF = {TABLE_BY_NAME[name].id_key: name for name in LISTS}
# The kinds of parts: those in model.py, and the drivers who entered a race without a result.
PARTS = ("results", "fastest_laps", "entries", *(kind for kind in RECORDS if kind != "results"))
# What names the car that drove a fastest lap: a driver may have two results, of shared cars.
OF_CAR = ("driverId", "number", "positionText", "positionOrder")
# A result has a fastest lap if one of these is known: a speed alone is none.
KNOWN_LAP = FASTEST_LAP[:3]
HAS_FASTEST_LAP = f"coalesce({', '.join(KNOWN_LAP)}) NOT NULL"


class Part(NamedTuple):
    """All rows of one kind of one race, in the order of the source."""

    season: int
    round: int  # in the source's calendar
    kind: str  # one of PARTS
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Value]]

    @property
    def entrants(self) -> int:
        """How many drivers or constructors it has."""
        column = "driverId" if "driverId" in self.columns else "constructorId"
        at = self.columns.index(column)
        return len({row[at] for row in self.rows})


class Calendar(NamedTuple):
    """A season of a source. A race has the columns of `races`, and its sessions in a list."""

    season: int
    races: Sequence[dict[str, Any]]
    may_count: bool  # otherwise, it only says which race is which, for the parts of a source


def columns_of(kind: str, has_ids: bool) -> tuple[str, ...]:
    """The columns of a part. `has_ids` says whether it keeps the source's ids of rows."""
    if kind == "fastest_laps":
        return (*OF_CAR, *FASTEST_LAP)
    table = TABLE_BY_NAME[kind]
    skipped = {"raceId", *(FASTEST_LAP if kind == "results" else ())}
    if not has_ids:
        skipped.add(table.id)
    return tuple(name for name in table.names if name not in skipped)


def sql_of_kind(kind: str) -> str:
    """Which rows of its table are of a kind, as SQL."""
    return HAS_FASTEST_LAP if kind == "fastest_laps" else "TRUE"


def as_parts(season: int, round: int, kind: str, rows: Sequence[Row]) -> list[Part]:
    """The part that rows are, with columns of their own; for results, also the fastest laps. No
    rows are no part.
    """
    if not rows:
        return []
    names = list(dict.fromkeys(name for row in rows for name in row))
    parts = []
    if kind == "results":
        laps = sorted(
            (row for row in rows if any(row.get(name) is not None for name in KNOWN_LAP)),
            key=lambda row: int(str(row["positionOrder"])),
        )
        names = [name for name in names if name not in FASTEST_LAP]
        if laps:
            columns = columns_of("fastest_laps", False)
            of_laps = [[row.get(name) for name in columns] for row in laps]
            parts = [Part(season, round, "fastest_laps", columns, of_laps)]
    found = [[row.get(name) for name in names] for row in rows]
    return [Part(season, round, kind, tuple(names), found), *parts]


class Tables:
    """The tables of a source, with its ids: a Stage, or the file of a database."""

    def __init__(self, db: sqlite3.Connection, schema: str) -> None:
        self.db, self.schema = db, schema
        self.references: dict[str, dict[Value, Value]] = {
            id: dict(db.execute(f"SELECT {id}, {name} FROM {schema}.{LIST_OF[id]}").fetchall())
            for id, name in REFERENCE.items()
        }
        self.rounds: dict[int, tuple[int, int]] = {
            race: (year, round)
            for race, year, round in db.execute(f"SELECT raceId, year, round FROM {schema}.races")
        }

    def rows(self, table: str, names: Sequence[str], rest: str = "") -> Iterator[tuple[Value, ...]]:
        """The rows of a table, of any version, with NULL for columns that it lacks."""
        stored = column_names(self.db, table, self.schema)
        if not stored:
            return iter(())
        # In a database, `record` has the order of the ids of rows.
        id = TABLE_BY_NAME[table].id if table in TABLE_BY_NAME else ""
        shown = [
            name
            if name in stored
            else "record"
            if name == id and "record" in stored
            else f"NULL AS {name}"
            for name in names
        ]
        return iter(self.db.execute(f"SELECT {', '.join(shown)} FROM {self.schema}.{table} {rest}"))

    def named(self, row: Row) -> Row:
        """A row with references instead of ids. `status` is a text already."""
        named: Row = {}
        for name, value in row.items():
            if name == "status":
                named["statusId"] = value
            else:
                named[name] = self.references[name].get(value) if name in REFERENCE else value
        return named

    def list_rows(self, name: str) -> list[Row]:
        """The rows of a list, or of `seasons`, with their ids."""
        names = TABLE_BY_NAME[name].names
        return [dict(zip(names, row)) for row in self.rows(name, names, f"ORDER BY {names[0]}")]

    def calendars(self, source: int, years: Collection[int] | None) -> Iterator[Calendar]:
        """The calendars of the seasons to which a source, by its id, gave something."""
        of_source = self.db.execute(
            f"SELECT raceId, kind FROM {self.schema}.origins WHERE sourceId = ?", (source,)
        ).fetchall()
        own = {self.rounds[race][0] for race, kind in of_source if kind == "races"}
        used = {self.rounds[race][0] for race, _ in of_source}
        # Sessions are from the source of their race, unless another one is noted.
        givers: dict[int, int] = dict(
            self.db.execute(
                f"""SELECT raceId, sourceId FROM {self.schema}.origins
                    WHERE kind IN ('races', 'sessions') ORDER BY kind"""
            ).fetchall()
        )
        for season, races in self.seasons().items():
            if season in used and (years is None or season in years):
                with_sessions = [
                    race if givers.get(race["raceId"]) == source else {**race, "sessions": []}
                    for race in races
                ]
                yield Calendar(season, with_sessions, season in own)

    def seasons(self) -> dict[int, list[dict[str, Any]]]:
        """The races of each season, with their sessions."""
        sessions: dict[Value, list[Row]] = {}
        for race, *values in self.rows("sessions", ("raceId", "session", "date", "time")):
            sessions.setdefault(race, []).append(dict(zip(("session", "date", "time"), values)))
        names, circuits = TABLE_BY_NAME["races"].names, self.references["circuitId"]
        seasons: dict[int, list[dict[str, Any]]] = {}
        for row in self.rows("races", names, "ORDER BY year, round"):
            facts: dict[str, Any] = dict(zip(names, row))
            facts["circuitId"] = circuits.get(facts["circuitId"])
            facts["sessions"] = sessions.get(facts["raceId"], [])
            seasons.setdefault(facts["year"], []).append(facts)
        return seasons

    def parts(
        self, source: int, years: Collection[int] | None, has_ids: bool
    ) -> Iterator[tuple[Part, str | None]]:
        """The parts that a source gave, by its id, and when a refresh fetched each."""
        for kind in PARTS:
            # entries go with the results
            fetched = self.races_of(source, "results" if kind == "entries" else kind)
            for race, part in self.parts_of_kind(kind, has_ids):
                if race in fetched and (years is None or part.season in years):
                    yield part, fetched[race]

    def races_of(self, source: int, kind: str) -> dict[Value, str | None]:
        """The races of which a source gave a kind, and when a refresh fetched the kind."""
        origins = self.db.execute(
            f"SELECT raceId, fetchedAt FROM {self.schema}.origins WHERE sourceId = ? AND kind = ?",
            (source, kind),
        )
        return dict(origins.fetchall())

    def parts_of_kind(self, kind: str, has_ids: bool) -> Iterator[tuple[Value, Part]]:
        """All parts of a kind, with their raceId."""
        columns = columns_of(kind, has_ids)
        table, where, order = TABLE_OF[kind], sql_of_kind(kind), "raceId"
        if kind == "fastest_laps":
            order = "raceId, positionOrder"
        elif kind == "entries":  # a database has those with a result too
            where = f"""(raceId, driverId, constructorId) NOT IN (
                SELECT raceId, driverId, constructorId FROM {self.schema}.results)"""
        elif table.id:
            has_id = table.id in column_names(self.db, kind, self.schema)
            order = f"raceId, {table.id if has_id else 'record'}"
        rows = self.rows(table.name, ("raceId", *columns), f"WHERE {where} ORDER BY {order}")
        references = [
            (at, self.references[name]) for at, name in enumerate(columns, 1) if name in REFERENCE
        ]
        key = itemgetter(*(columns.index(name) for name in table.key[1:]))
        for race, found in groupby(rows, itemgetter(0)):
            values: list[Sequence[Value]] = list(zip(*found))  # column by column: much faster
            for at, texts in references:
                values[at] = [*map(texts.get, values[at])]
            named = [*zip(*values[1:])]
            if not table.id:  # the ids of drivers may differ by release
                named.sort(key=key)
            year, round = self.rounds[int(str(race))]
            yield race, Part(year, round, kind, columns, named)

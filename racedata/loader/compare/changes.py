"""What a build changes: the database that it replaces, compared with the new one, value by value.

Numbers of rows and `final`, which follow from the rest, are not compared. A change has three forms:

- here, a `Change`, which names things by reference: ids may differ in the two files;
- in the store, a row with the same facts, which `Change.row` makes;
- in the database, a row of `changes`, with ids, whose key begins with the race, as in corrections.
  FILL makes such rows from the rows of the store, and TAKE does the reverse.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from racedata.formats import public_name
from racedata.loader.compare.sides import Key
from racedata.loader.correction_lines import (
    ROW,
    Facts,
    correctable_columns,
    key_columns,
    known_facts,
    sql_of_text,
)
from racedata.loader.lists import Fact
from racedata.loader.matching import match_with_earlier
from racedata.loader.parts import LIST_OF, REFERENCE
from racedata.loader.same_bytes import build_time
from racedata.loader.sql import calendar, column_names, insertion
from racedata.loader.stage import of_kind
from racedata.loader.store import Store
from racedata.model import FASTEST_LAP, KINDS, TABLE_OF, TABLES
from racedata.values import Value

# The words for a change of all records of a kind in a race, and for a sum of changes.
ALL_RECORDS, VALUES = "records", "values"
# A build that alters more values has other sources: the record is of decisions about races.
MANY = 5_000
OUTSIDE_RACES = ("seasons", "drivers", "constructors", "circuits")
CALENDAR = ("races", "sessions")
SCHEMAS = ("main", "old")  # the new database, and the one that it replaces
# What a part of a key names: the field of About, by column.
FIELDS = {
    "year": "season",
    "driverId": "driver",
    "driverRef": "driver",
    "constructorId": "constructor",
    "constructorRef": "constructor",
    "circuitRef": "circuit",
}
# A row of a list that has the id of another row in the other file.
OTHER_ROW = """
    SELECT 1 FROM main.{table} AS new JOIN old.{table} AS old USING ({id})
    WHERE new.{name} <> old.{name}"""

# The newest build and race first.
FILL = """
    INSERT INTO changes (revision, changedAt, kind, key, columnName, oldValue, value, oldSource,
        source, reason, year, round, raceName, raceId, driverId, constructorId, circuitId)
    SELECT revision, changedAt, kind,
        CASE WHEN season IS NULL OR kind = 'seasons' THEN key ELSE season
            || ifnull('/' || stored.round, '') || iif(key = '', '', '/' || key) END,
        columnName, oldValue, value, oldSource, source, reason, season, stored.round, race,
        raceId, driverId, constructorId, circuits.circuitId
    FROM stored LEFT JOIN races ON races.year = season AND races.round = stored.round
        LEFT JOIN drivers ON driverRef = driver
        LEFT JOIN constructors ON constructorRef = constructor
        LEFT JOIN circuits ON circuitRef = circuit
    ORDER BY revision DESC, season DESC, stored.round DESC, stored.number"""

TAKE = """
    SELECT revision, changedAt, kind, year AS season, round, raceName AS race,
        driverRef AS driver, constructorRef AS constructor, circuitRef AS circuit,
        iif(year IS NULL OR kind = 'seasons', key,
            ltrim(substr(key, 1 + length(year || ifnull('/' || round, ''))), '/')) AS key,
        columnName, oldValue, value, oldSource, source, reason
    FROM changes LEFT JOIN drivers USING (driverId) LEFT JOIN constructors USING (constructorId)
        LEFT JOIN circuits USING (circuitId)
    ORDER BY revision, year, round, record"""

# A driver may have two rows in a race: by the number of the car.
RowsByKey = dict[Key, dict[Value, Facts]]


class About(NamedTuple):
    """What a change is about, by reference: columns of the store, by their names."""

    season: int | None = None
    round: int | None = None  # None if the calendar now lacks the race, or if there is none
    race: str | None = None  # its name
    driver: str | None = None
    constructor: str | None = None
    circuit: str | None = None


class Change(NamedTuple):
    """A value that a build altered."""

    kind: str  # as in `origins`, or a list: `drivers`
    about: About
    key: str  # as in corrections, but without the race: `gasly`, `gasly/12`
    # as in corrections; ROW, with the facts of a row; ALL_RECORDS or VALUES, with their number
    column: str
    old: Value  # None if it was unknown, or was not there
    new: Value
    old_source: str | None = None
    source: str | None = None
    reason: str = ""

    @property
    def row(self) -> dict[str, Value]:
        """The columns of the store that have it."""
        return {
            "kind": self.kind,
            **self.about._asdict(),
            "key": self.key,
            "columnName": self.column,
            "oldValue": None if self.old is None else str(self.old),
            "value": None if self.new is None else str(self.new),
            "oldSource": self.old_source,
            "source": self.source,
            "reason": self.reason,
        }


class MatchedRace(NamedTuple):
    """A race that both files have, or only one of them."""

    new: int | None  # its ids
    old: int | None
    old_round: int | None
    about: About


SourceOfFact = Callable[[str, str, Fact | None], str | None]  # Lists.source_of_fact


def put_found_changes(store: Store, finder: "ChangeFinder", state: tuple[str, int]) -> None:
    """Adds to the store what the finder finds.

    `state` is the old database's. If a program was killed, the store has later changes, which
    nobody has seen. They are found again.
    """
    id, revision = state
    if id == store.state[0]:
        store.drop_changes(after=revision)
    for season, rounds in finder.moved_rounds().items():
        store.renumber_changes(season, rounds)
    changes = list(finder.changes())
    if len(changes) > MANY:
        changes = summed(changes)
    # If there are too many, the changes of the oldest races go.
    changes.sort(key=lambda change: (change.about.season or 0, change.about.round or 0))
    now, revision = build_time(), store.state[1]
    store.put_changes({"revision": revision, "changedAt": now, **each.row} for each in changes)


def summed(changes: Sequence[Change]) -> list[Change]:
    """The number of values that changed in each list, and in each kind of each race, for one
    reason: so that other sources do not push out what was decided about races.
    """
    counts = Counter(
        change._replace(
            about=About()
            if change.kind in OUTSIDE_RACES
            else change.about._replace(driver=None, constructor=None),
            key="",
            column=VALUES,
            old=None,
            new=None,
        )
        for change in changes
    )
    return [change._replace(new=count) for change, count in counts.items()]


def fill_changes(store: Store, db: sqlite3.Connection) -> None:
    """Copies the changes of the store into the database, with ids instead of references."""
    names = tuple(column_names(store.db, "changes"))
    db.execute(f"CREATE TEMP TABLE stored ({', '.join(names)})")
    db.executemany(insertion("stored", names), store.changes())
    db.execute(FILL)
    db.execute("DROP TABLE stored")


def take_changes(db: sqlite3.Connection, store: Store) -> None:
    """Replaces the changes of the store with a database's."""
    store.drop_changes()
    found = db.execute(TAKE)
    names = [name for name, *_ in found.description]
    store.put_changes(dict(zip(names, row)) for row in found)


class ChangeFinder:
    """Compares the new database with `old`, which is attached to its connection."""

    def __init__(self, db: sqlite3.Connection, source_of_fact: SourceOfFact) -> None:
        self.db, self.source_of_fact = db, source_of_fact
        self.races = list(self.matched_races())
        self.new_sources, self.old_sources = map(self.sources_in, SCHEMAS)
        self.new_corrections, self.old_corrections = map(self.corrections_in, SCHEMAS)
        self.has_same_ids = self.are_ids_the_same()
        # The columns that both files have: the old one may be of an earlier version.
        self.columns = {
            table.name: [
                name
                for name in column_names(db, table.name)
                if name in column_names(db, table.name, "old")
            ]
            for table in TABLES
        }

        # The drivers whose results have another constructor, each with the new id of the race.
        # Other records of their cars follow. These come later: results are the first of KINDS.
        self.moved: set[tuple[int | None, str | None]] = set()

    def changes(self) -> Iterator[Change]:
        """All changes, with their sources and their reasons: first of lists, then of
        calendars, then of records, kind by kind.
        """
        for name in OUTSIDE_RACES:
            new, old = (self.rows(name, schema) for schema in SCHEMAS)
            yield from self.changes_of_rows(name, MatchedRace(None, None, None, About()), new, old)
        for name in CALENDAR:
            for race in self.races_that_differ(name):
                # A race that is new, or gone, is one change, with its sessions.
                if name == "races" or (race.new and race.old):
                    yield from self.changes_of_rows(name, race, *self.rows_of_race(name, race))
        for kind in KINDS:
            for race in self.races_that_differ(kind):
                new, old = self.rows_of_race(kind, race)
                if new and old:
                    yield from self.changes_of_rows(kind, race, new, old)
                elif new or old:
                    counts = len(old) or None, len(new) or None
                    change = Change(kind, race.about, "", ALL_RECORDS, *counts)
                    yield self.explained(race, change)

    # What is compared with what.

    def moved_rounds(self) -> dict[int, dict[int, int | None]]:
        """The new rounds of races that have moved within their season, or are gone (None)."""
        moved: dict[int, dict[int, int | None]] = {}
        for race in self.races:
            season, round = race.about.season, race.about.round
            if season and race.old_round and race.old_round != round:
                moved.setdefault(season, {})[race.old_round] = round
        return moved

    def matched_races(self) -> Iterator[MatchedRace]:
        years = self.db.execute("SELECT year FROM main.races UNION SELECT year FROM old.races")
        new_rounds, old_rounds = (
            dict(self.db.execute(f"SELECT raceId, round FROM {schema}.races").fetchall())
            for schema in SCHEMAS
        )
        for (year,) in years.fetchall():
            new, old = (calendar(self.db, schema, year) for schema in SCHEMAS)
            matched = match_with_earlier(new, old)
            for race in new:
                id = matched.get(race.id)
                about = About(year, new_rounds[race.id], race.name, circuit=race.circuit)
                yield MatchedRace(race.id, id, old_rounds.get(id), about)
            for race in old:
                if race.id not in matched.values():
                    about = About(year, None, race.name, circuit=race.circuit)
                    yield MatchedRace(None, race.id, old_rounds[race.id], about)

    def are_ids_the_same(self) -> bool:
        """Whether an id means the same in both files: then so do equal rows."""
        others = (
            self.db.execute(OTHER_ROW.format(table=LIST_OF[id], id=id, name=name)).fetchone()
            for id, name in REFERENCE.items()
        )
        new = {race.new for race in self.races}
        return not any(others) and not any(
            race.old in new for race in self.races if race.old and race.old != race.new
        )

    def races_that_differ(self, kind: str) -> list[MatchedRace]:
        """The races whose rows may not say the same in both files."""
        table = TABLE_OF[kind]
        if not self.columns[table.name]:
            return []
        if not self.has_same_ids:
            return self.races
        ignored = ("record", "final", table.id)
        names = [name for name in self.columns[table.name] if name not in ignored]
        new, old = (f"SELECT {', '.join(names)} FROM {schema}.{table.name}" for schema in SCHEMAS)
        sql = f"""SELECT raceId FROM ({new} EXCEPT {old})
                  UNION SELECT raceId FROM ({old} EXCEPT {new})"""
        found = {id for (id,) in self.db.execute(sql)}
        return [race for race in self.races if race.new in found or race.old in found]

    def sources_in(self, schema: str) -> dict[tuple[int | None, str], str]:
        """The source of each kind of each race."""
        origins = self.db.execute(
            f"""SELECT raceId, kind, name
                FROM {schema}.origins JOIN {schema}.sources USING (sourceId) ORDER BY kind"""
        )
        sources = {(race, kind): name for race, kind, name in origins}
        # those that came with their race
        return {
            (race, "sessions"): name for (race, kind), name in sources.items() if kind == "races"
        } | sources

    def corrections_in(self, schema: str) -> dict[tuple[str, str, str], tuple[Value, str]]:
        """The value and the witnesses of each correction, by what it corrects."""
        found = self.db.execute(
            f"SELECT tableName, key, columnName, value, witnesses FROM {schema}.corrections"
        )
        return {(*what,): (value, witnesses) for *what, value, witnesses in found}

    # Rows.

    def rows_of_race(self, kind: str, race: MatchedRace) -> tuple[RowsByKey, RowsByKey]:
        """The rows of a kind in the new file and in the old one."""
        new = self.rows(kind, "main", race.new) if race.new else {}
        return new, self.rows(kind, "old", race.old) if race.old else {}

    def rows(self, kind: str, schema: str, race: int | None = None) -> RowsByKey:
        table = TABLE_OF[kind]
        names = key_columns(table)
        columns = facts_of(kind, self.columns[table.name], schema)
        # the number of the car, where several rows may have a key
        car = "number" if table.unique != table.key else "NULL"
        keys = [sql_of_text(name, schema) if name in REFERENCE else name for name in names]
        sql = f"""SELECT {", ".join((car, *keys, *columns.values()))}
            FROM (SELECT * FROM {of_kind(kind, schema)}) AS corrected
            {"" if race is None else "WHERE raceId = ?"}"""
        found = self.db.execute(sql, () if race is None else (race,))
        rows: RowsByKey = {}
        for number, *values in found:
            key = tuple(values[: len(keys)])
            rows.setdefault(key, {})[number] = dict(zip(columns, values[len(keys) :]))
        return rows

    def changes_of_rows(
        self, kind: str, race: MatchedRace, new: RowsByKey, old: RowsByKey
    ) -> Iterator[Change]:
        for key in {**old, **new}:
            for name, was, now in pairs(key, old.get(key, {}), new.get(key, {})):
                about = about_row(kind, race, key)
                for column, before, after in altered_facts(was, now):
                    yield self.explained(race, Change(kind, about, name, column, before, after))

    # Why.

    def explained(self, race: MatchedRace, change: Change) -> Change:
        """A change with its sources and its reason."""
        kind = change.kind
        source = self.new_sources.get((race.new, kind))
        old_source = self.old_sources.get((race.old, kind))
        if kind in OUTSIDE_RACES and change.new is not None:
            fact = None if change.column == ROW else (change.column, change.new)
            source = self.source_of_fact(kind, change.key, fact)
        if (kind, change.column) == ("results", "constructor"):
            self.moved.add((race.new, change.about.driver))
        return change._replace(
            old_source=old_source and public_name(old_source),
            source=source and public_name(source),
            reason=self.correction(race, change) or self.reason(race, change, source, old_source),
        )

    def correction(self, race: MatchedRace, change: Change) -> str:
        """The correction that was added or taken back, in words; empty if there is none."""
        keys = [
            "/".join(map(str, filter(None, (race.about.season, round, change.key))))
            for round in (race.about.round, race.old_round)
        ]
        table = TABLE_OF[change.kind].name
        new, old = (
            found.get((table, key, change.column))
            for found, key in zip((self.new_corrections, self.old_corrections), keys)
        )
        if new == old:
            return ""
        return f"corrected: {new[1]}" if new else "a correction was taken back"

    def reason(
        self, race: MatchedRace, change: Change, source: str | None, old_source: str | None
    ) -> str:
        """Why the new value is right, if it was not corrected."""
        kind = change.kind
        follows = change.column == "constructor" and (race.new, change.about.driver) in self.moved
        if change.column == "constructors" or (follows and kind != "results"):
            return "follows from the results"
        if source and not old_source:
            return f"{public_name(source)} has it now"
        if not source:
            is_of_list = kind in OUTSIDE_RACES and change.new is not None
            return "a source has changed it" if is_of_list else "no source has it any more"
        return f"{public_name(source)} {'has changed it' if source == old_source else 'counts now'}"


def facts_of(kind: str, stored: Collection[str], schema: str) -> dict[str, str]:
    """The SQL of the facts about a row `corrected` of a kind, by name, if these columns are
    stored: what can be corrected, and what follows from that or comes with a calendar.
    """
    table = TABLE_OF[kind]
    facts = {
        name: column.shown
        for name, column in correctable_columns(table.name, schema).items()
        if column.name in stored and (name not in table.key or (kind, name) == ("races", "round"))
    }
    if kind in ("results", "fastest_laps"):
        is_lap = kind == "fastest_laps"
        facts = {name: sql for name, sql in facts.items() if (name in FASTEST_LAP) == is_lap}
    if kind == "races":
        facts["circuit"] = sql_of_text("circuitId", schema)
    if kind == "driver_standings":
        facts["constructors"] = f"""(
            SELECT group_concat(constructorRef, ' ') FROM (
                SELECT constructorRef
                FROM json_each('[' || replace(corrected.constructors, ' ', ',') || ']') AS each
                    JOIN {schema}.constructors ON constructorId = each.value
                ORDER BY each.key))"""
    return facts


def pairs(
    key: Key, old: Mapping[Value, Facts], new: Mapping[Value, Facts]
) -> Iterator[tuple[str, Facts | None, Facts | None]]:
    """The rows with a key, before and now, each pair with its key as in corrections.

    If a driver has two rows, the number of the car is a part of the key.
    """
    name = "/".join(map(str, key))
    if len(old) <= 1 and len(new) <= 1:
        yield name, next(iter(old.values()), None), next(iter(new.values()), None)
    else:
        for number in {**old, **new}:
            yield f"{name}/{number}", old.get(number), new.get(number)


def altered_facts(old: Facts | None, new: Facts | None) -> Iterator[tuple[str, Value, Value]]:
    """The facts that differ: name, old value, new value. One ROW if a row is new, or gone."""
    if old is None or new is None:
        yield (
            ROW,
            None if old is None else known_facts(old),
            None if new is None else known_facts(new),
        )
    else:
        yield from ((name, old[name], new[name]) for name in new if old[name] != new[name])


def about_row(kind: str, race: MatchedRace, key: Key) -> About:
    """What a row is about: its race, and what the key names."""
    named = {
        FIELDS[name]: value
        for name, value in zip(key_columns(TABLE_OF[kind]), key)
        if name in FIELDS
    }
    return race.about._replace(**named)  # type: ignore[arg-type]

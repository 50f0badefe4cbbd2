"""What a build changes: the database that it replaces, compared with the new one, value by value.

Numbers of rows and `final`, which follow from the rest, are not compared. Here and in the store, a
change names things by reference, because ids may differ in the two files. In the database, it has
ids, and its key begins with the race, as in corrections: FILL makes such rows from the rows of the
store, and TAKE does the reverse.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
from racedata.loader.sql import calendar, column_names, insertion, unless_in
from racedata.loader.stage import of_kind
from racedata.loader.store import Store
from racedata.model import FASTEST_LAP, KINDS, TABLE_OF
from racedata.values import Value

# The words for a change of all records of a kind in a race, and for a sum of changes.
ALL_RECORDS, VALUES = "records", "values"
# A build that alters more values has other sources: the record is of decisions about races.
MANY = 5_000
OUTSIDE_RACES = ("seasons", "drivers", "constructors", "circuits")
CALENDAR = ("races", "sessions")
SCHEMAS = ("main", "old")  # the new database, and the one that it replaces
# What a part of a key names: the column of the store, by the column of the key.
NAMED = {
    "year": "season",
    "driverId": "driver",
    "driverRef": "driver",
    "constructorId": "constructor",
    "constructorRef": "constructor",
    "circuitRef": "circuit",
}

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


class Change(NamedTuple):
    """A value that a build altered, with the names of the columns in the store."""

    kind: str  # as in `origins`, or a list: `drivers`
    key: str  # as in corrections, but without the race: `gasly`, `gasly/12`
    # as in corrections; ROW, with the facts of a row; ALL_RECORDS or VALUES, with their number
    columnName: str
    oldValue: Value  # None if it was unknown, or was not there
    value: Value
    # What it is about, by reference.
    season: int | None = None
    round: int | None = None  # None if the calendar now lacks the race, or if there is none
    race: str | None = None  # its name
    circuit: str | None = None
    driver: str | None = None
    constructor: str | None = None
    # Why it changed.
    oldSource: str | None = None
    source: str | None = None
    reason: str = ""


class MatchedRace(NamedTuple):
    """A race that both files have, or only one of them."""

    new: int | None = None  # its ids
    old: int | None = None
    old_round: int | None = None
    season: int | None = None
    round: int | None = None
    name: str | None = None
    circuit: str | None = None


NO_RACE = MatchedRace()  # of lists
SourceOfFact = Callable[[str, str, Fact | None], str | None]  # Lists.source_of_fact


def put_found_changes(store: Store, finder: "ChangeFinder", state: tuple[str, int]) -> None:
    """Adds to the store what the finder finds.

    `state` is the old database's. If a program was killed, the store has later changes, which
    nobody has seen. They are found again.
    """
    id, revision = state
    if id == store.state[0]:
        store.drop_changes(after=revision)
    store.renumber_changes(
        {
            (race.season, race.old_round): race.round
            for race in finder.races
            if race.old_round not in (None, race.round)
        }
    )
    changes = list(finder.changes())
    if len(changes) > MANY:
        changes = summed(changes)
    # If there are too many, the changes of the oldest races go.
    changes.sort(key=lambda change: (change.season or 0, change.round or 0))
    now, revision = build_time(), store.state[1]
    store.put_changes(
        {"revision": revision, "changedAt": now, **each._asdict()} for each in changes
    )


def summed(changes: Sequence[Change]) -> list[Change]:
    """The number of values that changed in each list, and in each kind of each race, for one
    reason: so that other sources do not push out what was decided about races.
    """
    counts = Counter[Change]()
    for change in changes:
        if change.kind in OUTSIDE_RACES:
            change = change._replace(season=None, circuit=None)
        counts[
            change._replace(
                key="", columnName=VALUES, oldValue=None, value=None, driver=None, constructor=None
            )
        ] += 1
    return [change._replace(value=count) for change, count in counts.items()]


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
        # the places of the races in `races`, by their ids in both files
        db.execute(
            """CREATE TEMP TABLE matched (
                place INTEGER PRIMARY KEY, main INTEGER UNIQUE, old INTEGER UNIQUE)"""
        )
        ids = [(place, race.new, race.old) for place, race in enumerate(self.races)]
        db.executemany("INSERT INTO matched VALUES (?, ?, ?)", ids)
        others = ["SELECT 1 FROM matched WHERE main <> old"] + [
            f"""SELECT 1 FROM main.{LIST_OF[id]} AS new JOIN old.{LIST_OF[id]} AS old USING ({id})
                WHERE new.{name} <> old.{name}"""
            for id, name in REFERENCE.items()
        ]
        self.has_same_ids = not any(db.execute(sql).fetchone() for sql in others)
        # The drivers whose results have another constructor, each with the new id of the race.
        # Other records of their cars follow. These come later: results are the first of KINDS.
        self.moved: set[tuple[int | None, str | None]] = set()

    def changes(self) -> Iterator[Change]:
        """All changes, with their sources and their reasons: first of lists, then of
        calendars, then of records, kind by kind.
        """
        for kind in (*OUTSIDE_RACES, *CALENDAR, *KINDS):
            if not column_names(self.db, TABLE_OF[kind].name, "old"):
                continue  # an older version of racedata lacked the table
            for race in self.races_that_differ(kind):
                new, old = (self.rows(kind, schema, race) for schema in SCHEMAS)
                if kind in KINDS and not (new and old):
                    counts = len(old) or None, len(new) or None
                    yield self.explained(race, Change(kind, "", ALL_RECORDS, *counts))
                # A race that is new, or gone, is one change, with its sessions.
                elif kind != "sessions" or (race.new and race.old):
                    yield from self.changes_of_rows(kind, race, new, old)

    # What is compared with what.

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
                at = id, old_rounds.get(id), year, new_rounds[race.id]
                yield MatchedRace(race.id, *at, race.name, race.circuit)
            for race in old:
                if race.id not in matched.values():
                    at = race.id, old_rounds[race.id], year, None
                    yield MatchedRace(None, *at, race.name, race.circuit)

    def races_that_differ(self, kind: str) -> list[MatchedRace]:
        """The races whose rows do not say the same in both files."""
        if kind in OUTSIDE_RACES:
            return [NO_RACE]
        wheres = ["", ""]
        if self.has_same_ids:  # what both have says the same; to look that up takes twice as long
            table = TABLE_OF[kind].name
            wheres = [f"AND {unless_in(self.db, other, table)}" for other in reversed(SCHEMAS)]
        new, old = (self.sql_of_rows(kind, *each) for each in zip(SCHEMAS, wheres))
        found = self.db.execute(
            f"""SELECT place FROM ({new} EXCEPT {old})
                UNION SELECT place FROM ({old} EXCEPT {new}) ORDER BY place"""
        )
        return [self.races[place] for (place,) in found]

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

    def facts_of(self, kind: str, schema: str) -> dict[str, str]:
        """The SQL of the facts about a row. An older version of racedata may lack some."""
        return facts_of(kind, column_names(self.db, TABLE_OF[kind].name, "old"), schema)

    def sql_of_rows(self, kind: str, schema: str, where: str = "") -> str:
        """The rows of a kind: the place of the race, the number of the car where several rows may
        have a key, the key, and the facts.
        """
        table = TABLE_OF[kind]
        has_race = kind not in OUTSIDE_RACES
        place = f"(SELECT place FROM matched WHERE {schema} = raceId)" if has_race else "NULL"
        car = "number" if table.unique != table.key else "NULL"
        names = [
            sql_of_text(name, schema) if name in REFERENCE else name for name in key_columns(table)
        ]
        facts = self.facts_of(kind, schema).values()
        return f"""SELECT {place} AS place, {", ".join((car, *names, *facts))}
            FROM (SELECT * FROM {of_kind(kind, schema)} {where}) AS corrected"""

    def rows(self, kind: str, schema: str, race: MatchedRace = NO_RACE) -> RowsByKey:
        """The rows of a kind, or of a list, in one of the files."""
        id = race.new if schema == "main" else race.old
        where, bound = ("", ()) if kind in OUTSIDE_RACES else ("AND raceId = ?", (id,))
        facts, keys = list(self.facts_of(kind, schema)), len(key_columns(TABLE_OF[kind]))
        rows: RowsByKey = {}
        found = self.db.execute(self.sql_of_rows(kind, schema, where), bound)
        for _, number, *values in found:
            row = dict(zip(facts, values[keys:]))
            rows.setdefault(tuple(values[:keys]), {})[number] = row
        return rows

    def changes_of_rows(
        self, kind: str, race: MatchedRace, new: RowsByKey, old: RowsByKey
    ) -> Iterator[Change]:
        for key in {**old, **new}:
            for name, was, now in pairs(key, old.get(key, {}), new.get(key, {})):
                for fact in altered_facts(was, now):
                    change = Change(kind, name, *fact)._replace(**named(kind, key))
                    yield self.explained(race, change)

    # Why.

    def explained(self, race: MatchedRace, change: Change) -> Change:
        """A change with its race, its sources and its reason."""
        kind = change.kind
        source = self.new_sources.get((race.new, kind))
        old_source = self.old_sources.get((race.old, kind))
        if kind in OUTSIDE_RACES and change.value is not None:
            fact = None if change.columnName == ROW else (change.columnName, change.value)
            source = self.source_of_fact(kind, change.key, fact)
        if (kind, change.columnName) == ("results", "constructor"):
            self.moved.add((race.new, change.driver))
        return change._replace(
            season=change.season or race.season,
            round=race.round,
            race=race.name,
            circuit=change.circuit or race.circuit,
            oldSource=old_source and public_name(old_source),
            source=source and public_name(source),
            reason=self.correction(race, change) or self.reason(race, change, source, old_source),
        )

    def correction(self, race: MatchedRace, change: Change) -> str:
        """The correction that was added or taken back, in words; empty if there is none."""
        keys = [
            "/".join(map(str, filter(None, (race.season, round, change.key))))
            for round in (race.round, race.old_round)
        ]
        table = TABLE_OF[change.kind].name
        new, old = (
            found.get((table, key, change.columnName))
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
        follows = change.columnName == "constructor" and (race.new, change.driver) in self.moved
        if change.columnName == "constructors" or (follows and kind != "results"):
            return "follows from the results"
        if source and not old_source:
            return f"{public_name(source)} has it now"
        if not source:
            is_of_list = kind in OUTSIDE_RACES and change.value is not None
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


def named(kind: str, key: Key) -> dict[str, Any]:
    """What a key names, by the column of the store."""
    names = key_columns(TABLE_OF[kind])
    return {NAMED[name]: part for name, part in zip(names, key) if name in NAMED}

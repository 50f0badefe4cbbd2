"""What the sources of the list say, side by side: about each race and kind, and in each list.

It is what they say before corrections. discrepancies.py compares it. Whatever a source calls our
drivers, constructors and circuits, the rows have our references; or its own, of what we lack.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from racedata.loader.choose import ChosenRace
from racedata.loader.correction_lines import correctable_columns, key_columns
from racedata.loader.lists import Lists
from racedata.loader.parts import LIST_OF, REFERENCE, Row
from racedata.loader.store import Store, StoredPart, unpacked
from racedata.model import KINDS, STANDINGS, TABLE_OF, Table
from racedata.values import Value

# The lists whose rows the sources may call by other references and ids.
IDENTIFIED = ("drivers", "constructors", "circuits")
Key = tuple[Value, ...]  # what names a row within its race, as in corrections


class SourceRows:
    """The rows of a source about a race in one kind of records, or in a list, by column."""

    def __init__(self, columns: Mapping[str, Sequence[Value]], key_columns: Sequence[str]) -> None:
        self.columns = columns
        of_keys = [columns[name] for name in key_columns]
        self.keys: list[Key] = list(zip(*of_keys)) if of_keys else [()]
        self.at = {key: at for at, key in enumerate(self.keys)}
        # the columns that have values
        rows = len(self.keys)
        self.known = {name for name, values in columns.items() if values.count(None) < rows}
        self.several: set[Key] = set()  # the keys that more than one row has
        if len(self.at) < len(self.keys):
            self.several = {key for key, rows in Counter(self.keys).items() if rows > 1}

    def row(self, at: int, compared: Sequence[str]) -> Row:
        """A row, with NULL for compared columns that the source lacks."""
        row: Row = dict.fromkeys(compared)
        return row | {name: values[at] for name, values in self.columns.items()}

    def values(self, names: Sequence[str]) -> dict[Key, Key]:
        """The values in some columns, by key."""
        unknown = (None,) * len(self.keys)
        return dict(zip(self.keys, zip(*(self.columns.get(name, unknown) for name in names))))

    def column(self, name: str) -> dict[Key, Value]:
        """The values in a column, by key."""
        return {key: value for key, (value,) in self.values([name]).items()}


class Sides(NamedTuple):
    """What sources say about a kind of records of a race, or in a list. The source whose records
    count comes first.
    """

    kind: str
    rows: Mapping[str, SourceRows]  # by the name of the source
    race: ChosenRace | None = None
    race_id: int | None = None

    @property
    def first(self) -> str:
        return next(iter(self.rows))

    @property
    def table(self) -> Table:
        return TABLE_OF[self.kind]

    @property
    def key_columns(self) -> list[str]:
        """The columns whose values are the Key of a row."""
        return key_columns(self.table)

    @property
    def compared(self) -> tuple[str, ...]:
        return compared_columns(self.kind)

    @property
    def lacks_count(self) -> bool:
        """Whether a missing value counts: standings lack some by convention."""
        return self.kind not in (*IDENTIFIED, "races", *STANDINGS)


def compared_columns(kind: str) -> tuple[str, ...]:
    return (KINDS.get(kind) or TABLE_OF[kind]).compared


def rows_in(kind: str, rows: Sequence[Mapping[str, Value]]) -> SourceRows:
    """The keys and the compared values of some rows."""
    keys = key_columns(TABLE_OF[kind])
    names = (*keys, *compared_columns(kind))
    return SourceRows({name: [row.get(name) for row in rows] for name in names}, keys)


class Said:
    """What all sources of the list say, and what the new database has of it.

    `sides` goes through all races. What others look up about a race is kept until the next one.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        store: Store,
        race_ids: Mapping[ChosenRace, int],
        lists: Lists,
    ) -> None:
        """`db` is the new database, which has these lists."""
        self.db, self.store, self.race_ids, self.lists = db, store, race_ids, lists
        self.sources = store.sources()
        self.calendars = {(each.source, each.season): each for each in store.calendars()}
        # What was looked up: by kind and season, the columns that have values.
        self.columns_known: dict[tuple[str, int], set[str]] = {}
        # Of the race that `sides` has come to: what its parts say.
        self.parts: dict[StoredPart, SourceRows] = {}

    def ours(self, source: str, name: str, reference: Value) -> Value:
        """Our reference for what a source calls something in a list; None if we lack it."""
        id = self.lists.ids[source, name].of(reference)
        merged = self.lists.merged[name]
        return None if id is None else merged.rows[id][merged.reference]

    def id_of(self, column: str, reference: Value) -> int | None:
        """The id in the new database for one of our references, in a column such as driverId."""
        return self.lists.merged[LIST_OF[column]].ids.get(str(reference).lower())

    def sides(self) -> Iterator[Sides]:
        """All that may differ: the lists, then race by race."""
        for name in IDENTIFIED:
            yield Sides(name, self.rows_of_list(name))
        for race, id in self.race_ids.items():
            self.parts.clear()
            yield from self.calendars_of(race, id)
            for kind in race.parts:
                parts = race.ranked_parts(kind)
                # Some sources have drivers among the results that others have among the entries.
                if kind != "entries" and len({self.store.content(part) for part in parts}) > 1:
                    yield Sides(kind, self.rows_by_source(race, kind), race, id)

    def rows_of_list(self, name: str) -> Mapping[str, SourceRows]:
        """A list of all sources: the rows that the database has."""
        reference, sides = self.lists.merged[name].reference, {}
        for source in self.sources:
            rows = [
                {**row, reference: ours}
                for row in self.store.list_rows(source.name, name)
                if (ours := self.ours(source.name, name, row[reference])) is not None
            ]
            # a provisional source repeats the facts of the database
            if rows and not source.is_provisional:
                sides[source.name] = rows_in(name, rows)
        return sides

    def calendars_of(self, race: ChosenRace, id: int) -> Iterator[Sides]:
        """The race, and its sessions, in the calendars of all sources."""
        of_races: dict[str, SourceRows] = {}
        of_sessions: dict[str, SourceRows] = {}
        for source in self.sources:
            if not (calendar := self.calendars.get((source.name, race.season))):
                continue
            given = calendar.races if calendar.counting is None else calendar.counting
            for facts in given:
                if facts["key"] == race.keys.get(source.name):
                    if calendar.counting is not None:
                        of_races[source.name] = rows_in("races", [facts])
                    if facts["sessions"]:
                        of_sessions[source.name] = rows_in("sessions", facts["sessions"])
        yield Sides("races", of_races, race, id)
        yield Sides("sessions", of_sessions, race, id)

    def rows_of(self, part: StoredPart) -> SourceRows:
        """What a part says."""
        if part not in self.parts:
            names, content = self.store.content(part)
            columns = dict(zip(names.split(), zip(*unpacked(content))))
            for name in ("driverId", "constructorId"):
                if name in columns:
                    columns[name] = tuple(
                        self.ours(part.source, LIST_OF[name], reference) or reference
                        for reference in columns[name]
                    )
            if part.kind in STANDINGS:
                # Sources differ in whether equal points share a place.
                rows = Counter(columns["points"])
                columns["position"] = tuple(
                    place if rows[points] == 1 else None
                    for place, points in zip(columns["position"], columns["points"])
                )
            self.parts[part] = SourceRows(columns, key_columns(TABLE_OF[part.kind]))
        return self.parts[part]

    def rows_by_source(self, race: ChosenRace, kind: str) -> Mapping[str, SourceRows]:
        """What all sources say about a kind of a race. The part that counts comes first."""
        return {part.source: self.rows_of(part) for part in race.ranked_parts(kind)}

    def has(self, sides: Sides, source: str, column: str) -> bool:
        """Whether a source has values in a column in the race: only then can it lack one of them.

        If its records count in the race, values in other races of the season are enough.
        """
        in_race = column in sides.rows[source].known
        if in_race or source != sides.first or not sides.race:
            return in_race
        return column in self.known(sides.kind, sides.race.season)

    def known(self, kind: str, season: int) -> set[str]:
        """The columns in which the database has values for races of a season."""
        if (kind, season) not in self.columns_known:
            self.columns_known[kind, season] = {
                name
                for race in self.race_ids
                if race.season == season and kind in race.parts
                for name in self.rows_of(race.parts[kind]).known
            }
        return self.columns_known[kind, season]

    def served(self, sides: Sides, key: Key) -> list[Row]:
        """The rows of the new database with a key."""
        facts = {
            name: column.shown
            for name, column in correctable_columns(sides.table.name, "main").items()
        }
        named: dict[str, Value] = {
            name: self.id_of(name, part) if name in REFERENCE else part
            for name, part in zip(sides.key_columns, key)
        }
        if sides.race:
            named["raceId"] = sides.race_id
        found = self.db.execute(
            f"""SELECT {", ".join(facts.values())} FROM main.{sides.table.name} AS corrected
                WHERE {" AND ".join(f"{name} = ?" for name in named)}""",
            tuple(named.values()),
        )
        return [dict(zip(facts, row)) for row in found]

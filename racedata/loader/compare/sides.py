"""What the sources of the list say, side by side: about each race and kind, and in each list.

It is what they say before corrections. discrepancies.py compares it.
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
# What names a row within its race: ids in the database, or references of what that lacks.
Key = tuple[Value, ...]
# The served rows with a key: facts by the name of a column in corrections.
ServedRows = Mapping[Key, Sequence[Row]]


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


def source_rows(
    rows: Sequence[Row], names: Sequence[str], key_columns: Sequence[str]
) -> SourceRows:
    return SourceRows({name: [row.get(name) for row in rows] for name in names}, key_columns)


class Subject(NamedTuple):
    """What is compared: a kind of records of a race, or a list."""

    kind: str
    race: ChosenRace | None = None
    id: int | None = None  # of the race

    @property
    def table(self) -> Table:
        return TABLE_OF[self.kind]

    @property
    def key_columns(self) -> list[str]:
        """The columns whose values are the Key of a row."""
        is_of_list = self.kind in IDENTIFIED
        return [self.table.names[0]] if is_of_list else key_columns(self.table)

    @property
    def compared(self) -> tuple[str, ...]:
        return (KINDS.get(self.kind) or self.table).compared

    @property
    def lacks_count(self) -> bool:
        """Whether a missing value counts: standings lack some by convention."""
        return self.kind not in (*IDENTIFIED, "races", *STANDINGS)


class Sides(NamedTuple):
    """What sources say about a subject. The source whose records count comes first."""

    subject: Subject
    rows: Mapping[str, SourceRows]  # by the name of the source

    @property
    def first(self) -> str:
        return next(iter(self.rows))


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
        self.db, self.store, self.race_ids = db, store, race_ids
        self.sources = store.sources()
        self.ids = lists.ids
        # by the column with our ids: our references, by id
        self.references: dict[str, dict[Value, Value]] = {
            id: dict(db.execute(f"SELECT {id}, {name} FROM main.{LIST_OF[id]}").fetchall())
            for id, name in REFERENCE.items()
            if LIST_OF[id] in IDENTIFIED
        }
        self.calendars = {(each.source, each.season): each for each in store.calendars()}
        # What was looked up: by kind and season, the columns that have values.
        self.columns_known: dict[tuple[str, int], set[str]] = {}
        # Of the race that `sides` has come to: what its parts say, and by kind its served rows.
        self.parts: dict[StoredPart, SourceRows] = {}
        self.served_rows: dict[str, ServedRows] = {}

    def sides(self) -> Iterator[Sides]:
        """All that may differ: the lists, then race by race."""
        for name in IDENTIFIED:
            yield self.lists_of(name)
        for race, id in self.race_ids.items():
            self.parts.clear()
            self.served_rows.clear()
            yield from self.calendars_of(race, id)
            for kind in race.parts:
                parts = race.ranked_parts(kind)
                # Some sources have drivers among the results that others have among the entries.
                if kind != "entries" and len({self.store.content(part) for part in parts}) > 1:
                    yield Sides(Subject(kind, race, id), self.rows_by_source(race, kind))

    def lists_of(self, name: str) -> Sides:
        """A list of all sources: the rows that the database has."""
        subject, sides = Subject(name), {}
        (id,) = subject.key_columns
        (reference,) = subject.table.key
        for source in self.sources:
            ids = self.ids[source.name, name]
            given = self.store.list_rows(source.name, name)
            rows = [{**row, id: ids.of(row[reference])} for row in given]
            rows = [row for row in rows if row[id] in self.references[id]]
            # a provisional source repeats the facts of the database
            if rows and not source.is_provisional:
                sides[source.name] = source_rows(rows, (id, *subject.compared), (id,))
        return Sides(subject, sides)

    def calendars_of(self, race: ChosenRace, id: int) -> Iterator[Sides]:
        """The race, and its sessions, in the calendars of all sources."""
        races, sessions = Subject("races", race, id), Subject("sessions", race, id)
        of_races: dict[str, SourceRows] = {}
        of_sessions: dict[str, SourceRows] = {}
        for source in self.sources:
            if not (calendar := self.calendars.get((source.name, race.season))):
                continue
            given = calendar.races if calendar.counting is None else calendar.counting
            for facts in given:
                if facts["key"] == race.keys.get(source.name):
                    if calendar.counting is not None:
                        of_races[source.name] = source_rows([facts], races.compared, ())
                    if rows := facts["sessions"]:
                        names = ("session", *sessions.compared)
                        of_sessions[source.name] = source_rows(rows, names, ("session",))
        yield Sides(races, of_races)
        yield Sides(sessions, of_sessions)

    def rows_of(self, part: StoredPart) -> SourceRows:
        """What a part says, with ids instead of references to what the database has."""
        if part not in self.parts:
            names, content = self.store.content(part)
            columns = dict(zip(names.split(), zip(*unpacked(content))))
            for name in ("driverId", "constructorId"):
                if name in columns:
                    ids = self.ids[part.source, LIST_OF[name]]
                    columns[name] = tuple(
                        reference if (id := ids.of(reference)) is None else id
                        for reference in columns[name]
                    )
            if part.kind in STANDINGS:
                # Sources differ in whether equal points share a place.
                rows = Counter(columns["points"])
                columns["position"] = tuple(
                    place if rows[points] == 1 else None
                    for place, points in zip(columns["position"], columns["points"])
                )
            self.parts[part] = SourceRows(columns, Subject(part.kind).key_columns)
        return self.parts[part]

    def rows_by_source(self, race: ChosenRace, kind: str) -> Mapping[str, SourceRows]:
        """What all sources say about a kind of a race. The part that counts comes first."""
        return {part.source: self.rows_of(part) for part in race.ranked_parts(kind)}

    def has(self, sides: Sides, source: str, column: str) -> bool:
        """Whether a source has values in a column: in the race; or if its records count there, in
        other races of the season. Only then can it lack a value.
        """
        if column in sides.rows[source].known:
            return True
        kind, race, _ = sides.subject
        return (
            source == sides.first and race is not None and column in self.known(kind, race.season)
        )

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

    def served(self, subject: Subject) -> ServedRows:
        """The rows of the new database."""
        if subject.kind not in self.served_rows:
            facts = {
                name: column.shown
                for name, column in correctable_columns(subject.table.name, "main").items()
            }
            names = subject.key_columns
            rows: dict[Key, list[Row]] = {}
            where, bound = ("WHERE raceId = ?", (subject.id,)) if subject.race else ("", ())
            for values in self.db.execute(
                f"""SELECT {", ".join((*names, *facts.values()))}
                    FROM main.{subject.table.name} AS corrected {where}""",
                bound,
            ):
                row = dict(zip(facts, values[len(names) :]))
                rows.setdefault(tuple(values[: len(names)]), []).append(row)
            self.served_rows[subject.kind] = rows
        return self.served_rows[subject.kind]

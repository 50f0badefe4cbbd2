"""The lists of a new database (circuits, constructors, drivers, statuses), merged from the sources
that count, and the ids that their rows have there.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from racedata.loader.choose import Choice
from racedata.loader.corrections import Corrections
from racedata.loader.errors import LoadError
from racedata.loader.parts import LIST_OF, LISTS, REFERENCE, Row
from racedata.loader.store import Store, StoredSource
from racedata.model import TABLE_BY_NAME
from racedata.values import Value

Fact = tuple[str, Value]  # a column and its value


class MergedList:
    """A list such as drivers: the rows of the base, then those that other sources add."""

    def __init__(self, name: str, rows: Iterable[Row], corrections: Corrections) -> None:
        self.name, self.corrections = name, corrections
        self.id = TABLE_BY_NAME[name].names[0]
        self.reference = REFERENCE[self.id]
        self.rows: dict[int, Row] = {}
        self.ids: dict[object, int] = {}  # by what identifies a row
        for row in rows:
            self.add(int(str(row[self.id])), row)

    def marks(self, row: Mapping[str, Value]) -> list[object]:
        """What identifies a row: its reference; for drivers, also birth date and surname."""
        reference = str(row[self.reference])
        row = self.corrections.corrected_row(self.name, reference, row)
        marks: list[object] = [reference.lower()]
        if self.name == "drivers" and row.get("dob"):
            marks.append((row["dob"], str(row["surname"]).lower()))
        return marks

    def add(self, id: int, row: Row) -> None:
        self.rows[id] = {**row, self.id: id}
        for mark in self.marks(row):
            self.ids.setdefault(mark, id)

    def find(self, row: Mapping[str, Value]) -> int | None:
        return next((self.ids[mark] for mark in self.marks(row) if mark in self.ids), None)

    def update(self, id: int, row: Row) -> None:
        """Replaces facts of the row with this id with those of `row`, if it has them."""
        self.rows[id] |= {
            column: value
            for column, value in row.items()
            if value is not None and column not in (self.id, self.reference)
        }


class IdsOf:
    """The ids in the database of what a source refers to."""

    def __init__(self, merged: MergedList, rows: Iterable[Row]) -> None:
        """`rows` has the list of the source."""
        found = ((row[merged.reference], merged.find(row)) for row in rows)
        self.ids = {reference: id for reference, id in found if id is not None}
        self.others = merged.ids

    def of(self, reference: Value) -> int | None:
        """The id of what a reference means; None if the database lacks that."""
        if reference in self.ids:
            return self.ids[reference]
        # A source may name a driver that is not in its list.
        return None if reference is None else self.others.get(str(reference).lower())


class Lists:
    """All lists: the base's, and what the chosen parts of other sources refer to.

    `merged` has them by name. `ids` has our ids, by source of the list of sources, and list.
    """

    def __init__(
        self,
        store: Store,
        choice: Choice,
        sources: Sequence[StoredSource],
        base: StoredSource,
        corrections: Corrections,
    ) -> None:
        self.store, self.sources, self.base = store, sources, base
        self.kept_statuses = {text.lower(): id for text, id in store.statuses().items()}
        self.merged = {
            name: MergedList(name, store.list_rows(base.name, name), corrections) for name in LISTS
        }
        needed = self.needed(choice)
        # A dump only adds what those before it lack. An API also replaces facts: so APIs come last,
        # and the most trusted one at the very end.
        apis = [source for source in self.by_trust(sources) if source.is_api]
        dumps = [source for source in self.by_trust(sources) if not source.is_api]
        for source in [*dumps, *reversed(apis)]:
            if source is not base:
                for merged in self.merged.values():
                    self.add(source, merged, needed[source.name, merged.name])
        self.number_drivers(choice)
        self.ids = {
            (source.name, name): IdsOf(merged, store.list_rows(source.name, name))
            for source in store.sources()
            for name, merged in self.merged.items()
        }
        # What was looked up by `source_of_fact`: the source of each fact, by list.
        self.sources_of_facts: dict[str, dict[tuple[str, Fact | None], str]] = {}

    def by_trust(self, sources: Iterable[StoredSource]) -> list[StoredSource]:
        """Sources in the order in which their facts count: APIs, the base, others."""
        return sorted(
            sources,
            key=lambda source: (not source.is_api, source is not self.base, source.place or 0),
        )

    def needed(self, choice: Choice) -> dict[tuple[str, str], set[Value]]:
        """The references in the chosen parts and calendars, by source and list."""
        needed: dict[tuple[str, str], set[Value]] = defaultdict(set)
        for race in choice.races:
            needed[race.calendar.source, "circuits"].add(race.facts["circuitId"])
            for part in race.parts.values():
                if part.source == self.base.name:
                    continue
                columns, rows = self.store.rows(part)
                for at, column in enumerate(columns):
                    if column in LIST_OF:
                        needed[part.source, LIST_OF[column]] |= {row[at] for row in rows}
        return needed

    def add(self, source: StoredSource, merged: MergedList, needed: set[Value]) -> None:
        """Adds the rows of a source that are needed, or their facts to those that they match."""
        rows = self.store.list_rows(source.name, merged.name)
        if merged.name == "status":  # an API lists only those that the database lacked
            missing = needed - {None, *(row["status"] for row in rows)}
            rows += [{"status": text} for text in sorted(map(str, missing))]
        references: dict[int, Value] = {}  # the source's, by our ids
        for row in rows:
            if row[merged.reference] not in needed:
                continue
            id = merged.find(row)
            if id is None:
                id = self.new_id(merged, row)
                merged.add(id, row)
            elif source.is_api and merged.name != "status":
                merged.update(id, row)
            if merged.name == "drivers" and id in references:
                raise LoadError(
                    f"{source.name}: drivers {row['driverRef']!r} and {references[id]!r} both "
                    f"match {merged.rows[id]['driverRef']!r}, by reference or by birth date and "
                    "surname; expected only one: correct that source, or leave it out"
                )
            references[id] = row[merged.reference]

    def new_id(self, merged: MergedList, row: Row) -> int:
        """The id of a new row. A status keeps its id if that is free, because addresses have it."""
        if merged.name != "status":
            return max(merged.rows, default=0) + 1
        status = str(row["status"]).lower()
        others = (id for text, id in self.kept_statuses.items() if text != status)
        taken = {*merged.rows, *others}
        for id in (self.kept_statuses.get(status), row.get("statusId")):
            if id is not None and int(id) not in taken:
                return int(id)
        return max(taken, default=0) + 1

    def number_drivers(self, choice: Choice) -> None:
        """Gives drivers the permanent number of the source with the newest result.

        A driver may change it from one season to the next, so older sources may be out of date.
        """
        drivers = self.merged["drivers"]
        final = [source for source in self.sources if not source.is_provisional]
        final.sort(key=lambda source: (choice.newest.get(source.name, ""), -(source.place or 0)))
        for source in final:  # the newest comes last
            for row in self.store.list_rows(source.name, "drivers"):
                id = drivers.find(row)  # even if no record that counts names the driver
                if id and row.get("number") is not None:
                    drivers.rows[id]["number"] = row["number"]

    def reference(self, name: str, row: Row) -> Value:
        """Our reference for a row of a source's list; None if the database lacks it."""
        merged = self.merged[name]
        id = merged.find(row)
        return None if id is None else merged.rows[id][merged.reference]

    def source_of_fact(self, name: str, key: str, fact: Fact | None) -> str | None:
        """The most trusted source that has a row in a list, or in `seasons`, with a fact. None if
        no source has it, as after a correction.
        """
        if name not in self.sources_of_facts:
            of_list = self.sources_of_facts.setdefault(name, {})
            final = (source for source in self.sources if not source.is_provisional)
            for source in self.by_trust(final):
                for row in self.store.list_rows(source.name, name):
                    ours = row["year"] if name == "seasons" else self.reference(name, row)
                    for known in (None, *row.items()):
                        of_list.setdefault((str(ours), known), source.name)
        return self.sources_of_facts[name].get((key, fact))

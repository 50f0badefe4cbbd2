"""Where sources disagree: every fact for which two sources of the list have different values.

It compares what they say, before corrections. differences.py says what a difference can mean.
Not compared: the values in results of a driver who has two in a race (shared cars); statuses,
because each source has its own words; places in the standings that are shared; the constructor of
a car if it differs only as in the results. A row that a source lacks counts for some kinds. So does
a value that it lacks, if it has such values for others in the race; or if the database lacks the
value for the whole race, but has it for others of the season.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from racedata.formats import public_name
from racedata.loader.choose import ChosenRace
from racedata.loader.correction_lines import DRIVER, ROW, Correction, columns_of, known
from racedata.loader.differences import (
    CONVENTIONS,
    GROUPS,
    LACKED_BY_OURS,
    LACKED_BY_THE_RACE,
    LACKED_BY_THEIRS,
    Group,
    distance,
    groups_of,
)
from racedata.loader.fill import Filling
from racedata.loader.ids import IDENTIFIED, Register
from racedata.loader.parts import LIST_OF, Row
from racedata.loader.sources import family
from racedata.loader.sql import insertion
from racedata.loader.store import StoredPart, unpacked
from racedata.model import BY_NAME, FASTEST_LAP, KINDS, STANDINGS, Table
from racedata.values import Value

NOT_CORRECTED = Path(__file__).with_name("not_corrected.csv")
OPEN, EXPLAINED, RESOLVED = "open", "explained", "resolved"

# The kinds whose rows are counted, and the column that tells two rows of a driver apart.
COUNTED = {
    "results": "number",
    "sprint_results": "number",
    "qualifying": "number",
    "sprint_qualifying": "number",
    "pit_stops": "stop",
}
IDS = ("driverId", "constructorId", "circuitId")
COLUMNS = (
    *("record", "kind", "key", "columnName", "year", "raceId", *IDS),
    *("value", "state", "explanation", "doubt"),
)

# What names a row within its race: ids in the database, or references of what that lacks.
Key = tuple[Value, ...]
Values = Mapping[str, Value]  # by source
# The served rows with a key: facts by the name of a column in corrections.
Served = Mapping[Key, Sequence[Row]]


class Said:
    """What a source says about a race in one kind of records, or in a list."""

    def __init__(self, columns: Mapping[str, Sequence[Value]], names: Sequence[str]) -> None:
        self.columns = columns
        self.keys: list[Key] = list(zip(*(columns[name] for name in names))) if names else [()]
        self.at = {key: at for at, key in enumerate(self.keys)}
        # the columns that have values
        rows = len(self.keys)
        self.known = {name for name, values in columns.items() if values.count(None) < rows}
        self.several: set[Key] = set()  # the keys that more than one row has
        if len(self.at) < len(self.keys):
            self.several = {key for key, rows in Counter(self.keys).items() if rows > 1}

    def row(self, at: int, subject: "Subject") -> Row:
        """A row, with NULL for compared columns that the source lacks."""
        row: Row = dict.fromkeys(subject.compared)
        return row | {name: values[at] for name, values in self.columns.items()}

    def values(self, names: Sequence[str]) -> dict[Key, Key]:
        """The values in some columns, by key."""
        unknown = (None,) * len(self.keys)
        return dict(zip(self.keys, zip(*(self.columns.get(name, unknown) for name in names))))


Sides = Mapping[str, Said]  # by source


class Subject(NamedTuple):
    """What is compared: a kind of records of a race, or a list."""

    kind: str
    race: ChosenRace | None = None
    id: int | None = None  # of the race

    @property
    def table(self) -> Table:
        return BY_NAME["results" if self.kind == "fastest_laps" else self.kind]

    @property
    def names(self) -> list[str]:
        """The columns that name a row."""
        if self.kind in IDENTIFIED:
            return [self.table.names[0]]
        return [] if self.kind == "races" else [n for n in self.table.key if n != "raceId"]

    @property
    def compared(self) -> tuple[str, ...]:
        return (KINDS.get(self.kind) or self.table).compared

    @property
    def lacks_count(self) -> bool:
        """Whether a missing value counts: standings lack some by convention."""
        return self.kind not in (*IDENTIFIED, "races", *STANDINGS)


class Discrepancy(NamedTuple):
    """A fact about which sources disagree."""

    subject: Subject
    key: str  # as in corrections
    column: str  # as in corrections
    ids: Mapping[str, int]  # of the driver, constructor and circuit
    value: Value  # what the database says
    group: Group
    size: float  # how far apart the values are
    state: str
    explanation: str
    said: Values

    @property
    def doubt(self) -> int:
        return 1 + GROUPS.index(self.group)

    @property
    def order(self) -> tuple[object, ...]:
        """The most doubtful first; of those that are alike, the newest."""
        race = self.subject.race
        at = (-race.season, int(race.facts["round"])) if race else (0, 0)
        return self.doubt, -self.size, *at, self.subject.kind, self.key, self.column


# How many races, or rows of a list, of a source were compared with another: by source and kind.
Compared = Mapping[tuple[str, str], int]


def put_discrepancies(
    filling: Filling, register: Register, corrections: Iterable[Correction]
) -> Compared:
    """Fills the tables of discrepancies in the new database."""
    comparison = Comparison(filling, register, corrections)
    found = sorted(comparison.discrepancies(), key=lambda each: each.order)
    places = {source.name: place for place, source in enumerate(comparison.sources, 1)}
    facts, said = [], []
    for record, each in enumerate(found, 1):
        race = each.subject.race
        facts.append(
            (
                *(
                    record,
                    each.subject.kind,
                    each.key,
                    each.column,
                    race and race.season,
                    each.subject.id,
                ),
                *map(each.ids.get, IDS),
                *(text_of(each.value), each.state, each.explanation, each.doubt),
            )
        )
        said += [
            (record, places[source], public_name(source), text_of(value))
            for source, value in each.said.items()
        ]
    filling.db.executemany(insertion("main.discrepancies", COLUMNS), facts)
    filling.db.executemany(insertion("main.discrepancy_values", 4), said)
    return comparison.compared


def text_of(value: Value) -> str | None:
    return None if value is None else str(value)


class Comparison:
    """Compares what the sources of the list say with each other."""

    def __init__(
        self, filling: Filling, register: Register, corrections: Iterable[Correction]
    ) -> None:
        self.filling, self.store, self.db = filling, filling.store, filling.db
        self.rows, self.ids, self.references = register
        self.sources = self.store.sources()
        self.reasons = Reasons(corrections)
        self.compared: Counter[tuple[str, str]] = Counter()
        self.circuits = dict(self.db.execute("SELECT raceId, circuitId FROM main.races").fetchall())
        self.of_season: dict[tuple[str, int], set[str]] = {}
        self.of_race: dict[StoredPart, Said] = {}  # the parts of a race

    def discrepancies(self) -> Iterator[Discrepancy]:
        for name in IDENTIFIED:
            yield from self.differences(Subject(name), self.lists_of(name))
        for at, race in enumerate(self.filling.choice.races):
            self.of_race.clear()
            id = self.filling.race_ids[at]
            for kind, sides in self.calendars_of(race):
                yield from self.differences(Subject(kind, race, id), sides)
            for kind, first in race.parts.items():
                parts = [first, *race.others.get(kind, ())]
                if len(parts) > 1:
                    self.compared.update((part.source, kind) for part in parts)
                    if len({self.store.content(part) for part in parts}) > 1:
                        sides = {part.source: self.said(part) for part in parts}
                        yield from self.differences(Subject(kind, race, id), sides)

    # What sources say.

    def lists_of(self, name: str) -> Sides:
        """A list of all sources: the rows that the database has."""
        subject, sides = Subject(name), {}
        (id,) = subject.names
        for source in self.sources:
            ids = self.ids[source.name, name]
            rows = [
                {**row, id: ids[row[subject.table.key[0]]]} for row in self.rows[source.name, name]
            ]
            rows = [row for row in rows if row[id] in self.references[id]]
            # the facts of a provisional source are those of the database
            if rows and not source.is_provisional:
                sides[source.name] = said_in(rows, (id, *subject.compared), (id,))
        count = Counter(key for said in sides.values() for key in said.at)
        for of_source, said in sides.items():
            self.compared[of_source, name] += sum(count[key] > 1 for key in said.at)
        return sides

    def calendars_of(self, race: ChosenRace) -> Iterator[tuple[str, Sides]]:
        """The race, and its sessions, in the calendars of all sources."""
        races, sessions = {}, {}
        for source in self.sources:
            if not (calendar := self.filling.calendars.get((source.name, race.season))):
                continue
            given = calendar.races if calendar.counts is None else calendar.counts
            for facts in given:
                if facts["key"] == race.keys.get(source.name):
                    if calendar.counts is not None:
                        races[source.name] = said_in([facts], Subject("races").compared, ())
                    if rows := facts["sessions"]:
                        names = ("session", *Subject("sessions").compared)
                        sessions[source.name] = said_in(rows, names, ("session",))
        for kind, sides in (("races", races), ("sessions", sessions)):
            if len(sides) > 1:
                self.compared.update((source, kind) for source in sides)
            yield kind, sides

    def said(self, part: StoredPart) -> Said:
        """What a part says, with ids instead of references."""
        if part not in self.of_race:
            names, content = self.store.content(part)
            columns = dict(zip(names.split(), zip(*unpacked(content))))
            for name in ("driverId", "constructorId"):
                if name in columns:
                    ids = self.ids[part.source, LIST_OF[name]]
                    columns[name] = tuple(map(ids.__getitem__, columns[name]))
            if part.kind in STANDINGS:
                # Sources differ in whether equal points share a place.
                rows = Counter(columns["points"])
                columns["position"] = tuple(
                    place if rows[points] == 1 else None
                    for place, points in zip(columns["position"], columns["points"])
                )
            self.of_race[part] = Said(columns, Subject(part.kind).names)
        return self.of_race[part]

    def results_of(self, race: ChosenRace) -> Sides:
        """What all sources say about the results of a race."""
        first = race.parts.get("results")
        parts = [first, *race.others["results"]] if first else []
        return {part.source: self.said(part) for part in parts}

    def is_known(self, subject: Subject, column: str) -> bool:
        """Whether the database has values in a column for other races of the season."""
        assert subject.race
        key = subject.kind, subject.race.season
        if key not in self.of_season:
            self.of_season[key] = {
                name
                for race in self.filling.choice.races
                if race.season == subject.race.season and subject.kind in race.parts
                for name in self.said(race.parts[subject.kind]).known
            }
        return column in self.of_season[key]

    # What differs.

    def differences(self, subject: Subject, sides: Sides) -> Iterator[Discrepancy]:
        """The values that differ, and the rows that only some sources have."""
        if len(sides) < 2:
            return
        first = next(iter(sides))  # of a kind, the one that counts
        columns = [
            name for name in subject.compared if self.is_comparable(subject, sides, first, name)
        ]
        tables = [said.values(columns) for said in sides.values()]
        differing = {
            key
            for table in tables[1:]
            if table != tables[0]
            for key, _ in table.items() ^ tables[0].items()
        }
        several = {key for said in sides.values() for key in said.several}
        served = cache(lambda: self.served(subject))
        for key in sorted(differing - several, key=str):
            rows = dict(self.rows_with(subject, sides, key))
            for column in columns if len(rows) > 1 else ():
                yield from self.difference(subject, sides, first, column, key, rows, served)
        if subject.kind in COUNTED:
            yield from self.rows_in_some(subject, sides, served)

    def is_comparable(self, subject: Subject, sides: Sides, first: str, column: str) -> bool:
        """Whether two sources have values in a column; or one, but not that which counts."""
        having = sum(column in said.known for said in sides.values())
        return having > 1 or (having == 1 and self.is_gap(subject, sides, first, column))

    def is_gap(self, subject: Subject, sides: Sides, first: str, column: str) -> bool:
        """Whether the database has no values for the race, but some for its season."""
        return (
            subject.kind in KINDS
            and subject.lacks_count
            and column not in sides[first].known
            and self.is_known(subject, column)
        )

    def rows_with(self, subject: Subject, sides: Sides, key: Key) -> Iterator[tuple[str, Row]]:
        """The rows with a key, by source. Of a fastest lap, also empty ones: of those who drove."""
        results: Sides = (
            self.results_of(subject.race) if subject.kind == "fastest_laps" and subject.race else {}
        )
        if any(key in said.several for said in results.values()):
            return  # who drove two cars
        for source, said in sides.items():
            if key in said.at:
                yield source, said.row(said.at[key], subject)
            elif source in results and key in results[source].at:
                yield source, dict.fromkeys(FASTEST_LAP)

    def difference(
        self,
        subject: Subject,
        sides: Sides,
        first: str,
        column: str,
        key: Key,
        rows: Mapping[str, Row],
        served: Callable[[], Served],
    ) -> Iterator[Discrepancy]:
        """The discrepancy in a column of the rows with a key, if it is one."""
        values = {
            source: row.get(column)
            for source, row in rows.items()
            if row.get(column) is not None
            or (subject.lacks_count and column in sides[source].known)
            or (source == first and self.is_gap(subject, sides, first, column))
        }
        if len({*values.values()}) < 2:
            return
        if column == "constructorId" and self.follows_results(subject, key, values):
            return
        name = "constructor" if column == "constructorId" else column
        row = next(iter(served().get(key, ())), {})
        known = {source: rows[source] for source, value in values.items() if value is not None}
        found = judged(subject, column, known.values())
        if not found and len(known) < len(values):
            lacking = LACKED_BY_OURS if column in sides[first].known else LACKED_BY_THE_RACE
            found = (lacking if row.get(name) is None else LACKED_BY_THEIRS), 0
        if found:
            shown = {source: self.shown(column, value) for source, value in values.items()}
            yield self.discrepancy(subject, key, "", name, row.get(name), *found, shown)

    def follows_results(self, subject: Subject, key: Key, values: Values) -> bool:
        """Whether each source has the constructor that it has in its results."""
        if subject.kind == "results" or "driverId" not in subject.names or not subject.race:
            return False
        driver = (key[subject.names.index("driverId")],)
        results = self.results_of(subject.race)
        for source, constructor in values.items():
            said = results.get(source)
            if not said or driver not in said.at or driver in said.several:
                return False
            if said.columns["constructorId"][said.at[driver]] != constructor:
                return False
        return True

    def rows_in_some(
        self, subject: Subject, sides: Sides, served: Callable[[], Served]
    ) -> Iterator[Discrepancy]:
        """The rows that only some sources have. If a driver has as many in all of them, the number
        of the car may differ, and no row is missing.
        """
        drivers = {key[0] for said in sides.values() for key in said.several} | {
            key[0]
            for said, other in combinations(sides.values(), 2)
            if said.at.keys() != other.at.keys()
            for key in said.at.keys() ^ other.at.keys()
        }
        for driver in sorted(drivers, key=str):
            cars: dict[str, dict[Value, Row]] = {source: {} for source in sides}
            for source, said in sides.items():
                for at, key in enumerate(said.keys):
                    if key[0] == driver:
                        row = said.row(at, subject)
                        cars[source][row.get(COUNTED[subject.kind])] = row
            most = max(map(len, cars.values()))
            for car in dict.fromkeys(car for rows in cars.values() for car in rows):
                having = {source: rows[car] for source, rows in cars.items() if car in rows}
                most_here = max(len(cars[source]) for source in having)
                lacking = [
                    source
                    for source, rows in cars.items()
                    if car not in rows and len(rows) < most_here
                ]
                if not lacking:
                    continue
                has_others = subject.kind == "pit_stops" or most > 1
                key = (driver, car) if subject.kind == "pit_stops" else (driver,)
                own = [
                    row
                    for row in served().get(key, ())
                    if not has_others or row.get(COUNTED[subject.kind], car) == car
                ]
                said_rows = {
                    source: self.facts(subject, source, key, having[source])
                    if source in having
                    else None
                    for source in sides
                    if source in having or source in lacking
                }
                value = self.words(subject, own[0]) if own else None
                if found := judged(subject, ROW, [*having.values()] * 2):
                    suffix = f"/{car}" if has_others and subject.kind != "pit_stops" else ""
                    yield self.discrepancy(subject, key, suffix, ROW, value, *found, said_rows)

    # In words.

    def discrepancy(
        self,
        subject: Subject,
        key: Key,
        suffix: str,
        column: str,
        value: Value,
        group: Group,
        size: float,
        said: Values,
    ) -> Discrepancy:
        parts = [self.shown(name, part) for name, part in zip(subject.names, key)]
        if subject.race:
            parts = [subject.race.season, subject.race.facts["round"], *parts]
        text = "/".join(map(str, parts)) + suffix
        ids = {
            name: id for name, id in zip(subject.names, key) if name in IDS and isinstance(id, int)
        }
        if subject.id:
            ids["circuitId"] = self.circuits[subject.id]
        state, explanation = self.reasons.of(subject.table.name, text, column, value, group, said)
        return Discrepancy(subject, text, column, ids, value, group, size, state, explanation, said)

    def shown(self, column: str, value: Value) -> Value:
        """A value as corrections have it: a reference instead of an id."""
        return self.references.get(column, {}).get(value, value)

    def facts(self, subject: Subject, source: str, key: Key, row: Row) -> str:
        """The facts of a row of a source, as corrections have them."""
        facts = {
            **row,
            "constructor": self.shown("constructorId", row.get("constructorId")),
            "status": row.get("statusId"),
        }
        assert subject.race
        laps = [
            subject.race.parts.get("fastest_laps"),
            *subject.race.others.get("fastest_laps", ()),
        ]
        for part in laps if subject.kind == "results" else ():
            if part and part.source == source and key in self.said(part).at:
                lap = self.said(part).row(self.said(part).at[key], Subject("fastest_laps"))
                if lap["number"] == row.get("number"):
                    facts |= {name: lap[name] for name in FASTEST_LAP}
        return self.words(subject, facts)

    def words(self, subject: Subject, facts: Row) -> str:
        """Facts about a row, as corrections have them, without those that its key has."""
        left_out = ("positionOrder", *subject.table.key)
        names = (name for name in columns_of(subject.table.name, "main") if name not in left_out)
        return known({name: facts.get(name) for name in names})

    def served(self, subject: Subject) -> Served:
        """The rows of the new database."""
        shown = {
            name: column.shown for name, column in columns_of(subject.table.name, "main").items()
        }
        names = subject.names
        found: dict[Key, list[Row]] = {}
        where, bound = ("WHERE raceId = ?", (subject.id,)) if subject.race else ("", ())
        for values in self.db.execute(
            f"""SELECT {", ".join((*names, *shown.values()))}
                FROM main.{subject.table.name} AS corrected {where}""",
            bound,
        ):
            row = dict(zip(shown, values[len(names) :]))
            found.setdefault(tuple(values[: len(names)]), []).append(row)
        return found


def said_in(rows: Sequence[Row], names: Sequence[str], key: Sequence[str]) -> Said:
    return Said({name: [row.get(name) for row in rows] for name in names}, key)


def judged(subject: Subject, column: str, rows: Iterable[Row]) -> tuple[Group, float] | None:
    """What two of these rows can mean by a difference in a column: the most doubtful group that
    fits, and how far apart the values are. None if no group fits.
    """
    found: list[tuple[Group, float]] = []
    for one, other in combinations(rows, 2):
        if column != ROW and one[column] == other[column]:
            continue
        for group in groups_of(subject.table.name, column):
            if group.fits(column, one, other):
                found.append((group, 0 if column == ROW else distance(column, one, other)))
                break
    return min(found, key=lambda each: (GROUPS.index(each[0]), -each[1]), default=None)


class Reasons:
    """What is known about facts: from corrections, and from the list of those not corrected."""

    def __init__(self, corrections: Iterable[Correction]) -> None:
        self.corrections: dict[tuple[str, str, str], Correction] = {}
        for each in corrections:
            self.corrections[each.table, each.key.lower(), each.column] = each
            if each.column == DRIVER:  # one driver's row is missing, and one of the other too many
                season, round, _, *car = each.key.split("/")
                for driver in (each.wrong, each.right):
                    for number in ([], car):
                        key = "/".join((season, round, str(driver), *number)).lower()
                        self.corrections.setdefault((each.table, key, ROW), each)
        with NOT_CORRECTED.open(newline="", encoding="utf-8") as file:
            self.kept = {
                (row["table"], row["key"], row["column"]): row for row in csv.DictReader(file)
            }

    def of(
        self, table: str, key: str, column: str, value: Value, group: Group, said: Values
    ) -> tuple[str, str]:
        """The state of a discrepancy, and why."""
        text = text_of(value)
        correction = self.corrections.get((table, key.lower(), column))
        if correction and (column == ROW or correction.right == text):
            return RESOLVED, correction.witnesses
        kept = self.kept.get((table, key, column))
        if kept and kept["here"] == ("\\N" if text is None else text):
            return kept["state"], kept["reason"]
        if group in CONVENTIONS:
            return EXPLAINED, group.meaning
        agreeing = [source for source, each in said.items() if text_of(each) == text]
        others = {family(source) for source in said} - {family(source) for source in agreeing}
        if len({*map(family, agreeing)}) > max(1, len(others)):
            names = " and ".join(map(public_name, agreeing))
            return RESOLVED, f"{names} agree."
        return OPEN, f"{group.meaning} {group.settles}"

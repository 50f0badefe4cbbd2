"""Where sources disagree: every fact for which two sources of the list have different values.

sides.py has what they say, differences.py what a difference can mean. Here, a source is known by
its name. The special cases:

- a value that a source lacks: it counts if the source has such values of other drivers in the race;
  or if it is the database that lacks it, in other races of the season (`Said.has`);
- a row that a source lacks: it counts in results, in qualifying and for pit stops (`rows_in_some`);
- two rows of a driver in a race, of shared cars: they are only counted (`between`);
- a fastest lap that a source lacks: unknown, if it has a result of the driver (`rows_with`);
- the constructor of a car: not compared if it differs only as in the results (`follows_results`);
- a place in the standings that is shared: unknown (`Said.rows_of`);
- statuses: not compared, because each source has its own words (`Column.is_compared`).

A driver of a shared car may have two rows in a race. In 1957/5, Moss began in the car 18, and took
over the car 20 from Brooks:

    one source   the other    what differs
    18 and 20    20           the row 1957/5/moss/18, which the other lacks
    18 and 20    none         both rows
    18 and 20    17 and 20    no row: the other has another number for the car 18
    20           17           no row: the number is compared as a value
"""

import csv
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import NamedTuple

from racedata.formats import public_name
from racedata.loader.compare.conventions import Case
from racedata.loader.compare.differences import (
    CONVENTIONS,
    GROUPS,
    LACKED_BY_OURS,
    LACKED_BY_THE_RACE,
    LACKED_BY_THEIRS,
    SETTLES,
    Group,
    groups_of,
)
from racedata.loader.compare.sides import Key, Said, Sides, SourceRows, Subject
from racedata.loader.correction_lines import (
    ROW,
    Correction,
    correctable_columns,
    known_facts,
)
from racedata.loader.corrections import CORRECTIONS
from racedata.loader.parts import Row
from racedata.loader.sources import family
from racedata.loader.sql import insert
from racedata.model import FASTEST_LAP
from racedata.values import Value

NOT_CORRECTED = CORRECTIONS.with_name("not_corrected.csv")
OPEN, EXPLAINED, RESOLVED = "open", "explained", "resolved"

# The kinds of which a missing row counts: each driver has one, or one for each car or stop.
WITH_ROWS = ("results", "sprint_results", "qualifying", "sprint_qualifying", "pit_stops")
IDS = ("driverId", "constructorId", "circuitId")

Values = Mapping[str, Value]  # by the name of the source


class DisputedFact(NamedTuple):
    """A fact about which sources may disagree."""

    subject: Subject
    key: Key  # of its row
    column: str  # as in corrections
    value: Value  # what the database says
    values: Values
    car: tuple[Value, ...] = ()  # its number, if that is a part of the key in corrections


class Judgement(NamedTuple):
    """What a difference can mean."""

    group: Group
    size: float  # how far apart the values are

    @property
    def doubt(self) -> int:
        """1 for the most doubtful group."""
        return 1 + GROUPS.index(self.group)


class Discrepancy(NamedTuple):
    """A fact about which sources disagree, and what is known about that."""

    order: tuple[object, ...]  # the most doubtful first; of those that are alike, the newest
    row: Mapping[str, Value]  # of the table, without `record`
    values: Values


def fill_discrepancies(
    db: sqlite3.Connection, said: Said, corrections: Iterable[Correction]
) -> None:
    """Fills the tables of discrepancies in the new database."""
    comparison = Comparison(said, Reasons(corrections))
    found = chain.from_iterable(map(comparison.between, said.sides()))
    discrepancies = sorted(found, key=lambda discrepancy: discrepancy.order)
    places = {source.name: place for place, source in enumerate(said.sources, 1)}
    rows, values = [], []
    for record, (_, row, of_sources) in enumerate(discrepancies, 1):
        rows.append({"record": record, **row})
        values += [
            {
                "record": record,
                "place": places[source],
                "source": public_name(source),
                "value": text_of(value),
            }
            for source, value in of_sources.items()
        ]
    insert(db, "main.discrepancies", *rows)
    insert(db, "main.discrepancy_values", *values)


def text_of(value: Value) -> str | None:
    return None if value is None else str(value)


class Reasons:
    """What is known about facts: from corrections, and from the list of those not corrected."""

    def __init__(self, corrections: Iterable[Correction]) -> None:
        self.corrections = {
            (line.table, line.key.lower(), line.column): line for line in corrections
        }
        with NOT_CORRECTED.open(newline="", encoding="utf-8") as file:
            self.kept = {
                (row["table"], row["key"], row["column"]): row for row in csv.DictReader(file)
            }

    def of(self, fact: DisputedFact, key: str, group: Group) -> tuple[str, str]:
        """The state of a discrepancy, and the reason. `key` names the fact as corrections do."""
        table, column, text = fact.subject.table.name, fact.column, text_of(fact.value)
        correction = self.corrections.get((table, key.lower(), column))
        if correction and (column == ROW or correction.right == text):
            return RESOLVED, correction.witnesses
        kept = self.kept.get((table, key, column))
        if kept and kept["here"] == ("\\N" if text is None else text):
            settles = f". {group.settles or SETTLES}" if kept["state"] == OPEN else ""
            return kept["state"], kept["reason"] + settles
        if group in CONVENTIONS:
            return EXPLAINED, group.meaning
        agreeing = [source for source, each in fact.values.items() if text_of(each) == text]
        # Sources of a family descend from one. Together, they are one witness, which agrees if one
        # of them does. Two witnesses or more must agree, and more than disagree: see
        # "Discrepancies" in docs/data.md.
        families = {*map(family, agreeing)}
        others = {*map(family, fact.values)} - families
        if len(families) > max(1, len(others)):
            names = " and ".join(map(public_name, agreeing))
            return RESOLVED, f"{names} agree."
        return OPEN, f"{group.meaning} {group.settles}"


class Comparison:
    """Compares what the sources of the list say with each other."""

    def __init__(self, said: Said, reasons: Reasons) -> None:
        self.said, self.reasons = said, reasons
        found = said.db.execute("SELECT raceId, circuitId FROM main.races")
        self.circuits = dict(found.fetchall())

    # What differs.

    def between(self, sides: Sides) -> Iterator[Discrepancy]:
        """The values that differ, and the rows that only some sources have."""
        subject, all_rows = sides.subject, sides.rows.values()
        if len(all_rows) < 2:
            return
        columns = [
            column
            for column in subject.compared
            if sum(self.said.has(sides, source, column) for source in sides.rows) > 1
        ]
        first, *others = (rows.values(columns) for rows in all_rows)
        differing = {
            key for table in others if table != first for key, _ in table.items() ^ first.items()
        }
        several = {key for rows in all_rows for key in rows.several}
        for key in sorted(differing - several, key=str):
            rows = self.rows_with(sides, key)
            for column in columns if len(rows) > 1 else ():
                yield from self.in_column(sides, column, key, rows)
        if subject.kind in WITH_ROWS:
            yield from self.rows_in_some(sides)

    def rows_with(self, sides: Sides, key: Key) -> dict[str, Row]:
        """The rows with a key, by source. Of a fastest lap, also empty ones: of those who drove."""
        subject, results = sides.subject, dict[str, SourceRows]()
        if subject.kind == "fastest_laps" and subject.race:
            results |= self.said.rows_by_source(subject.race, "results")
        if any(key in rows.several for rows in results.values()):
            return {}  # who drove two cars
        found: dict[str, Row] = {}
        for source, rows in sides.rows.items():
            if key in rows.at:
                found[source] = rows.row(rows.at[key], subject.compared)
            elif source in results and key in results[source].at:
                found[source] = dict.fromkeys(FASTEST_LAP)
        return found

    def in_column(
        self, sides: Sides, column: str, key: Key, rows: Mapping[str, Row]
    ) -> Iterator[Discrepancy]:
        """The discrepancy in a column of the rows with a key, if it is one."""
        subject = sides.subject
        values = {
            source: row.get(column)
            for source, row in rows.items()
            if row.get(column) is not None
            or (subject.lacks_count and self.said.has(sides, source, column))
        }
        if len({*values.values()}) < 2:
            return
        if column == "constructorId" and self.follows_results(subject, key, values):
            return
        name = "constructor" if column == "constructorId" else column
        ours = next(iter(self.said.served(subject).get(key, ())), {}).get(name)
        cases = (
            self.case(sides, column, key, {one: rows[one], other: rows[other]})
            for one, other in combinations(values, 2)
            if values[one] != values[other]
        )
        judgement = judgement_of(subject, cases)
        if not judgement and None in values.values():
            is_known = column in sides.rows[sides.first].known
            lacking = LACKED_BY_OURS if is_known else LACKED_BY_THE_RACE
            judgement = Judgement(lacking if ours is None else LACKED_BY_THEIRS, 0)
        if judgement:
            shown = {source: self.shown(column, value) for source, value in values.items()}
            yield self.discrepancy(DisputedFact(subject, key, name, ours, shown), judgement)

    def case(self, sides: Sides, column: str, key: Key, rows: Mapping[str, Row]) -> Case:
        """A difference between two sources, with what they say about the race."""
        race = sides.subject.race
        results = self.said.rows_by_source(race, "results").get(next(iter(rows))) if race else None
        season, name = (race.season, race.name) if race else (None, "")
        sources = [sides.rows[source] for source in rows]
        return Case(column, key, [*rows.values()], sources, season, name, results)

    def follows_results(self, subject: Subject, key: Key, values: Values) -> bool:
        """Whether each source only repeats the constructor of its results, which differ too."""
        if subject.kind == "results" or "driverId" not in subject.key_columns or not subject.race:
            return False
        driver = (key[subject.key_columns.index("driverId")],)
        results = self.said.rows_by_source(subject.race, "results")
        for source, constructor in values.items():
            rows = results.get(source)
            if not rows or driver not in rows.at or driver in rows.several:
                return False
            if rows.columns["constructorId"][rows.at[driver]] != constructor:
                return False
        return True

    def rows_in_some(self, sides: Sides) -> Iterator[Discrepancy]:
        """The rows that only some sources have. The rows of a driver differ in a number: that of
        the car or of the stop. If two sources have as many rows of a driver, they have the same
        rows, even if the numbers differ.
        """
        subject = sides.subject
        has_stops = "stop" in subject.key_columns
        for driver in sorted(drivers_to_count(sides.rows.values()), key=str):
            by_number = rows_of_driver(driver, sides, "stop" if has_stops else "number")
            has_several = any(len(rows) > 1 for rows in by_number.values())
            for number in dict.fromkeys(chain.from_iterable(by_number.values())):
                key = (driver, number) if has_stops else (driver,)
                car = (number,) if has_several and not has_stops else ()
                having = {
                    source: rows[number] for source, rows in by_number.items() if number in rows
                }
                most = max(len(by_number[source]) for source in having)
                lacking = [
                    source
                    for source, rows in by_number.items()
                    if number not in rows and len(rows) < most
                ]
                served = self.said.served(subject).get(key, ())
                ours = [row for row in served if not car or row.get("number", number) == number]
                yield from self.row_in_some(sides, key, having, lacking, ours, car)

    def row_in_some(
        self,
        sides: Sides,
        key: Key,
        having: Mapping[str, Row],
        lacking: Collection[str],
        ours: Sequence[Row],
        car: tuple[Value, ...] = (),
    ) -> Iterator[Discrepancy]:
        """The discrepancy about a row that some sources have and others lack.

        `ours` are the served rows. `car` is the number of the car, if the driver has several.
        """
        # Each row is judged alone.
        cases = (
            self.case(sides, ROW, key, {source: row, other: row})
            for source, row in having.items()
            for other in lacking
        )
        subject = sides.subject
        if judgement := judgement_of(subject, cases):
            values = {
                source: self.row_in_words(subject, source, key, having[source])
                if source in having
                else None
                for source in sides.rows
                if source in having or source in lacking
            }
            value = self.words(subject, ours[0]) if ours else None
            yield self.discrepancy(DisputedFact(subject, key, ROW, value, values, car), judgement)

    # In words.

    def discrepancy(self, fact: DisputedFact, judgement: Judgement) -> Discrepancy:
        kind, race, race_id = fact.subject
        named = dict(zip(fact.subject.key_columns, fact.key))
        parts = [self.shown(name, part) for name, part in named.items()]
        if race:
            parts = [race.season, race.facts["round"], *parts]
        key = "/".join(map(str, (*parts, *fact.car)))
        ids = {name: id for name, id in named.items() if name in IDS and isinstance(id, int)}
        if race_id:
            ids["circuitId"] = self.circuits[race_id]
        state, explanation = self.reasons.of(fact, key, judgement.group)
        row = {
            "kind": kind,
            "key": key,
            "columnName": fact.column,
            "year": race.season if race else None,
            "raceId": race_id,
            **{id: ids.get(id) for id in IDS},
            "value": text_of(fact.value),
            "state": state,
            "explanation": explanation,
            "doubt": judgement.doubt,
        }
        at = (-race.season, int(race.facts["round"])) if race else (0, 0)
        order = (judgement.doubt, -judgement.size, *at, kind, key, fact.column)
        return Discrepancy(order, row, fact.values)

    def shown(self, column: str, value: Value) -> Value:
        """A value as corrections have it: a reference instead of an id."""
        return self.said.references.get(column, {}).get(value, value)

    def row_in_words(self, subject: Subject, source: str, key: Key, row: Row) -> str:
        """The facts of a row of a source, as corrections have them."""
        facts = {
            **row,
            "constructor": self.shown("constructorId", row.get("constructorId")),
            "status": row.get("statusId"),
        }
        if subject.kind == "results" and subject.race:
            laps = self.said.rows_by_source(subject.race, "fastest_laps").get(source)
            if laps and key in laps.at:
                lap = laps.row(laps.at[key], FASTEST_LAP)
                if lap["number"] == row.get("number"):
                    facts |= {name: lap[name] for name in FASTEST_LAP}
        return self.words(subject, facts)

    def words(self, subject: Subject, facts: Row) -> str:
        """Facts about a row, as corrections have them, without the columns of its key."""
        table = subject.table
        left_out = ("positionOrder", *table.key)
        names = (name for name in correctable_columns(table.name, "main") if name not in left_out)
        return known_facts({name: facts.get(name) for name in names})


def drivers_to_count(all_rows: Collection[SourceRows]) -> set[Value]:
    """The drivers with several rows in a source, or with a row that only some sources have."""
    keys = [rows.at.keys() for rows in all_rows]
    in_some = {*chain(*keys)}.difference(set(keys[0]).intersection(*keys))
    return {key[0] for key in in_some.union(*(rows.several for rows in all_rows))}


def rows_of_driver(driver: Value, sides: Sides, name: str) -> Mapping[str, Mapping[Value, Row]]:
    """The rows of a driver, by source and by the number in the column with this name."""
    found: dict[str, dict[Value, Row]] = {}
    for source, rows in sides.rows.items():
        at = (at for at, key in enumerate(rows.keys) if key[0] == driver)
        all_rows = (rows.row(a, sides.subject.compared) for a in at)
        found[source] = {row.get(name): row for row in all_rows}
    return found


def judgement_of(subject: Subject, cases: Iterable[Case]) -> Judgement | None:
    """What differences between the rows of two sources can mean: the most doubtful group that fits
    one, with the largest of its differences. None if no group fits.
    """
    judgements: list[Judgement] = []
    for case in cases:
        is_lacking = case.column != ROW and None in case.values
        for group in groups_of(subject.table.name, case.column):
            if (group.fits_unknown or not is_lacking) and group.fits(case):
                judgements.append(Judgement(group, case.distance))
                break
    return min(judgements, key=lambda judgement: (judgement.doubt, -judgement.size), default=None)

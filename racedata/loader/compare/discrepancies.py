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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, combinations
from typing import NamedTuple

from racedata.formats import public_name
from racedata.loader.compare.differences import (
    FIT_UNKNOWN,
    FITS,
    LACKED,
    LACKED_BY_THE_RACE,
    LACKED_HERE,
    LACKED_THERE,
    Case,
    Group,
    groups_of,
)
from racedata.loader.compare.sides import Key, Said, Sides, SourceRows
from racedata.loader.correction_lines import ROW, Correction, correctable_columns, known_facts
from racedata.loader.corrections import CORRECTIONS
from racedata.loader.parts import REFERENCE, Row
from racedata.loader.sources import family
from racedata.loader.sql import insert
from racedata.model import FASTEST_LAP
from racedata.values import Value

NOT_CORRECTED = CORRECTIONS.with_name("not_corrected.csv")
OPEN, EXPLAINED, RESOLVED = "open", "explained", "resolved"
# What would settle a difference that is usually a convention, if one is not.
SETTLES = "An official classification, or a report of the race, would settle it."

# The kinds of which a missing row counts: each driver has one, or one for each car or stop.
WITH_ROWS = ("results", "sprint_results", "qualifying", "sprint_qualifying", "pit_stops")
IDS = ("driverId", "constructorId", "circuitId")

Values = Mapping[str, Value]  # by the name of the source
Judgement = tuple[Group, float]  # what a difference can mean, and how far apart the values are


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
                "value": value,
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

    def of(
        self, fact: tuple[str, str, str], ours: str | None, values: Values, group: Group
    ) -> tuple[str, str]:
        """The state of a discrepancy, and the reason. A fact is a table, a key and a column, as
        corrections have them.
        """
        table, key, column = fact
        correction = self.corrections.get((table, key.lower(), column))
        if correction and (column == ROW or correction.right == ours):
            return RESOLVED, correction.witnesses
        kept = self.kept.get(fact)
        if kept and kept["here"] == ("\\N" if ours is None else ours):
            settles = f". {group.settles or SETTLES}" if kept["state"] == OPEN else ""
            return kept["state"], kept["reason"] + settles
        if group.is_convention:
            return EXPLAINED, group.meaning
        agreeing = [source for source, value in values.items() if value == ours]
        # Sources of a family descend from one. Together, they are one witness, which agrees if one
        # of them does. Two witnesses or more must agree, and more than disagree: see
        # "Discrepancies" in docs/data.md. With three families, two that agree are always more; of
        # four, the other two may also agree.
        families = {*map(family, agreeing)}
        others = {*map(family, values)} - families
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
        all_rows = sides.rows.values()
        if len(all_rows) < 2:
            return
        columns = [
            column
            for column in sides.compared
            if sum(self.said.has(sides, source, column) for source in sides.rows) > 1
        ]
        first, *others = (rows.values(columns) for rows in all_rows)
        differing = {
            key for table in others if table != first for key, _ in table.items() ^ first.items()
        }
        several = {key for rows in all_rows for key in rows.several}
        for key in differing - several:
            rows = self.rows_with(sides, key)
            for column in columns if len(rows) > 1 else ():
                yield from self.in_column(sides, column, key, rows)
        if sides.kind in WITH_ROWS:
            yield from self.rows_in_some(sides)

    def rows_with(self, sides: Sides, key: Key) -> dict[str, Row]:
        """The rows with a key, by source. Of a fastest lap, also empty ones: of those who drove."""
        results: Mapping[str, SourceRows] = {}
        if sides.kind == "fastest_laps" and sides.race:
            results = self.said.rows_by_source(sides.race, "results")
        if any(key in rows.several for rows in results.values()):
            return {}  # who drove two cars
        found: dict[str, Row] = {}
        for source, rows in sides.rows.items():
            if key in rows.at:
                found[source] = rows.row(rows.at[key], sides.compared)
            elif source in results and key in results[source].at:
                found[source] = dict.fromkeys(FASTEST_LAP)
        return found

    def in_column(
        self, sides: Sides, column: str, key: Key, rows: Mapping[str, Row]
    ) -> Iterator[Discrepancy]:
        """The discrepancy in a column of the rows with a key, if it is one."""
        values = {
            source: row.get(column)
            for source, row in rows.items()
            if row.get(column) is not None
            or (sides.lacks_count and self.said.has(sides, source, column))
        }
        if len({*values.values()}) < 2:
            return
        if column == "constructorId" and self.follows_results(sides, key, values):
            return
        judgement = judgement_of(
            self.case(sides, column, key, {one: rows[one], other: rows[other]})
            for one, other in combinations(values, 2)
            if values[one] != values[other]
        )
        if not judgement and None not in values.values():
            return
        name = "constructor" if column == "constructorId" else column
        ours = next(iter(self.said.served(sides, key)), {}).get(name)
        if not judgement:
            is_known = column in sides.rows[sides.first].known
            lacking = LACKED_HERE if is_known else LACKED_BY_THE_RACE
            judgement = LACKED[lacking if ours is None else LACKED_THERE], 0
        yield self.discrepancy(sides, key, name, ours, values, judgement)

    def case(self, sides: Sides, column: str, key: Key, rows: Mapping[str, Row]) -> Case:
        """A difference between two sources, with what they say about the race."""
        race = sides.race
        results = self.said.rows_by_source(race, "results").get(next(iter(rows))) if race else None
        season, name = (race.season, race.name) if race else (None, "")
        sources = [sides.rows[source] for source in rows]
        table = sides.table.name
        return Case(table, column, key, [*rows.values()], sources, season, name, results)

    def follows_results(self, sides: Sides, key: Key, values: Values) -> bool:
        """Whether each source only repeats the constructor of its results, which differ too."""
        if sides.kind == "results" or "driverId" not in sides.key_columns or not sides.race:
            return False
        driver = (key[sides.key_columns.index("driverId")],)
        results = self.said.rows_by_source(sides.race, "results")
        return all(
            source in results
            and driver not in results[source].several
            and results[source].column("constructorId").get(driver) == constructor
            for source, constructor in values.items()
        )

    def rows_in_some(self, sides: Sides) -> Iterator[Discrepancy]:
        """The rows that only some sources have. A driver may have several, which differ in the
        number of the car or of the stop. If two sources have as many rows of a driver, they have
        the same rows, even if the numbers differ.
        """
        has_stops = "stop" in sides.key_columns
        first, *others = (Counter(key[0] for key in rows.keys) for rows in sides.rows.values())
        drivers = {driver for other in others for driver, _ in other.items() ^ first.items()}
        for driver in drivers:
            by_number = rows_of_driver(driver, sides, "stop" if has_stops else "number")
            has_several = any(len(rows) > 1 for rows in by_number.values())
            for number in dict.fromkeys(chain.from_iterable(by_number.values())):
                key = (driver, number) if has_stops else (driver,)
                car = (number,) if has_several and not has_stops else ()
                having = {
                    source: rows[number] for source, rows in by_number.items() if number in rows
                }
                most = max(len(by_number[source]) for source in having)
                # in the order of the sources; None if one lacks the row
                said = {
                    source: having.get(source)
                    for source, rows in by_number.items()
                    if source in having or len(rows) < most
                }
                yield from self.row_in_some(sides, key, said, car)

    def row_in_some(
        self, sides: Sides, key: Key, said: Mapping[str, Row | None], car: tuple[Value, ...]
    ) -> Iterator[Discrepancy]:
        """The discrepancy about a row that some sources have and others lack. `car` has the number
        of the car, if the driver has several.
        """
        # Each row is judged alone.
        judgement = judgement_of(
            self.case(sides, ROW, key, {source: row, other: row})
            for source, row in said.items()
            for other in said
            if row and not said[other]
        )
        if judgement:
            served = self.said.served(sides, key)
            ours = [row for row in served if not car or row.get("number", *car) == car[0]]
            value = self.words(sides, ours[0]) if ours else None
            values = {
                source: self.row_in_words(sides, source, key, row) if row else None
                for source, row in said.items()
            }
            yield self.discrepancy(sides, key, ROW, value, values, judgement, car)

    # In words.

    def discrepancy(
        self,
        sides: Sides,
        key: Key,
        column: str,
        ours: Value,
        said: Values,
        judgement: Judgement,
        car: tuple[Value, ...] = (),
    ) -> Discrepancy:
        """A discrepancy about a column, as corrections call it. `ours` is the value here."""
        race, (group, size) = sides.race, judgement
        at = (race.season, int(race.facts["round"])) if race else ()
        name = "/".join(map(str, (*at, *key, *car)))
        named = dict(zip(sides.key_columns, key))
        ids = {id: self.said.id_of(id, named.get(id, named.get(REFERENCE[id]))) for id in IDS}
        if race:
            ids["circuitId"] = self.circuits[sides.race_id]
        value, values = text_of(ours), {source: text_of(each) for source, each in said.items()}
        fact = sides.table.name, name, column
        state, explanation = self.reasons.of(fact, value, values, group)
        row = {
            "kind": sides.kind,
            "key": name,
            "columnName": column,
            "year": race.season if race else None,
            "raceId": sides.race_id,
            **ids,
            "value": value,
            "state": state,
            "explanation": explanation,
            "doubt": group.doubt,
        }
        newest = (-at[0], at[1]) if at else (0, 0)
        order = (group.doubt, -size, *newest, sides.kind, name, column)
        return Discrepancy(order, row, values)

    def row_in_words(self, sides: Sides, source: str, key: Key, row: Row) -> str:
        """The facts of a row of a source, as corrections have them."""
        facts = {**row, "constructor": row.get("constructorId"), "status": row.get("statusId")}
        if sides.kind == "results" and sides.race:
            laps = self.said.rows_by_source(sides.race, "fastest_laps").get(source)
            if laps and key in laps.at:
                lap = laps.row(laps.at[key], FASTEST_LAP)
                if lap["number"] == row.get("number"):
                    facts |= {name: lap[name] for name in FASTEST_LAP}
        return self.words(sides, facts)

    def words(self, sides: Sides, facts: Row) -> str:
        """Facts about a row, as corrections have them, without the columns of its key."""
        table = sides.table
        left_out = ("positionOrder", *table.key)
        names = (name for name in correctable_columns(table.name, "main") if name not in left_out)
        return known_facts({name: facts.get(name) for name in names})


def rows_of_driver(driver: Value, sides: Sides, name: str) -> Mapping[str, Mapping[Value, Row]]:
    """The rows of a driver, by source and by the number in the column with this name."""
    found: dict[str, dict[Value, Row]] = {}
    for source, rows in sides.rows.items():
        at = (at for at, key in enumerate(rows.keys) if key[0] == driver)
        all_rows = (rows.row(a, sides.compared) for a in at)
        found[source] = {row.get(name): row for row in all_rows}
    return found


def judgement_of(cases: Iterable[Case]) -> Judgement | None:
    """What differences between the rows of two sources can mean: the most doubtful group that fits
    one, with the largest of its differences. None if no group fits.
    """
    judgements: list[Judgement] = []
    for case in cases:
        is_lacking = case.column != ROW and None in case.values
        for group in groups_of(case.table, case.column):
            condition = group.condition
            if (condition in FIT_UNKNOWN or not is_lacking) and FITS[condition](case):
                judgements.append((group, case.distance))
                break
    return min(judgements, key=lambda judgement: (judgement[0].doubt, -judgement[1]), default=None)

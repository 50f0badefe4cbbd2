"""Compares a database with another source, fact by fact: `racedata check --against SOURCE`.

matching.py says which race, driver and constructor is which, differences.py what a difference can
mean. Not compared: facts that came from that source; the values in results of a driver who has two
in a race (shared cars); and statuses, because each source has its own words. A row that only one of
the two has is a difference. So is a value that only one has, if the other has such values for other
drivers in the race. If the database lacks a value for a whole race, it is a difference if it has
such values for other races of the season.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from racedata.formats import counted, listed
from racedata.loader.correct import apply_corrections
from racedata.loader.correction_lines import columns_of
from racedata.loader.corrections import CORRECTIONS, corrections_at
from racedata.loader.differences import (
    GROUPS,
    LACKED_BY_OURS,
    LACKED_BY_THE_RACE,
    LACKED_BY_THEIRS,
    Group,
    Row,
    distance,
    groups_of,
)
from racedata.loader.errors import Progress
from racedata.loader.existing import ExistingDatabase, read_only_uri
from racedata.loader.matching import find, races_in_both
from racedata.loader.sources import second_opinion
from racedata.loader.stage import staged
from racedata.model import BY_NAME, KINDS, STANDINGS
from racedata.values import Value

# The columns that are compared, by kind (as in origins) and table.
COMPARED = {
    **{("races", name): BY_NAME[name].compared for name in ("races", "sessions")},
    **{(kind.name, kind.part_of or kind.name): kind.compared for kind in KINDS.values()},
}
# The columns of the lists.
COMPARED_LISTS = {name: BY_NAME[name].compared for name in ("drivers", "constructors", "circuits")}
# The tables whose rows are counted, and the column that tells two rows of a driver apart.
COUNTED = {
    "results": "number",
    "sprint_results": "number",
    "qualifying": "number",
    "sprint_qualifying": "number",
    "pit_stops": "stop",
}
RACES = """SELECT raceId AS id, year || '/' || round || ' ' || name AS race,
    year || '/' || round AS key FROM stage.races"""
# The references of drivers, by the ids of each side: ours, if both have the driver.
DRIVERS = {
    "stage": "SELECT driverId, driverRef FROM stage.drivers",
    "addition": """SELECT theirs.driverId, ifnull(ours.driverRef, theirs.driverRef) AS driverRef
        FROM addition.drivers AS theirs LEFT JOIN ids.drivers AS driver ON added = theirs.driverId
        LEFT JOIN stage.drivers AS ours ON ours.driverId = driver.id""",
}
# Sources differ in whether equal points share a place, so only places with unique points are
# compared.
UNSHARED_PLACES = """
    CREATE TABLE ids.{table} AS
    SELECT raceId, {of}Id, points, wins,
        CASE count(*) OVER (PARTITION BY raceId, points) WHEN 1 THEN position END AS position
    FROM stage.{table}"""

# The parts that are compared: both have them, from different sources.
COMPARED_RECORDS = """
    INSERT INTO ids.compared
    SELECT old.kind, races.added, races.id
    FROM ids.races JOIN stage.origins AS old ON old.raceId = races.id
        JOIN addition.origins AS new ON new.raceId = added
    WHERE new.kind = old.kind AND (SELECT name FROM stage.sources WHERE sourceId = old.sourceId)
        <> (SELECT name FROM addition.sources WHERE sourceId = new.sourceId)"""
# The reference of a row's constructor: ours for both, if we have that constructor.
OF_CONSTRUCTOR = {
    "ours": """
        (SELECT constructorRef FROM stage.constructors
         WHERE constructorId = ours.constructorId)""",
    "theirs": """
        (SELECT ifnull(own.constructorRef, their.constructorRef)
         FROM addition.constructors AS their
         LEFT JOIN ids.constructors AS both ON added = their.constructorId
         LEFT JOIN stage.constructors AS own ON own.constructorId = both.id
         WHERE their.constructorId = theirs.constructorId)""",
}
# Races without a match, although the season has another race at the same circuit.
OTHER_DATES = """
    SELECT old.year || '/' || old.round || ' ' || old.name, old.year || '/' || old.round,
        old.date, new.date
    FROM addition.races AS new JOIN addition.circuits AS theirs USING (circuitId),
        stage.races AS old JOIN stage.circuits AS ours ON ours.circuitId = old.circuitId
    WHERE new.year = old.year AND ours.circuitRef = theirs.circuitRef
        AND new.raceId NOT IN (SELECT added FROM ids.races)
        AND old.raceId NOT IN (SELECT id FROM ids.races)"""


# The group, how far apart the values are, the race and a line for corrections.csv.
Difference = tuple[Group, float, str, str]


class Section(NamedTuple):
    """A section of the report: for each difference, the race and a line for corrections.csv."""

    group: Group
    rows: Sequence[tuple[str, str]]  # the largest difference first


def compare(path: Path, source: str, progress: Progress) -> tuple[list[Section], list[str]]:
    """How a source differs from the database at `path`, and lines that say what was compared.

    Raises LoadError, sqlite3.Error or OSError.
    """
    other = second_opinion(source)
    ExistingDatabase(path).close()
    # Correct the source too: an error that both had would otherwise be a difference.
    with (
        other.opened(progress) as fill,
        staged(progress) as stage,
    ):
        fill(stage)
        apply_corrections(stage, corrections_at(CORRECTIONS, progress))
        stage.db.execute("COMMIT")
        progress("comparing")
        with closing(sqlite3.connect("file::memory:", uri=True)) as db:
            db.execute("ATTACH ? AS stage", (read_only_uri(path),))
            db.execute("ATTACH ? AS addition", (stage.path,))
            db.execute("ATTACH ':memory:' AS ids")
            match(db)
            return differences(db), list(remarks(db, other.name))


def match(db: sqlite3.Connection) -> None:
    """Fills the tables in `ids`: which row of theirs is which of ours, and what is compared."""
    for name in ("races", *COMPARED_LISTS):
        db.execute(f"CREATE TABLE ids.{name} (added INTEGER PRIMARY KEY, id INTEGER UNIQUE)")
    db.execute(
        "CREATE TABLE ids.compared (kind TEXT, added INTEGER, id INTEGER, PRIMARY KEY (kind, id))"
    )
    for (year,) in db.execute("SELECT DISTINCT year FROM addition.races").fetchall():
        db.executemany("INSERT INTO ids.races VALUES (?, ?)", races_in_both(db, year).items())
    for name in COMPARED_LISTS:
        names = BY_NAME[name].names
        for row in db.execute(f"SELECT {', '.join(names)} FROM addition.{name}").fetchall():
            own = find(db, name, dict(zip(names, row)))
            db.execute(f"INSERT OR IGNORE INTO ids.{name} VALUES (?, ?)", (row[0], own))
    db.execute(COMPARED_RECORDS)
    for table in STANDINGS:
        db.execute(UNSHARED_PLACES.format(table=table, of=table.removesuffix("_standings")))


def differences(db: sqlite3.Connection) -> list[Section]:
    """All differences, by group."""
    found: dict[Group, list[tuple[float, str, str]]] = {group: [] for group in GROUPS}
    for group, size, race, text in (
        *differences_of_lists(db),
        *differences_of_rows(db),
        *rows_in_one(db),
    ):
        found[group].append((size, race, text))
    for rows in found.values():
        rows.sort(key=lambda row: -row[0])
    return [Section(group, [row[1:] for row in rows]) for group, rows in found.items() if rows]


def differences_of_lists(db: sqlite3.Connection) -> Iterator[Difference]:
    """The differences of calendars and lists."""
    (of_dates,) = groups_of("races", "date")
    for race, key, *dates in db.execute(OTHER_DATES):
        yield of_dates, 0, race, line("races", key, "date", *dates)
    for table, columns in COMPARED_LISTS.items():
        for key, *values in db.execute(list_in_both(table, columns)):
            for group, size, text in differences_of(table, key, columns, values):
                yield group, size, "-", text


def differences_of_rows(db: sqlite3.Connection) -> Iterator[Difference]:
    """The differences of rows that both have."""
    for (kind, table), columns in COMPARED.items():
        for race, key, values, ids in rows_that_differ(db, kind, table, columns):
            for group, size, text in differences_of(table, key, columns, values):
                yield group, size, race, text
            for group, text in lacking_values(db, table, key, columns, values, ids):
                yield group, 0, race, text


def differences_of(
    table: str, key: str, columns: Sequence[str], values: Sequence[Value]
) -> Iterator[tuple[Group, float, str]]:
    """The differences in a row that both have, with our columns and then theirs: the group, how
    far apart the values are, and a line for corrections.csv.
    """
    ours, theirs = dict(zip(columns, values)), dict(zip(columns, values[len(columns) :]))
    for column in columns:
        if ours[column] == theirs[column] or None in (ours[column], theirs[column]):
            continue
        for group in groups_of(table, column):
            if group.fits(column, ours, theirs):
                text = line(table, key, column, ours[column], theirs[column])
                yield group, distance(column, ours, theirs), text
                break


def has_values(db: sqlite3.Connection, schema: str, table: str, column: str, race: int) -> bool:
    """Whether a race has values in a column. Never for standings: they lack some by convention."""
    sql = f"SELECT 1 FROM {schema}.{table} WHERE raceId = ? AND {column} NOT NULL"
    return table not in STANDINGS and db.execute(sql, (race,)).fetchone() is not None


def lacks_alone(db: sqlite3.Connection, table: str, column: str, race: int) -> bool:
    """Whether a race of ours has no value in a column of its records, but others of its season
    have some.
    """
    sql = f"""
        SELECT 1 FROM stage.{table} WHERE {column} NOT NULL AND raceId IN (
            SELECT raceId FROM stage.races
            WHERE year = (SELECT year FROM stage.races WHERE raceId = ?))"""
    return (
        table not in ("races", "sessions", *STANDINGS)
        and not has_values(db, "stage", table, column, race)
        and db.execute(sql, (race,)).fetchone() is not None
    )


def list_in_both(table: str, columns: Sequence[str]) -> str:
    """SQL for the rows of a list that are in both: the reference, our columns and theirs."""
    id, reference, *_ = BY_NAME[table].names
    values = [f"{row}.{column}" for row in ("ours", "theirs") for column in columns]
    return f"""
        SELECT ours.{reference}, {", ".join(values)} FROM ids.{table} AS same
        JOIN stage.{table} AS ours ON ours.{id} = same.id
        JOIN addition.{table} AS theirs ON theirs.{id} = same.added ORDER BY 1"""


def rows_that_differ(
    db: sqlite3.Connection, kind: str, table: str, columns: Sequence[str]
) -> Iterator[tuple[str, str, Sequence[Value], tuple[int, int]]]:
    """The race, key and values of each row that differs, and the ids of the race in both."""
    rows = db.execute(rows_in_both(table, columns), (kind,))
    for our_id, their_id, race, key, *values in rows.fetchall():
        yield race, key, values, (our_id, their_id)


def lacking_values(
    db: sqlite3.Connection,
    table: str,
    key: str,
    columns: Sequence[str],
    values: Sequence[Value],
    ids: tuple[int, int],
) -> Iterator[tuple[Group, str]]:
    """The values that one of the two lacks in a row, though not for everybody in that race; and
    those that we lack for the whole race, though not for the season.
    """
    for column, ours, theirs in zip(columns, values, values[len(columns) :]):
        text = line(table, key, column, ours, theirs)
        if ours is None is not theirs and has_values(db, "stage", table, column, ids[0]):
            yield LACKED_BY_OURS, text
        if ours is None is not theirs and lacks_alone(db, table, column, ids[0]):
            yield LACKED_BY_THE_RACE, text
        if theirs is None is not ours and has_values(db, "addition", table, column, ids[1]):
            yield LACKED_BY_THEIRS, text


def rows_in_one(db: sqlite3.Connection) -> Iterator[Difference]:
    """The rows that only one of the two has, of races that both have."""
    for table in COUNTED:
        ours, theirs = rows_of(db, table, "stage", "id"), rows_of(db, table, "addition", "added")
        for race, key in sorted(ours.keys() | theirs.keys()):
            both = ours.get((race, key), {}), theirs.get((race, key), {})
            for own, others, is_ours in ((*both, True), (*both[::-1], False)):
                # a driver whose car has another number has as many rows in both
                for car in own.keys() - others.keys() if len(own) > len(others) else ():
                    row = own[car]
                    facts = "; ".join(
                        f"{name}={value}" for name, value in row.items() if value is not None
                    )
                    has_others = table == "pit_stops" or len(own) + len(others) > 1
                    text = line(
                        table,
                        f"{key}/{car}" if has_others else key,
                        "row",
                        *((facts, None) if is_ours else (None, facts)),
                    )
                    for group in groups_of(table, "row"):
                        if group.fits("row", row, row):
                            yield group, 0, race, text
                            break


def rows_of(
    db: sqlite3.Connection, table: str, schema: str, race: str
) -> dict[tuple[str, str], dict[Value, Row]]:
    """The rows of a table, by race and key, and then by what tells a driver's rows apart.

    `race` is the column of `ids.compared` with the ids of this schema.
    """
    columns = {
        name: column.shown.replace("stage.", f"{schema}.")
        for name, column in columns_of(table).items()
        if name not in ("positionOrder", *BY_NAME[table].key)
    }
    found: dict[tuple[str, str], dict[Value, Row]] = {}
    shown = ", ".join((COUNTED[table], *columns.values()))
    for title, key, car, *values in db.execute(
        f"""SELECT race, key || '/' || driver.driverRef, {shown}
            FROM ({RACES}) AS race JOIN ids.compared AS same USING (id)
                JOIN {schema}.{table} AS corrected ON corrected.raceId = same.{race}
                JOIN ({DRIVERS[schema]}) AS driver ON driver.driverId = corrected.driverId
            WHERE kind = ?""",
        (table,),
    ):
        found.setdefault((title, key), {})[car] = dict(zip(columns, values))
    return found


def line(table: str, key: str, column: str, wrong: Value, right: Value) -> str:
    """A line for corrections.csv, without its source."""
    fields = [r"\N" if value is None else str(value) for value in (wrong, right)]
    quoted = [f'"{field}"' if "," in field else field for field in fields]
    name = "constructor" if column == "constructorId" else column
    return ",".join([table, key, name, *quoted, ""])


def rows_in_both(table: str, columns: Sequence[str]) -> str:
    """SQL for the rows of a table that are in both and differ.

    Its columns: the ids of the race in both, the race, the key, our columns and theirs.
    """
    names = ["raceId"] if table == "races" else BY_NAME[table].key
    keys, joins, conditions = [], [], []
    for name in names:
        if name == "raceId":
            keys.append("race.year || '/' || race.round")
        elif name in ("driverId", "constructorId"):
            of = name.removesuffix("Id")
            keys.append(f"{of}Ref")
            joins.append(
                f"JOIN ids.{of}s AS {of} ON {of}.id = ours.{name} JOIN stage.{of}s USING ({name})"
            )
            conditions.append(f"theirs.{name} = {of}.added")
        else:
            keys.append(f"ours.{name}")
            conditions.append(f"theirs.{name} = ours.{name}")
    schema = "ids" if table in STANDINGS else "stage"
    is_same = " AND ".join(["theirs.raceId = same.added", *conditions])
    values = {
        row: [
            OF_CONSTRUCTOR[row] if column == "constructorId" else f"{row}.{column}"
            for column in columns
        ]
        for row in ("ours", "theirs")
    }
    differs = " OR ".join(map(" IS NOT ".join, zip(values["ours"], values["theirs"])))
    return f"""
        SELECT same.id, same.added, race.year || '/' || race.round || ' ' || race.name,
            {" || '/' || ".join(keys)},
            {", ".join([*values["ours"], *values["theirs"]])}
        FROM ids.compared AS same JOIN stage.races AS race ON race.raceId = same.id
            JOIN {schema}.{table} AS ours ON ours.raceId = same.id {" ".join(joins)}
            JOIN addition.{table} AS theirs ON {is_same}
        WHERE kind = ? GROUP BY {", ".join(f"ours.{name}" for name in names)}
        HAVING count(*) = 1 AND ({differs})
        ORDER BY race.year DESC, race.round"""


def remarks(db: sqlite3.Connection, source: str) -> Iterator[str]:
    """Lines that say which races have no match, and what was compared."""
    rows = db.execute(
        """SELECT year || '/' || round || ' ' || name FROM addition.races
           WHERE raceId NOT IN (SELECT added FROM ids.races)
               AND year IN (SELECT year FROM stage.races)
               AND raceId IN (SELECT raceId FROM addition.origins WHERE kind <> 'races')
           ORDER BY year, round"""
    ).fetchall()
    if rows:
        races = listed([race for (race,) in rows])
        yield f"{races}: no such race in the database; not compared"
    counts = dict(db.execute("SELECT kind, count(*) FROM ids.compared GROUP BY kind"))
    kinds = ", ".join(
        ("" if kind == "races" else f"{kind.replace('_', ' ')} of ") + counted(counts[kind], "race")
        for kind in ("races", *KINDS)
        if kind in counts
    )
    yield f"compared with {source}: {kinds or 'nothing'}"
    lists = {
        name: db.execute(f"SELECT count(id) FROM ids.{name}").fetchone()[0]
        for name in COMPARED_LISTS
    }
    yield "compared lists: " + ", ".join(f"{name} ({rows:,})" for name, rows in lists.items())

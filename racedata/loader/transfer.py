"""Copies the rows that a merge takes from the `addition` to the `stage`, with the ids of the stage.

parts.py decides which parts are taken, and notes them in `ids.parts`: kinds of records of races.
The tables in `ids` map ids in the addition (`added`) to ids in the stage (`id`).
"""

import sqlite3

from racedata.loader.corrections import merge_corrections_of_list
from racedata.loader.errors import LoadError
from racedata.loader.matching import LISTS, find
from racedata.loader.sql import insertion, update_known
from racedata.loader.stage import of_kind
from racedata.model import BY_NAME, FASTEST_LAP, RECORDS, Table


def create_ids(db: sqlite3.Connection) -> None:
    """Creates the tables in `ids`, which merge.py describes.

    The columns of a key have types: a join with columns without one would scan the table.
    """
    for name in (*LISTS, "races", "sources"):
        unique = "UNIQUE" if name == "drivers" else ""
        db.execute(
            f"CREATE TABLE ids.{name} (added INTEGER PRIMARY KEY, id INTEGER NOT NULL {unique})"
        )
    db.execute(
        """CREATE TABLE ids.parts (
               kind TEXT, added INTEGER, id INTEGER, PRIMARY KEY (kind, added))"""
    )
    # the races whose sessions are not taken, whatever the rule says
    db.execute("CREATE TABLE ids.without_sessions (added INTEGER PRIMARY KEY)")
    # A driver has one fastest lap in a race, but may have two results: shared cars. The number and
    # the place are those of the car.
    db.execute(
        f"""CREATE TABLE ids.fastest (
                raceId INTEGER, driverId INTEGER, car, place, {", ".join(FASTEST_LAP)},
                PRIMARY KEY (raceId, driverId))"""
    )
    # Cars that have another constructor in the stage's results, if these stay.
    db.execute(
        """CREATE TABLE ids.cars (
               race INTEGER, driver INTEGER, added INTEGER, id INTEGER,
               PRIMARY KEY (race, driver, added))"""
    )


def next_id(db: sqlite3.Connection, table: str, id: str) -> int:
    (last,) = db.execute(f"SELECT max({id}) FROM stage.{table}").fetchone()
    return (last or 0) + 1


def ids_in_parts(name: str) -> str:
    """SQL for the ids in a list, such as drivers, that the copied records and entries name."""
    id = BY_NAME[name].names[0]
    rows = [(kind, f"addition.{kind}") for kind in RECORDS if id in BY_NAME[kind].names]
    if id in BY_NAME["entries"].names:
        rows.append(("results", "addition.entries"))
    if name == "drivers":
        rows.append(("fastest_laps", f"(SELECT * FROM {of_kind('fastest_laps', 'addition')})"))
    return " UNION ".join(
        f"SELECT {id} FROM {table} JOIN ids.parts ON kind = '{kind}' AND added = raceId"
        for kind, table in rows
    )


def add_to_list(db: sqlite3.Connection, name: str, needed: str, updates: bool) -> None:
    """Finds the rows of a list, such as drivers, in the stage, and adds the missing ones.

    `needed` is the SQL of their ids in the addition. `updates` says whether its facts replace those
    of the stage.
    """
    table = BY_NAME[name]
    id, *names = table.names  # the first of `names` is the reference or text, which stays
    rows = db.execute(
        f"""SELECT {", ".join(table.names)} FROM addition.{name}
            WHERE {id} IN ({needed}) AND {id} NOT IN (SELECT added FROM ids.{name})
            ORDER BY {id}"""
    ).fetchall()
    for added, *values in rows:
        row = dict(zip(names, values))
        own = find(db, name, row)
        if own is None:
            # A status keeps its id if that is free, because addresses have it.
            is_used = db.execute(f"SELECT 1 FROM stage.{name} WHERE {id} = ?", (added,)).fetchone()
            own = added if name == "status" and not is_used else next_id(db, name, id)
            db.execute(insertion(f"stage.{name}", len(table.names)), (own, *values))
            merge_corrections_of_list(db, name, values[0], own, names)
        elif updates and name != "status":
            facts = {column: row[column] for column in names[1:]}
            update_known(db, f"stage.{name}", facts, id, own)
            known = [column for column, value in facts.items() if value is not None]
            merge_corrections_of_list(db, name, values[0], own, known)
        try:
            db.execute(f"INSERT INTO ids.{name} VALUES (?, ?)", (added, own))
        except sqlite3.IntegrityError:
            raise two_in_one(db, added, own) from None


def two_in_one(db: sqlite3.Connection, added: int, own: int) -> LoadError:
    """The error for two drivers in the addition that are one driver in the stage."""
    names = db.execute(
        """SELECT (SELECT group_concat(name) FROM addition.sources),
               new.driverRef, other.driverRef, old.driverRef
           FROM ids.drivers JOIN addition.drivers AS other ON other.driverId = added,
               addition.drivers AS new JOIN stage.drivers AS old
           WHERE id = old.driverId AND old.driverId = ? AND new.driverId = ?""",
        (own, added),
    ).fetchone()
    text = "{}: drivers {!r} and {!r} both match {!r}, by reference or by birth date and surname"
    return LoadError(
        f"{text.format(*names)}; expected only one: correct that source, or leave it out"
    )


def copy_rows(db: sqlite3.Connection, table: Table, kind: str, year: int | None = None) -> None:
    """Replaces the rows of the parts that are taken, of one season or of all."""
    values, joins = in_the_stage(table, kind)
    columns = "*"
    if table.id:
        # New rows get the ids of the rows that they replace, then free ones. So merging twice
        # changes nothing.
        columns = f"*, row_number() OVER (PARTITION BY raceId ORDER BY {table.id}) AS n"
        db.execute(
            f"""CREATE TABLE ids.replaced AS SELECT raceId, {table.id} AS id,
                    row_number() OVER (PARTITION BY raceId ORDER BY {table.id}) AS n
                FROM stage.{table.name}
                WHERE raceId IN (SELECT id FROM ids.parts WHERE kind = ?)""",
            (kind,),
        )
        joins.append("LEFT JOIN ids.replaced ON replaced.raceId = parts.id AND replaced.n = new.n")
        last = next_id(db, table.name, table.id) - 1
        number = f"row_number() OVER (ORDER BY replaced.id NOT NULL, new.{table.id})"
        values = {table.id: f"ifnull(replaced.id, {last} + {number})", **values}
    # Old races are gone already, with their calendar; copy_records deletes old entries.
    if kind == table.name != "races":
        db.execute(
            f"""DELETE FROM stage.{table.name}
                WHERE raceId IN (SELECT id FROM ids.parts WHERE kind = ?)""",
            (kind,),
        )
    of_year, years = ("", []) if year is None else ("WHERE new.year = ?", [year])
    db.execute(
        f"""INSERT INTO stage.{table.name} ({", ".join(values)})
            SELECT {", ".join(values.values())}
            FROM (SELECT {columns} FROM addition.{table.name}) AS new
            JOIN ids.parts ON parts.kind = ? AND parts.added = new.raceId
            {" ".join(joins)} {of_year}""",
        [kind, *years],
    )
    db.execute("DROP TABLE IF EXISTS ids.replaced")


def in_the_stage(table: Table, kind: str) -> tuple[dict[str, str], list[str]]:
    """The SQL of the columns of new rows, with the ids of the stage, and the joins for these."""
    values, joins = {}, []
    for column in table.columns:
        if column.name == "raceId":
            values["raceId"] = "parts.id"
        elif column.parent:
            joins.append(
                f"LEFT JOIN ids.{column.parent} ON {column.parent}.added = new.{column.name}"
            )
            values[column.name] = f"{column.parent}.id"
        elif column.name != table.id and not (kind == "results" and column.name in FASTEST_LAP):
            values[column.name] = f"new.{column.name}"
    if {"driverId", "constructorId"} <= {*values} and kind != "results":
        joins.append(
            """LEFT JOIN ids.cars ON cars.race = parts.id AND cars.driver = drivers.id
                   AND cars.added = new.constructorId"""
        )
        values["constructorId"] = "ifnull(cars.id, constructors.id)"
    return values, joins


def note_cars(db: sqlite3.Connection) -> None:
    """Notes the cars that have another constructor in results of the stage that stay.

    That constructor then counts in the other sessions of the race too: sources may give the same
    car different names, or disagree about it.
    """
    db.execute(
        """INSERT INTO ids.cars
           SELECT races.id, drivers.id, new.constructorId, old.constructorId
           FROM ids.races JOIN addition.results AS new ON new.raceId = races.added
           JOIN ids.drivers ON drivers.added = new.driverId
           JOIN stage.results AS old ON old.raceId = races.id AND old.driverId = drivers.id
           WHERE races.id NOT IN (SELECT id FROM ids.parts WHERE kind = 'results')
           GROUP BY races.id, drivers.id
           HAVING count(DISTINCT new.constructorId) = 1
               AND count(DISTINCT old.constructorId) = 1"""
    )


def note_fastest_laps(db: sqlite3.Connection) -> None:
    """Notes the fastest laps that are taken, and those of the stage if only results are taken."""
    columns = ", ".join(FASTEST_LAP)
    db.execute(
        f"""INSERT OR IGNORE INTO ids.fastest
            SELECT parts.id, drivers.id, number, positionText, {columns}
            FROM (SELECT * FROM {of_kind("fastest_laps", "addition")}) AS new
            JOIN ids.parts ON kind = 'fastest_laps' AND parts.added = new.raceId
            JOIN ids.drivers ON drivers.added = new.driverId ORDER BY positionOrder"""
    )
    db.execute(
        f"""INSERT OR IGNORE INTO ids.fastest
            SELECT raceId, driverId, number, positionText, {columns}
            FROM (SELECT * FROM {of_kind("fastest_laps", "stage")}) AS old
            WHERE raceId IN (SELECT id FROM ids.parts WHERE kind = 'results')
                AND raceId NOT IN (SELECT id FROM ids.parts WHERE kind = 'fastest_laps')
            ORDER BY positionOrder"""
    )


def set_fastest_laps(db: sqlite3.Connection) -> None:
    """Moves the fastest laps that were noted to the results, which copy_rows has replaced."""
    unknown = ", ".join(f"{name} = NULL" for name in FASTEST_LAP)
    db.execute(
        f"""UPDATE stage.results SET {unknown}
            WHERE raceId IN (SELECT id FROM ids.parts WHERE kind = 'fastest_laps')"""
    )
    columns = ", ".join(FASTEST_LAP)
    db.execute(
        f"""UPDATE stage.results
            SET ({columns}) = ({", ".join(f"new.{name}" for name in FASTEST_LAP)})
            FROM (
                SELECT resultId, fastest.*, row_number() OVER (
                    PARTITION BY raceId, driverId
                    -- a source may have another number for the car, or mix them up
                    ORDER BY laps < fastestLap, number IS car DESC, positionText IS place DESC,
                        positionOrder, resultId) AS n
                FROM ids.fastest JOIN (
                    SELECT resultId, raceId, driverId, number, laps, positionText, positionOrder
                    FROM stage.results) USING (raceId, driverId)) AS new
            WHERE n = 1 AND results.resultId = new.resultId"""
    )

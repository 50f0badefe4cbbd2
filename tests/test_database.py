"""racedata.database and hints: which files are rejected, and with which message."""

import csv
import io
import re
import shlex
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing

import pytest
from support import SAMPLE, spoiling
from support.loads import changed, select

from racedata.database import SCHEMA, SCHEMA_VERSION, DatabaseError, read, store_path
from racedata.formats import milliseconds
from racedata.hints import COMMAND


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (spoiling.missing, "is missing"),
        (spoiling.folder, "is not a regular file"),
        (spoiling.fifo, "is not a regular file"),
        (spoiling.device, "is not a regular file"),
        (spoiling.loop, "cannot be read (Too many levels of symbolic links)"),
        (spoiling.unreadable, "cannot be read ("),
        (spoiling.emptied, "is not an SQLite database; to build it"),
        (spoiling.text, "is not an SQLite database; move it away"),
        (spoiling.endless, "is not an SQLite database; move it away"),
        (spoiling.overwritten, "is not an SQLite database; move it away"),
        (spoiling.foreign, "is an SQLite database, but not a racedata database; move it away"),
        (
            spoiling.version(0),
            f"has schema version 0, which is older than this program's ({SCHEMA_VERSION}); to "
            "build a new",
        ),
        (
            spoiling.version(12),
            f"has schema version 12, which is newer than this program's ({SCHEMA_VERSION}); to "
            "build a new",
        ),
        (spoiling.truncated, "is damaged"),
        (spoiling.header_only, "is damaged"),
        (spoiling.grown, "is damaged"),
    ],
)
def test_a_file_that_cannot_be_served_is_rejected_with_its_fault_and_what_to_run(
    database, spoil, fault
):
    spoil(database)
    with pytest.raises(DatabaseError) as rejected:
        read(database)
    message = str(rejected.value)
    assert message.startswith(f"{database} {fault}")
    assert "\n" not in message
    assert ("; " in message) == ("cannot be read" not in fault)


@pytest.mark.parametrize(
    "spoil",
    [spoiling.missing, spoiling.emptied, spoiling.truncated, spoiling.version(3)],
)
def test_the_command_that_the_message_names_works(database, spoil):
    spoil(database)
    with pytest.raises(DatabaseError) as rejected:
        read(database)
    command = str(rejected.value).partition(f"run: {COMMAND} ")[2].replace("SOURCE", str(SAMPLE))
    run = [sys.executable, "-m", "racedata", *shlex.split(command)]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    read(database)


def test_the_command_in_a_message_is_the_one_that_was_started():
    code = (
        "import sys; sys.argv = ['/a b/racedata']; from racedata import hints; print(hints.BUILD)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert said.endswith("run: '/a b/racedata' load SOURCE --database FILE\n")


def test_the_schema_in_the_file_describes_each_column_or_names_the_table_it_refers_to(
    sample_database,
):
    undescribed = []
    for table, sql in select(
        sample_database, "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
    ):
        before = ""
        for line in sql.splitlines():
            if re.match(r" +\w+ +(INTEGER|TEXT)", line) and not re.search(
                "-- |REFERENCES", before + line
            ):
                undescribed.append(f"{table}:{line}")
            before = line if line.lstrip().startswith("--") else ""
    assert undescribed == []


def test_one_changed_bit_is_found_wherever_it_is(database):
    good = database.read_bytes()
    for _ in range(100):
        spoiling.flipped(database)
        with pytest.raises(DatabaseError):
            read(database)
        database.write_bytes(good)
    read(database)


VIEWS = {
    "race_results": "results",
    "sprint_race_results": "sprint_results",
    "poles": "(SELECT DISTINCT raceId FROM results WHERE grid = 1)",
    "weekend_points": """(SELECT raceId, driverId, constructorId FROM results
        UNION SELECT raceId, driverId, constructorId FROM sprint_results)""",
    "qualifying_results": "qualifying",
    "sprint_qualifying_results": "sprint_qualifying",
    "practice_results": "practice",
    "laps": "lap_times",
    "stops": "pit_stops",
    "driver_championship": "driver_standings",
    "constructor_championship": "constructor_standings",
}


def test_a_view_has_a_row_for_each_row_of_its_table_and_is_described(sample_database):
    views = select(sample_database, "SELECT name, sql FROM sqlite_schema WHERE type = 'view'")
    assert {name for name, _ in views} == {*VIEWS}
    for name, sql in views:
        counts = [
            select(sample_database, f"SELECT count(*) FROM {each}") for each in (name, VIEWS[name])
        ]
        assert counts[0] == counts[1]
        columns = sql.partition("SELECT")[2].partition("\nFROM")[0]
        # each line that ends a column
        for line in columns.strip("\n").splitlines():
            assert " -- " in line or not re.search(r"( AS \w+,?|^ +\w[\w., ]*,)$", line), line


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_says_where_and_for_which_constructor(sample_database, view):
    # the sample has standings of drivers without their results
    rows = "WHERE constructorRef NOT NULL" if view == "driver_championship" else ""
    [(number, *others)] = select(
        sample_database,
        f"""SELECT count(*), count(circuitRef), count(circuit), count(constructorRef),
                count(constructor)
            FROM {view} {rows}""",
    )
    assert number > 0
    assert others == [number] * 4


# By view, its columns with numbers, and those of the table that have the same as texts.
NUMBERS = {
    "race_results": "points seconds=milliseconds fastestLapSeconds=fastestLapTime",
    "sprint_race_results": "points seconds=milliseconds fastestLapSeconds=fastestLapTime",
    "qualifying_results": "q1 q2 q3",
    "sprint_qualifying_results": "q1 q2 q3",
    "practice_results": "seconds=milliseconds",
    "laps": "seconds=time",
    "stops": "seconds=milliseconds",
    "driver_championship": "points",
    "constructor_championship": "points",
}


@pytest.mark.parametrize(
    ("view", "columns"),
    [(view, each.split("=")) for view, columns in NUMBERS.items() for each in columns.split()],
)
def test_points_and_times_of_a_view_are_numbers(database, view, columns):
    column, of_table = columns[0], columns[-1]
    changed(database, "UPDATE lap_times SET time = '2:04:05.120' WHERE record = 5")

    def number(value):
        if isinstance(value, str) and ":" in value:
            return milliseconds(value) / 1000
        return (
            value if value is None else float(value) / (1000 if of_table == "milliseconds" else 1)
        )

    stored = select(database, f"SELECT {of_table} FROM {VIEWS[view]}")
    found = select(database, f"SELECT {column} FROM {view}")
    assert sorted(map(repr, found)) == sorted(repr((number(value),)) for (value,) in stored)
    assert any(value is not None for (value,) in found)


POLES = "SELECT driver FROM poles WHERE (year, round) = {}"
# What a view has: changes of a database before, a query, and its rows.
ROWS = {
    "the constructor of a driver in a championship is the last one": (
        [
            """UPDATE driver_standings SET constructors = constructors || ' ' ||
                   (SELECT constructorId FROM constructors WHERE constructorRef = 'alpine')
               WHERE DRIVER(norris)""",
            "UPDATE driver_standings SET constructors = '' WHERE DRIVER(sainz)",
        ],
        """SELECT DISTINCT driverRef, constructorRef FROM driver_championship
           WHERE year = 2023 AND driverRef IN ('norris', 'piastri', 'sainz') ORDER BY 1""",
        [("norris", "alpine"), ("piastri", "mclaren"), ("sainz", None)],
    ),
    "the points of a weekend are those of the race and the sprint": (
        [],
        """SELECT driverRef, racePoints, sprintPoints, points FROM weekend_points
           WHERE year = 2023 AND round = 18 AND driverRef IN ('leclerc', 'norris') ORDER BY 1""",
        [("leclerc", 0, 6, 6), ("norris", 18, 5, 23)],
    ),
    "without a sprint, they are those of the race": (
        [],
        """SELECT DISTINCT sprintPoints, racePoints = points FROM weekend_points
           WHERE year < 2021""",
        [(None, 1)],
    ),
    "who won": (
        [],
        """SELECT driver, constructor, circuit FROM race_results
           WHERE isWinner AND (year, round) IN (VALUES (2023, 18), (1957, 5))
           ORDER BY year, driver""",
        [
            ("Stirling Moss", "Vanwall", "Aintree"),
            ("Tony Brooks", "Vanwall", "Aintree"),
            ("Max Verstappen", "Red Bull", "Circuit of the Americas"),
        ],
    ),
    "who started, if only by a lap": (
        ["UPDATE results SET positionText = 'W' WHERE RACE(2023/18) AND DRIVER(zhou)"],
        """SELECT DISTINCT positionText FROM race_results WHERE NOT isStart UNION ALL
           SELECT isStart FROM race_results WHERE driverRef = 'zhou' AND positionText = 'W'
           ORDER BY 1""",
        [(1,), ("F",), ("W",)],
    ),
    "who was champion": (
        [],
        "SELECT year, driver FROM driver_championship WHERE isChampion",
        [
            (1957, "Juan Fangio"),
            (1997, "Jacques Villeneuve"),
            (2005, "Fernando Alonso"),
            (2021, "Max Verstappen"),
            (2023, "Max Verstappen"),
        ],
    ),
    # Moss and Brooks shared the car of the pole; Moss had qualified it.
    "who had the pole": ([], POLES.format("(1957, 5)"), [("Stirling Moss",)]),
    "who had the pole and did not start": (
        ["UPDATE results SET positionText = 'W', laps = 0 WHERE RACE(2023/18) AND DRIVER(leclerc)"],
        POLES.format("(2023, 18)"),
        [("Charles Leclerc",)],
    ),
    "in 2022, on a weekend with a sprint, the fastest in qualifying had it": (
        [
            "UPDATE qualifying SET position = 21 - position WHERE RACE(2023/18)",
            "UPDATE races SET year = 2022 WHERE RACE(2023/18)",
        ],
        POLES.format("(2022, 18)"),
        [("Logan Sargeant",)],
    ),
}


@pytest.mark.parametrize(("changes", "sql", "rows"), ROWS.values(), ids=ROWS)
def test_a_view_says(database, changes, sql, rows):
    changed(database, *changes)
    assert select(database, sql) == rows


def test_poles_of_a_full_dump_are_those_of_f1db(full_database, f1db):
    ids = dict(
        select(
            full_database,
            "SELECT id, reference FROM ids WHERE source = 'f1db' AND kind = 'driver'",
        )
    )
    with zipfile.ZipFile(f1db) as archive, archive.open("f1db-races-race-results.csv") as file:
        expected = {
            (int(row["year"]), int(row["round"]), ids[row["driverId"]])
            for row in csv.DictReader(io.TextIOWrapper(file, "utf-8"))
            if row["polePosition"] == "true"
        }
    races = {race[:2] for race in expected}
    found = select(full_database, "SELECT year, round, driverRef FROM poles")
    assert len(expected) > 1100
    assert {each for each in found if each[:2] in races} == expected


def test_no_two_databases_in_a_folder_share_a_store(tmp_path):
    names = {
        name: store_path(tmp_path / name).name for name in ("q.db", "q", "q.sqlite", "q.v2.db")
    }
    assert names == {
        "q.db": "q.sources.db",
        "q": "q.sources",
        "q.sqlite": "q.sources.sqlite",
        "q.v2.db": "q.v2.sources.db",
    }


def test_every_foreign_key_names_its_column():
    """Datasette needs the name to link a row to the one that it refers to."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        tables = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        keys = [key for (name,) in tables for key in db.execute(f"PRAGMA foreign_key_list({name})")]
    assert len(keys) == 44
    assert all(parent_column == column for _, _, _, column, parent_column, *_ in keys)

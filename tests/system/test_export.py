"""An export, loaded by programs that are not of this project: the sqlite3 shell and DuckDB.

The tables are those of Ergast's documentation, with its names and types.
"""

import shutil
import subprocess
import zipfile
from contextlib import closing

import duckdb
import pytest
from support.loads import select

from racedata.loader.export import export

RESULT = """resultId INTEGER PRIMARY KEY, raceId INTEGER NOT NULL, driverId INTEGER NOT NULL,
    constructorId INTEGER NOT NULL, number INTEGER, grid INTEGER, position INTEGER,
    positionText VARCHAR(255), positionOrder INTEGER NOT NULL, points FLOAT, laps INTEGER,
    time VARCHAR(255), milliseconds INTEGER, fastestLap INTEGER"""
STANDING = "points FLOAT, position INTEGER, positionText VARCHAR(255), wins INTEGER"
TABLES = {
    "circuits": """circuitId INTEGER PRIMARY KEY, circuitRef VARCHAR(255) NOT NULL,
        name VARCHAR(255) NOT NULL, location VARCHAR(255), country VARCHAR(255), lat FLOAT,
        lng FLOAT, alt INTEGER, url VARCHAR(255) UNIQUE""",
    "constructor_results": """constructorResultsId INTEGER PRIMARY KEY, raceId INTEGER NOT NULL,
        constructorId INTEGER NOT NULL, points FLOAT, status VARCHAR(255)""",
    "constructor_standings": f"""constructorStandingsId INTEGER PRIMARY KEY,
        raceId INTEGER NOT NULL,
        constructorId INTEGER NOT NULL, {STANDING}""",
    "constructors": """constructorId INTEGER PRIMARY KEY, constructorRef VARCHAR(255) NOT NULL,
        name VARCHAR(255) UNIQUE NOT NULL, nationality VARCHAR(255), url VARCHAR(255)""",
    "driver_standings": f"""driverStandingsId INTEGER PRIMARY KEY, raceId INTEGER NOT NULL,
        driverId INTEGER NOT NULL, {STANDING}""",
    "drivers": """driverId INTEGER PRIMARY KEY, driverRef VARCHAR(255) NOT NULL, number INTEGER,
        code VARCHAR(3), forename VARCHAR(255) NOT NULL, surname VARCHAR(255) NOT NULL, dob DATE,
        nationality VARCHAR(255), url VARCHAR(255) UNIQUE""",
    "lap_times": """raceId INTEGER, driverId INTEGER, lap INTEGER, position INTEGER,
        time VARCHAR(255), milliseconds INTEGER, PRIMARY KEY (raceId, driverId, lap)""",
    "pit_stops": """raceId INTEGER, driverId INTEGER, stop INTEGER, lap INTEGER, time TIME,
        duration VARCHAR(255), milliseconds INTEGER, PRIMARY KEY (raceId, driverId, stop)""",
    "qualifying": """qualifyId INTEGER PRIMARY KEY, raceId INTEGER NOT NULL,
        driverId INTEGER NOT NULL, constructorId INTEGER NOT NULL, number INTEGER,
        position INTEGER, q1 VARCHAR(255), q2 VARCHAR(255), q3 VARCHAR(255)""",
    "races": """raceId INTEGER PRIMARY KEY, year INTEGER NOT NULL, round INTEGER NOT NULL,
        circuitId INTEGER NOT NULL, name VARCHAR(255) NOT NULL, date DATE NOT NULL, time TIME,
        url VARCHAR(255) UNIQUE, fp1_date DATE, fp1_time TIME, fp2_date DATE, fp2_time TIME,
        fp3_date DATE, fp3_time TIME, quali_date DATE, quali_time TIME, sprint_date DATE,
        sprint_time TIME""",
    "results": f"""{RESULT}, rank INTEGER, fastestLapTime VARCHAR(255),
        fastestLapSpeed VARCHAR(255), statusId INTEGER NOT NULL""",
    "seasons": "year INTEGER PRIMARY KEY, url VARCHAR(255) UNIQUE",
    # `rank` is in the dumps of today, at the end.
    "sprint_results": f"""{RESULT}, fastestLapTime VARCHAR(255), statusId INTEGER NOT NULL,
        rank INTEGER""",
    "status": "statusId INTEGER PRIMARY KEY, status VARCHAR(255) NOT NULL",
}
CREATE = ";\n".join(f"CREATE TABLE {name} ({columns})" for name, columns in TABLES.items())
WINNERS = """SELECT year, round, surname, results.time, points FROM results
    JOIN races USING (raceId) JOIN drivers USING (driverId)
    WHERE results.position = 1 ORDER BY year, round, resultId"""
# the same, from the database that was exported
EXPECTED = """SELECT year, round, surname, milliseconds, CAST(points AS REAL) FROM results
    JOIN races USING (raceId) JOIN drivers USING (driverId)
    WHERE positionText = '1' ORDER BY year, round, resultId"""


@pytest.fixture
def folder(sample_database, tmp_path):
    """A folder with an export."""
    export(str(sample_database), str(tmp_path / "dump.zip"), lambda text: None)
    with zipfile.ZipFile(tmp_path / "dump.zip") as archive:
        archive.extractall(tmp_path / "dump")
    return tmp_path / "dump"


def counts(database):
    """How many rows each table has that is in the dump too."""
    return {
        name: select(database, f"SELECT count(*) FROM {name}")[0][0]
        for name in TABLES
        if name != "constructor_results"
    }


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="the sqlite3 shell is not installed")
def test_the_sqlite3_shell_imports_an_export_into_ergasts_tables(folder, sample_database):
    imports = [f'.import --csv --skip 1 "{folder}/{name}.csv" {name}' for name in TABLES]
    done = subprocess.run(
        ["sqlite3", "-bail", folder / "x.db"],
        input="\n".join([f"{CREATE};", *imports]),
        capture_output=True,
        text=True,
    )
    # It would say that a row has more or fewer fields than the table, or twice the same key. To it,
    # \N is a text.
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert counts(folder / "x.db") == counts(sample_database)
    winners = select(folder / "x.db", WINNERS)
    assert [row[:3] + row[4:] for row in winners] == [
        row[:3] + row[4:] for row in select(sample_database, EXPECTED)
    ]


def test_duckdb_copies_an_export_into_ergasts_tables_with_their_types(folder, sample_database):
    with closing(duckdb.connect()) as db:
        db.execute(CREATE)
        for name in TABLES:
            # by the order of columns; a value that is not of the column's type is an error
            db.execute(f"COPY {name} FROM '{folder}/{name}.csv' (HEADER, NULLSTR '\\N')")
        loaded = {
            name: db.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
            for name in counts(sample_database)
        }
        assert loaded == counts(sample_database)
        winners = db.execute(WINNERS).fetchall()
    expected = select(sample_database, EXPECTED)
    assert [row[:3] for row in winners] == [row[:3] for row in expected]
    assert [row[4] for row in winners] == pytest.approx([row[4] for row in expected])


def test_duckdb_reads_every_view_as_sqlite_does(sample_database):
    from duckdb_extensions import import_extension

    import_extension("sqlite_scanner")
    views = select(sample_database, "SELECT name FROM sqlite_schema WHERE type = 'view'")
    assert views
    with closing(duckdb.connect()) as db:
        db.execute(f"ATTACH '{sample_database}' AS racedata (TYPE sqlite, READ_ONLY)")
        db.execute("USE racedata")
        for (view,) in views:
            rows = db.execute(f"SELECT * FROM {view}").fetchall()
            expected = select(sample_database, f"SELECT * FROM {view}")
            assert sorted(map(repr, rows)) == sorted(map(repr, expected))

"""An export, loaded by programs that are not of this project: the sqlite3 shell and DuckDB. And the
Parquet files of scripts/release.py.

The tables are those of Ergast's documentation, with its names and types.
"""

import shutil
import subprocess
import sys
import zipfile
from contextlib import closing

import duckdb
import pytest
from support import ROOT
from support.ergast_tables import FILES, create
from support.loads import select

from racedata.loader.export import export

sys.path.insert(0, str(ROOT / "scripts"))

import release

VIEWS = "SELECT name FROM sqlite_schema WHERE type = 'view'"

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
    tables = {*FILES} - {"constructor_results"}
    return {name: select(database, f"SELECT count(*) FROM {name}") for name in tables}


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="the sqlite3 shell is not installed")
def test_the_sqlite3_shell_imports_an_export_into_ergasts_tables(folder, sample_database):
    imports = [f'.import --csv --skip 1 "{folder}/{name}.csv" {name}' for name in FILES]
    done = subprocess.run(
        ["sqlite3", "-bail", folder / "x.db"],
        input="\n".join([*(create(name, folder, str) for name in FILES), *imports]),
        capture_output=True,
        text=True,
    )
    # It would say that a row has more or fewer fields than the table, or twice the same key. To it,
    # \\N is a text.
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert counts(folder / "x.db") == counts(sample_database)
    winners, expected = select(folder / "x.db", WINNERS), select(sample_database, EXPECTED)
    assert [row[:3] + row[4:] for row in winners] == [row[:3] + row[4:] for row in expected]


def test_duckdb_copies_an_export_into_ergasts_tables_with_their_types(folder, sample_database):
    with closing(duckdb.connect()) as db:
        for name in FILES:
            db.execute(create(name, folder, str))
            # by the order of columns; a value that is not of the column's type is an error
            db.execute(f"COPY {name} FROM '{folder}/{name}.csv' (HEADER, NULLSTR '\\N')")
        expected = counts(sample_database)
        assert expected == {
            name: db.execute(f"SELECT count(*) FROM {name}").fetchall() for name in expected
        }
        winners = db.execute(WINNERS).fetchall()
    expected = select(sample_database, EXPECTED)
    assert [row[:3] for row in winners] == [row[:3] for row in expected]
    assert [row[4] for row in winners] == pytest.approx([row[4] for row in expected])


def test_duckdb_reads_every_view_as_sqlite_does(sample_database):
    from duckdb_extensions import import_extension

    import_extension("sqlite_scanner")
    views = select(sample_database, VIEWS)
    assert views
    with closing(duckdb.connect()) as db:
        db.execute(f"ATTACH '{sample_database}' AS racedata (TYPE sqlite, READ_ONLY)")
        db.execute("USE racedata")
        for (view,) in views:
            rows = db.execute(f"SELECT * FROM {view}").fetchall()
            expected = select(sample_database, f"SELECT * FROM {view}")
            assert sorted(map(repr, rows)) == sorted(map(repr, expected))


def test_a_release_has_each_view_as_a_parquet_file_the_same_each_time(sample_database, tmp_path):
    views = [view for (view,) in select(sample_database, VIEWS)]
    contents = []
    for name in ("x", "y"):
        folder = tmp_path / name
        folder.mkdir()
        release.write_parquet(sample_database, folder)
        assert sorted(path.stem for path in folder.iterdir()) == sorted(views)
        contents.append([(folder / f"{view}.parquet").read_bytes() for view in views])
    assert contents[0] == contents[1]
    with closing(duckdb.connect()) as db:
        for view in views:
            rows = db.execute(f"SELECT * FROM '{folder / view}.parquet'").fetchall()
            expected = select(sample_database, f"SELECT * FROM {view}")
            assert sorted(map(repr, rows)) == sorted(map(repr, expected))

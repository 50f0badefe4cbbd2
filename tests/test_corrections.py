"""racedata.loader.corrections: known errors of a dump are corrected, and nothing else is changed."""

import csv
import shutil

import pytest
from support import ROOT, SAMPLE
from support.loads import built, run_loader, select

HEADER = "table,key,column,wrong,right,source"
CORRECTIONS = ROOT / "racedata" / "loader" / "corrections.csv"


@pytest.fixture
def load(tmp_path):
    """Loads the sample with some lines of corrections. Returns the finished loader and the path of the database."""

    def load(*lines):
        corrections = tmp_path / "corrections.csv"
        corrections.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
        return run_loader(SAMPLE, tmp_path / "x.db", "--corrections", corrections), tmp_path / "x.db"

    return load


RACE = "JOIN races USING (raceId) WHERE year = 2023 AND round = 18"


@pytest.mark.parametrize(
    ("line", "sql", "right"),
    [
        ("drivers,alonso,number,14,41", "number FROM drivers WHERE driverRef = 'alonso'", 41),
        ("drivers,alonso,number,14,\\N", "number FROM drivers WHERE driverRef = 'alonso'", None),
        ("drivers,fangio,number,\\N,1", "number FROM drivers WHERE driverRef = 'fangio'", 1),
        ("circuits,monza,location,Monza,Mailand", "location FROM circuits WHERE circuitRef = 'monza'", "Mailand"),
        (
            "seasons,2005,url,http://en.wikipedia.org/wiki/2005_Formula_One_season,http://x",
            "url FROM seasons WHERE year = 2005",
            "http://x",
        ),
        ("races,2023/18,date,2023-10-22,2023-10-23", "date FROM races WHERE year = 2023 AND round = 18", "2023-10-23"),
        (
            "sessions,2023/18/sprint,time,22:00:00,22:30:00",
            f"sessions.time FROM sessions {RACE} AND session = 'sprint'",
            "22:30:00",
        ),
        ("results,2023/18/max_verstappen,grid,6,7", f"grid FROM results {RACE} AND positionOrder = 1", 7),
        (
            "lap_times,2023/18/max_verstappen/1,position,5,6",
            f"position FROM lap_times JOIN drivers USING (driverId) {RACE} AND code = 'VER' AND lap = 1",
            6,
        ),
        (
            "constructor_standings,2023/18/ferrari,wins,1,2",
            f"wins FROM constructor_standings JOIN constructors USING (constructorId) {RACE} AND position = 3",
            2,
        ),
    ],
)
def test_a_wrong_value_is_replaced_and_named(load, line, sql, right):
    run, database = load(f"{line},a test")
    assert (run.returncode, run.stderr) == (0, "")
    table, key, column, wrong, text = line.split(",")
    assert f"corrected: {table} {key} {column}: {wrong} to {text}\n" in run.stdout
    assert select(database, f"SELECT {sql}") == [(right,)]


def test_a_correction_whose_wrong_value_is_not_there_is_obsolete_and_not_applied(load):
    run, database = load("drivers,alonso,number,15,41,a test")
    assert "obsolete correction, not applied: drivers alonso number is 14, not 15\n" in run.stdout
    assert select(database, "SELECT number FROM drivers WHERE driverRef = 'alonso'") == [(14,)]


def test_a_correction_of_a_row_that_the_dump_lacks_or_has_right_is_not_mentioned(load):
    run, _ = load(
        "drivers,nobody,number,15,41,a test",
        "drivers,alonso,number,15,14,a test",
        "results,2023/1/alonso,grid,1,2,a test",
    )
    assert "corrected" not in run.stdout and "obsolete" not in run.stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pilots,alonso,number,14,41,a test", ", line 2, column table: 'pilots'; expected one of circuits, "),
        ("drivers,alonso,shoe,14,41,a test", ": drivers alonso shoe: no such column; expected one of driverRef, "),
        ("drivers,alonso,number,14,x,a test", ": drivers alonso number: '14' or 'x'; expected a whole number"),
        ("results,alonso,grid,1,2,a test", ": results alonso grid: a key of 1 parts; expected 3"),
        ("drivers,alonso,number,14,41,", ", line 2, column source: ''; expected how we know"),
        ("results,2023/18/alonso,statusId,1,2,a test", ": results 2023/18/alonso statusId: no such column"),
    ],
)
def test_a_line_that_is_not_a_correction_refuses_the_load(load, line, said):
    run, database = load(line)
    assert run.returncode == 1
    assert run.stderr.startswith(f"racedata load: corrections.csv{said}") and run.stderr.count("\n") == 1
    assert not database.exists()


def test_none_switches_corrections_off(tmp_path):
    source = shutil.copytree(SAMPLE, tmp_path / "source")
    drivers = source / "drivers.csv"
    drivers.write_text(drivers.read_text(encoding="utf-8").replace(",14,ALO,", ",38,ALO,"), encoding="utf-8")
    drivers.write_text(drivers.read_text(encoding="utf-8").replace(",alonso,", ",bearman,"), encoding="utf-8")
    sql = "SELECT number FROM drivers WHERE driverRef = 'bearman'"
    assert select(built(source, tmp_path / "right.db"), sql) == [(87,)]
    assert select(built(source, tmp_path / "wrong.db", None), sql) == [(38,)]


def test_a_list_that_is_not_there_refuses_the_load_and_an_empty_name_is_the_list_of_the_project(tmp_path):
    run = run_loader(SAMPLE, tmp_path / "x.db", "--corrections", tmp_path / "none.csv")
    assert f"{tmp_path / 'none.csv'}: no such file; expected a list of corrections, or none; nothing was" in run.stderr
    assert run_loader(SAMPLE, tmp_path / "x.db", "--corrections", "").returncode == 0


def test_every_correction_of_the_project_is_applied_to_a_full_dump(dump, tmp_path):
    run = run_loader(dump, tmp_path / "x.db")
    with CORRECTIONS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            assert "corrected: {table} {key} {column}: {wrong} to {right}\n".format_map(row) in run.stdout

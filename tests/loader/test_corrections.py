"""racedata.loader.corrections: known errors of a dump are corrected, and nothing else changes."""

import csv
import shutil
from collections import Counter
from io import TextIOWrapper
from zipfile import ZipFile

import pytest
from support import PACKAGE, SAMPLE
from support.loads import built, edit, edited, run_loader, select

HEADER = "table,key,column,wrong,right,source"
CORRECTIONS = PACKAGE / "loader" / "corrections.csv"

# What a sentence in corrections.csv may name as a witness.
# "The dump" is the one with the error: a witness if it contradicts itself.
WITNESSES = [
    *("the dump", "Ergast", "f1db", "Jolpica-F1", "OpenF1"),
    *(
        "Autosport",
        "autosportworld.info",
        "Crash.net",
        "ESPN",
        "grandprix.com",
        "jacky-ickx-fan.com",
    ),
    *("La Presse", "Motor Sport,", "Motorsport.com", "RaceFans", "Wikipedia"),
]


@pytest.fixture
def load(tmp_path):
    """Loads a dump with some lines of corrections. Returns the finished loader and the path of the
    database.
    """

    def load(*lines, source=SAMPLE):
        corrections = tmp_path / "corrections.csv"
        corrections.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
        return run_loader(
            source, tmp_path / "x.db", "--corrections", corrections
        ), tmp_path / "x.db"

    return load


RACE = "JOIN races USING (raceId) WHERE year = 2023 AND round = 18"


@pytest.mark.parametrize(
    ("line", "sql", "right"),
    [
        ("drivers,alonso,number,14,41", "number FROM drivers WHERE driverRef = 'alonso'", 41),
        ("drivers,alonso,number,14,\\N", "number FROM drivers WHERE driverRef = 'alonso'", None),
        ("drivers,fangio,number,\\N,1", "number FROM drivers WHERE driverRef = 'fangio'", 1),
        (
            "circuits,monza,location,Monza,Mailand",
            "location FROM circuits WHERE circuitRef = 'monza'",
            "Mailand",
        ),
        (
            "seasons,2005,url,http://en.wikipedia.org/wiki/2005_Formula_One_season,http://x",
            "url FROM seasons WHERE year = 2005",
            "http://x",
        ),
        (
            "races,2023/18,date,2023-10-22,2023-10-23",
            "date FROM races WHERE year = 2023 AND round = 18",
            "2023-10-23",
        ),
        (
            "sessions,2023/18/sprint,time,22:00:00,22:30:00",
            f"sessions.time FROM sessions {RACE} AND session = 'sprint'",
            "22:30:00",
        ),
        (
            "results,2023/18/max_verstappen,grid,6,7",
            f"grid FROM results {RACE} AND positionOrder = 1",
            7,
        ),
        # A number may have other trailing zeros.
        (
            "circuits,monza,lat,45.61560,45.62",
            "lat FROM circuits WHERE circuitRef = 'monza'",
            "45.62",
        ),
        (
            "lap_times,2023/18/max_verstappen/1,position,5,6",
            f"position FROM lap_times JOIN drivers USING (driverId) {RACE} "
            "AND code = 'VER' AND lap = 1",
            6,
        ),
        (
            "constructor_standings,2023/18/ferrari,wins,1,2",
            f"wins FROM constructor_standings JOIN constructors USING (constructorId) {RACE} "
            "AND position = 3",
            2,
        ),
    ],
)
def test_a_wrong_value_is_replaced_and_counted(load, line, sql, right):
    run, database = load(f"{line},a test")
    assert (run.returncode, run.stderr) == (0, "")
    table, _, column, *_ = line.split(",")
    assert f"corrected: {table}.{column} in 1 rows\n" in run.stdout
    assert select(database, f"SELECT {sql}") == [(right,)]


def test_a_correction_whose_wrong_value_is_not_there_is_obsolete_and_not_applied(load):
    run, database = load("drivers,alonso,number,15,41,a test")
    assert "obsolete correction, not applied: drivers alonso number is 14, not 15\n" in run.stdout
    assert select(database, "SELECT number FROM drivers WHERE driverRef = 'alonso'") == [(14,)]


def test_a_correction_of_a_value_that_the_dump_lacks_or_has_right_is_not_mentioned(load):
    run, _ = load(
        "drivers,nobody,number,15,41,a test",
        "drivers,alonso,number,15,14,a test",
        "results,2023/1/alonso,grid,1,2,a test",
        "drivers,fangio,number,15,14,a test",
    )
    assert "corrected" not in run.stdout and "obsolete" not in run.stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "pilots,alonso,number,14,41,a test",
            ", line 2, column table: 'pilots'; expected one of circuits, ",
        ),
        (
            "drivers,alonso,shoe,14,41,a test",
            ": drivers alonso shoe: no such column; expected one of driverRef, ",
        ),
        (
            "drivers,alonso,number,14,x,a test",
            ": drivers alonso number: '14' or 'x'; expected a whole number",
        ),
        ("results,alonso,grid,1,2,a test", ": results alonso grid: a key of 1 parts; expected 3"),
        ("drivers,alonso,number,14,41,", ", line 2, column source: ''; expected how we know"),
        (
            "results,2023/18/alonso,statusId,1,2,a test",
            ": results 2023/18/alonso statusId: no such column",
        ),
        (
            "races,2023/18,round,18,17,a test",
            ": races 2023/18 round: '17'; it would make two rows the same",
        ),
        (
            "drivers,alonso,surname,Alonso,\\N,a test",
            r": drivers alonso surname: '\\N'; it must be known",
        ),
    ],
)
def test_a_line_that_is_not_a_correction_refuses_the_load(load, line, said):
    run, database = load(line)
    assert run.returncode == 1
    assert (
        run.stderr.startswith(f"racedata load: corrections.csv{said}")
        and run.stderr.count("\n") == 1
    )
    assert not database.exists()


def test_none_switches_corrections_off(tmp_path):
    source = shutil.copytree(SAMPLE, tmp_path / "source")
    drivers = source / "drivers.csv"
    drivers.write_text(
        drivers.read_text(encoding="utf-8").replace(",14,ALO,", ",38,ALO,"), encoding="utf-8"
    )
    drivers.write_text(
        drivers.read_text(encoding="utf-8").replace(",alonso,", ",bearman,"), encoding="utf-8"
    )
    sql = "SELECT number FROM drivers WHERE driverRef = 'bearman'"
    assert select(built(source, tmp_path / "right.db"), sql) == [(87,)]
    assert select(built(source, tmp_path / "wrong.db", None), sql) == [(38,)]


def test_the_errors_of_a_further_source_are_corrected_before_its_races_are_matched(
    source, tmp_path
):
    edit(source / "races.csv", ",2023-10-22,", ",2023-10-12,")
    base = edited(SAMPLE, tmp_path / "base", qualifying=lambda row: None)
    lines = [HEADER, "races,2023/18,date,2023-10-12,2023-10-22,a test", ""]
    (tmp_path / "corrections.csv").write_text("\n".join(lines), encoding="utf-8")
    run = run_loader(source, tmp_path / "x.db", "--corrections", tmp_path / "corrections.csv", base)
    assert (run.returncode, run.stderr) == (0, "") and "match no race" not in run.stdout
    assert select(tmp_path / "x.db", f"SELECT count(*) FROM qualifying {RACE}") == [(20,)]


@pytest.mark.parametrize(
    ("dump", "wrong", "right", "refused"),
    [
        ("2022-10-22", "2022-10-22", "2023-10-22", False),
        ("2023-10-22", "2023-10-22", "2022-10-22", True),
    ],
)
def test_dates_are_checked_after_corrections(source, load, dump, wrong, right, refused):
    edit(source / "races.csv", ",2023-10-22,", f",{dump},")
    run, _ = load(f"races,2023/18,date,{wrong},{right},a test", source=source)
    assert (
        "is '2022-10-22'; expected a day of its season, 2023" in run.stderr,
        bool(run.returncode),
    ) == (refused,) * 2


def test_a_list_that_is_not_there_refuses_the_load_and_an_empty_name_is_the_list_of_the_project(
    tmp_path,
):
    run = run_loader(SAMPLE, tmp_path / "x.db", "--corrections", tmp_path / "none.csv")
    assert (
        f"{tmp_path / 'none.csv'}: no such file; "
        "expected a list of corrections, or none; nothing was" in run.stderr
    )
    assert run_loader(SAMPLE, tmp_path / "x.db", "--corrections", "").returncode == 0


@pytest.fixture(scope="module")
def corrections():
    with CORRECTIONS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("source", ["dump", "f1db", "jolpica"])
def test_every_correction_of_the_project_is_applied_to_the_dump_that_has_the_error(
    source, corrections, request, tmp_path
):
    """A sentence about an error of f1db or Jolpica-F1 begins with its name; others: Ergast."""
    path = request.getfixturevalue(source)
    begins = {"f1db": ("f1db has",), "jolpica": ("Jolpica-F1 has",)}
    own = begins.get(source, ("f1db has", "Jolpica-F1 has"))
    rows = [row for row in corrections if row["source"].startswith(own) == (source in begins)]
    with (tmp_path / "corrections.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, HEADER.split(","))
        writer.writeheader()
        writer.writerows(rows)
    run = run_loader(path, tmp_path / "x.db", "--corrections", tmp_path / "corrections.csv")
    counts = Counter(f"{row['table']}.{row['column']}" for row in rows)
    lines = run.stdout.splitlines()
    (line,) = [line for line in lines if line.startswith(("corrected", "obsolete"))]
    expected = {f"{name} in {n} rows" for name, n in counts.items()}
    assert {*line.removeprefix("corrected: ").split(", ")} == expected


@pytest.mark.parametrize("source", ["f1db", "jolpica"])
def test_no_correction_of_the_project_is_obsolete_in_another_dump(source, request, tmp_path):
    run = run_loader(request.getfixturevalue(source), tmp_path / "x.db")
    assert "corrected: " in run.stdout and "obsolete" not in run.stdout


def test_no_value_is_corrected_twice(corrections):
    counts = Counter((row["table"], row["key"], row["column"]) for row in corrections)
    assert [value for value, n in counts.items() if n > 1] == []


def test_no_two_corrections_give_the_same_place_in_one_race(corrections):
    places = Counter(
        (row["table"], *row["key"].split("/")[:2], row["column"], row["right"])
        for row in corrections
        if row["column"] in ("grid", "position", "positionOrder")
        # The pit lane, and places in the standings that are shared.
        and row["right"] != "0"
        and "standings" not in row["table"]
    )
    assert [place for place, n in places.items() if n > 1] == []


def test_every_correction_names_two_witnesses(corrections):
    def witnesses(sentence):
        return [name for name in WITNESSES if name.lower() in sentence.lower()]

    named = {row["source"]: witnesses(row["source"]) for row in corrections}
    assert [sentence for sentence, names in named.items() if len(names) < 2] == []
    assert {name for names in named.values() for name in names} == {*WITNESSES}


def test_corrected_grid_places_are_those_of_the_starting_grid_of_f1db(corrections, f1db):
    """The loader does not read these. They have `PL` for a start from the pit lane."""
    ids = PACKAGE / "loader" / "sources" / "f1db_ids.csv"
    with ids.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "driver"]
    references = {row["id"]: row["reference"] for row in rows}
    grids = {}
    with ZipFile(f1db) as release:
        for table, name in [("results", "races"), ("sprint_results", "races-sprint")]:
            with release.open(f"f1db-{name}-starting-grid-positions.csv") as file:
                for row in csv.DictReader(TextIOWrapper(file, encoding="utf-8")):
                    driver = references.get(row["driverId"]) or row["driverId"].rpartition("-")[2]
                    grids[table, f"{row['year']}/{row['round']}/{driver}"] = row["positionText"]
    known = [
        (row["key"], row["right"], grids[row["table"], row["key"]])
        for row in corrections
        if row["column"] == "grid" and (row["table"], row["key"]) in grids
    ]
    assert known and [place for place in known if place[1] != place[2]] == []

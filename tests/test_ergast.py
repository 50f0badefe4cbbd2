"""scripts/ergast.py: dumps are loaded as they are published; unknown values are left out of answers, and counted."""

import csv
import shutil
import sqlite3
from contextlib import closing

import pytest
from support import SAMPLE
from support.answers import client
from support.loads import run_loader


class Dump:
    """A copy of the sample, to change: a list of dicts per table."""

    def __init__(self, folder):
        self.folder = shutil.copytree(SAMPLE, folder / "source")
        self.database = folder / "x.db"

    def change(self, table, change):
        """Calls `change` with each row of a table. A row is a dict."""
        path = self.folder / f"{table}.csv"
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            change(row)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, {name: None for row in rows for name in row}, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    def load(self):
        """The report of the loader, and the application over the database."""
        run = run_loader(self.folder, self.database)
        assert (run.returncode, run.stderr) == (0, "")
        return run.stdout, client(self.database)

    def race_id(self, year, round):
        with (self.folder / "races.csv").open(newline="", encoding="utf-8") as file:
            (id,) = [
                row["raceId"] for row in csv.DictReader(file) if (row["year"], row["round"]) == (str(year), str(round))
            ]
            return id


@pytest.fixture
def dump(tmp_path):
    return Dump(tmp_path)


def test_a_race_whose_grid_is_unknown_is_loaded_and_served_without_it(dump):
    race = dump.race_id(2023, 18)
    dump.change("results", lambda row: row.update(grid="\\N") if row["raceId"] == race else None)
    report, app = dump.load()
    rows = app.get("/ergast/f1/2023/18/results").json["MRData"]["RaceTable"]["Races"][0]["Results"]
    assert len(rows) == 20 and not any("grid" in row for row in rows)
    assert all(
        "grid" in row for row in app.get("/ergast/f1/2023/9/results").json["MRData"]["RaceTable"]["Races"][0]["Results"]
    )
    assert app.get("/ergast/f1/2023/18/grid/1/results").json["MRData"]["total"] == "0"
    assert report.splitlines()[-2] == "unknown: results.grid in 20 rows (the last: 2023/18)"


def test_a_row_whose_status_is_unknown_is_served_without_it_and_is_in_no_count(dump):
    race = dump.race_id(2023, 18)
    dump.change("results", lambda row: row.update(statusId="\\N") if row["raceId"] == race else None)
    dump.change("sprint_results", lambda row: row.update(statusId="\\N") if row["raceId"] == race else None)
    report, app = dump.load()
    for endpoint, key in [("results", "Results"), ("sprint", "SprintResults")]:
        rows = app.get(f"/ergast/f1/2023/18/{endpoint}").json["MRData"]["RaceTable"]["Races"][0][key]
        assert len(rows) == 20 and not any("status" in row for row in rows)
    assert app.get("/ergast/f1/2023/18/status").json["MRData"]["total"] == "0"
    assert "results.statusId in 20 rows (the last: 2023/18), sprint_results.statusId in 20 rows" in report


@pytest.mark.parametrize(
    ("table", "columns", "address", "record"),
    [
        ("results", ("positionText", "points", "laps"), "results", ("RaceTable", "Races", 0, "Results", 0)),
        ("pit_stops", ("lap", "time"), "pitstops", ("RaceTable", "Races", 0, "PitStops", 0)),
        (
            "driver_standings",
            ("positionText", "points", "wins"),
            "driverstandings",
            ("StandingsTable", "StandingsLists", 0, "DriverStandings", 0),
        ),
        (
            "constructor_standings",
            ("positionText", "points", "wins"),
            "constructorstandings",
            ("StandingsTable", "StandingsLists", 0, "ConstructorStandings", 0),
        ),
    ],
)
def test_what_is_unknown_is_left_out(dump, table, columns, address, record):
    dump.change(table, lambda row: row.update(dict.fromkeys(columns, "\\N")))
    report, app = dump.load()
    found = app.get(f"/ergast/f1/2023/18/{address}").json["MRData"]
    for key in record:
        found = found[key]
    assert not set(columns) & set(found) and found
    assert all(f"{table}.{column} in " in report for column in columns)


def sessions(app, year, round):
    race = app.get(f"/ergast/f1/{year}/{round}").json["MRData"]["RaceTable"]["Races"][0]
    return {key for key in race if isinstance(race[key], dict)} - {"Circuit"}


def test_a_sprint_weekend_without_a_second_practice_has_no_session_that_is_unknown(dump):
    race = dump.race_id(2023, 18)
    dump.change("races", lambda row: row.update(fp2_date="\\N", fp2_time="\\N") if row["raceId"] == race else None)
    _, app = dump.load()
    assert sessions(app, 2023, 18) == {"FirstPractice", "Qualifying", "Sprint"}
    assert sessions(app, 2023, 9) == {"FirstPractice", "Qualifying", "Sprint", "SprintShootout"}
    assert sessions(app, 2021, 10) == {"FirstPractice", "SecondPractice", "Qualifying", "Sprint"}


def test_the_session_that_sets_the_grid_of_the_sprint_may_have_columns_of_its_own(dump):
    race = dump.race_id(2023, 18)

    def change(row):
        moved = row["raceId"] == race
        row.update(sq_date=row["fp2_date"] if moved else "\\N", sq_time=row["fp2_time"] if moved else "\\N")
        if moved:
            row.update(fp2_date="\\N", fp2_time="\\N")

    expected = client(dump.load() and dump.database).get("/ergast/f1/2023/18").text
    dump.change("races", change)
    _, app = dump.load()
    assert app.get("/ergast/f1/2023/18").text == expected


def test_blanks_around_values_are_ignored(dump):
    plain = dump.load() and dump.database.read_bytes()
    dump.change("drivers", lambda row: row.update({key: f"{value} " for key, value in row.items()}))
    dump.change("lap_times", lambda row: row.update({key: f" {value}" for key, value in row.items()}))
    _, app = dump.load()
    again = dump.database.read_bytes()
    assert ' "' not in app.get("/ergast/f1/drivers?limit=2000").text
    assert len(plain) == len(again)


def test_a_status_is_found_by_its_number_whatever_its_number_is(dump):
    dump.change("status", lambda row: row.update(statusId="142") if row["statusId"] == "1" else None)
    dump.change("results", lambda row: row.update(statusId="142") if row["statusId"] == "1" else None)
    dump.change("sprint_results", lambda row: row.update(statusId="142") if row["statusId"] == "1" else None)
    _, app = dump.load()
    assert app.get("/ergast/f1/status/142").json["MRData"]["StatusTable"]["Status"][0]["statusId"] == "142"


def test_tables_and_columns_that_nothing_needs_are_ignored(dump):
    (dump.folder / "weather.csv").write_text("raceId,rain\n1,yes\n")
    (dump.folder / "README.md").write_text("About this dump")
    dump.change("races", lambda row: row.update(weather="dry"))
    _, app = dump.load()
    assert app.get("/ergast/f1/2023").json["MRData"]["total"] == "22"


@pytest.mark.parametrize("table", ["results", "sprint_results"])
def test_rank_0_is_no_fastest_lap(dump, table):
    dump.change(table, lambda row: row.update(rank="0"))
    dump.load()
    with closing(sqlite3.connect(dump.database)) as db:
        assert db.execute(f"SELECT DISTINCT rank, fastestLap, fastestLapTime FROM {table}").fetchall() == [(None,) * 3]


@pytest.mark.parametrize(
    ("text", "licence"),
    [("CC0 1.0\nand more\n", "CC0 1.0"), ("\n", None), (None, None)],
)
def test_the_licence_is_the_first_line_of_a_file_in_the_dump(dump, text, licence):
    (dump.folder / "licence.txt").unlink()
    if text is not None:
        (dump.folder / "licence.txt").write_text(text)
    _, app = dump.load()
    health = app.get("/healthz").json
    assert (health["source"], health["licence"]) == ("source", licence)
    assert (licence or "not stated by the source") in app.get("/").text

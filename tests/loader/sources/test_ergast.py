"""racedata.loader.sources.ergast: dumps are loaded as published; what is unknown is left out, and
counted.
"""

import csv
import shutil

import pytest
from support import SAMPLE
from support.answers import client
from support.loads import built, csv_rows, race_ids, rows_of, run_loader, select


class Dump:
    """A copy of the sample, to change."""

    def __init__(self, folder):
        self.folder = shutil.copytree(SAMPLE, folder / "source")
        self.database = folder / "x.db"

    def change(self, table, change):
        """Calls `change` with each row of a table, a dict. It may add columns."""
        rows = csv_rows(self.folder, table)
        for row in rows:
            change(row)
        with (self.folder / f"{table}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(
                file, {name: None for row in rows for name in row}, lineterminator="\n"
            )
            writer.writeheader()
            writer.writerows(rows)

    def forget(self, table, *columns, race=""):
        """Makes columns unknown, in the rows of one race or of all."""
        unknown = dict.fromkeys(columns, "\\N")
        self.change(table, lambda row: row.update(unknown) if race in ("", row["raceId"]) else None)

    def load(self, *options):
        """The report of the loader, and the application over the database."""
        run = run_loader(self.folder, self.database, *options)
        assert (run.returncode, run.stderr) == (0, "")
        return run.stdout, client(self.database)


US_GRAND_PRIX = race_ids(SAMPLE, 2023)[18]


@pytest.fixture
def dump(tmp_path):
    return Dump(tmp_path)


def test_a_race_whose_grid_is_unknown_is_loaded_and_served_without_it(dump):
    dump.forget("results", "grid", race=US_GRAND_PRIX)
    _, app = dump.load()
    rows = app.get("/ergast/f1/2023/18/results").json["MRData"]["RaceTable"]["Races"][0]["Results"]
    assert len(rows) == 20 and not any("grid" in row for row in rows)
    assert all(
        "grid" in row
        for row in app.get("/ergast/f1/2023/9/results").json["MRData"]["RaceTable"]["Races"][0][
            "Results"
        ]
    )
    assert app.get("/ergast/f1/2023/18/grid/1/results").json["MRData"]["total"] == "0"


def test_a_column_that_a_dump_lacks_is_named(dump):
    dump.change("sprint_results", lambda row: row.pop("rank"))
    report, _ = dump.load()
    assert "sprint_results.csv: no column rank, so it is unknown in all rows\n" in report


def test_a_row_whose_status_is_unknown_is_served_without_it_and_is_in_no_count(dump):
    for table in ("results", "sprint_results"):
        dump.forget(table, "statusId", race=US_GRAND_PRIX)
    _, app = dump.load()
    for endpoint, key in [("results", "Results"), ("sprint", "SprintResults")]:
        rows = app.get(f"/ergast/f1/2023/18/{endpoint}").json["MRData"]["RaceTable"]["Races"][0][
            key
        ]
        assert len(rows) == 20 and not any("status" in row for row in rows)
    assert app.get("/ergast/f1/2023/18/status").json["MRData"]["total"] == "0"


@pytest.mark.parametrize(
    ("table", "columns", "address", "record"),
    [
        (
            "results",
            ("positionText", "points", "laps"),
            "results",
            ("RaceTable", "Races", 0, "Results", 0),
        ),
        ("pit_stops", ("lap", "time"), "pitstops", ("RaceTable", "Races", 0, "PitStops", 0)),
        *(
            (
                f"{name.lower()}_standings",
                ("positionText", "points", "wins"),
                f"{name.lower()}standings",
                ("StandingsTable", "StandingsLists", 0, f"{name}Standings", 0),
            )
            for name in ("Driver", "Constructor")
        ),
    ],
)
def test_unknown_values_are_left_out(dump, table, columns, address, record):
    dump.forget(table, *columns)
    _, app = dump.load()
    found = app.get(f"/ergast/f1/2023/18/{address}").json["MRData"]
    for key in record:
        found = found[key]
    assert not set(columns) & set(found) and found


def sessions(app, year, round):
    race = app.get(f"/ergast/f1/{year}/{round}").json["MRData"]["RaceTable"]["Races"][0]
    return {key for key in race if isinstance(race[key], dict)} - {"Circuit"}


def test_a_sprint_weekend_without_dates_of_a_second_practice_has_no_session_in_its_place(dump):
    dump.forget("races", "fp2_date", "fp2_time", race=US_GRAND_PRIX)
    _, app = dump.load()
    assert sessions(app, 2023, 18) == {"FirstPractice", "Qualifying", "Sprint"}
    assert sessions(app, 2023, 9) == {"FirstPractice", "Qualifying", "Sprint", "SprintShootout"}
    assert sessions(app, 2021, 10) == {"FirstPractice", "SecondPractice", "Qualifying", "Sprint"}


def test_the_session_that_sets_the_grid_of_the_sprint_may_have_columns_of_its_own(dump):
    def change(row):
        moved = row["raceId"] == US_GRAND_PRIX
        row.update(
            sq_date=row["fp2_date"] if moved else "\\N", sq_time=row["fp2_time"] if moved else "\\N"
        )
        if moved:
            row.update(fp2_date="\\N", fp2_time="\\N")

    expected = client(dump.load() and dump.database).get("/ergast/f1/2023/18").text
    dump.change("races", change)
    _, app = dump.load()
    assert app.get("/ergast/f1/2023/18").text == expected


def test_a_second_practice_stays_one_next_to_columns_of_the_session_that_sets_the_sprint_grid(dump):
    dump.change("races", lambda row: row.update(sq_date=row["fp1_date"], sq_time=row["fp1_time"]))
    _, app = dump.load()
    both = {"SecondPractice", "SprintShootout"}
    assert sessions(app, 2023, 18) == {"FirstPractice", "Qualifying", "Sprint"} | both


def test_a_status_is_found_by_its_number_whatever_its_number_is(dump):
    for table in ("status", "results", "sprint_results"):
        dump.change(
            table, lambda row: row.update(statusId="142") if row["statusId"] == "1" else None
        )
    _, app = dump.load()
    assert (
        app.get("/ergast/f1/status/142").json["MRData"]["StatusTable"]["Status"][0]["statusId"]
        == "142"
    )


def test_tables_and_columns_that_nothing_needs_are_ignored(dump):
    (dump.folder / "weather.csv").write_text("raceId,rain\n1,yes\n")
    (dump.folder / "README.md").write_text("About this dump")
    dump.change("races", lambda row: row.update(weather="dry"))
    _, app = dump.load()
    assert app.get("/ergast/f1/2023").json["MRData"]["total"] == "22"


@pytest.mark.parametrize("table", ["results", "sprint_results"])
def test_rank_0_is_not_a_fastest_lap(dump, table):
    dump.change(table, lambda row: row.update(rank="0"))
    dump.load("--corrections", "none")
    assert select(
        dump.database, f"SELECT DISTINCT rank, fastestLap, fastestLapTime FROM {table}"
    ) == [(None,) * 3]


@pytest.mark.parametrize(
    ("text", "licence"),
    [("CC0 1.0\nand more\n", "CC0 1.0"), ("\n", None), (None, None)],
)
def test_the_licence_is_the_first_line_of_a_file_in_the_dump(dump, text, licence):
    (dump.folder / "licence.txt").unlink()
    if text is not None:
        (dump.folder / "licence.txt").write_text(text)
    _, app = dump.load()
    (source,) = app.get("/healthz").json["sources"]
    assert (source["name"], source["licence"]) == ("source", licence)
    assert (licence or "not stated") in app.get("/data").text


def test_files_with_kaggles_names_are_read(tmp_path):
    source = shutil.copytree(SAMPLE, tmp_path / "source")
    for old, new in (
        ("driver_standings", "driverStandings"),
        ("constructor_standings", "constructorStandings"),
        ("lap_times", "lapTimes"),
        ("pit_stops", "pitStops"),
        ("sprint_results", "sprintResults"),
    ):
        (source / f"{old}.csv").rename(source / f"{new}.csv")
    assert rows_of(built(source, tmp_path / "x.db")) == rows_of(built(SAMPLE, tmp_path / "y.db"))

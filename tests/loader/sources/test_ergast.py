"""racedata.loader.sources.ergast: dumps are loaded as published; what is unknown is left out, and
counted.
"""

import csv
import shutil

import pytest
from support import SAMPLE
from support.answers import client
from support.loads import csv_rows, race_ids, run_loader, select


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


def test_a_column_that_a_dump_lacks_is_named(dump):
    dump.change("sprint_results", lambda row: row.pop("rank"))
    report, _ = dump.load()
    assert "sprint_results.csv: no column rank, so it is unknown in all rows\n" in report


# Columns that are forgotten, and where an answer would have them.
UNKNOWN = {
    "results": (
        ("grid", "positionText", "points", "laps", "statusId"),
        ("results", "RaceTable", "Races", 0, "Results"),
    ),
    "sprint_results": (("statusId",), ("sprint", "RaceTable", "Races", 0, "SprintResults")),
    "pit_stops": (("lap", "time"), ("pitstops", "RaceTable", "Races", 0, "PitStops")),
    **{
        f"{name.lower()}_standings": (
            ("positionText", "points", "wins"),
            (
                *(f"{name.lower()}standings", "StandingsTable", "StandingsLists", 0),
                f"{name}Standings",
            ),
        )
        for name in ("Driver", "Constructor")
    },
}


def test_unknown_values_are_left_out_of_answers(dump):
    for table, (columns, _) in UNKNOWN.items():
        dump.forget(table, *columns, race=US_GRAND_PRIX)
    _, app = dump.load()
    for columns, (endpoint, *keys) in UNKNOWN.values():
        found = app.get(f"/ergast/f1/2023/18/{endpoint}").json["MRData"]
        for key in keys:
            found = found[key]
        names = {"status", *columns}
        assert found and not any(names & {*row} for row in found)
    for path in ("18/grid/1/results", "18/status"):
        assert app.get(f"/ergast/f1/2023/{path}").json["MRData"]["total"] == "0"
    other = app.get("/ergast/f1/2023/9/results").json["MRData"]["RaceTable"]["Races"][0]
    assert all("grid" in row for row in other["Results"])


def sessions(app, year, round):
    race = app.get(f"/ergast/f1/{year}/{round}").json["MRData"]["RaceTable"]["Races"][0]
    return {key for key in race if isinstance(race[key], dict)} - {"Circuit"}


def test_a_sprint_weekend_without_dates_of_a_second_practice_has_no_session_in_its_place(dump):
    dump.forget("races", "fp2_date", "fp2_time", race=US_GRAND_PRIX)
    _, app = dump.load()
    assert sessions(app, 2023, 18) == {"FirstPractice", "Qualifying", "Sprint"}
    assert sessions(app, 2023, 9) == {"FirstPractice", "Qualifying", "Sprint", "SprintShootout"}
    assert sessions(app, 2021, 10) == {"FirstPractice", "SecondPractice", "Qualifying", "Sprint"}


def test_a_second_practice_stays_one_next_to_columns_of_the_session_that_sets_the_sprint_grid(dump):
    dump.change("races", lambda row: row.update(sq_date=row["fp1_date"], sq_time=row["fp1_time"]))
    _, app = dump.load()
    both = {"SecondPractice", "SprintShootout"}
    assert sessions(app, 2023, 18) == {"FirstPractice", "Qualifying", "Sprint"} | both


@pytest.mark.parametrize("table", ["results", "sprint_results"])
def test_rank_0_is_not_a_fastest_lap(dump, table):
    dump.change(table, lambda row: row.update(rank="0"))
    dump.load("--corrections", "none")
    assert select(
        dump.database, f"SELECT DISTINCT rank, fastestLap, fastestLapTime FROM {table}"
    ) == [(None,) * 3]


@pytest.mark.parametrize(("text", "licence"), [("CC0 1.0\nand more\n", "CC0 1.0"), ("\n", None)])
def test_the_licence_is_the_first_line_of_a_file_in_the_dump(dump, text, licence):
    (dump.folder / "licence.txt").write_text(text)
    _, app = dump.load()
    (source,) = app.get("/healthz").json["sources"]
    assert (source["name"], source["licence"]) == ("source", licence)
    assert (licence or "not stated") in app.get("/data").text


def test_files_with_kaggles_names_are_read(dump):
    (dump.folder / "lap_times.csv").rename(dump.folder / "lapTimes.csv")
    report, _ = dump.load()
    assert ["lap_times", "1,034", "1,034"] in [line.split() for line in report.splitlines()]

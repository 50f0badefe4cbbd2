"""racedata.loader.sources.ergast: dumps are loaded as published; what is unknown is left out, and
counted.
"""

import pytest
from support import SAMPLE
from support.answers import client
from support.loads import built, edit, edited, loader_settings, race_ids, select

from racedata.loader.load import load

US_GRAND_PRIX = race_ids(SAMPLE, 2023)[18]


@pytest.fixture
def dump(tmp_path):
    """A copy of the sample, to change."""
    return edited(SAMPLE, tmp_path / "source")


def app_of(dump):
    """The application over a database that is built from a dump."""
    return client(built(dump, dump.with_suffix(".db"), None))


def report_of(dump):
    return load([str(dump)], loader_settings(dump.with_suffix(".db")), lambda text: None)


def forget(*columns, race=US_GRAND_PRIX):
    """An edit that makes columns unknown in the rows of a race."""
    unknown = dict.fromkeys(columns, "\\N")
    return lambda row: row | unknown if row["raceId"] == race else row


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


def test_unknown_values_are_left_out_of_answers(tmp_path):
    edits = {table: forget(*columns) for table, (columns, _) in UNKNOWN.items()}
    app = app_of(edited(SAMPLE, tmp_path / "source", **edits))
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


def test_a_sprint_weekend_without_dates_of_a_second_practice_has_no_session_in_its_place(tmp_path):
    app = app_of(edited(SAMPLE, tmp_path / "source", races=forget("fp2_date", "fp2_time")))
    assert sessions(app, 2023, 18) == {"FirstPractice", "Qualifying", "Sprint"}
    assert sessions(app, 2023, 9) == {"FirstPractice", "Qualifying", "Sprint", "SprintShootout"}
    assert sessions(app, 2021, 10) == {"FirstPractice", "SecondPractice", "Qualifying", "Sprint"}


def test_a_second_practice_stays_one_next_to_columns_of_the_session_that_sets_the_sprint_grid(dump):
    edit(dump / "races.csv", "fp1_date,fp1_time", "sq_date,sq_time")
    both = {"SecondPractice", "SprintShootout"}
    assert sessions(app_of(dump), 2023, 18) == {"Qualifying", "Sprint"} | both


@pytest.mark.parametrize("table", ["results", "sprint_results"])
def test_rank_0_is_not_a_fastest_lap(tmp_path, table):
    dump = edited(SAMPLE, tmp_path / "source", **{table: lambda row: row | {"rank": "0"}})
    sql = f"SELECT DISTINCT rank, fastestLap, fastestLapTime FROM {table}"
    assert select(built(dump, tmp_path / "x.db", None), sql) == [(None,) * 3]


@pytest.mark.parametrize(("text", "licence"), [("CC0 1.0\nand more\n", "CC0 1.0"), ("\n", None)])
def test_the_licence_is_the_first_line_of_a_file_in_the_dump(dump, text, licence):
    (dump / "licence.txt").write_text(text)
    app = app_of(dump)
    (source,) = app.get("/healthz").json["sources"]
    assert (source["name"], source["licence"]) == ("source", licence)
    assert (licence or "not stated") in app.get("/data").text


def test_files_with_kaggles_names_are_read(dump):
    (dump / "lap_times.csv").rename(dump / "lapTimes.csv")
    assert ["lap_times", "1,034", "1,034"] in [line.split() for line in report_of(dump)]

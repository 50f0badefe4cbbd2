"""racedata.loader.sources.openf1_rows: what is wrong or doubtful is left out."""

from contextlib import closing
from datetime import UTC, datetime
from time import tzset

import pytest
from support.openf1 import (
    GIVEN,
    RACE,
    RECORDS,
    facts,
    halve,
    in_austin,
    of_race,
    refresh,
    rounds_with,
    without_records,
)

from racedata.loader.errors import LoadError
from racedata.loader.existing import open_read_only
from racedata.loader.sources.openf1_rows import Entrants, OpenF1Row, grid_of


def test_numbers_of_another_season_are_left_out(openf1, rows, database):
    """In the season, number 1 is Verstappen's, and 4 is Norris's, as an earlier race says."""
    other = {1: ("NOR", "Lando NORRIS"), 4: ("VER", "Max VERSTAPPEN")}
    for row in in_austin(rows, "drivers"):
        if row["driver_number"] in other:
            row["name_acronym"], row["full_name"] = other[row["driver_number"]]
    lacking = without_records(database, *RECORDS, rounds=(18,))
    said = refresh(lacking, openf1)
    line = "results (race) left out: no driver for cars 1, 4"
    assert f"openf1: 2023/18 United States Grand Prix, {line}" in said
    assert 18 not in rounds_with(lacking, "results")


@pytest.mark.parametrize(
    ("endpoint", "name", "value"),
    [
        ("sessions", "date_start", "tomorrow"),
        ("sessions", "date_start", "0001-01-01T00:00:00+23:00"),
        ("session_result", "session_key", None),
    ],
)
def test_a_wrong_key_or_date_of_a_session_is_one_line_that_names_it(
    openf1, rows, lacking, endpoint, name, value
):
    rows[endpoint][-1][name] = value
    with pytest.raises(LoadError, match=rf"^[^\n]*/{endpoint}\?[^\n]*expected [^\n]*$"):
        refresh(lacking, openf1)


@pytest.mark.parametrize(
    ("endpoint", "name", "value", "kinds"),
    [
        ("sessions", "gmt_offset", None, {"pit_stops"}),
        ("drivers", "name_acronym", 7, {"results", "pit_stops"}),
        ("session_result", "position", "1", {"results"}),
        ("pit", "date", "9999-12-31T23:59:59+00:00", {"pit_stops"}),
        ("pit", "lane_duration", "long", {"pit_stops"}),
        ("laps", "lap_duration", {}, {"lap_times"}),
    ],
)
def test_a_wrong_value_leaves_out_its_kind_of_records_with_one_line_and_stores_the_others(
    openf1, rows, lacking, endpoint, name, value, kinds
):
    of_race(rows, endpoint)[name] = value
    said = refresh(lacking, openf1)
    race = "openf1: 2023/18 United States Grand Prix"
    for kind in kinds:
        start = f"{race}, {kind.replace('_', ' ')} (race) left out: http://"
        (line,) = (each for each in said if each.startswith(start))
        assert f"/{endpoint}?session_key={RACE}" in line
        assert "expected " in line and "\n" not in line
    assert {kind for kind in GIVEN if 18 not in rounds_with(lacking, kind)} == kinds | {"lap_times"}
    assert 9 in rounds_with(lacking, "results")


def grid_rows(numbers):
    return [
        OpenF1Row({"driver_number": number, "position": place}, "", "starting_grid")
        for place, number in enumerate(numbers, 1)
    ]


@pytest.mark.parametrize(
    ("year", "known"), [(2024, {1: 1, 2: 2, 3: 3, 4: 4, 5: 5}), (2025, {1: 1, 2: 2})]
)
def test_a_place_on_the_grid_is_known_if_nobody_ahead_can_have_started_from_the_pit_lane(
    year, known
):
    """Of eight drivers, the third in qualifying is the last on the grid."""
    qualified = [1, 2, 8, 3, 4, 5, 6, 7]
    grid = grid_rows(range(1, 9))
    best = grid_rows(qualified)
    assert grid_of(grid, best, range(1, 9), year) == known


def of_session(rows, key=RACE, endpoint="session_result"):
    return [row for row in rows[endpoint] if row["session_key"] == key]


def put(**values):
    """A change of the first result of the race."""
    return lambda rows: of_session(rows)[0].update(values)


def put_all(endpoint="session_result", **values):
    """A change of all rows of the weekend that have such a value."""

    def change(rows):
        for row in in_austin(rows, endpoint):
            if row.get(next(iter(values)), 0) is not None:
                row.update(values)

    return change


def too_few(rows):
    halve(of_session(rows))


def two_stops_in_a_lap(rows):
    rows["pit"].append(dict(of_race(rows, "pit")))


NUMBERS = "1, 2, 3, 4, 10, 11, 14, 16, 18, 20, 22, 23, 24, 27, 31, 44, 55, 63, 77, 81"
RESULTS, QUALIFYING = {"results", "lap_times"}, {"qualifying", "lap_times"}
# a change, the end of a line that says what is left out, and the kinds that the race then lacks
LEFT_OUT = [
    (put(driver_number=2), "results (race) left out: a driver appears twice", RESULTS),
    (put(position=30), "results (race) left out: inconsistent places 2, 3", RESULTS),
    (too_few, "results (race) left out: only 11 of 20 drivers", {*RESULTS, "pit_stops"}),
    (put(dsq=True), "results (race) left out: car 1 was disqualified, but has place 1", RESULTS),
    (put(driver_number=98), "results (race) left out: no driver for car 98", RESULTS),
    (
        put_all("drivers", name_acronym="ARO", full_name="Paul ARON"),
        f"results (race) left out: no driver for cars {NUMBERS}",
        {*GIVEN},
    ),
    (
        lambda rows: of_session(rows, 9207)[0].update(duration=[0] * 3),
        "duration: '0'; expected seconds, more than 0",
        QUALIFYING,
    ),
    (two_stops_in_a_lap, "pit stops (race) left out: two stops of car", {"pit_stops", "lap_times"}),
]


@pytest.mark.parametrize(("change", "said", "kinds"), LEFT_OUT)
def test_records_that_contradict_themselves_are_left_out_with_a_line(
    openf1, rows, lacking, change, said, kinds
):
    change(rows)
    lines = "\n".join(refresh(lacking, openf1))
    assert "openf1: 2023/18 United States Grand Prix, " in lines and said in lines
    assert {kind for kind in GIVEN if 18 not in rounds_with(lacking, kind)} == kinds


def lasting(seconds):
    """Gives the winner's time so many seconds, and the others the same gaps."""

    def change(rows):
        timed = [row for row in of_session(rows) if row["duration"]]
        first = min(row["duration"] for row in timed)
        for row in timed:
            row["duration"] = round(row["duration"] - first + seconds, 3)

    return change


TIMES = "results (race) without the points, because they contradict the places; without the times, "
# a change, what is said, and the column that is then unknown for the whole race
UNKNOWN = [
    *((put(duration=value), TIMES, "milliseconds") for value in ("fast", -1.0, 9000.0)),
    (put_all("starting_grid", position=1), "inconsistent places 1, 1, 1, 1, 1 and 15 more", "grid"),
    (lasting(1199.9), "without the times, because they contradict the gaps", "milliseconds"),
]


@pytest.mark.parametrize(("change", "said", "column"), UNKNOWN)
def test_values_of_a_race_that_contradict_each_other_are_unknown_with_a_line(
    openf1, rows, lacking, change, said, column
):
    change(rows)
    assert said in "\n".join(refresh(lacking, openf1))
    assert {row[1] for row in facts(lacking, "results", column, 18)} == {None}


@pytest.mark.parametrize(("year", "is_known"), [(2023, True), (2028, True), (2029, False)])
def test_a_driver_is_known_by_the_acronym_for_five_seasons_after_the_last_race(
    sample_database, year, is_known
):
    with closing(open_read_only(sample_database)) as db:
        assert bool(Entrants(db, year).drivers.get("NOR")) == is_known


def test_a_driver_who_was_lapped_or_did_not_start_has_that_status(openf1, rows, lacking):
    results = [row for row in rows["session_result"] if row["session_key"] == RACE]
    last = max((row for row in results if row["position"]), key=lambda row: row["position"])
    last.update(gap_to_leader="+2 LAPS", duration=None, number_of_laps=54)
    retired = next(row for row in results if row["dnf"])
    retired.update(dnf=False, dns=True, number_of_laps=0)
    refresh(lacking, openf1)
    statuses = [status for _, status in facts(lacking, "results", "status.status", 18)]
    assert "+2 Laps" in statuses and "Did not start" in statuses


def test_a_date_without_a_zone_is_utc(monkeypatch):
    monkeypatch.setenv("TZ", "America/Chicago")
    tzset()
    try:
        found = OpenF1Row({"date": "2023-10-22T19:00:00"}, "", "laps").moment("date")
    finally:
        monkeypatch.undo()
        tzset()
    assert found == datetime(2023, 10, 22, 19, tzinfo=UTC)

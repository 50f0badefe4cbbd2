"""racedata.loader.sources.openf1_laps: laps and pit stops, or none if one is missing or wrong."""

from datetime import datetime, timedelta

import pytest
from support.loads import select
from support.openf1 import facts, recorded_rows, refresh, repair_laps

from racedata.loader.sources.openf1_laps import stop_rows
from racedata.loader.sources.openf1_rows import Entry, OpenF1Row


def test_a_stop_has_its_local_time_and_its_duration_to_a_tenth_of_a_second(filled, sample_database):
    for round in (9, 18):
        for new, old in zip(
            facts(filled.database, "pit_stops", "milliseconds, classified.time", round),
            facts(sample_database, "pit_stops", "milliseconds, classified.time", round),
        ):
            times = [datetime.strptime(row[2], "%H:%M:%S") for row in (new, old)]
            assert abs(times[0] - times[1]) <= timedelta(seconds=1)
            assert 0 <= old[1] - new[1] < 110


def test_laps_with_a_hole_are_left_out(filled):
    race = "openf1: 2023/18 United States Grand Prix"
    assert f"{race}, lap times (race) left out: lap 41 of car 4 is missing" in filled.said
    assert facts(filled.database, "lap_times", "lap", 18) == []


def test_laps_have_the_times_and_places_of_the_other_sources(
    openf1, rows, lacking, sample_database
):
    repair_laps(rows, sample_database)
    refresh(lacking, openf1)
    columns = "lap, position, classified.time"
    new, old = (facts(each, "lap_times", columns, 18) for each in (lacking, sample_database))
    # of the first lap, only the times of those who were not lapped are exact, and no place is known
    assert [row for row in new if row[1] > 1] == [row for row in old if row[1] > 1]
    first = {row[0]: row[2:] for row in new if row[1] == 1}
    exact = {row[0]: (None, row[3]) for row in old if row[1] == 1 and row[0] in first}
    assert len(first) == 12
    assert first == exact


def test_places_of_laps_are_unknown_if_changes_are_missing(openf1, rows, lacking, sample_database):
    repair_laps(rows, sample_database)
    rows["position"] = rows["position"][: len(rows["position"]) // 2]
    refresh(lacking, openf1)
    columns = "lap, position"
    new, old = (facts(each, "lap_times", columns, 18) for each in (lacking, sample_database))
    known = {row for row in new if row[2]}
    assert 0 < len(known) < len(new)
    assert known <= {*old}


def test_fastest_laps_are_those_from_the_second_lap_on(openf1, rows, lacking, sample_database):
    repair_laps(rows, sample_database)
    refresh(lacking, openf1)
    columns = "fastestLapTime, rank"
    new, old = (facts(each, "results", columns, 18) for each in (lacking, sample_database))
    # Albon's was deleted.
    assert [pair for pair in zip(new, old) if pair[0] != pair[1]] == [
        (("albon", "1:41.318", 15), ("albon", "1:41.371", 15))
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("lap_duration", 60.0), "car 1 has a lap that is too short"),
        (("lap_duration", 130.0), "the laps of car 1 are 28."),
        (("lap_number", 57), "lap 30 of car 1 is missing"),
        (("lap_number", 29), "lap 29 of car 1 appears twice"),
        (("driver_number", 99), "laps of car 99, which has no result"),
    ],
)
def test_a_race_with_a_wrong_lap_has_no_laps(openf1, rows, lacking, sample_database, change, why):
    repair_laps(rows, sample_database)
    lap = next(row for row in rows["laps"] if row["driver_number"] == 1 and row["lap_number"] == 30)
    lap[change[0]] = change[1]
    said = "\n".join(refresh(lacking, openf1))
    assert f"United States Grand Prix, lap times (race) left out: {why}" in said
    assert facts(lacking, "lap_times", "lap", 18) == []


@pytest.mark.parametrize(("laps", "are_stops"), [([10, 12], True), ([10, 11, 12, 13, 14], False)])
def test_drives_behind_the_safety_car_in_several_laps_in_a_row_are_not_stops(laps, are_stops):
    """Of three drivers, all drive through the lane in these laps; each stops three times later."""
    rows = [
        {
            **{"driver_number": n, "lap_number": lap, "lane_duration": time},
            "date": f"2025-06-15T18:{lap}:0{n}+00:00",
        }
        for n in range(1, 4)
        for lap, time in [*((lap, 16.1) for lap in laps), (30, 22.5), (31, 22.5), (32, 23.1)]
    ]
    entries = {n: Entry(n, n) for n in range(1, 4)}
    found = stop_rows([OpenF1Row(row, "", "pit") for row in rows], entries, 3, timedelta(hours=-4))
    shown = [*(laps if are_stops else []), 30, 31, 32]
    stops = [(row["lap"], row["stop"]) for row in found if row["driverId"] == 1]
    assert stops == [*zip(shown, range(1, 9))]


def test_each_recorded_race_of_two_seasons_has_as_many_stops_as_in_the_other_sources(
    openf1_recorded, full_database
):
    """In Montreal in 2025, most rows are drives behind the safety car, on four laps."""
    found, expected = {}, {}
    for year in (2024, 2025):
        rows = recorded_rows(openf1_recorded / str(year))
        stops = "SELECT date, count(stop) FROM races JOIN pit_stops USING (raceId)"
        expected |= dict(select(full_database, f"{stops} WHERE year = {year} GROUP BY raceId"))
        for session in rows["sessions"]:
            if session["session_name"] == "Race":
                key = session["session_key"]
                pit = [
                    OpenF1Row(row, "", "pit") for row in rows["pit"] if row["session_key"] == key
                ]
                cars = {row.number("driver_number") for row in pit}
                entries = {number: Entry(number, 0) for number in cars}
                made = stop_rows(pit, entries, 20, timedelta(0))
                found[session["date_start"][:10]] = len(made)
    assert len(expected) == 45 and {date: found[date] for date in expected} == expected
    assert found["2025-06-15"] == 33

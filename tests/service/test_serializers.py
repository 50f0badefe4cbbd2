"""racedata.service.serializers: what a value looks like on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from racedata.service import serializers

MILLISECONDS = st.integers(0, 100 * 3_600_000)


def milliseconds(text):
    """The slow way back from a time on the wire."""
    total = 0
    whole, thousandths = text.removeprefix("+").split(".")
    for part in whole.split(":"):
        total = total * 60 + int(part)
    return total * 1000 + int(thousandths)


def test_unknown_values_are_left_out_and_zeros_are_not():
    assert serializers.json_object(a=None, b=0, c="", d={}, e="x", f=1) == {
        "b": "0",
        "c": "",
        "d": {},
        "e": "x",
        "f": "1",
    }


@pytest.mark.parametrize(
    ("format_time", "time", "winner", "text"),
    [
        (serializers.race_time, 5133607, 5133607, "1:25:33.607"),
        (serializers.race_time, 5138762, 5133607, "1:25:38.762"),
        (serializers.race_time, 207071, 207071, "0:03:27.071"),
        (serializers.race_time, 0, 0, "0:00:00.000"),
        (serializers.sprint_time, 1538426, 1538426, "25:38.426"),
        (serializers.sprint_time, 540001, 1, "09:00.001"),
        (serializers.sprint_time, 3600000, 1, "1:00:00.000"),
        (lambda time, winner: serializers.lap_time(time), 54064, None, "0:54.064"),
        (lambda time, winner: serializers.lap_time(time), 73402, None, "1:13.402"),
        (serializers.gap_time, 5133607, 5133607, "1:25:33.607"),
        (serializers.gap_time, 207071, 207071, "3:27.071"),
        (serializers.gap_time, 5138762, 5133607, "+5.155"),
        (serializers.gap_time, 5197885, 5133607, "+1:04.278"),
        (serializers.gap_time, 8733608, 5133607, "+1:00:00.001"),
        (serializers.gap_time, 4797040, 4797566, "1:19:57.040"),
        (serializers.gap_time, 4797040, None, "1:19:57.040"),
    ],
)
def test_a_time_is_written(format_time, time, winner, text):
    assert format_time(time, winner) == text


@given(MILLISECONDS, MILLISECONDS)
def test_a_time_says_its_milliseconds_exactly(time, winner):
    assert milliseconds(serializers.race_time(time, winner)) == time
    assert milliseconds(serializers.sprint_time(time, winner)) == time
    gap = serializers.gap_time(time, winner)
    assert milliseconds(gap) + (winner if gap.startswith("+") else 0) == time


@pytest.mark.parametrize(
    ("year", "session", "name"),
    [
        (2021, "fp2", "SecondPractice"),
        (2023, "fp2", "SecondPractice"),
        (2023, "sq", "SprintShootout"),
        (2024, "sq", "SprintQualifying"),
        (2025, "sq", "SprintQualifying"),
    ],
)
def test_the_session_that_sets_the_grid_of_the_sprint_is_called_after_its_season(
    year, session, name
):
    rows = {session: {"date": "2023-07-01", "time": "10:00:00"}}
    assert serializers.schedule(year, rows, False) == {
        name: {"date": "2023-07-01", "time": "10:00:00Z"}
    }


def test_a_sprint_is_present_even_if_its_time_is_unknown():
    assert serializers.schedule(2023, {}, True) == {"Sprint": {}}


def test_a_session_has_a_time_only_if_it_is_known():
    rows = {"fp1": {"date": "2021-04-16", "time": None}}
    assert serializers.schedule(2021, rows, False) == {"FirstPractice": {"date": "2021-04-16"}}


LAP = {"rank": 3, "fastestLap": 41, "fastestLapTime": "1:07.012", "fastestLapSpeed": "231.97"}


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({}, ["rank", "lap", "Time", "AverageSpeed"]),
        ({"rank": None}, ["lap", "Time", "AverageSpeed"]),
        ({"fastestLapSpeed": None}, ["rank", "lap", "Time"]),
        ({"fastestLap": None, "fastestLapSpeed": None}, ["rank", "Time"]),
        ({"fastestLapTime": None, "fastestLapSpeed": None}, ["rank", "lap"]),
    ],
)
def test_a_fastest_lap_has_what_the_source_has(change, keys):
    assert list(serializers.fastest_lap({**LAP, **change})) == keys


def test_a_fastest_lap_is_left_out_if_neither_its_number_nor_its_time_is_known():
    assert serializers.fastest_lap({**LAP, "fastestLap": None, "fastestLapTime": None}) is None

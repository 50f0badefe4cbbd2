"""racedata.service.serializers: what a value looks like on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from racedata.service import queries, serializers
from racedata.service.snapshot import Snapshot

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


def test_a_sprint_is_present_even_if_its_time_is_unknown():
    assert serializers.schedule(2023, {}, True) == {"Sprint": {}}


LAP = {"rank": 3, "lap": 41, "time": "1:07.012", "speed": "231.97"}


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({}, ["rank", "lap", "Time", "AverageSpeed"]),
        ({"rank": None}, ["lap", "Time", "AverageSpeed"]),
        ({"speed": None}, ["rank", "lap", "Time"]),
        ({"lap": None, "speed": None}, ["rank", "Time"]),
        ({"time": None, "speed": None}, ["rank", "lap"]),
    ],
)
def test_a_fastest_lap_has_what_the_source_has(change, keys):
    assert list(serializers.fastest_lap(**{**LAP, **change})) == keys


DRIVERS = {7: serializers.Shared({"driverId": "senna"})}
CONSTRUCTORS = {8: serializers.Shared({"constructorId": "lotus"})}


def record_of(table, known):
    """The record that a row becomes in which only these columns are known."""
    row = [{"driverId": 7, "constructorId": 8, **known}.get(name) for name in table.columns]
    if table is queries.RESULTS:
        statuses = {1: "Finished"}
        return serializers.result(row, DRIVERS, CONSTRUCTORS, statuses, serializers.race_time, None)
    make = {
        queries.QUALIFYING.name: serializers.qualifying_result,
        queries.PRACTICE.name: serializers.practice_result,
        queries.PITSTOPS.name: serializers.pit_stop,
    }[table.name]
    return make(row, DRIVERS, CONSTRUCTORS)


# By table: what every row has, its keys in the record, and the key that each other column adds.
COLUMNS = [
    (
        queries.RESULTS,
        {"positionOrder": 5},
        ["position", "Driver", "Constructor"],
        {
            "number": (0, "number", "0"),
            "positionText": ("R", "positionText", "R"),
            "points": ("0", "points", "0"),
            "grid": (0, "grid", "0"),
            "laps": (0, "laps", "0"),
            "statusId": (1, "status", "Finished"),
            "milliseconds": (0, "Time", {"millis": "0", "time": "0:00:00.000"}),
            "fastestLap": (9, "FastestLap", {"lap": "9"}),
            "fastestLapTime": ("1:07.012", "FastestLap", {"Time": {"time": "1:07.012"}}),
        },
    ),
    (
        queries.QUALIFYING,
        {},
        ["Driver", "Constructor"],
        {
            "number": (0, "number", "0"),
            "position": (1, "position", "1"),
            "q1": ("1:07.012", "Q1", "1:07.012"),
            "q2": ("1:07.012", "Q2", "1:07.012"),
            "q3": ("1:07.012", "Q3", "1:07.012"),
        },
    ),
    (
        queries.PRACTICE,
        {"session": 1},
        ["session", "Driver", "Constructor"],
        {
            "number": (0, "number", "0"),
            "position": (1, "position", "1"),
            "laps": (0, "laps", "0"),
            "milliseconds": (54064, "Time", {"millis": "54064", "time": "0:54.064"}),
        },
    ),
    (
        queries.PITSTOPS,
        {"stop": 2},
        ["driverId", "stop"],
        {
            "lap": (0, "lap", "0"),
            "time": ("17:05:23", "time", "17:05:23"),
            "milliseconds": (23251, "duration", "23.251"),
        },
    ),
]


@pytest.mark.parametrize(("table", "given", "keys", "others"), COLUMNS)
def test_a_record_has_what_is_known(table, given, keys, others):
    assert list(record_of(table, given)) == keys
    for column, (value, key, written) in others.items():
        record = record_of(table, {**given, column: value})
        assert record[key] == written
        assert sorted(record) == sorted([*keys, key])


NUMBERS = range(1, 20)
IDS = {id: {"driverId": str(id), "constructorId": str(id)} for id in NUMBERS}
TEXTS = {id: str(id) for id in NUMBERS}


def result(row, drivers, constructors):
    return serializers.result(row, drivers, constructors, TEXTS, serializers.race_time, None)


def timing(row, drivers, _):
    (lap,) = serializers.laps([row], drivers)
    (timing,) = lap["Timings"]
    return {"lap": lap["number"], **timing}


@pytest.mark.parametrize(
    ("table", "make"),
    [
        (queries.RESULTS, result),
        (queries.SPRINT, result),
        (queries.QUALIFYING, serializers.qualifying_result),
        (queries.SPRINT_QUALIFYING, serializers.qualifying_result),
        (queries.PRACTICE, serializers.practice_result),
        (queries.LAPS, timing),
        (queries.PITSTOPS, serializers.pit_stop),
    ],
)
def test_each_column_that_a_query_finds_is_in_the_record_where_model_py_says(
    sample_database, table, make
):
    _, (row, *_) = table.page(Snapshot.read(sample_database), {}, 1, 0)
    names = row.keys()
    number_of = dict(zip(names, NUMBERS))
    record = make([None if name == "NULL" else number_of[name] for name in names], IDS, IDS)
    assert number_of.keys() - {"raceId", "NULL"} == table.kind.paths.keys()
    for column, path in table.kind.paths.items():
        value = record
        for key in path.split("."):
            value = value[key]
        if path == "duration":
            value = milliseconds(value)
        assert str(value) == str(number_of[column])


def test_the_rank_of_a_fastest_lap_alone_is_no_fastest_lap():
    record = record_of(
        queries.RESULTS, {"positionOrder": 5, "rank": 3, "fastestLapSpeed": "231.97"}
    )
    assert "FastestLap" not in record


def test_a_shared_object_is_written_once_for_all_answers():
    driver = serializers.Shared({"driverId": "räikkönen"})
    assert serializers.written({"Driver": driver}) == '{"Driver":{"driverId":"räikkönen"}}'.encode()
    driver["code"] = "RAI"
    assert serializers.written({"Driver": driver}) == '{"Driver":{"driverId":"räikkönen"}}'.encode()

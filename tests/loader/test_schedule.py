"""racedata.loader.schedule, existing: a source is checked when it may have news, and asked only for
what it may have.
"""

from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from support.loads import changed

from racedata.loader.existing import expected_records, open_read_only
from racedata.loader.schedule import (
    Expected,
    as_stored,
    next_check,
    soon_after,
    to_ask,
)

START = datetime(2023, 10, 22, 19, tzinfo=UTC)


def records(kind="results", is_stored=False, session="race"):
    return Expected(2023, 18, session, kind, START, is_stored)


def minutes(hours=0, minutes=0):
    return timedelta(hours=hours, minutes=minutes)


@pytest.mark.parametrize(
    ("kind", "is_stored", "age", "wait"),
    [
        ("results", False, minutes(-30), minutes(24)),
        ("results", False, minutes(-20), minutes(21, 30)),
        ("results", False, minutes(1, 29), minutes(0, 1)),
        ("results", False, minutes(1, 30), minutes(0, 20)),
        ("lap_times", False, minutes(7, 29), minutes(0, 20)),
        ("results", False, minutes(7, 30), minutes(1)),
        ("lap_times", False, minutes(73), minutes(1)),
        ("results", False, minutes(73, 30), minutes(24)),
        ("results", True, minutes(-20), minutes(21, 30)),
        ("results", True, minutes(1, 30), minutes(1)),
        ("results", True, minutes(25), minutes(1)),
        ("results", True, minutes(25, 30), minutes(24)),
        ("lap_times", True, minutes(2), minutes(24)),
        ("qualifying", True, minutes(2), minutes(24)),
    ],
)
def test_the_next_check_depends_on_the_age_of_missing_records(kind, is_stored, age, wait):
    now = START + age
    assert next_check([records(kind, is_stored)], now) == now + wait


def test_the_next_check_is_the_earliest_that_any_records_need():
    now = START + minutes(0, 80)
    stored = [records(kind, True) for kind in ("results", "pit_stops")]
    assert next_check([*stored, records("lap_times")], now) == START + minutes(1, 30)
    assert next_check([], now) == now + minutes(24)


@pytest.mark.parametrize(
    ("results_are_stored", "age", "asked"),
    [
        (False, minutes(1), []),
        (False, minutes(2), ["qualifying", "results"]),
        (True, minutes(2), ["qualifying", "results", "lap_times"]),
        (True, minutes(30), ["qualifying", "lap_times"]),
        (False, minutes(74), []),
    ],
)
def test_a_source_is_asked_for_missing_records_and_for_results_that_penalties_may_change(
    results_are_stored, age, asked
):
    stored = [records("sprint_results", True, "sprint"), records("pit_stops", results_are_stored)]
    missing = [
        records("qualifying", False, "quali"),
        records("results", results_are_stored),
        records("lap_times"),
    ]
    assert [each.kind for each in to_ask([*stored, *missing], START + age)] == asked


def expected_in(path):
    with closing(open_read_only(path)) as db:
        return expected_records(db)


def test_the_records_of_a_sprint_weekend_are_expected_after_their_sessions(sample_database):
    expected = expected_in(sample_database)
    assert {each.year for each in expected} == {2023}
    of_race = "results", "pit_stops", "lap_times", "driver_standings", "constructor_standings"
    assert [
        (each.session, each.kind, each.starts.strftime("%d %H:%M"), each.is_stored)
        for each in sorted(expected, key=lambda each: each.starts)
        if each.round == 18
    ] == [
        ("fp1", "practice", "20 17:30", True),
        ("quali", "qualifying", "20 21:00", True),
        ("sq", "sprint_qualifying", "21 18:00", True),
        ("sprint", "sprint_results", "21 22:00", True),
        *(("race", kind, "22 19:00", True) for kind in of_race),
    ]


def test_a_session_without_a_time_is_expected_at_noon_and_one_without_a_date_on_the_day_of_the_race(
    database,
):
    """Practice is stored if there are records of this practice."""
    of_race = "raceId = (SELECT raceId FROM races WHERE year = 2023 AND round = 22)"
    changed(
        database,
        f"UPDATE races SET time = NULL WHERE {of_race}",
        f"UPDATE sessions SET time = NULL WHERE {of_race} AND session = 'fp1'",
        f"UPDATE sessions SET date = NULL WHERE {of_race} AND session = 'fp2'",
        f"DELETE FROM sessions WHERE {of_race} AND session IN ('fp3', 'quali')",
        """INSERT INTO practice (raceId, session, driverId, constructorId)
            SELECT raceId, 2, 1, 1 FROM races WHERE year = 2023 AND round = 22""",
    )
    found = [each for each in expected_in(database) if each.round == 22]
    assert {each.session: f"{each.starts:%d %H:%M}" for each in found} == {
        "fp1": "24 12:00",
        "fp2": "26 12:00",
        "quali": "26 12:00",
        "race": "26 12:00",
    }
    practices = [each for each in found if each.kind == "practice"]
    assert [each.session for each in practices if each.is_stored] == ["fp2"]


def test_a_database_without_results_expects_all_of_them(database):
    changed(database, "DELETE FROM results")
    assert len({each.year for each in expected_in(database)}) == 5


def test_a_source_may_be_asked_soon_after_the_planned_end_of_a_session():
    expected = [records(), records("qualifying", session="quali")]
    soon = soon_after(expected, minutes(0, 15))
    assert next_check(soon[:1], START) == START + minutes(2, 15)
    assert next_check(soon[1:], START) == START + minutes(1, 15)


def test_provisional_records_count_as_missing_for_others_and_their_source_is_asked_again():
    missing, final = records("lap_times"), records("qualifying", True)
    given = records("results", True)._replace(is_provisional=True)
    assert as_stored([missing, final, given], is_provisional=True) == [missing, given]
    assert [each.is_stored for each in as_stored([missing, final, given], False)] == [
        False,
        True,
        False,
    ]


def test_records_of_a_provisional_source_are_provisional(database):
    changed(
        database,
        "UPDATE sources SET isProvisional = 1",
        "DELETE FROM origins WHERE RACE(2023/18) AND kind = 'lap_times'",
        "DELETE FROM lap_times WHERE RACE(2023/18)",
    )
    found = {
        each.kind: (each.is_stored, each.is_provisional)
        for each in expected_in(database)
        if (each.year, each.round) == (2023, 18)
    }
    assert found["results"] == (True, True)
    assert found["lap_times"] == (False, False)

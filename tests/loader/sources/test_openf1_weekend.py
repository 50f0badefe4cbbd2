"""racedata.loader.sources.openf1_weekend: a weekend has the facts of the other sources."""

import shutil
from collections import Counter
from itertools import cycle
from typing import NamedTuple

import pytest
from support.apis import refreshed, served
from support.loads import changed
from support.openf1 import (
    RACE,
    RECORDS,
    RESULT,
    SUNDAY,
    OpenF1Server,
    facts,
    in_austin,
    recorded_rows,
    refresh,
    rounds_with,
)


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("practice", "session, classified.number, position, laps, milliseconds"),
        ("qualifying", "classified.number, position, q1, q2, q3"),
        ("sprint_qualifying", "classified.number, position, q1, q2, q3"),
        ("sprint_results", f"{RESULT}, points"),
        ("results", RESULT),
        ("pit_stops", "stop, lap"),
    ],
)
@pytest.mark.parametrize("round", [9, 18])
def test_a_weekend_has_the_facts_of_the_other_sources(
    filled, sample_database, kind, columns, round
):
    found = facts(filled.database, kind, columns, round)
    assert found == facts(sample_database, kind, columns, round)


def test_unknown_facts_of_a_result_are_left_out(filled):
    race = "openf1: 2023/18 United States Grand Prix"
    assert (
        f"{race}, results (race) without the points, because they contradict the places"
        in filled.said
    )
    found = {row[0]: row[1:] for row in facts(filled.database, "results", "points, grid", 18)}
    assert found["max_verstappen"] == (None, 6)
    assert found["hulkenberg"] == (None, None)  # he started from the pit lane
    found = {row[0]: row[1:] for row in facts(filled.database, "results", "points, grid", 9)}
    assert found["max_verstappen"] == ("26", 1)


def test_only_the_reason_for_a_retirement_is_missing_from_statuses(filled, sample_database):
    for round, retired in (
        (9, {"hulkenberg": "Power loss"}),
        (18, {"alonso": "Undertray", "ocon": "Collision damage", "piastri": "Radiator"}),
    ):
        new, old = (
            dict(facts(each, "results", "status", round))
            for each in (filled.database, sample_database)
        )
        assert {
            driver: status for driver, status in old.items() if new[driver] != status
        } == retired
        assert {new[driver] for driver in retired} == {"Retired"}


COMPARED = {
    "practice": "session, classified.number, position, laps, milliseconds",
    "qualifying": "classified.number, position, q1, q2, q3",
    "sprint_qualifying": "classified.number, position, q1, q2, q3",
    "sprint_results": f"{RESULT}, points, grid, status",
    "results": f"{RESULT}, points, grid, status, fastestLap, fastestLapTime, rank",
    "pit_stops": "stop, lap, milliseconds",
    "lap_times": "lap, classified.time",
}


KEYS = {"practice": 2, "pit_stops": 2, "lap_times": 2}  # values that identify a row of a race


class Differences(NamedTuple):
    """How the records of a kind differ, over all races."""

    rows: int  # that OpenF1 gave
    missing: int
    extra: int
    unknown: dict[str, int]  # values by column that only the other source has
    wrong: dict[str, int]  # values by column that both have


def compared(new, old, kind, year, rounds):
    columns = [name.rpartition(".")[2] for name in COMPARED[kind].split(", ")]
    key = KEYS.get(kind, 1)
    rows = missing = extra = 0
    unknown, wrong = Counter[str](), Counter[str]()
    for round in range(1, rounds + 1):
        there, here = (
            {row[:key]: row for row in facts(each, kind, COMPARED[kind], round, year)}
            for each in (new, old)
        )
        rows += len(there)
        missing += len({*here} - {*there})
        extra += len({*there} - {*here})
        for same in {*here} & {*there}:
            for column, a, b in zip(columns, there[same][1:], here[same][1:]):
                if a != b:
                    (unknown if a is None else wrong)[column] += 1
    return Differences(rows, missing, extra, dict(unknown), dict(wrong))


# Practice and sprint qualifying are compared with f1db, everything else with Ergast's dump.
DIFFERENCES = {
    "practice": Differences(1073, 0, 0, {}, {}),
    # OpenF1 lacks 2023/12. In 2023/10, Bottas was disqualified, so others moved up; Ergast and f1db
    # do not have that. 2023/4: De Vries had a time.
    "qualifying": Differences(420, 20, 0, {}, {"position": 6, "q1": 1}),
    "sprint_qualifying": Differences(120, 0, 0, {}, {}),
    # Ergast has the reasons for retirements. A driver who did not start is missing. The last three
    # places on a grid are unknown.
    "sprint_results": Differences(119, 1, 0, {"grid": 19}, {"status": 4}),
    # One who did not start is missing. The points of 2023/2 and 2023/18 contradict the places.
    # Fastest laps are only known with the laps; some were deleted, so others have other ranks.
    "results": Differences(
        439,
        1,
        0,
        {"grid": 89, "points": 40, "fastestLap": 330, "fastestLapTime": 330, "rank": 330},
        {"status": 60, "fastestLap": 2, "fastestLapTime": 2, "rank": 4},
    ),
    # OpenF1 lacks the first six races. Durations have only tenths, up to 2024/18.
    "pit_stops": Differences(693, 219, 0, {}, {"milliseconds": 686}),
    # The dump has laps of four races. Of these, only 2023/1 is whole, but for lap 1 of those who
    # were lapped. Four other races are extra.
    "lap_times": Differences(5298, 3150, 4252, {}, {}),
}


@pytest.mark.long(30)
def test_a_whole_season_has_the_facts_of_the_other_sources(
    openf1_recorded, full_database, tmp_path
):
    database = shutil.copy(full_database, tmp_path / "racedata.db")
    ids = "SELECT raceId FROM races WHERE year = 2023"
    kept = "kind IN ('races', 'sessions')"
    changes = [f"DELETE FROM {kind} WHERE raceId IN ({ids})" for kind in (*RECORDS, "entries")]
    changed(database, *changes, f"DELETE FROM origins WHERE NOT {kept} AND raceId IN ({ids})")
    with served(OpenF1Server(recorded_rows(openf1_recorded / "2023")).answer) as server:
        url = f"openf1:{server.url}"
        said, _ = refreshed(database, url, season=2023, now=SUNDAY + 800 * 86400)
        assert len(server.paths) <= 6 * 22
    found = {kind: compared(database, full_database, kind, 2023, 22) for kind in COMPARED}
    assert found == DIFFERENCES
    refused = [line for line in said if "lap times" in line]
    holes = [line for line in refused if line.endswith("is missing")]
    assert len(refused) == len(holes) == 17  # of 22 races


def test_a_session_with_drivers_of_another_series_has_only_the_drivers_of_the_weekend(
    openf1, rows, lacking, sample_database
):
    for row in in_austin(rows, "drivers"):
        if row["session_key"] == 9206:
            row |= {"name_acronym": "ARO", "full_name": "Paul ARON", "team_name": None}
    refresh(lacking, openf1)
    columns = "classified.number, constructorId, position, laps"
    new, old = (facts(each, "practice", columns, 18) for each in (lacking, sample_database))
    assert [row[:2] + row[3:] for row in new] == [row[:2] + row[3:] for row in old]


def test_practice_with_an_unknown_driver_is_stored_without_that_row_and_with_a_line(
    openf1, rows, lacking, sample_database
):
    """As a test driver, who has a number of his own."""
    practice = [row for row in in_austin(rows, "session_result") if row["session_key"] == 9206]
    (third,) = (row for row in practice if row["position"] == 3)
    known = third["driver_number"]
    for row in (*practice, *in_austin(rows, "drivers")):
        if row["session_key"] == 9206 and row["driver_number"] == known:
            row["driver_number"] = 97
            if "name_acronym" in row:
                row |= {"name_acronym": "ARO", "full_name": "Paul ARON"}
    said = refresh(lacking, openf1)
    line = "practice (fp1) without car 97: no driver is known"
    assert f"openf1: 2023/18 United States Grand Prix, {line}" in said
    columns = "session, classified.number, position, laps"
    new, old = (facts(each, "practice", columns, 18) for each in (lacking, sample_database))
    left_out = [row for row in old if row not in new]
    assert len(new) == len(old) - 1 and [known] == [row[2] for row in left_out]
    third["position"] = 30  # his place is checked like those of the others
    said = refresh(lacking, openf1)
    assert "practice (fp1) left out: inconsistent places" in "\n".join(said)


def test_a_race_without_a_usable_stop_is_stored_without_stops(openf1, rows, lacking):
    for unknown, row in zip(cycle(["lane_duration", "lap_number", "date"]), in_austin(rows, "pit")):
        row[unknown] = None
    refresh(lacking, openf1)
    assert len(facts(lacking, "results", "laps", 18)) == 20
    assert rounds_with(lacking, "pit_stops") == {9}


@pytest.mark.parametrize(
    ("key", "kind", "label", "missing"),
    [(RACE, "results", "results (race)", 1), (9206, "practice", "practice (fp1)", 7)],
)
def test_a_session_that_lacks_some_drivers_is_stored_with_a_line(
    openf1, rows, lacking, key, kind, label, missing
):
    results = [row for row in rows["session_result"] if row["session_key"] == key]
    for row in sorted(results, key=lambda row: row["position"] or 99)[-missing:]:
        rows["session_result"].remove(row)
    said = "\n".join(refresh(lacking, openf1))
    assert f"United States Grand Prix, {label} without {missing} of 20 drivers" in said
    assert len(facts(lacking, kind, "laps", 18)) == 20 - missing


def test_a_sprint_has_its_fastest_laps(openf1, rows, lacking, sample_database):
    """The laps of the sprint are made, because they were not recorded."""
    session = next(
        row
        for row in rows["sessions"]
        if row["session_name"] == "Sprint" and row["meeting_key"] == 1222
    )
    results = [
        row for row in rows["session_result"] if row["session_key"] == session["session_key"]
    ]
    for n, row in enumerate(sorted(results, key=lambda row: row["position"] or 99), 1):
        for lap in range(2, row["number_of_laps"] + 1):
            duration = round(99 + lap / 1000 + n / 100, 3)
            rows["laps"].append(
                {
                    **{key: row[key] for key in ("session_key", "meeting_key", "driver_number")},
                    **{"lap_number": lap, "lap_duration": duration},
                }
            )
    refresh(lacking, openf1)
    found = facts(lacking, "sprint_results", "fastestLap, fastestLapTime, rank", 18)
    assert found[0] == ("max_verstappen", 2, "1:39.012", 1)
    assert [row[3] for row in found][:15] == [*range(1, 16)]

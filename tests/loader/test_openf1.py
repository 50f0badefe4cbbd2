"""racedata.loader.sources.openf1: a weekend is stored within the hour, until another source has it;
what is wrong or doubtful is left out.
"""

import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.apis import Server, refreshed, served
from support.loads import changed, select
from support.openf1 import OpenF1Server, excerpt

from racedata.kinds import KINDS
from racedata.loader.build import load
from racedata.loader.errors import LoadError

Json = dict[str, Any]
Rows = dict[str, list[Json]]

AUSTRIA, AUSTIN = (2023, 9), (2023, 18)
RACE = 9213  # Austin's session_key; 9118 is Austria's
SUNDAY = 1698019200  # 23 October 2023, 0:00 UTC: after the race in Austin
RECORDS = [kind for kind in KINDS if not KINDS[kind].table]
GIVEN = [kind for kind in RECORDS if "standings" not in kind]


def without(database: Path, *kinds: str) -> Path:
    """A database without these records of the two weekends."""
    ids = "SELECT raceId FROM races WHERE year = 2023 AND round IN (9, 18)"
    for kind in kinds:
        changed(database, f"DELETE FROM {kind} WHERE raceId IN ({ids})")
        changed(database, f"DELETE FROM origins WHERE kind = '{kind}' AND raceId IN ({ids})")
    if "results" in kinds:
        changed(database, f"DELETE FROM origins WHERE kind = 'fastest_laps' AND raceId IN ({ids})")
        changed(database, f"DELETE FROM entries WHERE raceId IN ({ids})")
    return database


@pytest.fixture(scope="module")
def lacking_file(sample_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample without the records of the two weekends."""
    path = tmp_path_factory.mktemp("lacking") / "racedata.db"
    return without(shutil.copy(sample_database, path), *RECORDS)


@pytest.fixture
def lacking(lacking_file: Path, tmp_path: Path) -> Path:
    """A copy of it, alone in its folder."""
    folder = tmp_path / "lacking"
    folder.mkdir()
    return shutil.copy(lacking_file, folder / "racedata.db")


@pytest.fixture
def rows() -> Rows:
    return excerpt()


@pytest.fixture
def openf1(rows: Rows) -> Iterator[Server]:
    """A server that has `rows`, which a test may change."""
    with served(OpenF1Server(rows).answer) as server:
        yield server


class Filled(NamedTuple):
    """What a refresh has filled in."""

    database: Path
    said: list[str]
    requests: list[str]


@pytest.fixture(scope="module")
def filled(lacking_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """The two weekends from OpenF1."""
    database = shutil.copy(lacking_file, tmp_path_factory.mktemp("filled") / "racedata.db")
    with served(OpenF1Server(excerpt()).answer) as server:
        said = refresh(database, server)
        return Filled(database, said, server.paths)


def refresh(database: Path, server: Server, now: float = SUNDAY) -> list[str]:
    said, _ = refreshed(database, f"openf1:{server.url}", season=2023, now=now)
    return [line for line in said if "is left out: no race of OpenF1" not in line]


def facts(database: Path, kind: str, columns: str, round: int) -> list[tuple[Any, ...]]:
    """The rows of a kind of a race of 2023, with the drivers' ids."""
    joins = "JOIN constructors USING (constructorId) JOIN status USING (statusId)"
    return select(
        database,
        f"""SELECT driverRef, {columns} FROM {kind} AS classified JOIN races USING (raceId)
            JOIN drivers USING (driverId) {joins * kind.endswith("results")}
            WHERE races.year = 2023 AND races.round = {round} ORDER BY record""",
    )


RESULT = "classified.number, constructorRef, positionText, positionOrder, laps, milliseconds"


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
    filled: Filled, sample_database: Path, kind: str, columns: str, round: int
) -> None:
    found = facts(filled.database, kind, columns, round)
    assert found == facts(sample_database, kind, columns, round)


def test_a_weekend_takes_at_most_ten_requests(filled: Filled) -> None:
    assert Counter(request.partition("?")[0] for request in filled.requests) == {
        "sessions": 1,
        **dict.fromkeys(("session_result", "drivers", "starting_grid", "pit", "laps"), 2),
    }


def test_what_is_unknown_of_a_result_is_left_out(filled: Filled) -> None:
    race = "openf1: 2023/18 United States Grand Prix"
    assert f"{race}, results (race) without points, which contradict the places" in filled.said
    found = {row[0]: row[1:] for row in facts(filled.database, "results", "points, grid", 18)}
    assert found["max_verstappen"] == (None, 6)
    assert found["hulkenberg"] == (None, None)  # he started from the pit lane
    found = {row[0]: row[1:] for row in facts(filled.database, "results", "points, grid", 9)}
    assert found["max_verstappen"] == ("26", 1)


def test_only_the_reason_of_a_retirement_is_missing_in_statuses(
    filled: Filled, sample_database: Path
) -> None:
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


def test_a_stop_has_its_local_time_and_its_duration_to_a_tenth_of_a_second(
    filled: Filled, sample_database: Path
) -> None:
    for round in (9, 18):
        for new, old in zip(
            facts(filled.database, "pit_stops", "milliseconds, classified.time", round),
            facts(sample_database, "pit_stops", "milliseconds, classified.time", round),
        ):
            times = [datetime.strptime(row[2], "%H:%M:%S") for row in (new, old)]
            assert abs(times[0] - times[1]) <= timedelta(seconds=1)
            assert 0 <= old[1] - new[1] < 110


def test_laps_with_a_hole_are_left_out(filled: Filled) -> None:
    race = "openf1: 2023/18 United States Grand Prix"
    assert f"{race}, lap times (race) left out: lap 41 of number 4 is missing" in filled.said
    assert facts(filled.database, "lap_times", "lap", 18) == []


def repair(rows: Rows, sample_database: Path) -> None:
    """Adds the two laps that OpenF1 lacks, and when each lap began, and the places at its end."""
    keys = {"session_key": RACE, "meeting_key": 1222}
    for number, lap, duration in ((4, 41, 100.733), (20, 7, 103.874)):
        lap_row = {"driver_number": number, "lap_number": lap, "lap_duration": duration}
        rows["laps"].append({**keys, **lap_row})
    numbers = dict(facts(sample_database, "results", "classified.number", 18))
    now = {number: datetime(2023, 10, 22, 19, 3, tzinfo=UTC) for number in numbers.values()}
    for driver, lap, position, time in facts(
        sample_database, "lap_times", "lap, position, classified.time", 18
    ):
        number, (minutes, seconds) = numbers[driver], time.split(":")
        for row in rows["laps"]:
            if (row["driver_number"], row["lap_number"]) == (number, lap):
                row["date_start"] = now[number].isoformat()
        now[number] += timedelta(minutes=int(minutes), seconds=float(seconds))
        change = {"driver_number": number, "date": now[number].isoformat(), "position": position}
        rows["position"].append({**keys, **change})


def test_laps_have_the_times_and_places_of_the_other_sources(
    openf1: Server, rows: Rows, lacking: Path, sample_database: Path
) -> None:
    rows["position"] = []
    repair(rows, sample_database)
    refresh(lacking, openf1)
    columns = "lap, position, classified.time"
    new, old = (facts(each, "lap_times", columns, 18) for each in (lacking, sample_database))
    # of the first lap, only the times of those who were not lapped are exact, and no place is known
    assert [row for row in new if row[1] > 1] == [row for row in old if row[1] > 1]
    first = {row[0]: row[2:] for row in new if row[1] == 1}
    exact = {row[0]: (None, row[3]) for row in old if row[1] == 1 and row[0] in first}
    assert len(first) == 12
    assert first == exact


def test_fastest_laps_are_those_from_the_second_lap_on(
    openf1: Server, rows: Rows, lacking: Path, sample_database: Path
) -> None:
    rows["position"] = []
    repair(rows, sample_database)
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
        (("lap_duration", 60.0), "number 1 has a lap that is too short"),
        (("lap_duration", 130.0), "the laps of number 1 are 28."),
        (("lap_number", 57), "lap 30 of number 1 is missing"),
        (("lap_number", 29), "lap 29 of number 1 twice"),
        (("driver_number", 99), "laps of number 99, which has no result"),
    ],
)
def test_a_race_with_a_wrong_lap_has_no_laps(
    openf1: Server,
    rows: Rows,
    lacking: Path,
    sample_database: Path,
    change: tuple[str, object],
    why: str,
) -> None:
    rows["position"] = []
    repair(rows, sample_database)
    lap = next(row for row in rows["laps"] if row["driver_number"] == 1 and row["lap_number"] == 30)
    lap[change[0]] = change[1]
    said = "\n".join(refresh(lacking, openf1))
    assert f"United States Grand Prix, lap times (race) left out: {why}" in said
    assert facts(lacking, "lap_times", "lap", 18) == []


def test_load_refuses_it(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="openf1: it has no calendar and no history; expected"):
        load(["openf1"], str(tmp_path / "racedata.db"), None, lambda text: None)

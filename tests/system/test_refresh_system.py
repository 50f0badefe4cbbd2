"""Refreshing a database of a full dump from a real service over that dump, as it would be from the
public one.
"""

import csv
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from support import SAMPLE
from support.answers import client
from support.apis import answers_of, hanging, refreshed, served
from support.loads import (
    RECORDS,
    ROW_IDS,
    built,
    csv_rows,
    edited,
    facts_of,
    is_whole,
    race_ids,
    remembered,
    rows_of,
    select,
    without,
)
from support.processes import OFF, following, service, until
from support.refreshes import like_jolpica
from support.season import LimitedApi, SimulatedTime, follow_source

from racedata.loader.corrections import CORRECTIONS
from racedata.loader.refresh import Refresh

LAST = 21  # the latest round of 2025 in the dump that was run
KILLS = 6  # of a refresh of several seasons


def add_laps(folder, races, laps):
    """Adds laps of each driver in these races of a dump."""
    rows = [row for row in csv_rows(folder, "results") if row["raceId"] in races]
    with (folder / "lap_times.csv").open("r+", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, next(csv.reader(file)), restval=r"\N")
        file.seek(0, os.SEEK_END)
        for number, row in enumerate(rows):
            known = {name: row[name] for name in ("raceId", "driverId")}
            for lap in range(1, laps + 1):
                time = f"1:{20 + number % 20}.{lap:03}"
                writer.writerow({**known, "lap": lap, "position": 1 + number % 20, "time": time})
    return folder


@pytest.fixture(scope="module")
def source(dump, tmp_path_factory):
    """The dump with what it lacks: 55 laps of each driver in the last ten races that were run."""
    folder = edited(dump, tmp_path_factory.mktemp("source") / "dump")
    races = {id for round, id in race_ids(dump, 2025).items() if LAST - 10 < round <= LAST}
    return add_laps(folder, races, 55)


@pytest.fixture(scope="module")
def complete(source, tmp_path_factory):
    """The path of the database of that dump."""
    return built(source, tmp_path_factory.mktemp("complete") / "racedata.db")


@contextmanager
def api(database, folder, **settings):
    """The address of a service over a database."""
    with service(
        database, folder / "api.log", **{**OFF, "WEB_CONCURRENCY": "2", **settings}
    ) as running:
        yield "http://{}:{}/ergast/f1".format(*running.address)


def behind(source, folder, rounds, **edits):
    """A database of the dump without the last rounds that were run."""
    gone = range(LAST - rounds + 1, LAST + 1)
    return built(
        without(source, folder / f"dump{rounds}", 2025, *gone, **edits),
        folder / f"racedata{rounds}.db",
    )


@pytest.mark.long(30)
@pytest.mark.parametrize(
    ("limit", "expected"),
    # With pages of 100, the lists of the season take 13 requests: seasons, calendar, sprints, five
    # each for results and qualifying. A new round takes 15: practice, pit stops, both standings and
    # eleven pages of laps; and one more if it has a sprint qualifying.
    [("2000", {1: 11, 3: 22, 10: 58}), ("100", {1: 29, 3: 60, 10: 166})],
)
def test_rounds_that_are_missing_come_back_row_by_row(source, complete, tmp_path, limit, expected):
    with api(complete, tmp_path, RACEDATA_MAX_LIMIT=limit) as url:
        for rounds, requests in expected.items():
            database = behind(source, tmp_path, rounds)
            said, counted = refreshed(database, url)
            print(rounds, counted, *said, sep="\n  ")
            assert rows_of(database) == rows_of(complete)
            assert counted == requests
            said, counted = refreshed(database, url)
            assert "nothing new" in said[-1]
            assert counted <= 20


def test_a_changed_result_a_renumbered_and_a_cancelled_round_come_right(source, complete, tmp_path):
    """Here: the race of round 24 is round 5, those between are one later, and round 20 has a wrong
    result. In the API, Las Vegas is cancelled.
    """
    ids = race_ids(source, 2025)

    def renumbered(row):
        round = int(row["round"])
        if row["year"] != "2025" or round < 5:
            return row
        return {**row, "round": "5" if round == 24 else str(round + 1)}

    def changed(row):
        return (
            {**row, "points": "99"}
            if row["raceId"] == ids[20] and row["positionOrder"] == "3"
            else row
        )

    def cancelled(row):
        if row["year"] != "2025" or int(row["round"]) < 22:
            return row
        return None if row["round"] == "22" else {**row, "round": str(int(row["round"]) - 1)}

    database = behind(source, tmp_path, 1, races=renumbered, results=changed)
    expected = built(
        edited(source, tmp_path / "cancelled", races=cancelled), tmp_path / "cancelled.db"
    )
    with api(expected, tmp_path, RACEDATA_MAX_LIMIT="100") as url:
        refreshed(database, url)
        later = time.time() + 13 * 3600  # only then a race that the API lacks counts as cancelled
        said, counted = refreshed(database, url, now=later)
        print(counted, *said, sep="\n  ")
        assert rows_of(database) == rows_of(expected)
        assert "nothing new" in refreshed(database, url, now=later)[0][-1]


def test_an_older_dump_gets_the_records_that_were_fetched_before(source, complete, tmp_path):
    database = behind(source, tmp_path, 3)
    with api(complete, tmp_path) as url:
        refreshed(database, url)
    built(tmp_path / "dump3", database)
    assert rows_of(database) == rows_of(complete)


def run_for(seconds, database, url):
    """A refresh without pauses between requests, which is killed after so many seconds. Returns its
    status, or None.
    """
    imports = (
        "import sys; from racedata.loader.refresh_command import main; "
        "from racedata.loader.sources import pace"
    )
    program = f"{imports}; pace.PACE = [(1, 0)]; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "--from", url, "--database", database]
    with suppress(subprocess.TimeoutExpired):
        return subprocess.run(command, capture_output=True, timeout=seconds).returncode
    return None


@pytest.mark.long(30)
def test_refreshes_killed_at_any_moment_leave_a_whole_database(source, complete, tmp_path):
    database = behind(source, tmp_path, 1)
    old, rows = database.read_bytes(), rows_of(complete)
    with api(complete, tmp_path) as url:
        begin = time.monotonic()
        assert run_for(60, database, url) == 0
        seconds, kills = time.monotonic() - begin, 0
        while kills < 10:
            database.write_bytes(old)
            kills += run_for(random.uniform(0.1, 1) * seconds, database, url) is None
            assert database.read_bytes() == old or rows_of(database) == rows
        assert run_for(60, database, url) == 0
    assert rows_of(database) == rows
    assert sorted(path.name for path in database.parent.glob(".racedata*")) == []


def ended(source, folder, year, round):
    """A dump that ends after a race of the past."""
    races = {
        row["raceId"]: (int(row["year"]), int(row["round"])) for row in csv_rows(source, "races")
    }
    edits = {
        name: lambda row: row if races[row["raceId"]] <= (year, round) else None for name in RECORDS
    }
    edits["races"] = edits["seasons"] = lambda row: row if int(row["year"]) <= year else None
    return edited(source, folder, **edits)


@pytest.mark.long(30)
def test_seasons_that_are_missing_come_back_row_by_row(source, complete, tmp_path):
    database = built(ended(source, tmp_path / "dump", 2023, 16), tmp_path / "racedata.db")
    with api(complete, tmp_path) as url:
        said, requests = refreshed(database, url)
        print(requests, *said, sep="\n  ")
        assert facts_of(database) == facts_of(complete)
        assert requests == 282
        assert "nothing new" in refreshed(database, url)[0][-1]


@pytest.mark.long(30)
def test_refreshes_of_several_seasons_that_are_killed_and_resumed_lack_nothing(
    source, complete, tmp_path
):
    database = built(ended(source, tmp_path / "dump", 2023, 16), tmp_path / "racedata.db")
    old, facts, kills = database.read_bytes(), facts_of(complete), []
    with api(complete, tmp_path) as url:
        begin = time.monotonic()
        assert run_for(300, database, url) == 0
        whole = time.monotonic() - begin
        while len(kills) < KILLS:
            if facts_of(database) == facts:
                database.write_bytes(old)
            if run_for(random.uniform(0, 0.8) * whole, database, url) is None:
                assert is_whole(database)
                latest = (
                    "SELECT year, max(round) FROM races JOIN results USING (raceId) GROUP BY "
                    "1 ORDER BY 1 DESC"
                )
                kills.append("{}/{}".format(*select(database, latest)[0]))
        assert run_for(300, database, url) == 0
    print(f"the latest race when it was killed: {', '.join(kills)}")
    assert facts_of(database) == facts
    assert sorted(path.name for path in database.parent.glob(".racedata*")) == []


KEYS = {
    **dict.fromkeys(("results", "qualifying", "sprint_results", "driver_standings"), "driverId"),
    "pit_stops": "driverId, stop",
    "lap_times": "driverId, lap",
    "constructor_standings": "constructorId",
}
# In how many rows of a round of 2025 f1db's records differ from those of the dump; "row" counts
# rows that it lacks.
F1DB_DIFFERENCES = {
    ("results", "grid"): {18: 2, 21: 2},  # 0 of who started in the pit lane
    ("results", "fastestLap"): {18: 7, 20: 2, 21: 1},  # later by one
    ("results", "statusId"): {21: 2},  # Collision and Accident
    ("sprint_results", "statusId"): {21: 1},  # Finished although he retired
    # none
    **{
        ("sprint_results", column): {19: 17, 21: 20}
        for column in ("rank", "fastestLap", "fastestLapTime")
    },
    ("pit_stops", "time"): {17: 21, 18: 23, 19: 21, 20: 26, 21: 36},  # none
    ("pit_stops", "row"): {20: 1, 21: 1},
    ("lap_times", "row"): dict.fromkeys(range(17, LAST + 1), 20 * 55),  # none
}


def differences(database, complete):
    """In how many rows of 2025 two databases of the same dump differ: by table and column, and by
    round.
    """
    found = {}
    with closing(sqlite3.connect(database)) as db:
        db.execute("ATTACH ? AS complete", (str(complete),))
        for table, key in KEYS.items():
            names = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")]
            for column in [*names, "row"]:
                if column in (*ROW_IDS, "record", "constructors"):
                    continue
                differs, join = f"new.{column} IS NOT old.{column}", "JOIN"
                if column == "row":
                    differs, join = "new.raceId IS NULL", "LEFT JOIN"
                counts = db.execute(
                    f"""SELECT round, count(*) FROM complete.{table} AS old
                        {join} main.{table} AS new USING (raceId, {key})
                        JOIN complete.races ON races.raceId = old.raceId
                        WHERE year = 2025 AND {differs} GROUP BY round"""
                ).fetchall()
                if counts:
                    found[table, column] = dict(counts)
    return found


@pytest.mark.long(30)
def test_f1db_brings_the_latest_rounds_until_the_api_has_them(source, complete, f1db, tmp_path):
    database = built(ended(source, tmp_path / "dump", 2025, 16), tmp_path / "racedata.db")
    refreshed(database, str(f1db))
    assert differences(database, complete) == F1DB_DIFFERENCES
    assert "nothing new" in refreshed(database, str(f1db))[0][-1]
    with api(complete, tmp_path) as url:
        print(*refreshed(database, url)[0], sep="\n  ")
        assert differences(database, complete) == {}
        both = refreshed(database, url, str(f1db))[0]
    assert [line for line in both if "new data" in line] == []
    for table in KEYS:
        rows = [select(path, f"SELECT count(*) FROM {table}") for path in (database, complete)]
        assert rows[0] == rows[1], table
    given = f"""SELECT kind, sources.name = '{url}' FROM origins JOIN sources USING (sourceId)
        JOIN races USING (raceId) WHERE year = 2025 AND round BETWEEN 17 AND {LAST}"""
    of_api, of_f1db = set(), set()
    for kind, is_api in select(database, given):
        (of_api if is_api else of_f1db).add(kind)
    # the complete dump has no sessions of 2025
    assert of_f1db == {"practice", "sprint_qualifying", "sessions"}
    assert of_api == {"races", *RECORDS, "fastest_laps"} - of_f1db


def test_a_refresh_keeps_to_the_limits_of_a_service(source, complete, tmp_path):
    """The limits of the service are those of the public one. It never has to say 429."""
    database = behind(source, tmp_path, 1)
    said = []
    limits = {"RACEDATA_BURST_LIMIT": "4/second", "RACEDATA_SUSTAINED_LIMIT": "500/hour"}
    with api(complete, tmp_path, RACEDATA_MAX_LIMIT="100", **limits) as url:
        refresh = Refresh(str(database), [url], None, CORRECTIONS, said.append, said.append)
        refresh.run()
    assert rows_of(database) == rows_of(complete)
    assert refresh.sources[0].pace.requests == 29
    assert not [text for text in said if text.startswith("status")]


# Following.


@pytest.fixture(scope="module")
def two_seasons(dump, tmp_path_factory):
    """A dump of 2024 and 2025, with three laps of each driver."""
    kept = {id for year in (2024, 2025) for id in race_ids(dump, year).values()}
    edits = dict.fromkeys(("races", *RECORDS), lambda row: row if row["raceId"] in kept else None)
    edits["seasons"] = lambda row: row if row["year"] in ("2024", "2025") else None
    edits["lap_times"] = lambda row: None
    return add_laps(edited(dump, tmp_path_factory.mktemp("two") / "dump", **edits), kept, 3)


@pytest.fixture(scope="module")
def after_each_race(two_seasons, tmp_path_factory):
    """The databases of that dump before 2025 and after each race that was run, with the time of its
    start.
    """
    folder = tmp_path_factory.mktemp("races")
    starts = {
        int(row["round"]): datetime.fromisoformat(f"{row['date']}T{row['time']}Z")
        for row in csv_rows(two_seasons, "races")
        if row["year"] == "2025"
    }
    starts[0] = datetime(2024, 12, 8, tzinfo=UTC)
    databases = [(starts[round], folder / f"{round}.db") for round in range(LAST + 1)]
    for round, (_, path) in enumerate(databases):
        built(without(two_seasons, folder / str(round), 2025, *range(round + 1, LAST + 1)), path)
    return databases


@pytest.mark.long(100)
def test_for_a_year_a_followed_api_is_asked_daily_and_brings_each_race(after_each_race, tmp_path):
    """It begins on a quiet day. Each race is published three hours after its start."""
    start = datetime(2025, 1, 1, tzinfo=UTC)
    time = SimulatedTime(start, datetime(2026, 1, 1, tzinfo=UTC))
    late = timedelta(hours=3)
    database = shutil.copy(after_each_race[0][1], tmp_path / "racedata.db")
    answers = [(starts + late, like_jolpica(path)) for starts, path in after_each_race]
    limited = LimitedApi(
        time, lambda path: [answer for at, answer in answers if at <= time.now][-1](path)
    )
    with served(limited.answer) as server:
        assert follow_source(database, server.url, time) == []
    refused = {each.path.partition(".json")[0]: each.status for each in limited.answered}
    refused = {path: status for path, status in refused.items() if status != 200}
    # what Jolpica-F1 does not have is asked once in all this year
    assert sorted(path.rpartition("/")[2] for path in refused) == ["practice", "sprintqualifying"]
    assert {*refused.values()} == {400}
    times = [start, *(each.time for each in limited.answered), time.end]
    assert max(later - earlier for earlier, later in pairwise(times)) < timedelta(
        hours=24, minutes=10
    )
    for round, (starts, _) in enumerate(after_each_race):
        laps = [each.time for each in limited.answered if f"/2025/{round}/laps" in each.path]
        assert round == 0 or timedelta() <= laps[0] - starts - late < timedelta(minutes=25), round
    assert facts_of(database) == facts_of(after_each_race[-1][1])
    print(f"{len(limited.answered):,} requests")


@pytest.fixture
def later(tmp_path):
    """Moves the clock of a process, which looks at it at least once a minute."""
    offset = tmp_path / "offset"
    offset.write_text("+0h")

    def later(hours):
        (tmp_path / "new").write_text(f"+{hours}h")
        os.replace(tmp_path / "new", offset)

    (library,) = Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
    later.environ = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
    }
    return later


def asked_since(database, url, hours):
    """Whether a source has been asked at a time so many hours from now."""
    since = datetime.now(UTC) + timedelta(hours=hours, seconds=-1)

    def is_asked():
        asked = remembered(database).get(url, {}).get("refreshedAt")
        return asked is not None and datetime.fromisoformat(asked) >= since

    return is_asked


@pytest.mark.long(200)
def test_the_command_still_asks_an_api_after_25_49_and_500_hours(sample_database, tmp_path, later):
    database = shutil.copy(sample_database, tmp_path / "racedata.db")
    with (
        served(answers_of(client(sample_database))) as server,
        following(database, "--from", server.url, **later.environ) as follow,
    ):
        is_asked = asked_since(database, server.url, 0)
        until(is_asked, 120)
        for hours in (25, 49, 500):
            is_asked = asked_since(database, server.url, hours)
            later(hours)
            until(is_asked, 120)
        follow.terminate()
        assert follow.communicate(timeout=60)[1] == ""


@pytest.mark.long(70)
def test_while_it_runs_the_command_builds_a_deleted_database_again(tmp_path, later):
    database = tmp_path / "racedata.db"
    with (
        hanging() as server,
        following(database, RACEDATA_SOURCES=f"{server.url} {SAMPLE}", **later.environ) as follow,
    ):
        assert follow.stdout.readline().endswith(f" from {SAMPLE}\n")
        until(lambda: len(server.paths) == 1, 60)
        database.unlink()
        later(1)
        assert " from its store, because " in follow.stdout.readline()
        follow.terminate()
        follow.communicate(timeout=60)

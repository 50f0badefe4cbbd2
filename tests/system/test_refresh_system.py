"""Refreshing a database of a real dump's latest seasons from a real service over that dump, as it
would be from the public one.
"""

import random
import shutil
import sqlite3
import subprocess
import sys
import time
import zipfile
from contextlib import closing, contextmanager, suppress
from functools import cache

import pytest
from support.apis import refreshed
from support.loads import (
    RECORDS,
    ROW_IDS,
    add_laps,
    built,
    csv_rows,
    edited,
    facts_of,
    is_whole,
    loader_settings,
    of_races,
    race_ids,
    rows_of,
    select,
    without,
)
from support.processes import OFF, service
from support.releases import zip_of

from racedata.database import store_path
from racedata.loader.corrections import CORRECTIONS
from racedata.loader.refresh import Refresh

FIRST = 2023  # earlier seasons would only make it slower
LAST = 21  # the latest round of 2025 in the dump that was run
KILLS = 6  # of a refresh


@pytest.fixture(scope="module")
def source(dump, tmp_path_factory):
    """The latest seasons of the dump, with what it lacks: 55 laps of each driver in the last ten
    races that were run.
    """
    folder = of_races(
        dump, tmp_path_factory.mktemp("source") / "dump", lambda race: int(race["year"]) >= FIRST
    )
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


@pytest.fixture(scope="module")
def build_older(source, tmp_path_factory):
    """Builds a database without the last rounds, or of a dump that ends earlier: each one once."""
    folder = tmp_path_factory.mktemp("older")

    @cache
    def build(rounds=0):
        target = folder / str(rounds)
        if rounds:
            return behind(source, target, rounds)
        return built(ended(source, target / "dump", 2023, 16), target / "racedata.db")

    return build


@pytest.fixture
def older(build_older, tmp_path):
    """A copy of such a database, with its store: `older(3)` is three rounds behind, `older()` ends
    after round 16 of 2023.
    """

    def older(*rounds):
        database = build_older(*rounds)
        for file in (database, store_path(database)):
            shutil.copy(file, tmp_path)
        return tmp_path / database.name

    return older


@pytest.mark.long(30)
@pytest.mark.parametrize(
    ("limit", "expected"),
    # With pages of 100, the lists of the season take 13 requests: seasons, calendar, sprints, five
    # each for results and qualifying. A new round takes 15: practice, pit stops, both standings and
    # eleven pages of laps; and one more if it has a sprint qualifying.
    [("2000", {1: 11, 10: 58}), ("100", {3: 60})],
)
def test_rounds_that_are_missing_come_back_row_by_row(older, complete, tmp_path, limit, expected):
    with api(complete, tmp_path, RACEDATA_MAX_LIMIT=limit) as url:
        for rounds, requests in expected.items():
            database = older(rounds)
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
def test_seasons_that_are_missing_come_back_row_by_row(older, complete, tmp_path):
    database = older()
    with api(complete, tmp_path) as url:
        said, requests = refreshed(database, url)
        print(requests, *said, sep="\n  ")
        assert facts_of(database) == facts_of(complete)
        assert requests == 282
        assert "nothing new" in refreshed(database, url)[0][-1]


@pytest.mark.long(30)
def test_refreshes_of_several_seasons_that_are_killed_and_resumed_lack_nothing(
    older, complete, tmp_path
):
    database = older()
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


@pytest.fixture
def recent_f1db(f1db, tmp_path):
    """The zip of a release of f1db without the races of earlier seasons."""
    folder, file = tmp_path / "f1db", tmp_path / "f1db-csv.zip"
    with zipfile.ZipFile(f1db) as archive:
        archive.extractall(folder)
    races = csv_rows(folder, "f1db-races")
    earlier = {race["id"] for race in races if int(race["year"]) < FIRST}
    calendar = folder / "f1db-races.csv"
    header, *lines = calendar.read_text().splitlines()
    lines = [line for line in lines if line.partition(",")[0] not in earlier]
    calendar.write_text("\n".join([header, *lines, ""]))
    file.write_bytes(zip_of(folder, earlier))
    return str(file)


@pytest.mark.long(30)
def test_f1db_brings_the_latest_rounds_until_the_api_has_them(
    source, complete, recent_f1db, tmp_path
):
    database = built(ended(source, tmp_path / "dump", 2025, 16), tmp_path / "racedata.db")
    refreshed(database, recent_f1db)
    assert differences(database, complete) == F1DB_DIFFERENCES
    assert "nothing new" in refreshed(database, recent_f1db)[0][-1]
    with api(complete, tmp_path) as url:
        print(*refreshed(database, url)[0], sep="\n  ")
        assert differences(database, complete) == {}
        both = refreshed(database, url, recent_f1db)[0]
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


def test_a_refresh_keeps_to_the_limits_of_a_service(older, complete, tmp_path):
    """The limits of the service are those of the public one. It never has to say 429."""
    database = older(1)
    said = []
    limits = {"RACEDATA_BURST_LIMIT": "4/second", "RACEDATA_SUSTAINED_LIMIT": "500/hour"}
    with api(complete, tmp_path, RACEDATA_MAX_LIMIT="100", **limits) as url:
        refresh = Refresh(loader_settings(database, CORRECTIONS), [url], None, said.append)
        refresh.run(said.append)
    assert rows_of(database) == rows_of(complete)
    assert refresh.sources[0].pace.requests == 29
    assert not [text for text in said if text.startswith("status")]

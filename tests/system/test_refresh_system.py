"""Refreshing a database of a real dump's latest seasons from a real service over that dump, as it
would be from the public one.
"""

import random
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest
from support.apis import refreshed
from support.loads import (
    RECORDS,
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
    settings = {**OFF, "WEB_CONCURRENCY": "2", **settings}
    with service(database, folder / "api.log", **settings) as running:
        yield "http://{}:{}/ergast/f1".format(*running.address)


def behind(source, folder, rounds):
    """A database of the dump without the last rounds that were run."""
    gone = range(LAST - rounds + 1, LAST + 1)
    dump = without(source, folder / f"dump{rounds}", 2025, *gone)
    return built(dump, folder / f"racedata{rounds}.db")


def refreshed_and_complete(database, url):
    """The number of requests of a refresh, after which there is nothing new."""
    said, requests = refreshed(database, url)
    print(requests, *said, sep="\n  ")
    said, again = refreshed(database, url)
    assert "nothing new" in said[-1]
    assert again <= 20
    return requests


@pytest.mark.long(10)
def test_rounds_that_are_missing_come_back_row_by_row(source, complete, tmp_path):
    """With Jolpica's pages, the lists of the season take 13 requests: seasons, calendar, sprints,
    five each for results and qualifying. A new round takes 15: practice, pit stops, both standings
    and eleven pages of laps; and one more if it has a sprint qualifying.
    """
    database = behind(source, tmp_path, 3)
    with api(complete, tmp_path, RACEDATA_MAX_LIMIT="100") as url:
        assert refreshed_and_complete(database, url) == 60
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
def test_seasons_that_are_missing_come_back_even_if_refreshes_are_killed_and_resumed(
    source, complete, tmp_path
):
    """The dump of the database ends after round 16 of 2023."""
    ended = {
        row["raceId"]
        for row in csv_rows(source, "races")
        if (int(row["year"]), int(row["round"])) <= (FIRST, 16)
    }
    edits = {name: lambda row: row if row["raceId"] in ended else None for name in RECORDS}
    edits["races"] = edits["seasons"] = lambda row: row if row["year"] == str(FIRST) else None
    database = built(edited(source, tmp_path / "dump", **edits), tmp_path / "racedata.db")
    old, facts, kills = database.read_bytes(), facts_of(complete), []
    with api(complete, tmp_path) as url:
        begin = time.monotonic()
        assert refreshed_and_complete(database, url) == 282
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


def test_a_refresh_keeps_to_the_limits_of_a_service(source, complete, tmp_path):
    """The limits of the service are those of the public one. It never has to say 429."""
    database, said = behind(source, tmp_path, 1), []
    limits = {"RACEDATA_BURST_LIMIT": "4/second", "RACEDATA_SUSTAINED_LIMIT": "500/hour"}
    with api(complete, tmp_path, RACEDATA_MAX_LIMIT="100", **limits) as url:
        refresh = Refresh(loader_settings(database, CORRECTIONS), [url], None, said.append)
        refresh.run(said.append)
    assert rows_of(database) == rows_of(complete)
    assert refresh.sources[0].pace.requests == 29
    assert not [text for text in said if text.startswith("status")]

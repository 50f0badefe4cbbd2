"""Following for weeks. The clocks of the loop, or the clock of the process, are simulated."""

import os
import shutil
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from support import SAMPLE
from support.answers import client
from support.apis import answers_of, served
from support.loads import add_laps, built, csv_rows, facts_of, of_races, remembered, without
from support.processes import following, until
from support.refreshes import like_jolpica
from support.season import LimitedApi, SimulatedTime, follow_source

LAST_RUN = 21  # the latest round of 2025 in the dump that was run
LAST = 4  # the latest one that a test waits for: one of these weekends has a sprint


@pytest.fixture(scope="module")
def two_seasons(dump, tmp_path_factory):
    """A dump of the last races of 2024 and of 2025, with a lap of each driver.

    It has no other drivers, constructors and circuits: hundreds of builds would compare them.
    """
    folder = of_races(
        dump,
        tmp_path_factory.mktemp("two") / "dump",
        lambda race: race["year"] == "2025" or (race["year"] == "2024" and int(race["round"]) > 22),
    )
    return add_laps(folder, {row["raceId"] for row in csv_rows(folder, "races")}, 1)


@pytest.fixture(scope="module")
def after_each_race(two_seasons, tmp_path_factory):
    """The databases of that dump before 2025 and after each of its first races, with the time of
    the start.
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
        built(
            without(two_seasons, folder / str(round), 2025, *range(round + 1, LAST_RUN + 1)), path
        )
    return databases


LATE = (3,)  # the rounds that are published so late that it is asked only every hour


def delay_of(round):
    return timedelta(hours=11 if round in LATE else 3)


@pytest.mark.long(12)
def test_a_followed_api_is_asked_daily_and_brings_race_after_race(after_each_race, tmp_path):
    """It begins on a quiet day. Each race is published some hours after its start."""
    start = datetime(2025, 2, 20, tzinfo=UTC)
    time = SimulatedTime(start, datetime(2025, 4, 16, tzinfo=UTC))
    database = shutil.copy(after_each_race[0][1], tmp_path / "racedata.db")
    answers = [
        (starts + delay_of(round), like_jolpica(path))
        for round, (starts, path) in enumerate(after_each_race)
    ]
    limited = LimitedApi(
        time, lambda path: [answer for at, answer in answers if at <= time.now][-1](path)
    )
    with served(limited.answer) as server:
        assert follow_source(database, time, server.url) == []
    refused = {each.path.partition(".json")[0]: each.status for each in limited.answered}
    refused = {path: status for path, status in refused.items() if status != 200}
    # what Jolpica-F1 does not have is asked once in all these weeks
    assert sorted(path.rpartition("/")[2] for path in refused) == ["practice", "sprintqualifying"]
    assert {*refused.values()} == {400}
    times = [start, *(each.time for each in limited.answered), time.end]
    assert max(later - earlier for earlier, later in pairwise(times)) < timedelta(
        hours=24, minutes=10
    )
    for round, (starts, _) in enumerate(after_each_race):
        laps = [each.time for each in limited.answered if f"/2025/{round}/laps" in each.path]
        waited = laps[0] - starts - delay_of(round) if round else timedelta()
        soon = timedelta(minutes=65 if round in LATE else 25)  # the requests take some minutes
        assert timedelta() <= waited < soon, round
    assert facts_of(database) == facts_of(after_each_race[-1][1])
    print(f"{len(limited.answered):,} requests")


@pytest.fixture
def later(tmp_path):
    """Moves the clock of a process, which looks at it at least once a minute.

    That clock is ten times as fast, so a minute is six seconds.
    """
    offset = tmp_path / "offset"
    offset.write_text("+0h x10")

    def later(hours):
        (tmp_path / "new").write_text(f"+{hours}h x10")
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


@pytest.mark.long(20)
def test_for_weeks_the_command_asks_an_api_and_it_builds_a_deleted_database_again(
    sample_database, tmp_path, later
):
    database = tmp_path / "racedata.db"
    with (
        served(answers_of(client(sample_database))) as server,
        following(database, RACEDATA_SOURCES=f"{server.url} {SAMPLE}", **later.environ) as follow,
    ):
        assert follow.stdout.readline().endswith(" from sample\n")
        until(asked_since(database, server.url, 0))
        for hours in (25, 49, 500):
            is_asked = asked_since(database, server.url, hours)
            later(hours)
            until(is_asked)
        database.unlink()
        later(501)
        assert any(line.endswith(" from its store\n") for line in follow.stdout)
        follow.terminate()
        complaints = follow.communicate()[1]
    # if a source is asked before it is built
    missing = f"racedata refresh: {database}: unable to open database file; "
    assert [line for line in complaints.splitlines() if not line.startswith(missing)] == []

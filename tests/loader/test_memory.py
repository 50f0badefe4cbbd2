"""racedata.loader.memory: what refreshes remember of a source outlives the next refresh."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

import pytest
from support import SAMPLE
from support.loads import (
    assert_refused,
    built,
    changed,
    racedata,
    remember,
    remembered,
)

from racedata.database import store_path
from racedata.loader import memory
from racedata.loader.memory import remember_followed
from racedata.loader.sources import history_in
from racedata.loader.store import store_to_read

# names and addresses
ONE, TWO = ("one", "https://one.example.org"), ("two", "https://two.example.org")


def history(database):
    with closing(store_to_read(database)) as store:
        return history_in(store, database, *ONE)


def test_refreshes_that_end_at_the_same_time_all_remember_their_sources(database):
    names = [f"https://{number}.example.org" for number in range(40)]
    with ThreadPoolExecutor(20) as threads:
        list(threads.map(partial(memory.remember, database, facts={"refreshedAt": 1}), names))
    assert remembered(database).keys() == {*names}


@pytest.mark.parametrize(
    ("until", "is_believed"),
    [
        ("2023-10-22T20:30:00Z", False),
        ("2023-10-22T20:30:01Z", True),
        ("2023-10-23T20:30:00Z", True),
        ("2023-10-23T20:30:01Z", False),  # the clock was ahead when this was noted
    ],
)
def test_a_source_refuses_requests_until_a_time_at_most_a_day_from_now(until, is_believed):
    now = datetime(2023, 10, 22, 20, 30, tzinfo=UTC)
    assert memory.refused_until({"refusedUntil": until}, now) == (until if is_believed else "")


def test_the_sources_that_are_followed_are_remembered_with_the_time_when_that_began(database):
    remember_followed(database, [ONE])
    since = remembered(database)[ONE[0]]["followedSince"]
    remember(database, {ONE[0]: {"followedSince": "2023-10-22T20:30:00Z"}})
    remember_followed(database, [ONE, TWO])
    found = {name: facts["followedSince"] for name, facts in remembered(database).items()}
    assert found[ONE[0]] == "2023-10-22T20:30:00Z" < since <= found[TWO[0]]
    remember_followed(database, [ONE])
    assert remembered(database).keys() == {ONE[0]}


def test_without_a_database_nothing_is_remembered(tmp_path):
    remember_followed(tmp_path / "none.db", [ONE])
    memory.remember(tmp_path / "none.db", ONE[0], {"refreshedAt": 1})
    assert list(tmp_path.iterdir()) == []


def test_notes_count_until_the_database_is_from_another_store(tmp_path, source):
    database, other = built(SAMPLE, tmp_path / "x.db"), built(source, tmp_path / "y.db")
    memory.remember(database, ONE[0], {"release": 3})
    assert history(database).notes == {"release": 3}
    other.replace(database)
    assert history(database).notes == {}
    assert remembered(database)[ONE[0]] == {"release": 3}


def test_a_store_of_another_version_stays_as_it_is_and_fails_before_anything_is_read(database):
    memory.remember(database, ONE[0], {"release": 3})
    changed(store_path(database), "PRAGMA user_version = 2")
    before = store_path(database).read_bytes()
    said = "exists and is not a store that this version of racedata can read; remove it and run: "
    assert_refused("http://127.0.0.1:1/dump.zip", database, said)
    refresh = racedata("refresh", "--from", "http://127.0.0.1:1/f1", "--database", database)
    assert said in refresh.stderr
    memory.remember(database, ONE[0], {"release": 4})
    remember_followed(database, [ONE])
    assert store_path(database).read_bytes() == before


def test_a_store_that_cannot_be_opened_is_named(database):
    path = store_path(database)
    path.mkdir()
    assert_refused(SAMPLE, database, f"racedata load: {path}: Is a directory; nothing")

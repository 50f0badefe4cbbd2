"""racedata.loader.notes: what a refresh notes in its own file outlives the next refresh."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from support.apis import refreshed
from support.loads import (
    rows_of,
)

from racedata.database import read_refreshes, refreshes_path
from racedata.loader import notes
from racedata.loader.existing import checksum_at_end
from racedata.loader.notes import (
    facts_noted,
    lacked_races,
    note_asked,
    note_facts,
    note_followed,
)

ONE, TWO = "https://one.example.org", "https://two.example.org"


def test_refreshes_that_end_at_the_same_time_all_note_their_sources(database):
    names = [f"https://{number}.example.org" for number in range(40)]
    with ThreadPoolExecutor(20) as threads:
        list(threads.map(partial(note_asked, database), names))
    assert read_refreshes(database).keys() == {*names}


def test_the_sources_that_are_followed_are_noted_with_the_time_when_that_began(database):
    note_followed(database, [ONE])
    since = read_refreshes(database)[ONE]["followedSince"]
    path = refreshes_path(database)
    path.write_text(path.read_text().replace(since, "2023-10-22T20:30:00Z"))
    note_followed(database, [ONE, TWO])
    found = {name: noted["followedSince"] for name, noted in read_refreshes(database).items()}
    assert found[ONE] == "2023-10-22T20:30:00Z" < since <= found[TWO]
    path.write_text(path.read_text().replace("2023-10-22", "2099-01-01"))
    note_followed(database, [ONE])
    found = {name: noted.get("followedSince") for name, noted in read_refreshes(database).items()}
    assert since <= found[ONE] < "2099" and found[TWO] is None


def test_without_a_database_nothing_is_noted(tmp_path):
    assert not note_followed(tmp_path / "none.db", [ONE])
    assert list(tmp_path.iterdir()) == []


def test_facts_count_until_another_program_replaces_the_database(database):
    checksum = checksum_at_end(database)
    note_facts(database, ONE, {"releases": 3}, "a", "b")
    assert facts_noted(database, ONE) is None
    note_facts(database, ONE, {"releases": 3}, checksum, checksum)
    note_followed(database, [ONE])
    assert facts_noted(database, ONE)["releases"] == 3
    note_facts(database, TWO, {}, checksum, "c")  # a refresh from another source replaces it
    assert read_refreshes(database)[ONE]["database"] == "c"
    assert facts_noted(database, ONE) is None


def test_a_note_that_a_race_has_been_missing_since_a_future_or_unknown_time_is_not_believed(
    database,
):
    lacks = {
        "2023 Monaco Grand Prix": "2023-05-01T00:00:00Z",
        "2023 Spanish Grand Prix": "2099-05-01T00:00:00Z",
        "2023 Canadian Grand Prix": "soon",
        "2023 Austrian Grand Prix": 7,
    }
    note_facts(database, ONE, {"lacks": lacks}, "a", "b")
    assert lacked_races(database, ONE, "2023-06-01T00:00:00Z") == {
        "2023 Monaco Grand Prix": "2023-05-01T00:00:00Z"
    }
    note_facts(database, ONE, {"lacks": "all"}, "a", "b")
    assert lacked_races(database, ONE, "2023-06-01T00:00:00Z") == {}


def test_records_that_another_program_stores_meanwhile_are_not_noted_as_refreshed(
    api, behind, complete, monkeypatch
):
    refreshed(behind, api.url)
    before = read_refreshes(behind)[api.url]

    @contextmanager
    def locked(folder, wait):
        shutil.copy(complete, behind)  # while this one waits for the lock
        yield

    monkeypatch.setattr(notes, "locked", locked)
    refreshed(behind, api.url)
    after = read_refreshes(behind)[api.url]
    assert after["database"] == before["database"] != checksum_at_end(behind)


def test_a_refresh_with_new_data_keeps_the_time_when_following_its_source_began(
    api, behind, complete
):
    since = "2023-10-22T20:30:00Z"
    refreshes_path(behind).write_text(json.dumps({api.url: {"followedSince": since}}))
    refreshed(behind, api.url)
    assert rows_of(behind) == rows_of(complete)
    assert read_refreshes(behind)[api.url]["followedSince"] == since

"""racedata.loader.copies and sources.database: a database replaces ours as it is, or not at all."""

import shutil
from pathlib import Path

import pytest
from support import SAMPLE
from support.apis import hurried, refreshed
from support.files import answer, served_file
from support.loads import (
    assert_refused,
    built,
    changed,
    loader_settings,
    racedata,
    refused,
    remembered,
    without,
)
from support.processes import following, until

from racedata.database import CHECKSUM_BYTES, file_state, write_checksum
from racedata.loader.check import compare
from racedata.loader.errors import LoadError
from racedata.loader.follow import followed_source
from racedata.loader.load import load
from racedata.loader.refresh import Refresh
from racedata.loader.sources import source_at
from racedata.settings import LoaderSettings

EARLIER = "UPDATE build SET builtAt = '2020-01-01T00:00:00Z'"
NO_SAMPLE = "UPDATE build SET isSample = 0"


@pytest.fixture
def other(sample_database, tmp_path):
    """A database that is not the sample, with one race fewer."""
    source = without(SAMPLE, tmp_path / "dump", 2023, 18)
    return changed(built(source, tmp_path / "other.db"), NO_SAMPLE)


def loaded(source, database, **options):
    settings = LoaderSettings(database=str(database))
    return load([str(source)], settings, lambda text: None, **options)


# Loading.


def test_a_database_is_loaded_byte_for_byte(tmp_path, other, source, monkeypatch):
    database = tmp_path / "x.db"
    report = f"{database}: 1957 to 2023 (5 seasons, 88 races) from {other}"
    assert loaded(other, database) == [report]
    assert database.read_bytes() == other.read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    other.write_bytes(built(source, tmp_path / "new.db").read_bytes())
    # It is what the next load without sources takes.
    assert racedata("load", "--database", database).stdout == f"{report}\n"
    assert database.read_bytes() == other.read_bytes()
    # So does a load of the list.
    monkeypatch.setenv("RACEDATA_SOURCES", str(other))
    assert racedata("load", "--database", tmp_path / "y.db").returncode == 0
    assert (tmp_path / "y.db").read_bytes() == other.read_bytes()


def test_a_copy_to_which_a_refresh_adds_records_is_a_database_of_its_own(database, other):
    loaded(other, database)
    refreshed(database, str(SAMPLE))
    assert database.read_bytes() != other.read_bytes()
    # of which the other was built
    assert racedata("load", "--database", database).stdout.endswith(
        f" from {other.parent / 'dump'}\n"
    )


FAULTS = {
    "not found": (answer(404), "has no database to copy (404); expected a service with "),
    "304 to no condition": (answer(304), "status 304 Not Modified; expected an unmodified"),
    "HTML": (answer(200, b"<!doctype html>"), "is not an SQLite database; expected"),
    "too often": (answer(429), "status 429: try again in 30 seconds"),
}


@pytest.mark.parametrize(("fault", "said"), FAULTS.values(), ids=FAULTS)
def test_a_wrong_answer_is_refused_in_one_line(database, fault, said):
    with served_file(b"") as server:
        server.fault = fault
        assert_refused(server.url, database, server.url, said)


def flipped(content):
    return content[:9000] + b"?" + content[9001:]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda content: None, "is missing"),
        (lambda content: b"not a database", "is not an SQLite database"),
        (flipped, "is damaged (checksum mismatch)"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path, database, edit, said):
    """test_database.py has all reasons."""
    path = tmp_path / "wrong.db"
    if content := edit(database.read_bytes()):
        path.write_bytes(content)
    expected = "expected an unmodified racedata database with schema version 11"
    assert_refused(path, database, f"{path} {said}; {expected}")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON build BEGIN DELETE FROM races; END", "differs in t"),
        ("CREATE TABLE x (y)", "its schema differs in x"),
        ("DROP VIEW laps", "its schema differs in laps"),
        ("DROP INDEX races_circuitId", "its schema differs in races_circuitId"),
        ("DELETE FROM circuits", "a row of races refers to a row of circuits that is missing"),
    ],
)
def test_what_another_program_has_changed_is_refused(tmp_path, database, statement, said):
    path = changed(Path(shutil.copy(database, tmp_path / "other.db")), statement)
    assert_refused(path, database, said)


def test_a_file_with_a_write_ahead_log_is_refused_because_no_service_can_read_it(
    tmp_path, database
):
    content = bytearray(database.read_bytes()[:-CHECKSUM_BYTES])
    content[18:20] = b"\2\2"
    path = tmp_path / "other.db"
    path.write_bytes(content)
    write_checksum(path)
    assert_refused(path, database, "unable to open database file")


def test_a_whole_database_cannot_be_named_with_other_sources(database, other):
    said = f"{other} is a whole database, which replaces the existing one; expected no other source"
    assert_refused(f"{other} f1db", database, said)


def test_the_database_is_not_a_source_of_itself(database):
    assert_refused(database, database, "is the database itself; expected another file")


# Which may replace which.


def test_an_older_database_replaces_a_newer_one_only_on_request(database, other):
    changed(database, NO_SAMPLE)
    other = other.rename(other.with_name("the other.db"))
    changed(other, EARLIER)
    said = "was built at 2020-01-01T00:00:00Z; the existing database is newer, built at 2"
    assert_refused(other, database, said, f"racedata load '{other}' --replace")
    with refused(database), pytest.raises(LoadError, match=said):
        refreshed(database, str(other))
    loaded(other, database, replace=True)
    assert database.read_bytes() == other.read_bytes()


def test_the_sample_replaces_only_the_sample_which_any_database_replaces(tmp_path, database, other):
    sample = shutil.copy(database, tmp_path / "sample.db")
    loaded(sample, database)
    loaded(changed(other, EARLIER), database)
    with pytest.raises(LoadError, match=f"{sample} is only the sample; expected the data itself"):
        loaded(sample, database)


# Refreshing.


def test_one_request_tells_that_nothing_is_new(database, other):
    with served_file(other.read_bytes()) as server:
        said, _ = refreshed(database, server.url)
        assert said[-1] == f"{database}: new data at {server.url}"
        assert database.read_bytes() == other.read_bytes()
        before = file_state(str(database))
        said, _ = refreshed(database, server.url)
    assert said == [f"{database}: nothing new at {server.url}"]
    assert server.asked == [("GET", 200), ("GET", 304)]
    assert file_state(str(database)) == before
    assert "refreshedAt" in remembered(database)[server.url]


@pytest.mark.parametrize(
    ("tag", "is_kept"),
    [
        ('"its-own"', True),
        ("without quotes", False),
        ('"a\r\n b"', False),
        (f'"{"x" * 201}"', False),
    ],
)
def test_another_servers_entity_tag_is_kept_if_it_can_be_sent_back(database, other, tag, is_kept):
    with served_file(other.read_bytes()) as server:
        server.etag = tag
        refreshed(database, server.url)
        refreshed(database, server.url)
    own = f'"{other.read_bytes()[-32:].hex()}"'
    assert server.tags[1] == (f"{own}, {tag}" if is_kept else own)


def test_a_database_at_a_url_is_compared(database, other):
    with served_file(other.read_bytes()) as server:
        assert compare(database, server.url, lambda text: None) == ([], [])
        server.publish(b"")
        with pytest.raises(LoadError, match="is not an SQLite database"):
            compare(database, server.url, lambda text: None)


def test_a_single_season_of_a_database_cannot_be_fetched(database, other):
    with (
        refused(database),
        pytest.raises(LoadError, match="always copied whole; expected no --season"),
    ):
        refreshed(database, str(other), season=2023)


class FollowedServer:
    """A server as a follower asks it."""

    def __init__(self, database, server):
        self.clock = 0.0

        def new_pace():
            pace = hurried()
            pace.clock = lambda: self.clock
            pace.now = lambda: 1_700_000_000 + self.clock
            return pace

        self.refresh = Refresh(loader_settings(database), [server.url], None, str, new_pace)
        self.followed = followed_source(self.refresh, self.refresh.sources[0])

    def check(self):
        return self.followed.refresh() if self.followed.has_news([]) else None


def test_a_follower_downloads_an_unusable_database_only_once(database, other):
    with served_file(other.read_bytes()) as server:
        follower = FollowedServer(database, server)
        follower.check()
        server.publish(changed(other, "PRAGMA user_version = 10").read_bytes())
        with refused(database), pytest.raises(LoadError, match="has schema version 10"):
            follower.check()
        asked = len(server.asked)
        assert follower.check() is None and server.asked[asked:] == [("HEAD", 304)]
        # The daily refresh complains again, without a download.
        with pytest.raises(LoadError, match="has schema version 10"):
            follower.followed.refresh()
        assert server.asked[-1] == ("GET", 304)
        server.publish(changed(other, "PRAGMA user_version = 11").read_bytes())
        assert "new data" in follower.check()
    assert database.read_bytes() == other.read_bytes()


def test_a_server_without_entity_tags_has_no_news_between_the_daily_refreshes(database, other):
    with served_file(other.read_bytes()) as server:
        server.etag = ""
        follower = FollowedServer(database, server)
        assert "new data" in follower.followed.refresh()
        assert follower.check() is None
        assert follower.followed.refresh() == ""
    assert server.asked == [("GET", 200), ("HEAD", 200), ("GET", 200)]


def test_a_follower_begins_without_a_database(tmp_path, other):
    database = tmp_path / "x.db"
    with served_file(other.read_bytes()) as server:
        with following(database, RACEDATA_SOURCES=server.url) as follow:
            assert follow.stdout.readline().startswith(f"{database}: 1957 to 2023")
            until(lambda: "refreshedAt" in remembered(database).get(server.url, {}))
        assert [method for method, _ in server.asked] == ["GET", "GET"]
        assert server.asked[1] == ("GET", 304)
        assert database.read_bytes() == other.read_bytes()
        assert "followedSince" in remembered(database)[server.url]


def test_a_database_is_a_file_of_any_name_or_an_address_that_ends_with_db(tmp_path, other):
    files = shutil.copy(other, tmp_path / "other"), "/nowhere/x.db"
    urls = "https://f1.example.org:8443/racedata.db", "https://f1.example.org/copies/x.db?key=1"
    assert all(source_at(str(address)).is_whole for address in (*files, *urls))
    assert not source_at(str(SAMPLE)).is_whole

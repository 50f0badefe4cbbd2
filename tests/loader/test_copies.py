"""racedata.loader.copies and sources.database: a database replaces ours as it is, or not at all."""

import shutil

import pytest
from support import SAMPLE
from support.apis import hurried, refreshed
from support.files import answer, served_file
from support.loads import (
    assert_refused,
    built,
    changed,
    loader_settings,
    next_version,
    racedata,
    refused,
    remembered,
    run_loader,
    without,
)
from support.processes import following, until

from racedata.database import file_state
from racedata.loader.check import compare
from racedata.loader.copies import clear_for_copy
from racedata.loader.corrections import CORRECTIONS
from racedata.loader.errors import LoadError, NotYet
from racedata.loader.follow import followed_source
from racedata.loader.in_step import load_or_rebuild
from racedata.loader.load import load
from racedata.loader.refresh import Refresh
from racedata.loader.sources import source_at

LATER = "UPDATE build SET builtAt = '2099-01-01T00:00:00Z'"  # for a clock that is ahead
EARLIER = "UPDATE build SET builtAt = '2020-01-01T00:00:00Z'"
NO_SAMPLE = "UPDATE build SET isSample = 0"


@pytest.fixture
def other(sample_database, tmp_path):
    """A database that is not the sample, with one race fewer."""
    source = without(SAMPLE, tmp_path / "dump", 2023, 18)
    return changed(built(source, tmp_path / "other.db"), NO_SAMPLE)


def loaded(source, database, **options):
    return load([str(source)], loader_settings(database, CORRECTIONS), lambda text: None, **options)


# Loading.


def test_a_database_is_loaded_byte_for_byte(tmp_path, other, source):
    database = tmp_path / "x.db"
    report = f"{database}: 1957 to 2023 (5 seasons, 88 races) from {other}"
    assert loaded(other, database) == [report]
    assert database.read_bytes() == other.read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    other.write_bytes(built(source, tmp_path / "new.db").read_bytes())
    # It is what the next load without sources takes.
    assert load_or_rebuild(loader_settings(database, CORRECTIONS), lambda text: None) == [report]
    assert database.read_bytes() == other.read_bytes()


def test_a_database_is_loaded_from_a_url(database, other):
    with served_file(other.read_bytes()) as server:
        run = run_loader(f"{server.url}?key=1", database)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith(f"{database}: 1957 to 2023 (5 seasons, 88 races) from http:")
    assert database.read_bytes() == other.read_bytes()


def test_a_copy_to_which_a_refresh_adds_records_is_a_database_of_its_own(database, other):
    loaded(other, database)
    refreshed(database, str(SAMPLE))
    assert database.read_bytes() != other.read_bytes()
    report = load_or_rebuild(loader_settings(database, CORRECTIONS), lambda text: None)
    assert report[-1].endswith(f" from {other.parent / 'dump'}")  # of which the other was built


def test_a_copy_of_an_earlier_version_is_rebuilt_from_its_tables_until_the_other_one_is_rebuilt(
    database, other, tmp_path
):
    shutil.copy(other, database)
    clear_for_copy(database, str(other), "")
    run = racedata("load", "--database", database, cwd=next_version(tmp_path))
    assert run.stdout.endswith(
        f"from its store, because its source failed: {other} has schema version 11, which is older "
        "than this program's (12); expected an unmodified racedata database with schema version "
        "12\n"
    )


FAULTS = {
    "not found": (answer(404), "has no database to copy (404); expected a service with "),
    "a status without a reason": (
        answer(599),
        "status 599; expected an unmodified racedata database",
    ),
    "304 to no condition": (
        answer(304),
        "status 304 Not Modified; expected an unmodified",
    ),
    "HTML": (answer(200, b"<!doctype html>"), "is not an SQLite database; expected"),
    "too often": (answer(429), "status 429: try again in 30 seconds"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_answer_is_refused_in_one_line(database, name):
    fault, said = FAULTS[name]
    with served_file(b"") as server:
        server.fault = fault
        assert_refused(server.url, database, server.url, said)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.db", None, "is missing; expected an unmodified racedata database"),
        ("text.db", b"not a database", "is not an SQLite database"),
        ("folder.db/x.db", None, "is missing"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path, database, name, content, said):
    path = tmp_path / name
    if content:
        path.write_bytes(content)
    assert_refused(path, database, f"{path} {said}")


def test_a_whole_database_cannot_be_named_with_other_sources(database, other):
    said = f"{other} is a whole database, which replaces the existing one; expected no other source"
    assert_refused(f"{other} f1db", database, said)
    with refused(database), following(database, "--from", str(other), "--from", "f1db") as follow:
        _, errors = follow.communicate()
    assert (errors, follow.returncode) == (f"racedata refresh: {said}\n", 1)


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


def test_an_older_database_replaces_the_sample_and_one_built_while_the_clock_was_ahead(
    database, other
):
    changed(other, EARLIER)
    loaded(other, database)
    assert database.read_bytes() == other.read_bytes()
    changed(database, LATER)
    loaded(other, database)
    assert database.read_bytes() == other.read_bytes()


def test_the_sample_replaces_only_the_sample(tmp_path, database, other):
    sample = shutil.copy(database, tmp_path / "sample.db")
    loaded(sample, database)
    loaded(other, database)
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


def test_another_servers_entity_tag_is_kept(database, other):
    with served_file(other.read_bytes()) as server:
        server.etag = '"its-own"'
        refreshed(database, server.url)
        refreshed(database, server.url)
    assert server.asked == [("GET", 200), ("GET", 304)]
    assert server.tags[1] == f'"{other.read_bytes()[-32:].hex()}", "its-own"'


def test_the_same_database_from_a_server_without_entity_tags_changes_nothing(database, other):
    with served_file(other.read_bytes()) as server:
        server.etag = ""
        refreshed(database, server.url)
        before = file_state(str(database))
        assert refreshed(database, server.url)[0] == [f"{database}: nothing new at {server.url}"]
        # A follower asks each minute, and must not download each minute.
        assert not has_news(database, server.url)
    assert server.asked == [("GET", 200), ("GET", 200)]
    assert file_state(str(database)) == before


@pytest.mark.parametrize("tag", ["without quotes", '"a\r\n b"', f'"{"x" * 201}"'])
def test_an_entity_tag_that_cannot_be_sent_back_is_ignored(database, other, tag):
    with served_file(other.read_bytes()) as server:
        server.etag = tag
        refreshed(database, server.url)
        refreshed(database, server.url)
    assert server.tags[1] == f'"{other.read_bytes()[-32:].hex()}"'


def test_a_database_at_a_url_is_compared(database, other):
    with served_file(other.read_bytes()) as server:
        assert compare(database, server.url, lambda text: None) == ([], [])
        server.publish(b"")
        with pytest.raises(LoadError, match="is not an SQLite database"):
            compare(database, server.url, lambda text: None)


def has_news(database, url):
    refresh = Refresh(loader_settings(database), [url], None, lambda text: None, hurried)
    return refresh.has_news(refresh.sources[0], [])


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
        server.publish(changed(other, "CREATE TABLE x (y)").read_bytes())
        with refused(database), pytest.raises(LoadError, match="has an extra table 'x'"):
            follower.check()
        asked = len(server.asked)
        assert follower.check() is None and server.asked[asked:] == []
        follower.clock = 3601.0
        assert follower.check() is None and server.asked[asked:] == [("HEAD", 304)]
        # The daily refresh complains again, without a download.
        with pytest.raises(LoadError, match="has an extra table 'x'"):
            follower.followed.refresh()
        assert server.asked[-1] == ("GET", 304)
        server.publish(changed(other, "DROP TABLE x").read_bytes())
        assert "new data" in follower.check()
    assert database.read_bytes() == other.read_bytes()


def test_backends_with_different_entity_tags_cause_one_download_in_an_hour(database, other):
    with served_file(other.read_bytes()) as server:
        follower = FollowedServer(database, server)
        assert "new data" in follower.check()
        for minute in range(1, 130):
            server.etag = f'"backend-{minute}"'
            follower.clock = 60.0 * minute
            follower.check()
        downloads = [status for method, status in server.asked if method == "GET"]
        assert downloads == [200, 200, 200, 200]  # the first, and in minutes 1, 61 and 121
        server.publish(changed(other, "UPDATE build SET builtAt = '2101-01-01'").read_bytes())
        follower.clock += 3600.0
        assert "new data" in follower.check()


def test_a_follower_waits_as_long_as_retry_after_says(database, other):
    with served_file(other.read_bytes()) as server:
        follower = FollowedServer(database, server)
        server.fault = answer(429, Retry_After="3000")
        with pytest.raises(LoadError, match="status 429: try again in 3,000 seconds"):
            follower.check()
        server.fault, follower.clock = None, 2999.0
        for check in (follower.check, follower.followed.refresh):
            with pytest.raises(NotYet, match="refuses requests until 2023-11-14T23:03:20Z"):
                check()
        assert len(server.asked) == 1
        follower.clock = 3000.0
        assert "new data" in follower.check()


@pytest.mark.parametrize("header", ["31536000", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_follower_that_is_refused_for_years_asks_again_after_a_day(database, other, header):
    with served_file(other.read_bytes()) as server:
        follower = FollowedServer(database, server)
        server.fault = answer(503, Retry_After=header)
        with pytest.raises(LoadError, match="status 503: try again in 86,400 seconds"):
            follower.check()
        server.fault, follower.clock = None, 86_400.0
        assert "new data" in follower.check()


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


@pytest.mark.parametrize(
    "address",
    [
        "https://f1.example.org:8443/racedata.db",
        "https://f1.example.org/copies/x.db?key=1",
        "/nowhere/x.db",
    ],
)
def test_an_address_that_ends_with_db_is_a_database(address):
    assert source_at(address).is_whole


def test_a_database_may_have_any_name(tmp_path, other):
    assert source_at(str(shutil.copy(other, tmp_path / "other"))).is_whole
    assert not source_at(str(SAMPLE)).is_whole

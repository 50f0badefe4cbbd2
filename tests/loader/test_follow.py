"""racedata.loader.follow: what a source publishes is soon stored, with few requests; and a signal
ends it.
"""

import re
from datetime import UTC, datetime, timedelta
from time import sleep

import pytest
from support import SAMPLE, spoiling
from support.answers import client
from support.apis import answers_of, hanging, served
from support.files import served_file
from support.loads import remembered, rows_of
from support.processes import following, until
from support.refreshes import F1DB, assert_ends_at_once, state
from support.season import (
    LimitedApi,
    SimulatedTime,
    follow_source,
    source_that,
)

from racedata.database import SCHEMA_VERSION, store_path
from racedata.loader.errors import LoadError, NotYet
from racedata.loader.existing import ExistingDatabase
from racedata.loader.follow import CheckLoop, FollowedSource
from racedata.loader.replacement import locked
from racedata.loader.schedule import DAY, HOUR, Expected

NOON = datetime(2023, 1, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that passes only by waiting. After some hours, it ends the loop."""

    def __init__(self, hours):
        self.now, self.end = NOON, NOON + hours * HOUR

    def wait(self, seconds):
        self.now += timedelta(seconds=seconds)
        if self.now > self.end:
            raise KeyboardInterrupt


def said(hours, source, expected=()):
    """What the loop says in some hours, with the time; for a failure, the time of the next try."""
    clock, lines = Clock(hours), []

    def say(text, due=None):
        lines.append(f"{clock.now:%H:%M} {text}" + (f" {due:%H:%M}" if due else ""))

    with pytest.raises(KeyboardInterrupt):
        CheckLoop(lambda: list(expected), lambda: clock.now, clock.wait, say, say).run(source)
    return lines


def raising(*faults):
    """A function that raises these faults, one at each call, and then returns a text."""
    left = iter(faults)

    def work():
        if fault := next(left, None):
            raise fault
        return "new"

    return work


def failing(times):
    return raising(*[LoadError("down")] * times)


def source(refresh, *kinds, has_news=lambda asked: False, interval=None):
    facts = source_that(kinds=kinds, publishes_after_race=False, interval=interval)
    return FollowedSource(facts, has_news, refresh)


def missing(kind, hours=2):
    """Records of a session that began some hours ago."""
    return Expected(2023, 1, "race", kind, NOON - hours * HOUR, False)


TEN_MINUTES, TWO, ONE = (timedelta(minutes=n) for n in (10, 2, 1))
BUSY, DOWN = NotYet("busy"), LoadError("down")
SAID = {
    "the waits double up to an hour": (
        (8, failing(5), None),
        "12:00 down 12:05|12:05 down 12:15|12:15 down 12:35|12:35 down 13:15|13:15 down 14:15|"
        "14:15 new",
    ),
    "a defect is a failure": (
        (1, raising(*[ZeroDivisionError("defect")] * 2), None),
        "12:00 defect 12:05|12:05 defect 12:15|12:15 new",
    ),
    "with an interval, five minutes after each failure": (
        (0.3, failing(3), ONE),
        "12:00 down 12:05|12:05 down 12:10|12:10 down 12:15|12:15 new",
    ),
    "after a refusal, its interval": ((1, raising(*[BUSY] * 4), TWO), "12:00 busy 12:02|12:08 new"),
    "a refusal after a failure is reported again": (
        (1, raising(BUSY, BUSY, DOWN, BUSY), TWO),
        "12:00 busy 12:02|12:04 down 12:09|12:09 busy 12:11|12:11 new",
    ),
}


@pytest.mark.parametrize(("case", "expected"), SAID.values(), ids=SAID)
def test_a_source_that_fails_is_asked_again(case, expected):
    hours, refresh, interval = case
    assert said(hours, source(refresh, interval=interval)) == expected.split("|")


def test_a_failure_never_postpones_a_check_for_missing_records():
    waits = "12:00 down 12:05|12:05 down 12:15|12:15 down 12:35|12:35 down 12:55|12:55 new"
    found = said(0.99, source(failing(4), "results"), [missing("results")])
    assert found == waits.split("|")


def test_a_source_without_news_is_refreshed_once_a_day_and_says_nothing_if_nothing_changed():
    """Questions do not delay that."""
    texts = iter(["first", "", "third"])
    assert said(71, source(lambda: next(texts))) == ["12:00 first", "12:00 third"]
    texts = iter(["first", "second"])
    lines = said(47, source(lambda: next(texts), "results"), [missing("results", hours=52.2)])
    assert lines == ["12:00 first", "12:00 second"]


def test_a_source_is_refreshed_at_once_if_the_clock_is_set_back_while_it_waits():
    clock, lines, jumps = Clock(24), [], iter([30 * DAY])

    def wait(seconds):
        clock.now -= next(jumps, timedelta())
        clock.wait(seconds)

    def say(text):
        lines.append(f"{clock.now:%d %b %H:%M} {text}")

    with pytest.raises(KeyboardInterrupt):
        CheckLoop(lambda: [], lambda: clock.now, wait, say, say).run(source(failing(0)))
    assert lines[:3] == ["01 Jan 12:00 new", "02 Dec 12:00 new", "03 Dec 12:00 new"]


def test_a_source_with_an_interval_is_asked_that_often_whatever_the_calendar_says():
    news = iter([False, False, True, False])
    one = source(failing(0), has_news=lambda asked: next(news, False), interval=TEN_MINUTES)
    lines = said(1, one)
    assert lines == ["12:00 new", "12:30 new"]


def test_a_provisional_source_is_asked_after_the_race_even_if_another_source_has_the_results():
    asked = []
    facts = source_that(
        kinds=("results", "qualifying"), is_provisional=True, publishes_after_race=True
    )
    results = missing("results")._replace(is_stored=True)
    qualifying = missing("qualifying", hours=26)._replace(session="quali")
    said(1, FollowedSource(facts, asked.append, lambda: ""), [results, qualifying])
    assert asked == [[qualifying._replace(starts=results.starts)]] * 3


def test_a_source_is_asked_only_for_kinds_that_it_publishes():
    asked = []

    def one():
        return source(lambda: "", "results", "pit_stops", has_news=asked.append)

    said(1, one(), [missing("results"), missing("practice")])
    assert asked == [[missing("results")]] * 3
    asked.clear()
    said(20, one(), [missing("practice")])
    assert asked == []


@pytest.mark.parametrize("is_enough", [False, True])
def test_the_database_is_made_complete_until_that_succeeds_and_then_every_ten_minutes(is_enough):
    clock, lines = Clock(0.5), []

    def say(text, due=None):
        lines.append(f"{clock.now:%H:%M} {text}" + (f" {due:%H:%M}" if due else ""))

    work = failing(2)
    with pytest.raises(KeyboardInterrupt):
        loop = CheckLoop(lambda: [], lambda: clock.now, clock.wait, say, say)
        loop.keep_complete(work, lambda: is_enough, lambda: say("begins"))
    begins = lines.pop(lines.index("12:00 begins" if is_enough else "12:15 begins"))
    assert begins and lines == ["12:00 down 12:05", "12:05 down 12:15"] + [
        f"12:{minute} new" for minute in (15, 25)
    ]


# The command.


def drip(handler):
    """Sends a database byte by byte."""
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b"S")
        handler.wfile.flush()


def test_a_signal_in_a_download_leaves_no_file_behind(database, tmp_path):
    (tmp_path / "tmp").mkdir()
    before = {path.name for path in database.parent.iterdir()}
    with (
        served_file(b"") as server,
        following(database, "--from", server.url, TMPDIR=str(tmp_path / "tmp")) as follow,
    ):
        server.fault = drip
        until(lambda: any(path.stat().st_size for path in tmp_path.glob("tmp/*/racedata.db")))
        assert_ends_at_once(follow)
    assert list((tmp_path / "tmp").iterdir()) == []
    assert {path.name for path in database.parent.iterdir()} - before <= {"racedata.sources.db"}


@pytest.mark.parametrize("requests", [8, 11])
def test_a_signal_in_a_refresh_leaves_no_file_behind(api, behind, requests):
    """Eleven requests are needed; then, the database is built."""
    with following(behind, "--from", api.url) as follow:
        until(lambda: len(api.paths) >= requests)
        follow.terminate()
        _, errors = follow.communicate(timeout=20)
    assert (errors, follow.returncode) == ("", 0)
    assert {*behind.parent.iterdir()} <= {behind, store_path(behind)}
    ExistingDatabase(behind).close()


@pytest.mark.long(7)
def test_a_source_that_does_not_answer_delays_no_other(database, sample_database):
    with hanging() as slow, served(answers_of(client(sample_database))) as api:
        asked = "--from", slow.url, "--from", api.url, "--from", "http://127.0.0.1:1/ergast/f1"
        with following(database, *asked) as follow:
            said = r"racedata refresh: http\S+: Connection refused; next try at \d\d:\d\d UTC\n"
            assert re.fullmatch(said, follow.stderr.readline())
            until(lambda: "refreshedAt" in remembered(database).get(api.url, {}))
        assert len(slow.paths) == 1


def test_follow_prints_a_line_if_a_round_is_stored_and_sigterm_ends_it_at_once(
    api, behind, complete
):
    """It waits until another program has replaced the database."""
    with following(behind, "--from", api.url) as follow:
        with locked(behind.parent, sleep):
            until(lambda: len(api.paths) == 11)
        line = follow.stdout.readline()
        assert "; results 165 rows (+20); " in line and f"; {behind}: new data after" in line
        assert rows_of(behind) == rows_of(complete)
        assert remembered(behind)[api.url]["refreshedAt"]
        assert_ends_at_once(follow)


@pytest.mark.parametrize(
    ("spoil", "fault", "is_named"),
    [
        (spoiling.fifo, "is not a regular file; ", True),
        (spoiling.text, "is not an SQLite database; ", False),
        (spoiling.version(12), f"newer than this program's ({SCHEMA_VERSION}); ", False),
    ],
)
def test_follow_asks_nothing_if_it_cannot_read_the_database(api, behind, spoil, fault, is_named):
    spoil(behind)
    before = state(behind.parent)
    names = {} if is_named else {"RACEDATA_SOURCES": f"{api.url} {F1DB} {SAMPLE}"}
    with following(behind, *(["--from", api.url] if is_named else []), **names) as follow:
        line = follow.stderr.readline()
        assert fault in line and "; next try at " in line
        assert_ends_at_once(follow)
    assert (state(behind.parent), api.paths) == (before, [])


def test_a_followed_api_that_allows_two_requests_per_second_is_asked_at_its_pace(behind, complete):
    time = SimulatedTime(datetime(2023, 11, 1, tzinfo=UTC), datetime(2023, 11, 1, 1, tzinfo=UTC))
    limited = LimitedApi(time, answers_of(client(complete, max_limit=100)), limits=[(2, 1)])
    with served(limited.answer) as server:
        assert follow_source(behind, time, server.url) == []
    paths = [each.path for each in limited.answered if each.status == 200]
    assert len(paths) == len({*paths}) < len(limited.answered)  # nothing is fetched twice
    assert rows_of(behind) == rows_of(complete)

"""racedata.loader.sources.api_client: pages are followed to the end, wrong answers refused, the
API's limits obeyed.
"""

import json
import re
import threading
import tracemalloc
from email.utils import formatdate
from http import HTTPStatus
from itertools import chain

import pytest
from support.answers import client
from support.apis import answers_of, served
from support.limits import Clock

from racedata.loader.errors import LoadError, NotYet
from racedata.loader.sources import api_client
from racedata.loader.sources.api import ApiSource
from racedata.loader.sources.api_client import JOLPICA, JOLPICA_LIMITS, Api, parsed_json
from racedata.loader.sources.pace import PACE, Pace


def envelope(records, total=None, limit=100, offset=0, table="SeasonTable", name="Seasons", **echo):
    """An answer's body."""
    numbers = {"limit": limit, "offset": offset, "total": len(records) if total is None else total}
    mrdata = {**{key: str(value) for key, value in numbers.items()}, table: {**echo, name: records}}
    return json.dumps({"MRData": mrdata}).encode()


def always(body, status=200, **headers):
    return lambda path: (status, headers, body)


class Time:
    """A clock that moves when a test sleeps."""

    def __init__(self):
        self.clock, self.slept = Clock(), []

    def sleep(self, seconds):
        assert seconds >= 0
        self.slept.append(seconds)
        self.clock.now += seconds

    def api(self, url):
        return Api(url, lambda text: None, Pace(self.clock, self.sleep, self.clock))


SEASONS = [{"season": str(year)} for year in range(1950, 2026)]


def refused(answer, time=None, path="seasons"):
    """The message with which records of an API are refused: one line, with the address first."""
    with served(answer) as server, pytest.raises(LoadError) as caught:
        (time or Time()).api(server.url).records(path)
    said = str(caught.value)
    assert said.startswith(f"{server.url}/") and "\n" not in said
    return said.removeprefix(f"{server.url}/")


def pages_of(records, limit):
    """An API whose largest page has `limit` records."""

    def answer(path):
        offset = int(path.rpartition("=")[2])
        return 200, {}, envelope(records[offset : offset + limit], len(records), limit, offset)

    return answer


@pytest.mark.parametrize(("limit", "requests"), [(2000, 1), (76, 1), (75, 2), (10, 8)])
def test_pages_are_followed_to_the_end_however_small_they_are(limit, requests):
    with served(pages_of(SEASONS, limit)) as server:
        source = Time().api(server.url)
        assert source.records("seasons") == [(season,) for season in SEASONS]
    assert (source.requests, source.limit) == (requests, limit)
    assert len(server.paths) == requests
    assert server.paths[0] == "seasons.json?limit=2000&offset=0"


def test_records_begin_at_an_offset():
    with served(pages_of(SEASONS, 10)) as server:
        assert Time().api(server.url + "/").records("seasons", 70) == [
            (season,) for season in SEASONS[70:]
        ]
        assert Time().api(server.url).records("seasons", 500) == []


def test_timings_come_with_their_lap_and_race_across_pages(sample_database):
    with served(answers_of(client(sample_database, max_limit=30))) as server:
        records = Time().api(server.url).records("2023/18/laps")
    assert len(records) == 1014
    assert {race["round"] for race, _, _ in records} == {"18"}
    first = [timing["driverId"] for _, lap, timing in records if lap["number"] == "1"]
    assert len(first) == len(set(first)) == 20


@pytest.mark.parametrize("correction", [{}, {"url": "https://example.org/1999"}])
def test_pages_that_overlap_are_refused(correction):
    def answer(path):
        offset = int(path.rpartition("=")[2])
        records = (
            SEASONS[offset : offset + 50]
            if not offset
            else [{**SEASONS[49], **correction}, *SEASONS[50:75]]
        )
        return 200, {}, envelope(records, len(SEASONS), 50, offset)

    assert refused(answer).endswith("a record appears twice; expected once")


def test_redirects_are_requests_and_keep_the_pace():
    def answer(path):
        if "/new/" in path:
            return pages_of(SEASONS, 10)(path)
        return 301, {"Location": path.replace("/f1/", "/new/")}, b""

    time = Time()
    with served(answer) as server:
        source = time.api(server.url)
        assert len(source.records("seasons")) == 76
    assert source.requests == len(server.paths) == 16
    assert time.clock.now >= (16 - 4) / 4


def test_a_circle_of_redirects_is_refused():
    said = refused(lambda path: (301, {"Location": path}, b""))
    assert said.endswith(": more than 10 redirects; expected an answer from an API")


def test_requests_name_the_program_and_its_version():
    with served(pages_of(SEASONS, 100)) as server:
        Time().api(server.url).records("seasons")
    (agent,) = server.agents
    assert agent.startswith("racedata/")
    assert agent.endswith(" (+refresh)")


WRONG = {
    "HTML": (b"<!doctype html>", "b'<!doctype html>'; expected JSON"),
    "nothing": (b"", "b''; expected JSON"),
    "cut off": (envelope(SEASONS)[:-1], "expected JSON"),
    "not UTF-8": (b'{"MRData": "\xff"}', "expected JSON"),
    "deep": (b"[" * 100_000, ""),
    "a list": (b"[]", "no object MRData; expected an answer in Ergast's format"),
    "no envelope": (b'{"MRData": []}', "no object MRData"),
    "no total": (
        b'{"MRData": {"limit": "1", "offset": "0"}}',
        "MRData.total is 'None'; expected a string with a num",
    ),
    "limit 0": (
        envelope([], limit=0),
        "MRData.limit is '0'; expected a string with a number, 1 to 2000",
    ),
    "limit above ours": (envelope([], limit=2001), "MRData.limit is '2001'"),
    "a number": (
        envelope([]).replace(b'"100"', b"100"),
        "MRData.limit is '100'; expected a string",
    ),
    "another offset": (
        envelope([], offset=5),
        "MRData.offset is '5'; expected a string with a number, 0",
    ),
    "total without end": (envelope([], 10**9), "MRData.total is '1000000000'"),
    "another table": (
        envelope([], table="RaceTable"),
        "no object SeasonTable in MRData; expected the answer of sea",
    ),
    "another list": (envelope([], name="Races"), "no list Seasons of objects"),
    "texts": (envelope(["1950"]), "no list Seasons of objects"),
    "too few": (envelope(SEASONS, 77), "76 records; expected 77, because MRData.total is 77"),
    "too many": (envelope(SEASONS, 75), "76 records; expected 75, because MRData.total is 75"),
}


@pytest.mark.parametrize(("body", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_answer_is_refused_by_one_line_that_names_the_address(body, said):
    message = refused(always(body))
    assert message.startswith("seasons.json?limit=2000&offset=0: ") and said in message


def test_an_answer_that_ends_too_early_is_refused_even_if_it_is_json():
    with served(always(envelope(SEASONS) + b" " * 20)) as server:
        server.faults[0] = lambda body: body[:-15]
        with pytest.raises(LoadError, match="the connection ended 15 bytes before the answer did"):
            Time().api(server.url).records("seasons")


def test_an_answer_about_another_round_is_refused():
    races = {"table": "RaceTable", "name": "Races", "season": "2023", "round": "5"}
    with served(always(envelope([], **races))) as server:
        assert Time().api(server.url).records("2023/5/results") == []
    for path, said in [
        ("2023/6", "round is '5'; expected '6'"),
        ("2022/5", "season is '2023'; expected '2022'"),
    ]:
        assert refused(always(envelope([], **races)), path=f"{path}/results").endswith(
            f"RaceTable.{said}"
        )


def test_pages_with_different_totals_are_refused():
    answers = iter(
        [envelope(SEASONS[:40], 76, 40), envelope(SEASONS[40:] + SEASONS[:1], 77, 40, 40)]
    )
    assert refused(lambda path: (200, {}, next(answers))) == (
        "seasons.json?limit=2000&offset=40: a total of 77, after 76 on the page before; "
        "expected the same on each page"
    )


@pytest.mark.parametrize("status", [201, 400, 404, 500, 502])
def test_a_status_other_than_200_is_refused_at_once(status):
    hint = (
        "; is --from the base address, such as https://api.jolpi.ca/ergast/f1?"
        if status in (400, 404)
        else ""
    )
    message = refused(always(envelope(SEASONS), status))
    what = f"status {status} {HTTPStatus(status).phrase}; expected an answer from an API"
    assert message == f"seasons.json?limit=2000&offset=0: {what}{hint}"


def test_nothing_at_the_address_is_one_line():
    with served(pages_of(SEASONS, 100)) as server:
        pass
    with pytest.raises(LoadError, match=r"offset=0: Connection refused$"):
        Time().api(server.url).records("seasons")


@pytest.mark.parametrize(("largest", "page"), [(100, 0), (1200, 40)])
def test_answers_that_are_too_long_together_are_refused(monkeypatch, largest, page):
    monkeypatch.setattr(api_client, "TOTAL_BYTES", largest)
    said = f"offset={page}: more than {largest:,} bytes in all; expected the answers of an API"
    assert refused(pages_of(SEASONS, 40)).endswith(said)


def test_an_api_that_is_never_done_is_given_up():
    time = Time()

    def answer(path):
        time.clock.now += 59
        return pages_of([{"season": str(number)} for number in range(200)], 1)(path)

    assert refused(answer, time).endswith(
        "incomplete after 123 requests in 7,200 seconds; expected a faster API, or larger pages"
    )


def test_an_answer_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setattr(api_client, "ANSWER_SECONDS", 0.1)
    end = threading.Event()

    def answer(path):
        end.wait(20)
        return 200, {}, b""

    try:
        assert "not complete in 0.1 seconds, or no data for 30; got 0 bytes" in refused(answer)
    finally:
        end.set()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        *[
            (url, f"{url}: not the address of an API; expected an http(s) URL with ")
            for url in ("", "file:///etc")
        ],
        (
            "https://user:secret@127.0.0.1/",
            "the address of an API has a user or password in it; expected one without",
        ),
    ],
)
def test_a_wrong_address_is_refused_without_a_password(url, said):
    with pytest.raises(LoadError, match=f"^{re.escape(said)}") as caught:
        Time().api(url)
    assert "secret" not in str(caught.value)


def test_a_redirect_to_a_port_of_20_digits_is_refused():
    answer = 301, {"Location": "http://127.0.0.1:99999999999999999999/"}, b""
    assert "redirects to an unusable address" in refused(lambda path: answer)


# The pace.


def test_requests_to_jolpica_keep_to_4_in_any_second_and_200_in_any_hour():
    time, times = Time(), []

    def answer(path):
        times.append(time.clock.now)
        time.clock.now += 0.01  # what an answer takes
        return pages_of([{"season": str(number)} for number in range(210)], 1)(path)

    with served(answer) as server:
        api = time.api(server.url)
        api.pace.limits = ApiSource(JOLPICA, Pace()).pace.limits
        api.records("seasons")
    assert len(times) == 210
    assert all(later - earlier > 1 for earlier, later in zip(times, times[4:]))
    assert all(later - earlier > 3600 for earlier, later in zip(times, times[200:]))
    # It does not wait longer than that either.
    assert times[199] < 60
    assert times[-1] < 3600 + 30


def test_a_slow_api_needs_no_pauses():
    time = Time()

    def answer(path):
        time.clock.now += 0.3
        return pages_of(SEASONS, 10)(path)

    with served(answer) as server:
        time.api(server.url).records("seasons")
    assert all(seconds < 0.3 for seconds in time.slept)
    assert sum(time.slept) < 1


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("0", 0),
        ("600", 600),
        (formatdate(1100, usegmt=True), 100),
        (formatdate(100, usegmt=True), 0),
    ],
)
def test_retry_after_is_obeyed(status, header, seconds):
    time = Time()
    time.clock.now = 1000
    answers = chain(
        [(status, {} if header is None else {"Retry-After": header}, b"")],
        [(200, {}, envelope(SEASONS))],
    )
    with served(lambda path: next(answers)) as server:
        source = time.api(server.url)
        assert len(source.records("seasons")) == 76
    assert sum(time.slept) == seconds
    assert source.requests == 2


@pytest.mark.parametrize(
    "header",
    [
        "soon",
        "-5",
        "Thu, 01 Jan 20260000000000 00:00:00 GMT",
        "Thu, 01 Jan 2026 00:00:00 +99999999999999999999",
    ],
)
def test_a_retry_after_that_cannot_be_read_ends_the_tries(header):
    time = Time()
    said = f"status 429 with Retry-After {header!r}; expected seconds or a date"
    assert refused(always(b"", 429, **{"Retry-After": header}), time).endswith(said)
    assert time.slept == []


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_that_is_too_long_is_left_to_the_caller(status):
    with pytest.raises(NotYet, match=f"status {status}: try again in 601 seconds") as caught:
        refused_with(always(b"", status, **{"Retry-After": "601"}))
    assert caught.value.seconds == 601


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("limits", "seconds"), [(((4, 1),), 30), (((30, 60),), 60)])
def test_without_retry_after_it_waits_as_long_as_the_limit_lasts(status, limits, seconds):
    time = Time()
    answers = chain([(status, {}, b"")], [(200, {}, envelope(SEASONS))])
    with served(lambda path: next(answers)) as server:
        api = time.api(server.url)
        api.pace.limits = limits
        api.records("seasons")
    assert sum(time.slept) == seconds


def test_at_its_limit_an_api_has_not_failed():
    with pytest.raises(NotYet, match="try again later"):
        refused_with(always(b"", 429))
    with pytest.raises(NotYet, match="try again in 4,000 seconds") as caught:
        refused_with(always(b"", 429, **{"Retry-After": "4000"}))
    assert caught.value.seconds == 4000


def test_at_jolpicas_limit_there_is_no_second_try():
    """Its 429 has no Retry-After."""
    paths = []

    def answer(path):
        paths.append(path)
        return 429, {}, b""

    with pytest.raises(NotYet, match="try again in 3,600 seconds"):
        refused_with(answer, JOLPICA_LIMITS)
    assert len(paths) == 1


def refused_with(answer, limits=PACE):
    with served(answer) as server:
        api = Time().api(server.url)
        api.pace.limits = limits
        api.records("seasons")


def test_an_api_that_always_says_later_is_given_up():
    time = Time()
    said = "status 503 on each of 5 attempts; try again later"
    assert refused(always(b"", 503, **{"Retry-After": "9"}), time).endswith(said)
    assert time.slept == [9] * 4


def test_each_piece_of_work_has_its_own_time_limit_and_all_share_one_pace():
    time = Time()
    pace = Pace(time.clock, time.sleep, time.clock)
    with served(pages_of(SEASONS, 20)) as server:
        for hours in (25, 49):
            Api(server.url, lambda text: None, pace).records("seasons")
            time.clock.now = hours * 3600
            time.slept.clear()
        for _ in range(2):
            Api(server.url, lambda text: None, pace).records("seasons")
    assert pace.requests == len(server.paths) == 16
    assert sum(time.slept) == 1


def test_an_answer_of_many_tiny_values_is_refused_before_it_takes_much_memory():
    body = b"[" + b"{}," * 1_000_000 + b"{}]"
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 500,000 values; expected the answer of an"):
            parsed_json(body)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()

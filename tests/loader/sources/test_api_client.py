"""racedata.loader.sources.api_client: pages are followed to the end, wrong answers refused, the
API's limits obeyed.
"""

import json
import tracemalloc
from email.utils import formatdate
from http import HTTPStatus

import pytest
from support.answers import client
from support.apis import answers_of, served
from support.limits import Clock

from racedata.loader.errors import LoadError, NotYet
from racedata.loader.sources.api import ApiSource
from racedata.loader.sources.api_client import JOLPICA_LIMITS, JOLPICA_URL, Api, parsed_json
from racedata.loader.sources.pace import Pace


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


@pytest.mark.parametrize(("limit", "requests"), [(76, 1), (75, 2), (10, 8)])
def test_pages_are_followed_to_the_end_however_small_they_are(limit, requests):
    with served(pages_of(SEASONS, limit)) as server:
        source = Time().api(server.url)
        assert source.records("seasons") == [(season,) for season in SEASONS]
    assert (source.pace.requests, source.limit) == (requests, limit)
    assert len(server.paths) == requests
    assert server.paths[0] == "seasons.json?limit=2000&offset=0"


def test_timings_come_with_their_lap_and_race_across_pages(sample_database):
    with served(answers_of(client(sample_database, max_limit=30))) as server:
        records = Time().api(server.url).records("2023/18/laps")
    assert len(records) == 1014
    assert {race["round"] for race, _, _ in records} == {"18"}
    first = [timing["driverId"] for _, lap, timing in records if lap["number"] == "1"]
    assert len(first) == len(set(first)) == 20


def test_redirects_are_requests_and_keep_the_pace():
    def answer(path):
        if "/new/" in path:
            return pages_of(SEASONS, 10)(path)
        return 301, {"Location": path.replace("/f1/", "/new/")}, b""

    time = Time()
    with served(answer) as server:
        source = time.api(server.url)
        assert len(source.records("seasons")) == 76
    assert source.pace.requests == len(server.paths) == 16
    assert time.clock.now >= (16 - 4) / 4


def test_requests_name_the_program_and_its_version():
    with served(pages_of(SEASONS, 100)) as server:
        Time().api(server.url).records("seasons")
    (agent,) = server.agents
    assert agent.startswith("racedata/")
    assert agent.endswith(" (+refresh)")


WRONG = {
    "HTML": (b"<!doctype html>", "b'<!doctype html>'; expected JSON"),
    "not UTF-8": (b'{"MRData": "\xff"}', "expected JSON"),
    "a list": (b"[]", "no object MRData; expected an answer in Ergast's format"),
    "no total": (b'{"MRData": {"limit": "1", "offset": "0"}}', "MRData.total is 'None'; expected"),
    "limit 0": (envelope([], limit=0), "MRData.limit is '0'; expected a string with a number, 1 "),
    "a number": (envelope([]).replace(b'"100"', b"100"), "MRData.limit is '100'; expected a str"),
    "another offset": (envelope([], offset=5), "MRData.offset is '5'; expected a string with a n"),
    "total without end": (envelope([], 10**9), "MRData.total is '1000000000'"),
    "another table": (envelope([], table="RaceTable"), "no object SeasonTable in MRData; expected"),
    "texts": (envelope(["1950"]), "no list Seasons of objects"),
    "too few": (envelope(SEASONS, 77), "76 records; expected 77, because MRData.total is 77"),
    "too many": (envelope(SEASONS, 75), "76 records; expected 75, because MRData.total is 75"),
}


@pytest.mark.parametrize(("body", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_answer_is_refused_by_one_line_that_names_the_address(body, said):
    message = refused(always(body))
    assert message.startswith("seasons.json?limit=2000&offset=0: ") and said in message


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


# The pace.


def test_requests_to_jolpica_keep_to_4_in_any_second_and_200_in_any_hour():
    time, times = Time(), []

    def answer(path):
        times.append(time.clock.now)
        time.clock.now += 0.01  # what an answer takes
        return pages_of([{"season": str(number)} for number in range(210)], 1)(path)

    with served(answer) as server:
        api = time.api(server.url)
        api.pace.limits = ApiSource(JOLPICA_URL, Pace()).pace.limits
        api.records("seasons")
    assert len(times) == 210
    assert all(later - earlier > 1 for earlier, later in zip(times, times[4:]))
    assert all(later - earlier > 3600 for earlier, later in zip(times, times[200:]))
    # It does not wait longer than that either.
    assert times[199] < 60
    assert times[-1] < 3600 + 30


@pytest.mark.parametrize(
    ("status", "header", "pauses", "said"),
    [
        (429, "7", [7] * 4, "status 429: try again in 7 seconds"),
        (503, "7", [7] * 4, "status 503: try again in 7 seconds"),
        (429, None, [30] * 4, "try again in 30 seconds"),
        (429, "soon", [30] * 4, "try again in 30 seconds"),
        (429, f"Mon, 01 Jan 2024 00:00:00 +{'9' * 14}", [30] * 4, "try again in 30 seconds"),
        (503, None, [30] * 4, "status 503 Service Unavailable; expected an answer"),  # a failure
        (429, "600", [600] * 4, "try again in 600 seconds"),
        (429, "601", [], "try again in 601 seconds"),
        (429, formatdate(1601, usegmt=True), [], "try again in 601 seconds"),
        (429, formatdate(100, usegmt=True), [0, 0, 0, 0, 1], "try again in 0 seconds"),
    ],
)
def test_an_api_that_refuses_is_asked_five_times_with_pauses_of_up_to_ten_minutes(
    status, header, pauses, said
):
    time = Time()
    time.clock.now = 1000
    message = refused(always(b"", status, **({"Retry-After": header} if header else {})), time)
    assert said in message
    assert time.slept == pauses


def test_a_refusal_is_no_failure_and_after_it_the_api_is_asked_again():
    answers = iter([(429, {}, b""), (200, {}, envelope(SEASONS))])
    with served(lambda path: next(answers)) as server:
        assert len(Time().api(server.url).records("seasons")) == 76
    with served(always(b"", 429)) as server, pytest.raises(NotYet):
        Time().api(server.url).records("seasons")


@pytest.mark.parametrize(("limits", "seconds"), [(((30, 60),), 60), (JOLPICA_LIMITS, 3600)])
def test_without_retry_after_a_refusal_lasts_as_long_as_the_longest_limit(limits, seconds):
    pace = Pace()
    pace.limits = limits
    assert pace.retry_after(None) == seconds


def test_an_answer_of_many_tiny_values_is_refused_before_it_takes_much_memory():
    body = b"[" + b"{}," * 1_000_000 + b"{}]"
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 500,000 values; expected the answer of an"):
            parsed_json(body)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()

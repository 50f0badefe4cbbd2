"""racedata.answers: what is given again is what would be made anew, and what HTTP says about its age."""

import threading
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

import pytest
import webtest
from conftest import client, opened
from hypothesis import given
from hypothesis import strategies as st

from racedata.answers import Answers, key_of, size_of
from racedata.app import create_app
from racedata.settings import Settings

ADDRESS = "/ergast/f1/2023/18/results.json"


@pytest.fixture
def database(sample_database):
    """A Database, whose `asked` has the statements it was asked since."""
    database = opened(sample_database)
    database.asked = []
    database._open().set_trace_callback(database.asked.append)
    return database


def client_over(database, **settings):
    app = webtest.TestApp(create_app(Settings(**settings), database))
    database.asked.clear()  # what it asks at start
    return app


def test_the_second_time_an_answer_costs_no_query_and_is_the_same(database):
    app = client_over(database)
    first = app.get(ADDRESS)
    assert database.asked
    database.asked.clear()
    again, head = app.get(ADDRESS), app.head(ADDRESS)
    assert database.asked == []
    assert (again.body, dict(again.headers)) == (first.body, dict(first.headers))
    assert (head.body, dict(head.headers)) == (b"", dict(first.headers))


HOSTS = st.sampled_from(["a.example", "b.example", "a.example:8080", "bad host"])
SCHEMES = st.sampled_from(["http", "https"])
PATHS = st.sampled_from(
    [
        "/2023",
        "/2023/races.json",
        "/2023/18",
        "/2023/18/laps",
        "/2023/18/Laps.json",
        "/2023/18/x",
        "/2021/12/sprint",
        "/2023/18/results/",
    ]
)
QUERIES = st.sampled_from(
    ["", "limit=2", "limit=3", "limit=2&offset=1", "offset=1&limit=2", "limit=x", "offset=99", "limit=02", "other=1"]
)


@given(st.lists(st.tuples(SCHEMES, HOSTS, PATHS, QUERIES, st.sampled_from(["GET", "HEAD", "POST"])), max_size=25))
def test_no_request_is_answered_with_anothers_answer(sample_database, requests):
    apps = [create_app(Settings(cache_size=size), shared_database(sample_database)) for size in (0, 32)]
    for scheme, host, path, query, method in requests:
        environ = {
            "wsgi.url_scheme": scheme,
            "HTTP_HOST": host,
            "PATH_INFO": f"/ergast/f1{path}",
            "QUERY_STRING": query,
            "REQUEST_METHOD": method,
        }
        made, given_again = (webtest.TestRequest.blank("/", environ=environ).get_response(app) for app in apps)
        assert (made.status, made.body, dict(made.headers)) == (
            given_again.status,
            given_again.body,
            dict(given_again.headers),
        )


shared_database = lru_cache(opened)


def etag(database, **settings):
    return (
        webtest.TestApp(create_app(Settings(**settings), database))
        .get(f"{Settings(**settings).base_address}/2023/18")
        .headers["ETag"]
    )


@pytest.mark.parametrize(
    "change",
    [
        {"base_path": "/api"},
        {"series": "f2"},
        {"base_url": "https://example.org/f1"},
        {"finish_times": "gap"},
        {"max_limit": 50},
    ],
)
def test_the_etag_changes_with_each_setting_that_shapes_an_answer(sample_database, change):
    database = shared_database(sample_database)
    assert etag(database, **change) != etag(database)


@pytest.mark.parametrize("change", [{"max_age": 5}, {"cache_size": 0}, {"port": 80}, {"burst_limit": "off"}])
def test_the_etag_stays_with_any_other_setting(sample_database, change):
    database = shared_database(sample_database)
    assert etag(database, **change) == etag(database)


def test_the_etag_of_the_page_changes_with_the_limits_that_it_tells(sample_database):
    tags = {client(sample_database, burst_limit=limit).get("/").headers["ETag"] for limit in ("4/second", "off")}
    assert len(tags) == 2


def test_the_etag_changes_with_the_database(sample_database, other_database):
    assert etag(opened(other_database)) != etag(shared_database(sample_database))


@pytest.mark.parametrize("cache_size", [0, 32])
@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*", ' "x" ,W/{}'])
def test_a_conditional_request_costs_no_query_and_is_304_without_a_body(database, cache_size, form):
    app = client_over(database, cache_size=cache_size)
    known = app.get(ADDRESS)
    database.asked.clear()
    for method in (app.get, app.head):
        answer = method(ADDRESS, headers={"If-None-Match": form.format(known.headers["ETag"])}, status=304)
        assert answer.body == b""
        for name in ("ETag", "Last-Modified", "Cache-Control", "Access-Control-Allow-Origin"):
            assert answer.headers[name] == known.headers[name]
    assert database.asked == []


@pytest.mark.parametrize("header", ['"other"', "nonsense", "", "W/", '"', '"*"', 'W/"*"'])
def test_a_client_with_another_answer_gets_this_one(sample, header):
    for _ in range(2):
        assert sample.get(ADDRESS, headers={"If-None-Match": header}, status=200).json["MRData"]["total"] == "20"


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/ergast/f1/nothing", 404),
        (f"{ADDRESS}?limit=x", 400),
        ("/nothing", 404),
    ],
)
def test_errors_are_not_kept_and_match_nothing(sample, address, status):
    tag = sample.get(ADDRESS).headers["ETag"]
    for headers in ({}, {"If-None-Match": tag}, {"If-None-Match": "*"}):
        answer = sample.get(address, headers=headers, status=status)
        assert not {"ETag", "Last-Modified", "Cache-Control"} & set(answer.headers)


def test_last_modified_is_when_the_database_was_built(sample):
    built_at = datetime.fromisoformat(sample.get("/healthz").json["builtAt"].replace("Z", "+00:00"))
    assert parsedate_to_datetime(sample.get(ADDRESS).headers["Last-Modified"]) == built_at


@pytest.mark.parametrize(("max_age", "header"), [(300, "public, max-age=300"), (0, "no-cache")])
def test_how_long_an_answer_may_be_kept_is_a_setting(sample_database, max_age, header):
    app = webtest.TestApp(create_app(Settings(max_age=max_age), shared_database(sample_database)))
    assert app.get(ADDRESS).headers["Cache-Control"] == header


class Request:
    """As much of a request as a key is made of."""

    def __init__(self, path):
        self.env = {"wsgi.url_scheme": "http", "HTTP_HOST": "example.org", "PATH_INFO": path, "QUERY_STRING": ""}


def kept(capacity):
    return Answers(b"", datetime(2023, 7, 2, tzinfo=UTC), 300, capacity)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5000)), max_size=80))
def test_what_is_kept_never_takes_more_than_its_capacity(asked):
    answers = kept(20_000)
    for number, size in asked:
        answers.keep(Request(str(number)), bytes(size))
        assert sum(size_of(*entry) for entry in answers._bodies.items()) == answers.size <= answers.capacity


def test_what_was_not_asked_for_the_longest_makes_room():
    answers = kept(3 * size_of(key_of(Request("a")), bytes(1000)))
    for name in "abc":
        answers.keep(Request(name), name.encode() * 1000)
    assert answers.find(Request("a"))
    answers.keep(Request("d"), b"d" * 1000)
    assert [bool(answers.find(Request(name))) for name in "abcd"] == [True, False, True, True]


def test_threads_do_not_disturb_its_books():
    answers = kept(50_000)

    def busy(seed):
        for number in range(2000):
            request = Request(str(number * seed % 97))
            if answers.find(request) is None:
                answers.keep(request, bytes(number % 1500))

    threads = [threading.Thread(target=busy, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(size_of(*entry) for entry in answers._bodies.items()) == answers.size <= answers.capacity

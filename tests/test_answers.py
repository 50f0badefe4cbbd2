"""racedata.answers: a cached answer equals a new one, and what HTTP says about its age."""

import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from functools import lru_cache

import pytest
import webtest
from conftest import client, request
from hypothesis import given
from hypothesis import strategies as st
from service import ROOT

from racedata.answers import Answers, size_of
from racedata.app import create_app
from racedata.datafile import DataFile
from racedata.settings import Settings

ADDRESS = "/ergast/f1/2023/18/results.json"


class Counted(DataFile):
    """A database that counts its queries."""

    queries = 0

    def rows(self, sql, values=()):
        self.queries += 1
        return super().rows(sql, values)


@pytest.fixture
def data(sample_database):
    return Counted.read(sample_database)


def client_over(data, **settings):
    app = webtest.TestApp(create_app(Settings(**settings), data))
    data.queries = 0  # without those at start
    return app


def test_the_second_time_an_answer_costs_no_query_and_is_the_same(data):
    app = client_over(data)
    first = app.get(ADDRESS)
    assert data.queries
    data.queries = 0
    again, head = app.get(ADDRESS), app.head(ADDRESS)
    assert data.queries == 0
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
        "/drivers/leclerc/results",
        "/results/drivers/leclerc/results",
        "/current/last/laps",
        "/2023/18/laps/1/laps",
    ]
)
QUERIES = st.sampled_from(
    ["", "limit=2", "limit=3", "limit=2&offset=1", "offset=1&limit=2", "limit=x", "offset=99", "limit=02", "other=1"]
)


@given(st.lists(st.tuples(SCHEMES, HOSTS, PATHS, QUERIES, st.sampled_from(["GET", "HEAD", "POST"])), max_size=25))
def test_no_request_gets_the_answer_of_another(sample_database, requests):
    apps = [create_app(Settings(cache_size=size), shared_database(sample_database)) for size in (0, 32)]
    for scheme, host, path, query, method in requests:
        environ = {
            "wsgi.url_scheme": scheme,
            "HTTP_HOST": host,
            "PATH_INFO": f"/ergast/f1{path}",
            "QUERY_STRING": query,
            "REQUEST_METHOD": method,
        }
        made, cached = (webtest.TestRequest.blank("/", environ=environ).get_response(app) for app in apps)
        assert (made.status, made.body, dict(made.headers)) == (
            cached.status,
            cached.body,
            dict(cached.headers),
        )


shared_database = lru_cache(DataFile.read)


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
    assert etag(shared_database(other_database)) != etag(shared_database(sample_database))


@pytest.mark.parametrize("cache_size", [0, 32])
@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*", ' "x" ,W/{}'])
def test_a_conditional_request_costs_no_query_and_is_304_without_a_body(data, cache_size, form):
    app = client_over(data, cache_size=cache_size)
    known = app.get(ADDRESS)
    data.queries = 0
    for method in (app.get, app.head):
        answer = method(ADDRESS, headers={"If-None-Match": form.format(known.headers["ETag"])}, status=304)
        assert answer.body == b""
        for name in ("ETag", "Last-Modified", "Cache-Control", "Access-Control-Allow-Origin"):
            assert answer.headers[name] == known.headers[name]
    assert data.queries == 0


@pytest.mark.parametrize("header", ['"other"', "nonsense", "", "W/", '"', '"*"', 'W/"*"'])
def test_a_client_with_another_answer_gets_this_one(sample, header):
    for _ in range(2):
        assert sample.get(ADDRESS, headers={"If-None-Match": header}, status=200).json["MRData"]["total"] == "20"


@pytest.mark.parametrize(("days", "status"), [(-1, 200), (0, 304), (1, 200)])
def test_a_client_with_the_date_of_the_data_gets_304_and_with_any_other_date_the_answer(sample, days, status):
    known = sample.get(ADDRESS)
    since = parsedate_to_datetime(known.headers["Last-Modified"]) + timedelta(days)
    headers = {"If-Modified-Since": format_datetime(since, usegmt=True)}
    answer = sample.get(ADDRESS, headers=headers, status=status)
    assert answer.headers["ETag"] == known.headers["ETag"]
    assert bool(answer.body) == (status == 200)
    # RFC 9110, 13.1.3: ignored beside If-None-Match.
    sample.get(ADDRESS, headers={**headers, "If-None-Match": '"other"'}, status=200)


@pytest.mark.parametrize(
    "date", ["", "yesterday", "Mon, 99 Foo 2023 08:00:00 GMT", "Mon, 27 Nov 99999 08:00:00 GMT", "0", "\x00"]
)
def test_a_date_that_is_none_is_ignored(sample, date):
    sample.get(ADDRESS, headers={"If-Modified-Since": date}, status=200)


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/ergast/f1/nothing", 404),
        ("/ergast/f1/1997/last/results", 404),
        (f"{ADDRESS}?limit=x", 400),
        ("/nothing", 404),
    ],
)
def test_errors_are_not_cached_and_match_nothing(sample, address, status):
    tag = sample.get(ADDRESS).headers["ETag"]
    for headers in ({}, {"If-None-Match": tag}, {"If-None-Match": "*"}):
        answer = sample.get(address, headers=headers, status=status)
        assert not {"ETag", "Last-Modified", "Cache-Control"} & set(answer.headers)


def test_last_modified_is_when_the_database_was_built(sample):
    built_at = datetime.fromisoformat(sample.get("/healthz").json["builtAt"].replace("Z", "+00:00"))
    assert parsedate_to_datetime(sample.get(ADDRESS).headers["Last-Modified"]) == built_at


@pytest.mark.parametrize(("max_age", "header"), [(300, "public, max-age=300"), (0, "no-cache")])
def test_how_long_an_answer_may_be_reused_is_a_setting(sample_database, max_age, header):
    app = webtest.TestApp(create_app(Settings(max_age=max_age), shared_database(sample_database)))
    assert app.get(ADDRESS).headers["Cache-Control"] == header


FORMS = ["/2023/18", "/2023/18.json", "/2023/18/", "/2023/18/races", "/Ergast/F1/2023/18/RACES.json", "/2023/18?a=b"]


def test_all_forms_of_an_address_share_one_cached_answer(data):
    app = client_over(data)
    first = app.get("/ergast/f1/2023/18")
    data.queries = 0
    for form in FORMS:
        path, _, query = form.removeprefix("/Ergast/F1").partition("?")
        answer = request(app, PATH_INFO=f"/ergast/f1{path}", QUERY_STRING=query, HTTP_HOST="localhost:80")
        assert answer.body == first.body
    assert app.get("/ergast/f1/2023/18?limit=100&offset=0").body == first.body
    assert data.queries == 0


def test_an_answer_without_records_is_not_cached(data):
    app = client_over(data)
    for _ in range(2):
        data.queries = 0
        app.get("/ergast/f1/2023/18/results?offset=20")
        assert data.queries == 1


GROWTH = """
import sys
import webtest
from processes import memory
from racedata.app import create_app
from racedata.datafile import DataFile
from racedata.settings import Settings

path, query, requests = sys.argv[2], sys.argv[3], int(sys.argv[4])
app = create_app(Settings(), DataFile.read(sys.argv[1]))

def ask(host):
    environ = {"PATH_INFO": path, "QUERY_STRING": query, "HTTP_HOST": host}
    return len(webtest.TestRequest.blank("/", environ=environ).get_response(app).body)

ask("first")
before = memory("self")
size = sum(ask(f"host{number}") for number in range(requests))
print(size, memory("self") - before)
"""


@pytest.mark.parametrize(("query", "requests"), [("limit=1", 40_000), ("limit=2000", 800)])
def test_the_cache_takes_no_more_memory_than_the_setting_says(sample_database, query, requests):
    environ = {"PYTHONPATH": f"{ROOT}:{ROOT}/scripts/bench"}
    arguments = [sys.executable, "-c", GROWTH, sample_database, "/ergast/f1/2023/18/laps", query, str(requests)]
    done = subprocess.run(arguments, env=environ, capture_output=True, text=True, check=True)
    size, grown = map(float, done.stdout.split())
    assert size / 1e6 > Settings().cache_size  # without a bound it would take more
    assert grown < 1.3 * Settings().cache_size  # megabytes


def cache(capacity):
    return Answers(b"", datetime(2023, 7, 2, tzinfo=UTC), 300, capacity)


def key(path):
    return "http://localhost/ergast/f1", path, 100, 0


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5000)), max_size=80))
def test_the_cache_never_takes_more_than_its_capacity(bodies):
    answers = cache(20_000)
    for number, size in bodies:
        answers.keep(key(str(number)), bytes(size))
        assert sum(size_of(*entry) for entry in answers._bodies.items()) == answers.size <= answers.capacity


def test_the_least_recently_used_answer_makes_room():
    answers = cache(3 * size_of(key("a"), bytes(1000)))
    for name in "abc":
        answers.keep(key(name), name.encode() * 1000)
    assert answers.find(key("a"))
    answers.keep(key("d"), b"d" * 1000)
    assert [bool(answers.find(key(name))) for name in "abcd"] == [True, False, True, True]


def test_threads_do_not_disturb_the_count_of_its_bytes():
    answers = cache(50_000)

    def busy(seed):
        for number in range(2000):
            each = key(str(number * seed % 97))
            if answers.find(each) is None:
                answers.keep(each, bytes(number % 1500))

    threads = [threading.Thread(target=busy, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(size_of(*entry) for entry in answers._bodies.items()) == answers.size <= answers.capacity

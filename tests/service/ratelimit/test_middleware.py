"""racedata.service.ratelimit.middleware in the application: which requests count, the headers, and
429.
"""

import tracemalloc

import pytest
import webtest
from support.answers import settings_of
from support.limits import SECOND, local_store

from racedata.service.app import create_app
from racedata.service.snapshot import Snapshot


@pytest.fixture
def app(sample_database):
    """The application with default limits on a clock that stands still, `app.clock`."""
    store = local_store(clients=64)
    wsgi_app = create_app(
        settings_of(trusted_proxies="127.0.0.1"), Snapshot.read(sample_database), store
    )
    app = webtest.TestApp(wsgi_app, {"REMOTE_ADDR": "203.0.113.9"})
    app.clock = store.clock
    return app


ADDRESS = "/ergast/f1/2023/18.json"


def test_a_request_over_the_limit_is_429_and_succeeds_after_retry_after(app):
    answer, *_ = [app.get(ADDRESS, status=200) for _ in range(4)]
    assert answer.headers["RateLimit-Policy"] == '"burst";q=4;w=1, "sustained";q=500;w=3600'
    assert answer.headers["RateLimit"] == '"burst";r=3;t=1, "sustained";r=499;t=8'
    refused = app.get(ADDRESS, status=429)
    assert refused.content_type == "application/problem+json"
    assert refused.json == {
        "type": "about:blank",
        "title": "Too Many Requests",
        "status": 429,
        "detail": "The burst limit of 4 requests in 1 s has been reached; "
        "this request can succeed after 1 s.",
    }
    assert refused.headers["Retry-After"] == "1"
    assert refused.headers["RateLimit"] == '"burst";r=0;t=1, "sustained";r=496;t=29'
    assert refused.headers["Access-Control-Allow-Origin"] == "*"
    app.clock.now += int(refused.headers["Retry-After"]) * SECOND
    app.get(ADDRESS, status=200)


def test_a_large_answer_counts_once_whether_it_is_cached_or_had_to_wait(app):
    counted = [app.get(f"{ADDRESS}?limit=2000").headers["RateLimit"] for _ in range(2)]
    assert [header.partition(";t")[0] for header in counted] == ['"burst";r=3', '"burst";r=2']


def test_the_sustained_limit_holds_for_a_client_that_stays_within_the_burst_limit(app):
    allowed = 0
    for _ in range(535):
        app.clock.now += SECOND // 4
        answer = app.get(ADDRESS, expect_errors=True)
        if answer.status_int == 429:
            break
        allowed += 1
    assert allowed == 500 + (allowed + 1) // 4 // 7.2  # a token comes back per 7.2 s
    assert "The sustained limit of 500 requests in 3600 s has been reached" in answer.json["detail"]
    wait = int(answer.headers["Retry-After"])
    app.clock.now += (wait - 1) * SECOND
    app.get(ADDRESS, status=429)
    app.clock.now += SECOND
    app.get(ADDRESS, status=200)


def test_behind_a_trusted_proxy_each_client_has_its_own_bucket(app):
    for client in ("198.51.100.1", "198.51.100.2"):
        environ = {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": client}
        statuses = [
            app.get(ADDRESS, extra_environ=environ, expect_errors=True).status_int for _ in range(5)
        ]
        assert statuses == [200, 200, 200, 200, 429]


def test_long_forwarding_headers_take_no_memory(app):
    app.get(ADDRESS)
    tracemalloc.start()
    for number in range(300):
        app.get(ADDRESS, headers={"X-Forwarded-For": f"{number}, " * 20_000}, expect_errors=True)
    growth, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert growth < 3_000_000  # the headers have 30 MB


def test_the_client_is_found_at_the_end_of_a_long_header(app):
    for _ in range(4):
        environ = {
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_X_FORWARDED_FOR": "203.0.113.9, " * 1000 + "198.51.100.7",
        }
        app.get(ADDRESS, extra_environ=environ, status=200)
    environ["HTTP_X_FORWARDED_FOR"] = "198.51.100.7"
    app.get(ADDRESS, extra_environ=environ, status=429)


# The method and address of a request that counts, and the status of its answer.
COUNTED = """
200 HEAD /ergast/f1/2023/18.json
304 TAG /ergast/f1/2023/18.json
200 GET //ergast/f1/2023/18.json
404 GET /ergast/f1/nothing
400 GET /Ergast/F1/2023?limit=x
405 POST /ergast/f1/2023/18.json
200 OPTIONS /ergast/f1/2023/18.json
200 GET /ergast/f1
200 GET /ergast/F1.json
200 GET /ergast/f1.CSV
200 GET /ergast/f1.ics
200 GET /find?q=a
304 TAG //find
"""
NOT_COUNTED = """
200 GET /healthz
200 GET /
200 GET /docs
200 GET /drivers/alonso
404 GET /ergast/f1x
200 PREFLIGHT /ergast/f1/2023/18.json
"""
# Other names for methods, with the headers that they stand for.
HEADERS = {
    "TAG": ("GET", {"If-None-Match": "*"}),
    "PREFLIGHT": (
        "OPTIONS",
        {"Origin": "https://example.org", "Access-Control-Request-Method": "GET"},
    ),
}


@pytest.mark.parametrize(
    ("line", "counts"),
    [(line, text == COUNTED) for text in (COUNTED, NOT_COUNTED) for line in text.split("\n")[1:-1]],
)
def test_requests_for_data_and_for_finding_count_and_no_others(app, line, counts):
    status, method, address = line.split()
    method, headers = HEADERS.get(method, (method, {}))
    for expected in [int(status)] * 4 + [429 if counts else int(status)]:
        answer = app.request(address, method=method, headers=headers, expect_errors=True)
        assert (answer.status_int, "RateLimit" in answer.headers) == (expected, counts)

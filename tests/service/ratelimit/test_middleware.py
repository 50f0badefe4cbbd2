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


def test_slashes_that_are_too_many_do_not_evade_the_limits(app):
    assert app.get(f"//{ADDRESS[1:]}").headers["RateLimit"].startswith('"burst";r=3')


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


@pytest.mark.parametrize(
    ("method", "address", "headers", "status"),
    [
        ("HEAD", ADDRESS, {}, 200),
        ("GET", ADDRESS, {"If-None-Match": "*"}, 304),
        ("GET", "/ergast/f1/nothing", {}, 404),
        ("GET", "/Ergast/F1/2023?limit=x", {}, 400),
        ("POST", ADDRESS, {}, 405),
        ("OPTIONS", ADDRESS, {}, 200),
        ("GET", "/ergast/f1", {}, 200),
        ("GET", "/ergast/F1.json", {}, 200),
        ("GET", "/ergast/f1.CSV", {}, 200),
        ("GET", "/ergast/f1.ics", {}, 200),
        ("GET", "/find?q=a", {}, 200),
        ("GET", "//find", {"If-None-Match": "*"}, 304),
    ],
)
def test_every_request_under_the_base_address_and_for_finding_counts(
    app, method, address, headers, status
):
    for expected in [status] * 4 + [429]:
        answer = app.request(address, method=method, headers=headers, expect_errors=True)
        assert (answer.status_int, "RateLimit" in answer.headers) == (expected, True)


@pytest.mark.parametrize(
    ("method", "address", "headers"),
    [
        ("GET", "/healthz", {}),
        ("GET", "/", {}),
        ("GET", "/docs", {}),
        ("GET", "/drivers/alonso", {}),
        ("GET", "/ergast/f1x", {}),
        (
            "OPTIONS",
            ADDRESS,
            {"Origin": "https://example.org", "Access-Control-Request-Method": "GET"},
        ),
    ],
)
def test_requests_outside_the_base_address_and_preflights_do_not_count(
    app, method, address, headers
):
    for _ in range(9):
        answer = app.request(address, method=method, headers=headers, expect_errors=True)
        assert answer.status_int in (200, 404)
        assert "RateLimit" not in answer.headers
    assert app.get(ADDRESS).headers["RateLimit"].startswith('"burst";r=3;')


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

"""racedata.service.app: routes, methods, CORS, and how an unexpected error is answered."""

import re
import subprocess
import sys

import pytest
import webtest
from support.answers import Counted, client, request

from racedata.hints import IN_CHECKOUT
from racedata.service.app import create_app
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings


@pytest.mark.parametrize("address", ["/ergast/f1/2023/18/results.json", "/healthz"])
def test_head_is_get_without_the_body(sample, address):
    get, head = sample.get(address), sample.head(address)
    assert head.body == b""
    assert dict(head.headers) == dict(get.headers)
    assert int(head.headers["Content-Length"]) == len(get.body)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "BREW"])
@pytest.mark.parametrize("address", ["/ergast/f1/2023", "/ergast/f1/2023/18/laps.json", "/healthz"])
def test_any_other_method_is_405_with_allow(sample, method, address):
    answer = request(sample, PATH_INFO=address, REQUEST_METHOD=method)
    assert answer.status_int == 405
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert answer.json["detail"] == "This method is not supported; expected GET, HEAD or OPTIONS."


def test_the_preflight_of_a_browser_is_allowed(sample):
    asked = {
        "Origin": "https://example.org",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "X-Anything",
    }
    answer = sample.options("/ergast/f1/2023", headers=asked, status=200)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"
    assert answer.headers["Access-Control-Allow-Headers"] == "*"
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert answer.body == b""


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/ergast/f1/2023", 200),
        ("/healthz", 200),
        ("/ergast/f1/2023?limit=x", 400),
        ("/nothing", 404),
    ],
)
def test_any_origin_may_read_every_answer_and_its_headers(sample, address, status):
    browsers = sample.get(address, headers={"Origin": "https://example.org"}, status=status)
    assert browsers.headers["Access-Control-Allow-Origin"] == "*"
    assert browsers.headers["Access-Control-Expose-Headers"] == "*"
    # Without an Origin too: a shared cache may give this answer to a request that has one.
    assert sample.get(address, status=status).headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize(
    "address", ["/", "/openapi.json", "/healthz", "/ergast/f1/2023.json", "/none"]
)
def test_every_answer_has_nosniff_and_sets_no_cookie(sample, address):
    headers = sample.get(address, status="*").headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Set-Cookie" not in headers


def test_base_path_and_series_are_settings(sample_database):
    app = client(sample_database, base_path="/API", series="F2")
    answer = app.get("/api/f2/2023/18.json").json["MRData"]
    assert (answer["series"], answer["url"]) == (
        "F2",
        "http://localhost:80/API/F2/2023/18/races.json",
    )
    app.get("/ergast/f1/2023", status=404)
    assert client(sample_database, base_path="").get("/f1/2023/18").json["MRData"]["total"] == "1"


def test_a_bug_in_the_service_is_a_500_without_details(sample_database, caplog):
    data = Snapshot.read(sample_database)
    app = webtest.TestApp(create_app(Settings(), data))
    data._connection.close()
    problem = app.get("/ergast/f1/2023/18/results?limit=2", status=500)
    assert problem.json["detail"] == "The service failed to answer this request."
    assert "GET '/ergast/f1/2023/18/results?limit=2' failed" in caplog.text
    assert "ProgrammingError" in caplog.text


def started(**environ):
    """`racedata serve` up to the point at which it would listen."""
    code = (
        "import os; from racedata import settings as s; from racedata.service import server; "
        "server.application(s.Settings.read(os.environ))"
    )
    return subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)


TO_RUN = f"{IN_CHECKOUT} load tracinginsights f1db --database FILE"
SAMPLE = f"Only a sample, with results up to 2023-10-22. If no load is running, run: {TO_RUN}"


def test_the_log_the_page_and_healthz_name_the_sample_only_if_it_is_served(
    sample_database, other_database
):
    for path, notices in [(sample_database, [SAMPLE]), (other_database, [])]:
        ended, app = started(RACEDATA_DATABASE=str(path)), client(path)
        assert ended.returncode == 0
        assert ended.stderr.splitlines() == notices
        assert re.findall('<p id="sample">(.*)</p>', app.get("/").text) == notices
        assert [
            value for key, value in app.get("/healthz").json.items() if key == "sample"
        ] == notices


SLOW = [
    "/2023/18/laps?limit=101",
    "/2023/18/laps?offset=1&%6cimit=0002000",
    "/2023/18/laps.csv?limit=" + "9" * 4000,
    "/2023/18/laps?a=limit=1&limit=2000",
    "/2023/18/laps?xlimit=1&limit=2000",
    "/2023/18/laps?a=%26limit=1&limit=2000",
]
SLOW += ["/current.ics", "/2023.IC%53?sessions=race"]
FAST = [
    "/2023/18/laps",
    "/2023/18/laps?offset=2000",
    "/2023/18/laps?limit=100",
    "/2023/18/laps?LIMIT=999",
]
FAST += ["/2023/18/laps?limit=", "/2023/18/laps.csv"]


@pytest.mark.parametrize("address", SLOW + FAST)
def test_a_slow_answer_is_made_only_when_the_server_iterates_it(sample_database, address):
    data, started = Counted.read(sample_database), []
    app = create_app(Settings(), data)
    environ = webtest.TestRequest.blank("/ergast/f1" + address).environ
    data.queries = 0
    answer = app(environ, lambda *arguments: started.append(arguments))
    if address in SLOW:
        assert (started, data.queries) == ([], 0)
    else:
        assert started and isinstance(answer, list)
    assert b"".join(answer)
    assert len(started) == 1


def test_an_answer_without_a_limit_is_slow_if_the_default_limit_is_high(sample_database):
    data, started = Counted.read(sample_database), []
    app = create_app(Settings(default_limit=2000), data)
    environ = webtest.TestRequest.blank("/ergast/f1/2023/18/laps").environ
    data.queries = 0
    answer = app(environ, lambda *arguments: started.append(arguments))
    assert (started, data.queries) == ([], 0)
    assert b"".join(answer)

"""racedata.service.app, health, middleware: routes, methods, CORS, and answers to an unexpected
error.
"""

import re
import subprocess
import sys

import pytest
import webtest
from support.answers import client, request

from racedata.hints import IN_CHECKOUT
from racedata.service.app import create_app
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "BREW"])
@pytest.mark.parametrize("address", ["/ergast/f1/2023/18/laps.json", "/healthz", "/2023"])
def test_any_other_method_is_405_with_allow(sample, method, address):
    answer = request(sample, PATH_INFO=address, REQUEST_METHOD=method)
    assert answer.status_int == 405
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert answer.json["detail"] == "This method is not supported; expected GET, HEAD or OPTIONS."


@pytest.mark.parametrize("address", ["/ergast/f1/2023", "/2023", "/2030", "/current", "/healthz"])
def test_the_preflight_of_a_browser_is_allowed(sample, address):
    asked = {
        "Origin": "https://example.org",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "X-Anything",
    }
    answer = sample.options(address, headers=asked, status=200)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"
    assert answer.headers["Access-Control-Allow-Headers"] == "*"
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert answer.body == b""


def test_base_path_and_series_are_settings(sample_database):
    app = client(sample_database, base_path="/API", series="F2")
    answer = app.get("/api/f2/2023/18.json").json["MRData"]
    assert (answer["series"], answer["url"]) == (
        "F2",
        "http://localhost:80/API/F2/2023/18/races.json",
    )
    app.get("/ergast/f1/2023", status=404)
    assert client(sample_database, base_path="").get("/f1/2023/18").json["MRData"]["total"] == "1"


# the second answer is slow
@pytest.mark.parametrize("address", [f"/ergast/f1/2023/18/laps?limit={n}" for n in (2, 2000)])
def test_a_bug_in_the_service_is_a_500_without_details(sample_database, caplog, address):
    data = Snapshot.read(sample_database)
    app = client(data)
    data.connection.close()
    problem = app.get(address, status=500)
    assert problem.content_type == "application/problem+json"
    assert "ETag" not in problem.headers and "Access-Control-Allow-Origin" in problem.headers
    assert problem.json["detail"] == "The service failed to answer this request."
    assert app.head(address, status=500).content_length == problem.content_length
    assert f"GET {address!r} failed" in caplog.text
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


def test_a_page_is_made_only_when_the_server_iterates_it_and_a_cached_one_is_sent_at_once(
    sample_database,
):
    app, started = create_app(Settings(), Snapshot.read(sample_database)), []

    def ask(address):
        started.clear()
        environ = webtest.TestRequest.blank(address).environ
        return app(environ, lambda *arguments: started.append(arguments))

    for address in ("/", "/2023/18", "/records", "/find?q=alonso", "/data"):
        answer = ask(address)
        assert started == []
        assert b"".join(answer) == b"".join(ask(address))
        assert started and isinstance(ask(address), list)
    for address in ("/healthz", "/openapi.json", "/icon.svg", "/nowhere", "/current/last"):
        ask(address)
        assert started

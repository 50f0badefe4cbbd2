"""gunicorn.conf.py and `make serve`: a real gunicorn that starts, answers, or says in one line why it does not."""

import os
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest
from conftest import ROOT
from service import GUNICORN, free_port


def environment(**changes):
    return {"PATH": os.environ["PATH"], **changes}


@contextmanager
def running(command, **environ):
    """`command` in this project's folder until the service listens; yields its output until then."""
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(**environ), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        said = []
        try:
            for line in process.stdout:
                said.append(line)
                if "offset=45" in line:  # the last thing it says once it listens
                    break
            yield said
        finally:
            process.terminate()
            process.communicate(timeout=30)


def test_make_serve_builds_a_database_and_prints_two_requests_that_work(tmp_path):
    environ = {
        "PORT": str(free_port()),
        "RACEDATA_DATABASE": str(tmp_path / "new.db"),
        "RACEDATA_BASE_PATH": "/api",
        "WEB_CONCURRENCY": "1",
    }
    # The environment that runs this test stands for .venv, which `make install` made it from.
    assert sys.prefix == str(ROOT / ".venv"), "run the tests with `make test`"
    with running(["make", "serve"], **environ) as said:
        assert any(line.startswith("lap_times") for line in said)
        requests = [line.split("curl '")[1].rstrip("'\n") for line in said if "Try: curl" in line]
        assert [request.split("/api/f1/")[1] for request in requests] == [
            "2023/races/",
            "2023/18/laps.json?limit=5&offset=45",
        ]
        for request in requests:
            with urllib.request.urlopen(request, timeout=10) as answer:
                assert b'"Races":[{' in answer.read()
    with running(["make", "serve"], **environ) as said:
        assert not any("lap_times" in line or "Installing" in line for line in said)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("RACEDATA_SERIES", "f 1", "racedata: RACEDATA_SERIES='f 1': expected letters, digits, - and _, such as f1\n"),
        ("PORT", "http", "racedata: PORT='http': expected a whole number from 1 to 65535\n"),
        (
            "RACEDATA_DATABASE",
            "/none.db",
            "racedata: /none.db is missing; to build it, run: make load-data SOURCE=… DATABASE=/none.db\n",
        ),
    ],
)
def test_gunicorn_ends_with_one_line_where_it_cannot_start(variable, value, said):
    run = subprocess.run(
        GUNICORN, cwd=ROOT, env=environment(**{variable: value}), capture_output=True, text=True, timeout=30
    )
    assert (run.returncode, run.stdout, run.stderr) == (3, "", said)


def test_make_serve_says_in_one_line_what_is_wrong_with_a_number_that_gunicorn_reads_first():
    run = subprocess.run(
        ["make", "serve"], cwd=ROOT, env=environment(WEB_CONCURRENCY="many"), capture_output=True, text=True, timeout=30
    )
    assert run.stderr.splitlines()[0] == "racedata: WEB_CONCURRENCY='many': expected a whole number from 1 to 512"
    assert "Traceback" not in run.stderr


def test_it_listens_on_an_ipv6_address_too(sample_database):
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    port = free_port()
    with running(GUNICORN, HOST="::1", PORT=str(port), RACEDATA_DATABASE=str(sample_database)) as said:
        assert any(f"Listening at: http://[::1]:{port}" in line for line in said)
        with urllib.request.urlopen(f"http://[::1]:{port}/ergast/f1/2023/18.json", timeout=10) as answer:
            assert f'"url":"http://[::1]:{port}/ergast/f1/2023/18/races.json"'.encode() in answer.read()


def test_a_second_service_on_the_same_port_does_not_start(sample_database):
    environ = {"PORT": str(free_port()), "RACEDATA_DATABASE": str(sample_database)}
    with running(GUNICORN, **environ):
        second = subprocess.run(
            GUNICORN, cwd=ROOT, env=environment(**environ), capture_output=True, text=True, timeout=60
        )
    assert second.returncode == 3
    said = f"racedata: HOST=127.0.0.1 PORT={environ['PORT']}: cannot listen there: Address already in use"
    assert said in second.stderr.splitlines()
    assert len(second.stderr.splitlines()) <= 2  # gunicorn says that it starts

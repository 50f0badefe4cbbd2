"""racedata.service.healthcheck: one line says whether a service answers, and whether it is ours."""

import json

import pytest
from support.apis import served
from support.processes import run_racedata, service


@pytest.fixture(scope="module")
def running(sample_database, tmp_path_factory):
    with service(sample_database, tmp_path_factory.mktemp("service") / "log") as running:
        yield running


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_healthcheck_asks_the_service_at_host_and_port(running, host):
    # A proxy of the environment is not for this machine.
    checked = run_racedata(
        "healthcheck", HOST=host, PORT=str(running.address[1]), http_proxy="http://127.0.0.1:9"
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout.startswith("ok: sample, built at 2")
    assert checked.stdout.count("\n") == 1


def test_a_refused_database_is_healthy_because_a_restart_would_not_help(tmp_path):
    sources = [{"name": "data.zip"}, {"name": "f1db"}]
    health = {
        "status": "ok",
        "sources": sources,
        "builtAt": "2026-11-22",
        "refused": "It is\ud800damaged.",
    }
    with served(lambda path: (200, {}, json.dumps(health).encode())) as server:
        checked = run_racedata("healthcheck", "--url", server.url)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert (
        checked.stdout
        == "ok: data.zip and f1db, built at 2026-11-22; a new file was refused: It is damaged.\n"
    )


@pytest.mark.parametrize(
    ("status", "body", "line"),
    [
        (503, b"{}", "status 503; expected 200"),
        (200, b"<html>", "expected the answer of racedata's /healthz"),
        (200, b"[]", "expected the answer of racedata's /healthz"),
        (200, b"{}", "expected the answer of racedata's /healthz"),
        (200, b"[" * 90_000, "expected the answer of racedata's /healthz"),
        (
            200,
            b'{"status":"fail","sources":[],"builtAt":1}',
            "expected the answer of racedata's /healthz",
        ),
        (
            200,
            b'{"status":"ok","sources":[{"name":1}],"builtAt":1}',
            "expected the answer of racedata's /healthz",
        ),
    ],
)
def test_healthcheck_fails_in_one_line_if_the_answer_is_not_a_good_one(status, body, line):
    with served(lambda path: (status, {}, body)) as server:
        checked = run_racedata("healthcheck", "--url", server.url)
    assert (checked.returncode, checked.stdout) == (1, "")
    assert checked.stderr == f"racedata healthcheck: {server.url}: {line}\n"


@pytest.mark.parametrize(
    ("arguments", "environ", "line"),
    [
        ([], {"HOST": "::", "PORT": "9"}, "http://[::1]:9/healthz: "),
        (["--url", "healthz"], {}, "healthz: expected an address that begins with http"),
        ([], {"PORT": "http"}, "PORT='http': expected a whole number from 1 to 65535"),
    ],
)
def test_healthcheck_fails_in_one_line_if_no_service_is_running(arguments, environ, line):
    checked = run_racedata("healthcheck", *arguments, **environ)
    assert (checked.returncode, checked.stdout) == (1, "")
    assert checked.stderr.startswith(f"racedata healthcheck: {line}")
    assert checked.stderr.count("\n") == 1
    assert "Errno" not in checked.stderr


def test_healthcheck_that_cannot_write_says_so_in_one_line(running):
    with open("/dev/full", "w") as full:
        ended = run_racedata("healthcheck", stdout=full, PORT=str(running.address[1]))
    assert (ended.returncode, ended.stderr) == (1, "racedata: stdout: No space left on device\n")

"""racedata.service.healthcheck: one line says whether a service answers, and whether it is ours."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from support.apis import served
from support.loads import racedata
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
    read = {"readAt": "2026-11-22T10:00:00Z"}
    sources = [{"name": "data.zip", **read}, {"name": "f1db", **read}, {"name": "openf1"}]
    health = {"status": "ok", "sources": sources, "builtAt": "2026-11-22"}
    health["refused"] = "It is damaged."
    with served(lambda path: (200, {}, json.dumps(health).encode())) as server:
        checked = racedata("healthcheck", "--url", server.url)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert (
        checked.stdout == "ok: data.zip and f1db, built at 2026-11-22; "
        "still serving earlier data: It is damaged.\n"
    )


@pytest.mark.parametrize(
    ("host", "port", "line"),
    [
        ("::", "9", "http://[::1]:9/healthz: "),
        ("::", "http", "PORT='http': expected a whole number from 1 to 65535"),
    ],
)
def test_healthcheck_fails_in_one_line_if_no_service_is_running(host, port, line, monkeypatch):
    monkeypatch.setenv("HOST", host)
    monkeypatch.setenv("PORT", port)
    checked = racedata("healthcheck")
    assert (checked.returncode, checked.stdout) == (1, "")
    assert checked.stderr.startswith(f"racedata healthcheck: {line}")
    assert checked.stderr.count("\n") == 1 and "Errno" not in checked.stderr


NO_REPORT = "not a health report; expected the address of racedata's /healthz"


@pytest.mark.parametrize(
    ("status", "body", "line"),
    [
        (503, b"{}", "status 503; expected 200"),
        (200, b"<html>", NO_REPORT),
        (200, b"[]", NO_REPORT),
        (200, b"{}", NO_REPORT),
        (200, b'{"status":"fail","sources":[],"builtAt":1}', NO_REPORT),
        (200, b'{"status":"ok","sources":[{"name":1,"readAt":1}],"builtAt":1}', NO_REPORT),
    ],
)
def test_healthcheck_fails_in_one_line_if_the_answer_is_not_a_good_one(status, body, line):
    with served(lambda path: (status, {}, body)) as server:
        checked = racedata("healthcheck", "--url", server.url)
    assert (checked.returncode, checked.stdout) == (1, "")
    assert checked.stderr == f"racedata healthcheck: {server.url}: {line}\n"


# How many days ago the database was built, and each source was followed first and refreshed last;
# None: never.
@pytest.mark.parametrize(
    ("built", "sources", "stale"),
    [
        (0, {}, None),
        (3, {}, "the database"),
        (0, {"f1db": (0, None)}, None),
        (9, {"f1db": (1.9, None), "openf1": (300, 0.1)}, None),
        (0, {"f1db": (2.1, None), "openf1": (300, 0.1)}, "f1db"),
        (0, {"f1db": (300, 0.1), "openf1": (300, 2.1)}, "openf1"),
        (0, {"f1db": (0, 300), "openf1": (300, 1.9)}, None),
        (9, {"f1db": (None, 300), "openf1": (300, 0.1)}, None),
    ],
)
def test_stale_after_fails_if_a_followed_source_has_not_been_refreshed_for_that_many_days(
    built, sources, stale
):
    def ago(days):
        return f"{datetime.now(UTC) - timedelta(days):%Y-%m-%dT%H:%M:%SZ}"

    keys = ("followedSince", "refreshedAt")
    listed = [
        {"name": name} | {key: ago(days) for key, days in zip(keys, times) if days is not None}
        for name, times in sources.items()
    ]
    dump = {"name": "dump", "readAt": ago(built)}
    health = {"status": "ok", "builtAt": ago(built), "sources": [dump, *listed]}
    with served(lambda path: (200, {}, json.dumps(health).encode())) as server:
        checked = racedata("healthcheck", "--stale-after", "2", "--url", server.url)
    assert checked.returncode == (stale is not None)
    assert checked.stdout.startswith("ok: dump") == (stale is None)
    assert (f"{stale} has not been refreshed since 2" in checked.stderr) == (stale is not None)


def test_stale_after_fails_for_the_sample_even_if_it_is_new(running):
    checked = run_racedata("healthcheck", "--stale-after", "2", PORT=str(running.address[1]))
    assert (checked.returncode, checked.stdout) == (1, "")
    assert ": Only a sample, with results up to 2023-10-22. " in checked.stderr
    assert checked.stderr.count("\n") == 1

"""racedata.follower: a service that follows its sources, and the end of either process."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support import ROOT, SAMPLE
from support.answers import client
from support.apis import answers_of, served
from support.loads import without
from support.processes import OFF, free_port, listens, run_racedata, until, wait_for_start
from support.traffic import get

# as installed: with it, Python imports nothing from this folder
RACEDATA = Path(sys.executable).with_name("racedata")


def commands_in(session):
    """The commands of the processes of a session, by their ids."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # ended meanwhile
            state, _, _, its_session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                found[int(folder.name)] = (
                    (folder / "cmdline").read_text().replace("\0", " ").strip()
                )
    return found


@contextmanager
def service_that_follows(database, output=subprocess.DEVNULL, folder=ROOT, **environ):
    """`racedata serve --follow`, and the session of its follower."""
    command = [RACEDATA, "serve", "--follow", "--database", database, "--workers", "1"]
    environ = {"PATH": os.environ["PATH"], **OFF, **environ}
    with subprocess.Popen(command, cwd=folder, env=environ, stderr=output) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

        def sessions():
            return [pid for pid in map(int, children.read_text().split()) if os.getsid(pid) == pid]

        try:
            wait_for_start(process, ("127.0.0.1", int(environ["PORT"])))
            until(lambda: len(sessions()) == 1)
            (session,) = sessions()
            yield process, session
        finally:
            process.kill()
    try:
        until(lambda: commands_in(session) == {})
    finally:
        with suppress(ProcessLookupError):
            os.killpg(session, signal.SIGKILL)


@pytest.mark.long(5)
def test_a_service_that_follows_serves_the_sample_and_then_the_data_of_its_sources(
    sample_database, tmp_path
):
    port, dump = free_port(), without(SAMPLE, tmp_path / "dump", 2023, 18)
    database = tmp_path / "new" / "racedata.db"

    def results():
        _, body = get(("127.0.0.1", port), "/ergast/f1/2023/18/results")
        return json.loads(body)["MRData"]["total"]

    with served(answers_of(client(sample_database))) as api:
        names = {"PORT": str(port), "RACEDATA_SOURCES": f"{api.url} {dump}"}
        with service_that_follows(database, **names):
            until(lambda: client(database).get("/healthz").json["sources"][0]["name"] == "dump")
            until(lambda: any("results" in path for path in api.paths) and results() == "20")


@pytest.mark.long(5)
def test_a_service_with_only_open_licences_begins_with_its_sources_and_not_with_the_sample(
    source, tmp_path
):
    (source / "licence.txt").write_text("CC BY 4.0")
    port, database = free_port(), tmp_path / "new" / "racedata.db"
    names = {"PORT": str(port), "RACEDATA_SOURCES": str(source), "RACEDATA_LICENCE": "open"}
    with service_that_follows(database, **names):
        _, body = get(("127.0.0.1", port), "/healthz")
        (served_source,) = json.loads(body)["sources"]
        assert (served_source["name"], served_source["licence"]) == ("source", "CC BY 4.0")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"RACEDATA_LICENCE": "open"},
            "racedata serve: RACEDATA_LICENCE=open does not allow the sample; expected "
            "RACEDATA_SOURCES with sources under CC BY or CC0",
        ),
        ({"RACEDATA_LICENCE": "free"}, "racedata: RACEDATA_LICENCE='free': expected any or open"),
        (
            {"RACEDATA_SOURCES": "http://127.0.0.1:9/racedata.db http://127.0.0.1:9/f1"},
            "racedata serve --follow: http://127.0.0.1:9/racedata.db is a whole database, which "
            "replaces the existing one; expected no other source",
        ),
    ],
)
def test_a_service_does_not_start_if_it_cannot_follow_its_sources(tmp_path, settings, said):
    database, port = tmp_path / "racedata.db", str(free_port())
    ended = run_racedata("serve", "--follow", "--database", database, PORT=port, **settings)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.splitlines()[-1] == said


@pytest.mark.long(5)
def test_a_killed_follower_is_started_again_as_soon_as_it_can_be(database, tmp_path):
    """The service goes on meanwhile."""
    names = {"PORT": str(free_port()), "RACEDATA_SOURCES": "http://127.0.0.1:1/f1"}
    folder, log = tmp_path / "folder", tmp_path / "log"
    folder.mkdir()
    with (
        log.open("w") as output,
        service_that_follows(database, output, folder, **names) as (_, session),
    ):
        folder.rmdir()
        os.kill(session, signal.SIGKILL)
        until(lambda: "Cannot start the follower: " in log.read_text())
        assert listens(("127.0.0.1", int(names["PORT"])))
        folder.mkdir()

        def lines():
            return re.findall(r"follower \(pid: (\d+)\) .* \(pid: (\d+)\)", log.read_text())

        until(lambda: lines() != [])
        ((ended, started),) = lines()
        assert int(ended) == session
        until(lambda: len(commands_in(int(started))) == 1)
    until(lambda: commands_in(int(started)) == {})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_follower_ends_with_the_service_however_that_ends(database, number):
    names = {"PORT": str(free_port()), "RACEDATA_SOURCES": "http://127.0.0.1:1/f1"}
    with service_that_follows(database, **names) as (process, session):
        until(lambda: len(commands_in(session)) == 1)
        process.send_signal(number)
        process.wait(timeout=40)
        until(lambda: commands_in(session) == {})

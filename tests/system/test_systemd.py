"""deploy/*.service: systemd accepts them and rates them as safe, and their commands do what they
should.
"""

import configparser
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, SAMPLE
from support.answers import client
from support.apis import answers_of, served
from support.loads import built, next_version, rows_of, select, without
from support.processes import OFF, following, free_port, nginx_sockets

from racedata.database import SCHEMA_VERSION

SERVICES = ("racedata.service", "racedata-follow.service")


@pytest.fixture
def units(tmp_path):
    """A folder with the units, changed to use this project and this environment instead of those in
    /opt/racedata.
    """
    for path in (ROOT / "deploy").glob("racedata*"):
        text = path.read_text().replace("/opt/racedata/.venv/bin", str(Path(sys.executable).parent))
        (tmp_path / path.name).write_text(text.replace("/opt/racedata", str(ROOT)))
    return tmp_path


HOME = ROOT / "deploy" / "home" / "racedata.service"


def analyze(*arguments):
    environ = {**os.environ, "TZ": "UTC"}
    return subprocess.run(
        ["systemd-analyze", *arguments], env=environ, capture_output=True, text=True
    )


def options(unit, section):
    """A section of a unit. If it has an option several times, the last one counts."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    # configparser would convert names to lower case.
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    return dict(parser[section])


@pytest.mark.parametrize("name", SERVICES)
def test_systemd_finds_no_mistake_in_the_units_and_rates_them_as_safe(units, name):
    verified = analyze("verify", units / name)
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")
    assert analyze("security", "--offline=yes", "--threshold=20", units / name).returncode == 0
    service = options(ROOT / "deploy" / name, "Service")
    assert service["ProtectSystem"] == "strict"
    if name == "racedata-follow.service":  # a refresh may write only the database's folder
        assert service["ReadWritePaths"] == f"{service['WorkingDirectory']}/data"


def test_systemd_finds_no_mistake_in_the_unit_for_a_home(tmp_path):
    unit = tmp_path / "racedata.service"
    unit.write_text(HOME.read_text().replace("%h/.local/bin", str(Path(sys.executable).parent)))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    command = ["systemd-analyze", "--user", "verify", unit]
    verified = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")


def test_the_unit_for_a_home_runs_what_pipx_installs_and_reads_the_settings_of_the_document(
    tmp_path,
):
    unit = options(HOME, "Service")
    assert unit["ExecStart"] == "%h/.local/bin/racedata serve --follow"
    words = shlex.split(unit["Environment"].replace("\\\n", ""))
    assert dict(word.split("=") for word in words) == {"HOST": "0.0.0.0", **OFF}
    document = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
    assert "`{}`".format(unit["EnvironmentFile"].replace("-%h", "~")) in document
    (line,) = re.findall(r"^    (install .*)$", document, re.MULTILINE)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    subprocess.run(["sh", "-c", line], cwd=ROOT, env=environ, check=True)
    assert (tmp_path / ".config/systemd/user/racedata.service").read_bytes() == HOME.read_bytes()


def command(unit, option="ExecStart"):
    """The command of a service, which may have several lines."""
    return shlex.split(options(unit, "Service")[option].replace("\\\n", "").lstrip("-+"))


def test_nginx_uses_the_sockets_of_the_service():
    words = command(ROOT / "deploy" / "racedata.service")
    bound = [option.removeprefix("unix:") for option in words if option.startswith("unix:")]
    assert bound == [str(path) for path in nginx_sockets(Path("/run/racedata"))] != []


def test_gunicorn_accepts_the_command_of_the_service(units, sample_database):
    # which is refused at the very end
    checking = [*command(units / "racedata.service"), "--keep-alive", "0"]
    environ = {**os.environ, "RACEDATA_DATABASE": str(sample_database)}
    checked = subprocess.run(checking, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert checked.returncode == 3
    assert checked.stderr.splitlines()[-1].startswith("racedata: keep-alive 0: ")


def test_before_the_start_the_service_builds_an_older_database_again(units, database, tmp_path):
    environ = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(next_version(tmp_path / "next")),
        "RACEDATA_DATABASE": str(database),
    }
    subprocess.run(command(units / "racedata.service", "ExecStartPre"), env=environ, check=True)
    assert select(database, "PRAGMA user_version") == [(SCHEMA_VERSION + 1,)]


def test_the_command_that_follows_asks_each_source_until_sigterm(units, sample_database, tmp_path):
    database = built(without(SAMPLE, tmp_path / "dump", 2023, 18), tmp_path / "racedata.db")
    with served(answers_of(client(sample_database))) as server:
        missing = f"http://127.0.0.1:{free_port()}/f1"
        words = command(units / "racedata-follow.service")
        program = [sys.executable, "-m", "racedata", "refresh", "--follow"]
        assert words[:3] == [str(Path(sys.executable).parent / "racedata"), *program[3:]]
        names = {"RACEDATA_SOURCES": f"{missing} {server.url}"}
        with following(database, *words[3:], **names) as follow:
            assert follow.stdout and follow.stderr
            assert "Connection refused; " in follow.stderr.readline()
            # first, the database is built by the new list
            assert any(f"{database}: new data after" in line for line in follow.stdout)
            follow.terminate()
            assert follow.wait(timeout=20) == 0
    assert rows_of(database) == rows_of(sample_database)

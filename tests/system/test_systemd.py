"""deploy/racedata.service: that systemd takes it, finds it safe, and that its command starts the service."""

import configparser
import os
import shlex
import subprocess

import pytest
from service import ROOT

UNIT = ROOT / "deploy" / "racedata.service"


@pytest.fixture
def unit(tmp_path):
    """The unit as it stands, with this folder for the one it names."""
    path = tmp_path / "racedata.service"
    path.write_text(UNIT.read_text().replace("/opt/racedata", str(ROOT)))
    return path


def analyze(*arguments):
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True)


def test_systemd_has_nothing_to_say_against_it(unit):
    verified = analyze("verify", unit)
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")


def test_systemd_finds_little_that_it_could_harm(unit):
    assert analyze("security", "--offline=yes", "--threshold=20", unit).returncode == 0


def test_its_command_is_a_gunicorn_that_takes_its_options(unit, sample_database):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(unit)
    command = shlex.split(parser["Service"]["ExecStart"])
    environ = {**os.environ, "RACEDATA_DATABASE": str(sample_database)}
    done = subprocess.run([*command, "--check-config"], cwd=ROOT, env=environ, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")

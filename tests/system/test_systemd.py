"""deploy/racedata.service: systemd accepts it and rates it as safe, and its command starts the service."""

import configparser
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from processes import nginx_sockets
from service import ROOT

UNIT = ROOT / "deploy" / "racedata.service"


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with this project's folder in place of /opt/racedata."""
    path = tmp_path / "racedata.service"
    path.write_text(UNIT.read_text().replace("/opt/racedata", str(ROOT)))
    return path


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True)


def test_systemd_finds_no_mistake_in_the_unit(unit: Path) -> None:
    verified = analyze("verify", unit)
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")


def test_systemd_rates_the_unit_as_safe(unit: Path) -> None:
    assert analyze("security", "--offline=yes", "--threshold=20", unit).returncode == 0


def command_of(unit: Path) -> list[str]:
    """The command that starts the service."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    # configparser would convert names to lower case.
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    return shlex.split(parser["Service"]["ExecStart"].replace("\\\n", ""))


def test_nginx_uses_the_sockets_of_the_unit() -> None:
    folder = Path("/run/racedata")
    bound = [option.removeprefix("unix:") for option in command_of(UNIT) if option.startswith("unix:")]
    assert bound == [str(path) for path in nginx_sockets(folder)] != []


def test_gunicorn_accepts_the_command_of_the_unit(unit: Path, sample_database: Path) -> None:
    environ = {**os.environ, "RACEDATA_DATABASE": str(sample_database)}
    checked = subprocess.run(
        [*command_of(unit), "--check-config"], cwd=ROOT, env=environ, capture_output=True, text=True
    )
    assert (checked.returncode, checked.stderr) == (0, "")

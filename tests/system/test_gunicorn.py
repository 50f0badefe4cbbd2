"""The service under the oldest gunicorn that setup.cfg accepts, which pip fetches."""

import subprocess
import sys

from support.processes import gunicorn
from support.traffic import get


def test_the_oldest_supported_gunicorn_serves_too(sample_database, tmp_path):
    options = "-m pip install --quiet --disable-pip-version-check --no-deps gunicorn==27.0.0"
    command = [sys.executable, *options.split(), "--target", tmp_path / "old"]
    subprocess.run(command, check=True)
    environ = {"RACEDATA_DATABASE": str(sample_database), "PYTHONPATH": str(tmp_path / "old")}
    log = tmp_path / "log"
    with log.open("w") as output, gunicorn(environ=environ, output=output) as running:
        assert b"Spielberg" in get(running.address, "/ergast/f1/2023/9.json")[1]
    assert "Starting gunicorn 27.0.0\n" in log.read_text()

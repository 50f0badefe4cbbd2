"""The service under the oldest gunicorn that setup.cfg accepts, which pip fetches."""

import subprocess
import sys
import urllib.request

from support.processes import gunicorn


def test_the_oldest_supported_gunicorn_serves_too(sample_database, tmp_path):
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    subprocess.run(
        [*pip, "--target", str(tmp_path / "old"), "gunicorn==27.0.0"], check=True, timeout=600
    )
    environ = {"RACEDATA_DATABASE": str(sample_database), "PYTHONPATH": str(tmp_path / "old")}
    log = tmp_path / "log"
    with log.open("w") as output, gunicorn(environ=environ, output=output) as running:
        host, port = running.address
        with urllib.request.urlopen(
            f"http://{host}:{port}/ergast/f1/2023/9.json", timeout=20
        ) as answer:
            assert b"Spielberg" in answer.read()
    assert "Starting gunicorn 27.0.0\n" in log.read_text()

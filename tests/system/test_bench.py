"""scripts/bench/bench.py and soak.py: that they run to the end and report. No test checks how fast anything is."""

import json
import subprocess
import sys

from service import ROOT

from racedata.settings import Settings


def test_the_benchmark_measures_each_endpoint_beside_the_floor(sample_database, tmp_path):
    figures = tmp_path / "bench.json"
    command = [
        sys.executable,
        ROOT / "scripts" / "bench" / "bench.py",
        sample_database,
        "--rounds",
        "1",
        "--seconds",
        "1",
    ]
    done = subprocess.run([*command, "--json", figures], capture_output=True, text=True, check=True, timeout=600)
    found = json.loads(figures.read_text())
    assert set(found["one"]) == {"calendar", "race", "results", "qualifying", "sprint", "laps"}
    for name, each in found["one"].items():
        assert {"floor", "limits on", "limits off", "nginx", "bytes"} == set(each)
        assert f"| {name} |" in done.stdout
    for cache in ("default cache", "large cache"):
        for limits in ("limits on", "limits off"):
            assert found["all"]["passes"][f"{cache}, {limits}"]["first"] > 0
    assert found["start"]["service"]["seconds"] > 0


def test_the_soak_shows_files_and_threads_that_stay_within_bounds(sample_database):
    command = [
        sys.executable,
        ROOT / "scripts" / "bench" / "soak.py",
        sample_database,
        "--requests",
        "20000",
        "--step",
        "5000",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines()[4:]]
    assert [row[1] for row in rows] == ["5,000", "10,000", "15,000", "20,000"]
    assert len({row[5] for row in rows}) == 1
    most = Settings().workers * (1 + 4)  # see gunicorn.conf.py
    assert all(int(row[6]) <= most for row in rows)

"""scripts/bench: that the benchmarks run to the end and report. No test checks how fast anything is."""

import json
import subprocess
import sys

from bench import one_per_endpoint
from support import ROOT

from racedata.resources import ENDPOINTS
from racedata.settings import Settings


def test_the_benchmark_measures_each_way_to_the_service_beside_its_floor(sample_database, tmp_path):
    figures = tmp_path / "bench.json"
    command = [sys.executable, ROOT / "scripts" / "bench" / "bench.py", sample_database]
    command += ["--rounds", "1", "--seconds", "1", "--per-shape", "1", "--endpoints", "results"]
    done = subprocess.run([*command, "--json", figures], capture_output=True, text=True, check=True, timeout=600)
    found = json.loads(figures.read_text())
    ways = {f"{place} {coding}" for place in ("direct", "nginx") for coding in ("plain", "gzip")}
    measured = ways | {f"{way} floor" for way in ways}
    assert set(found["one"]) == {"results"}
    for name, each in found["one"].items():
        assert set(each) == {*measured, "bytes"}
        assert each["bytes"]["gzip"] < each["bytes"]["plain"] / 3
        assert f"| {name} |" in done.stdout
    assert set(found["all"]["passes"]) == measured
    assert all(found["all"]["passes"][way]["first"] > 0 for way in ways)
    assert found["start"]["service"]["seconds"] > 0


def test_the_benchmark_has_an_address_for_each_endpoint(sample_database):
    assert set(one_per_endpoint(sample_database)) == {endpoint.name for endpoint in ENDPOINTS}


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

"""scripts/bench: the benchmarks of a real service run to the end and report. No test checks how
fast anything is.
"""

import json
import subprocess
import sys

import pytest
from support import ROOT

from racedata.settings import Settings


def run(script, *arguments):
    command = [sys.executable, ROOT / "scripts" / "bench" / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.long(40)
def test_the_benchmark_measures_each_way_to_the_service_and_its_floor(sample_database, tmp_path):
    figures = tmp_path / "bench.json"
    options = ["--rounds=1", "--seconds=1", "--per-shape=1", "--endpoints=results"]
    said = run("bench.py", sample_database, *options, "--json", figures)
    found = json.loads(figures.read_text())
    ways = {f"{place} {coding}" for place in ("direct", "nginx") for coding in ("plain", "gzip")}
    measured = ways | {f"{way} floor" for way in ways}
    [[name, each]] = found["one"].items()
    assert set(each) == {*measured, "bytes"}
    assert each["bytes"]["gzip"] < each["bytes"]["plain"] / 3
    assert f"| {name} |" in said
    assert set(found["all"]["passes"]) == measured
    assert all(found["all"]["passes"][way]["first"] > 0 for way in ways)
    assert found["start"]["service"]["seconds"] > 0


def test_the_soak_shows_files_and_threads_that_stay_within_bounds(sample_database):
    said = run("soak.py", sample_database, "--requests", "20000", "--step", "5000")
    rows = [[cell.strip() for cell in line.split("|")] for line in said.splitlines()[4:]]
    assert [row[1] for row in rows] == ["5,000", "10,000", "15,000", "20,000"]
    assert len({row[5] for row in rows}) == 1
    most = Settings().workers * (1 + 4)  # see server.py
    assert all(int(row[6]) <= most for row in rows)

"""scripts/bench: the benchmarks run to the end and report. No test checks how fast anything is."""

import json
import subprocess
import sys

import pytest
from support import ROOT

from racedata.service.endpoints import ENDPOINTS


def run(script, *arguments):
    command = [sys.executable, ROOT / "scripts" / "bench" / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.long(40)
def test_the_benchmark_measures_each_way_to_the_service_and_its_floor(sample_database, tmp_path):
    figures = tmp_path / "bench.json"
    options = ["--rounds=1", "--seconds=1", "--per-shape=1", "--one=results"]
    said = run("bench.py", sample_database, *options, "--json", figures)
    found = json.loads(figures.read_text())
    places = {"direct", "nginx"}
    measured = places | {f"{place} floor" for place in places}
    [[name, each]] = found["one"].items()
    assert set(each) == {*measured, "bytes"}
    assert each["bytes"] > 1_000
    assert f"| {name} |" in said
    assert set(found["all"]["passes"]) == measured
    assert all(found["all"]["passes"][way]["first"] > 0 for way in places)
    assert found["start"]["service"]["seconds"] > 0


@pytest.mark.long(4)
def test_the_shapes_benchmark_prints_a_row_for_each_endpoint(sample_database):
    rows = run("shapes.py", sample_database, "--per-shape", "2").splitlines()
    names = {row.split("|")[1].strip() for row in rows if row.count("|") == 7}
    assert {endpoint.name for endpoint in ENDPOINTS} <= names

"""scripts/bench: the programs that need no other server do what they say, at a small size."""

import re
import subprocess
import sys

import pytest
from support import ROOT, SAMPLE
from support.loads import built, select

from racedata.service.endpoints import ENDPOINTS


def run(script, *arguments):
    command = [sys.executable, ROOT / "scripts" / "bench" / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.long(4)
def test_the_time_of_a_refresh_is_measured():
    assert re.fullmatch(r"[0-9.]+ s, at least [0-9.]+\n", run("refresh.py", SAMPLE, "--runs", "2"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A dump made of the sample."""
    folder = tmp_path_factory.mktemp("made")
    run("make_full_size_dump.py", SAMPLE, folder)
    return folder


def test_a_generated_dump_is_identical_unless_the_seed_differs(made, tmp_path):
    for seed, differ in [("1996", set()), ("7", {"lap_times.csv"})]:
        folder = tmp_path / seed
        run("make_full_size_dump.py", SAMPLE, folder, "--seed", seed)
        assert {file.name for file in folder.iterdir()} == {
            file.name for file in SAMPLE.glob("*.csv")
        }
        assert {
            file.name
            for file in made.iterdir()
            if file.read_bytes() != (folder / file.name).read_bytes()
        } == differ


def test_a_generated_dump_loads_and_has_the_laps_that_its_results_have(made, tmp_path):
    laps = """SELECT year, round, sum(laps),
            (SELECT count(*) FROM lap_times WHERE raceId = races.raceId)
              FROM results JOIN races USING (raceId) GROUP BY raceId"""
    counts = {
        (year, round): counts
        for year, round, *counts in select(built(made, tmp_path / "x.db"), laps)
    }
    for race in ((2005, 1), (2023, 18)):
        driven, timed = counts[race]
        assert driven == timed > 900
    assert counts[1957, 5][1] == 0


@pytest.mark.long(4)
def test_the_limits_benchmark_prints_a_row_per_step():
    rows = run("limits.py", "100000").splitlines()
    assert [row.split()[0] for row in rows[1:]] == ["0", "100,000"]


@pytest.mark.long(4)
def test_the_shapes_benchmark_prints_a_row_per_endpoint(made, tmp_path):
    rows = run("shapes.py", built(made, tmp_path / "x.db"), "--per-shape", "2").splitlines()
    names = {row.split("|")[1].strip() for row in rows if row.count("|") == 7}
    assert {endpoint.name for endpoint in ENDPOINTS} <= names


def test_the_benchmark_has_an_address_for_each_endpoint():
    [names] = set(re.findall(r"{(.+?)}", run("bench.py", "--help")))
    assert set(names.split(",")) == {endpoint.name for endpoint in ENDPOINTS}

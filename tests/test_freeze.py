"""scripts/freeze.py: the hashes that show what a change of the loader alters."""

import sys
from itertools import groupby
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import freeze
from support.loads import changed, select
from support.refreshes import origins_of
from support.three_sources import season_of_three


@pytest.fixture
def only_the_sample(monkeypatch):
    monkeypatch.delenv("ERGAST_DUMP", raising=False)
    monkeypatch.delenv("F1DB_DUMP", raising=False)


@pytest.mark.long(40)
def test_two_builds_of_the_same_sources_have_the_same_hashes(only_the_sample, tmp_path):
    freeze.main(tmp_path / "first")
    first = {file.stem: {*file.read_text().splitlines()} for file in tmp_path.glob("first/*")}
    names = {line.rsplit(" ", 1)[0] for line in first["sample"]}
    assert {"table results:", "/ergast/f1/2023/18/results", "/2023/18"} <= names
    for name, database in freeze.databases(tmp_path):
        if name in ("sample", "season-two-years-later"):
            assert {*all_lines(database)} == first.pop(name)
        else:  # answers would take as long again
            assert {*freeze.tables(database)} <= first.pop(name), name
    assert first == {}


@pytest.mark.long(10)
def test_the_season_has_the_results_of_each_source_until_a_better_one_publishes_them(tmp_path):
    seen, races = {}, {}
    for moment, database in season_of_three(tmp_path):
        seen[moment] = [origins_of(database, round).get("results", "") for round in (9, 18)]
        ((races[moment],),) = select(database, "SELECT count(*) FROM races WHERE year = 2023")
    api = seen["two-years-later"][0]
    assert api.startswith("http://127.0.0.1:")
    first, second = ([each[index] for each in seen.values()] for index in (0, 1))
    assert [source for source, _ in groupby(first)] == ["", "openf1", api]
    assert [source for source, _ in groupby(second)] == ["", "openf1", "f1db", api]
    # a race is cancelled, which takes the API 12 hours to be believed
    assert [races["without-a-race"], races["renumbered"]] == [23, 22]


def test_a_changed_value_changes_the_hashes_of_its_table_and_its_addresses(database):
    before = dict(line.rsplit(" ", 1) for line in all_lines(database))
    changed(
        database,
        """UPDATE pit_stops SET lap = lap + 1 WHERE record = 1 AND raceId =
           (SELECT raceId FROM races WHERE year = 2023 AND round = 18)""",
    )
    after = dict(line.rsplit(" ", 1) for line in all_lines(database))
    altered = {name for name in before if before[name] != after[name]}
    assert {"table pit_stops:", "/ergast/f1/2023/18/pitstops"} <= altered
    assert all("pit" in name or name.startswith("/2023") for name in altered)


def test_tables_of_sqlite_itself_have_no_hash(database):
    changed(database, "ANALYZE")  # this writes SQLite's statistics into tables
    assert not any(line.startswith("table sqlite_") for line in freeze.tables(database))


def all_lines(database):
    return [*freeze.tables(database), *freeze.answers(database)]

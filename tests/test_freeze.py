"""scripts/freeze.py: the hashes that show what a change of the loader alters."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import freeze
from support.loads import changed


def frozen(folder):
    freeze.main(folder)
    (file,) = folder.iterdir()
    return dict(line.rsplit(" ", 1) for line in file.read_text().splitlines())


@pytest.fixture
def only_the_sample(monkeypatch):
    monkeypatch.delenv("ERGAST_DUMP", raising=False)
    monkeypatch.delenv("F1DB_DUMP", raising=False)


def test_two_builds_of_the_same_sources_have_the_same_hashes(only_the_sample, tmp_path):
    first = frozen(tmp_path / "first")
    assert first == frozen(tmp_path / "second")
    assert {"table results:", "/ergast/f1/2023/18/results", "/2023/18"} <= first.keys()


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

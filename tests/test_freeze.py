"""scripts/freeze.py: the hashes that show what a change of the loader alters."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import freeze
from support.loads import built, changed


@pytest.fixture
def database(small_dump, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")  # not the time of `frozen`
    return built(small_dump, tmp_path / "racedata.db")


@pytest.fixture(scope="module")
def frozen(small_dump, tmp_path_factory):
    """The lines of a file."""
    folder = tmp_path_factory.mktemp("frozen")
    freeze.write(folder, "small", built(small_dump, folder / "racedata.db"))
    return (folder / "small.txt").read_text().splitlines()


def test_a_file_has_a_hash_for_each_table_and_address(frozen, database):
    names = {line.rsplit(" ", 1)[0] for line in frozen}
    assert {"table results:", "/ergast/f1/2023/9/results", "/2023/9"} <= names
    assert sorted(all_lines(database)) == frozen


def test_a_changed_value_changes_the_hashes_of_its_table_and_its_addresses(frozen, database):
    before = dict(line.rsplit(" ", 1) for line in frozen)
    changed(
        database,
        """UPDATE pit_stops SET lap = lap + 1 WHERE record = 1 AND raceId =
           (SELECT raceId FROM races WHERE year = 2023 AND round = 9)""",
    )
    after = dict(line.rsplit(" ", 1) for line in all_lines(database))
    altered = {name for name in before if before[name] != after[name]}
    assert {"table pit_stops:", "/ergast/f1/2023/9/pitstops"} <= altered
    assert all("pit" in name or name.startswith("/2023") for name in altered)


def test_tables_of_sqlite_itself_have_no_hash(database):
    changed(database, "ANALYZE")  # this writes SQLite's statistics into tables
    assert not any(line.startswith("table sqlite_") for line in freeze.tables(database))


def all_lines(database):
    return [*freeze.tables(database), *freeze.answers(database)]

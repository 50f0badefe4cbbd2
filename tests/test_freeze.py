"""scripts/freeze.py: the hashes that show what a change of the loader alters."""

import sys
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import freeze
from support.loads import built, changed, select
from support.refreshes import origins_of


class Moment(NamedTuple):
    """A database at a moment of the season of three sources."""

    tables: set[str]
    results: tuple[str, str]  # the sources of the results of rounds 9 and 18
    races: int


def moments(folder):
    """Each moment, by its name: databases that the script builds without full dumps."""
    found = {}
    with pytest.MonkeyPatch.context() as environ:
        environ.delenv("ERGAST_DUMP", raising=False)
        environ.delenv("F1DB_DUMP", raising=False)
        databases = freeze.databases(folder)
        assert next(databases)[0] == "sample"
    for name, database in databases:
        results = (origins_of(database, round).get("results", "") for round in (9, 18))
        ((races,),) = select(database, "SELECT count(*) FROM races WHERE year = 2023")
        found[name.removeprefix("season-")] = Moment(
            {*freeze.tables(database)}, tuple(results), races
        )
    return found


@pytest.fixture(scope="module")
def season(tmp_path_factory):
    return moments(tmp_path_factory.mktemp("first"))


@pytest.mark.long(40)
def test_two_builds_of_the_same_sources_have_the_same_hashes(season, tmp_path):
    again = moments(tmp_path)
    assert [name for name in again if again[name].tables != season[name].tables] == []


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


@pytest.mark.long(40)
def test_the_season_has_the_results_of_each_source_until_a_better_one_publishes_them(season):
    api = season["two-years-later"].results[0]
    assert api.startswith("http://127.0.0.1:")
    first, second = ([each.results[index] for each in season.values()] for index in (0, 1))
    assert [source for source, _ in groupby(first)] == ["", "openf1", api]
    assert [source for source, _ in groupby(second)] == ["", "openf1", "f1db", api]
    # a race is cancelled, which takes the API 12 hours to be believed
    assert [season[name].races for name in ("without-a-race", "renumbered")] == [23, 22]


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

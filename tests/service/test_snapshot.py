"""racedata.service.snapshot: what is read from a database."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from racedata.service.snapshot import Snapshot


def test_a_path_may_have_any_characters(sample_database, tmp_path):
    path = tmp_path / "50% of ?mode=rwc #1 é.db"
    path.write_bytes(sample_database.read_bytes())
    assert Snapshot.read(path).row_counts()["lap_times"] == 1034


def test_nothing_can_be_written(sample_database):
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        Snapshot.read(sample_database).rows("DELETE FROM races")


def test_threads_share_it_and_each_gets_its_own_rows(sample_database):
    data = Snapshot.read(sample_database)

    def races(season):
        return [id for (id,) in data.rows("SELECT raceId FROM races WHERE year = ?", (season,))]

    # so many that it fails without a lock, from Python 3.12 on
    seasons = [1957, 2005, 2021, 2023] * 5000
    expected = {season: races(season) for season in {*seasons}}
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(races, seasons)) == [expected[season] for season in seasons]

"""racedata.loader.existing: an update never ends the data, whatever became
of the source.

The older database is one of this version, and the program that finds it is the next version.
"""

from contextlib import closing

import pytest
from support.loads import (
    assert_refused,
    changed,
    loader_settings,
    racedata,
    rows_as_before,
    rows_of,
    run_loader,
    select,
)

from racedata.database import SCHEMA_VERSION, store_path
from racedata.loader.existing import ExistingDatabase
from racedata.loader.rebuild import replace_from_store

SOURCES = "SELECT name, licence, readAt, isLoaded FROM sources"


def test_an_older_database_is_built_again_from_its_own_tables_row_by_row(old, program):
    before, sources = rows_of(old), select(old, SOURCES)
    assert_refused("", old, f"{sources[0][0]}: not found; expected a folder", cwd=program)
    run = racedata("build", "--database", old, cwd=program)
    assert (run.returncode, run.stderr) == (0, "")
    last = f"{old}: 1957 to 2023 (5 seasons, 88 races) from its store"
    assert run.stdout.splitlines()[-1] == last
    assert select(old, "PRAGMA user_version") == [(SCHEMA_VERSION + 1,)]
    assert select(old, SOURCES) == sources
    assert rows_as_before(old) == before


def test_a_table_that_an_older_database_lacks_is_empty(old, program):
    before = rows_of(old)
    changed(old, "DROP TABLE practice")
    store_path(old).unlink()
    assert racedata("build", "--database", old, cwd=program).returncode == 0
    after = rows_as_before(old)
    assert before["practice"] and not after["practice"]
    assert {table for table in before if before[table] != after[table]} == {
        "practice",
        "row_counts",
    }


def test_an_older_database_of_the_sample_gets_the_sample_of_the_new_version(database, program):
    said = run_loader("", database, cwd=program).stdout
    assert said.endswith(" from sample\n")
    assert select(database, "PRAGMA user_version") == [(SCHEMA_VERSION + 1,)]


def test_a_shared_car_without_a_number_stays(database):
    twice = "SELECT raceId, driverId FROM results GROUP BY 1, 2 HAVING count(*) > 1"
    changed(database, f"UPDATE results SET number = NULL WHERE (raceId, driverId) IN ({twice})")
    before = rows_of(database)
    replace_from_store(loader_settings(database), lambda text: None)
    assert rows_of(database) == before


@pytest.mark.parametrize(("days", "first"), [(29, 2005), (31, 2023)])
def test_a_season_is_unfinished_until_its_calendar_was_fetched_a_month_after_the_last_race(
    database, days, first
):
    """Then, no source has the results that it lacks."""
    changed(
        database,
        "DELETE FROM races WHERE year < 2005",
        f"""UPDATE origins SET fetchedAt = (
                SELECT date(max(date), '+{days} days') FROM races AS other
                WHERE other.year = races.year) || 'T00:00:00Z'
            FROM races WHERE races.raceId = origins.raceId AND kind = 'races'""",
    )
    with closing(ExistingDatabase(database)) as existing:
        assert existing.first_season([2005, 2021, 2023]) == first


@pytest.mark.parametrize(("is_sample", "first"), [(0, 2021), (1, 1950)])
def test_only_the_sample_lacks_the_seasons_before_its_first_one(database, is_sample, first):
    changed(
        database,
        f"UPDATE build SET isSample = {is_sample}",
        "UPDATE origins SET fetchedAt = '2026-01-01T00:00:00Z'",
        "DELETE FROM races WHERE year IN (1957, 2021)",
    )
    with closing(ExistingDatabase(database)) as existing:
        assert existing.first_season([1950, 2005, 2021, 2023]) == first

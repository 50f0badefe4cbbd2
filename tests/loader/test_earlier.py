"""racedata.loader.earlier: an update of the program never ends the data, whatever became of the
source.

expected/schema-1.db.xz and schema-3.db.xz are databases that racedata 0.1.0, and the last program
with schema version 3, built from their samples in a folder `dump`, which is not there any more.
"""

import lzma
import shutil
import signal

import pytest
from support import EXPECTED, SAMPLE, spoiling
from support.answers import bodies, client
from support.apis import answers_of, refreshed, served
from support.loads import assert_refused, built, changed, edited, rows_of, run_loader, select

from racedata.cli import needed_at
from racedata.loader.build import provide, rebuild
from racedata.loader.replacement import END_SIGNALS

# What makes the table `build` that of an earlier version.
SCHEMA_3 = [
    f"ALTER TABLE build ADD COLUMN {column} TEXT DEFAULT {value}"
    for column, value in {
        "source": "'dump'",
        "refreshedFrom": "NULL",
        "licence": "'CC0'",
        "sourceChecksum": "''",
    }.items()
]
REASON = "from its own tables, because its source failed: dump: not found; expected a folder of CSV files, "


@pytest.fixture
def old(tmp_path):
    """Returns the path of a database of a schema version."""

    def old(version):
        path = tmp_path / "racedata.db"
        path.write_bytes(lzma.decompress((EXPECTED / f"schema-{version}.db.xz").read_bytes()))
        return path

    return old


def test_a_database_of_version_0_1_is_rebuilt_from_its_own_tables_and_serves_the_same(
    old, sample_database, tmp_path
):
    path = old(1)
    before = dict(select(path, "SELECT name, rows FROM row_counts"))
    run = run_loader("", path, cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines()[-1].startswith(
        f"{path}: 1957 to 2023 (4 seasons, 71 races) {REASON}"
    )
    after = dict(select(path, "SELECT name, rows FROM row_counts"))
    missing = {"pit_stops", "driver_standings", "constructor_standings"}
    assert after == before | {"sessions": 176, "seasons": 4, "entries": 139} | dict.fromkeys(
        {*missing, "practice", "sprint_qualifying"}, 0
    )
    addresses = [
        f"/ergast/f1/2023/{round}/{kind}"
        for round in (9, 18)
        for kind in ("results", "sprint", "qualifying")
    ]
    addresses += [
        "/ergast/f1/2023",
        "/ergast/f1/2021/10",
        "/ergast/f1/2023/9/laps?limit=2000",
        "/ergast/f1/1957/5/results",
    ]
    assert bodies(path, addresses) == bodies(sample_database, addresses)


def test_a_database_of_schema_3_is_rebuilt_from_its_own_tables_row_by_row(old, tmp_path):
    path = old(3)
    assert run_loader("", path, cwd=tmp_path).returncode == 0
    source = shutil.copytree(SAMPLE, tmp_path / "source")
    for table in ("sprint_qualifying", "practice"):  # which schema 3 did not have
        (source / f"{table}.csv").unlink()
    assert rows_of(path) == rows_of(built(source, tmp_path / "expected.db"))
    assert select(path, "SELECT name, isSample, licence FROM build, sources") == [
        ("dump", 0, "CC BY-NC-SA 4.0")
    ]


def test_a_database_of_schema_5_is_rebuilt_with_the_entries_that_its_results_are(
    sample_database, tmp_path
):
    path = tmp_path / "racedata.db"
    path.write_bytes(sample_database.read_bytes())
    changed(path, "DROP TABLE entries", "PRAGMA user_version = 5")
    rebuild(str(path), None, lambda text: None, "a test")
    assert rows_of(path) == rows_of(sample_database)


def test_a_database_without_result_ids_keeps_the_order_that_follows_from_them(tmp_path):
    # A driver's first result has the lower place, and another constructor. A second row has the
    # place of the other one.
    edits = {
        "152": {"resultId": "9152"},
        "153": {"resultId": "9153", "positionOrder": "8"},
        "156": {"constructorId": "8"},
    }
    source = edited(
        SAMPLE, tmp_path / "dump", results=lambda row: row | edits.get(row["resultId"], {})
    )
    path = built(source, tmp_path / "racedata.db")
    before = rows_of(path)
    assert select(
        path, "SELECT constructors FROM driver_standings WHERE raceId = 2 AND driverId = 57"
    ) == [("8 11",)]
    changed(path, *SCHEMA_3, "ALTER TABLE results DROP COLUMN resultId", "PRAGMA user_version = 3")
    rebuild(str(path), None, lambda text: None, "a test")
    assert rows_of(path) == before


@pytest.mark.parametrize("version", [1, 3])
def test_refresh_builds_an_older_database_again_first_as_a_load_does(old, sample_database, version):
    path = old(version)
    with served(answers_of(client(sample_database))) as server:
        said, _ = refreshed(path, server.url, season=2023)
    assert "from its own tables, because its source failed: dump: not found" in said[0]
    of_2023 = "SELECT * FROM results JOIN races USING (raceId) WHERE year = 2023"
    assert len(select(path, of_2023)) == len(select(sample_database, of_2023)) == 40


def test_an_older_database_of_the_sample_gets_the_sample_of_this_version(
    old, sample_database, tmp_path
):
    path = changed(old(1), "UPDATE build SET source = '/opt/racedata/data/sample'")
    assert run_loader("", path).stdout.endswith(f" from {SAMPLE}\n")
    assert rows_of(path) == rows_of(sample_database)


def test_a_database_stays_one_of_the_sample_and_keeps_what_an_earlier_version_has_fetched(tmp_path):
    path = built(SAMPLE, tmp_path / "racedata.db")
    fetched = (
        "UPDATE build SET refreshedFrom = 'https://example.org', builtAt = '2023-10-24T00:00:00Z'"
    )
    # 2023/18
    corrected = "UPDATE results SET points = '99' WHERE raceId = 67 AND positionOrder = 1"
    changed(path, *SCHEMA_3, fetched, corrected, "PRAGMA user_version = 4")
    assert run_loader(SAMPLE, path).returncode == 0
    sources = "SELECT name, isLoaded, isSample FROM sources, build ORDER BY sourceId"
    assert select(path, sources) == [(str(SAMPLE), 1, 1), ("https://example.org", 0, 1)]
    assert select(path, "SELECT points FROM results WHERE points = '99'") == [("99",)]


def test_a_source_that_is_given_and_fails_leaves_an_older_database_as_it_was(old, tmp_path):
    path = old(3)
    assert_refused(tmp_path / "none", path, "none: not found")


def test_a_driver_who_is_twice_in_a_session_of_a_database_counts_once(database):
    changed(database, "UPDATE qualifying SET DRIVER(alonso) WHERE RACE(2023/18) AND DRIVER(stroll)")
    before = len(rows_of(database)["qualifying"])
    rebuild(str(database), None, lambda text: None, "a test")
    assert len(rows_of(database)["qualifying"]) == before - 1


def test_a_shared_car_without_a_number_stays(sample_database, tmp_path):
    twice = "(raceId, driverId) IN (SELECT raceId, driverId FROM results GROUP BY 1, 2 HAVING count(*) > 1)"
    path = tmp_path / "racedata.db"
    path.write_bytes(sample_database.read_bytes())
    changed(path, f"UPDATE results SET number = NULL WHERE {twice}")
    before = rows_of(path)
    rebuild(str(path), None, lambda text: None, "a test")
    assert rows_of(path) == before


def test_a_database_of_a_newer_program_is_refused(old):
    path = changed(old(3), "PRAGMA user_version = 9")
    assert_refused("", path, f"{path} has schema version 9, newer than this program's, 7")


def test_the_service_begins_with_an_older_database_built_again_or_with_the_sample(
    old, sample_database
):
    handlers = {number: signal.getsignal(number) for number in END_SIGNALS}
    try:
        path = old(3)
        assert "from its own tables" in needed_at(str(path))
        provide(str(path))
        assert needed_at(str(path)) == ""
        assert select(path, "SELECT name FROM sources") == [("dump",)]
        for spoil in (spoiling.missing, spoiling.emptied):
            spoil(path)
            assert "from the sample" in needed_at(str(path))
            provide(str(path))
            assert rows_of(path) == rows_of(sample_database)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

"""racedata.loader.rebuild, load: a database and its store in step, whichever of them is lost,
old, or of another one.

What every build does with a store that sources fill is in test_fill.py, test_several_sources.py and
test_store.py.
"""

import sqlite3
from contextlib import closing

import pytest
from support import SAMPLE
from support.answers import client
from support.apis import answers_of, refreshed, served
from support.loads import (
    built,
    changed,
    csv_rows,
    is_in_step,
    loader_settings,
    racedata,
    rows_of,
    run_loader,
    select,
    without,
)
from support.refreshes import F1DB
from support.stores import a_calendar, a_delivery, a_race, a_source, put, results

from racedata.database import store_path
from racedata.loader.build import build_database
from racedata.loader.corrections import Corrections
from racedata.loader.existing import ExistingDatabase
from racedata.loader.load import bring_into_step
from racedata.loader.rebuild import is_behind, new_database, put_if_apart, take_apart
from racedata.loader.source_list import apply_list, list_of
from racedata.loader.store import changed_store
from racedata.model import RECORDS

SAID = [a_calendar(a_race(1)), results(1, "hill", "clark")]
DUMP = a_source("dump", ids="dump")


# Which of them is to be built from the other.


def in_store(edit):
    """Changes the store of a database."""

    def change(database):
        with changed_store(database) as store:
            edit(store)

    return change


def of_revision(change):
    def edit(store):
        id, revision = store.state
        store.state = id, revision + change

    return in_store(edit)


def without_store(database):
    store_path(database).unlink()


def unlink(database):
    database.unlink()


CASES = {
    "as built": ([], False),
    "the store has changed since": ([of_revision(1)], True),
    "an older copy of the store": ([of_revision(-1)], False),
    "another store": ([in_store(lambda store: store.clear())], False),
    "no store": ([without_store], False),
    "no database": ([unlink], True),
    "no database, and an empty store": ([unlink, in_store(lambda store: store.clear())], False),
    "nothing": ([unlink, without_store], False),
    "an earlier version": ([lambda path: changed(path, "PRAGMA user_version = 10")], True),
}


@pytest.mark.parametrize(("edits", "expected"), CASES.values(), ids=CASES)
def test_the_files_say_whether_the_database_is_behind_its_store(tmp_path, edits, expected):
    database = built(SAMPLE, tmp_path / "x.db")
    for edit in edits:
        edit(database)
    assert is_behind(database) is expected


@pytest.mark.parametrize("edit", [lambda path: changed(path, "DELETE FROM lap_times"), unlink])
def test_a_database_that_is_lost_or_behind_is_built_from_its_store(tmp_path, edit):
    database = built(SAMPLE, tmp_path / "x.db")
    before = rows_of(database)
    assert bring_into_step(loader_settings(database), lambda text: None) == ""
    of_revision(1)(database)
    edit(database)
    said = bring_into_step(loader_settings(database), lambda text: None)
    assert said == f"{database}: 1957 to 2023 (5 seasons, 88 races) from its store"
    assert rows_of(database) == before
    assert is_in_step(database)


def test_a_build_that_changes_nothing_brings_the_store_into_step(source, tmp_path):
    """A program was killed before it put its database in place."""
    database = built(source, tmp_path / "x.db")
    of_revision(1)(database)
    assert racedata("build", "--database", database).stdout == f"{database}: nothing new\n"
    assert is_in_step(database)


# Files that are lost.


def test_a_database_whose_store_is_lost_is_taken_apart(several_sources):
    """Its sources are in the order of a refresh."""
    database, before = several_sources, rows_of(several_sources)
    assert not store_path(database).exists()
    with changed_store(database) as store, closing(ExistingDatabase(database)) as existing:
        put_if_apart(existing, store)
        apply_list(store)
        assert store.state == existing.state
        names = [source.name for source in store.sources()]
        assert names == ["https://example.org/f1?key=1", "sample", "f1db"]
        assert store.statuses() == dict(select(database, "SELECT status, statusId FROM status"))
        build_database(database.with_name("again.db"), store, Corrections([]), lambda text: None)
    assert rows_of(database.with_name("again.db")) == before
    assert store_path(database).exists()


def test_an_older_copy_of_the_store_still_knows_the_list_of_sources(tmp_path):
    database = tmp_path / "x.db"
    assert run_loader(F1DB, database, "--only").returncode == 0
    of_revision(-1)(database)
    with changed_store(database) as store, closing(ExistingDatabase(database)) as existing:
        put_if_apart(existing, store)
        assert list_of(store) == [str(F1DB)]


def test_ids_stay_if_the_store_is_lost_even_if_the_first_source_is_not_the_one_of_the_ids(tmp_path):
    database = built([F1DB, SAMPLE], tmp_path / "x.db")
    before = rows_of(database)
    assert select(database, "SELECT name FROM sources WHERE sourceId = 1") == [("f1db",)]
    store_path(database).unlink()
    with changed_store(database) as store, closing(ExistingDatabase(database)) as existing:
        take_apart(existing, store)
        build_database(database.with_name("again.db"), store, Corrections([]), lambda text: None)
    after = rows_of(database.with_name("again.db"))
    assert [name for name in before if after[name] != before[name]] == []


def test_ids_stay_if_the_store_is_lost_and_a_further_source_has_news(tmp_path):
    database = built([SAMPLE, F1DB], tmp_path / "x.db")
    ids = "SELECT raceId, year, round FROM races"
    before = select(database, ids)
    store_path(database).unlink()
    refresh = racedata("refresh", "--from", F1DB, "--season", 2023, "--database", database)
    assert (refresh.returncode, refresh.stderr) == (0, "")
    assert select(database, ids) == before


def test_a_new_store_is_removed_if_it_cannot_be_filled_and_an_old_one_stays_as_it_was(database):
    def interrupted():
        with (
            pytest.raises(KeyboardInterrupt),
            new_database(loader_settings(database)) as new,
            new.store() as (store, _),
        ):
            put(store, a_delivery(a_source("other"), *SAID))
            raise KeyboardInterrupt

    path = store_path(database)
    interrupted()
    assert [*database.parent.iterdir()] == [database]
    in_store(lambda store: put(store, a_delivery(DUMP, *SAID)))(database)
    before = path.read_bytes()
    interrupted()
    assert path.read_bytes() == before
    assert {*database.parent.iterdir()} == {database, path}


def test_a_store_that_cannot_be_read_is_replaced_and_has_the_mode_of_the_database(database):
    """It is committed before others can change it."""
    database.chmod(0o640)
    store_path(database).write_bytes(b"not a store")
    with changed_store(database) as store:
        assert store.known_sources() == []
        put(store, a_delivery(DUMP, *SAID))
        with closing(sqlite3.connect(store_path(database), timeout=0)) as other:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
            assert other.execute("SELECT count(*) FROM parts").fetchone() == (0,)
    assert store_path(database).stat().st_mode & 0o777 == 0o640


def test_a_load_after_the_store_was_lost_keeps_what_refreshes_have_brought(
    sample_database, tmp_path
):
    dump = without(SAMPLE, tmp_path / "dump", 2023, 18)
    database = built(dump, tmp_path / "x.db")
    with served(answers_of(client(sample_database))) as server:
        refreshed(database, server.url, season=2023)
    before, path = rows_of(database), store_path(database)
    damaged = f"racedata: {path}: file is not a database; deleted, and replaced with a new store\n"
    for content, said in ((b"", ""), (b"SQLite format 3\0" + b"\xff" * 5000, damaged)):
        path.write_bytes(content)
        run = run_loader(dump, database)
        assert (run.returncode, run.stderr) == (0, said)
        assert rows_of(database) == before
    path.unlink()
    # The other dump lacks a driver. Only the API's records name him then.
    (alonso,) = (
        row["driverId"] for row in csv_rows(SAMPLE, "drivers") if row["driverRef"] == "alonso"
    )
    names = {"drivers", *RECORDS} - {"constructor_standings"}
    edits = dict.fromkeys(names, lambda row: row if row["driverId"] != alonso else None)
    built(without(SAMPLE, tmp_path / "further", 2023, 18, **edits), database)
    sql = "SELECT * FROM results JOIN races USING (raceId) WHERE (year, round) = (2023, 18)"
    assert len(select(database, sql)) == 20

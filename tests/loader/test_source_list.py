"""racedata.loader.source_list, in_step: the list of sources, how commands change it, and what they
load because of it.
"""

import re
import shutil
from contextlib import closing

import pytest
from support import SAMPLE
from support.answers import client
from support.apis import answers_of, refreshed, served
from support.loads import (
    built,
    copied_alone,
    loader_settings,
    racedata,
    rows_of,
    run_loader,
    select,
    signals_kept,
    without,
)
from support.processes import following
from support.refreshes import F1DB, assert_ends_at_once, with_a_penalty

from racedata.database import store_path
from racedata.loader import in_step, load, source_list
from racedata.loader.in_step import load_unread, unread_at
from racedata.loader.provide import provide
from racedata.loader.source_list import after_load, after_refresh
from racedata.loader.sources import DEFAULT_LIST
from racedata.loader.store import IN_MEMORY, Store, StoredSource

JOLPICA, TRACINGINSIGHTS, RELEASE, OPENF1 = DEFAULT_LIST


def unread(database):
    """Loads the dumps of the list that were not read. Returns what it says."""
    return load_unread(loader_settings(database), lambda text: None)


OTHER, API = "/dumps/other.zip", "https://f1.example.org/ergast/f1"


@pytest.mark.parametrize(
    ("before", "loaded", "after"),
    [
        (DEFAULT_LIST, [OTHER], [JOLPICA, OTHER, OPENF1]),
        (DEFAULT_LIST, [OTHER, RELEASE], [JOLPICA, OTHER, RELEASE, OPENF1]),
        ([JOLPICA, OTHER, OPENF1], [RELEASE], [JOLPICA, RELEASE, OPENF1]),
        ([JOLPICA, OPENF1], [OTHER], [JOLPICA, OTHER, OPENF1]),
        ([OTHER, JOLPICA], [RELEASE], [RELEASE, JOLPICA]),
        ([OTHER, JOLPICA], [OTHER], [OTHER, JOLPICA]),
        ([OTHER, JOLPICA, RELEASE], [OTHER, RELEASE], [OTHER, JOLPICA, RELEASE]),
        ([OTHER, JOLPICA, RELEASE], [RELEASE, OTHER], [RELEASE, OTHER, JOLPICA]),
        ([], [OTHER], [OTHER]),
        (DEFAULT_LIST, ["sample"], [*DEFAULT_LIST, "sample"]),
        ([*DEFAULT_LIST, "sample"], ["sample"], [*DEFAULT_LIST, "sample"]),
        ([*DEFAULT_LIST, "sample"], [RELEASE], [JOLPICA, RELEASE, OPENF1]),
    ],
)
def test_a_load_puts_its_dumps_in_the_place_of_the_dumps_of_the_list(before, loaded, after):
    assert after_load(before, loaded) == after


@pytest.mark.parametrize(
    ("before", "asked", "after"),
    [
        (DEFAULT_LIST, [JOLPICA, RELEASE], [*DEFAULT_LIST]),
        (DEFAULT_LIST, [API], [API, *DEFAULT_LIST]),
        ([OTHER, OPENF1], [RELEASE, API], [API, OTHER, RELEASE, OPENF1]),
        ([OTHER], [OPENF1, API], [API, OTHER, OPENF1]),
    ],
)
def test_a_new_api_joins_ahead_of_the_others_and_any_other_source_behind_them(before, asked, after):
    assert after_refresh(before, asked) == after


def test_dumps_of_the_list_are_loaded_until_each_was_read_whole(tmp_path, monkeypatch):
    database, dump = tmp_path / "x.db", without(SAMPLE, tmp_path / "dump", 2023, 18)

    def loads(*sources):
        monkeypatch.setenv("RACEDATA_SOURCES", " ".join(map(str, sources)))
        return unread(database)

    assert loads(F1DB).endswith(f" from {F1DB}")
    assert loads(F1DB) == ""
    assert loads(dump, F1DB).endswith(f" from {dump} and {F1DB}")
    assert "the list of sources has changed" in loads(F1DB, dump)  # both were read
    assert loads(F1DB, dump) == ""
    database.unlink()
    assert "the list of sources has changed" in loads(dump, F1DB)
    database.unlink()
    store_path(database).unlink()
    assert loads(F1DB).endswith(f" from {F1DB}")


def test_a_list_that_another_command_has_changed_in_the_meantime_stays(tmp_path, monkeypatch):
    database, dump = tmp_path / "x.db", without(SAMPLE, tmp_path / "dump", 2023, 18)
    monkeypatch.setenv("RACEDATA_SOURCES", str(F1DB))
    with pytest.MonkeyPatch.context() as until_then:

        def then_loads(store):
            """Lets another command load a dump between the decision and what follows from it."""
            found = source_list.wanted_list(store)
            until_then.undo()
            load.load([str(dump)], loader_settings(database), lambda text: None, only=True)
            return found

        until_then.setattr(in_step, "wanted_list", then_loads)
        assert unread(database) == ""
    with closing(Store(store_path(database))) as store:
        assert source_list.list_that_counts(store) == [str(dump)]


def test_a_provisional_source_has_the_last_place_wherever_the_list_has_it():
    """Otherwise, its facts about drivers would replace all others."""
    dump = StoredSource("/dump", "/dump", None, "0", "2026-11-20T00:00:00Z", is_loaded=True)
    openf1 = dump._replace(name=OPENF1, address=OPENF1, is_loaded=False, is_provisional=True)
    with closing(Store(IN_MEMORY)) as store, store.transaction():
        store.put_source(openf1)
        store.put_source(dump)
        source_list.put_source_list(store, [OPENF1, "/dump"])
        assert [source.name for source in store.sources()] == ["/dump", OPENF1]


def test_a_dump_that_is_removed_or_loaded_later_counts_more_than_the_same_variable(
    tmp_path, monkeypatch
):
    database, dump = tmp_path / "x.db", without(SAMPLE, tmp_path / "dump", 2023, 18)
    monkeypatch.setenv("RACEDATA_SOURCES", f"{dump} {F1DB}")

    def loaded(*words):
        run = racedata(*words, "--database", database)
        assert (run.returncode, run.stderr) == (0, "")
        return run.stdout.splitlines()[-1]

    assert loaded("load").endswith(f" from {dump} and {F1DB}")
    loaded("sources", "--remove", "f1db")
    assert loaded("load").endswith(f" from {dump}")
    assert loaded("load", F1DB).endswith(f" from {F1DB}")
    assert loaded("load").endswith(f" from {F1DB}")
    monkeypatch.setenv("RACEDATA_SOURCES", f"{F1DB} {dump}")
    assert loaded("load").endswith(f" from {F1DB} and {dump}")


def test_two_addresses_of_one_named_source_are_refused_and_the_same_one_twice_is_one(tmp_path):
    database, copy = tmp_path / "x.db", shutil.copytree(F1DB, tmp_path / "copy")
    said = f"{F1DB} and {copy} are both f1db; expected one of them; nothing was changed"
    run = racedata("load", F1DB, copy, "--database", database)
    assert (run.returncode, run.stderr) == (1, f"racedata load: {said}\n")
    once = select(built(SAMPLE, database), "SELECT * FROM results")
    run = racedata("load", SAMPLE, SAMPLE, "--database", database)
    assert run.returncode == 0 and select(database, "SELECT * FROM results") == once


def test_a_refresh_of_a_list_that_has_only_the_sample_says_so(tmp_path):
    database = built(SAMPLE, tmp_path / "x.db")
    assert racedata("load", SAMPLE, "--only", "--database", database).returncode == 0
    for words in (["refresh"], ["refresh", "--follow"]):
        run = racedata(*words, "--database", database)
        assert run.returncode == 1 and "the list has only the sample; name a source" in run.stderr


def test_a_copy_of_a_database_has_its_apis_in_their_order(api, behind, finished, tmp_path):
    """One has what counts of a race, and the other what counts of another one."""
    lacks_a_race = without(finished, tmp_path / "dump", 2023, 18)
    with served(answers_of(client(with_a_penalty(lacks_a_race, tmp_path, 9)))) as other:
        refreshed(behind, api.url)
        refreshed(behind, other.url, season=2023)
    for database in (behind, copied_alone(behind, tmp_path / "copy")):
        lines = racedata("sources", "--database", database).stdout.splitlines()
        assert [line.split(": ")[0] for line in lines[:2]] == [f"1. {other.url}", f"2. {api.url}"]


def test_without_a_dump_the_configured_list_keeps_those_that_were_read(tmp_path, monkeypatch):
    database = built(F1DB, tmp_path / "x.db", None)
    before = rows_of(database)
    monkeypatch.setenv("RACEDATA_SOURCES", f"{API} openf1")
    assert "the list of sources has changed" in load_unread(
        loader_settings(database), lambda text: None
    )
    assert rows_of(database) == before
    with closing(Store(store_path(database))) as store:
        assert source_list.wanted_list(store) == [API, str(F1DB), "openf1"]


def test_the_sample_is_not_loaded_again_with_the_dumps_of_the_list(tmp_path, monkeypatch):
    monkeypatch.setattr(source_list, "DEFAULT_LIST", [JOLPICA, str(F1DB), OPENF1])
    database = built(SAMPLE, tmp_path / "x.db")
    assert unread(database).endswith(f" from {F1DB}")
    assert select(database, "SELECT isSample FROM build") == [(0,)]
    assert unread(database) == ""


def test_the_dumps_of_the_default_list_are_loaded_once_the_service_has_begun_with_the_sample(
    tmp_path,
):
    database = tmp_path / "x.db"
    with signals_kept():
        provide(str(database))
    assert unread_at(database) == ([TRACINGINSIGHTS, RELEASE], False)
    said = racedata("sources", "--database", database).stdout
    assert [line.split()[1] for line in said.splitlines()] == [
        f"{JOLPICA}:",
        "tracinginsights",
        "f1db",
        "sample:",
        f"{OPENF1}:",
    ]


def test_neither_the_database_nor_its_store_says_where_the_sample_is(tmp_path):
    """So the package may be moved."""
    database = tmp_path / "x.db"
    assert racedata("load", SAMPLE, "--database", database).returncode == 0
    for path in (database, store_path(database)):
        assert str(SAMPLE).encode() not in path.read_bytes()
    assert racedata("load", "sample", "--database", database).stdout.endswith(" from sample\n")
    assert racedata("sources", "--database", database).stdout.count("sample") == 1


def test_follow_first_loads_the_dumps_of_the_list(api, behind_file, complete, tmp_path):
    database = tmp_path / "racedata.db"
    dump = str(behind_file.parent / "dump")
    with following(database, RACEDATA_SOURCES=f"{api.url} {dump}") as follow:
        assert (
            follow.stdout.readline()
            == f"{database}: 1957 to 2023 (4 seasons, 28 races) from {dump}\n"
        )
        assert f"{database}: new data" in follow.stdout.readline()
        assert rows_of(database) == rows_of(complete)
        assert_ends_at_once(follow)


def test_follow_keeps_its_data_if_a_dump_of_the_list_cannot_be_loaded(api, behind, complete):
    with following(behind, RACEDATA_SOURCES=f"{api.url} http://127.0.0.1:1/dump.zip") as follow:
        assert re.search(
            r"dump.zip: .*Connection refused; .*next try at ", follow.stderr.readline()
        )
        assert "new data" in follow.stdout.readline()
        follow.terminate()  # and the dump is asked again and again
        follow.communicate(timeout=20)
    assert rows_of(behind) == rows_of(complete)


def test_a_source_that_is_loaded_only_is_the_whole_list(api, behind):
    refreshed(behind, api.url)
    refreshed_rows = rows_of(behind)
    loaded = run_loader(F1DB, behind, "--only")
    assert (loaded.returncode, loaded.stderr) == (0, "")
    fresh = built(F1DB, behind.with_name("fresh.db"))
    assert rows_of(behind) == rows_of(fresh) != refreshed_rows

"""racedata.loader.source_list, load: the list of sources, how commands change it, and what they
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
    refused,
    rows_of,
    run_loader,
    select,
    signals_kept,
    without,
)
from support.processes import following
from support.refreshes import F1DB, with_a_penalty

from racedata.database import store_path
from racedata.loader import load, source_list
from racedata.loader.load import bring_into_step
from racedata.loader.provide import provide
from racedata.loader.source_list import after_load, after_refresh
from racedata.loader.sources import DEFAULT_LIST
from racedata.loader.store import IN_MEMORY, Store, StoredSource

JOLPICA, TRACINGINSIGHTS, RELEASE, OPENF1 = DEFAULT_LIST


def in_step(database):
    """Brings a database into step with the list. Returns what that says."""
    return bring_into_step(loader_settings(database), lambda text: None, loads_unread=True)


OTHER, API = "/dumps/other.zip", "https://f1.example.org/ergast/f1"


# Sources, by the letters of a case: the list before, those of a command, the list after.
LETTERS = {"J": JOLPICA, "T": TRACINGINSIGHTS, "R": RELEASE, "O": OPENF1}
LETTERS |= {"D": OTHER, "A": API, "S": "sample"}
LOADS = ["JTRO D JDO", "JTRO DR JDRO", "JDO R JRO", "JO D JDO", "DJR DR DJR", "DJR RD JRD"]
REFRESHES = ["JTRO JR JTRO", "JTRO A AJTRO", "DO RA ADRO", "D OA ADO"]


def lists_of(case):
    return [[LETTERS[letter] for letter in letters] for letters in case.split(" ")]


@pytest.mark.parametrize("case", [*LOADS, " D D", "JTRO S JTRO"])
def test_a_load_puts_its_dumps_in_the_place_of_the_dumps_of_the_list(case):
    before, loaded, after = lists_of(case)
    assert after_load(before, loaded) == after


@pytest.mark.parametrize("case", REFRESHES)
def test_a_new_api_joins_ahead_of_the_others_and_any_other_source_behind_them(case):
    before, asked, after = lists_of(case)
    assert after_refresh(before, asked) == after


def test_dumps_of_the_list_are_loaded_until_each_was_read_whole(tmp_path, monkeypatch):
    database, dump = tmp_path / "x.db", without(SAMPLE, tmp_path / "dump", 2023, 18)

    def says(*sources):
        monkeypatch.setenv("RACEDATA_SOURCES", " ".join(map(str, sources)))
        return in_step(database)

    assert says(F1DB).endswith(f" from {F1DB}")
    assert says(F1DB) == ""
    assert says(dump, F1DB).endswith(f" from {dump} and {F1DB}")
    assert says(F1DB, dump).endswith(" from its store")  # both were read
    assert says(F1DB, dump) == ""
    database.unlink()
    assert says(dump, F1DB).endswith(" from its store")
    database.unlink()
    store_path(database).unlink()
    assert says(F1DB).endswith(f" from {F1DB}")


def test_dumps_that_another_command_has_loaded_in_the_meantime_are_not_loaded_again(
    tmp_path, monkeypatch
):
    database = tmp_path / "x.db"
    monkeypatch.setenv("RACEDATA_SOURCES", str(F1DB))
    monkeypatch.setattr(load, "is_behind", lambda path: built(F1DB, path) is None)
    assert in_step(database) == ""


def test_a_provisional_source_has_the_last_place_wherever_the_list_has_it():
    """Otherwise, its facts about drivers would replace all others."""
    dump = StoredSource("/dump", "/dump", None, "0", "2026-11-20T00:00:00Z", is_loaded=True)
    openf1 = dump._replace(name=OPENF1, address=OPENF1, is_loaded=False, is_provisional=True)
    with closing(Store(IN_MEMORY)) as store, store.transaction():
        store.put_source(openf1)
        store.put_source(dump)
        source_list.remember_list(store, [OPENF1, "/dump"])
        source_list.apply_list(store)
        assert [source.name for source in store.sources()] == ["/dump", OPENF1]


def test_a_load_without_a_source_reads_the_dumps_of_the_list(tmp_path, monkeypatch):
    database, dump = tmp_path / "x.db", without(SAMPLE, tmp_path / "dump", 2023, 18)

    def loaded(*words):
        run = racedata(*words, "--database", database)
        assert (run.returncode, run.stderr) == (0, "")
        return run.stdout.splitlines()[-1]

    loaded("load", dump, F1DB)
    assert loaded("load").endswith(f" from {dump} and {F1DB}")
    loaded("sources", "--remove", "f1db")
    assert loaded("load").endswith(f" from {dump}")
    monkeypatch.setenv("RACEDATA_SOURCES", f"{F1DB} openf1 {dump}")
    assert loaded("load").endswith(f" from {F1DB} and {dump}")
    assert loaded("load", dump).endswith(f" from {dump}")
    monkeypatch.delenv("RACEDATA_SOURCES")  # as in a shell
    assert loaded("load").endswith(f" from {F1DB} and {dump}")


@pytest.mark.parametrize(
    "words",
    [
        ["load", SAMPLE],
        ["load", F1DB, "--only"],
        ["refresh", "--from", API],
        ["refresh", "--from", API, "--follow"],
        ["sources", "--remove", "f1db"],
    ],
    ids=lambda words: " ".join(map(str, words[::2])),
)
def test_a_command_cannot_change_the_list_that_a_setting_has(database, monkeypatch, words):
    monkeypatch.setenv("RACEDATA_SOURCES", f"{F1DB} openf1")
    with refused(database):
        run = racedata(*words, "--database", database)
    assert run.returncode == 1
    assert "RACEDATA_SOURCES has the list of sources; change it there" in run.stderr


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


def test_a_copy_of_a_database_has_its_apis_in_their_order_and_keeps_them_if_it_is_built_again(
    api, behind, finished, tmp_path, monkeypatch
):
    """One has what counts of a race, and the other what counts of another one."""
    lacks_a_race = without(finished, tmp_path / "dump", 2023, 18)
    with served(answers_of(client(with_a_penalty(lacks_a_race, tmp_path, 9)))) as other:
        refreshed(behind, api.url)
        refreshed(behind, other.url, season=2023)
    for database in (behind, copied_alone(behind, tmp_path / "copy")):
        lines = racedata("sources", "--database", database).stdout.splitlines()
        assert [line.split(": ")[0] for line in lines[:2]] == [f"1. {other.url}", f"2. {api.url}"]
    monkeypatch.setenv("RACEDATA_SOURCES", "https://f1.example.org/racedata.db")
    origins = "SELECT raceId, kind, sourceId FROM origins"
    before = select(database, origins)
    assert racedata("build", "--database", database).returncode == 0
    assert select(database, origins) == before


def test_without_a_dump_in_the_list_those_that_were_read_count(tmp_path, monkeypatch):
    database = built(F1DB, tmp_path / "x.db", None)
    before = rows_of(database)
    monkeypatch.setenv("RACEDATA_SOURCES", f"{API} openf1")
    assert in_step(database) == ""
    assert racedata("build", "--corrections", "none", "--database", database).returncode == 0
    assert rows_of(database) == before


def test_the_dumps_of_the_list_replace_the_sample_with_which_the_service_has_begun(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(source_list, "DEFAULT_LIST", [JOLPICA, str(F1DB), OPENF1])
    database = tmp_path / "x.db"

    def listed():
        lines = racedata("sources", "--database", database).stdout.splitlines()
        return [line.split()[1].strip(":") for line in lines], lines[-1]

    with signals_kept():
        provide(str(database))
    names, last = listed()
    assert names == [JOLPICA, "f1db", OPENF1, "sample"]
    assert "; counts until the list is loaded: results of " in last
    assert in_step(database).endswith(f" from {F1DB}")
    assert select(database, "SELECT isSample FROM build") == [(0,)]
    assert in_step(database) == ""
    assert listed()[1].endswith("; not in the list, so it does not count")
    said = racedata("load", "sample", "--database", database).stdout
    assert "sample: does not count beside the dumps of the list; expected --only too\n" in said


def test_neither_the_database_nor_its_store_says_where_the_sample_is(tmp_path):
    """So the package may be moved."""
    database = tmp_path / "x.db"
    assert racedata("load", SAMPLE, "--database", database).returncode == 0
    for path in (database, store_path(database)):
        assert str(SAMPLE).encode() not in path.read_bytes()
    assert racedata("load", "sample", "--database", database).stdout.endswith(" from sample\n")


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

"""racedata.loader.store_commands: the commands that show what the store has, and build from it."""

import csv
import os
import subprocess
import sys

import pytest
from support import SAMPLE, spoiling
from support.apis import hurried, refreshed
from support.loads import (
    built,
    changed,
    csv_rows,
    edited,
    file_of_corrections,
    loader_settings,
    racedata,
    rows_of,
    select,
)
from support.refreshes import F1DB

from racedata.database import store_path
from racedata.loader.refresh import Refresh


def said(command, database, *arguments):
    """What a command prints."""
    ended = racedata(command, *arguments, "--database", database)
    return ended.returncode, ended.stdout.splitlines(), ended.stderr


def test_the_list_of_sources_says_when_each_was_read_and_what_counts_of_it(api, behind):
    refreshed(behind, api.url)
    status, lines, _ = said("sources", behind)
    assert status == 0
    names = [line.partition(":")[0] for line in lines]
    assert [name[:2] for name in names] == ["1.", "2.", "3.", "4."]
    assert f"1. {api.url}: read " in lines[0] and "counts: results of 1 race (2023)" in lines[0]
    assert lines[-1] == "4. openf1: never read"


def test_a_database_in_the_setting_is_the_list(database, monkeypatch):
    monkeypatch.setenv("RACEDATA_SOURCES", "http://127.0.0.1:1/x.db")
    status, lines, _ = said("sources", database)
    whole = "1. http://127.0.0.1:1/x.db: a database, which is copied as it is"
    assert (status, lines[0]) == (0, whole)
    assert lines[1].startswith("-  sample: read ") and "; counts: results of " in lines[1]
    assert len(lines) == 2


def test_a_store_of_another_version_is_named_before_the_list_that_the_database_gives(tmp_path):
    database = built(SAMPLE, tmp_path / "x.db")
    changed(store_path(database), "PRAGMA user_version = 2")
    status, lines, _ = said("sources", database)
    assert status == 0 and lines[0].startswith(f"{store_path(database)}: exists and is not a store")
    assert lines[1].startswith("1. ")


def test_a_source_that_is_removed_does_not_count_but_stays_stored(api, behind, complete):
    before = rows_of(behind)
    refreshed(behind, api.url)
    assert rows_of(behind) == rows_of(complete)
    (dump,) = select(behind, "SELECT name FROM sources WHERE isLoaded")[0]
    status, _, error = said("sources", behind, "--remove", dump)
    assert status == 1 and f"--remove {dump!r}: no dump would be left; load " in error
    assert error.count("\n") == 1 and rows_of(behind) == rows_of(complete)
    status, lines, _ = said("sources", behind, "--remove", api.url)
    assert (status, lines[-1].endswith(f"without {api.url}")) == (0, True)
    assert rows_of(behind) == before
    assert said("sources", behind)[1][-1].startswith(f"-  {api.url}: read ")
    refreshed(behind, api.url)  # joins again
    assert rows_of(behind) == rows_of(complete)


def test_a_source_that_is_removed_while_a_refresh_of_the_list_runs_does_not_join_it_again(
    api, behind
):
    refreshed(behind, api.url)
    listed = [api.url, "openf1"]
    refresh = Refresh(
        loader_settings(behind), listed, None, lambda text: None, hurried, is_named=False
    )
    assert said("sources", behind, "--remove", "openf1")[0] == 0
    first = refresh.first_season(lambda line: None)
    refresh.ask(refresh.sources[0], lambda line: None, first)
    assert not any("openf1" in line for line in said("sources", behind)[1])


def test_a_name_that_is_not_in_the_list_is_refused_with_the_names_in_it(database):
    status, _, error = said("sources", database, "--remove", "nobody")
    assert status == 1 and "'nobody': not in the list; expected one of https://" in error


def test_the_parts_of_a_race_are_csv_by_source_and_what_counts_comes_first(tmp_path):
    said_by_source = 'Finished, "first"'
    first = next(row for row in csv_rows(SAMPLE, "status") if row["status"] == "Finished")
    dump = edited(
        SAMPLE,
        tmp_path / "dump",
        status=lambda row: {**row, "status": said_by_source} if row == first else row,
    )
    database = built([dump, F1DB], tmp_path / "x.db")
    status, lines, _ = said("parts", database, "2023/18", "results")
    assert status == 0
    heads = [number for number, line in enumerate(lines) if ": 20 rows, " in line]
    assert lines[0].startswith(f"{dump}, ") and lines[0].endswith("20 rows, counts")
    assert lines[heads[1]].startswith("f1db, ") and lines[heads[1]].endswith(", does not count")
    rows = list(csv.DictReader(lines[1 : heads[1]]))
    assert len(rows) == 20 and rows[0]["statusId"] == said_by_source
    assert (rows[0]["resultId"], rows[0]["driverId"]) == ("123", "max_verstappen")


def damaged(store):
    content = store.read_bytes()
    store.write_bytes(content[:4096] + b"\xff" * 8192 + content[12288:])


STORES = {
    "none": lambda store: store.unlink(),
    "of another database": lambda store: built(SAMPLE, store.with_name("x.db")),
    "empty": spoiling.emptied,
    "text": spoiling.text,
    "with damaged pages": damaged,
    "of another version": lambda store: changed(store, "PRAGMA user_version = 2"),
}


@pytest.mark.parametrize("spoil", STORES.values(), ids=STORES)
def test_what_only_reads_writes_nothing_and_needs_no_store(tmp_path, spoil):
    database = built([SAMPLE, F1DB], tmp_path / "x.db")
    content = database.read_bytes()
    spoil(store_path(database))
    database.write_bytes(content)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    status, lines, error = said("parts", database, "2023/18", "results")
    assert (status, error) == (0, "") and lines[0].endswith("20 rows, counts")
    status, lines, error = said("sources", database)
    assert (status, error) == (0, "")
    assert any("f1db at " in line and ": read " in line for line in lines)
    status, lines, error = said("check", database, "--against", str(SAMPLE))
    assert (status, error) == (0, "") and lines[-1].startswith("0 differences of ")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_only_reads_needs_no_permission_to_write(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    database = built([SAMPLE, F1DB], folder / "x.db")
    for path in (*folder.iterdir(), folder):
        path.chmod(path.stat().st_mode & 0o555)
    command = [sys.executable, "-m", "racedata", "parts", "2023/18", "results"]
    if os.geteuid() == 0:  # root may write to any file
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    command += ["--database", database]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr, ended.stdout.count(" rows, ")) == (0, "", 2)


@pytest.mark.parametrize(
    ("race", "kind", "fault"),
    [
        ("2023", "results", "'2023': expected a season and a round, such as 2023/18"),
        ("2023/18", "result", "'result': expected one of results, fastest_laps, "),
        ("2023/99", "results", "2023/99: no source has results; expected a race"),
    ],
)
def test_a_wrong_race_or_kind_is_refused_with_what_is_expected(database, race, kind, fault):
    status, _, error = said("parts", database, race, kind)
    assert status == 1 and fault in error


def test_a_build_takes_corrections_back_and_names_those_that_do_not_fit(tmp_path):
    fits, obsolete = (
        f"results,2023/18/{line},a test"
        for line in ("max_verstappen,grid,6,16", "alonso,grid,17,16")
    )
    file = file_of_corrections(tmp_path, fits, obsolete)
    database = built(SAMPLE, tmp_path / "x.db", file)
    corrected = "SELECT count(*) FROM corrections"
    assert select(database, corrected) == [(1,)]
    assert said("build", database)[1] == [
        "obsolete correction, not applied: results 2023/18/alonso grid is 0, not 17",
        f"{database}: nothing new",
    ]
    said("build", database, "--corrections", "none")
    assert select(database, corrected) == [(0,)]

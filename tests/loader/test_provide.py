"""racedata.loader.provide: what the service begins with if the database is missing or older."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import SAMPLE, spoiling
from support.loads import (
    built,
    changed,
    file_of_corrections,
    rows_as_before,
    rows_of,
    select,
    signals_kept,
)
from support.refreshes import F1DB

from racedata.cli import needed_at
from racedata.database import store_path
from racedata.loader.build import build_database
from racedata.loader.provide import provide
from racedata.loader.store import STORE_VERSION


@pytest.mark.parametrize("is_store_older", [False, True])
def test_the_service_begins_with_an_older_database_built_again(old, program, is_store_older):
    if is_store_older:
        changed(store_path(old), f"PRAGMA user_version = {STORE_VERSION - 1}")
    code = f"""
from racedata.cli import needed_at
from racedata.loader.provide import provide
print(needed_at({str(old)!r}))
provide({str(old)!r})
print(needed_at({str(old)!r}))
"""
    before = rows_of(old)
    run = subprocess.run([sys.executable, "-c", code], cwd=program, capture_output=True, text=True)
    what = "the database was built by an earlier version: rebuilding it"
    assert (run.stdout, run.stderr) == (f"{what}\n\n", "")
    assert rows_as_before(old) == before


@pytest.mark.parametrize("spoil", [spoiling.missing, spoiling.emptied])
def test_a_database_that_is_missing_or_empty_is_built_from_its_store_or_from_the_sample(
    behind_file, tmp_path, sample_database, spoil
):
    database = tmp_path / "x.db"
    for has_store, expected in ((True, behind_file), (False, sample_database)):
        if has_store:
            shutil.copy(store_path(behind_file), store_path(database))
        database.touch()
        spoil(database)
        assert ("its store, or else" in needed_at(str(database))) is has_store
        with signals_kept():
            provide(str(database))
        assert needed_at(str(database)) == ""
        assert rows_of(database) == rows_of(expected)
        store_path(database).unlink(missing_ok=True)


def test_a_store_that_cannot_be_used_is_named_and_the_sample_is_built(
    tmp_path, behind_file, sample_database, capsys
):
    for spoil in (lambda store: changed(store, "PRAGMA user_version = 2"), spoiling.text):
        database = tmp_path / "x.db"
        store = shutil.copy(store_path(behind_file), store_path(database))
        spoil(store)
        with signals_kept():
            provide(str(database))
        said = "has nothing that can be used: building the database from the sample"
        assert capsys.readouterr().err == f"racedata serve: {store}: {said}\n"
        assert rows_of(database) == rows_of(sample_database)
        database.unlink()


def test_only_the_sources_in_the_setting_count_in_what_the_service_builds(tmp_path, monkeypatch):
    database = built([SAMPLE, F1DB], tmp_path / "x.db")
    database.unlink()
    monkeypatch.setenv("RACEDATA_SOURCES", str(F1DB))
    with signals_kept():
        provide(str(database))
    assert select(database, "SELECT name FROM sources") == [("f1db",)]


def test_a_load_that_has_ended_in_the_meantime_counts(database, complete, monkeypatch):
    def built_while_a_load_ends(*given, **named):
        report = build_database(*given, **named)
        Path(shutil.copy(complete, f"{database}.new")).rename(database)
        return report

    database.unlink()
    monkeypatch.setattr("racedata.loader.provide.build_database", built_while_a_load_ends)
    with signals_kept():
        provide(str(database))
    assert database.read_bytes() == complete.read_bytes()


def test_the_service_begins_with_the_corrections_that_the_settings_name(tmp_path, monkeypatch):
    file = file_of_corrections(tmp_path, "drivers,alonso,number,14,77,me")
    monkeypatch.setenv("CORRECTIONS", str(file))
    with signals_kept():
        provide(str(tmp_path / "x.db"))
    number = "SELECT number FROM drivers WHERE driverRef = 'alonso'"
    assert select(tmp_path / "x.db", number) == [(77,)]

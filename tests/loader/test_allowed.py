"""racedata.loader.allowed: with `--licence open`, no command takes a source that is not open."""

import os
import shutil

import pytest
from support import SAMPLE
from support.loads import built, edit, racedata, refused, rows_of, run_loader, select, without
from support.processes import run_racedata
from support.refreshes import F1DB, run_refresh

from racedata.licences import SOURCES, licence_of_file
from racedata.loader.sources import DEFAULT_LIST

EXPECTED = "expected CC BY or CC0, as RACEDATA_LICENCE=open says"
OF_SAMPLE = "its licence is CC BY-NC-SA 3.0 and 4.0"


@pytest.fixture
def open_database(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    return built(F1DB, folder / "racedata.db", None)


@pytest.fixture
def only_open(monkeypatch):
    monkeypatch.setenv("RACEDATA_LICENCE", "open")


def assert_refused(run, said):
    assert (run.returncode, run.stdout) == (1, "")
    assert f"{said}; {EXPECTED}" in run.stderr and run.stderr.count("\n") == 1


def licensed(source, text):
    (source / "licence.txt").write_text(text, encoding="utf-8")
    return source


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CC BY-SA 4.0\nand more", "its licence is CC BY-SA 4.0"),
        ("", "its licence is not stated"),
    ],
)
def test_a_dump_whose_licence_is_not_open_is_refused_by_load_and_refresh(
    source, open_database, only_open, text, said
):
    licensed(source, text)
    for run in (
        lambda: run_loader(source, open_database),
        lambda: run_refresh(open_database, source),
    ):
        with refused(open_database):
            ended = run()
        assert ended.returncode == 1 and ended.stderr.count("\n") == 1
        assert f"{source}: {said}" in ended.stderr and EXPECTED in ended.stderr


def test_an_open_dump_is_loaded_and_the_licence_of_the_whole_is_open(source, tmp_path, only_open):
    text = "CC BY 4.0; name x, f1db, and say that it was changed"
    run = run_loader(licensed(source, text), tmp_path / "x.db", F1DB)
    assert (run.returncode, run.stderr) == (0, "")
    licence = licence_of_file(select(tmp_path / "x.db", SOURCES))
    assert licence.startswith("CC BY 4.0; name ")
    assert f"licence of the whole: {licence}\n" in run.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("refresh --from openf1", "openf1: its licence is not stated by OpenF1"),
        (
            "refresh --follow --from https://f1.example.org/f1",
            "/f1: its licence is not stated by f1.example.org",
        ),
        ("refresh --from jolpica", "jolpica: its licence is CC BY-NC-SA 4.0"),
        ("refresh", f"{DEFAULT_LIST[0]}: its licence is CC BY-NC-SA 4.0"),
        ("load f1db jolpica", "jolpica: its licence is CC BY-NC-SA 4.0"),
        ("load", f"sample: {OF_SAMPLE}"),
    ],
)
def test_a_source_whose_licence_is_known_is_refused_before_any_request(
    open_database, monkeypatch, words, said
):
    monkeypatch.setenv("RACEDATA_LICENCE", "any")  # the option, which sets this variable, wins
    if words == "load":
        monkeypatch.setenv("RACEDATA_SOURCES", str(SAMPLE))
    with refused(open_database):
        run = racedata(*words.split(), "--licence", "open", "--database", open_database)
        assert_refused(run, said)


@pytest.mark.parametrize(
    ("sources", "said"),
    [(str(SAMPLE), f"sample: {OF_SAMPLE}; {EXPECTED}"), (f"{F1DB} openf1", "openf1: its licence")],
)
def test_the_service_does_not_start_with_a_source_that_is_not_open(tmp_path, sources, said):
    environ = {"RACEDATA_LICENCE": "open", "RACEDATA_SOURCES": sources}
    run = run_racedata("serve", "--follow", "--database", str(tmp_path / "x.db"), **environ)
    assert run.returncode == 3 and said in run.stderr
    assert [*tmp_path.iterdir()] == []


def test_a_source_out_of_reach_at_the_first_start_is_no_setting_that_is_wrong(tmp_path):
    """So systemd starts the service again."""
    url = "http://127.0.0.1:1/f1db-csv.zip"
    environ = {"RACEDATA_LICENCE": "open", "RACEDATA_SOURCES": url}
    run = run_racedata("serve", "--follow", "--database", str(tmp_path / "x.db"), **environ)
    assert (run.returncode, run.stdout) == (os.EX_TEMPFAIL, "")
    assert "http://127.0.0.1:1/" in run.stderr and "Connection refused" in run.stderr


def test_a_database_that_is_not_open_is_not_copied(
    open_database, sample_database, tmp_path, only_open
):
    other = shutil.copy(sample_database, tmp_path / "other.db")
    with refused(open_database):
        assert_refused(run_loader(other, open_database), f"{other}: sample: {OF_SAMPLE}")
    with refused(open_database):
        assert_refused(run_refresh(open_database, str(other)), f"{other}: sample: {OF_SAMPLE}")
    assert run_loader(open_database, tmp_path / "x.db").returncode == 0
    assert rows_of(tmp_path / "x.db") == rows_of(open_database)


def test_a_build_is_refused_while_the_list_has_a_source_that_is_not_open(
    source, tmp_path, monkeypatch
):
    database = built([F1DB, source], tmp_path / "x.db", None)
    monkeypatch.setenv("RACEDATA_LICENCE", "open")
    with refused(database):
        assert_refused(racedata("build", "--database", database), f"{source}: {OF_SAMPLE}")
    assert run_loader(F1DB, database, "--only").returncode == 0
    assert select(database, "SELECT name FROM sources") == [("f1db",)]


def test_changes_have_no_values_of_sources_that_are_not_open(tmp_path, monkeypatch):
    database, dump = tmp_path / "x.db", without(SAMPLE, tmp_path / "dump", 2023, 18)
    built(dump, database, None)
    built(F1DB, database, None)
    assert select(database, "SELECT count(*) > 0 FROM changes") == [(1,)]
    monkeypatch.setenv("RACEDATA_LICENCE", "open")
    assert run_loader(F1DB, database).returncode == 0
    assert select(database, "SELECT * FROM changes") == []


def test_changes_between_open_builds_are_noted(source, tmp_path, only_open):
    database = built(licensed(source, "CC BY 4.0"), tmp_path / "x.db", None)
    edit(source / "drivers.csv", ",Leclerc,", ",Leclercq,")
    built(source, database, None)
    assert select(database, "SELECT oldValue, value FROM changes") == [("Leclerc", "Leclercq")]

"""racedata.loader.same_bytes: builds of the same sources have the same bytes, wherever and whenever
they are made.
"""

import shutil
import subprocess
import sys
from collections import Counter

import pytest
from support import PACKAGE, SAMPLE
from support.answers import client
from support.loads import (
    built,
    changed,
    edit,
    is_in_step,
    racedata,
    refused,
    run_loader,
    select,
    signals_kept,
)
from support.processes import run_racedata
from support.refreshes import F1DB

from racedata.database import store_path
from racedata.formats import utc_now
from racedata.loader.provide import provide
from racedata.loader.rebuild import store_of
from racedata.loader.same_bytes import SAMPLE_TIME, build_time

BUILD = "SELECT builtAt, storeId, revision FROM build"


@pytest.fixture
def fixed_time(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


def loaded(database, *sources):
    """The bytes of a database that a process of its own builds, at a fixed time."""
    words = ["load", *map(str, sources), "--database", str(database)]
    run = run_racedata(*words, SOURCE_DATE_EPOCH="1700000000")
    assert (run.returncode, run.stderr) == (0, "")
    return database.read_bytes()


def test_the_sample_has_the_same_bytes_in_each_build(tmp_path):
    database = built(SAMPLE, tmp_path / "x.db")
    first = database.read_bytes()
    assert built(SAMPLE, database).read_bytes() == first
    assert built(SAMPLE, tmp_path / "y.db").read_bytes() == first
    with signals_kept():
        provide(str(tmp_path / "z.db"))
    assert (tmp_path / "z.db").read_bytes() == first
    assert racedata("build", "--database", database).stdout == f"{database}: nothing new\n"
    assert is_in_step(database)
    ((at, _, revision),) = select(database, BUILD)
    assert (at, revision) == (SAMPLE_TIME, 1)
    assert select(database, "SELECT readAt, count(*) FROM sources") == [(SAMPLE_TIME, 1)]


def test_the_sample_has_the_same_bytes_if_the_package_is_elsewhere(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "other" / "racedata")
    subprocess.run(
        [sys.executable, "-m", "racedata", "load", "--database", tmp_path / "x.db"],
        cwd=tmp_path / "other",
        check=True,
        capture_output=True,
    )
    here = built(SAMPLE, tmp_path / "y.db")
    assert (tmp_path / "x.db").read_bytes() == here.read_bytes()
    answers = [client(path).get("/ergast/f1/2023.json") for path in (tmp_path / "x.db", here)]
    tags = {answer.headers["ETag"] for answer in answers}
    assert len(tags) == 1


def test_a_store_gets_an_id_of_its_own_when_it_gets_more_than_the_sample(tmp_path):
    ids = set()
    for name in ("x.db", "y.db"):
        database = built(SAMPLE, tmp_path / name, None)
        ((_, of_sample, _),) = select(database, BUILD)
        built(F1DB, database, None)
        ((_, id, _),) = select(database, BUILD)
        ids |= {of_sample, id}
    assert len(ids) == 3


def test_the_sample_has_the_same_bytes_even_if_it_replaces_an_earlier_one(tmp_path):
    database, fresh = built(SAMPLE, tmp_path / "x.db"), built(SAMPLE, tmp_path / "y.db")
    changed(database, "UPDATE drivers SET surname = 'Leclercq' WHERE driverRef = 'leclerc'")
    store_path(database).unlink()
    assert built(SAMPLE, database).read_bytes() == fresh.read_bytes()


def test_with_a_fixed_time_two_builds_of_the_same_sources_have_the_same_bytes(
    source, tmp_path, fixed_time
):
    one, two = (loaded(tmp_path / name, source, F1DB) for name in ("x.db", "y.db"))
    assert one == two
    ((at, id, revision),) = select(tmp_path / "x.db", BUILD)
    assert (at, revision) == ("2023-11-14T22:13:20Z", 1)
    assert select(tmp_path / "x.db", "SELECT DISTINCT readAt FROM sources") == [(at,)]
    # other sources are another store, even at the same time
    assert select(built(F1DB, tmp_path / "z.db"), BUILD)[0][1] != id


def test_with_a_fixed_time_a_build_that_replaces_another_has_the_next_revision(
    source, tmp_path, fixed_time
):
    before = built(source, tmp_path / "before.db")
    ((_, id, _),) = select(before, BUILD)
    edit(source / "drivers.csv", ",Leclerc,", ",Leclercq,")
    one, two = (shutil.copy(before, tmp_path / name) for name in ("x.db", "y.db"))
    assert loaded(one, source) == loaded(two, source)
    assert select(tmp_path / "x.db", "SELECT storeId, revision FROM build") == [(id, 2)]
    what = "SELECT revision, key, columnName, oldValue, value FROM changes"
    assert select(tmp_path / "x.db", what) == [(2, "leclerc", "surname", "Leclerc", "Leclercq")]


def test_with_a_fixed_time_a_build_without_news_takes_nothing_from_the_store(
    source, tmp_path, fixed_time
):
    database = built([source, F1DB], tmp_path / "x.db")
    before, parts = database.read_bytes(), parts_of(database)
    for corrections in ([], [], ["--corrections", "none"]):
        racedata("build", *corrections, "--database", database)
        assert is_in_step(database)
        assert parts_of(database) == parts
        assert (database.read_bytes() == before) is not bool(corrections)


def parts_of(database):
    """How many parts the store has from each source."""
    with store_of(database) as store:
        return Counter(part.source for part in store.parts())


def test_without_a_fixed_time_it_is_now(monkeypatch):
    before = utc_now()
    for text in (None, ""):
        if text is not None:
            monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
        assert before <= build_time() <= utc_now()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert build_time() == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize("text", ["-1", "999999999999"])
def test_a_wrong_fixed_time_is_refused(text, source, database, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    with refused(database):
        run = run_loader(source, database)
        assert run.returncode == 1
        assert f"SOURCE_DATE_EPOCH={text!r}: expected seconds since 1970" in run.stderr

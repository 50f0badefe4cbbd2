"""racedata.database: files it refuses, and that every question is answered from an index."""

import os
import random
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from conftest import opened

from racedata.database import Database, DatabaseError


@pytest.fixture
def copy(sample_database, tmp_path):
    """A copy of the sample database, to spoil."""
    path = tmp_path / "racedata.db"
    path.write_bytes(sample_database.read_bytes())
    return path


def missing(path):
    path.unlink()


def folder(path):
    path.unlink()
    path.mkdir()


def pipe(path):
    path.unlink()
    os.mkfifo(path)  # to open it waits for a writer


def device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def loop(path):
    path.unlink()
    path.symlink_to(path)


def unreadable(path):
    if os.geteuid():
        path.chmod(0)
    else:  # root may read any file; but not this one, at its beginning
        path.unlink()
        path.symlink_to("/proc/self/mem")


def empty(path):
    path.write_bytes(b"")


def text(path):
    path.write_text("raceId,year,round\n")


def foreign(path):
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE races (raceId)")


def version(number):
    def change(path):
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"PRAGMA user_version = {number}")

    return change


def truncated(path):
    path.write_bytes(path.read_bytes()[:-5000])


def header_only(path):
    path.write_bytes(path.read_bytes()[:100])


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (missing, "is missing"),
        (folder, "is not a file"),
        (pipe, "is not a file"),
        (device, "is not a file"),
        (loop, "cannot be read (Too many levels of symbolic links)"),
        (unreadable, "cannot be read ("),
        (empty, "is not an SQLite database"),
        (text, "is not an SQLite database"),
        (foreign, "is an SQLite database, but not one of racedata"),
        (version(0), "has schema version 0, older than this service's, 1"),
        (version(9), "has schema version 9, newer than this service's, 1"),
        (truncated, "is damaged"),
        (header_only, "is damaged"),
        (flipped, "is damaged"),
    ],
)
def test_a_file_that_cannot_be_served_is_refused_with_its_fault_and_what_to_run(copy, spoil, fault):
    spoil(copy)
    with pytest.raises(DatabaseError) as refused:
        Database(copy)
    said = str(refused.value)
    assert said.startswith(f"{copy} {fault}")
    assert said.endswith(f"run: make load-data SOURCE=… DATABASE={copy}")
    assert "\n" not in said


def test_a_bit_that_is_not_as_it_was_built_is_found_wherever_it_is(copy):
    good = copy.read_bytes()
    for _ in range(100):
        content = bytearray(good)
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        copy.write_bytes(content)
        with pytest.raises(DatabaseError):
            Database(copy)
    copy.write_bytes(good)
    Database(copy)


def test_opening_does_not_make_a_file(tmp_path):
    with pytest.raises(DatabaseError):
        Database(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_path_may_have_any_characters(sample_database, tmp_path):
    path = tmp_path / "50% of ?mode=rwc #1 é.db"
    path.write_bytes(sample_database.read_bytes())
    assert opened(path).races_total(2023) == 22


def test_nothing_can_be_written(sample_database):
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        opened(sample_database)._open().execute("DELETE FROM races")


def test_threads_share_the_file_and_each_gets_its_own_answer(sample_database):
    database = opened(sample_database)

    def races(season):
        return [row["raceId"] for row in database.races(season, 100, 0)]

    seasons = [1957, 2005, 2021, 2023] * 500
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(races, seasons)) == [races(season) for season in seasons]


def test_a_closed_database_is_opened_again_when_it_is_asked(sample_database):
    database = opened(sample_database)
    database.close()
    assert database.races_total(2023) == 22


def test_an_open_database_is_answered_from_whatever_becomes_of_its_path(copy):
    database = opened(copy)
    database.open()
    copy.unlink()
    assert database.races_total(2023) == 22


def test_a_link_that_is_switched_leads_no_database_to_another_file(sample_database, other_database, tmp_path):
    link = tmp_path / "racedata.db"
    link.symlink_to(sample_database)
    database = opened(link)
    link.unlink()
    link.symlink_to(other_database)
    assert "Spielberg" in {row["location"] for row in database.circuits()}


def test_checking_a_file_opens_it_for_nobody(sample_database):
    code = "import os, sys, racedata.database as d; d.Database(sys.argv[1]); print(*os.listdir('/proc/self/fd'))"
    run = subprocess.run([sys.executable, "-c", code, sample_database], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["0", "1", "2", "3"]  # 3 is listdir's own


QUESTIONS = {
    "build": (),
    "row_counts": (),
    "circuits": (),
    "drivers": (),
    "constructors": (),
    "statuses": (),
    "races_total": (2023,),
    "races": (2023, 100, 0),
    "race": (2023, 18),
    "results_total": (67,),
    "results": (67, 100, 0),
    "sprint_results_total": (67,),
    "sprint_results": (67, 100, 0),
    "qualifying_total": (67,),
    "qualifying": (67, 100, 0),
    "lap_times_total": (67,),
    "lap_times": (67, 100, 900),
}


AT_START = {"seasons", "fullest_race"}  # once, for the page; they go through all races


def test_every_question_is_listed_here():
    public = {name for name in vars(Database) if not name.startswith("_")}
    assert set(QUESTIONS) | AT_START == public - {"open", "close", "confirmed", "error"}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_from_an_index(sample_database, question):
    database = opened(sample_database)
    asked = []
    database._open().set_trace_callback(asked.append)
    assert getattr(database, question)(*QUESTIONS[question])
    database._open().set_trace_callback(None)
    # SQLite reports what it asks itself behind a statement as a comment.
    statements = [sql for sql in asked if not sql.startswith("--")]
    steps = [row["detail"] for sql in statements for row in database._open().execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert steps
    # Small tables, of which these questions want every row: four of these are asked once too, at start.
    whole = ("build", "row_counts", "circuits", "drivers", "constructors", "status")
    allowed = {*(f"SCAN {table}" for table in whole), "SCAN pragma_user_version VIRTUAL TABLE INDEX 0:"}
    indexed = ("SEARCH ", "SCALAR SUBQUERY", "CORRELATED SCALAR SUBQUERY")
    assert [step for step in steps if step not in allowed and not step.startswith(indexed)] == []


def test_a_page_of_timings_costs_the_same_wherever_it_begins(sample_database):
    database = opened(sample_database)

    def steps(offset):
        """How many times SQLite's virtual machine asked to go on, a tenth of its instructions."""
        count = 0

        def instruction():
            nonlocal count
            count += 1

        database._open().set_progress_handler(instruction, 10)
        assert len(database.lap_times(67, 30, offset)) == 30
        database._open().set_progress_handler(None, 0)
        return count

    steps(0)  # makes SQLite read the schema
    first = steps(0)
    assert first > 10
    assert [abs(steps(offset) - first) <= 1 for offset in (500, 980)] == [True, True]


def test_the_fullest_race_is_the_last_that_has_most(sample_database):
    assert tuple(opened(sample_database).fullest_race()) == (2023, 18)

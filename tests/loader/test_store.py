"""racedata.loader.store: what it keeps, what stays when a source says something else, and what
becomes of a file that is damaged or used twice at once.
"""

import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stores import READ_AT, a_race, a_source, results, stored_calendar

from racedata.database import store_path
from racedata.loader.errors import LoadError
from racedata.loader.parts import Part
from racedata.loader.store import DamagedStore, Store, store_to_read

LATER = "2023-12-02T06:00:00Z"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "racedata.sources.db"


@pytest.fixture
def store(path):
    with closing(Store(path)) as store:
        yield store


def put(store, part, read_at=READ_AT, fetched_at=None, source="dump", race="Grand Prix 1"):
    """Puts a part that a new reading of a source gave."""
    store.put_source(a_source(source, read_at=read_at))
    store.put_parts(source, read_at, [(race, part, fetched_at)])


# Parts.


values = st.one_of(
    st.none(), st.integers(-(2**53), 2**53), st.text(st.characters(exclude_categories=["Cs"]))
)


@given(st.lists(st.tuples(st.text("abc", min_size=1), values, values), max_size=30))
def test_a_part_is_given_back_as_it_was_put(rows):
    with closing(Store(":memory:")) as store:
        columns = ("driverId", "stop", "time")
        put(store, Part(2023, 1, "pit_stops", columns, rows), fetched_at=LATER)
        (part,) = store.parts()
        entrants = len({row[0] for row in rows})
        facts = ("dump", 2023, "Grand Prix 1", "pit_stops", LATER, LATER, 1, entrants)
        assert part == facts
        assert store.rows(part) == ([*columns], [list(row) for row in rows])


def test_an_equal_part_is_only_confirmed(store):
    put(store, results(1, "clark"), READ_AT, fetched_at=READ_AT)
    put(store, results(1, "clark"), LATER, fetched_at=LATER)
    (part,) = store.parts()
    assert (part.fetched_at, part.confirmed_at, part.reading) == (READ_AT, LATER, 2)


@pytest.mark.parametrize(
    "new",
    [
        results(1, "clark"),
        results(1, "clark", "hill", "surtees"),
        results(1, "hill", "clark"),
        results(1, "clark", "hill", constructor="brm"),
        results(1, "clark", "hill")._replace(columns=("driverId", "constructorId", *"abcd")),
    ],
    ids=["fewer rows", "more rows", "another order", "another value", "other columns"],
)
def test_another_part_replaces_it_as_a_whole(store, new):
    put(store, results(1, "clark", "hill"), READ_AT, fetched_at=READ_AT)
    put(store, new, LATER, fetched_at=LATER)
    (part,) = store.parts()
    assert (part.fetched_at, part.confirmed_at, part.reading) == (LATER, LATER, 2)
    assert store.rows(part) == ([*new.columns], new.rows)
    assert part.entrants == new.entrants


# Lists.


def test_a_list_keeps_its_order_and_what_is_not_said_again(store):
    def row(name, **facts):
        return name, {"driverRef": name, **facts}

    store.put_list("dump", "drivers", [row("hill"), row("clark")])
    store.put_list("dump", "drivers", [row("hill")])
    store.put_list("dump", "drivers", [row("hill", code="HIL"), row("amon")])
    assert store.list_rows("dump", "drivers") == [
        {"driverRef": "hill", "code": "HIL"},
        {"driverRef": "clark"},
        {"driverRef": "amon"},
    ]
    assert store.list_rows("api", "drivers") == []


# The file.


def test_a_transaction_that_raises_changes_nothing(path, store):
    """Others see a transaction only when it has ended."""
    put(store, results(1, "clark"))
    with closing(sqlite3.connect(path)) as reader:
        before = [*reader.iterdump()]
        with pytest.raises(KeyboardInterrupt), store.transaction():
            put(store, results(1, "hill"), LATER)
            store.order(["dump"])
            store.put_calendar(stored_calendar("dump", a_race(1)))
            store.remember("dump", {"refreshedAt": LATER})
            store.state = "other", 7
            assert len(store.calendars()) == 1
            assert [*reader.iterdump()] == before
            raise KeyboardInterrupt
        assert [*reader.iterdump()] == before
        with store.transaction():  # the next one is possible
            put(store, results(1, "hill"), LATER)
        assert [*reader.iterdump()] != before


def test_a_store_that_forgets_all_is_another_store_and_remembers_what_checks_need(store):
    put(store, results(1, "clark"))
    store.put_calendar(stored_calendar("dump", a_race(1)))
    store.put_statuses([{"statusId": 1, "status": "Finished"}])
    store.remember("dump", {"etag": "x"})
    before = store.state
    store.clear()
    assert store.state[0] != before[0]
    assert ([*store.parts()], store.calendars(), store.known_sources()) == ([], [], [])
    assert store.statuses() == {} and store.recalled("dump") == {"etag": "x"}


CREATE = """
import sys
from pathlib import Path
from racedata.loader.store import Store
sys.stdin.read()
print(Store(Path(sys.argv[1])).state[0])
"""


def test_programs_that_create_a_store_at_once_have_the_same_one(path):
    command = [sys.executable, "-W", "ignore", "-c", CREATE, path]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with ExitStack() as stack:
        programs = [stack.enter_context(subprocess.Popen(command, **options)) for _ in range(4)]
        for program in programs:  # each one waits until its stdin is closed
            program.stdin.close()
        said = [program.stdout.read() for program in programs]
    assert {program.returncode for program in programs} == {0}
    with closing(Store(path)) as store:
        assert said == [f"{store.state[0]}\n"] * 4


def test_a_store_is_as_before_a_commit_in_which_a_program_was_killed(tmp_path):
    path = store_path(tmp_path / "racedata.db")
    with closing(Store(path)) as store:
        put(store, results(1, "clark"))
    killed = """import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 1")
db.execute("BEGIN")
db.execute("UPDATE sources SET name = 'other'")
db.execute("DELETE FROM parts")
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", killed, path], check=True)
    assert path.with_name(f"{path.name}-journal").read_bytes()[:1] != b"\0"
    with closing(store_to_read(tmp_path / "racedata.db")) as store:
        assert [part.source for part in store.parts()] == ["dump"]


@pytest.mark.parametrize(
    "content",
    [b"SQLite format 3\0" + b"\xff" * 5000, b"not a database" * 100],
    ids=["damaged", "text"],
)
def test_a_file_that_is_no_database_is_no_store_and_stays_as_it_is(path, content):
    path.write_bytes(content)
    with pytest.raises(DamagedStore, match="sources"):
        Store(path)
    assert path.read_bytes() == content


def test_a_store_with_a_damaged_page_is_no_store(path, store):
    """A store that is opened again has the same state."""
    put(store, results(1, "clark"))
    id, revision = store.state
    assert len(id) == 16 and revision == 0
    store.state = id, 5
    content = path.read_bytes()
    pages = range(4096, len(content), 4096)
    for start in pages:
        path.write_bytes(content[:start] + b"\xff" * 4096 + content[start + 4096 :])
        with pytest.raises(DamagedStore):
            Store(path)
    path.write_bytes(content)
    with closing(Store(path)) as again:
        again.create()  # another program has just created it
        assert (again.state, len([*again.parts()])) == ((id, 5), 1)
        assert again.db.execute("SELECT count(*) FROM store").fetchone() == (1,)


@pytest.mark.parametrize(
    "statements",
    [
        "PRAGMA user_version = 2",
        "PRAGMA user_version = 99",
        "PRAGMA application_id = 7",
        "PRAGMA application_id = 0; PRAGMA user_version = 0",
    ],
)
def test_a_store_of_another_version_or_program_is_refused_and_stays_as_it_is(
    path, store, statements
):
    store.db.executescript(statements)
    before = path.read_bytes()
    with pytest.raises(LoadError, match="exists and is not a store that this version of racedata"):
        Store(path)
    assert path.read_bytes() == before

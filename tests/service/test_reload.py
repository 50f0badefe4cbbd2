"""racedata.service.reload: a new database is served soon and wholly; a bad file changes nothing."""

import hashlib
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import webtest
from support import ROOT, spoiling
from support.processes import limited, open_files

from racedata.database import CHECKSUM_BYTES, SCHEMA, file_state
from racedata.service.app import create_app
from racedata.service.reload import Reloading, ReloadingApp
from racedata.settings import Settings

RESULTS = "/ergast/f1/2023/9/results.json"


@pytest.fixture(autouse=True)
def log_level(caplog):
    caplog.set_level("INFO", "racedata")  # as server.py sets it


@pytest.fixture
def path(sample_database, tmp_path):
    """The path of a database that a test may replace."""
    return shutil.copy(sample_database, tmp_path / "racedata.db")


def service_over(path):
    return webtest.TestApp(ReloadingApp(str(path), lambda data: create_app(Settings(), data)))


@pytest.fixture
def service(path):
    """A service over `path`. It checks the file only if a test calls `later`."""
    return service_over(path)


def replace(path, other):
    """Puts a copy of `other` in the place of `path` at once, as the loader does."""
    os.replace(shutil.copy(other, path.with_name("new")), path)


def with_checksum(path):
    """Makes the file at `path` one that is as it was built."""
    content = path.read_bytes()
    path.write_bytes(content + hashlib.sha256(content).digest())


def later(service):
    service.app.check()  # as its thread does every half a second


def town(service):
    """A fact that differs between the two databases, and the ETag."""
    answer = service.get("/ergast/f1/2023/9.json", status=200)
    return answer.json["MRData"]["RaceTable"]["Races"][0]["Circuit"]["Location"][
        "locality"
    ], answer.headers["ETag"]


def rejected(service):
    return service.get("/healthz", status=200).json.get("refused")


def test_a_new_file_is_served_after_the_next_check_with_another_etag(
    service, path, other_database, caplog
):
    before = town(service)
    replace(path, other_database)
    assert town(service) == before
    later(service)
    after = town(service)
    assert (before[0], after[0]) == ("Spielberg", "Zeltweg")
    assert after[1] != before[1]
    assert [record.message for record in caplog.records] == [
        f"{path} has changed; now serving the new data"
    ]
    assert [name for name in open_files("self") if str(path) in name] == [str(path)]


def test_a_copy_of_the_same_database_is_not_a_change(service, path, sample_database, caplog):
    before, app = town(service), service.app.made
    replace(path, sample_database)
    later(service)
    assert town(service) == before
    assert service.app.made is app and caplog.records == []


def without_tables(path):
    """Puts a file without some tables there, whose checksum is right."""
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(SCHEMA + "DROP TABLE lap_times; DROP TABLE status")
    with_checksum(path)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (spoiling.missing, "is missing"),
        (without_tables, "has unexpected content"),
        (spoiling.folder, "is not a regular file"),
        (spoiling.fifo, "is not a regular file"),
        (spoiling.text, "is not an SQLite database"),
        (spoiling.zeros, "is not an SQLite database"),
        (spoiling.truncated, "is damaged"),
        (spoiling.grown, "is damaged"),
    ],
)
def test_a_file_that_cannot_be_served_is_rejected_once_and_the_old_data_is_served_on(
    service, path, other_database, caplog, spoil, fault
):
    before = town(service)
    spoil(path)
    for number in range(5):
        later(service)
        assert town(service) == before
        service.get(f"{RESULTS}?offset={number}", status=200)  # not cached
    assert service.app.state == file_state(path)  # so it is not read again
    assert rejected(service).startswith(f"The database file {fault}")
    assert str(path) not in rejected(service)
    assert len(caplog.records) == 1
    assert caplog.records[0].message.startswith(f"{path} {fault}")
    assert caplog.records[0].message.endswith("; the last good data is still served")
    if path.is_dir():
        path.rmdir()
    replace(path, other_database)
    later(service)
    assert town(service)[0] == "Zeltweg"
    assert rejected(service) is None


@pytest.fixture
def large_database(sample_database, tmp_path):
    """The path of a database like the sample's, of 20 MB more."""
    path = tmp_path / "large.db"
    path.write_bytes(sample_database.read_bytes()[:-CHECKSUM_BYTES])
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE padding AS SELECT zeroblob(20000000)")
        db.commit()
    with_checksum(path)
    return path


def data_limit(megabytes):
    """The limit of data that leaves so many megabytes to this process."""
    used = re.search(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]
    return int(used) * 1024 + megabytes * 1_000_000


# Nothing can be opened, or reading the 20 MB of the file fails, or copying them into SQLite.
@pytest.mark.parametrize(
    ("kind", "limit", "said"),
    [
        (resource.RLIMIT_NOFILE, lambda: 3, "cannot be read (Too many open files)"),
        (resource.RLIMIT_DATA, lambda: data_limit(10), "needs more memory"),
        (resource.RLIMIT_DATA, lambda: data_limit(30), "needs more memory"),
    ],
)
def test_a_file_that_cannot_be_read_for_a_moment_is_served_when_it_can(
    service, path, large_database, caplog, kind, limit, said
):
    before = town(service)
    os.replace(large_database, path)
    with limited(kind, limit()):
        for _ in range(3):
            later(service)
        assert town(service) == before
    assert len(caplog.records) == 1 and said in caplog.text
    later(service)
    assert town(service)[1] != before[1]


TOUCHED = """
import os, sys, threading
from concurrent.futures import ThreadPoolExecutor
from support.processes import own_memory
from racedata.service.app import create_app
from racedata.service.reload import ReloadingApp
from racedata.service.process_memory import return_large_blocks
from racedata.settings import Settings

return_large_blocks()
path, together = sys.argv[1], threading.Barrier(4)
app = ReloadingApp(path, lambda data: create_app(Settings(), data))

def touch(number):
    together.wait()  # each on a thread of its own
    with one_by_one:
        os.utime(path, (number, number))
        app.check()

one_by_one = threading.Lock()
before = own_memory("self")
with ThreadPoolExecutor(4) as pool:
    list(pool.map(touch, range(4)))
    print(own_memory("self") - before)
"""


def test_reading_the_same_database_again_takes_no_memory_whatever_thread_does_it(large_database):
    environ = {"PYTHONPATH": f"{ROOT}:{ROOT}/tests"}
    command = [sys.executable, "-c", TOUCHED, large_database]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 10  # megabytes; the file has 20


def test_a_file_that_is_replaced_at_the_start_is_served_after_the_next_check(path, other_database):
    reloading = Reloading(str(path), lambda data: replace(path, other_database) or data)
    before = reloading.data
    reloading.check()
    assert reloading.data is not before

"""The whole service while things happen to its database file: the old data or a 503, and then 200 again by itself."""

import os
import random
import shutil
import subprocess

import pytest
from conftest import bodies
from service import GUNICORN, OFF, ROOT, open_files, service, until
from test_database import device, folder, missing, pipe
from traffic import Client, run

PATHS = ["/ergast/f1/2023/9.json", *(f"/ergast/f1/2023/9/results.json?limit={limit}" for limit in range(1, 40))]


def replaced_by_a_file_without_end(path):
    path.unlink()
    with open(path, "wb") as file:
        file.truncate(1 << 40)


def cut_off(path):
    os.truncate(path, random.randrange(path.stat().st_size))


def emptied(path):
    os.truncate(path, 0)


def overwritten(path):
    path.write_bytes(random.randbytes(path.stat().st_size))


def bits_flipped(path):
    with open(path, "r+b") as file:
        for _ in range(100):
            file.seek(random.randrange(path.stat().st_size))
            file.write(random.randbytes(1))


def grown_to_no_end(path):
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    os.truncate(path, 1 << 40)


def moved_away_and_written_over(path):
    away = path.rename(path.with_name("away.db"))
    away.write_bytes(random.randbytes(away.stat().st_size))


FAULTS = [
    missing,
    folder,
    pipe,
    device,
    replaced_by_a_file_without_end,
    grown_to_no_end,
    cut_off,
    emptied,
    overwritten,
    bits_flipped,
    moved_away_and_written_over,
]


def remove(path):
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("fault", FAULTS)
def test_it_does_not_start_over_such_a_file_and_says_why_in_one_line(sample_database, tmp_path, fault):
    path = shutil.copy(sample_database, tmp_path / "racedata.db")
    fault(path)
    environ = {"PATH": os.environ["PATH"], "RACEDATA_DATABASE": str(path)}
    done = subprocess.run(GUNICORN, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"racedata: {path} ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("fault", [missing, folder])
def test_a_service_that_nobody_has_asked_yet_has_the_old_data_too(sample_database, tmp_path, fault):
    path = shutil.copy(sample_database, tmp_path / "racedata.db")
    with service(path, tmp_path / "log", WEB_CONCURRENCY="2", **OFF) as running:
        until(lambda: [str(path) in open_files(worker) for worker in running.workers()] == [True, True])
        fault(path)
        clients = [Client(each, 0.5) for each in [*PATHS[:16], "/healthz"]]
        run(running.address, *clients)
    for each in clients:
        assert set(each.statuses) == {200}
    assert all(b'"refused":"What is at the database\'s path now is ' in body for body in clients[-1].bodies)
    assert (tmp_path / "log").read_text().count("what was served before still is") == 2  # a line to each worker


def test_a_running_service_gives_the_old_data_or_503_and_comes_back_by_itself(
    sample_database, other_database, tmp_path
):
    expected = [bodies(database, PATHS) for database in (sample_database, other_database)]
    path = shutil.copy(sample_database, tmp_path / "racedata.db")
    log = tmp_path / "log"

    def ask(seconds):
        clients = [Client(each, seconds) for each in random.sample(PATHS, 16)]
        run(running.address, *clients)
        return clients

    def all_are_from(number):
        return all(each.bodies == {expected[number][each.path]} for each in ask(0.05))

    with service(path, log, WEB_CONCURRENCY="2", RACEDATA_CACHE_SIZE="0", **OFF) as running:
        until(lambda: len(running.workers()) == 2)
        workers = running.workers()
        for turn, fault in enumerate(FAULTS, 1):
            fault(path)
            for each in ask(0.6):
                assert set(each.statuses) <= {200, 503}
                assert each.broken == 0
                others = each.bodies - {known[each.path] for known in expected}
                assert all(b"The database cannot be read at the moment." in body for body in others)
            remove(path)
            os.replace(shutil.copy([sample_database, other_database][turn % 2], tmp_path / "new.db"), path)
            until(lambda: all_are_from(turn % 2))
        assert running.workers() == workers
    assert "Traceback" not in log.read_text()

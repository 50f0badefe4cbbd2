"""racedata.service.reload, racedata.service.snapshot: the whole service while its database file is
damaged, deleted or replaced. Clients always get good data.
"""

import os
import random
import shutil
import signal

import pytest
from support import spoiling
from support.answers import bodies
from support.processes import OFF, service, until
from support.traffic import Client, run

PATHS = [
    "/ergast/f1/2023/9.json",
    *(f"/ergast/f1/2023/9/results.json?limit={limit}" for limit in range(1, 40)),
]
FAULTS = [
    spoiling.missing,
    spoiling.folder,
    spoiling.fifo,
    spoiling.device,
    spoiling.endless,
    spoiling.grown,
    spoiling.cut_off,
    spoiling.emptied,
    spoiling.overwritten,
    spoiling.bytes_changed,
    spoiling.moved_away_and_overwritten,
]


def remove(path):
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def healthz(running):
    client = Client("/healthz", requests=1)
    run(running.address, client)
    return client.bodies.pop()


@pytest.mark.parametrize("fault", [spoiling.missing, spoiling.overwritten])
def test_a_worker_that_starts_after_a_bad_file_came_has_the_data_of_the_others(
    sample_database, other_database, tmp_path, fault
):
    """Also if the database has changed since the service started: the parent process follows with
    each new worker.
    """
    path = shutil.copy(sample_database, tmp_path / "racedata.db")
    expected = bodies(other_database, PATHS)

    def served():
        clients = [Client(each, requests=4) for each in PATHS[:16]]
        run(running.address, *clients)
        return clients

    with service(path, tmp_path / "log", WEB_CONCURRENCY="2", **OFF) as running:
        until(lambda: len(running.workers()) == 2)
        os.replace(shutil.copy(other_database, tmp_path / "new.db"), path)
        until(lambda: all(each.bodies == {expected[each.path]} for each in served()))
        first, second = running.workers()
        os.kill(first, signal.SIGKILL)  # the next worker starts from the new data
        until(lambda: len({*running.workers()} - {first}) == 2)
        fault(path)
        os.kill(second, signal.SIGKILL)  # the next worker finds no good file
        until(lambda: len({*running.workers()} - {second}) == 2)
        clients = [client for _ in range(10) for client in served()]
    for each in clients:
        assert set(each.statuses) == {200}
        assert each.bodies == {expected[each.path]}


@pytest.mark.long
def test_whatever_happens_to_the_file_clients_get_good_data_and_the_next_good_file_is_served(
    sample_database, other_database, tmp_path
):
    databases = [sample_database, other_database]
    expected = [bodies(database, PATHS) for database in databases]
    path = shutil.copy(sample_database, tmp_path / "racedata.db")
    log = tmp_path / "log"

    def served(requests, pause=0):
        clients = [
            Client(each, requests=requests, pause=pause) for each in random.sample(PATHS, 16)
        ]
        run(running.address, *clients)
        return clients

    def all_are_from(number):
        return all(each.bodies == {expected[number][each.path]} for each in served(4))

    with service(path, log, WEB_CONCURRENCY="2", RACEDATA_CACHE_SIZE="0", **OFF) as running:
        until(lambda: len(running.workers()) == 2)
        workers = running.workers()
        for turn, fault in enumerate(FAULTS):
            before, after = turn % 2, (turn + 1) % 2
            fault(path)
            for each in served(20, pause=0.03):
                assert set(each.statuses) == {200}
                assert each.broken == 0
                assert each.bodies == {expected[before][each.path]}
            remove(path)
            os.replace(shutil.copy(databases[after], tmp_path / "new.db"), path)
            # Before the next fault, each worker must have it, also one that accepts few
            # connections.
            until(
                lambda seen=turn + 1: log.read_text().count("now serving the new data") == 2 * seen
            )
            assert all_are_from(after)
        assert running.workers() == workers
    assert "Traceback" not in log.read_text()

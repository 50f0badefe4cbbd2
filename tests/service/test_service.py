"""The whole service under real traffic: rate limits over several workers, workers that end, new
databases.
"""

import http.client
import itertools
import os
import random
import shutil
import signal
import socket
from pathlib import Path

import pytest
from support.answers import bodies
from support.hostile import GOOD_KEEP_ALIVE
from support.processes import OFF, open_files, service, until
from support.traffic import (
    ADDRESS,
    FOUR_WORKERS,
    SECONDS,
    Client,
    assert_limited,
    assert_served,
    run,
    traffic,
)


@pytest.mark.long(4)
@pytest.mark.parametrize(
    ("limits", "quota", "per_second", "others"),
    [({}, 4, 4, 14), ({**OFF, "RACEDATA_SUSTAINED_LIMIT": "20/minute"}, 20, 20 / 60, 0)],
)
def test_four_workers_allow_a_flooding_client_no_more_than_its_limit_and_others_theirs(
    sample_database, tmp_path, limits, quota, per_second, others
):
    flood = Client(ADDRESS, SECONDS + 1, connections=64)
    good = [
        Client(ADDRESS, SECONDS + 1, pause=0.26, source=f"127.0.0.{number + 2}")
        for number in range(others)
    ]
    with service(sample_database, tmp_path / "log", **FOUR_WORKERS, **limits) as running:
        run(running.address, flood, *good)
    assert_limited(flood, quota=quota, per_second=per_second)
    assert flood.broken == 0
    assert_served(*good)


@pytest.mark.long(7)
def test_workers_killed_during_a_flood_give_no_new_tokens_and_nothing_hangs(
    sample_database, tmp_path
):
    flood = Client(ADDRESS, connections=64)
    kills = 4 * SECONDS
    with (
        service(sample_database, tmp_path / "log", **FOUR_WORKERS) as running,
        traffic(running.address, flood) as ended,
    ):
        for _ in range(kills):
            ended.wait(0.5)
            until(lambda: running.workers() != [])
            os.kill(random.choice(running.workers()), signal.SIGKILL)
    # Answers may be lost with the worker that made them, a token never.
    assert_limited(flood, quota=4, per_second=4, lost=kills)


@pytest.mark.parametrize("end_workers", ["HUP", "kill"])
def test_new_workers_give_no_new_tokens(sample_database, tmp_path, end_workers):
    limits = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "5/day"}
    with service(sample_database, tmp_path / "log", **FOUR_WORKERS, **limits) as running:
        first = Client(ADDRESS, requests=8)
        run(running.address, first)
        assert first.statuses == {200: 5, 429: 3}
        until(lambda: len(running.workers()) == 4)
        before = set(running.workers())
        if end_workers == "HUP":
            running.process.send_signal(signal.SIGHUP)
        else:
            for worker in before:
                os.kill(worker, signal.SIGKILL)
        running.wait_for_new_workers(before)
        second = Client(ADDRESS, requests=8)
        run(running.address, second)
    assert second.statuses == {429: 8}


def reload_service(running, turn):
    running.process.send_signal(signal.SIGHUP)


def end_one_worker(running, turn):
    workers = running.workers()
    os.kill(workers[turn % len(workers)], signal.SIGTERM)


@pytest.mark.long(6)
@pytest.mark.parametrize("replace_workers", [reload_service, end_one_worker])
def test_no_request_is_dropped_while_workers_are_replaced(
    sample_database, tmp_path, replace_workers
):
    clients = [
        Client(ADDRESS, connections=8),
        Client(ADDRESS, connections=8, headers=[("Connection", "close")]),
        Client(ADDRESS, connections=8, pause=0.1),
    ]
    with service(sample_database, tmp_path / "log", **FOUR_WORKERS, **OFF) as running:
        until(lambda: len(running.workers()) == 4)
        before = set(running.workers())
        with traffic(running.address, *clients) as ended:
            for turn in range(SECONDS + 2):
                ended.wait(1)
                replace_workers(running, turn)
        assert not before <= set(running.workers())
    # A worker that ends closes connections that have been idle for a second. On a busy machine, a
    # client may send its next request, or the first one, just then.
    assert_served(*clients, may_overtake=True)


def is_read(connection):
    """Whether the other end of a connection has read all bytes.

    While other connections come and go, Linux may leave this one out of its list.
    """
    ends = f"0100007F:{connection.getpeername()[1]:04X} 0100007F:{connection.getsockname()[1]:04X} "
    lines = Path("/proc/net/tcp").read_text().splitlines()
    return any(line.split()[4].endswith(":00000000") for line in lines if ends in line)


def next_status(connection):
    """The status of the next answer on a connection, once it is complete."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


def test_a_request_in_progress_is_answered_when_the_service_ends(sample_database, tmp_path):
    with (
        service(sample_database, tmp_path / "log", WEB_CONCURRENCY="1", **OFF) as running,
        socket.create_connection(running.address, timeout=20) as connection,
    ):
        connection.sendall(GOOD_KEEP_ALIVE)
        assert next_status(connection) == 200
        connection.sendall(GOOD_KEEP_ALIVE[:30])
        until(lambda: is_read(connection))
        (worker,) = running.workers()
        os.kill(worker, signal.SIGSTOP)  # it would wait for the rest for only a second
        running.process.send_signal(signal.SIGTERM)
        until(lambda: "Handling signal: term" in (tmp_path / "log").read_text())
        connection.sendall(GOOD_KEEP_ALIVE[30:])
        os.kill(worker, signal.SIGCONT)
        assert next_status(connection) == 200
        assert running.process.wait(timeout=20) == 0


def open_databases(worker):
    return len([name for name in open_files(worker) if "racedata.db" in name])


@pytest.mark.long
def test_ten_thousand_requests_through_new_databases_are_answered_each_from_one(
    sample_database, other_database, tmp_path
):
    databases = [sample_database, other_database]
    places = (
        "2023",
        "2023/9",
        "2023/9/results",
        "2023/9/results?limit=7&offset=3",
        "2023/18/laps?limit=100&offset=300",
    )
    paths = [f"/ergast/f1/{place}" for place in places]
    known = [bodies(database, paths) for database in databases]
    expected = {path: {each[path] for each in known} for path in paths}
    assert [len(each) for each in expected.values()] == [2, 2, 2, 2, 1]  # timings do not differ
    path = shutil.copy(sample_database, tmp_path / "racedata.db")
    swaps, ended_clients = 0, []
    with service(path, tmp_path / "log", **FOUR_WORKERS, **OFF) as running:
        while sum(sum(each.statuses.values()) for each in ended_clients) < 10_000 or swaps < 5:
            clients = [Client(path, 2.5, connections=4) for path in paths]
            with traffic(running.address, *clients) as ended:
                while not ended.wait(1):
                    swaps += 1
                    os.replace(shutil.copy(databases[swaps % 2], tmp_path / "new.db"), path)
            ended_clients += clients
        # Each worker has the file open that it serves; and at most one more, of an application that
        # answered a request while it was replaced, until Python collects it.
        until(lambda: all(1 <= open_databases(worker) <= 2 for worker in running.workers()))
    assert_served(*ended_clients)
    for path in paths:
        assert (
            set().union(*(each.bodies for each in ended_clients if each.path == path))
            == expected[path]
        )


@pytest.mark.long(5)
def test_a_request_during_a_change_of_the_database_takes_one_token(
    sample_database, other_database, tmp_path
):
    databases = [sample_database, other_database]
    path = shutil.copy(sample_database, tmp_path / "racedata.db")
    numbers = itertools.count()

    def new_client():
        number = next(numbers)
        return [("X-Forwarded-For", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")]

    settings = {
        "WEB_CONCURRENCY": "2",
        "RACEDATA_CACHE_SIZE": "0",
        "RACEDATA_TRUSTED_PROXIES": "127.0.0.1",
        "RACEDATA_BURST_LIMIT": "1/second",
    }
    clients = Client("/ergast/f1/2023/9/results.json", connections=8, headers=new_client)
    with (
        service(path, tmp_path / "log", **settings) as running,
        traffic(running.address, clients) as ended,
    ):
        for swap in range(1, 10 * (SECONDS + 1) + 2):
            ended.wait(0.1)
            os.replace(shutil.copy(databases[swap % 2], tmp_path / "new.db"), path)
        until(lambda: len(clients.bodies) == 2)  # the last swap was to the other database
    assert clients.statuses.keys() == {200}

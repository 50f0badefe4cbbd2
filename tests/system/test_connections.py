"""Connections to the service, direct and behind nginx: kept open, spread over the workers, and no
request lost when one ends. Clients that ask for large answers and hang up lock nobody out.
"""

import fcntl
import json
import os
import select
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from operator import ge
from pathlib import Path

import pytest
from support.processes import (
    OFF,
    gunicorn,
    nginx,
    nginx_sockets,
    open_files,
    serve_with,
    site_with_nginx,
    until,
)
from support.traffic import ADDRESS, SECONDS, Client, assert_served, get, run, traffic

from racedata.service.worker import SLOW_ANSWERS

LARGE = "/ergast/f1/2023/18/laps.json?limit=2000"
GZIP = [("Accept-Encoding", "gzip")]


def clients():
    """Clients of each kind, whose answers must all be complete."""
    return [
        Client(ADDRESS, connections=6),
        Client(LARGE, connections=4, headers=GZIP),
        Client(LARGE, connections=2),
        Client(ADDRESS, connections=4, headers=[("Connection", "close")]),
        Client(ADDRESS, connections=10, pause=0.1),
    ]


def assert_nothing_lost(*clients):
    assert_served(*clients)
    assert [len(each.bodies) for each in clients] == [1] * len(clients)


def answers(clients):
    """How many answers each connection of each client has got."""
    return [count for client in clients for count in client.answers]


def reload_workers(running, turn):
    running.process.send_signal(signal.SIGHUP)


def kill_a_worker(running, turn):
    workers = running.workers()
    os.kill(workers[turn % len(workers)], signal.SIGKILL)


@pytest.mark.long
def test_no_request_is_lost_and_no_answer_broken_while_workers_end(sample_database, tmp_path):
    sent = clients()
    with site_with_nginx(sample_database, tmp_path, WEB_CONCURRENCY="2", **OFF) as (site, running):
        until(lambda: len(running.workers()) == 2)
        with traffic(site, *sent) as ended:
            for turn in range(SECONDS + 4):
                ended.wait(1)
                until(lambda: len(running.workers()) >= 2)
                (kill_a_worker if turn % 2 else reload_workers)(running, turn)
                # nginx gives a request to one other worker. On a busy machine, that must answer
                # before it ends too.
                enough = [count + 2 for count in answers(sent)]
                until(
                    lambda least=enough: ended.is_set() or all(map(ge, answers(sent), least)),
                )
    assert_nothing_lost(*sent)


@pytest.mark.long
@pytest.mark.parametrize(
    ("gunicorn_seconds", "nginx_seconds"), [("1", "10s"), ("15", "1s"), ("1", "1s")]
)
def test_no_request_is_lost_if_either_side_closes_idle_connections(
    sample_database, tmp_path, gunicorn_seconds, nginx_seconds
):
    # Each connection is idle for about as long as both sides keep it.
    idle = [
        Client(ADDRESS, SECONDS + 4, connections=10, pause=0.98 + 0.005 * number)
        for number in range(8)
    ]
    options = {
        "WEB_CONCURRENCY": "2",
        "GUNICORN_CMD_ARGS": f"--keep-alive {gunicorn_seconds}",
        **OFF,
    }
    change = ("keepalive_timeout 10s;", f"keepalive_timeout {nginx_seconds};")
    with site_with_nginx(sample_database, tmp_path, change, **options) as (site, _):
        run(site, *idle)
    assert_nothing_lost(*idle)


def connections(folder):
    """The inodes of the connections to the sockets in a folder. Linux may leave some out of its
    list while others come and go.
    """
    sockets = [
        line.split()
        for line in Path("/proc/net/unix").read_text().splitlines()
        if f" {folder}/" in line
    ]
    return {inode for *_, state, inode, _ in sockets if state == "03"}


def test_nginx_uses_its_connections_again(sample_database, tmp_path):
    with site_with_nginx(sample_database, tmp_path, WEB_CONCURRENCY="2", **OFF) as (site, _):
        run(site, Client(ADDRESS, requests=100, connections=4))
        found = [set()]
        until(lambda: len(found[-1]) >= 4 or found.append(connections(tmp_path)))
        run(site, Client(ADDRESS, requests=100, connections=4))
        until(lambda: len(found[-1] & connections(tmp_path)) >= 4)


# A service that makes no large answer while a file is locked.

SLOW = "/ergast/f1/results.json?limit=2000&offset={}"

LOCKED = """
import fcntl
from racedata.service import answers

def make_body(self, request):
    if request.limit > 100:
        with open({path!r}) as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            with open({path!r} + ".made", "a") as made:
                made.write(".")
    return usual(self, request)

usual, answers.Resource.make_body = answers.Resource.make_body, make_body
"""


@contextmanager
def locked_site(sample_database, folder, is_behind_nginx, *options):
    """One worker that makes no large answer while a file is locked, so that no test depends on the
    speed of the machine. Yields its address, the worker and the lock.
    """
    lock = folder / "lock"
    environ = {
        "RACEDATA_DATABASE": str(sample_database),
        "WEB_CONCURRENCY": "1",
        "RACEDATA_TRUSTED_PROXIES": "unix",
        **OFF,
    }
    with ExitStack() as stack:
        locked = stack.enter_context(lock.open("w"))
        fcntl.flock(locked, fcntl.LOCK_EX)
        sockets = nginx_sockets(folder) if is_behind_nginx else []
        command = serve_with(LOCKED.format(path=str(lock)))
        running = stack.enter_context(
            gunicorn(*options, environ=environ, sockets=sockets, command=command)
        )
        address = stack.enter_context(nginx(folder)) if is_behind_nginx else running.address
        stack.callback(fcntl.flock, locked, fcntl.LOCK_UN)  # so that the worker can stop
        assert get(address, ADDRESS)[0].status == 200
        (worker,) = running.workers()
        yield address, worker, locked


def test_a_request_on_a_new_connection_is_not_lost_with_its_worker(sample_database, tmp_path):
    with (
        locked_site(sample_database, tmp_path, True) as (site, worker, locked),
        ThreadPoolExecutor(3) as threads,
    ):
        # at the same time, so that not all are sent over the connection of an earlier one
        asked = [threads.submit(get, site, SLOW.format(number)) for number in range(3)]
        until(lambda: len(connections(tmp_path)) >= 3)
        until(lambda: "lock" in {Path(name).name for name in open_files(worker)})
        os.kill(worker, signal.SIGKILL)
        fcntl.flock(locked, fcntl.LOCK_UN)
        assert [each.result()[0].status for each in asked] == [200] * 3


def ask(address, path):
    """A connection on which a request was sent."""
    connection = socket.create_connection(address, timeout=20)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


def abandoned(folder):
    """How many requests nginx has given up because their clients have left."""
    return (folder / "access.log").read_text().count('" 499 ')


@pytest.mark.parametrize("is_behind_nginx", [False, True])
def test_clients_that_hang_up_lock_nobody_out_and_cost_nothing_more(
    sample_database, tmp_path, is_behind_nginx
):
    options = ["--worker-connections", "40"]
    with locked_site(sample_database, tmp_path, is_behind_nginx, *options) as (
        address,
        worker,
        locked,
    ):
        idle = len(open_files(worker))
        for turn in range(5):
            asked = [ask(address, SLOW.format(30 * turn + number)) for number in range(30)]
            until(lambda: len(open_files(worker)) >= idle + 20)
            for connection in asked:
                connection.close()
            until(lambda: len(open_files(worker)) < idle + 10)
            if is_behind_nginx:
                until(lambda left=30 * (turn + 1): abandoned(tmp_path) == left)
            # when the second is answered, the worker has noticed who has left
            for _ in range(2):
                assert get(address, ADDRESS)[0].status == 200
        fcntl.flock(locked, fcntl.LOCK_UN)
        assert get(address, SLOW.format(1000))[0].status == 200
        # the one that was being made, and this one
        assert (tmp_path / "lock.made").read_text() == ".."


@pytest.mark.parametrize("is_behind_nginx", [False, True])
def test_beyond_a_number_of_waiting_answers_a_large_one_is_503_and_all_others_go_on(
    sample_database, tmp_path, is_behind_nginx
):
    with (
        locked_site(sample_database, tmp_path, is_behind_nginx) as (address, _, locked),
        ExitStack() as stack,
    ):
        fcntl.flock(locked, fcntl.LOCK_UN)
        cached = get(address, SLOW.format(0))[1]
        fcntl.flock(locked, fcntl.LOCK_EX)
        asked = [
            stack.enter_context(ask(address, SLOW.format(number)))
            for number in range(1, SLOW_ANSWERS + 6)
        ]
        until(lambda: len(select.select(asked, [], [], 0)[0]) == 5)
        refused = select.select(asked, [], [], 0)[0]
        assert {connection.recv(12) for connection in refused} == {b"HTTP/1.1 503"}
        waiting = [connection for connection in asked if connection not in refused]
        response, body = get(address, SLOW.format(SLOW_ANSWERS + 9))
        assert (response.status, response.headers["Retry-After"]) == (503, "10")
        assert response.headers["Content-Type"] == "application/problem+json"
        assert json.loads(body)["detail"].startswith("Too many pages and large answers are")
        assert get(address, SLOW.format(0))[1] == cached
        assert get(address, ADDRESS)[0].status == 200
        assert get(address, SLOW.format("x"))[0].status == 400
        fcntl.flock(locked, fcntl.LOCK_UN)
        assert {connection.recv(12) for connection in waiting} == {b"HTTP/1.1 200"}
        assert get(address, SLOW.format(SLOW_ANSWERS + 1))[0].status == 200

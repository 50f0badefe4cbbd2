"""The connections between nginx and gunicorn: kept open, spread over the workers, and no request
lost when one ends.
"""

import fcntl
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from operator import ge
from pathlib import Path

import pytest
from support.locked import LARGE as SLOW
from support.locked import locked_site
from support.processes import OFF, open_files, site_with_nginx, until
from support.traffic import SECONDS, Client, assert_served, get, run, traffic

SMALL = "/ergast/f1/2023/18.json"
LARGE = "/ergast/f1/2023/18/laps.json?limit=2000"
GZIP = [("Accept-Encoding", "gzip")]


def clients():
    """Clients of each kind, whose answers must all be complete."""
    return [
        Client(SMALL, connections=6),
        Client(LARGE, connections=4, headers=GZIP),
        Client(LARGE, connections=2),
        Client(SMALL, connections=4, headers=[("Connection", "close")]),
        Client(SMALL, connections=10, pause=0.1),
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
        Client(SMALL, SECONDS + 4, connections=10, pause=0.98 + 0.005 * number)
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
        run(site, Client(SMALL, requests=100, connections=4))
        found = [set()]
        until(lambda: len(found[-1]) >= 4 or found.append(connections(tmp_path)))
        run(site, Client(SMALL, requests=100, connections=4))
        until(lambda: len(found[-1] & connections(tmp_path)) >= 4)


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

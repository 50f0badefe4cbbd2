"""Clients that ask for large answers and hang up: nobody is locked out, and what waits is bounded.

The service is real, direct and behind nginx with deploy/nginx.conf, but it makes no large answer
while a file is locked. So no result depends on the speed of the machine.
"""

import fcntl
import json
import select
import socket
from contextlib import ExitStack

import pytest
from support.locked import LARGE, locked_site
from support.processes import open_files, until
from support.traffic import ADDRESS, get

from racedata.service.worker import SLOW_ANSWERS


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
            asked = [ask(address, LARGE.format(30 * turn + number)) for number in range(30)]
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
        assert get(address, LARGE.format(1000))[0].status == 200
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
        cached = get(address, LARGE.format(0))[1]
        fcntl.flock(locked, fcntl.LOCK_EX)
        asked = [
            stack.enter_context(ask(address, LARGE.format(number)))
            for number in range(1, SLOW_ANSWERS + 6)
        ]
        until(lambda: len(select.select(asked, [], [], 0)[0]) == 5)
        refused = select.select(asked, [], [], 0)[0]
        assert {connection.recv(12) for connection in refused} == {b"HTTP/1.1 503"}
        waiting = [connection for connection in asked if connection not in refused]
        response, body = get(address, LARGE.format(SLOW_ANSWERS + 9))
        assert (response.status, response.headers["Retry-After"]) == (503, "10")
        assert response.headers["Content-Type"] == "application/problem+json"
        assert json.loads(body)["detail"].startswith("Too many pages and large answers are")
        assert get(address, LARGE.format(0))[1] == cached
        assert get(address, ADDRESS)[0].status == 200
        assert get(address, LARGE.format("x"))[0].status == 400
        fcntl.flock(locked, fcntl.LOCK_UN)
        assert {connection.recv(12) for connection in waiting} == {b"HTTP/1.1 200"}
        assert get(address, LARGE.format(SLOW_ANSWERS + 1))[0].status == 200

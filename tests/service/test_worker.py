"""racedata.service.worker and environment: in a real gunicorn, no client delays another, whatever
it sends, reads or leaves open. test_connections.py has the test of a worker that IS_BUSY.
"""

import fcntl
import json
import os
import re
import resource
import signal
import socket
import sys
from contextlib import ExitStack, contextmanager

import pytest
from support.processes import OFF, gunicorn, listens, open_files, service, until

ANSWERED = b"HTTP/1.1 200 OK"


def request(path, *headers):
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def responses(connection):
    """The headers and bodies of the responses that come over a connection. Each must be a 200."""
    with connection.makefile("rb") as stream:
        while line := stream.readline():
            assert line.startswith(ANSWERED)
            headers = dict(field.split(b": ", 1) for field in iter(stream.readline, b"\r\n"))
            yield headers, stream.read(int(headers[b"content-length"]))


def answers(connection):
    """The bodies of these responses."""
    return (body for _, body in responses(connection))


HEALTH = request("/healthz")


@contextmanager
def with_one_worker(database, folder):
    """A service with one worker, without rate limits. It keeps connections for ten minutes, because
    on a busy machine clients that read one after the other may take longer than usual.
    """
    options = {"WEB_CONCURRENCY": "1", "GUNICORN_CMD_ARGS": "--keep-alive 600", **OFF}
    with service(database, folder / "log", **options) as running:
        yield running
    assert "Traceback" not in (folder / "log").read_text()


@pytest.fixture(scope="module")
def one_worker(sample_database, tmp_path_factory):
    with with_one_worker(sample_database, tmp_path_factory.mktemp("worker")) as running:
        yield running


@pytest.fixture
def stopping(sample_database, tmp_path):
    """Such a service for a test that ends it."""
    with with_one_worker(sample_database, tmp_path) as running:
        yield running


@pytest.fixture
def connect():
    """A function that connects to a service; all connections are closed after the test."""
    with ExitStack() as stack:

        def connect(running, received=None):
            """A connection. `received` limits its receive buffer, in bytes."""
            connection = stack.enter_context(socket.socket())
            if received:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received)
            connection.settimeout(20)
            connection.connect(running.address)
            return connection

        yield connect


def answered(connection, sent=HEALTH):
    """The body of the answer to a request."""
    connection.sendall(sent)
    return next(answers(connection))


def answering_worker(running, connect):
    """The id of the one worker of a service, once it answers."""
    assert answered(connect(running))
    (worker,) = running.workers()
    return worker


def test_clients_that_do_not_read_their_answers_do_not_delay_others(one_worker, connect):
    large = request("/ergast/f1/results.json?limit=2000")
    good, *slow = [connect(one_worker, 4096) for _ in range(10)]
    expected = answered(good, large)
    for connection in slow:
        connection.sendall(large * 100)
    for _ in range(10):
        assert answered(good, large) == expected
    for connection in slow:
        connection.shutdown(socket.SHUT_WR)
        assert list(answers(connection)) == [expected] * 100


def test_clients_that_have_sent_a_part_of_a_request_do_not_delay_others(one_worker, connect):
    long = request("/healthz", "A: " + "x" * 8000, "B: " + "y" * 300)
    parts = [(HEALTH, size) for size in (0, 1, 20, -3, -2, -1)] + [
        (long, size) for size in (8200, 8300, -2, -1)
    ]
    good = connect(one_worker)
    slow = [connect(one_worker) for _ in parts]
    for connection, (whole, size) in zip(slow, parts, strict=True):
        connection.sendall(whole[:size])
    assert all(answered(good) for _ in range(10))
    for connection, (whole, size) in zip(slow, parts, strict=True):
        connection.sendall(whole[size:])
        assert next(answers(connection))


# The service with another application. It answers `/slow` only when a file is no longer locked, and
# `/wait` too, when it is called. `/list` and `/generator` fail in the middle.
OTHER = """
import fcntl, sys
from racedata import settings
from racedata.service import server

def wait():
    fcntl.flock(open({!r}), fcntl.LOCK_SH)

def slow():
    wait()
    yield b"OK"

def failing():
    yield b"half"
    1 / 0

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/wait":
        wait()
    fails = path in ("/list", "/generator")
    start_response("200 OK", [("content-length", "8" if fails else "2")])
    if path == "/list":
        return list(failing())
    if fails:
        return failing()
    return slow() if path == "/slow" else [b"OK"]

server.application = lambda settings: app
arguments = settings.parse_arguments(sys.argv[1:])
server.serve(arguments.settings, arguments.gunicorn_options)
"""


@contextmanager
def other_application(folder, *options):
    """The service with that application and one worker, while the file is locked, and the lock."""
    lock, log = folder / "lock", folder / "log"
    (folder / "other.py").write_text(OTHER.format(str(lock)))
    command = [sys.executable, str(folder / "other.py")]
    with (
        lock.open("w") as locked,
        log.open("w") as output,
        gunicorn(
            *options, environ={"WEB_CONCURRENCY": "1"}, command=command, output=output
        ) as running,
    ):
        fcntl.flock(locked, fcntl.LOCK_EX)
        yield running, locked


@pytest.mark.parametrize("threads", ["1", "4"])
def test_clients_that_request_slow_answers_do_not_delay_others(tmp_path, threads, connect):
    with other_application(tmp_path, "--threads", threads) as (running, locked):
        good, *waiting = [connect(running) for _ in range(40)]
        for connection in waiting:
            connection.sendall(request("/slow"))
        for _ in range(10):
            assert answered(good, request("/")) == b"OK"
        fcntl.flock(locked, fcntl.LOCK_UN)
        assert [next(answers(connection)) for connection in waiting] == [b"OK"] * len(waiting)


def test_with_threads_a_client_that_has_closed_its_sending_side_is_answered(tmp_path, connect):
    with other_application(tmp_path, "--threads", "4") as (running, locked):
        half_closed, good = connect(running), connect(running)
        half_closed.sendall(request("/wait"))
        half_closed.shutdown(socket.SHUT_WR)
        for _ in range(3):  # then the worker has noticed it
            assert answered(good, request("/")) == b"OK"
        fcntl.flock(locked, fcntl.LOCK_UN)
        assert next(answers(half_closed)) == b"OK"


def test_a_client_that_closes_its_sending_side_gets_no_slow_answer(tmp_path, connect):
    with other_application(tmp_path) as (running, locked):
        waiting, half_closed, good = (connect(running) for _ in range(3))
        for connection in (waiting, half_closed):
            connection.sendall(request("/slow"))
        half_closed.shutdown(socket.SHUT_WR)
        for _ in range(3):  # then the worker has noticed it
            assert answered(good, request("/")) == b"OK"
        fcntl.flock(locked, fcntl.LOCK_UN)
        assert next(answers(waiting)) == b"OK"
        assert half_closed.recv(1) == b""


def test_an_application_that_fails_in_the_middle_of_an_answer_is_500_and_no_half_answer(
    tmp_path, connect
):
    with other_application(tmp_path) as (running, _):
        for path in ("/list", "/generator"):
            connection = connect(running)
            connection.sendall(request(path))
            with connection.makefile("rb") as stream:
                answer = stream.read()
            assert answer.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
            assert b"half" not in answer
    assert (tmp_path / "log").read_text().count("ZeroDivisionError") == 2


def test_a_connection_that_cannot_be_accepted_breaks_no_other(stopping, connect):
    worker = answering_worker(stopping, connect)
    good = connect(stopping)
    assert answered(good)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.prlimit(worker, resource.RLIMIT_NOFILE, (3, limits[1]))  # no further file
    waiting = connect(stopping)
    waiting.sendall(HEALTH)
    assert all(answered(good) for _ in range(10))
    resource.prlimit(worker, resource.RLIMIT_NOFILE, limits)
    assert next(answers(waiting))
    assert stopping.workers() == [worker]


def test_headers_that_do_not_end_are_refused(one_worker, connect):
    connection = connect(one_worker)
    connection.sendall(b"GET /healthz HTTP/1.1\r\n" + b"A: b\r\n" * 7000)
    assert connection.recv(4096).startswith(b"HTTP/1.1 431 ")


def test_a_head_that_comes_byte_by_byte_has_no_more_time_than_a_whole_one(
    sample_database, tmp_path, connect
):
    options = {"WEB_CONCURRENCY": "1", "GUNICORN_CMD_ARGS": "--keep-alive 1", **OFF}
    with service(sample_database, tmp_path / "log", **options) as running:
        connection = connect(running)
        connection.settimeout(0.05)
        closed = False
        while not closed:  # 32 KB of such bytes would last for half an hour
            try:
                connection.sendall(b"x")
                closed = connection.recv(1) == b""
            except TimeoutError:
                continue
            except ConnectionError:
                closed = True


def test_the_name_of_a_client_of_a_unix_socket_is_not_its_address(
    sample_database, tmp_path, connect
):
    limits = {
        "RACEDATA_BURST_LIMIT": "off",
        "RACEDATA_SUSTAINED_LIMIT": "3/day",
        "RACEDATA_TRUSTED_PROXIES": "unix",
    }
    path, unique = tmp_path / "0.sock", os.urandom(4).hex()

    def status(number):
        with socket.socket(socket.AF_UNIX) as client:
            client.bind(f"\0{unique}{number}")  # a zero byte begins an abstract name, as in Linux
            client.settimeout(20)
            client.connect(str(path))
            client.sendall(request("/ergast/f1/2023.json", "X-Forwarded-For: 203.0.113.9"))
            return client.recv(12)[-3:]

    with service(sample_database, tmp_path / "log", [path], WEB_CONCURRENCY="1", **limits):
        assert [status(number) for number in range(5)] == [b"200"] * 3 + [b"429"] * 2


def test_a_stop_answers_all_requests_that_have_arrived(stopping, tmp_path, connect):
    worker = answering_worker(stopping, connect)
    os.kill(worker, signal.SIGSTOP)
    clients = [connect(stopping) for _ in range(100)]
    for client in clients:
        client.sendall(HEALTH)
    stopping.process.terminate()
    until(lambda: "Handling signal: term" in (tmp_path / "log").read_text())
    os.kill(worker, signal.SIGCONT)
    assert [client.recv(15) for client in clients] == [ANSWERED] * 100


def test_a_slow_answer_that_is_made_during_a_stop_promises_no_further_one(tmp_path, connect):
    with other_application(tmp_path) as (running, locked):
        worker = answering_worker(running, connect)
        client = connect(running)
        client.sendall(request("/slow"))
        until(lambda: any(file.endswith("lock") for file in open_files(worker)))
        running.process.terminate()
        until(lambda: not listens(running.address))
        fcntl.flock(locked, fcntl.LOCK_UN)
        (headers, body), *others = responses(client)
        assert (headers[b"Connection"], body, others) == (b"close\r\n", b"OK", [])


def is_closed(client):
    """Whether the server has closed a connection without an answer."""
    try:
        return client.recv(15) == b""
    except ConnectionResetError:  # it had not read the request
        return True


def test_ctrl_c_does_not_wait_for_slow_answers_whose_clients_are_gone(tmp_path, connect):
    with other_application(tmp_path) as (running, locked):
        worker = answering_worker(running, connect)
        clients = [connect(running) for _ in range(20)]
        for client in clients:
            client.sendall(request("/slow"))
        until(lambda: len(open_files(worker)) > 20)
        running.process.send_signal(signal.SIGINT)
        until(lambda: not listens(running.address))
        fcntl.flock(locked, fcntl.LOCK_UN)
        running.process.wait(timeout=20)
        assert sum(map(is_closed, clients)) >= 18  # but for the answer that was being made


def test_clients_that_do_not_close_their_connection_do_not_delay_others(one_worker, connect):
    last = [
        request("/healthz", "Connection: close"),
        b"GET /healthz HTTP/1.0\r\n\r\n",
        b"GET /healthz\n",
        request("/healthz", "Content-Length: 5"),
    ]
    good = connect(one_worker)
    open_connections = [connect(one_worker) for _ in range(40)]
    for number, connection in enumerate(open_connections):
        connection.sendall(last[number % len(last)])
    assert all(answered(good) for _ in range(10))
    for connection in open_connections:
        with connection.makefile("rb") as stream:
            # up to its end: the service has closed its side
            assert stream.read().startswith(b"HTTP/1.")


def test_a_request_with_a_body_is_answered_before_its_body(one_worker, connect):
    connection = connect(one_worker)
    connection.sendall(request("/healthz", "Content-Length: 1000", "Expect: 100-continue"))
    with connection.makefile("rb") as stream:
        assert stream.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert stream.readline() == b"\r\n"
        assert stream.readline() == ANSWERED + b"\r\n"
        assert b"Connection: close\r\n" in list(iter(stream.readline, b"\r\n"))


def test_clients_that_send_nothing_do_not_delay_a_stop(stopping, connect):
    silent, closing, half = (connect(stopping) for _ in range(3))
    closing.sendall(request("/healthz", "Connection: close"))
    half.sendall(b"GET /")
    assert closing.recv(15) == ANSWERED
    stopping.process.terminate()
    stopping.process.wait(timeout=12)  # their connections would last for ten minutes
    assert silent.recv(1) == half.recv(1) == b""


def test_requests_that_are_sent_together_are_answered_in_order(one_worker, connect):
    connection = connect(one_worker)
    connection.sendall(
        b"".join(
            request(f"/ergast/f1/2023.json?limit=1&offset={number % 3}") for number in range(400)
        )
    )
    found = answers(connection)
    offsets = [json.loads(next(found))["MRData"]["offset"] for _ in range(400)]
    assert offsets == [str(number % 3) for number in range(400)]


def tokens_left(connection):
    """How many tokens are left after the first response that comes over a connection."""
    headers, _ = next(responses(connection))
    found = re.search(rb";r=(\d+)", headers[b"ratelimit"])
    assert found
    return int(found[1])


def test_a_client_that_sends_many_requests_together_does_not_delay_others(
    sample_database, tmp_path, connect
):
    hurried, good = request("/ergast/f1/2023.json"), request("/ergast/f1/2022.json")
    limits = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "1000/day"}
    with (
        service(sample_database, tmp_path / "log", WEB_CONCURRENCY="1", **limits) as running,
    ):
        first, second = connect(running), connect(running)
        for connection in (first, second):
            assert answered(connection, good)
        (worker,) = running.workers()
        # so that both have sent all their requests before the worker receives one
        os.kill(worker, signal.SIGSTOP)
        try:
            first.sendall(hurried * 400)
            second.sendall(good)
        finally:
            os.kill(worker, signal.SIGCONT)
        # To the rate limits, both are one client. So the tokens left show how many of the 400 were
        # answered in between.
        assert tokens_left(first) - tokens_left(second) < 10
    assert "Traceback" not in (tmp_path / "log").read_text()

"""racedata.service.server: a real gunicorn that starts and answers, or says in one line why it
cannot.
"""

import os
import socket
import subprocess
import sys
import urllib.request
from contextlib import ExitStack, contextmanager, suppress

import pytest
from support import ROOT
from support.processes import SERVE, free_port, gunicorn, until

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
OK = b"HTTP/1.1 200 OK"


def run(command, **environ):
    """`command` in the project's folder, finished."""
    environ = {"PATH": os.environ["PATH"], **environ}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)


def with_open_files(number):
    """The command that starts gunicorn, allowed to open so many files."""
    return ["sh", "-c", f'ulimit -n {number}; exec "$@"', "sh", *SERVE]


@contextmanager
def running(command, ready="offset=45", **environ):
    """Runs `command` in the project's folder during the block, which is entered after it has
    printed a `ready` line.

    Yields the lines it has printed: at first up to this one, after the block all of them.
    """
    environ = {"PATH": os.environ["PATH"], **environ}
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        lines = []
        try:
            for line in process.stdout:
                lines.append(line)
                if ready in line:
                    break
            yield lines
        finally:
            process.terminate()
            lines += process.communicate(timeout=30)[0].splitlines(keepends=True)


@pytest.fixture
def one_worker(sample_database):
    return {
        "PORT": str(free_port()),
        "RACEDATA_DATABASE": str(sample_database),
        "WEB_CONCURRENCY": "1",
    }


def test_it_listens_on_an_ipv6_address_too(one_worker):
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    url = f"http://[::1]:{one_worker['PORT']}"
    with running(SERVE, HOST="::1", **one_worker) as lines:
        assert any(f"Listening at: {url}" in line for line in lines)
        with urllib.request.urlopen(f"{url}/ergast/f1/2023/18.json") as answer:
            assert f'"url":"{url}/ergast/f1/2023/18/races.json"'.encode() in answer.read()


def test_a_second_service_on_the_same_port_does_not_start(one_worker):
    with running(SERVE, **one_worker):
        second = run(SERVE, **one_worker)
    assert second.returncode == 3
    line = (
        f"racedata: HOST=127.0.0.1 PORT={one_worker['PORT']}: cannot listen there: "
        "Address already in use; expected a free port, such as --port 8001"
    )
    assert line in second.stderr.splitlines()
    # the others are gunicorn's "Starting", and that it is only a sample
    assert len(second.stderr.splitlines()) <= 3


def test_a_client_that_connects_while_it_starts_is_answered(one_worker):
    for _ in range(2):
        process = subprocess.Popen(
            SERVE,
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], **one_worker},
            stderr=subprocess.DEVNULL,
        )
        try:
            answer = b""
            while not answer:
                with socket.socket() as connection, suppress(ConnectionRefusedError):
                    connection.settimeout(20)
                    connection.connect(("127.0.0.1", int(one_worker["PORT"])))
                    connection.sendall(HEALTH)
                    answer = connection.recv(15)
        finally:
            process.terminate()
            process.wait(timeout=20)
        assert answer == OK


def test_it_starts_and_answers_if_no_file_can_be_written(one_worker):
    command = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *SERVE]
    with running(command, **one_worker) as lines:
        url = f"http://127.0.0.1:{one_worker['PORT']}/ergast/f1/2023/18.json"
        with urllib.request.urlopen(url) as answer:
            assert answer.status == 200
    assert not any("Traceback" in line or "[ERROR]" in line for line in lines)


def test_more_connections_than_open_files_cause_no_errors(one_worker):
    address = ("127.0.0.1", int(one_worker["PORT"]))
    with running(with_open_files(120), **one_worker) as lines, ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection(address, timeout=20)) for _ in range(150)
        ]
        for connection in connections:
            connection.sendall(HEALTH)
        answers = []
        for connection in connections:  # as some are closed, the next ones are accepted
            with connection:
                answers.append(connection.recv(15))
    assert answers == [OK] * 150
    assert not any("Traceback" in line or "[ERROR]" in line for line in lines)


# The service. Each worker gets a SIGTERM before it has its own signal handlers.
EARLY = """
import os, signal, sys
from racedata import settings
from racedata.service import server

def config(settings):
    def end_master(server, worker):
        os.kill(os.getpid(), signal.SIGTERM)

    return {**usual(settings), "post_fork": end_master}

usual, server.config = server.config, config
arguments = settings.parse_arguments(sys.argv[1:])
server.serve(arguments.settings, arguments.gunicorn_options)
"""


def test_a_worker_that_is_told_to_stop_while_it_starts_stops(one_worker, tmp_path):
    (tmp_path / "early.py").write_text(EARLY)
    log, command = tmp_path / "log", [sys.executable, str(tmp_path / "early.py")]
    del one_worker["PORT"]
    with log.open("w") as output, gunicorn(environ=one_worker, output=output, command=command):
        until(lambda: "Worker exiting" in log.read_text())


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--worker-tmp-dir=/nonexistent", "worker-tmp-dir: "),
        ("--keep-alive=0", "keep-alive 0: expected 1 or more seconds"),
        ("--limit-request-line=0", "limit-request-line 0: expected a number from 1 to 8190"),
        (
            "--worker-connections=9999999",
            "worker-connections 9999999: expected a number from 1 to ",
        ),
        ("--worker-connections=0", "worker-connections 0: expected a number from 1 to "),
    ],
)
def test_it_refuses_values_of_gunicorn_with_which_its_worker_could_not_serve(
    one_worker, option, said
):
    ended = run([*SERVE, "--", option], **one_worker)
    assert (ended.returncode, ended.stdout) == (3, "")
    # the others are gunicorn's "Starting", and that it is only a sample
    assert len(ended.stderr.splitlines()) <= 3
    assert ended.stderr.splitlines()[-1].startswith(f"racedata: {said}")

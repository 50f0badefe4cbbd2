"""racedata.service.server: a real gunicorn that starts and answers, or says in one line why it
cannot.
"""

import os
import socket
import subprocess
import sys
import urllib.request
from contextlib import ExitStack, suppress

import pytest
from support import ROOT
from support.processes import SERVE, free_port, gunicorn, service, until
from support.traffic import get

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
OK = b"HTTP/1.1 200 OK"


def run(command, **environ):
    """`command` in the project's folder, finished."""
    environ = {"PATH": os.environ["PATH"], **environ}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)


@pytest.fixture
def one_worker(sample_database):
    return {"RACEDATA_DATABASE": str(sample_database), "WEB_CONCURRENCY": "1"}


def limited_by(limit):
    """The command that starts the service, with a limit of the shell."""
    return ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", *SERVE]


def test_it_listens_on_an_ipv6_address_too(sample_database, tmp_path):
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    log = tmp_path / "log"
    environ = {"RACEDATA_DATABASE": str(sample_database), "HOST": "::1"}
    with (
        log.open("w") as output,
        gunicorn(
            environ=environ, output=output, ready=lambda _: "offset=45" in log.read_text()
        ) as running,
    ):
        url = f"http://[::1]:{running.address[1]}"
        assert f"Listening at: {url}" in log.read_text()
        with urllib.request.urlopen(f"{url}/ergast/f1/2023/18.json") as answer:
            assert f'"url":"{url}/ergast/f1/2023/18/races.json"'.encode() in answer.read()


def test_a_second_service_on_the_same_port_does_not_start(one_worker):
    with gunicorn(environ=one_worker) as running:
        port = str(running.address[1])
        second = run(SERVE, PORT=port, **one_worker)
    assert second.returncode == 3
    line = (
        f"racedata: HOST=127.0.0.1 PORT={port}: cannot listen there: "
        "Address already in use; expected a free port, such as --port 8001"
    )
    assert line in second.stderr.splitlines()
    # the others are gunicorn's "Starting", and that it is only a sample
    assert len(second.stderr.splitlines()) <= 3


def test_a_client_that_connects_while_it_starts_is_answered(one_worker):
    port = free_port()
    for _ in range(2):
        process = subprocess.Popen(
            SERVE,
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "PORT": str(port), **one_worker},
            stderr=subprocess.DEVNULL,
        )
        try:
            answer = b""
            while not answer:
                with socket.socket() as connection, suppress(ConnectionRefusedError):
                    connection.settimeout(20)
                    connection.connect(("127.0.0.1", port))
                    connection.sendall(HEALTH)
                    answer = connection.recv(15)
        finally:
            process.terminate()
            process.wait(timeout=20)
        assert answer == OK


def assert_no_errors(text):
    assert "Traceback" not in text and "[ERROR]" not in text


def test_it_starts_and_answers_if_no_file_can_be_written(one_worker):
    command = limited_by("-f 0")
    with gunicorn(environ=one_worker, command=command, output=subprocess.PIPE) as running:
        assert b"Spielberg" in get(running.address, "/ergast/f1/2023/9.json")[1]
    _, said = running.process.communicate()
    assert_no_errors(said.decode())


def test_more_connections_than_open_files_cause_no_errors(sample_database, tmp_path):
    command, log = limited_by("-n 120"), tmp_path / "log"
    with (
        service(sample_database, log, command=command, WEB_CONCURRENCY="1") as running,
        ExitStack() as stack,
    ):
        connections = [
            stack.enter_context(socket.create_connection(running.address, timeout=20))
            for _ in range(150)
        ]
        for connection in connections:
            connection.sendall(HEALTH)
        answers = []
        for connection in connections:  # as some are closed, the next ones are accepted
            with connection:
                answers.append(connection.recv(15))
    assert answers == [OK] * 150
    assert_no_errors(log.read_text())


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

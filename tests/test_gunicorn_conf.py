"""racedata.gunicorn_conf: a real gunicorn that starts and answers, or says in one line why it cannot."""

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from support import ROOT
from support.processes import GUNICORN, free_port, gunicorn, until


def environment(**changes: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], **changes}


def run(command: list[str], **environ: str) -> subprocess.CompletedProcess[str]:
    """`command` in the project's folder, finished."""
    return subprocess.run(command, cwd=ROOT, env=environment(**environ), capture_output=True, text=True, timeout=60)


def with_open_files(number: int) -> list[str]:
    """The command that starts gunicorn, allowed to open so many files."""
    return ["sh", "-c", f'ulimit -n {number}; exec "$@"', "sh", *GUNICORN]


@contextmanager
def running(command: list[str], **environ: str) -> Iterator[list[str]]:
    """Runs `command` in the project's folder during the block; yields the lines it has printed.

    At first these are the lines of its start, after the block all of them.
    """
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(**environ), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        lines = []
        try:
            for line in process.stdout:
                lines.append(line)
                if "offset=45" in line:  # the last line of the start
                    break
            yield lines
        finally:
            process.terminate()
            lines += process.communicate(timeout=30)[0].splitlines(keepends=True)


# Deals eight sockets to two workers of a reload, when the worker of place 0 has just died and is not yet replaced.
DEAL = """
import runpy, socket
from types import SimpleNamespace as Some

pre_fork = runpy.run_module("racedata.gunicorn_conf")["pre_fork"]
sockets = [Some(family=socket.AF_UNIX, getsockname=lambda n=n: f"{n}.sock") for n in range(8)]
workers = {1: Some(age=2, place=1, sockets=sockets[1::2])}
server = Some(app=Some(wsgi=lambda: None), cfg=Some(workers=2), WORKERS=workers)
for age in (3, 4):
    worker = Some(age=age, place=0, sockets=sockets)
    pre_fork(server, worker)
    workers[age] = worker
print(sorted(workers[age].place for age in (3, 4)))
"""


def test_after_a_reload_each_socket_has_a_worker_even_if_one_died_just_before() -> None:
    done = run([sys.executable, "-c", DEAL], WEB_CONCURRENCY="2", PYTHONPATH=str(ROOT))
    assert (done.stdout, done.stderr) == ("[0, 1]\n", "")


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("RACEDATA_SERIES", "f 1", "racedata: RACEDATA_SERIES='f 1': expected letters, digits, - and _, such as f1\n"),
        ("PORT", "http", "racedata: PORT='http': expected a whole number from 1 to 65535\n"),
        (
            "RACEDATA_DATABASE",
            "/none.db",
            "racedata: /none.db is missing; to build it, run: racedata load SOURCE --database /none.db\n",
        ),
    ],
)
def test_gunicorn_ends_with_one_line_if_it_cannot_start(variable: str, value: str, line: str) -> None:
    ended = run(GUNICORN, **{variable: value})
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", line)


def test_it_listens_on_an_ipv6_address_too(sample_database: Path) -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    port = free_port()
    with running(GUNICORN, HOST="::1", PORT=str(port), RACEDATA_DATABASE=str(sample_database)) as lines:
        assert any(f"Listening at: http://[::1]:{port}" in line for line in lines)
        with urllib.request.urlopen(f"http://[::1]:{port}/ergast/f1/2023/18.json", timeout=10) as answer:
            assert f'"url":"http://[::1]:{port}/ergast/f1/2023/18/races.json"'.encode() in answer.read()


def test_a_second_service_on_the_same_port_does_not_start(sample_database: Path) -> None:
    environ = {"PORT": str(free_port()), "RACEDATA_DATABASE": str(sample_database)}
    with running(GUNICORN, **environ):
        second = run(GUNICORN, **environ)
    assert second.returncode == 3
    line = f"racedata: HOST=127.0.0.1 PORT={environ['PORT']}: cannot listen there: Address already in use"
    assert line in second.stderr.splitlines()
    assert len(second.stderr.splitlines()) <= 2  # the other line is gunicorn's "Starting"


def test_a_client_that_connects_while_it_starts_is_answered(sample_database: Path) -> None:
    environ = {"PORT": str(free_port()), "RACEDATA_DATABASE": str(sample_database), "WEB_CONCURRENCY": "1"}
    for _ in range(5):
        process = subprocess.Popen(GUNICORN, cwd=ROOT, env=environment(**environ), stderr=subprocess.DEVNULL)
        try:
            answer = b""
            while not answer:
                with socket.socket() as connection, suppress(ConnectionRefusedError):
                    connection.settimeout(20)
                    connection.connect(("127.0.0.1", int(environ["PORT"])))
                    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    answer = connection.recv(15)
        finally:
            process.terminate()
            process.wait(timeout=20)
        assert answer == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(("workers", "open_files"), [("512", 1024), ("64", 64)])
def test_it_does_not_start_with_more_workers_than_open_files_allow(
    sample_database: Path, workers: str, open_files: int
) -> None:
    environ = {"PORT": str(free_port()), "RACEDATA_DATABASE": str(sample_database), "WEB_CONCURRENCY": workers}
    ended = run(with_open_files(open_files), **environ)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr == (
        f"racedata: WEB_CONCURRENCY={workers} needs {3 * int(workers) + 100} open files: expected fewer workers, or "
        f"more than the {open_files} files that the system allows (ulimit -n)\n"
    )


def test_more_connections_than_open_files_cause_no_errors(sample_database: Path) -> None:
    environ = {"PORT": str(free_port()), "RACEDATA_DATABASE": str(sample_database), "WEB_CONCURRENCY": "1"}
    address = ("127.0.0.1", int(environ["PORT"]))
    with running(with_open_files(120), **environ) as lines, ExitStack() as stack:
        connections = [stack.enter_context(socket.create_connection(address, timeout=20)) for _ in range(150)]
        for connection in connections:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answers = []
        for connection in connections:  # as some are closed, the next ones are accepted
            with connection:
                answers.append(connection.recv(15))
    assert answers == [b"HTTP/1.1 200 OK"] * 150
    assert not any("Traceback" in line or "[ERROR]" in line for line in lines)


# The project's configuration. Each worker gets a SIGTERM before it has its own signal handlers.
EARLY = """
import os, runpy, signal
globals().update(runpy.run_module("racedata.gunicorn_conf"))
deployed = post_fork

def post_fork(server, worker):
    deployed(server, worker)
    os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_worker_that_is_told_to_stop_while_it_starts_stops(sample_database: Path, tmp_path: Path) -> None:
    (tmp_path / "early.py").write_text(EARLY)
    environ = {"RACEDATA_DATABASE": str(sample_database), "WEB_CONCURRENCY": "1"}
    log = tmp_path / "log"
    with log.open("w") as output, gunicorn("--config", str(tmp_path / "early.py"), environ=environ, output=output):
        until(lambda: "Worker exiting" in log.read_text())


def test_it_refuses_a_certificate(sample_database: Path, tmp_path: Path) -> None:
    environ = {"RACEDATA_DATABASE": str(sample_database), "PORT": str(free_port())}
    ended = run([*GUNICORN, "--certfile", __file__], **environ)
    assert (ended.returncode, ended.stdout) == (3, "")
    line = "racedata: certfile and keyfile are not accepted: let nginx do TLS (deploy/nginx.conf)"
    assert ended.stderr.splitlines()[1:] == [line]  # the first is gunicorn's

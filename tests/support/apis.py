"""An API in Ergast's format that counts requests and breaks answers; a refresh without waiting."""

import gzip
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qsl

import webtest

from racedata.loader.corrections import CORRECTIONS
from racedata.loader.refresh import Refresh
from racedata.loader.sources import Pace
from support.loads import loader_settings

Answer = tuple[int, dict[str, str], bytes]
Fault = Callable[[bytes], Answer | bytes | None]

# As Jolpica-F1 describes an error of its own (commit b5e43ca).
ERROR = b"""
<!doctype html>
<html lang="en">
<head>
  <title>Server Error (500)</title>
</head>
<body>
  <h1>Server Error (500)</h1><p></p>
</body>
</html>
"""

# What may be sent instead of an answer. Bytes are sent with the Content-Length of the whole answer.
FAULTS: dict[str, Fault] = {
    "html": lambda body: (200, {}, b"<!doctype html><title>Sign in to the network</title>"),
    "broken off": lambda body: body[: len(body) // 2],
    "short": lambda body: (200, {}, body[: len(body) // 2]),
    "an error": lambda body: (500, {"Content-Type": "text/html; charset=utf-8"}, ERROR),
    "nothing": lambda body: None,
    "another shape": lambda body: (200, {}, body.replace(b'Table":{', b'Tables":{')),
    "another total": lambda body: (200, {}, body.replace(b'"total":"', b'"total":"1')),
}


class Server:
    """An API at `url`: `answer(path)` makes its answers. `paths` collects the requested paths.

    `faults` has what breaks the n-th answer, by n from 0.
    """

    def __init__(self, answer: Callable[[str], Answer]) -> None:
        self.answer = answer
        self.paths: list[str] = []
        self.agents: set[str] = set()
        self.requests: list[tuple[str, str | None]] = []  # (path, Authorization)
        self.faults: dict[int, Fault] = {}
        self.url = ""

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        number = len(self.paths)
        self.paths.append(handler.path.removeprefix("/ergast/f1/"))
        self.agents.add(handler.headers["User-Agent"])
        self.requests.append((handler.path, handler.headers["Authorization"]))
        status, headers, body = self.answer(handler.path)
        length = len(body)
        if number in self.faults:
            broken = self.faults[number](body)
            if broken is None:
                return
            if isinstance(broken, tuple):
                status, headers, body = broken
                length = len(body)
            else:
                body = broken
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)


@contextmanager
def served(answer: Callable[[str], Answer]) -> Iterator[Server]:
    """A server on a free port."""
    server = Server(answer)
    with running(server):
        yield server


@contextmanager
def running(server: Any) -> Iterator[None]:
    """Runs a server on a free port: `handle(handler)` answers a request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with suppress(ConnectionError):  # a client that has ended
                server.handle(self)

        do_HEAD = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_port}/ergast/f1"
        thread = Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            http.shutdown()
            thread.join()


@contextmanager
def hanging() -> Iterator[Server]:
    """A server that answers only at the end of the block."""
    end = Event()

    def answer(path: str) -> Answer:
        end.wait()
        return 500, {}, b""

    with served(answer) as server:
        try:
            yield server
        finally:
            end.set()


def answers_of(app: webtest.TestApp) -> Callable[[str], Answer]:
    """What an application answers: the `answer` of a Server."""

    def answer(path: str) -> Answer:
        found = app.get(path, expect_errors=True)
        return found.status_int, {"Content-Type": found.content_type}, found.body

    return answer


def recorded_answers(file: Path) -> Callable[[str], Answer]:
    """The answers in a recording: a JSON object per line, with path, status, headers and body.

    As Jolpica-F1 does, it takes a limit above 100 for 100. Raises KeyError for any other request.
    """

    def key(path: str) -> tuple[str, int, str]:
        address, _, query = path.partition("?")
        values = dict(parse_qsl(query))
        return address, min(int(values["limit"]), 100), values["offset"]

    answers: dict[tuple[str, int, str], Answer] = {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for each in map(json.loads, lines):
            if "&offset=" in each["path"]:
                answer = each["status"], each["headers"], each["body"].encode()
                answers[key(each["path"])] = answer
    return lambda path: answers[key(path)]


def hurried(now: Callable[[], float] = time.time) -> Pace:
    """A pace without any waiting."""
    return Pace(clock=lambda: 0, sleep=lambda seconds: None, now=now)


def refreshed(
    database: Path, *addresses: str, season: int | None = None, now: float | None = None
) -> tuple[list[str], int]:
    """Refreshes a database without waiting. Returns its messages and the number of requests."""
    said: list[str] = []
    new_pace = partial(hurried, time.time if now is None else lambda: now)
    refresh = Refresh(
        loader_settings(database, CORRECTIONS), addresses, season, lambda text: None, new_pace
    )
    refresh.run(said.append)
    return said, sum(source.pace.requests for source in refresh.sources)

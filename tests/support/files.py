"""A server of one file, such as a database: with an entity tag, or broken."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from support.apis import running


class FileServer:
    """Serves `content` at `url`, and at every other path.

    `asked` collects the method and status of each answer. `fault` answers instead, if it is set.
    """

    def __init__(self, content: bytes) -> None:
        self.content, self.etag = content, f'"{content[-32:].hex()}"'
        self.asked: list[tuple[str, int]] = []
        self.tags: list[str | None] = []  # the If-None-Match of each request
        self.fault: Callable[[BaseHTTPRequestHandler], object] | None = None
        self.url = ""

    def publish(self, content: bytes) -> None:
        self.content, self.etag = content, f'"{content[-32:].hex()}"'

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        given = handler.headers["If-None-Match"]
        self.tags.append(given)
        if self.fault:
            self.asked.append((handler.command, 0))
            self.fault(handler)
            return
        status = 304 if self.etag and self.etag in (given or "") else 200
        self.asked.append((handler.command, status))
        handler.send_response(status)
        if self.etag:
            handler.send_header("ETag", self.etag)
        if status == 200:
            handler.send_header("Content-Length", str(len(self.content)))
        handler.end_headers()
        if status == 200 and handler.command == "GET":
            handler.wfile.write(self.content)


@contextmanager
def served_file(content: bytes) -> Iterator[FileServer]:
    """A server on a free port."""
    server = FileServer(content)
    with running(server):
        server.url = server.url.replace("/ergast/f1", "/racedata.db")
        yield server


def answer(status: int, body: bytes = b"", **headers: str) -> Callable[..., object]:
    """A fault that is an answer. Header names are written with _ for -."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return send

"""Clients of a real service: one request, or many connections that send at once or with pauses."""

import asyncio
import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from math import inf

from racedata.service.worker import LINGER_SECONDS
from support.processes import Address, Site

SECONDS = 3  # of a flood
ADDRESS = "/ergast/f1/2023/18.json"
FOUR_WORKERS = {"WEB_CONCURRENCY": "4", "RACEDATA_TRUSTED_PROXIES": ""}

Headers = Iterable[tuple[str, str]]


def get(
    site: Site, path: str = ADDRESS, source: str = "127.0.0.1", method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    """The response to a request and its body. Each `source` address is a client; `_` in names of
    headers means `-`.
    """
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection(*site, source_address=(source, 0), timeout=60)
    with closing(connection):
        connection.request(method, path, headers=sent)
        response = connection.getresponse()
        return response, response.read()


class Client:
    """One client with several connections to `path`, for some seconds or a number of requests, or
    until `stop` is called.

    `headers` are pairs, or a function that makes new ones for each request. After `run`: `statuses`
    counts the answers by status, `answers` by connection, `bodies` has each different body,
    `broken` counts connections that broke, `overtaken` those of them that ended without a byte,
    after so long without a request that a worker that ends may have closed them while the next one
    was sent: HTTP/1.1 cannot prevent that (RFC 9112, 9.5). In seconds of time.monotonic, `began` is
    when the first request was sent, `answered` when the first answer came, `refused` when the last
    request was sent that got a 429, and `ended` when the last answer came.
    """

    def __init__(
        self,
        path: str,
        seconds: float = inf,
        connections: int = 1,
        pause: float = 0,
        source: str | None = None,
        headers: Headers | Callable[[], Headers] = (),
        requests: float = inf,
    ) -> None:
        self.path, self.seconds, self.connections, self.pause = path, seconds, connections, pause
        self.source, self.requests, self.headers = source, requests, headers
        self.statuses: Counter[int] = Counter()
        self.answers = [0] * connections
        self.bodies: set[bytes] = set()
        self.broken = self.overtaken = 0

    async def run(self, address: Address) -> None:
        self.began = self.ended = self.refused = time.monotonic()
        self.answered = inf
        await asyncio.gather(
            *(self.keep_requesting(address, number) for number in range(self.connections))
        )

    def stop(self) -> None:
        """Lets it send no further request."""
        self.requests = 0

    def goes_on(self) -> bool:
        return self.requests > 0 and time.monotonic() < self.began + self.seconds

    def request(self) -> bytes:
        self.requests -= 1
        headers = self.headers() if callable(self.headers) else self.headers
        fields = ("Host: localhost", *(f"{name}: {value}" for name, value in headers))
        return "\r\n".join([f"GET {self.path} HTTP/1.1", *fields, "", ""]).encode("latin-1")

    async def keep_requesting(self, address: Address, number: int) -> None:
        while self.goes_on():
            writer = None
            heard = sent = written = time.monotonic()
            try:
                assert isinstance(address, tuple)
                reader, writer = await asyncio.open_connection(
                    *address, local_addr=self.source and (self.source, 0)
                )
                while self.goes_on():
                    heard, sent = sent, time.monotonic()
                    writer.write(self.request())
                    written = time.monotonic()
                    status, body, closed = await answer(reader)
                    self.statuses[status] += 1
                    self.answers[number] += 1
                    self.bodies.add(body)
                    self.ended = time.monotonic()
                    self.answered = min(self.answered, self.ended)
                    if status == 429:
                        self.refused = max(self.refused, sent)
                    if self.pause:
                        await asyncio.sleep(self.pause)
                    if closed:
                        break
            except (ConnectionError, asyncio.IncompleteReadError) as error:
                self.broken += 1
                was_idle = written - heard >= LINGER_SECONDS  # for the server, at most
                self.overtaken += was_idle and not getattr(error, "partial", b"")
                await asyncio.sleep(0.02)
            finally:
                if writer:
                    writer.close()


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes, bool]:
    """A whole answer: status, body, and whether the server closes the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.split(b":", 1) for line in head.lower().split(b"\r\n")[1:] if line)
    body = await reader.readexactly(int(fields[b"content-length"]))
    return int(head.split()[1]), body, fields.get(b"connection", b"").strip() == b"close"


def run(address: Address, *clients: Client) -> None:
    """Runs the clients at the same time, until all have ended."""

    async def together() -> None:
        await asyncio.gather(*(client.run(address) for client in clients))

    asyncio.run(together())


@contextmanager
def traffic(address: Address, *clients: Client) -> Iterator[threading.Event]:
    """The clients send requests up to their end; if they have none, up to the end of the block.
    Yields an Event, set when they have ended.
    """
    ended, failures = threading.Event(), list[BaseException]()

    def send() -> None:
        try:
            run(address, *clients)
        except BaseException as error:
            failures.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield ended
    finally:
        for client in clients:
            if client.seconds == client.requests == inf:
                client.stop()
    thread.join()
    for failure in failures:
        raise failure


def assert_served(*clients: Client, may_overtake: bool = False) -> None:
    """Asserts that every request was answered with a 200, and no connection broke.

    `may_overtake` says whether workers end in the meantime, and so close idle connections.
    """
    for client in clients:
        assert set(client.statuses) == {200}
        assert client.broken == (client.overtaken if may_overtake else 0)


def assert_limited(*clients: Client, quota: int, per_second: float, lost: int = 0) -> None:
    """Asserts that clients that kept asking got as many 200s as one limit allows.

    `lost` of them may be missing.

    The service decides later than a request is sent, and earlier than its answer comes. So the
    times between which tokens came back are known only within bounds, which are wide on a busy
    machine.
    """
    statuses = sum((client.statuses for client in clients), Counter[int]())
    longest = max(client.ended for client in clients) - min(client.began for client in clients)
    shortest = max(client.refused for client in clients) - min(
        client.answered for client in clients
    )
    # At the last refusal, less than a token is left.
    assert quota + per_second * shortest - 1 - lost < statuses[200] <= quota + per_second * longest
    assert set(statuses) == {200, 429}
    assert statuses[429] > 100

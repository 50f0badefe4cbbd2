"""Rate limits: two limits, stores with a clock that a test moves, and a Redis that misbehaves."""

import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from racedata.service.ratelimit.local_store import LocalStore
from racedata.service.ratelimit.redis_store import RedisStore
from racedata.settings import Rate

BURST, SUSTAINED = Rate("burst", 4, 1), Rate("sustained", 500, 3600)
SECOND = 1_000_000  # microseconds
NOW = 10**12  # microseconds

Answer = Callable[[socket.socket, bytes], object]


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: int = 0) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def local_store(clients: int = 1024, limits: Sequence[Rate] = (BURST, SUSTAINED)) -> LocalStore:
    """A LocalStore; its `clock` is a Clock."""
    return LocalStore(limits, clients, Clock(NOW))


@contextmanager
def redis_store(
    url: str,
    limits: Sequence[Rate] = (BURST, SUSTAINED),
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[RedisStore]:
    """A RedisStore; its connections end with the block."""
    store = RedisStore(url, LocalStore(limits, 1024, Clock(NOW)), clock)
    try:
        yield store
    finally:
        store.redis.close()


def allowed(store: LocalStore | RedisStore, client: bytes, requests: int) -> int:
    """How many requests of `client` the store allows, out of `requests`."""
    return sum(store.take(client).refused_by is None for _ in range(requests))


class FakeRedis:
    """`url` names it; `commands` are the EVAL commands it has received, as bytes."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.commands: list[bytes] = []


def ok(connection: socket.socket, command: bytes) -> None:
    connection.sendall(b"+OK\r\n")


@contextmanager
def fake_redis(
    answer: Answer, set_up: Answer = ok, tls: ssl.SSLContext | None = None
) -> Iterator[FakeRedis]:
    """Runs a FakeRedis on a free port, with TLS if there is a context for it.

    It calls `answer` for each EVAL command, and `set_up` for the commands that redis-py sends first
    on a connection.
    """

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):  # the client has closed the connection
                while command := self.request.recv(65536):
                    if b"EVAL" in command:
                        fake.commands.append(command)
                        answer(self.request, command)
                    else:
                        set_up(self.request, command)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        fake = FakeRedis(f"{'rediss' if tls else 'redis'}://localhost:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield fake
        finally:
            server.shutdown()
            thread.join()

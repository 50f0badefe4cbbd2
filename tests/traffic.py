"""Clients of a real service: many connections at once, each asking again as soon as it has its answer, or at a pace."""

import asyncio
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


class Client:
    """One client that asks for `path` over some connections at once, for so many seconds.

    After `run`: `statuses` counts the answers, `bodies` has those that came, `broken` counts connections that broke;
    `began` is when the first request was sent, `ended` when the last answer came, in seconds of time.monotonic.
    """

    def __init__(self, path, seconds, connections=1, pause=0, source=None, headers=()):
        self.path, self.seconds, self.connections, self.pause = path, seconds, connections, pause
        self.source, self.headers = source, headers
        self.statuses, self.bodies, self.broken = Counter(), set(), 0

    async def run(self, address):
        """`address` is (host, port), or the path of a unix socket."""
        lines = [f"GET {self.path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in self.headers)]
        request = "\r\n".join([*lines, "", ""]).encode("latin-1")
        self.began = self.ended = time.monotonic()
        await asyncio.gather(*(self.keep_asking(address, request) for _ in range(self.connections)))

    async def keep_asking(self, address, request):
        while time.monotonic() < self.began + self.seconds:
            writer = None
            try:
                reader, writer = await asyncio.open_connection(*address, local_addr=self.source and (self.source, 0))
                while time.monotonic() < self.began + self.seconds:
                    status, body, closed = await asyncio.wait_for(ask(reader, writer, request), timeout=20)
                    self.statuses[status] += 1
                    self.bodies.add(body)
                    self.ended = time.monotonic()
                    if self.pause:
                        await asyncio.sleep(self.pause)
                    if closed:
                        break
            except (ConnectionError, asyncio.IncompleteReadError):
                self.broken += 1
                await asyncio.sleep(0.02)
            finally:
                if writer:
                    writer.close()


async def ask(reader, writer, request):
    """Sends a request and reads its answer whole; returns its status, its body, and whether it was the last one."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.split(b":", 1) for line in head.lower().split(b"\r\n")[1:] if line)
    body = await reader.readexactly(int(fields[b"content-length"]))
    return int(head.split()[1]), body, fields.get(b"connection", b"").strip() == b"close"


@contextmanager
def asking(address, *clients):
    """The clients ask while the block is at work; yields an Event that is set when they have ended."""
    ended = threading.Event()

    def ask():
        try:
            run(address, *clients)
        finally:
            ended.set()

    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(ask)
        yield ended
        asked.result()


def run(address, *clients):
    """Lets the clients ask at the same time, until all have ended."""

    async def together():
        await asyncio.gather(*(client.run(address) for client in clients))

    asyncio.run(together())

"""Clients of a real service: many connections at once, each sending its next request at once or after a pause."""

import asyncio
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import inf


class Client:
    """One client that requests `path` over several connections at once, for some seconds or a number of requests.

    `headers` are pairs, or a function that makes new ones for each request. After `run`: `statuses` counts the answers
    by status, `bodies` has each different body, `broken` counts connections that broke. In seconds of time.monotonic,
    `began` is when the first request was sent, `answered` when the first answer came, `refused` when the last request
    was sent that got a 429, and `ended` when the last answer came.
    """

    def __init__(self, path, seconds=inf, connections=1, pause=0, source=None, headers=(), requests=inf):
        self.path, self.seconds, self.connections, self.pause = path, seconds, connections, pause
        self.source, self.requests = source, requests
        self.headers = headers if callable(headers) else lambda: headers
        self.statuses, self.bodies, self.broken = Counter(), set(), 0

    async def run(self, address):
        """`address` is (host, port), or the path of a unix socket."""
        self.began = self.ended = self.refused = time.monotonic()
        self.answered = inf
        await asyncio.gather(*(self.keep_requesting(address) for _ in range(self.connections)))

    def goes_on(self):
        return self.requests > 0 and time.monotonic() < self.began + self.seconds

    def request(self):
        self.requests -= 1
        fields = ("Host: localhost", *(f"{name}: {value}" for name, value in self.headers()))
        return "\r\n".join([f"GET {self.path} HTTP/1.1", *fields, "", ""]).encode("latin-1")

    async def keep_requesting(self, address):
        while self.goes_on():
            writer = None
            try:
                reader, writer = await asyncio.open_connection(*address, local_addr=self.source and (self.source, 0))
                while self.goes_on():
                    sent = time.monotonic()
                    status, body, closed = await asyncio.wait_for(exchange(reader, writer, self.request()), timeout=20)
                    self.statuses[status] += 1
                    self.bodies.add(body)
                    self.ended = time.monotonic()
                    self.answered = min(self.answered, self.ended)
                    if status == 429:
                        self.refused = max(self.refused, sent)
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


async def exchange(reader, writer, request):
    """Sends a request and reads the whole answer: status, body, and whether the server closes the connection."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.split(b":", 1) for line in head.lower().split(b"\r\n")[1:] if line)
    body = await reader.readexactly(int(fields[b"content-length"]))
    return int(head.split()[1]), body, fields.get(b"connection", b"").strip() == b"close"


@contextmanager
def traffic(address, *clients):
    """The clients send requests while the block runs; yields an Event that is set when they have ended."""
    ended = threading.Event()

    def send():
        try:
            run(address, *clients)
        finally:
            ended.set()

    with ThreadPoolExecutor(1) as thread:
        sent = thread.submit(send)
        yield ended
        sent.result()


def run(address, *clients):
    """Runs the clients at the same time, until all have ended."""

    async def together():
        await asyncio.gather(*(client.run(address) for client in clients))

    asyncio.run(together())

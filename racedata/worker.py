"""How a process waits for its clients, and all else that uses internals of gunicorn.

With a version of gunicorn that was not tested, importing this raises ImportError. Then gunicorn_conf.py falls back to
gunicorn's own threaded worker, which sends the same answers. What is lost:

- Slow clients and slow answers can delay others, and requests take more CPU time.
- A killed worker can leave half of an answer. A worker told to stop while it starts ends only after `graceful_timeout`.
- Malformed requests can fill the log.
- gunicorn's `certfile` is accepted. `on_starting` below refuses it, because Worker has no TLS.
"""

import os
import re
import selectors
import signal
import socket
import time
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from functools import partial
from typing import Any

import gunicorn
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.http.errors import LimitRequestHeaders
from gunicorn.http.message import Request
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, TConn, ThreadWorker

from racedata.settings import read_settings, stop

TESTED = ("27.0.1",)
if gunicorn.__version__ not in TESTED:
    raise ImportError(f"gunicorn {gunicorn.__version__} was not tested, only {' and '.join(TESTED)}")

HEAD_END = b"\r\n\r\n"  # the head is the request line and the headers
LINGER_SECONDS = 1  # for clients that send nothing while a worker stops; gunicorn's own time is two seconds
HEAD_SIZE = 32768  # bytes, as in deploy/nginx.conf
# The request line of a slow answer: a calendar, which may have all races, or a page of more than 100 records. `*+` does
# not read a path twice.
SLOW = re.compile(rb"\S+ [^?#\s]*+(?:(?<=\.[iI][cC][sS])[?# ]|\?(?:\S*&)?limit=0*(?!100\b)[1-9][0-9]{2})")
# The letters, digits and dots that SLOW names, escaped. Other escapes stay: an escaped `&` or `=` separates nothing.
ESCAPED = re.compile(rb"%(2[Ee]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])")
REUSABLE = futures.Future[bool]()
REUSABLE.set_result(True)


class Collector:
    """A socket that only collects what is to be sent."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.parts = sock, list[bytes]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sock, name)

    def sendall(self, part: bytes) -> None:
        self.parts.append(part)

    send = sendall


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's threaded worker, which waits for clients without threads.

    gunicorn has a pool of threads, and occupies one from the start of a request until the client has received the
    response. Handing a request over to the pool and back takes longer than most answers, and four slow clients block
    it. Here, the main thread handles each request that has arrived completely. It waits with a selector until a client
    sends, reads and closes. The pool is used only if the setting `threads` is more than 1.

    A page of 2,000 records takes as long as a hundred usual answers, and a calendar of all races as long as a
    thousand. A thread makes such slow answers, one after the other, so that other clients need not wait for them.

    The headers and the body of a response are sent together. gunicorn sends one after the other, so if a worker is
    killed in between, a client gets half of an answer. Now it gets none, and nginx sends the request to another worker.
    """

    def init_process(self) -> None:
        self.slow_answers = futures.ThreadPoolExecutor(1)
        # gunicorn looks up 20 settings per request, each with a call of __getattr__. As attributes they need none.
        self.cfg.__dict__.update({name: setting.get() for name, setting in self.cfg.settings.items()})
        super().init_process()

    def init_signals(self) -> None:
        # Since the fork, the handler of the master has put this worker's signals into a copy of the master's queue.
        # Deliver them: a worker that misses a signal to stop runs until the master kills it after `graceful_timeout`.
        handler: Any = signal.getsignal(signal.SIGTERM)
        received = handler.__self__.SIG_QUEUE
        super().init_signals()
        while not received.empty():
            if (number := received.get()) in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
                os.kill(os.getpid(), number)

    def enqueue_req(self, conn: TConn) -> None:
        if not (conn.initialized or conn.data_ready):
            conn.unsent = b""
            self.wait(conn, selectors.EVENT_READ, self.on_pending_socket_readable)
            return
        conn.init()
        unreader = conn.parser.unreader
        data, closed = unreader.take_buffered(), False
        if HEAD_END not in data:
            try:
                received = conn.sock.recv(8192, socket.MSG_DONTWAIT)
                data, closed = data + received, not received
            except BlockingIOError:
                pass
            except OSError:
                closed = True
        unreader.unread(data)
        slow = is_slow(data)
        if HEAD_END in data and (slow or self.cfg.threads > 1):
            future = (self.slow_answers if slow else self.tpool).submit(self.handle, conn)
            future.add_done_callback(partial(self.method_queue.defer, self.finish_request, conn))
        elif HEAD_END in data or closed or is_malformed(data, self.cfg.limit_request_line):
            self.handle(conn)
            self.send(conn)
        elif len(data) > HEAD_SIZE:
            self.handle(conn, LimitRequestHeaders(f"longer than {HEAD_SIZE} bytes"))
            self.send(conn)
        else:
            self.wait(conn, selectors.EVENT_READ, self.on_pending_socket_readable)

    def handle(self, conn: TConn, refusal: Exception | None = None) -> None:
        """Handles a request, or refuses it. Sets `conn.unsent` to the response, and `conn.reusable`."""
        conn.sock = collector = Collector(conn.sock)
        try:
            if refusal:
                self.handle_error(None, conn.sock, conn.client, refusal)
            conn.reusable = not refusal and super().handle(conn)
        finally:
            conn.sock = collector.sock
        conn.unsent = memoryview(b"".join(collector.parts))

    def handle_request(self, req: Request, conn: TConn) -> bool:
        # No answer depends on the body of a request, so it is not read, and the connection ends after the answer.
        if getattr(req.body.reader, "length", None) != 0:
            req.force_close()
        reusable: bool = super().handle_request(req, conn)
        return reusable

    def finish_request(self, conn: TConn, future: object) -> None:
        self.send(conn)

    def send(self, conn: TConn) -> None:
        """Sends as much of the response as the kernel takes, and continues when the client has read some of it."""
        try:
            conn.unsent = conn.unsent[conn.sock.send(conn.unsent, socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            pass
        except OSError:  # the client has closed the connection
            conn.reusable, conn.unsent = False, b""
        if conn.unsent:
            self.wait(conn, selectors.EVENT_WRITE, self.on_pending_socket_writable)
            return
        conn.unsent = b""  # an empty memoryview would keep the response in memory
        if not conn.reusable:
            with suppress(OSError):
                conn.sock.shutdown(socket.SHUT_WR)
            self.wait(conn, selectors.EVENT_READ, self.on_closing_socket_readable)
        elif conn.parser.unreader.buf.getvalue():
            # The next pipelined request waits for the next round of the selector, so that other clients get their turn.
            # That is soon, because a socket is nearly always writable.
            self.wait(conn, selectors.EVENT_WRITE, self.on_pending_socket_readable)
        else:
            super().finish_request(conn, REUSABLE)

    def wait(self, conn: TConn, event: int, callback: Callable[[TConn, socket.socket], None]) -> None:
        """Calls back when the client has sent or read something. Closes the connection if `keepalive` passes first."""
        conn.set_timeout()
        self.pending_conns.append(conn)
        if not self.alive:
            self._cap_keepalive(time.monotonic() + STOP_KEEPALIVE_LINGER)
        self.poller.register(conn.sock, event, partial(callback, conn))

    def _cap_keepalive(self, deadline: float) -> None:
        # gunicorn calls this when the worker stops, so that clients who send nothing do not delay that. New and closing
        # connections are like kept-alive ones. A client that still receives a response has more time.
        deadline = min(deadline, time.monotonic() + LINGER_SECONDS)
        super()._cap_keepalive(deadline)
        for conn in self.pending_conns:
            if not conn.unsent:
                conn.timeout = min(conn.timeout, deadline)

    def on_pending_socket_writable(self, conn: TConn, sock: socket.socket) -> None:
        self.poller.unregister(sock)
        self.pending_conns.remove(conn)
        self.send(conn)

    def on_closing_socket_readable(self, conn: TConn, sock: socket.socket) -> None:
        # Discard what the client still sends until it closes: if the worker closed first, the system would reset the
        # connection, and the client might lose the end of the response.
        try:
            if sock.recv(65536, socket.MSG_DONTWAIT):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.poller.unregister(sock)
        self.pending_conns.remove(conn)
        self.nr_conns -= 1
        conn.close()


def is_slow(data: bytes) -> bool:
    """Whether the answer to a request that begins like this may be slow."""
    line = data.partition(b"\r\n")[0]
    if b"%" in line:
        line = ESCAPED.sub(lambda escape: bytes.fromhex(escape[1].decode()), line)
    return SLOW.match(line) is not None


def is_malformed(data: bytes, limit_request_line: int) -> bool:
    """Whether gunicorn would refuse a request that begins like this, whatever follows."""
    line = data.partition(b"\r\n")[0]
    return len(line) > limit_request_line + 2 or data.count(b"\n") != data.count(b"\r\n")


class Log(Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's log, with at most one line of 200 characters per second and worker about malformed requests.

    gunicorn logs each of them in full, before the rate limits apply, so one client could fill the disk.
    """

    next_malformed = 0.0  # not before this time.monotonic()

    def warning(self, msg: str, *args: object, **kwargs: object) -> None:
        if msg.startswith("Invalid request from ip="):
            now = time.monotonic()
            if now < self.next_malformed:
                return
            self.next_malformed = now + 1
            msg = msg[:150]  # time, process and level come before it
        super().warning(msg, *args, **kwargs)


def on_starting(server: Arbiter) -> None:
    """Ends with one line if the service cannot start."""
    if server.cfg.is_ssl:  # which Worker lacks
        stop("certfile and keyfile are not accepted: let nginx do TLS (deploy/nginx.conf)")
    if "GUNICORN_FD" in os.environ or "LISTEN_FDS" in os.environ:
        return  # the sockets are inherited
    # gunicorn would retry for five seconds. This socket does not listen: clients that connect to it would be reset.
    for host, port in (address for address in server.cfg.address if isinstance(address, tuple)):
        try:
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind((host, port))
        except OSError as error:
            reason = (error.strerror or "").partition(" (")[0]
            stop(f"HOST={host} PORT={port}: cannot listen there: {reason}")


def when_ready(server: Arbiter) -> None:
    """Logs two requests to try."""
    address = str(server.LISTENERS[0])
    if address.startswith("http"):  # else it is a unix socket
        base = address + read_settings().base_address
        server.log.info("Try: curl '%s/2023/races/'", base)
        server.log.info("Try: curl '%s/2023/18/laps.json?limit=5&offset=45'", base)

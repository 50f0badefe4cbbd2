"""A worker class for gunicorn: how a process waits for its clients, and sends them whole responses.

It uses internals of gunicorn, so pyproject.toml limits its version.
"""

import selectors
import socket
import time
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from functools import partial
from typing import Any

from gunicorn.http.errors import LimitRequestHeaders
from gunicorn.http.message import Request
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, TConn, ThreadWorker

HEAD_END = b"\r\n\r\n"  # the head is the request line and the headers
HEAD_SIZE = 32768  # bytes, as in deploy/nginx.conf
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
    sends, reads and closes. The pool is used only if `uses_pool` is true.

    The headers and the body of a response are sent together. gunicorn sends one after the other, so if a worker is
    killed in between, a client gets half of an answer. Now it gets none, and nginx sends the request to another worker.
    """

    uses_pool = False  # whether to make an answer may block, such as the decision of a Redis about a rate limit
    place = 0  # from 0 to the number of workers; during a reload, an old and a new worker have the same place

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
        if HEAD_END in data and self.uses_pool:
            super().enqueue_req(conn)
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
            # Of pipelined requests, one per round of the selector, which reports a writable socket at once.
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


def is_malformed(data: bytes, limit_request_line: int) -> bool:
    """Whether gunicorn refuses a request of which it only knows this beginning."""
    line = data.partition(b"\r\n")[0]
    return len(line) > limit_request_line + 2 or data.count(b"\n") != data.count(b"\r\n")

"""Waits for clients: a gunicorn worker that serves all clients of a process with one epoll.

It uses gunicorn's base class, parser, WSGI environment and response. It does not know which
answers are slow, how a file is sent (the application does both, as environment.py says), or how
gunicorn is configured (server.py).
"""

import os
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from io import BytesIO
from typing import Any, TypeAlias

from gunicorn import http
from gunicorn.http import wsgi
from gunicorn.http.errors import LimitRequestHeaders, NoMoreData
from gunicorn.workers.base import Worker as BaseWorker

from racedata.service.environment import IS_BUSY, FileBody, SlowBody

HEAD_END = b"\r\n\r\n"  # the head is the request line and the headers
HEAD_BYTES = 32_768  # as in deploy/nginx.conf
SLOW_ANSWERS = 100  # that may wait for the thread: a few seconds' work, if each has 2,000 records
SWEEP_SECONDS = 0.25  # between two looks at the deadlines of all connections
LINGER_SECONDS = 1  # how long a stopping worker keeps clients that are not awaiting an answer
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
# What a wait for a client ends with: it has sent something; it can take more; it has closed its
# sending side, or both; it has closed both.
READ, WRITE, HALF_CLOSED, CLOSED = (
    select.EPOLLIN,
    select.EPOLLOUT,
    select.EPOLLRDHUP,
    select.EPOLLHUP,
)


class Connection:
    """A client's connection. When its socket has the `event`, the worker calls `proceed`.

    This is one of its methods:

    - `receive`: until the head of a request has arrived;
    - `drop`: while another thread calls the application, if the client has CLOSED the connection;
    - `drop`: while the request waits for a slow answer, even if it is only HALF_CLOSED;
    - `send`: until the response is sent;
    - `handle_pipelined`: after it, if it came together with the next request, or a part of it;
    - `discard`: after the last response, until the client closes the connection.
    """

    def __init__(self, sock: socket.socket, client: Any, server: Any) -> None:
        self.sock = sock
        self.client = client
        self.server = server
        self.input = b""  # from the start of the next request on
        self.output = memoryview(b"")
        self.rest: Iterator[bytes] = iter(())  # what to send after the output, in pieces
        self.is_last = False  # whether the connection ends after this response
        self.event = 0  # what the worker waits for: READ, WRITE, HALF_CLOSED or CLOSED
        self.proceed: Callable[[Connection], None] = lambda connection: None
        self.deadline = 0.0  # when the wait ends, by time.monotonic()
        self.future: Future[Step | None] | None = None  # of a thread that works for it


class Collector(BytesIO):
    """Takes a response as a socket would, so that all of it can be sent at once."""

    send = sendall = BytesIO.write

    def gettimeout(self) -> float:
        return 0.0


# What a thread does for a response. It returns the next step, or None if the response is complete.
Step: TypeAlias = Callable[[], "Step | None"]


class Worker(BaseWorker):  # type: ignore[misc]  # gunicorn has no types
    """A worker in which no client waits for a slow one, and no client gets half an answer.

    In gunicorn's own worker with threads, a few clients that send or read slowly occupy all
    threads. It also sends headers and body separately: if it is killed in between, the client gets
    half an answer, which nginx cannot repeat. Here one epoll waits for all clients, each request
    is handled once its head has arrived, and headers and body are sent together.

    No answer depends on the body of a request: the body is not read, and the connection ends after
    the response.

    environment.py describes what the application returns, how slow answers are made, and how long
    other clients may wait for one of them.

    With a Redis, even the call of the application may wait. Then `threads` (server.py) is more than
    1, and that many other threads call it, so that these calls do not wait for slow answers. With
    or without a Redis, a client that has closed only its sending side gets all answers but slow
    ones.

    Only a file follows its headers piece by piece.
    """

    def init_process(self) -> None:
        self.epoll = select.epoll()  # which, unlike `selectors`, can wait for HALF_CLOSED
        self.listeners: dict[int, Any] = {}  # by file descriptor; empty if it does not accept
        self.connections: dict[int, Connection] = {}  # by file descriptor
        self.slow: set[Connection] = set()  # those of them that wait for `slow_answers`
        self.slow_answers = ThreadPoolExecutor(1)
        self.callers = ThreadPoolExecutor(self.cfg.threads) if self.cfg.threads > 1 else None
        self.next_sweep = 0.0  # when it looks at all deadlines, by time.monotonic()
        self.thread_results: deque[tuple[Connection, Step | None]] = deque()
        super().init_process()

    def init_signals(self) -> None:
        super().init_signals()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)  # server.py has blocked them

    def run(self) -> None:
        self.epoll.register(self.PIPE[0], READ)
        for listener in self.sockets:
            listener.setblocking(False)
        try:
            while self.alive and self.ppid == os.getppid():
                self.accept_if(len(self.connections) < self.cfg.worker_connections)
                self.handle_events()
            self.stop()
        finally:
            self.close_listeners()
            # No client waits for them any more.
            self.slow_answers.shutdown(wait=False, cancel_futures=True)

    def stop(self) -> None:
        """Answers the requests that have arrived, for `graceful_timeout` seconds at most."""
        # Accepts clients that have already connected: no other worker may be left to do so.
        for listener in self.sockets:
            while len(self.connections) < self.cfg.worker_connections and self.accept(listener):
                pass
        self.accept_if(False)
        self.close_listeners()
        begin = time.monotonic()
        while self.connections and time.monotonic() < begin + self.cfg.graceful_timeout:
            for connection in self.connections.values():
                if not connection.output:
                    connection.deadline = min(connection.deadline, begin + LINGER_SECONDS)
            self.handle_events()

    def close_listeners(self) -> None:
        """Closes this worker's sockets, so that nobody connects to a service that is ending."""
        for listener in self.sockets:
            listener.close()

    def accept_if(self, is_accepting: bool) -> None:
        if is_accepting == bool(self.listeners):
            return
        for number in self.listeners:
            self.epoll.unregister(number)
        self.listeners = {each.fileno(): each for each in self.sockets} if is_accepting else {}
        for number in self.listeners:
            self.epoll.register(number, READ)

    def handle_events(self) -> None:
        """Waits for events for a second at most, and handles the first ones."""
        self.notify()
        for number, _ in self.epoll.poll(1):
            if connection := self.connections.get(number):
                connection.proceed(connection)
            elif number == self.PIPE[0]:  # a signal, or a thread that is done
                os.read(number, 4096)
            else:
                self.accept(self.listeners[number])
        while self.thread_results:
            connection, step = self.thread_results.popleft()
            if connection.future:  # its client has not gone
                connection.future = None
                self.slow.discard(connection)
                self.send_or_continue(connection, step)
        if time.monotonic() >= self.next_sweep:
            self.close_late()

    def close_late(self) -> None:
        now = time.monotonic()
        self.next_sweep = now + SWEEP_SECONDS
        for connection in [*self.connections.values()]:
            if connection.deadline < now and not connection.future:
                self.close(connection)

    def accept(self, listener: Any) -> bool:
        try:
            sock, client = listener.accept()
        # Another worker was faster, the client has gone, or the system has no free file at the
        # moment.
        except OSError:
            return False
        sock.setblocking(False)
        # The name of a unix client is its own choice, and could be an IP address.
        connection = Connection(
            sock, client if isinstance(client, tuple) else "", listener.getsockname()
        )
        self.connections[sock.fileno()] = connection
        self.wait(connection, READ, self.receive)
        return True

    def wait(
        self, connection: Connection, event: int, proceed: Callable[[Connection], None]
    ) -> None:
        """Proceeds at the event; closes the connection if it has none for `keepalive` seconds."""
        connection.proceed, connection.deadline = proceed, time.monotonic() + self.cfg.keepalive
        if not connection.event:
            self.epoll.register(connection.sock, event)
        elif event != connection.event:
            self.epoll.modify(connection.sock, event)
        connection.event = event

    def close(self, connection: Connection) -> None:
        self.epoll.unregister(connection.sock)
        del self.connections[connection.sock.fileno()]
        connection.sock.close()

    def receive(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(8192)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close(connection)
            return
        if not connection.input:  # `keepalive` seconds for the whole head
            connection.deadline = time.monotonic() + self.cfg.keepalive
        connection.input += data
        self.handle_received(connection)

    def handle_pipelined(self, connection: Connection) -> None:
        """Handles the next request, or waits for the rest of its head."""
        if not self.handle_received(connection):
            self.wait(connection, READ, self.receive)

    def handle_received(self, connection: Connection) -> bool:
        """Handles the next request if its head has arrived; refuses input that cannot be a head.

        Returns whether it did one of these.
        """
        head, end, rest = connection.input.partition(HEAD_END)
        if len(head) > HEAD_BYTES:
            self.refuse(connection, None, LimitRequestHeaders(f"longer than {HEAD_BYTES} bytes"))
            self.send(connection)
        elif end:
            connection.input = rest
            answer = partial(self.answer, connection, head + end)
            if self.callers:
                self.do_in_thread(self.callers, connection, answer)
            else:
                self.send_or_continue(connection, answer())
        elif is_malformed(head, self.cfg.limit_request_line):
            self.send_or_continue(connection, self.answer(connection, head))
        else:
            return False
        return True

    def do_in_thread(self, threads: Executor, connection: Connection, step: Step) -> None:
        def done(future: Future[Any]) -> None:
            if future.cancelled():
                return
            if error := future.exception():  # SystemExit, for example
                self.log.error("Error in a thread", exc_info=error)
                connection.output, connection.is_last = memoryview(b""), True
            self.thread_results.append((connection, None if error else future.result()))
            with suppress(BlockingIOError):  # full: then the epoll wakes anyway
                os.write(self.PIPE[1], b".")

        self.wait(connection, HALF_CLOSED if threads is self.slow_answers else CLOSED, self.drop)
        connection.future = threads.submit(step)
        connection.future.add_done_callback(done)

    def drop(self, connection: Connection) -> None:
        """Drops an answer whose client has gone; one that is being made ends in vain."""
        assert connection.future
        connection.future.cancel()
        connection.future = None
        self.slow.discard(connection)
        self.close(connection)

    def send_or_continue(self, connection: Connection, step: Step | None) -> None:
        if step:
            self.slow.add(connection)
            self.do_in_thread(self.slow_answers, connection, step)
        else:
            self.send(connection)

    def answer(self, connection: Connection, head: bytes) -> Step | None:
        """Calls the application. If the answer is slow, the next step is to complete it."""
        request, start = None, datetime.now()
        try:
            request = next(http.get_parser(self.cfg, [head], connection.client))
            writer, environ = wsgi.create(
                request, Collector(), connection.client, connection.server, self.cfg
            )
            environ["wsgi.multithread"] = True
            environ[IS_BUSY] = len(self.slow) >= SLOW_ANSWERS
            has_body = (
                environ.get("CONTENT_LENGTH", "0") != "0" or "HTTP_TRANSFER_ENCODING" in environ
            )
            if has_body:
                writer.force_close()
            body = self.wsgi(environ, writer.start_response)
        except NoMoreData:
            connection.is_last = True
            return None
        except Exception as error:
            self.refuse(connection, request, error)
            return None
        complete = partial(self.complete, connection, body, writer, environ, start)
        if isinstance(body, SlowBody):
            return complete
        complete()
        return None

    def complete(
        self,
        connection: Connection,
        body: Iterable[bytes],
        writer: Any,  # gunicorn's, which writes the response into a Collector
        environ: dict[str, Any],
        start: datetime,
    ) -> None:
        try:
            parts = [] if isinstance(body, FileBody) else [*body]
            if not self.alive:  # which may have ended while the body was made
                writer.force_close()
            if isinstance(body, FileBody):
                writer.sent = body.file.size
            for part in parts:
                writer.write(part)
            writer.close()
            self.log.access(writer, writer.req, environ, datetime.now() - start)
            connection.output = writer.sock.getbuffer()
            connection.rest = iter(body if isinstance(body, FileBody) else ())
            connection.is_last = writer.should_close()
        except Exception as error:
            self.refuse(connection, writer.req, error)
        finally:
            if hasattr(body, "close"):
                body.close()

    def refuse(self, connection: Connection, request: Any, error: Exception) -> None:
        """Sets the response to gunicorn's own for an error."""
        response = Collector()
        self.handle_error(request, response, connection.client, error)
        connection.output, connection.is_last = response.getbuffer(), True

    def send(self, connection: Connection) -> None:
        """Sends as much of the response as the kernel takes, and the rest as the client reads."""
        try:
            left = connection.output[connection.sock.send(connection.output) :]
            # An empty view of the response would keep it in memory.
            connection.output = left or memoryview(next(connection.rest, b""))
        except BlockingIOError:
            pass
        # The client has closed the connection, or something has written into the file.
        except OSError:
            self.close(connection)
            return
        if connection.output:
            self.wait(connection, WRITE, self.send)
        elif connection.is_last:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_WR)
            self.wait(connection, READ, self.discard)
        elif connection.input:
            # The next pipelined request waits for the next round of the epoll, so that other
            # clients get their turn. That is soon, because a socket is nearly always writable.
            self.wait(connection, WRITE, self.handle_pipelined)
        else:
            self.wait(connection, READ, self.receive)

    def discard(self, connection: Connection) -> None:
        """Discards the input until the client closes the connection.

        If the worker closed it first, the system would reset it, and the client might lose the end
        of the response.
        """
        try:
            if connection.sock.recv(65536):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.close(connection)


def is_malformed(data: bytes, limit_request_line: int) -> bool:
    """Whether gunicorn would refuse a request that begins like this, whatever follows."""
    line = data.partition(b"\r\n")[0]
    return len(line) > limit_request_line + 2 or data.count(b"\n") != data.count(b"\r\n")

"""Waits for clients: a gunicorn worker that serves all clients of a process with one epoll.

It uses gunicorn's base class, parser, WSGI environment and response. It does not know which
answers are slow (environment.py), or how gunicorn is configured (server.py).
"""

import os
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple, TypeAlias, TypeVar

from gunicorn import http
from gunicorn.http import wsgi
from gunicorn.http.errors import LimitRequestHeaders, NoMoreData
from gunicorn.workers.base import Worker as BaseWorker

from racedata.service.environment import IS_BUSY

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


class Collector(BytesIO):
    """Takes a response as a socket would, so that all of it can be sent at once."""

    send = sendall = BytesIO.write

    def gettimeout(self) -> float:
        return 0.0


class Response(NamedTuple):
    """What a client gets for a request."""

    output: memoryview = memoryview(b"")
    rest: Iterator[bytes] = iter(())  # to send after it, in pieces
    is_last: bool = True  # whether the connection ends after it


# A response, or what makes it in the thread for slow answers.
Made: TypeAlias = Response | Callable[[], Response]
# Steps of a connection: they yield what to wait for.
Result = TypeVar("Result")
Steps: TypeAlias = Generator[int, None, Result]


class Connection:
    """A client's connection. `steps` answers its requests, and pauses when it must wait."""

    def __init__(self, sock: socket.socket, client: Any, server: Any) -> None:
        self.sock = sock
        self.client = client
        self.server = server
        self.steps: Steps[None]  # `Worker.steps`
        self.event = 0  # what it waits for: READ, WRITE, HALF_CLOSED or CLOSED
        self.deadline = 0.0  # when the wait ends, by time.monotonic()
        self.future: Future[Made] | None = None  # of a thread that works for it

    def recv(self, size: int) -> bytes | None:
        """What the client has sent: None if nothing yet, empty if it has closed its side."""
        with suppress(BlockingIOError):
            return self.sock.recv(size)
        return None


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
    """

    def init_process(self) -> None:
        self.epoll = select.epoll()  # which, unlike `selectors`, can wait for HALF_CLOSED
        self.listeners: dict[int, Any] = {}  # by file descriptor; empty if it does not accept
        self.connections: dict[int, Connection] = {}  # by file descriptor
        self.slow = 0  # how many of them wait for `slow_answers`
        self.slow_answers = ThreadPoolExecutor(1)
        self.callers = ThreadPoolExecutor(self.cfg.threads) if self.cfg.threads > 1 else None
        self.next_sweep = 0.0  # when it looks at all deadlines, by time.monotonic()
        self.done: deque[tuple[Connection, Future[Made]]] = deque()  # by threads
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
                if connection.event == READ:
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
                self.proceed(connection)
            elif number == self.PIPE[0]:  # a signal, or a thread that is done
                os.read(number, 4096)
            else:
                self.accept(self.listeners[number])
        while self.done:
            connection, future = self.done.popleft()
            if connection.future is future:  # its client has not gone
                self.proceed(connection)
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
        connection.steps = self.steps(connection)
        self.proceed(connection)
        return True

    def proceed(self, connection: Connection) -> None:
        """Takes the steps of a connection until it must wait, or ends."""
        try:
            event = next(connection.steps)
        # The client has gone, or something has written into the file that it gets.
        except (StopIteration, OSError):
            self.close(connection)
            return
        if not connection.event:
            self.epoll.register(connection.sock, event)
        elif event != connection.event:
            self.epoll.modify(connection.sock, event)
        connection.event = event

    def close(self, connection: Connection) -> None:
        self.epoll.unregister(connection.sock)
        del self.connections[connection.sock.fileno()]
        connection.steps.close()
        connection.sock.close()

    def extend(self, connection: Connection) -> None:
        connection.deadline = time.monotonic() + self.cfg.keepalive

    def steps(self, connection: Connection) -> Steps[None]:
        """Answers the requests of a connection, one after the other."""
        received, is_last = b"", False
        while not is_last:
            head, received = yield from self.head(connection, received)
            if not head:
                return
            # Not a variable, which would keep the response in memory.
            is_last = yield from self.send(connection, (yield from self.response(connection, head)))
            if received and not is_last:
                # The next pipelined request waits for the next round of the epoll, so that other
                # clients get their turn. That is soon, because a socket is nearly always writable.
                yield WRITE
        # If the worker closed the connection first, the system would reset it, and the client might
        # lose the end of the response.
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_WR)
        self.extend(connection)
        while connection.recv(65536) != b"":
            yield READ

    def head(self, connection: Connection, received: bytes) -> Steps[tuple[bytes, bytes]]:
        """The head of the next request, and what follows it; empty if the client has gone.

        What cannot be the beginning of a head is one too: it is refused.
        """
        self.extend(connection)
        while True:
            head, end, rest = received.partition(HEAD_END)
            if end or len(head) > HEAD_BYTES or is_malformed(head, self.cfg.limit_request_line):
                return head + end, rest
            yield READ
            data = connection.recv(8192)
            if data == b"":
                return b"", b""
            if not received:  # `keepalive` seconds for the whole head
                self.extend(connection)
            received += data or b""

    def response(self, connection: Connection, head: bytes) -> Steps[Response]:
        answer = partial(self.answer, connection, head)
        made = (
            (yield from self.in_thread(self.callers, connection, answer))
            if self.callers
            else answer()
        )
        if not isinstance(made, Response):
            self.slow += 1
            try:
                made = yield from self.in_thread(self.slow_answers, connection, made)
            finally:
                self.slow -= 1
        assert isinstance(made, Response)
        return made

    def in_thread(
        self, threads: Executor, connection: Connection, make: Callable[[], Made]
    ) -> Steps[Made]:
        """What `make` returns in a thread. Raises ConnectionError if the client goes before."""

        def is_done(future: Future[Made]) -> None:
            self.done.append((connection, future))
            with suppress(BlockingIOError):  # full: then the epoll wakes anyway
                os.write(self.PIPE[1], b".")

        future = connection.future = threads.submit(make)
        future.add_done_callback(is_done)
        yield HALF_CLOSED if threads is self.slow_answers else CLOSED
        connection.future = None
        if not future.done():  # if it is being made, it ends in vain
            future.cancel()
            raise ConnectionError
        if error := future.exception():  # SystemExit, for example
            self.log.error("Error in a thread", exc_info=error)
            raise ConnectionError
        return future.result()

    def send(self, connection: Connection, response: Response) -> Steps[bool]:
        """Sends a response, as the client takes it. Returns whether it is the last one."""
        output, rest, is_last = response
        while output:
            with suppress(BlockingIOError):
                left = output[connection.sock.send(output) :]
                output = left or memoryview(next(rest, b""))
            if output:
                self.extend(connection)
                yield WRITE
        return is_last

    def answer(self, connection: Connection, head: bytes) -> Made:
        """Calls the application. If the answer is slow, returns what completes it."""
        request, start = None, datetime.now()
        try:
            if len(head) > HEAD_BYTES + len(HEAD_END):
                raise LimitRequestHeaders(f"longer than {HEAD_BYTES} bytes")
            request = next(http.get_parser(self.cfg, [head], connection.client))
            writer, environ = wsgi.create(
                request, Collector(), connection.client, connection.server, self.cfg
            )
            environ["wsgi.multithread"] = True
            environ[IS_BUSY] = self.slow >= SLOW_ANSWERS
            has_body = (
                environ.get("CONTENT_LENGTH", "0") != "0" or "HTTP_TRANSFER_ENCODING" in environ
            )
            if has_body:
                writer.force_close()
            body = self.wsgi(environ, writer.start_response)
        except NoMoreData:
            return Response()
        except Exception as error:
            return self.refusal(connection, request, error)
        complete = partial(self.complete, connection, body, writer, environ, start)
        return complete if isinstance(body, Generator) else complete()

    def complete(
        self,
        connection: Connection,
        body: Iterable[bytes],
        writer: Any,  # gunicorn's, which writes the response into a Collector
        environ: dict[str, Any],
        start: datetime,
    ) -> Response:
        try:
            is_whole = isinstance(body, list | Generator)
            parts = [*body] if is_whole else []
            if not self.alive:  # which may have ended while the body was made
                writer.force_close()
            for part in parts:
                writer.write(part)
            writer.close()
            if not is_whole:
                writer.sent = writer.response_length  # for the access log
            self.log.access(writer, writer.req, environ, datetime.now() - start)
            rest = iter(() if is_whole else body)
            return Response(writer.sock.getbuffer(), rest, writer.should_close())
        except Exception as error:
            return self.refusal(connection, writer.req, error)
        finally:
            if hasattr(body, "close"):
                body.close()

    def refusal(self, connection: Connection, request: Any, error: Exception) -> Response:
        """gunicorn's own response for an error."""
        collector = Collector()
        self.handle_error(request, collector, connection.client, error)
        return Response(collector.getbuffer())


def is_malformed(data: bytes, limit_request_line: int) -> bool:
    """Whether gunicorn would refuse a request that begins like this, whatever follows."""
    line = data.partition(b"\r\n")[0]
    return len(line) > limit_request_line + 2 or data.count(b"\n") != data.count(b"\r\n")

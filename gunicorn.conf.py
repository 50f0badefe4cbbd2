"""The configuration of gunicorn for racedata. gunicorn loads this file if you start it in this folder.

Some hooks use internals of gunicorn, so setup.cfg limits its version.
"""

import os
import re
import resource
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from functools import partial
from typing import Any

from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.sock import create_sockets
from gunicorn.workers.gthread import TConn, ThreadWorker

from racedata.reload import ReloadingApp
from racedata.settings import CANNOT_START, names_in, read_settings

settings = read_settings()

# Raise the limit of open files to the hard limit: the usual soft limit of 1,024 is for programs that call select().
open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))
# The master has a socket and a temporary file per worker, during a reload also one per new worker.
if open_files < (needed := 3 * settings.workers + 100):
    print(
        f"racedata: WEB_CONCURRENCY={settings.workers} needs {needed} open files: expected fewer workers, or more than "
        f"the {open_files} files that the system allows (ulimit -n)",
        file=sys.stderr,
    )
    sys.exit(CANNOT_START)

wsgi_app = "racedata.app:get_app()"

# `gunicorn --bind unix:…` replaces this, once or several times (deploy/racedata.service).
bind = f"[{settings.host}]:{settings.port}" if ":" in settings.host else f"{settings.host}:{settings.port}"

# Load the application once, before the workers are forked. Then they share the memory of the rate limits, also after a
# restart or reload of workers, and a wrong setting or database is reported only once.
preload_app = True


class Collector:
    """A socket whose sendall() only collects what is to be sent."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.parts = sock, list[bytes]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sock, name)

    def sendall(self, part: bytes) -> None:
        self.parts.append(part)


class Worker(ThreadWorker):
    """gunicorn's threaded worker, with three differences.

    A new connection waits for its first byte without a thread. In gunicorn, it occupies a thread for up to 5 s, so a
    few silent connections block a worker. TCP_DEFER_ACCEPT only delays that: after its timeout, the kernel passes on
    silent connections too.

    The headers and the body of a response are sent together. gunicorn sends one after the other, so if a worker is
    killed in between, a client gets half of an answer. Now it gets none, and nginx sends the request to another worker.

    The main thread itself handles a request that has arrived completely, and sends the rest of a response when the
    client has read enough of it. gunicorn gives each request to a thread of its pool, and gets the connection back
    through a pipe, which takes longer than most answers; four slow clients occupy the whole pool. Here, the pool only
    has requests that are incomplete or have a body, and all of them if a decision of Redis may block.
    """

    place = 0  # from 0 to the number of workers; during a reload, an old and a new worker have the same place

    def enqueue_req(self, conn: TConn) -> None:
        if not (conn.initialized or conn.data_ready):
            self.wait(conn, selectors.EVENT_READ, self.on_pending_socket_readable)
        elif settings.limit_store == "local" and not self.cfg.is_ssl and has_request(conn):
            conn.reusable, conn.unsent = self.respond(conn)
            self.send(conn)
        else:
            super().enqueue_req(conn)

    def handle(self, conn: TConn) -> bool:
        """In a thread of the pool: handles a request. Returns whether the connection can be used again."""
        reusable, response = self.respond(conn)
        conn.sock.sendall(response)
        return reusable

    def respond(self, conn: TConn) -> tuple[bool, memoryview]:
        """The response to a request, and whether the connection can be used again."""
        conn.init()
        conn.sock = collector = Collector(conn.sock)
        try:
            reusable = super().handle(conn)
        finally:
            conn.sock = collector.sock
        return reusable, memoryview(b"".join(collector.parts))

    def send(self, conn: TConn) -> None:
        """Sends as much as the kernel takes. The connection is closed if the client reads nothing for `keepalive`."""
        try:
            conn.unsent = conn.unsent[conn.sock.send(conn.unsent, socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            pass
        except OSError:  # the client has closed the connection
            conn.reusable, conn.unsent = False, b""
        if conn.unsent:
            self.wait(conn, selectors.EVENT_WRITE, self.on_pending_socket_writable)
        elif conn.parser.unreader.buf.getvalue():  # requests that were sent together take turns with other clients
            self.method_queue.defer(self.finish_request, conn, FINISHED[conn.reusable])
        else:
            self.finish_request(conn, FINISHED[conn.reusable])

    def on_pending_socket_writable(self, conn: TConn, client: socket.socket) -> None:
        self.poller.unregister(client)
        self.pending_conns.remove(conn)
        self.send(conn)

    def wait(self, conn: TConn, event: int, callback: Callable[[TConn, socket.socket], None]) -> None:
        """Calls back when the connection is ready, and closes it if it is not within `keepalive` seconds."""
        conn.set_timeout()
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, event, partial(callback, conn))


def has_request(conn: TConn) -> bool:
    """Whether a request without a body has arrived completely. Reads what has arrived, without waiting."""
    conn.init()
    data = conn.parser.unreader.take_buffered()
    if END not in data:
        with suppress(OSError):
            data += conn.sock.recv(8192, socket.MSG_DONTWAIT)
    conn.parser.unreader.unread(data)
    return END in data and not BODY.search(data)


END = b"\r\n\r\n"  # of the headers of a request
BODY = re.compile(rb"(?i)\n(content-length|transfer-encoding)")
FINISHED = {reusable: futures.Future[bool]() for reusable in (True, False)}
for reusable, future in FINISHED.items():
    future.set_result(reusable)


# An answer takes a few hundred microseconds of CPU time, so one process per core is enough. Four clients that each send
# a part of a request occupy the pool. Then only requests that arrive whole are answered, so if there may be slow
# clients, put nginx in front (deploy/nginx.conf).
workers = settings.workers
worker_class = Worker
threads = 4
# Per worker, and never more than it can open: if no file is free, accepting a connection fails with a traceback. Each
# worker inherits the sockets of all workers.
worker_connections = min(1000, open_files - settings.workers - 50)

# Seconds until an idle or silent connection is closed. A client that uses its rate limits fully sends its next request
# much sooner. nginx closes its connections after 10 s (deploy/nginx.conf), so that it seldom uses one that ends here.
keepalive = 15

# The longest useful address has a few hundred characters, and no request needs a body. These are gunicorn's largest
# values, so that the service itself answers a long address, with a message that says what is wrong.
limit_request_line = 8190
limit_request_fields = 64
limit_request_field_size = 8190

# A worker that does not respond for 30 s is replaced. A worker that is stopped has 30 s to finish its requests.
timeout = 30
graceful_timeout = 30

# No max_requests: the memory of a worker is bounded, so there is no need to replace it.


class Log(Logger):
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


logger_class = Log

# Proxies whose X-Forwarded-Proto is trusted: the same ones whose X-Forwarded-For is trusted. gunicorn always trusts a
# unix socket.
forwarded_allow_ips = ",".join(name for name in names_in(settings.trusted_proxies) if name != "unix")
secure_scheme_headers = {"X-FORWARDED-PROTO": "https"}
forwarder_headers = ""  # no header may change the path

# Disabled, because it is not used, and two services of one user would use the same path.
control_socket_disable = True


def on_starting(server: Arbiter) -> None:
    # One listening socket per worker: the kernel spreads connections over them. gunicorn's own reuse_port opens the
    # socket in the worker, so connections that a stopping worker has not accepted are lost. These sockets belong to the
    # master. Unix sockets cannot share an address, so there each is opened by a --bind.
    inherited = "GUNICORN_FD" in os.environ or "LISTEN_FDS" in os.environ
    if server.cfg.bind == [bind] and not inherited:
        # Try the address first, because gunicorn would retry for five seconds per socket.
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        try:
            socket.create_server((settings.host, settings.port), family=family).close()
        except OSError as error:
            address, reason = f"HOST={settings.host} PORT={settings.port}", (error.strerror or "").partition(" (")[0]
            print(f"racedata: {address}: cannot listen there: {reason}", file=sys.stderr)
            sys.exit(CANNOT_START)
        server.cfg.set("reuse_port", True)
        server.LISTENERS = [each for _ in range(server.cfg.workers) for each in create_sockets(server.cfg, server.log)]
        server.cfg.set("reuse_port", False)


def pre_fork(server: Arbiter, worker: Worker) -> None:
    # The master serves no requests. It follows the database file here, so that a new worker shares its memory, and has
    # good data even if the file is bad at this moment. (With scripts/bench, gunicorn also serves other applications.)
    if isinstance(app := server.app.wsgi(), ReloadingApp):
        app.check()

    # Deal the sockets to the workers. If all workers share a socket, a single one sometimes accepts nearly all
    # connections and keeps them. The worker gets the place that the fewest others have, and the sockets of that place.
    # A socket without a worker would not be answered: set the number of workers with WEB_CONCURRENCY and not with the
    # signals TTIN and TTOU.
    sockets, workers = worker.sockets, server.cfg.workers
    youngest = sorted(server.WORKERS.values(), key=lambda other: other.age, reverse=True)
    places = [other.place for other in youngest[: workers - 1]]  # after a reload, gunicorn ends the oldest
    worker.place = min(range(workers), key=places.count)
    # TCP sockets of several addresses have different clients, so then all workers share them.
    if len({each.getsockname() for each in sockets}) == 1 or all(each.family == socket.AF_UNIX for each in sockets):
        worker.sockets = sockets[worker.place :: workers] or [sockets[worker.place % len(sockets)]]


def post_fork(server: Arbiter, worker: Worker) -> None:
    worker.signals = server.SIG_QUEUE


def post_worker_init(worker: Worker) -> None:
    # After the fork, this process still had the signal handlers of the master, and a copy of their queue. A worker that
    # missed a signal to stop would run on until the master kills it after `graceful_timeout`.
    while not worker.signals.empty():
        if (signal_number := worker.signals.get()) in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            os.kill(os.getpid(), signal_number)

    if isinstance(worker.wsgi, ReloadingApp):
        worker.wsgi.watch()


def when_ready(server: Arbiter) -> None:
    if server.cfg.bind == [bind]:
        address = f"http://{bind}{settings.base_address}"
        server.log.info("Try: curl '%s/2023/races/'", address)
        server.log.info("Try: curl '%s/2023/18/laps.json?limit=5&offset=45'", address)

"""The configuration of gunicorn: `gunicorn -c python:racedata.gunicorn_conf`, which `racedata serve` runs.

Some hooks use internals of gunicorn, so pyproject.toml limits its version.
"""

import os
import resource
import signal
import socket
import sys
import time

from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.sock import create_sockets

from racedata.reload import ReloadingApp
from racedata.settings import CANNOT_START, names_in, read_settings
from racedata.worker import Worker

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

# An answer takes a few hundred microseconds of CPU time, so one process per core is enough.
workers = settings.workers
worker_class = Worker
Worker.uses_pool = settings.limit_store != "local"
threads = 4  # of the pool
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


logger_class = Log

# Proxies whose X-Forwarded-Proto is trusted: the same ones whose X-Forwarded-For is trusted. gunicorn always trusts a
# unix socket.
forwarded_allow_ips = ",".join(name for name in names_in(settings.trusted_proxies) if name != "unix")
secure_scheme_headers = {"X-FORWARDED-PROTO": "https"}
forwarder_headers = ""  # no header may change the path

# Disabled, because it is not used, and two services of one user would use the same path.
control_socket_disable = True


def on_starting(server: Arbiter) -> None:
    if server.cfg.is_ssl:  # which Worker lacks
        print("racedata: certfile and keyfile are not accepted: let nginx do TLS (deploy/nginx.conf)", file=sys.stderr)
        sys.exit(CANNOT_START)

    # One listening socket per worker: the kernel spreads connections over them. gunicorn's own reuse_port opens the
    # socket in the worker, so connections that a stopping worker has not accepted are lost. These sockets belong to the
    # master. Unix sockets cannot share an address, so there each is opened by a --bind.
    inherited = "GUNICORN_FD" in os.environ or "LISTEN_FDS" in os.environ
    if server.cfg.bind == [bind] and not inherited:
        # Try the address first, because gunicorn would retry for five seconds per socket. This socket does not listen,
        # because clients that connect to it would be reset.
        try:
            with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind((settings.host, settings.port))
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
    # Until now, the handlers of the master put this worker's signals into a copy of its queue. Deliver them: a worker
    # that misses a signal to stop runs until the master kills it after `graceful_timeout`.
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

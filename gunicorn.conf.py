"""How gunicorn serves racedata. It finds this file by itself in the folder it is started in."""

import os
import socket
import sys

from gunicorn.sock import create_sockets

from racedata.settings import CANNOT_START, names_in, read_settings

settings = read_settings()

wsgi_app = "racedata.app:get_app()"

# `gunicorn --bind unix:…` puts a socket in place of this.
bind = f"[{settings.host}]:{settings.port}" if ":" in settings.host else f"{settings.host}:{settings.port}"

# The application is made once, and the workers are forked from it: they share the memory in which the rate limits are
# counted, whether they are restarted or reloaded, and a fault of a setting or of the database is told once.
preload_app = True

# An answer is made in some hundred microseconds of pure computing, so that one process to a core is enough. Idle
# connections cost a threaded worker nothing, but each client that is slow to send a request holds a thread: where there
# may be such, nginx goes before it (deploy/nginx.conf).
workers = settings.workers
worker_class = "gthread"
threads = 4
worker_connections = 1000

# Seconds an idle connection is kept: a client that paces itself by the limits asks again well within.
keepalive = 15

# The longest address is some 60 characters, and nobody sends a body; but who asks for nonsense at length is told by the
# service what is wrong, up to the most that gunicorn takes.
limit_request_line = 8190
limit_request_fields = 64
limit_request_field_size = 8190

# A worker that says nothing for 30 s hangs and is replaced; one that ends has 30 s for the requests it has accepted.
timeout = 30
graceful_timeout = 30

# Workers are not replaced now and then (max_requests): what they keep is bounded, and while one ends, the connections
# that wait on its socket wait on.

# Who may say that a request came by https: the same proxies that may say for whom.
forwarded_allow_ips = ",".join(name for name in names_in(settings.trusted_proxies) if name != "unix")
secure_scheme_headers = {"X-FORWARDED-PROTO": "https"}
forwarder_headers = ""  # nor may a header say what the path is

# Nothing here is steered through gunicorn's control socket, and two services of one user would quarrel over its path.
control_socket_disable = True


def on_starting(server):
    # A listening socket to each worker, with the kernel spreading connections over them. From one that they share, one
    # worker at times takes nearly all connections, and keeps them. gunicorn's own reuse_port has each worker open its
    # socket, and with a worker that ends, the connections it has not accepted yet are lost; these are the master's.
    inherited = "GUNICORN_FD" in os.environ or "LISTEN_FDS" in os.environ
    if server.cfg.bind == [bind] and not inherited:
        # gunicorn itself would try for five seconds, and then another time for each worker.
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        try:
            socket.create_server((settings.host, settings.port), family=family).close()
        except OSError as error:
            address, reason = f"HOST={settings.host} PORT={settings.port}", error.strerror.partition(" (")[0]
            print(f"racedata: {address}: cannot listen there: {reason}", file=sys.stderr)
            sys.exit(CANNOT_START)
        server.cfg.set("reuse_port", True)
        server.LISTENERS = [each for _ in range(server.cfg.workers) for each in create_sockets(server.cfg, server.log)]
        server.cfg.set("reuse_port", False)


def pre_fork(server, worker):
    # The parent process serves nothing itself. It follows the database file here, so that a new worker shares its
    # data, and has good data even if the file is bad at that moment.
    server.app.wsgi().check()

    # The socket that fewest have; while workers are exchanged, each has an old and a new one. So the number of workers
    # is for WEB_CONCURRENCY to say and not for signals (TTIN, TTOU) to change.
    if len({listener.getsockname() for listener in worker.sockets}) == 1:
        taken = [listener for other in server.WORKERS.values() for listener in other.sockets]
        worker.sockets = [min(worker.sockets, key=taken.count)]


def when_ready(server):
    if server.cfg.bind == [bind]:
        address = f"http://{bind}{settings.base_address}"
        server.log.info("Try: curl '%s/2023/races/'", address)
        server.log.info("Try: curl '%s/2023/18/laps.json?limit=5&offset=45'", address)

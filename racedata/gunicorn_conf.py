"""The settings of gunicorn: `gunicorn -c python:racedata.gunicorn_conf`, which `racedata serve` runs."""

import resource
import sys
from typing import Any

from racedata.settings import names_in, read_settings, stop

settings = read_settings()

# Raise the limit of open files to the hard limit: the usual soft limit of 1,024 is for programs that call select().
open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))
# The master has a temporary file per worker, during a reload also one per new worker.
if open_files < (needed := 2 * settings.workers + 100):
    stop(
        f"WEB_CONCURRENCY={settings.workers} needs {needed} open files: expected fewer workers, or more than the "
        f"{open_files} files that the system allows (ulimit -n)"
    )

wsgi_app = "racedata.app:get_app()"

# `gunicorn --bind unix:…` replaces this, once or several times (deploy/racedata.service).
bind = f"[{settings.host}]:{settings.port}" if ":" in settings.host else f"{settings.host}:{settings.port}"

# Load the application once, before the workers are forked. Then they share the memory of the rate limits, also after a
# restart or reload of workers, and a wrong setting or database is reported only once.
preload_app = True

# An answer takes a few hundred microseconds of CPU time, so one process per core is enough.
workers = settings.workers
# Per worker, and never more than it can open: if no file is free, accepting a connection fails with a traceback.
worker_connections = min(1000, open_files - 50)
# With a Redis, a decision about a rate limit may take a while, so every complete request is handled in a thread.
threads = 1 if settings.limit_store == "local" else 4

worker_class: type | str
try:
    from racedata import worker
except ImportError as error:
    print(f"racedata: {error}; gunicorn's own worker is used, and slow clients can delay others", file=sys.stderr)
    worker_class, threads = "gthread", 4
else:
    worker_class, logger_class = worker.Worker, worker.Log
    on_starting, when_ready = worker.on_starting, worker.when_ready

# Seconds until an idle or silent connection is closed. A client that uses the default rate limits fully sends a request
# every 7 s on average. nginx closes its connections after 10 s (deploy/nginx.conf), so that it seldom uses one that
# ends here.
keepalive = 15

# The longest useful address has a few hundred characters. 8190 bytes are gunicorn's largest request line, so that the
# service itself answers a long address, with a message that says what is wrong.
limit_request_line = 8190
limit_request_fields = 64
limit_request_field_size = 8190

# A worker that does not respond for 30 s is replaced. A worker that is stopped has 30 s to finish its requests.
timeout = 30
graceful_timeout = 30

# No max_requests: the memory of a worker is bounded, so there is no need to replace it.

# Proxies whose X-Forwarded-Proto is trusted: the same ones whose X-Forwarded-For is trusted. gunicorn always trusts a
# unix socket.
forwarded_allow_ips = ",".join(name for name in names_in(settings.trusted_proxies) if name != "unix")
secure_scheme_headers = {"X-FORWARDED-PROTO": "https"}
forwarder_headers = ""  # no header may change the path


def pre_exec(server: Any) -> None:
    """Starts a new master (SIGUSR2) as this one was. gunicorn would start its own file, next to its module `http`."""
    server.START_CTX["args"] = sys.orig_argv


# Disabled, because it is not used, and two services of one user would use the same path.
control_socket_disable = True

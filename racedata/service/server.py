"""Runs `racedata serve`: the settings become gunicorn's configuration and the application.

worker.py waits for clients, and app.py answers them.
"""

import logging
import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from errno import EADDRINUSE
from typing import Any

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.workers.workertmp import WorkerTmp

from racedata.database import DatabaseError
from racedata.service.app import create_app
from racedata.service.health import sample_notice
from racedata.service.process_memory import (
    collect_seldom,
    keep_what_exists,
    return_large_blocks,
)
from racedata.service.ratelimit.stores import store_for
from racedata.service.reload import ReloadingApp
from racedata.service.worker import STOP_SIGNALS, Worker
from racedata.settings import SettingError, Settings, in_url, stop

log = logging.getLogger(__name__)
SPARE_FILES = 50  # open files of a worker other than its connections
# Options of gunicorn that replace its configuration, or that Worker lacks. nginx handles TLS.
UNSUPPORTED = (
    *("args", "config", "check_config", "print_config", "worker_class", "certfile", "keyfile"),
    *("proxy_protocol", "protocol", "max_requests", "daemon", "dirty_apps", "reuse_port"),
)


def serve(
    settings: Settings,
    gunicorn_options: Sequence[str],
    restart_follower: Callable[[], str] | None = None,
) -> None:
    """Serves until a signal ends this process, which becomes gunicorn's master.

    `restart_follower` is called every second. It returns what it did, in one line, or nothing.
    """
    set_up_process()
    like_gunicorn = "[%(asctime)s] [%(process)d] [%(levelname)s] %(message)s"
    logging.basicConfig(format=like_gunicorn, datefmt="%Y-%m-%d %H:%M:%S %z")
    logging.getLogger(__package__).setLevel(logging.INFO)
    try:
        Server(settings, gunicorn_options, restart_follower).run()
    except (OSError, RuntimeError) as error:  # until workers run; then gunicorn logs it
        stop(f"cannot start: {error}")


class Server(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn with the service as its application."""

    def __init__(
        self,
        settings: Settings,
        options: Sequence[str],
        restart_follower: Callable[[], str] | None = None,
    ) -> None:
        self.settings, self.options = settings, options
        self.restart_follower = restart_follower
        super().__init__(usage="racedata serve [SETTING …] -- [OPTION …]", prog="racedata serve --")

    def do_load_config(self) -> None:
        try:
            self.load_default_config()
            self.load_config()
            self.cfg.validate()
        except Exception as error:  # of any type: gunicorn's settings raise what int() does, too
            stop(f"option of gunicorn: {error}")

    def load_config(self) -> None:
        for name, value in config(self.settings).items():
            self.cfg.set(name, value)
        parser = self.cfg.parser()
        for options in (self.cfg.get_cmd_args_from_env(), self.options):
            values = vars(parser.parse_args(options))
            if unsupported := [name for name in UNSUPPORTED if values.pop(name)]:
                raise ValueError(f"{', '.join(unsupported)}: not supported by racedata serve")
            for name, value in values.items():
                if value is not None:
                    self.cfg.set(name, value)

    def run(self) -> None:
        Master(self).run()

    def load(self) -> ReloadingApp:
        try:
            return application(self.settings)
        except (DatabaseError, SettingError) as error:
            stop(error)
        except MemoryError:
            stop("cannot start: not enough memory; expected more, or a smaller RACEDATA_CACHE_SIZE")


class Master(Arbiter):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's master, which restarts the follower as it restarts workers."""

    def manage_workers(self) -> None:
        super().manage_workers()
        if (restart := self.app.restart_follower) and (line := restart()):
            self.log.warning("%s", line)


def application(settings: Settings) -> ReloadingApp:
    """The service, which reloads the database file when it changes.

    Raises DatabaseError or SettingError.
    """
    limit_store = store_for(settings)
    app = ReloadingApp(settings.database, lambda data: create_app(settings, data, limit_store))
    if notice := sample_notice(app.data, settings.follows):
        log.warning(notice)
    # gunicorn forks its workers from this process. It checks for a new file before each fork, so a
    # new worker has the newest good data, and shares its memory.
    os.register_at_fork(before=app.check, after_in_child=app.watch)
    keep_what_exists()
    return app


def config(settings: Settings) -> Mapping[str, Any]:
    """The configuration of gunicorn, which options of gunicorn after `--` can change."""
    return {
        "bind": f"{in_url(settings.host)}:{settings.port}",
        "worker_class": Worker,
        "logger_class": Log,
        "on_starting": on_starting,
        "when_ready": lambda server: log_examples(server, settings),
        # Load the application once, before the workers are forked. Then they share the memory of
        # the rate limits, even after a restart or reload of workers, and a wrong setting or
        # database is reported only once.
        "preload_app": True,
        # An answer takes a few hundred microseconds of CPU time, so one process per core is enough.
        "workers": settings.workers,
        # A folder in memory. Without this setting, gunicorn looks for one by writing a file.
        "worker_tmp_dir": "/dev/shm" if os.access("/dev/shm", os.W_OK) else None,
        # Per worker; kept below the file limit, because a worker without a free file descriptor
        # cannot accept a connection.
        "worker_connections": min(1000, open_files() - SPARE_FILES),
        # With a Redis, a decision about a rate limit may take a while.
        "threads": 1 if settings.limit_store == "local" else 4,
        # Seconds until an idle connection is closed. A client at the full sustained rate sends a
        # request every 7 s. nginx closes its connections after 10 s (deploy/nginx.conf), so that it
        # seldom uses one that is just being closed.
        "keepalive": 15,
        # The longest useful address has a few hundred characters. 8190 bytes are gunicorn's largest
        # request line: so a long address gets the answer of the service, which explains the error.
        "limit_request_line": 8190,
        "limit_request_fields": 64,
        "limit_request_field_size": 8190,
        # A worker that does not respond for 30 s is replaced. A worker that is stopped has 30 s to
        # finish its requests. Its memory is bounded, so there is no need to replace it otherwise
        # (max_requests).
        "timeout": 30,
        "graceful_timeout": 30,
        # Proxies whose X-Forwarded-Proto is trusted: the same ones whose X-Forwarded-For is
        # trusted. gunicorn always trusts a unix socket.
        "forwarded_allow_ips": ",".join(map(str, filter(None, settings.trusted_proxies))),
        "secure_scheme_headers": {"X-FORWARDED-PROTO": "https"},
        "forwarder_headers": "",  # no header may change the path
        # Not used, and two services of one user would use the same path.
        "control_socket_disable": True,
    }


def open_files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def set_up_process() -> None:
    """Sets what holds for this whole process, the master, and for the workers that it forks.

    What depends on the data is in `application`.
    """
    # The usual soft limit is for programs that call select().
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files(), open_files()))
    return_large_blocks()
    collect_seldom()
    # Stop signals wait until a new worker can handle them (`Worker.init_signals`): gunicorn would
    # lose early ones, and a worker that misses one runs on until `graceful_timeout` has passed.
    os.register_at_fork(
        before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS),
        after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS),
    )


def on_starting(server: Arbiter) -> None:
    """Ends with one line if the service cannot start."""
    check_options(server.cfg)
    try:
        WorkerTmp(server.cfg).close()
    except (OSError, RuntimeError) as error:
        stop(f"worker-tmp-dir: {error}; expected a folder that takes new files")
    if "GUNICORN_FD" in os.environ or "LISTEN_FDS" in os.environ:
        return  # the sockets are inherited
    # gunicorn would retry for five seconds. This socket only binds: if it listened, clients that
    # connect to it would be reset.
    for host, port in (address for address in server.cfg.address if isinstance(address, tuple)):
        try:
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
        except OSError as error:
            reason = (error.strerror or "").partition(" (")[0]
            if error.errno == EADDRINUSE:
                reason += "; expected a free port, such as --port 8001"
            stop(f"HOST={host} PORT={port}: cannot listen there: {reason}")


def check_options(cfg: Any) -> None:
    """Ends with one line if gunicorn has a number with which Worker could not serve."""
    most = open_files() - SPARE_FILES
    if not 1 <= cfg.worker_connections <= most:
        stop(
            f"worker-connections {cfg.worker_connections}: expected a number from 1 to {most}, "
            "the most that ulimit -n allows"
        )
    if not cfg.keepalive:  # a client would have no time to send its request
        stop("keep-alive 0: expected 1 or more seconds")
    if not cfg.limit_request_line:
        stop("limit-request-line 0: expected a number from 1 to 8190")


def log_examples(server: Arbiter, settings: Settings) -> None:
    """Logs the address of the page, and a request to try."""
    listener = str(server.LISTENERS[0])
    if listener.startswith("http"):  # else it is a unix socket
        # These mean all addresses of this machine, and no browser opens them.
        address = listener.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
        base = address + settings.base_address
        elsewhere = (
            ""
            if address == listener
            else " (from another machine, use this machine's name or address)"
        )
        server.log.info("Open %s/%s", address, elsewhere)
        server.log.info("Try: curl '%s/2023/18/laps.json?limit=5&offset=45'", base)


class Log(Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's log, with at most one short line per second and worker about malformed requests.

    gunicorn logs each of them in full, before the rate limits apply, so one client could fill the
    disk.
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

"""Servers for the system tests, each on a free port and in its own folder: Redis, and the service behind nginx."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.processes import Gunicorn, nginx, nginx_sockets
from support.service import free_port, listens, service, until

Site = tuple[str, int]  # nginx's host and port


class Redis:
    """A Redis server at `url`. It can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.port, self.folder = free_port(), folder
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--dir", str(self.folder), "--save", ""]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        until(lambda: listens(("127.0.0.1", self.port)))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def site_with_nginx(database: Path, folder: Path, **settings: str) -> Iterator[tuple[Site, Gunicorn]]:
    """The service behind nginx with deploy/nginx.conf. Logs are in the folder: `log`, `access.log`, `error.log`."""
    settings = {"RACEDATA_TRUSTED_PROXIES": "unix", **settings}
    with (
        service(database, folder / "log", nginx_sockets(folder), **settings) as running,
        nginx(folder) as site,
    ):
        yield site, running

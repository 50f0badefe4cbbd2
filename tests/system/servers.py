"""Servers for the system tests: Redis and nginx, each on a free port and in its own folder."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service import ROOT, free_port, listens, until


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
def nginx(folder: Path, socket_path: Path) -> Iterator[tuple[str, int]]:
    """nginx with deploy/nginx.conf in front of the unix socket; yields its (host, port).

    Its logs are `access.log` and `error.log` in the folder.
    """
    address = ("127.0.0.1", free_port())
    site = (ROOT / "deploy" / "nginx.conf").read_text()
    for deployed, tested in [
        ("unix:/run/racedata/gunicorn.sock", f"unix:{socket_path}"),
        ("listen 80 default_server", f"listen {address[0]}:{address[1]} default_server"),
        ("listen [::]:80 default_server;", ""),
        ("/var/log/nginx/racedata.log", f"{folder}/access.log"),
    ]:
        assert site.count(deployed) == 1
        site = site.replace(deployed, tested)
    (folder / "site.conf").write_text(site)
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # If nginx is started by root, its workers become another user, who may not enter the folder.
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;"
        f"worker_processes 2; events {{ worker_connections 2000; }}"
        f"http {{ {temporary} include /etc/nginx/mime.types; include {folder}/site.conf; }}"
    )
    process = subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-e", folder / "error.log"])
    try:
        until(lambda: listens(address))
        yield address
    finally:
        process.terminate()
        process.wait(timeout=20)

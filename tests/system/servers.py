"""Servers that the system tests start and stop: Redis and nginx, each on a free port and in a folder of its own."""

import os
import subprocess
from contextlib import contextmanager

from service import ROOT, free_port, listens, until


class Redis:
    """A Redis server that can be killed and started again; `url` names it."""

    def __init__(self, folder):
        self.port, self.folder = free_port(), folder
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self):
        command = ["redis-server", "--port", str(self.port), "--save", "", "--dir", self.folder, "--daemonize", "no"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        until(lambda: listens(("127.0.0.1", self.port)))

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextmanager
def nginx(folder, socket_path):
    """nginx with deploy/nginx.conf in front of the unix socket; yields its (host, port).

    What it took for a request it writes to the file `requests` in the folder, a line each.
    """
    address = ("127.0.0.1", free_port())
    site = (ROOT / "deploy" / "nginx.conf").read_text()
    for written, used in [
        ("unix:/run/racedata/gunicorn.sock", f"unix:{socket_path}"),
        ("listen 80 default_server", f"listen {address[0]}:{address[1]} default_server"),
        ("listen [::]:80 default_server;", ""),
    ]:
        assert site.count(written) == 1
        site = site.replace(written, used)
    (folder / "site.conf").write_text(site)
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""  # else root's nginx becomes nobody, who may not enter the folder
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;"
        f"worker_processes 2; events {{ worker_connections 2000; }}"
        f"http {{ log_format request '$request'; access_log {folder}/requests request;"
        f"{temporary} include /etc/nginx/mime.types; include {folder}/site.conf; }}"
    )
    process = subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-e", folder / "nginx.log"])
    try:
        until(lambda: listens(address))
        yield address
    finally:
        process.terminate()
        process.wait(timeout=20)

"""The service as it is run: a real gunicorn with this project's configuration, on a port of its own."""

import os
import random
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GUNICORN = [sys.executable, "-m", "gunicorn"]
OFF = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "off"}


def free_port():
    """A port nobody listens on, below those that the system gives to clients' ends of connections."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Service:
    """A running service: `process` is gunicorn's master, `address` is (host, port)."""

    def __init__(self, process, address):
        self.process, self.address = process, address

    def workers(self):
        """The processes that answer."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def wait_for_new_workers(self, before):
        """Waits until as many as `before` answer, and none of them."""
        until(lambda: len(self.workers()) == len(before) and not before & set(self.workers()))


def open_files(process):
    """What a process has open, by name."""
    found = []
    for link in Path(f"/proc/{process}/fd").iterdir():
        try:
            found.append(os.readlink(link))
        except FileNotFoundError:  # closed meanwhile
            pass
    return found


def until(condition, seconds=20):
    """Waits for something of another process to come true; there is nothing to be told it by."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not true after {seconds} s: {condition}")
        time.sleep(0.02)


def listens(address):
    """Whether anybody accepts connections at (host, port), or at the path of a unix socket."""
    with socket.socket(socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX) as tried:
        try:
            tried.connect(address)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        return True


@contextmanager
def service(database, log, socket_path=None, **settings):
    """A service over `database`, on a free port or a unix socket, its output in the file `log`; ends with the block."""
    address = str(socket_path) if socket_path else ("127.0.0.1", free_port())
    environ = {"PATH": os.environ["PATH"], "RACEDATA_DATABASE": str(database), **settings}
    if socket_path:
        options = ["--bind", f"unix:{socket_path}"]
    else:
        options, environ["PORT"] = [], str(address[1])
    with open(log, "w") as output:
        process = subprocess.Popen([*GUNICORN, *options], cwd=ROOT, env=environ, stdout=output, stderr=output)
    try:
        until(lambda: listens(address))
        yield Service(process, address)
    finally:
        process.terminate()
        try:
            process.wait(timeout=40)
        finally:
            process.kill()

"""The service as it is run: a real gunicorn with this project's configuration, on a port of its own."""

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GUNICORN = [sys.executable, "-m", "gunicorn"]


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Service:
    """A running service: `process` is gunicorn's master, `address` is (host, port)."""

    def __init__(self, process, address):
        self.process, self.address = process, address

    def workers(self):
        """The processes that answer."""
        found = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True)
        return [int(line) for line in found.stdout.split()]

    def wait_for_new_workers(self, before):
        """Waits until as many as `before` answer, and none of them."""
        until(lambda: len(self.workers()) == len(before) and not before & set(self.workers()))


def until(condition, seconds=20):
    """Waits for something of another process to come true; there is nothing to be told it by."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not true after {seconds} s: {condition}")
        time.sleep(0.02)


def listens(address):
    try:
        socket.create_connection(address, timeout=1).close()
    except ConnectionRefusedError:
        return False
    return True


@contextmanager
def service(database, log, options=(), **settings):
    """A service over `database`, with its output in the file `log`; ends with the block."""
    address = ("127.0.0.1", free_port())
    environ = {"PATH": os.environ["PATH"], "RACEDATA_DATABASE": str(database), "HOST": address[0],
               "PORT": str(address[1]), **settings}
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

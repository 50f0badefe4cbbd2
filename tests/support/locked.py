"""A service that makes no large answer while a file is locked. So no test that needs a slow answer
depends on the speed of the machine.
"""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from support.processes import OFF, Site, gunicorn, nginx, nginx_sockets, serve_with
from support.traffic import ADDRESS, get

LARGE = "/ergast/f1/results.json?limit=2000&offset={}"

LOCKED = """
import fcntl
from racedata.service import answers

def make_body(self, request):
    if request.limit > 100:
        with open({path!r}) as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            with open({path!r} + ".made", "a") as made:
                made.write(".")
    return usual(self, request)

usual, answers.Resource.make_body = answers.Resource.make_body, make_body
"""


@contextmanager
def locked_site(
    sample_database: Path, folder: Path, is_behind_nginx: bool, *options: str
) -> Iterator[tuple[Site, int, IO[str]]]:
    """One worker that makes no large answer in the block; yields address, worker and lock."""
    lock = folder / "lock"
    environ = {
        "RACEDATA_DATABASE": str(sample_database),
        "WEB_CONCURRENCY": "1",
        "RACEDATA_TRUSTED_PROXIES": "unix",
        **OFF,
    }
    with ExitStack() as stack:
        locked = stack.enter_context(lock.open("w"))
        fcntl.flock(locked, fcntl.LOCK_EX)
        sockets = nginx_sockets(folder) if is_behind_nginx else []
        command = serve_with(LOCKED.format(path=str(lock)))
        running = stack.enter_context(
            gunicorn(*options, environ=environ, sockets=sockets, command=command)
        )
        address = stack.enter_context(nginx(folder)) if is_behind_nginx else running.address
        assert isinstance(address, tuple)
        stack.callback(fcntl.flock, locked, fcntl.LOCK_UN)  # so that the worker can stop
        assert get(address, ADDRESS)[0].status == 200
        (worker,) = running.workers()
        yield address, worker, locked

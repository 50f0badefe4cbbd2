"""The service as it runs in production: a real gunicorn over a database. Its tools are scripts/bench/processes.py."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.processes import GUNICORN, ROOT, Gunicorn, free_port, gunicorn, listens, open_files, until

__all__ = ["GUNICORN", "OFF", "ROOT", "Gunicorn", "free_port", "listens", "open_files", "service", "until"]

OFF = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "off"}


@contextmanager
def service(database: Path, log: Path, sockets: Sequence[Path] = (), **settings: str) -> Iterator[Gunicorn]:
    """A service over `database`, on a free port or on unix sockets, with its output in the file `log`."""
    environ = {"RACEDATA_DATABASE": str(database), **settings}
    with open(log, "w") as output, gunicorn(environ=environ, sockets=sockets, output=output) as running:
        yield running

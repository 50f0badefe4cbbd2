"""The command `racedata`: one function per subcommand, which imports only its own half of the package."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from racedata import __version__, database

LOAD = [sys.executable, "-m", "racedata", "load"]


def load(arguments: Sequence[str]) -> None:
    """build the database from a dump"""
    from racedata.loader import build

    build.main(arguments)


def refresh(arguments: Sequence[str]) -> None:
    """bring the database up to date from an API"""
    from racedata.loader import refresh

    refresh.main(arguments)


def check(arguments: Sequence[str]) -> None:
    """report facts in the data that contradict each other"""
    from racedata.loader import check

    check.main(arguments)


def serve(arguments: Sequence[str]) -> None:
    """answer requests (with gunicorn)"""
    from racedata.settings import read_settings

    read_settings()  # with a wrong WEB_CONCURRENCY, gunicorn would print a traceback
    path = database.default_path(os.environ)
    if "RACEDATA_DATABASE" not in os.environ and not os.path.exists(path):
        subprocess.run(LOAD, check=True)
    os.execv(sys.executable, [sys.executable, "-m", "gunicorn", "-c", "python:racedata.gunicorn_conf", *arguments])


def version(arguments: Sequence[str]) -> None:
    """print the version"""
    print(__version__)


COMMANDS: Mapping[str, Callable[[Sequence[str]], None]] = {
    function.__name__: function for function in (load, refresh, check, serve, version)
}


def main(arguments: Sequence[str] | None = None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during imports prints no traceback
    parser = argparse.ArgumentParser(prog="racedata", description="Formula One data over HTTP.")
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    chosen = parser.parse_args(arguments)
    COMMANDS[chosen.command](chosen.arguments)

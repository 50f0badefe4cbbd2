"""The command `racedata`: its subcommands, each of which imports only its half of the package.

`serve` needs the installed packages, and the other half too if it builds a database or follows
sources.
"""

import argparse
import io
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from racedata import __version__
from racedata.database import (
    DatabaseError,
    can_be_built_again,
    default_path,
    is_missing,
    store_path,
)
from racedata.follower import FollowerProcess
from racedata.settings import CANNOT_START, LoaderSettings, SettingError, parse_arguments


def serve(arguments: Sequence[str]) -> None:
    """Runs gunicorn in this process. Builds the database first, if it is missing or too old.

    Without `--follow`, it builds only at the default path: another path may be misspelt.
    """
    if sys.platform != "linux":
        sys.exit(
            "racedata serve: needs Linux; elsewhere, use `racedata mcp`, or open_database in Python"
        )
    end_at_signals()
    settings, gunicorn_options = parse_arguments(arguments)
    may_build = settings.follows or settings.database == default_path(os.environ)
    try:
        if may_build and (needed := needed_at(settings.database)):
            from racedata.loader.provide import provide

            with suppress(OSError):
                print(f"racedata: {needed}", file=sys.stderr)
            provide(settings.database)
            end_at_signals()  # again: the loader leaves these signals ignored when it has ended
        follower = FollowerProcess(settings.database) if settings.follows else None
    except SystemExit as error:
        if isinstance(error.code, int):
            raise
        print(error, file=sys.stderr)
        sys.exit(CANNOT_START)
    try:
        # Only now, because the follower does not need it. gunicorn reads WEB_CONCURRENCY without
        # checking it, even if --workers says another number.
        os.environ["WEB_CONCURRENCY"] = str(settings.workers)
        from racedata.service import server
    except ImportError as error:
        sys.exit(
            f"racedata serve: {error}; expected a Python environment in which racedata is installed"
        )
    server.serve(settings, gunicorn_options, follower.restart_if_ended if follower else None)


def needed_at(path: str) -> str:
    """Why the database must be built before serving; empty if it is usable."""
    with suppress(OSError):  # the service says why it cannot read the file
        if is_missing(Path(path)):
            # as provide() does
            source = "the sample"
            if LoaderSettings.read(os.environ).is_only_open:
                source = "its sources"
            if store_path(Path(path)).exists():
                source = f"its store, or else from {source}"
            return f"the database does not exist yet: building one from {source}"
        if can_be_built_again(Path(path)):
            return "the database was built by an earlier version: rebuilding it"
    return ""


def end_at_signals() -> None:
    """Ends this process at a signal, even as the first process of a container.

    Such a process ignores signals by default.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: os._exit(128 + number))


def healthcheck(arguments: Sequence[str]) -> None:
    from racedata.service import healthcheck

    write(healthcheck.health_line(arguments))


def export(arguments: Sequence[str]) -> None:
    """`site` exports what the service answers; anything else is the name of a dump."""
    if arguments[:1] == ["site"]:
        if sys.platform != "linux":
            sys.exit("racedata export site: needs Linux, as the service does")
        from racedata.service import site

        write(site.report(arguments[1:]))
        return
    from racedata.loader import export

    export.main(arguments)


def write(text: str = "") -> None:
    """Writes to stdout, after the output of argparse. Exits with one line if that fails."""
    try:
        print(text, end="", flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes stdout once more when it ends
        sys.exit(f"racedata: stdout: {error.strerror}")


# Where the function of each command is, and what it does.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "load": ("racedata.loader.load_command:main", "build the database from one or more sources"),
    "refresh": (
        "racedata.loader.refresh_command:main",
        "bring the database up to date from its sources",
    ),
    "build": (
        "racedata.loader.store_commands:build_command",
        "build the database again from what its sources have said",
    ),
    "sources": ("racedata.loader.store_commands:sources_command", "show the list of sources"),
    "parts": (
        "racedata.loader.store_commands:parts_command",
        "show what each source says about a race",
    ),
    "check": (
        "racedata.loader.check:main",
        "report facts in the database that contradict each other",
    ),
    "export": ("racedata.cli:export", "write the data as files, for other programs"),
    "serve": ("racedata.cli:serve", "serve the database over HTTP"),
    "mcp": ("racedata.mcp_server:main", "answer AI assistants from the database (MCP)"),
    "healthcheck": ("racedata.cli:healthcheck", "check that a running service answers"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during imports prints no traceback
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for encodings that lack a character
    words = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        prog="racedata",
        usage="racedata COMMAND …",
        description="Formula One data over HTTP, in the JSON format of Ergast and "
        "Jolpica-F1.\n\ncommands:\n"
        + "\n".join(f"  {name:<13}{text}" for name, (_, text) in COMMANDS.items())
        + "\n\n`racedata COMMAND --help` describes a command and its options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"racedata {__version__}")
    parser.add_argument("command", metavar="COMMAND", choices=COMMANDS, help=argparse.SUPPRESS)
    try:
        command = parser.parse_args(words[:1]).command
        module, name = COMMANDS[command][0].split(":")
        getattr(import_module(module), name)(words[1:])
    except (DatabaseError, SettingError) as error:
        sys.exit(f"racedata {command}: {error}")
    finally:
        write()

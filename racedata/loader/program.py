"""Shared by the loader's commands: settings, progress, and one line for each failure."""

import errno
import os
import sqlite3
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from shutil import disk_usage
from tempfile import gettempdir

from racedata.formats import printable
from racedata.loader.errors import FAULTS, Progress, no_space_for_temporary_files
from racedata.loader.replacement import identity_of_file
from racedata.loader.signals import interrupted_by_end_signals
from racedata.settings import LoaderSettings, SettingError


def settings_of(parsed: Namespace) -> LoaderSettings:
    """The settings, with the options of a command that has some of these."""
    names = {"database", "corrections", "licence"} & {*vars(parsed)}
    settings = LoaderSettings.read(os.environ)
    return replace(settings, **{name: getattr(parsed, name) for name in names})


def progress_of_terminal() -> Progress:
    """A function that shows progress if stderr is a terminal, and else does nothing."""
    if sys.stderr.isatty():
        return lambda text: print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    return lambda text: None


def run(
    program: str, database: str, work: Callable[[Progress], list[str]], replaces: bool = True
) -> None:
    """Does work on `database`, and prints the lines it returns. Exits with one line if it fails.

    If the work `replaces` it, the line says whether it did. A signal interrupts the work, at the
    latest when it shows progress. Afterwards, signals that would end the process are ignored.
    """
    show = progress_of_terminal()
    before = identity_of_file(database)
    lines: list[str] = []
    fault = ""
    try:
        with interrupted_by_end_signals() as raise_again:

            def progress(text: str) -> None:
                raise_again()
                show(text)

            lines = work(progress)
    except KeyboardInterrupt:
        fault = "interrupted"
    except (*FAULTS, SettingError) as error:
        fault = fault_text(error, database)
    finally:
        show("")
    if lines and not fault:
        fault = say("\n".join(lines))
    if fault:
        is_same = identity_of_file(database) == before
        outcome = "nothing was changed" if is_same else f"{database} was written"
        sys.exit(f"racedata {program}: {fault}{f'; {outcome}' if replaces else ''}")


def fault_text(error: Exception, database: str) -> str:
    """What one of FAULTS says, in one line."""
    folder = os.path.dirname(os.path.realpath(database))
    # SQLite has deleted its file by now. The disk that had no space is still the one with less.
    is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    if is_full and disk_usage(gettempdir()).free < disk_usage(folder).free:
        error = no_space_for_temporary_files()
    match error:
        case MemoryError():
            text = f"{database}: not enough memory"
        case sqlite3.Error():
            text = f"{database}: {error}"
        case OSError() if error.strerror:  # without a name, it is about an open file
            text = f"{error.filename or database}: {error.strerror}"
        case _:
            text = str(error)
    text += what_to_do(error, folder)
    return printable(text)


def what_to_do(error: Exception, folder: str) -> str:
    """A hint for the operator if the folder of the database is full or cannot be used. Empty for
    other errors.
    """
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT) or (
        isinstance(error, sqlite3.Error) and "disk is full" in str(error)
    ):
        return f"; free some space in {folder}"
    path = str(getattr(error, "filename", ""))
    if number in (errno.EACCES, errno.EPERM, errno.EROFS) and path.startswith(folder):
        while not os.path.exists(path):  # find the nearest that exists
            path = os.path.dirname(path)
        verb = "write to" if os.access(path, os.R_OK) else "read"
        return f"; let user {os.geteuid()} {verb} {path}"
    return ""


def say(text: str) -> str:
    """Writes lines to stdout immediately. Returns the error: empty on success or a closed pipe."""
    try:
        print(f"{text}\n", end="", flush=True)  # at once: other threads print lines too
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes stdout once more when it ends
        if not isinstance(error, BrokenPipeError):  # `| head` has read enough
            return f"stdout: {error.strerror}"
    return ""

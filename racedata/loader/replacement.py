"""Programs that replace the database: at the very end, with a whole new file, or not at all.

Signals and messages of the loader's programs belong here. What they build does not.
"""

import errno
import fcntl
import os
import signal
import sqlite3
import stat
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Never

from racedata.database import default_path, file_state, is_replaceable
from racedata.loader.errors import LoadError, Progress, no_space_for_temporary_files
from racedata.loader.temporary import remove_left

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FREE_BYTES = 1_000_000  # a disk with so many is not full
FAULTS = (LoadError, MemoryError, sqlite3.Error, OSError)  # what work on a database may raise


def add_database_argument(parser: ArgumentParser) -> None:
    """Adds `--database`: the path of the file."""
    default = os.environ.get("RACEDATA_DATABASE") or default_path(os.environ)
    help = "the database file (default: %(default)s)"
    parser.add_argument("--database", type=path_of_file, default=default, metavar="FILE", help=help)


def path_of_file(text: str) -> str:
    if not text:
        raise ArgumentTypeError("expected the path of a file")
    return text


@contextmanager
def replacement(path: str, wait: bool = False) -> Iterator[Path]:
    """A path for a new file, which replaces the file at `path` unless the block raises.

    If another program is replacing it, waits for that program, or raises LoadError.
    """
    old = Path(os.path.realpath(path))  # if it is a symbolic link, the link stays
    if os.path.lexists(old) and not is_replaceable(old):
        raise LoadError(
            f"{old}: exists and is not a racedata database; remove it, or name another file"
        )
    with locked(old.parent, wait) as folder:
        new = old.with_name(f".{old.name}.loading")
        new.unlink(missing_ok=True)  # left by a loader that was killed
        remove_left(f".{old.name}.", old.name, old.parent)  # by a conversion in build.py
        try:
            new.touch()  # if that is not permitted, the error says so; SQLite's would not
            yield new
            if old.exists():
                copy_attributes(old, new)
            os.replace(new, old)
            os.fsync(folder)
        except sqlite3.OperationalError as error:
            disk = os.fstatvfs(folder)
            if (
                error.sqlite_errorcode == sqlite3.SQLITE_FULL
                and disk.f_bavail * disk.f_frsize > FREE_BYTES
            ):
                raise no_space_for_temporary_files() from None
            raise
        finally:
            new.unlink(missing_ok=True)


def copy_attributes(old: Path, new: Path) -> None:
    """Gives a new file the owner and the mode of an old one."""
    status = old.stat()
    with suppress(PermissionError):  # only root may change the owner
        os.chown(new, status.st_uid, status.st_gid)
    new.chmod(stat.S_IMODE(status.st_mode))


def replaced_file(path: str) -> tuple[int, int, int] | None:
    """What tells whether another file has replaced the one at `path`.

    It stays the same if the file gets a link or another mode.
    """
    state = file_state(path)
    return state and (state.device, state.inode, state.modified)


@contextmanager
def locked(folder: Path, wait: bool) -> Iterator[int]:
    """Locks a folder: gives its descriptor.

    If another program has locked it, waits for that program, or raises LoadError.
    """
    # A lock on the folder leaves no file behind, and ends with the process, even if that is killed.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = "another load or refresh is running in this folder; try again when it has ended"
            raise LoadError(f"{folder}: {what}") from None
        yield descriptor
    finally:
        os.close(descriptor)


def progress_of_terminal() -> Progress:
    """Shows progress if stderr is a terminal."""
    return show_progress if sys.stderr and sys.stderr.isatty() else lambda text: None


def show_progress(text: str) -> None:
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def ignore(number: int, frame: FrameType | None) -> None:
    """Handles a signal. With SIG_IGN, Python would complain of one that has just arrived."""


def ignore_end_signals() -> None:
    for number in END_SIGNALS:
        signal.signal(number, ignore)


def interrupt(number: int, frame: FrameType | None) -> Never:
    """Handles the first signal to end, and ignores later ones, which would disturb the clean-up."""
    ignore_end_signals()
    raise KeyboardInterrupt


def interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Handles an exception that Python would only print.

    A signal may arrive in a `__del__`, which cannot raise.
    """
    if unraisable.exc_type is KeyboardInterrupt:
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.001)
    else:
        sys.__unraisablehook__(unraisable)


@contextmanager
def interrupted_by_end_signals() -> Iterator[None]:
    """In the block, the first signal to end raises KeyboardInterrupt.

    Later ones, and those after the block, are ignored.
    """
    hook, sys.unraisablehook = sys.unraisablehook, interrupt_again
    try:
        for number in END_SIGNALS:
            signal.signal(number, interrupt)
        yield
    finally:
        ignore_end_signals()
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = hook


def run(
    program: str, database: str, work: Callable[[Progress], list[str]], replaces: bool = True
) -> None:
    """Does work on `database`, and prints the lines it returns. Exits with one line if it fails.

    If the work `replaces` it, the line says whether it did. Afterwards, signals to end are ignored.
    """
    progress = progress_of_terminal()
    before = replaced_file(database)
    lines: list[str] = []
    fault = ""
    try:
        with interrupted_by_end_signals():
            lines = work(progress)
    except KeyboardInterrupt:
        fault = "interrupted"
    except FAULTS as error:
        fault = fault_text(error, database)
    progress("")
    if lines and not fault:
        fault = say("\n".join(lines))
    if fault:
        outcome = (
            "nothing was changed"
            if replaced_file(database) == before
            else "the new database is in place"
        )
        sys.exit(f"racedata {program}: {fault}{f'; {outcome}' if replaces else ''}")


def fault_text(error: Exception, database: str) -> str:
    """What one of FAULTS says, in one line."""
    match error:
        case MemoryError():
            text = f"{database}: not enough memory"
        case sqlite3.Error():
            text = f"{database}: {error}"
        case OSError() if error.filename:
            text = f"{error.filename}: {error.strerror}"
        case _:
            text = str(error)
    text += what_to_do(error, os.path.dirname(os.path.realpath(database)))
    return "".join(character if character.isprintable() else " " for character in text)


def what_to_do(error: Exception, folder: str) -> str:
    """What the operator can do if the folder of the database is full or cannot be written.

    Empty if the error is another one.
    """
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT) or (
        isinstance(error, sqlite3.Error) and "disk is full" in str(error)
    ):
        return f"; free some space in {folder}"
    path = str(getattr(error, "filename", ""))
    if number in (errno.EACCES, errno.EPERM, errno.EROFS) and path.startswith(folder):
        if os.path.isfile(path) and not os.access(path, os.R_OK):
            return f"; let user {os.geteuid()} read {path}"
        while not os.path.isdir(folder):  # the first folder to be made is in one that exists
            folder = os.path.dirname(folder)
        return f"; let user {os.geteuid()} write {folder}"
    return ""


def say(text: str) -> str:
    """Writes lines to stdout at once. Returns what went wrong.

    That is empty if all went well, and even if nobody reads the lines.
    """
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes stdout once more when it ends
        if not isinstance(error, BrokenPipeError):  # `| head` has read enough
            return f"stdout: {error.strerror}"
    return ""

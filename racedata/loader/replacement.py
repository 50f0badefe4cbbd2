"""Replaces the database: at the very end, with a whole new file, or not at all.

The lock of its folder belongs here. The content of the new file does not.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from racedata.database import file_state, is_replaceable
from racedata.hints import MOVE
from racedata.loader.errors import LoadError
from racedata.loader.temporary import remove_left
from racedata.loader.threads import Sleep
from racedata.locks import lock, opened_folder

LOOK_SECONDS = 0.1  # how often a locked folder is tried again


@contextmanager
def replacement(path: str, sleep: Sleep | None = None) -> Iterator[Path]:
    """A new file, which replaces the file at `path`, unless the block raises or deletes it.

    If another program or thread is replacing it, sleeps until that is done, or raises LoadError.
    """
    old = Path(os.path.realpath(path))  # if it is a symbolic link, the link stays
    if os.path.lexists(old) and not is_replaceable(old):
        raise LoadError(f"{old}: exists and is not a racedata database; {MOVE}")
    with locked(old.parent, sleep):
        new = old.with_name(f".{old.name}.loading")
        new.unlink(missing_ok=True)  # left by a loader that was killed
        remove_left(old.parent)  # by provide.py
        try:
            new.touch()  # its error names the missing permission; SQLite's does not
            yield new
            if new.exists():
                replace_file(new, old)
        finally:
            new.unlink(missing_ok=True)


def replace_file(new: Path, old: Path) -> None:
    """Replaces a file with a new one, which gets its owner and mode. Waits until it is on disk."""
    if old.exists():
        copy_attributes(old, new)
    os.replace(new, old)
    folder = os.open(old.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def copy_attributes(old: Path, new: Path) -> None:
    """Gives a new file the owner and the mode of an old one."""
    status = old.stat()
    with suppress(PermissionError):  # only root may change the owner
        os.chown(new, status.st_uid, status.st_gid)
    new.chmod(stat.S_IMODE(status.st_mode))


def identity_of_file(path: str) -> tuple[int, int, int] | None:
    """A value that changes if another file replaces the one at `path`, but not on chmod or link."""
    state = file_state(path)
    return state and (state.device, state.inode, state.modified)


@contextmanager
def locked(folder: Path, sleep: Sleep | None) -> Iterator[None]:
    """Locks a folder.

    If another program or thread has locked it, sleeps until it is free, or raises LoadError.
    """
    descriptor = opened_folder(folder)
    try:
        while True:
            try:
                lock(descriptor)
                break
            except BlockingIOError:
                if not sleep:
                    what = "another load or refresh is running in this folder"
                    raise LoadError(f"{folder}: {what}; try again when it has ended") from None
            sleep(LOOK_SECONDS)
        yield
    finally:
        os.close(descriptor)

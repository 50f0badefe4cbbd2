"""Temporary folders. The next program that makes one in the same place removes what killed programs
have left.

A program locks its folder, and the lock ends with the program. So a folder that nobody has locked
is left over.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from racedata.locks import lock, opened_folder

PREFIX = ".racedata-"
NAME = re.compile(re.escape(PREFIX) + "[a-z0-9_]{8}")  # as mkdtemp makes it


@contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """A new folder in `parent` or in the folder for temporary files, until the end of the block."""
    parent = parent or Path(tempfile.gettempdir())
    remove_left(parent)
    folder, descriptor = locked_folder(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def locked_folder(parent: Path) -> tuple[Path, int]:
    """A new folder, and the descriptor that locks it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        # Before it is locked, another program may remove it as left over.
        with suppress(FileNotFoundError):
            descriptor = opened_folder(folder)
            lock(descriptor, waits=True)
            if folder.exists():
                return folder, descriptor
            os.close(descriptor)


def remove_left(parent: Path) -> None:
    """Removes the folders that killed programs of this user have left."""
    with suppress(OSError):  # cleaning up is optional
        for folder in [path for path in parent.iterdir() if NAME.fullmatch(path.name)]:
            with suppress(OSError):
                remove_if_left(folder)


def remove_if_left(folder: Path) -> None:
    descriptor = opened_folder(folder, follows_links=False)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            lock(descriptor)  # BlockingIOError: its program is running
            shutil.rmtree(folder)
    finally:
        os.close(descriptor)

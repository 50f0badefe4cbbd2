"""Temporary folders. The next program that makes one removes what killed programs have left.

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

RANDOM = "[a-z0-9_]{8}"  # the text that mkdtemp appends to a prefix


@contextmanager
def temporary_folder(prefix: str, file: str, parent: Path | None = None) -> Iterator[Path]:
    """A new folder, until the end of the block. All files in it have `file` in their names.

    It is in `parent`, or in the folder for temporary files.
    """
    parent = parent or Path(tempfile.gettempdir())
    remove_left(prefix, file, parent)
    folder, descriptor = locked_folder(prefix, parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def locked_folder(prefix: str, parent: Path) -> tuple[Path, int]:
    """A new folder, and the descriptor that locks it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        # Before it is locked, another program may remove it as left over.
        with suppress(FileNotFoundError):
            descriptor = opened_folder(folder)
            lock(descriptor, waits=True)
            if folder.exists():
                return folder, descriptor
            os.close(descriptor)


def remove_left(prefix: str, file: str, parent: Path) -> None:
    """Removes the folders that killed programs of this user have left.

    Folders with other files stay.
    """
    name = re.compile(re.escape(prefix) + RANDOM)
    with suppress(OSError):  # cleaning up is optional
        for folder in [path for path in parent.iterdir() if name.fullmatch(path.name)]:
            with suppress(OSError):
                remove_if_left(folder, file)


def remove_if_left(folder: Path, file: str) -> None:
    descriptor = opened_folder(folder, follows_links=False)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid() and all(
            file in name for name in os.listdir(descriptor)
        ):
            lock(descriptor)  # BlockingIOError: its program is running
            for name in os.listdir(descriptor):
                os.unlink(name, dir_fd=descriptor)
            folder.rmdir()
    finally:
        os.close(descriptor)

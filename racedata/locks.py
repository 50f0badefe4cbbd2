"""Locks of folders, for the loader and for static copies. A lock leaves no file behind, and ends
with its process, even if that is killed.
"""

import errno
import os
from pathlib import Path

WHERE = "this system cannot lock a folder; expected Linux, or a Python with the module fcntl"


def opened_folder(folder: Path, follows_links: bool = True) -> int:
    """The descriptor of a folder, for `lock`. Raises OSError."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        raise OSError(errno.ENOTSUP, WHERE, str(folder)) from None
    flags = os.O_RDONLY | os.O_DIRECTORY
    return os.open(folder, flags if follows_links else flags | os.O_NOFOLLOW)


def lock(descriptor: int, waits: bool = False) -> None:
    """Locks a folder. If another process has, waits for it, or raises BlockingIOError."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))

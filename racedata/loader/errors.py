"""What the loader says: its progress, and the error that ends it."""

import sqlite3
import tempfile
from collections.abc import Callable

Progress = Callable[[str], None]  # shows the current step, such as `results.csv: 400 rows`


class LoadError(Exception):
    """Why a command of the loader failed, in one line: where, what, and what was expected."""


class NotYet(LoadError):
    """A source refuses for now, without having failed. A follower soon asks it again.

    For `seconds`, it would refuse every request, so none is sent: see Refresh.limits_remembered.
    """

    def __init__(self, text: str, seconds: float = 0) -> None:
        super().__init__(text)
        self.seconds = seconds


# Exceptions that a load or a refresh may meet. A source may send numbers too large to count with,
# and JSON too deep to write into a message.
FAULTS = (LoadError, MemoryError, ArithmeticError, RecursionError, sqlite3.Error, OSError)


def no_space_for_temporary_files() -> LoadError:
    return LoadError(
        f"{tempfile.gettempdir()}: no space left for temporary files; set TMPDIR to another folder"
    )

"""What the loader says: its progress, the error that ends it, and how it counts and lists."""

import sqlite3
import tempfile
from collections.abc import Callable, Sequence

Progress = Callable[[str], None]  # shows the current step, such as `results.csv: 400 rows`

SHOWN = 5  # maximum names in one line


class LoadError(Exception):
    """Why a command of the loader failed, in one line: where, what, and what was expected."""


class NotYet(LoadError):
    """A source refuses for now, without having failed. A follower soon asks it again.

    For `seconds`, it would refuse every request, so no request is sent: see Refresh.refusals_noted.
    """

    def __init__(self, text: str, seconds: float = 0) -> None:
        super().__init__(text)
        self.seconds = seconds


# exceptions that a load or a refresh may meet
FAULTS = (LoadError, MemoryError, sqlite3.Error, OSError)


def no_space_for_temporary_files() -> LoadError:
    return LoadError(
        f"{tempfile.gettempdir()}: no space left for temporary files; set TMPDIR to another folder"
    )


def plural(noun: str, count: int) -> str:
    """`race` or `races`."""
    return noun if count == 1 else f"{noun}s"


def counted(count: int, noun: str) -> str:
    """`1 race`, `1,149 races`."""
    return f"{count:,} {plural(noun, count)}"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"

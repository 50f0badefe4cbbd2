"""What the loader says: its progress, its report, and the error that ends it."""

import io
import sys
from collections.abc import Callable

Progress = Callable[[str], None]  # called with what is being done, such as `results.csv: 400 rows`


class LoadError(Exception):
    """The reason why no database was built, in one line."""


def print_report(text: str) -> None:
    """Writes to stdout. In an encoding that lacks a character, that becomes `\\xe9` or the like. Raises OSError."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    print(text, flush=True)

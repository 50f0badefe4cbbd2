"""What the loader says: its progress, and the error that ends it."""

from collections.abc import Callable

Progress = Callable[[str], None]  # called with what is being done, such as `results.csv: 400 rows`


class LoadError(Exception):
    """The reason why no database was built, in one line."""

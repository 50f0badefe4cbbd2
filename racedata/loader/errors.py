"""What the loader says: its progress, and the error that ends it."""

import tempfile
from collections.abc import Callable

Progress = Callable[[str], None]  # called with what is being done, such as `results.csv: 400 rows`


class LoadError(Exception):
    """Why a command of the loader failed, in one line: what, where, and what is accepted."""


class NotYet(LoadError):
    """A source has not failed, but refuses for now. It is asked again within half an hour."""


def no_space_for_temporary_files() -> LoadError:
    return LoadError(
        f"{tempfile.gettempdir()}: no space left for temporary files; TMPDIR names another folder"
    )

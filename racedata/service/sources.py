"""The sources of the data: when refreshes last asked them, and since when they are followed.

snapshot.py reads what the database itself says about its sources.
"""

from collections.abc import Mapping

from racedata import database
from racedata.formats import in_utf8, without_query

# The public name of a database that is copied whole: its address may be private.
COPIED = "the database of another racedata"

Notes = Mapping[str, Mapping[str, str]]  # by the name of a source, its times by their key


class RefreshNotes:
    """The times that refreshes have noted in the store next to a database.

    They are not in the database, because a refresh that finds nothing new does not change it.
    """

    def __init__(self, path: str) -> None:
        self.path = path  # the path of the database
        self._cached: tuple[database.FileState | None, Notes] = None, {}

    def read(self) -> Notes:
        """The notes on each source, by its name in the table `sources`.

        `refreshedAt` is when a refresh last asked the source, and `followedSince` is when a process
        began to follow it. Until the file changes, this returns the same object.
        """
        state = database.file_state(str(database.store_path(self.path)))
        if state != self._cached[0]:
            times = database.refresh_times(self.path)
            self._cached = state, {in_utf8(name): notes for name, notes in times.items()}
        return self._cached[1]


def is_database(name: str) -> bool:
    """Whether a source is a database to copy whole, which never is in the table `sources`."""
    return without_query(name).endswith(".db")

"""When refreshes asked the sources: from the store next to the database.

A refresh that finds nothing new does not change the database, so only the store has these times.
"""

from collections.abc import Mapping

from racedata import database
from racedata.database import FileState, file_state
from racedata.formats import in_utf8

# By the name of a source, the times of refreshes by their key: `refreshedAt`, `followedSince`.
SourceTimes = Mapping[str, Mapping[str, str]]
# By the name of a source, when a refresh last asked it.
AskedAt = Mapping[str, str]


class RefreshTimes:
    """The times in the store of the database at `path`, which is read again when it changes."""

    def __init__(self, path: str) -> None:
        self.path = path
        # one attribute, because threads share it
        self.latest: tuple[FileState | None, SourceTimes] = None, {}

    def by_source(self) -> SourceTimes:
        """When a refresh last asked each source (`refreshedAt`), and since when it is followed
        (`followedSince`), by its name in the table `sources`.

        Until the store changes, this returns the same object.
        """
        state = file_state(str(database.store_path(self.path)))
        if state != self.latest[0]:
            found = database.refresh_times(self.path)
            if found is not None:  # else the next request asks again
                self.latest = state, {in_utf8(name): times for name, times in found.items()}
        return self.latest[1]

    def asked_at(self) -> AskedAt:
        return {
            name: times["refreshedAt"]
            for name, times in self.by_source().items()
            if "refreshedAt" in times
        }

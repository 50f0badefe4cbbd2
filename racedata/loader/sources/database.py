"""A database that racedata has built, as a source for comparisons."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

from racedata.database import OLDEST_VERSION, is_replaceable
from racedata.loader.errors import Progress
from racedata.loader.existing import ExistingDatabase
from racedata.loader.sources.pace import Pace
from racedata.loader.sources.source import Fill, Source


class DatabaseSource(Source):
    """A database file."""

    @classmethod
    def at(cls, address: str, pace: Pace) -> Self | None:
        path = Path(address)
        is_database = path.is_file() and path.stat().st_size and is_replaceable(path)
        return cls(address, pace) if is_database else None

    @contextmanager
    def opened(self, progress: Progress) -> Iterator[Fill]:
        with closing(ExistingDatabase(Path(self.address), OLDEST_VERSION)) as existing:
            yield existing.fill

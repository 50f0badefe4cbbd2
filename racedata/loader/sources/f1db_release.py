"""A release of f1db. Its SHA-256, a separate file, shows whether it is new. f1db.py reads it."""

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple

from racedata.formats import HTTP, counted
from racedata.loader.errors import FAULTS, LoadError, NotYet, Progress
from racedata.loader.files.archives import Dump
from racedata.loader.http import NotFetched, Request
from racedata.loader.schedule import Expected
from racedata.loader.sources import f1db
from racedata.loader.sources.dump import DumpSource
from racedata.loader.sources.history import History
from racedata.loader.sources.pace import Pace
from racedata.loader.sources.source import Task

FILE = "f1db-csv.zip"
CHECKSUMS = "checksums_sha256.txt"
CHECKSUMS_BYTES, CHECKSUMS_SECONDS = 100_000, 30
# how long to wait before an unusable release is downloaded again
FIRST_WAIT, LONGEST_WAIT = timedelta(hours=1), timedelta(hours=8)


class Unusable(NamedTuple):
    """A release that was downloaded and could not be used."""

    release: str  # its SHA-256
    failures: int
    until: float  # when it may be downloaded again, by the clock of a Pace


class F1dbRelease(DumpSource):
    """A release, or a copy of one: a zip next to a file of checksums."""

    licence = f1db.LICENCE

    def __init__(self, address: str, pace: Pace) -> None:
        super().__init__(address, pace)
        self.name = "f1db"
        self.unusable = Unusable("", 0, 0)

    @classmethod
    def accepts(cls, address: str) -> bool:
        return HTTP.match(address) is not None and address.endswith(f"/{FILE}")

    @contextmanager
    def dump(self, progress: Progress) -> Iterator[Dump]:
        expected = (self.release(progress), f"{CHECKSUMS} next to it")
        with self.downloaded(self.address, progress, expected) as dump:
            yield dump

    def has_news(self, expected: Sequence[Expected], history: History, progress: Progress) -> bool:
        release = self.release(progress)
        return release != known_release(history) and not self.wait_for(release)

    def bring(self, task: Task) -> str:
        release = self.release(task.progress)
        if not (task.season or task.lacks_cancelled) and release == known_release(task.history):
            return f": no later release at {self.address}"
        if wait := self.wait_for(release):
            minutes = counted(math.ceil(wait / 60), "minute")
            what = f"this release could not be used; next download in {minutes}"
            raise LoadError(f"{self.address}: {what}; expected a newer release")
        try:
            return self.bring_dump(task)
        except (NotFetched, NotYet):
            raise
        except FAULTS:
            before = self.unusable.failures if self.unusable.release == release else 0
            until = self.pace.clock() + wait_after(before + 1).total_seconds()
            self.unusable = Unusable(release, before + 1, until)
            raise

    def release(self, progress: Progress) -> str:
        """The SHA-256 of the release, from the file of checksums: one request tells whether it is
        new.
        """
        address, content = self.address.removesuffix(FILE) + CHECKSUMS, io.BytesIO()
        request = Request(address, "the checksums of a release", CHECKSUMS_SECONDS, CHECKSUMS_BYTES)
        self.pace.fetch(request, content, progress)
        line = re.search(
            rf"^([0-9A-Fa-f]{{64}})[ *]+(?:\S*/)?{FILE}\s*$",
            content.getvalue().decode("latin-1"),
            re.MULTILINE,
        )
        if not line:
            raise LoadError(f"{address}: no line with the SHA-256 of {FILE}; expected one")
        return line[1].lower()

    def wait_for(self, release: str) -> float:
        """For how many seconds a release is not downloaded again, because it could not be used."""
        if self.unusable.release == release:
            return max(0.0, self.unusable.until - self.pace.clock())
        return 0.0


def wait_after(failures: int) -> timedelta:
    """How long to wait after this many downloads of an unusable release: an hour, doubling up to
    eight.
    """
    return min(FIRST_WAIT * (1 << min(failures - 1, 3)), LONGEST_WAIT)


def known_release(history: History) -> str | None:
    """The SHA-256 of the latest release that was read."""
    return history.source and history.source.checksum

"""A release of f1db. Its SHA-256, a separate file, shows whether it is new."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from racedata.formats import HTTP
from racedata.licences import NAMED
from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.archives import Dump
from racedata.loader.http import Request
from racedata.loader.schedule import Expected
from racedata.loader.sources.dump import DumpSource
from racedata.loader.sources.history import History
from racedata.loader.sources.pace import Pace
from racedata.loader.sources.source import Task

FILE = "f1db-csv.zip"
CHECKSUMS = "checksums_sha256.txt"
CHECKSUMS_BYTES, CHECKSUMS_SECONDS = 100_000, 30


class F1dbRelease(DumpSource):
    """A release, or a copy of one: a zip next to a file of checksums."""

    licence = NAMED

    def __init__(self, address: str, pace: Pace) -> None:
        super().__init__(address, pace)
        self.name = "f1db"

    @classmethod
    def accepts(cls, address: str) -> bool:
        return HTTP.match(address) is not None and address.endswith(f"/{FILE}")

    @contextmanager
    def dump(self, progress: Progress) -> Iterator[Dump]:
        expected = (self.release(progress), f"{CHECKSUMS} next to it")
        with self.downloaded(self.address, progress, expected) as dump:
            yield dump

    def has_news(self, expected: Sequence[Expected], history: History, progress: Progress) -> bool:
        return self.release(progress) != known_release(history)

    def bring(self, task: Task) -> str:
        release = self.release(task.progress)
        if not (task.season or task.lacks_cancelled) and release == known_release(task.history):
            return f": no later release at {self.address}"
        return self.bring_dump(task)

    def release(self, progress: Progress) -> str:
        """The SHA-256 of the release, from the file of checksums: one request tells whether it is
        new.
        """
        address = self.address.removesuffix(FILE) + CHECKSUMS
        request = Request(address, "the checksums of a release", CHECKSUMS_SECONDS, CHECKSUMS_BYTES)
        line = re.search(
            rf"^([0-9A-Fa-f]{{64}})[ *]+(?:\S*/)?{FILE}\s*$",
            self.pace.content(request, progress).decode("latin-1"),
            re.MULTILINE,
        )
        if not line:
            raise LoadError(f"{address}: no line with the SHA-256 of {FILE}; expected one")
        return line[1].lower()


def known_release(history: History) -> str | None:
    """The SHA-256 of the latest release that was read."""
    return history.source and history.source.checksum

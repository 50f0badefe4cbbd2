"""A database that racedata has built, in a file or at a URL. It is copied as a whole."""

import io
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import IO

from racedata.database import OLDEST_VERSION, is_replaceable
from racedata.formats import HTTP, without_query
from racedata.loader.copies import EXPECTED, Copy, Refused, check_copied
from racedata.loader.errors import LoadError, Progress
from racedata.loader.existing import ExistingDatabase, checksum_at_end
from racedata.loader.http import DOWNLOAD_SECONDS, Request, WrongStatus
from racedata.loader.parts import Tables
from racedata.loader.schedule import Expected
from racedata.loader.sources.history import History
from racedata.loader.sources.pace import Pace
from racedata.loader.sources.source import Source, Task
from racedata.loader.store import StoredSource
from racedata.loader.temporary import temporary_folder

SUFFIX = ".db"
QUESTION_SECONDS = 60


class Unchanged(Exception):
    """The database at an address has one of the entity tags that it was asked for."""

    def __init__(self, etag: str) -> None:
        super().__init__(etag)
        self.etag = etag


class DatabaseSource(Source):
    is_whole = True
    interval = timedelta(minutes=1)

    def __init__(self, address: str, pace: Pace) -> None:
        super().__init__(address, pace)
        self.etag = ""  # the entity tag of the latest answer
        self.refused = "", ""  # the entity tag of a database that cannot be used, and why

    @classmethod
    def accepts(cls, address: str) -> bool:
        if HTTP.match(address):
            return without_query(address).endswith(SUFFIX)
        path = Path(address)
        with suppress(OSError):  # a source that cannot be read is reported later
            return not path.is_dir() and (
                path.suffix == SUFFIX
                or (path.is_file() and path.stat().st_size > 0 and is_replaceable(path))
            )
        return False

    @contextmanager
    def opened(self, progress: Progress) -> Iterator[tuple[Tables, list[StoredSource]]]:
        """Opens even a file of an earlier version."""
        with ExitStack() as stack:
            path = Path(self.address)
            if HTTP.match(self.address):
                path = stack.enter_context(self.copied(progress)).path
            existing = stack.enter_context(closing(ExistingDatabase(path, OLDEST_VERSION)))
            yield Tables(existing.db, "main"), existing.sources()

    @contextmanager
    def copied(self, progress: Progress, etags: Sequence[str] = ()) -> Iterator[Copy]:
        """A checked copy in a temporary folder. Raises Unchanged if it has one of these tags."""
        with temporary_folder() as folder:
            path = folder / "racedata.db"
            with path.open("wb") as file:
                self.fetch(file, etags, progress)
            progress("checking the database")
            check_copied(path, without_query(self.address))
            yield Copy(path, self.address, self.etag)

    def fetch(
        self, file: IO[bytes], etags: Sequence[str], progress: Progress, method: str = "GET"
    ) -> None:
        """Writes the database to a file, and notes its entity tag. With HEAD, it only asks."""
        if not HTTP.match(self.address):
            self.copy_file(Path(self.address), file, etags, method)
            return
        seconds = QUESTION_SECONDS if method == "HEAD" else DOWNLOAD_SECONDS
        request = Request(self.address, EXPECTED, seconds, method=method, known=etags)
        try:
            self.etag, is_known = self.pace.fetch(request, file, progress)[:2]
        except WrongStatus as error:
            if error.status != 404:
                raise
            what = "has no database to copy (404); expected a service with RACEDATA_DOWNLOAD=on"
            raise LoadError(f"{without_query(self.address)}: {what}") from None
        if is_known:
            raise Unchanged(self.etag)

    def copy_file(self, path: Path, file: IO[bytes], etags: Sequence[str], method: str) -> None:
        """Does the same for a file on this machine."""
        if not path.is_file():
            what = "is not a regular file" if path.exists() else "is missing"
            raise LoadError(f"{path} {what}; expected {EXPECTED}")
        with suppress(OSError):  # the file may be too short
            self.etag = quoted(checksum_at_end(path))
        if self.etag in etags:
            raise Unchanged(self.etag)
        if method == "GET":
            with path.open("rb") as source:
                shutil.copyfileobj(source, file)

    def etags(self, history: History) -> list[str]:
        """The entity tags of databases that are not to be sent: ours, and one that cannot be used.

        racedata's own is the checksum. Another server may have its own for the same file.
        """
        noted = history.notes.get("etag")
        found = [quoted(checksum_at_end(history.path)), noted, self.refused[0]]
        return list(dict.fromkeys(tag for tag in found if isinstance(tag, str) and tag))

    def has_news(self, expected: Sequence[Expected], history: History, progress: Progress) -> bool:
        try:
            self.fetch(io.BytesIO(), self.etags(history), progress, method="HEAD")
        except Unchanged:
            return False
        return bool(self.etag)  # without one, only a download would tell: once a day

    def bring(self, task: Task) -> str:
        place = without_query(self.address)
        if task.season:
            raise LoadError(f"{place}: a database is always copied whole; expected no --season")
        try:
            with self.copied(task.progress, self.etags(task.history)) as copy:
                task.replace_with(copy)
        except Unchanged as unchanged:
            if unchanged.etag and unchanged.etag == self.refused[0]:  # a 304 may have none
                raise Refused(self.refused[1]) from None
        except Refused as error:
            self.refused = self.etag, str(error)
            raise
        return f" at {place}"


def quoted(checksum: str) -> str:
    return f'"{checksum}"'

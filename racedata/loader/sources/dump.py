"""Dumps: folders of CSV files, zips of them and URLs of such zips, in any of the layouts."""

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import NamedTuple

from racedata.formats import HTTP, timestamp, without_query
from racedata.licences import NAMED, SHARED_ALIKE
from racedata.loader.delivery import delivery_of
from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.archives import Dump, checksum_of, opened, unzipped
from racedata.loader.http import Request, Secret
from racedata.loader.parts import Tables
from racedata.loader.same_bytes import SAMPLE, SAMPLE_NAME
from racedata.loader.schedule import DAY, Expected
from racedata.loader.sources import ergast, sections
from racedata.loader.sources.history import History
from racedata.loader.sources.source import Source, Task, check_season
from racedata.loader.stage import Stage, staged
from racedata.loader.store import StoredSource
from racedata.model import RECORDS


class Layout(NamedTuple):
    """A layout of a dump."""

    recognised_by: str  # a file that only this layout has
    read: Callable[[Dump, Stage], StoredSource]  # see read_dump
    name: str = ""  # the source of every dump in this layout; empty if there are several


def file_of_f1db(table: str) -> str:
    return f"{table.replace('_', '-')}.csv"


LAYOUTS = (
    Layout(
        "formula_one_round.csv",
        partial(sections.read, "jolpica", SHARED_ALIKE, "formula_one_{}.csv".format),
        name="jolpica",
    ),
    Layout(
        "f1db-races.csv",
        partial(sections.read, "f1db", NAMED, file_of_f1db),
        name="f1db",
    ),
    Layout("races.csv", ergast.read),
)
RECOGNISED_BY = [layout.recognised_by for layout in LAYOUTS]

# The sources that have a name, and where they are published. `jolpica` is found in an index.
PUBLISHED = {
    "tracinginsights": f"{ergast.TRACINGINSIGHTS}releases/latest/download/data.zip",
    "f1db": "https://github.com/f1db/f1db/releases/latest/download/f1db-csv.zip",
    "jolpica": "jolpica",
}


class DumpSource(Source):
    """A dump at an address. Only reading it tells what it has, so it is asked once a day."""

    is_dump = True
    # a dump that serves a refresh has no laps
    kinds = tuple(kind for kind in RECORDS if kind != "lap_times")

    @cached_property
    def name(self) -> str:
        named = {published: name for name, published in PUBLISHED.items()}
        return self.what_files_say[0] or named.get(self.address, self.address)

    @cached_property
    def is_rest(self) -> bool:
        return self.what_files_say[1]

    @cached_property
    def what_files_say(self) -> tuple[str, bool]:
        """What a dump on this machine is: its name, or none, and whether it is a rest."""
        if os.path.isabs(self.address):
            # a source that cannot be read is reported later
            with suppress(LoadError, OSError), self.dump(lambda text: None) as dump:
                name = next((each.name for each in found_in(dump) if each.name), "")
                return name, ergast.is_rest(dump)
        return "", False

    @classmethod
    def accepts(cls, address: str) -> bool:
        return True

    @contextmanager
    def dump(self, progress: Progress) -> Iterator[Dump]:
        """Opens it. Raises LoadError."""
        if HTTP.match(self.address):
            found = self.downloaded(self.address, progress)
        else:
            path = SAMPLE if self.address == SAMPLE_NAME else self.address
            found = opened(path, RECOGNISED_BY, PUBLISHED)
        with found as dump:
            yield dump._replace(address=self.address)

    @contextmanager
    def downloaded(
        self,
        url: str,
        progress: Progress,
        expected: tuple[str, str] | None = None,
        secret: Secret | None = None,
    ) -> Iterator[Dump]:
        """The dump in the zip at a URL. `expected` is its SHA-256, and the source of that."""
        with tempfile.TemporaryFile() as file:
            request = Request(url, "the zip of a dump", secret=secret)
            self.pace.fetch(request, file, progress)
            if expected and (actual := checksum_of(file)) != expected[0]:
                what = f"its SHA-256 is {actual}; expected {expected[0]}, as {expected[1]} says"
                raise LoadError(f"{without_query(url)}: {what}")
            with unzipped(file, url, RECOGNISED_BY) as dump:
                yield dump

    def read(self, stage: Stage, is_loaded: bool = True) -> None:
        with self.dump(stage.progress) as dump:
            read_dump(dump, stage, is_loaded)

    def has_news(self, expected: Sequence[Expected], history: History, progress: Progress) -> bool:
        return False

    def bring(self, task: Task) -> str:
        yesterday = timestamp(self.pace.time() - DAY)
        read = task.history.source
        if read and yesterday < read.read_at and not (task.is_named or task.season):
            return f": {self.address} was read {read.read_at}"
        return self.bring_dump(task)

    def bring_dump(self, task: Task) -> str:
        with staged(task.progress) as stage:
            self.read(stage, is_loaded=False)
            for remark in stage.remarks:
                task.say(remark)
            tables = Tables(stage.db, "stage")
            years = sorted({year for year, _ in tables.rounds.values()})
            if task.season:
                check_season(task.season, years, self.address)
                years = [task.season]
            else:
                with task.history.database() as old:
                    first = old.first_season([])
                years = [year for year in years if year >= first]
            (source,) = stage.sources
            self.name = source.name
            task.deliver(delivery_of(source, tables, 1, years))
        return f" after reading {self.address}"


def found_in(dump: Dump) -> Iterator[Layout]:
    """The layouts that a dump has."""
    return (layout for layout in LAYOUTS if (dump.folder / layout.recognised_by).exists())


def read_dump(dump: Dump, stage: Stage, is_loaded: bool = True) -> None:
    """Fills the stage from a dump, by its layout, and names the source. Raises LoadError.

    `is_loaded` says whether it is read for a load, or for a refresh.
    """
    try:
        # If there is none, the last reader says which files it expects.
        source = next(found_in(dump), LAYOUTS[-1]).read(dump, stage)
    except LoadError as error:
        raise LoadError(f"{dump.address}: {error}") from None
    # for rows that several files make: `UNIQUE constraint failed: qualifying.…`
    except sqlite3.IntegrityError as error:
        what, _, columns = str(error).partition(" constraint failed: ")
        fault = (
            f"two rows have the same {columns}; expected different ones"
            if what == "UNIQUE"
            else str(error)
        )
        raise LoadError(f"{dump.address}: {fault}") from None
    stage.name_source(source._replace(is_loaded=is_loaded))

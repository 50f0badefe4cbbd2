"""The sources of a load: their names, and one reader per layout of a dump. Nothing else knows them."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from typing import NamedTuple

from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.archives import Dump, opened
from racedata.loader.files.download import HTTP
from racedata.loader.sources import ergast, f1db, jolpica
from racedata.loader.sources.f1db_download import is_release, published_release
from racedata.loader.sources.jolpica import LICENCE as JOLPICA_LICENCE
from racedata.loader.sources.jolpica_download import published_dump
from racedata.loader.stage import Origin, Stage

__all__ = ["JOLPICA_LICENCE", "PUBLISHED", "addresses_in", "earlier", "name_of", "open_dump", "read_dump", "utc_now"]

# Sources that a name is enough for, and where they are published. `jolpica` is found in an index.
PUBLISHED = {
    "tracinginsights": f"{ergast.TRACINGINSIGHTS}releases/latest/download/data.zip",
    "f1db": "https://github.com/f1db/f1db/releases/latest/download/f1db-csv.zip",
    "jolpica": "jolpica",
}


class Layout(NamedTuple):
    """A layout of a dump."""

    recognised_by: str  # a file that only this layout has
    read: Callable[[Dump, Stage], Origin]  # fills the Stage


LAYOUTS = (
    Layout(jolpica.RECOGNISED_BY, jolpica.read),
    Layout(f1db.RECOGNISED_BY, f1db.read),
    Layout(ergast.RECOGNISED_BY, ergast.read),
)
RECOGNISED_BY = [layout.recognised_by for layout in LAYOUTS]


def open_dump(address: str, jolpica_token: str | None, progress: Progress) -> AbstractContextManager[Dump]:
    """The dump at an address, which may be one of PUBLISHED. Raises LoadError."""
    if address == "jolpica":
        return published_dump(jolpica_token, RECOGNISED_BY, progress)
    if is_release(address):
        return published_release(address, RECOGNISED_BY, progress)
    return opened(address, RECOGNISED_BY, progress)


def read_dump(dump: Dump, stage: Stage, is_loaded: bool = True) -> list[str]:
    """Fills the stage from a dump, by its layout, and names its origin. Returns remarks. Raises LoadError.

    `is_loaded` says whether it is read for a load, or for a refresh.
    """
    # If there is none, the last reader says which files it expects.
    found = (layout for layout in LAYOUTS if (dump.folder / layout.recognised_by).exists())
    try:
        origin = next(found, LAYOUTS[-1]).read(dump, stage)
    except LoadError as error:
        raise LoadError(f"{dump.address}: {error}") from None
    except sqlite3.IntegrityError as error:  # of rows that several files make: `UNIQUE constraint failed: qualifying.…`
        what, _, columns = str(error).partition(" constraint failed: ")
        fault = f"two rows have the same {columns}; expected no two" if what == "UNIQUE" else str(error)
        raise LoadError(f"{dump.address}: {fault}") from None
    stage.place = dump.address
    stage.name_origin(origin, utc_now(), is_loaded)
    return list(origin.remarks)


def addresses_in(text: str) -> list[str]:
    """The addresses of sources in an argument. `make` passes several as one, separated by spaces."""
    path = os.path.abspath(os.path.expanduser(text))  # the next load may run in another folder
    words = text.split()
    if text and (os.path.exists(path) or (words == [text] and text not in PUBLISHED and "://" not in text)):
        return [path]
    return [PUBLISHED.get(text, text)] if words == [text] else [each for word in words for each in addresses_in(word)]


def name_of(address: str) -> str:
    """The name of the source at an address, as far as the address tells: see the table `sources`."""
    named = {published: name for name, published in PUBLISHED.items()}
    if address in named or is_release(address):
        return named.get(address, "f1db")
    if not HTTP.match(address):
        with suppress(LoadError, OSError), opened(address, RECOGNISED_BY, lambda text: None) as dump:
            for name, file in (("jolpica", jolpica.RECOGNISED_BY), ("f1db", f1db.RECOGNISED_BY)):
                if (dump.folder / file).exists():
                    return name
    return address


def utc_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

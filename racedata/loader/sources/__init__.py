"""The sources of a load: one reader per layout of a dump, and the list of them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from racedata.loader.archives import dump_folder
from racedata.loader.csvfile import AnyPath
from racedata.loader.errors import Progress
from racedata.loader.sources import ergast, jolpica
from racedata.loader.sources.jolpica import LICENCE as JOLPICA_LICENCE
from racedata.loader.sources.jolpica_download import published_dump
from racedata.loader.stage import Origin, Stage

__all__ = ["JOLPICA_LICENCE", "fill_stage", "open_dump"]


class Layout(NamedTuple):
    """A layout of a dump."""

    recognised_by: str  # a file that only this layout has
    read: Callable[[AnyPath, str, Stage], Origin]  # fills the Stage from a folder; the text names the source


LAYOUTS = (Layout(jolpica.RECOGNISED_BY, jolpica.read), Layout(ergast.RECOGNISED_BY, ergast.read))


def open_dump(source: str, jolpica_token: str | None, progress: Progress) -> AbstractContextManager[AnyPath]:
    """The folder of CSV files that a source names. Raises LoadError."""
    known = [layout.recognised_by for layout in LAYOUTS]
    if source == "jolpica":
        return published_dump(jolpica_token, known, progress)
    return dump_folder(source, known, progress)


def fill_stage(folder: AnyPath, source: str, stage: Stage) -> Origin:
    """Fills the stage from a folder of CSV files, by its layout. Raises LoadError."""
    # If there is none, the last reader says which files it expects.
    found = (layout for layout in LAYOUTS if (folder / layout.recognised_by).exists())
    return next(found, LAYOUTS[-1]).read(folder, source, stage)

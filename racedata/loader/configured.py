"""Loads the sources in RACEDATA_SOURCE, if the database needs them, before others are followed."""

import os
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

from racedata.database import OLDEST_VERSION, is_older
from racedata.loader.errors import LoadError
from racedata.loader.existing import ExistingDatabase
from racedata.loader.load import load, load_or_rebuild, make_default_folder
from racedata.loader.memory import remember_followed
from racedata.loader.program import progress_of_terminal
from racedata.loader.replacement import replaced_file
from racedata.loader.sources import whole_database


class ConfiguredSources:
    """The sources in RACEDATA_SOURCE. `followed` has the names of the sources to follow next."""

    def __init__(
        self,
        path: str,
        configured: Sequence[str],
        corrections: Path | None,
        followed: Collection[str],
    ) -> None:
        self.path, self.configured = path, configured
        self.corrections, self.followed = corrections, followed
        self.progress = progress_of_terminal()
        # Whether a change of RACEDATA_SOURCE causes a load: true only at the start. A whole
        # database does not say where it was copied from.
        self.compares = not whole_database(configured)
        self.checked: object = None  # the file that was checked, or loaded
        self.is_noted = False  # whether the notes say that the sources are followed

    def load(self) -> str:
        """Loads the sources if necessary. Returns a line that says so.

        Raises LoadError if the file cannot be read.
        """
        if self.is_noted and replaced_file(self.path) == self.checked:
            return ""
        line = ""
        if self.configured and (remark := self.remark()) is not None:
            make_default_folder(self.path)
            line = load(self.configured, self.path, self.corrections, self.progress)[-1] + remark
        elif os.path.exists(self.path) and is_older(Path(self.path)):
            line = load_or_rebuild(self.path, self.corrections, self.progress)[-1]
        self.progress("")
        self.is_noted = (self.is_noted and not line) or remember_followed(
            Path(self.path), self.followed
        )
        self.checked, self.compares = replaced_file(self.path), False
        return line

    def are_optional(self) -> bool:
        """Whether the other sources can be followed even if these cannot be loaded."""
        return not self.configured or has_more_than_the_sample(Path(self.path))

    def remark(self) -> str | None:
        """The end of the load's line if the sources must be loaded; None if they need not be."""
        if not os.path.exists(self.path):
            return ""
        with closing(ExistingDatabase(Path(self.path), OLDEST_VERSION)) as existing:
            loaded, is_sample = existing.loaded_sources, existing.is_sample
        if loaded == self.configured:
            return None
        if is_sample:
            return ""
        return (
            f"; RACEDATA_SOURCE has changed: until now, the data came from {' and '.join(loaded)}"
            if self.compares
            else None
        )


def has_more_than_the_sample(path: Path) -> bool:
    try:
        with closing(ExistingDatabase(path, OLDEST_VERSION)) as existing:
            return not existing.is_sample
    except LoadError:
        return False

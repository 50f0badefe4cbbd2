"""What a merge adds to a stage: records of another source, of a refresh or of the old database."""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from racedata.database import SCHEMA
from racedata.loader.errors import Progress
from racedata.loader.rules import Rule, only_adds
from racedata.loader.stage import Fill, Stage
from racedata.loader.temporary import temporary_folder


class Addition(NamedTuple):
    """What to merge, and how. It always fills gaps."""

    fill: Fill
    rule: Rule = only_adds  # when its records replace records of the base
    years: Collection[int] | None = None  # the seasons to merge; None: all
    # whether its calendars may replace those of the stage, by the same rule
    has_calendars: bool = False
    # whether it may delete races that it lacks, and replace records of more drivers
    may_shrink: bool = True
    # whether races without results are cancelled if its calendar of a season lacks them; otherwise
    # that calendar is not used
    are_cancelled: Callable[[int, Sequence[str]], bool] = lambda year, races: False
    # whether its facts about drivers, constructors and circuits are used too
    updates_lists: bool = False


@contextmanager
def filled_apart(fill: Fill, progress: Progress) -> Iterator[tuple[Path, list[str]]]:
    """A Stage in a file of its own, for `merge`: the path of that file, and what `fill` returns."""
    with temporary_folder("racedata-", "stage.db") as folder:
        path = folder / "stage.db"
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
            db.executescript(SCHEMA)
            stage = Stage(db, progress, str(path))
            db.execute("BEGIN")
            lines = fill(stage)
            db.execute("COMMIT")
        yield path, lines

"""Keeps the database fresh: `racedata refresh --follow`, until a signal ends it.

Each source has its own process, so a slow or failing one does not delay the others. The rules for
the times of checks are in schedule.py.
"""

import math
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple, Never

from racedata.loader.errors import FAULTS, LoadError, NotYet
from racedata.loader.existing import open_read_only
from racedata.loader.processes import Children, Sleep, Waiter
from racedata.loader.program import fault_text, progress_of_terminal, say
from racedata.loader.schedule import (
    DAY,
    FIRST_RETRY,
    LATER,
    Expected,
    after_race,
    as_stored,
    expected_records,
    next_check,
    retry_wait,
    soon_after,
    to_ask,
)
from racedata.loader.signals import interrupted_by_end_signals

NEVER = datetime.min.replace(tzinfo=UTC)
# the longest sleep, to notice that the machine was suspended or its clock set
WAIT_SECONDS = 600


class Followed(NamedTuple):
    """A source to follow, and its refresh. If they fail, the functions raise one of FAULTS."""

    kinds: Collection[str]  # of the records that it publishes after a session: names of tables
    # whether a refresh would store such records, or another calendar
    has_news: Callable[[Sequence[Expected]], bool]
    # brings the database up to date, and returns what changed, in one line
    refresh: Callable[[], str]
    # all sessions of a weekend together; else after each session
    publishes_after_race: bool = False
    # how long after the planned end of a session it may have records; None: FIRST_CHECK counts
    after_end: timedelta | None = None
    is_provisional: bool = False  # whether another source's records replace its own
    interval: timedelta | None = None  # how often it is asked; None: when the calendar says so


@dataclass
class Following:
    """A source, and when to check it."""

    source: Followed
    due: datetime
    refreshed: datetime = NEVER
    failures: int = 0  # in a row
    is_refused: bool = False  # at the last check


class Loop:
    """The loop. Everything outside it is passed in."""

    def __init__(
        self,
        expected: Callable[[], list[Expected]],
        clock: Callable[[], datetime],
        wait: Callable[[float], None],
        report: Callable[[str], object],
        complain: Callable[[Exception, datetime], None],  # gets the time of the next try
    ) -> None:
        self.expected, self.clock, self.wait, self.report, self.complain = (
            expected,
            clock,
            wait,
            report,
            complain,
        )

    def run(self, source: Followed) -> Never:
        """Follows a source until the process ends."""
        following = Following(source, self.clock())
        while True:
            self.check(following)

    def check(self, each: Following) -> None:
        """Waits until a source is due, checks it, and decides when it is due again."""
        # If the clock was set back, it may be due in the far future: then it is due now.
        while 0 < (seconds := (each.due - self.clock()).total_seconds()) <= DAY.total_seconds():
            self.wait(min(seconds, WAIT_SECONDS))
        try:
            self.refresh_if_needed(each)
            each.failures = 0
            each.due = min(self.next_check(each), each.refreshed + DAY)
            each.is_refused = False
        except NotYet as error:
            each.due = self.clock() + (each.source.interval or LATER)
            if not each.is_refused:  # one line, however long it takes
                self.complain(error, each.due)
            each.is_refused = True
        except FAULTS as error:
            each.failures += 1
            each.due = self.clock() + retry_wait(each.failures)
            # A failure never postpones a regular check. The database may be missing.
            with suppress(*FAULTS):
                each.due = min(each.due, self.next_check(each))
            self.complain(error, each.due)

    def refresh_if_needed(self, each: Following) -> None:
        """Refreshes the database from a source once a day, and if the source has news."""
        now = self.clock()
        if abs(now - each.refreshed) < DAY:
            asked = to_ask(self.expected_of(each.source), now)
            if not ((asked or each.source.interval) and each.source.has_news(asked)):
                return
        if changed := each.source.refresh():
            self.report(changed)
        each.refreshed = now

    def next_check(self, each: Following) -> datetime:
        if each.source.interval:
            wait = FIRST_RETRY if each.failures else each.source.interval
            return self.clock() + wait
        return next_check(self.expected_of(each.source), self.clock())

    def expected_of(self, source: Followed) -> list[Expected]:
        expected = as_stored(self.expected(), source.is_provisional)
        if source.publishes_after_race:
            expected = after_race(expected)
        elif source.after_end is not None:
            expected = soon_after(expected, source.after_end)
        return [records for records in expected if records.kind in source.kinds]


class Preparation:
    """The step before sources can be followed, repeated if the database vanishes."""

    def __init__(self, prepare: Callable[[], str], is_enough: Callable[[], bool]) -> None:
        """`prepare` returns what it did, in one line, or raises one of FAULTS.

        `is_enough` says whether the sources can be followed even if it fails.
        """
        self.prepare, self.is_enough = prepare, is_enough
        self.due, self.failures, self.is_done = time.monotonic(), 0, False

    def run(self, complain: Callable[[Exception, datetime], None]) -> None:
        """Prepares, if that is due."""
        if self.due > time.monotonic():
            return
        try:
            if done := self.prepare():
                say(done)
            self.failures, wait, self.is_done = 0, timedelta(seconds=WAIT_SECONDS), True
        except FAULTS as error:
            self.failures += 1
            wait, self.is_done = retry_wait(self.failures), self.is_done or self.is_enough()
            complain(error, utc() + wait)
        self.due = time.monotonic() + wait.total_seconds()


def follow(
    database: str,
    sources: Sequence[tuple[str, Callable[[Sleep], Followed]]],
    preparation: Preparation,
    parent: int | None = None,
) -> None:
    """Follows the sources until a signal, or until the process `parent` ends.

    Both leave the database intact. Each source has a name and a function that makes it, which is
    called in the source's process with a function to sleep.
    """

    def expected() -> list[Expected]:
        with closing(open_read_only(Path(database))) as db:
            return expected_records(db)

    def complain(error: Exception, due: datetime) -> None:
        with suppress(OSError):
            progress_of_terminal()("")
            line = f"racedata refresh: {fault_text(error, database)}; next try at {due:%H:%M} UTC"
            print(line, file=sys.stderr, flush=True)

    def follow_one(make: Callable[[Sleep], Followed], sleep: Sleep) -> None:
        Loop(expected, utc, sleep, say, complain).run(make(sleep))

    def complain_of_process(name: str, how: str, failures: int) -> float:
        wait = retry_wait(failures)
        complain(LoadError(f"the process that follows {name} {how}"), utc() + wait)
        return wait.total_seconds()

    waiter = Waiter(parent)
    children = Children(
        [(name, partial(follow_one, make)) for name, make in sources], complain_of_process
    )
    try:
        with interrupted_by_end_signals():
            while True:
                preparation.run(complain)
                next_start = children.start() if preparation.is_done else math.inf
                waiter.wait(max(0.0, min(preparation.due, next_start) - time.monotonic()))
                children.collect()
    except KeyboardInterrupt:
        pass
    finally:
        children.end()


def utc() -> datetime:
    return datetime.now(UTC)

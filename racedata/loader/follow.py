"""Keeps the database fresh: `racedata refresh --follow`, until a signal ends it.

Each source has its own process, so a slow or failing one does not delay the others. The rules for
the times of checks are in schedule.py.
"""

import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Never

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
from racedata.loader.sources import Source

LONG_AGO = datetime.min.replace(tzinfo=UTC)
# the longest sleep, to notice that the machine was suspended or its clock set
WAIT_SECONDS = 600


@dataclass
class FollowedSource:
    """A source, and when to check it. If they fail, its functions raise one of FAULTS."""

    source: Source
    # whether a refresh would store such records, or another calendar
    has_news: Callable[[Sequence[Expected]], bool]
    # brings the database up to date, and returns what changed, in one line
    refresh: Callable[[], str]
    due: datetime = LONG_AGO  # the next check
    refreshed: datetime = LONG_AGO
    failures: int = 0  # consecutive
    is_refused: bool = False  # whether the last check was refused


class CheckLoop:
    """The loop of a source's process. Everything outside it is passed in."""

    def __init__(
        self,
        expected: Callable[[], list[Expected]],
        clock: Callable[[], datetime],
        wait: Callable[[float], None],
        report: Callable[[str], object],
        complain: Callable[[Exception, datetime], None],  # gets the time of the next try
    ) -> None:
        self.expected = expected
        self.clock = clock
        self.wait = wait
        self.report = report
        self.complain = complain

    def run(self, followed: FollowedSource) -> Never:
        """Checks a source again and again, until the process ends."""
        while True:
            self.check(followed)

    def check(self, followed: FollowedSource) -> None:
        """Waits until a source is due, checks it, and decides when it is due again."""
        # If the clock was set back, `due` may be far in the future: then the source is due now.
        while 0 < (seconds := (followed.due - self.clock()).total_seconds()) <= DAY.total_seconds():
            self.wait(min(seconds, WAIT_SECONDS))
        try:
            self.refresh_if_needed(followed)
            followed.failures = 0
            followed.due = min(self.next_check(followed), followed.refreshed + DAY)
            followed.is_refused = False
        except NotYet as error:
            followed.due = self.clock() + (followed.source.interval or LATER)
            if not followed.is_refused:  # one line, however long it takes
                self.complain(error, followed.due)
            followed.is_refused = True
        except FAULTS as error:
            followed.failures += 1
            followed.is_refused = False
            followed.due = self.clock() + retry_wait(followed.failures)
            # A failure never postpones a regular check. The database may be missing.
            with suppress(*FAULTS):
                followed.due = min(followed.due, self.next_check(followed))
            self.complain(error, followed.due)

    def refresh_if_needed(self, followed: FollowedSource) -> None:
        """Refreshes the database from a source once a day, and if the source has news."""
        now = self.clock()
        if abs(now - followed.refreshed) < DAY:
            records = to_ask(self.expected_of(followed.source), now)
            if not ((records or followed.source.interval) and followed.has_news(records)):
                return
        if changed := followed.refresh():
            self.report(changed)
        followed.refreshed = now

    def next_check(self, followed: FollowedSource) -> datetime:
        if followed.source.interval:
            wait = FIRST_RETRY if followed.failures else followed.source.interval
            return self.clock() + wait
        return next_check(self.expected_of(followed.source), self.clock())

    def expected_of(self, source: Source) -> list[Expected]:
        expected = self.expected()
        if source.publishes_after_race:
            expected = after_race(expected)
        elif source.after_end is not None:
            expected = soon_after(expected, source.after_end)
        return [
            records
            for records in as_stored(expected, source.is_provisional)
            if records.kind in source.kinds
        ]


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


def follow_in_processes(
    database: str,
    sources: Sequence[tuple[str, Callable[[Sleep], FollowedSource]]],
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

    def run_loop(make: Callable[[Sleep], FollowedSource], sleep: Sleep) -> None:
        loop = CheckLoop(expected=expected, clock=utc, wait=sleep, report=say, complain=complain)
        loop.run(make(sleep))

    def complain_of_process(name: str, how: str, failures: int) -> float:
        wait = retry_wait(failures)
        complain(LoadError(f"the process that follows {name} {how}"), utc() + wait)
        return wait.total_seconds()

    waiter = Waiter(parent)
    children = Children(
        [(name, partial(run_loop, make)) for name, make in sources], complain_of_process
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

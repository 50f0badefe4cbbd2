"""Keeps the database fresh: `racedata refresh --follow`, until a signal ends it.

Each source has its own thread, so a slow or failing one does not delay the others. The rules for
the times of checks are in schedule.py.
"""

import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Never

from racedata.loader.errors import FAULTS, NotYet
from racedata.loader.existing import open_read_only
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
from racedata.loader.sources import Source
from racedata.loader.threads import Sleep, Threads

LONG_AGO = datetime.min.replace(tzinfo=UTC)
# the longest sleep, to notice that the machine was suspended or its clock set
WAIT_SECONDS = 15
PREPARED_AGAIN = timedelta(minutes=10)  # the database may vanish


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


# Prepares the database. Returns what it did, in one line, or raises one of FAULTS.
Prepare = Callable[[Sleep], str]


@dataclass
class CheckLoop:
    """The loop of each source's thread. Everything outside it is passed in."""

    expected: Callable[[], list[Expected]]
    clock: Callable[[], datetime]
    wait: Sleep
    report: Callable[[str], object]
    complain: Callable[[Exception, datetime], None]  # gets the time of the next try

    def run(self, followed: FollowedSource) -> Never:
        """Checks a source again and again, until `wait` ends it."""
        while True:
            self.check(followed)

    def wait_until(self, due: datetime) -> None:
        # If the clock was set back, `due` may be far in the future: then it is due now.
        while 0 < (seconds := (due - self.clock()).total_seconds()) <= DAY.total_seconds():
            self.wait(min(seconds, WAIT_SECONDS))

    def prepare(
        self, prepare: Prepare, is_enough: Callable[[], bool], begin: Callable[[], object]
    ) -> Never:
        """Prepares the database, again and again. Calls `begin` once when sources can be followed;
        `is_enough` says whether they can even if it fails.
        """
        failures, has_begun = 0, False
        while True:
            try:
                if done := prepare(self.wait):
                    self.report(done)
                failures, wait, is_ready = 0, PREPARED_AGAIN, True
            except Exception as error:
                failures += 1
                wait, is_ready = retry_wait(failures), is_enough()
                self.complain(error, self.clock() + wait)
            due = self.clock() + wait
            if is_ready and not has_begun:
                has_begun = True
                begin()
            self.wait_until(due)

    def check(self, followed: FollowedSource) -> None:
        """Waits until a source is due, checks it, and decides when it is due again."""
        self.wait_until(followed.due)
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
        except Exception as error:
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


def follow_in_threads(
    database: str,
    sources: Callable[[Sleep], Sequence[FollowedSource]],
    prepare: Prepare,
    is_enough: Callable[[], bool],
    parent: int | None = None,
) -> None:
    """Follows the sources until a signal, or until the process `parent` ends.

    Both leave the database intact. `sources` makes them; it gets a function to sleep. `prepare` and
    `is_enough` are as in CheckLoop.prepare.
    """

    def expected() -> list[Expected]:
        with closing(open_read_only(Path(database))) as db:
            return expected_records(db)

    def complain(error: Exception, due: datetime) -> None:
        if not isinstance(error, FAULTS):  # a defect
            traceback.print_exception(error)
        with suppress(OSError):
            progress_of_terminal()("")
            line = f"racedata refresh: {fault_text(error, database)}; next try at {due:%H:%M} UTC\n"
            sys.stderr.write(line)  # at once: other threads print lines too

    def begin() -> None:
        for followed in sources(threads.sleep):
            threads.start(partial(loop.run, followed))

    threads = Threads(parent)
    loop = CheckLoop(expected, utc, threads.sleep, say, complain)
    threads.start(partial(loop.prepare, prepare, is_enough, begin))
    threads.wait()


def utc() -> datetime:
    return datetime.now(UTC)

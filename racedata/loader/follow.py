"""Keeps the database fresh: `racedata refresh --follow`, until a signal ends it.

`Follower` makes the database complete, and starts a thread for each source, so a slow or failing
one does not delay the others. `CheckLoop` is what a thread does. The rules for its times are in
schedule.py.
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

from racedata.database import OLDEST_VERSION
from racedata.loader.errors import FAULTS, LoadError, NotYet
from racedata.loader.existing import ExistingDatabase, expected_records, open_read_only
from racedata.loader.load import bring_into_step, load
from racedata.loader.memory import remember_followed
from racedata.loader.program import fault_text, progress_of_terminal, say
from racedata.loader.refresh import Refresh
from racedata.loader.schedule import (
    DAY,
    FIRST_RETRY,
    LATER,
    Expected,
    after_race,
    as_stored,
    next_check,
    retry_wait,
    soon_after,
    to_ask,
)
from racedata.loader.sources import Pace, Source, source_at, whole_database
from racedata.loader.threads import Sleep, Threads
from racedata.settings import LoaderSettings

LONG_AGO = datetime.min.replace(tzinfo=UTC)
# the longest sleep, to notice that the machine was suspended or its clock set
WAIT_SECONDS = 15
COMPLETED_AGAIN = timedelta(minutes=10)  # the database may vanish


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

    def keep_complete(
        self,
        make_complete: Callable[[], str],
        is_enough: Callable[[], bool],
        begin: Callable[[], object],
    ) -> Never:
        """Makes the database complete, again and again. Calls `begin` once when sources can be
        followed; `is_enough` says whether they can even if it fails.
        """
        failures, has_begun = 0, False
        while True:
            try:
                if done := make_complete():
                    self.report(done)
                failures, wait, is_ready = 0, COMPLETED_AGAIN, True
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


class Follower:
    """Follows the sources of a database in threads: makes it complete, and then refreshes it."""

    def __init__(
        self, settings: LoaderSettings, addresses: Sequence[str], is_named: bool, threads: Threads
    ) -> None:
        """`is_named` says whether the command names the sources."""
        self.settings, self.path = settings, Path(settings.database)
        self.addresses, self.is_named = addresses, is_named
        self.threads = threads
        self.loop = CheckLoop(self.expected, utc, threads.sleep, say, self.complain)

    def run(self) -> None:
        work = partial(
            self.loop.keep_complete, self.make_complete, self.has_more_than_the_sample, self.begin
        )
        self.threads.start(work)
        self.threads.wait()

    def make_complete(self) -> str:
        """Builds the database if it is missing, or lacks what it should have. Returns what it did,
        in one line, or raises one of FAULTS.
        """
        show, line = progress_of_terminal(), ""

        def progress(text: str) -> None:
            self.threads.sleep(0)  # which ends it if the program is to end
            show(text)

        is_whole = whole_database(self.addresses) is not None
        if is_whole and not self.has_more_than_the_sample():
            line = load(self.addresses, self.settings, progress)[-1]
        is_listed = not (is_whole or self.is_named)
        line = line or bring_into_step(self.settings, progress, loads_unread=is_listed)
        progress("")
        sources = map(source_at, self.addresses)
        remember_followed(self.path, [(source.name, source.address) for source in sources])
        return line

    def has_more_than_the_sample(self) -> bool:
        try:
            with closing(ExistingDatabase(self.path, OLDEST_VERSION)) as existing:
                return not existing.is_sample
        except LoadError:
            return False

    def begin(self) -> None:
        for followed in self.sources():
            self.threads.start(partial(self.loop.run, followed))

    def sources(self) -> list[FollowedSource]:
        """At first, all are due at once. They are asked in the order of Refresh.run."""
        refresh = Refresh(
            settings=self.settings,
            addresses=self.addresses,
            season=None,
            progress=lambda text: self.threads.sleep(0),
            new_pace=partial(Pace, sleep=self.threads.sleep),
            sleep=self.threads.sleep,
            is_named=self.is_named,
        )
        return [followed_source(refresh, source) for source in reversed(refresh.sources)]

    def expected(self) -> list[Expected]:
        with closing(open_read_only(self.path)) as db:
            return expected_records(db)

    def complain(self, error: Exception, due: datetime) -> None:
        if not isinstance(error, FAULTS):  # a defect
            traceback.print_exception(error)
        with suppress(OSError):
            progress_of_terminal()("")
            fault = fault_text(error, self.settings.database)
            line = f"racedata refresh: {fault}; next try at {due:%H:%M} UTC\n"
            sys.stderr.write(line)  # at once: other threads print lines too


def followed_source(refresh: Refresh, source: Source) -> FollowedSource:
    return FollowedSource(
        source, partial(refresh.has_news, source), partial(refreshed, refresh, source)
    )


def refreshed(refresh: Refresh, source: Source) -> str:
    """Brings the database up to date from a source. Returns what changed, in one line."""
    lines: list[str] = []
    first = refresh.first_season(lines.append)
    is_new = refresh.ask(source, lines.append, first)
    return "; ".join(" ".join(line.split()) for line in lines) if is_new else ""


def utc() -> datetime:
    return datetime.now(UTC)

"""Keeps the database fresh: the loop of `racedata refresh --follow`, until a signal ends it.

Each source has its own times, so one that fails delays no other. The rules for these times are in schedule.py.
"""

import signal
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Never

from racedata.loader.replacement import END_SIGNALS, FAULTS, fault_text, interrupt, progress_of_terminal, say
from racedata.loader.schedule import DAY, Expected, after_race, expected_records, next_look, retry_wait, to_ask
from racedata.loader.sources.earlier import open_read_only

NEVER = datetime.min.replace(tzinfo=UTC)
WAIT_SECONDS = 600  # at a time: a long wait would not notice that the machine was suspended, or its clock set


class Source(NamedTuple):
    """A source to follow. If it fails, its functions raise one of FAULTS."""

    kinds: Collection[str]  # of the records that it publishes after a session: names of tables
    has_news: Callable[[Sequence[Expected]], bool]  # whether a refresh would store such records, or another calendar
    refresh: Callable[[], str]  # brings the database up to date, and returns what changed, in one line
    only_after_race: bool = False  # whether it publishes the records of all sessions of a weekend only after the race


@dataclass
class Following:
    """A source, and when to look at it."""

    source: Source
    due: datetime
    refreshed: datetime = NEVER
    failures: int = 0  # in a row


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
        self.expected, self.clock, self.wait, self.report, self.complain = expected, clock, wait, report, complain

    def run(self, sources: Sequence[Source], load: Callable[[], str] | None) -> Never:
        """Follows the sources for good. If there is a function `load`, calls it first, until it succeeds."""
        if load:
            first = Following(Source((), lambda asked: False, load), self.clock())
            while first.refreshed == NEVER:
                self.look(first)
        following = [Following(source, self.clock()) for source in sources]
        while True:
            self.look(min(following, key=lambda each: each.due))

    def look(self, each: Following) -> None:
        """Waits until a source is due, looks at it, and decides when it is due again."""
        # If the clock was set back, it may be due in the far future: then it is due now.
        while 0 < (seconds := (each.due - self.clock()).total_seconds()) <= DAY.total_seconds():
            self.wait(min(seconds, WAIT_SECONDS))
        try:
            self.refresh_if_needed(each)
            each.due, each.failures = min(self.next_look(each), each.refreshed + DAY), 0
        except FAULTS as error:
            each.failures += 1
            each.due = self.clock() + retry_wait(each.failures)
            with suppress(*FAULTS):  # there may be no database
                each.due = min(each.due, self.next_look(each))  # a failure never delays a look
            self.complain(error, each.due)

    def refresh_if_needed(self, each: Following) -> None:
        """Refreshes the database from a source once a day, and if the source has news."""
        now = self.clock()
        if abs(now - each.refreshed) < DAY:
            asked = to_ask(self.expected_of(each.source), now)
            if not (asked and each.source.has_news(asked)):
                return
        if changed := each.source.refresh():
            self.report(changed)
        each.refreshed = now

    def next_look(self, each: Following) -> datetime:
        return next_look(self.expected_of(each.source), self.clock())

    def expected_of(self, source: Source) -> list[Expected]:
        expected = after_race(self.expected()) if source.only_after_race else self.expected()
        return [records for records in expected if records.kind in source.kinds]


def wait(seconds: float) -> None:
    """Waits, at most until a signal to end. time.sleep would miss a signal that arrives just before it begins."""
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)
        if received := signal.sigtimedwait(END_SIGNALS, seconds):
            interrupt(received.si_signo, None)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)


def follow(database: str, sources: Sequence[Source], load: Callable[[], str] | None) -> None:
    """Follows the sources until a signal ends it, which leaves the database whole."""

    def expected() -> list[Expected]:
        with closing(open_read_only(Path(database))) as db:
            return expected_records(db)

    def complain(error: Exception, due: datetime) -> None:
        with suppress(OSError):
            progress_of_terminal()("")
            line = f"racedata refresh: {fault_text(error, database)}; next try at {due:%H:%M} UTC"
            print(line, file=sys.stderr, flush=True)

    try:
        for number in END_SIGNALS:
            signal.signal(number, interrupt)
        Loop(expected, lambda: datetime.now(UTC), wait, say, complain).run(sources, load)
    except KeyboardInterrupt:
        pass

"""When to check a source again, and what to ask it: rules without a clock, requests or SQL.

existing.py reads the calendar from a database. follow.py does the checks.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from racedata.model import RACE, SESSIONS

# How long after the start of a session the first check is. The times below count from it.
FIRST_CHECK = timedelta(minutes=90)
# How often to check while records are missing, and for how long. Then hourly.
OFTEN, OFTEN_UNTIL = timedelta(minutes=20), timedelta(hours=6)
# How long to check hourly while they are still missing. Then daily.
HOUR, HOURLY_UNTIL = timedelta(hours=1), timedelta(days=3)
DAY = timedelta(days=1)
FIRST_RETRY = timedelta(minutes=5)
# How long to wait after a refusal that is not a failure.
LATER = timedelta(minutes=15)
MINUTES = {session.name: timedelta(minutes=session.minutes) for session in SESSIONS}


class Expected(NamedTuple):
    """Records that a source publishes after a session."""

    year: int
    round: int
    session: str  # as in schema.sql, or `race`
    kind: str  # the name of a table
    starts: datetime
    is_stored: bool
    is_provisional: bool = False  # whether what is stored only counts until another source has it


def interval(records: Expected, now: datetime) -> timedelta | None:
    """How often to ask for these records now; None if it is too early or daily is enough."""
    age = now - records.starts - FIRST_CHECK
    if age < timedelta(0):
        return None
    if not records.is_stored and age < HOURLY_UNTIL:
        return OFTEN if age < OFTEN_UNTIL else HOUR
    return HOUR if records.kind == "results" and age < DAY else None  # penalties change them


def to_ask(expected: Iterable[Expected], now: datetime) -> list[Expected]:
    """The records to ask for now: missing ones, and results that penalties may have changed.

    Without the results of a race, its other records are not asked for: no source has them earlier.
    """
    due = [records for records in expected if interval(records, now)]
    without_results = {
        (records.year, records.round)
        for records in due
        if records.kind == "results" and not records.is_stored
    }
    return [
        records
        for records in due
        if records.session != RACE.name
        or records.kind == "results"
        or (records.year, records.round) not in without_results
    ]


def after_race(expected: Sequence[Expected]) -> list[Expected]:
    """The same records, for a source that publishes a weekend only after its race."""
    races = {
        (records.year, records.round): records.starts
        for records in expected
        if records.session == RACE.name
    }
    return [records._replace(starts=races[records.year, records.round]) for records in expected]


def soon_after(expected: Sequence[Expected], wait: timedelta) -> list[Expected]:
    """The same records, for a source that has them `wait` after the planned end of a session."""
    return [
        records._replace(starts=records.starts + MINUTES[records.session] + wait - FIRST_CHECK)
        for records in expected
    ]


def as_stored(expected: Sequence[Expected], is_provisional: bool) -> list[Expected]:
    """The same records, with `is_stored` from the view of one source.

    Provisional records do not count for other sources. A provisional source is not asked for
    records of another source.
    """
    if is_provisional:
        return [records for records in expected if records.is_provisional or not records.is_stored]
    return [
        records._replace(is_stored=records.is_stored and not records.is_provisional)
        for records in expected
    ]


def next_check(expected: Iterable[Expected], now: datetime) -> datetime:
    """When to check again, after a check at `now`: at most a day later."""
    checks = [now + DAY]
    for records in expected:
        first = records.starts + FIRST_CHECK
        checks.append(first if first > now else now + (interval(records, now) or DAY))
    return min(checks)


def retry_wait(failures: int) -> timedelta:
    """How long to wait after this many failures in a row: from five minutes, doubling up to an
    hour.
    """
    doublings = min(failures - 1, 4)
    return min(FIRST_RETRY * (1 << doublings), HOUR)

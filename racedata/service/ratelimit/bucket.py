"""The token bucket: arithmetic in whole microseconds, without a clock, storage or HTTP.

A bucket starts full and keeps refilling. Its state is one number: the moment at which it is full
again. Taking a token moves that moment one `interval` into the future. There is a token if the
moment is then at most `capacity` away.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from racedata.settings import Rate


class Decision(NamedTuple):
    """The outcome of one request. The lists have one item per limit."""

    # the limit with the longest wait among those without a token; None: allowed
    refused_by: Rate | None
    wait: int  # microseconds until the same request would be allowed; 0 if it is allowed now
    remaining: list[int]  # whole tokens left
    reset: list[int]  # microseconds until the bucket is full


def take(limits: Sequence[Rate], full_at: Iterable[int], now: int) -> tuple[Decision, list[int]]:
    """Takes a token from the bucket of each limit, or from none if one of them has none.

    `full_at` has, per limit, the moment at which its bucket is full: microseconds of the same clock
    as `now`. A moment in the past means a full bucket. Returns the Decision and the new moments.
    """
    # A moment may be more than the capacity away: the limit was larger when it was stored, or the
    # clock was set back. That must not lock a client out.
    fill_times = [min(max(full - now, 0), limit.capacity) for limit, full in zip(limits, full_at)]
    waits = [
        fill_time + limit.interval - limit.capacity for limit, fill_time in zip(limits, fill_times)
    ]
    wait, refused_by = max(waits), None
    if wait > 0:
        refused_by = limits[waits.index(wait)]
    else:
        fill_times = [fill_time + limit.interval for limit, fill_time in zip(limits, fill_times)]
    remaining = [
        (limit.capacity - fill_time) // limit.interval
        for limit, fill_time in zip(limits, fill_times)
    ]
    new_full_at = [now + fill_time for fill_time in fill_times]
    return Decision(refused_by, max(wait, 0), remaining, fill_times), new_full_at


def whole_seconds(microseconds: int) -> int:
    """Rounded up: a client that waits this long has waited long enough."""
    return -(-microseconds // 1_000_000)

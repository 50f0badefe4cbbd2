"""The limit store for several machines: buckets in a Redis or Valkey, and what happens while it does not work."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from racedata.ratelimit.bucket import Decision, Limit, take
from racedata.ratelimit.local_store import LocalStore
from racedata.ratelimit.redis_client import RedisClient, UnexpectedReply, encode

log = logging.getLogger(__name__)

# `take` in Lua, without the Decision: `take` itself makes that from the moments that the script returns.
# The time is the server's, because the clocks of several machines differ. A key expires when its buckets are full.
# A key with anything else than moments is like no key, and is overwritten.
SCRIPT = """
    local time = redis.call('TIME')
    local now = time[1] * 1000000 + time[2]
    local value = redis.pcall('GET', KEYS[1])
    local moments = string.gmatch(type(value) == 'string' and value or '', '%d+')
    local before, after, last, allowed = {now}, {}, now, true
    for i = 1, #ARGV / 2 do
        local interval, capacity = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
        before[i + 1] = math.min(math.max(tonumber(moments() or 0), now), now + capacity)
        local full = before[i + 1] + interval
        allowed = allowed and full <= now + capacity
        last = math.max(last, full)
        after[i] = string.format('%.0f', full)
    end
    if allowed then
        redis.call('SET', KEYS[1], table.concat(after, ' '), 'PX', math.ceil((last - now) / 1000))
    end
    return before
"""


class RedisStore:
    """The buckets in a Redis or Valkey at `url`, which any number of machines may share.

    One call of SCRIPT per request. If a call fails, or if SLOW_ANSWERS in a row are slow, an outage begins: `fallback`
    decides, and one request per RETRY seconds tries Redis again. A fast answer ends the outage. Both are logged once.
    `clock` returns seconds. Raises ValueError if `url` cannot be used.
    """

    TIMEOUT = 0.25  # seconds for a call, connecting included
    SLOW = 0.1  # seconds after which an answer is slow
    SLOW_ANSWERS = 5  # in a row that begin an outage; more than a worker has threads, which one pause may all delay
    RETRY = 1  # seconds between attempts during an outage

    def __init__(
        self, url: str, limits: Sequence[Limit], fallback: LocalStore, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits, self.fallback, self.clock = limits, fallback, clock
        self._client = RedisClient(url, self.TIMEOUT, clock)
        self._arguments = [str(number) for limit in limits for number in (limit.interval, limit.capacity)]
        self._slow_answers = 0  # in a row; not locked, because a lost count does no harm
        self._retry_at: float | None = None  # during an outage, a moment of `clock`
        self._lock = threading.Lock()  # of `_retry_at`

    def take(self, client: bytes) -> Decision:
        """Takes a token for `client`."""
        outage = self._retry_at is not None
        if outage and not self._retry_is_due():
            return self.fallback.take(client)
        began = self.clock()
        try:
            command = encode("EVAL", SCRIPT, "1", b"racedata:" + client, *self._arguments)
            now, *full_at = self._client.call(command, 1 + len(self.limits))
        except (OSError, UnexpectedReply) as error:
            self._begin_outage(str(error))
            return self.fallback.take(client)
        if self.clock() - began >= self.SLOW:
            self._slow_answers += 1
            if self._slow_answers >= self.SLOW_ANSWERS:
                self._begin_outage(f"{self.SLOW_ANSWERS} answers in a row took {self.SLOW} s or longer")
        else:
            self._slow_answers = 0
            if outage:
                self._end_outage()
        return take(self.limits, full_at, now)[0]

    def _retry_is_due(self) -> bool:
        """Whether this thread should try Redis again: during an outage, one thread per RETRY seconds."""
        with self._lock:
            if self._retry_at is None or self.clock() < self._retry_at:
                return self._retry_at is None
            self._retry_at = self.clock() + self.RETRY
            return True

    def _begin_outage(self, reason: str) -> None:
        with self._lock:
            if self._retry_at is None:
                log.warning("limit store unavailable, each machine counts for itself: %s", reason)
            self._retry_at = self.clock() + self.RETRY

    def _end_outage(self) -> None:
        with self._lock:
            if self._retry_at is not None:
                log.warning("limit store available again")
            self._retry_at = None

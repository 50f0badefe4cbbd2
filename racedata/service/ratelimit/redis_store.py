"""The limit store for several machines: buckets in Redis or Valkey, with a fallback for outages.

Imported only if the settings name one, because the `redis` package is an extra. A Redis that is
slow, stopped, restarted or full neither delays nor fails a request. The store trusts the replies,
because the Redis is the operator's own.
"""

import logging
import math
import threading
import time
from collections.abc import Callable

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from racedata.service.ratelimit.bucket import Decision, take
from racedata.service.ratelimit.local_store import LocalStore

log = logging.getLogger(__name__)

# `take` in Lua, without the Decision. Python's `take` makes the Decision from the moments that the
# script returns. The time is the server's, because the clocks of several machines differ. A key
# expires when its buckets are full. A key with any other content is treated as missing, and
# overwritten. A moment too far in the future is overwritten, even if the request is refused: the
# limit was larger when it was stored, or the server's clock was set back.
SCRIPT = """
    local time = redis.call('TIME')
    local now = time[1] * 1000000 + time[2]
    local value = redis.pcall('GET', KEYS[1])
    local moments = string.gmatch(type(value) == 'string' and value or '', '%d+')
    local before, kept, after, last, allowed, wrong = {now}, {}, {}, now, true, false
    for i = 1, #ARGV / 2 do
        local cost, capacity = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
        local stored = tonumber(moments() or 0)
        wrong = wrong or stored > now + capacity
        before[i + 1] = math.min(math.max(stored, now), now + capacity)
        local full = before[i + 1] + cost
        allowed = allowed and full <= now + capacity
        last = math.max(last, full)
        kept[i], after[i] = string.format('%.0f', before[i + 1]), string.format('%.0f', full)
    end
    if allowed or wrong then
        local state = table.concat(allowed and after or kept, ' ')
        redis.call('SET', KEYS[1], state, 'PX', math.ceil((last - now) / 1000))
    end
    return before
"""


class RedisStore:
    """The buckets in a Redis or Valkey at `url`, which any number of machines may share.

    One call of SCRIPT per request. Connecting, and each wait for a reply, may take TIMEOUT; only
    resolving a host name may take longer. If a call fails, or if SLOW_ANSWERS in a row are slow, an
    outage begins: `fallback` decides, and one request at a time tries Redis again, RETRY seconds
    after the last attempt. A fast answer ends the outage. Both are logged once.

    `url` has the form that `redis.Redis.from_url` accepts, and its options. `clock` returns
    seconds. Raises ValueError if `url` cannot be used.
    """

    TIMEOUT = 0.4  # seconds; less would take a busy machine for an outage
    SLOW = 0.15  # seconds after which an answer is slow
    # This many slow answers in a row begin an outage: more than the threads of a worker, because
    # one pause may delay all of them.
    SLOW_ANSWERS = 5
    RETRY = 1  # seconds between attempts during an outage

    def __init__(
        self,
        url: str,
        fallback: LocalStore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.fallback, self.limits = fallback, fallback.limits
        self.clock = clock
        try:
            self.redis = redis.Redis.from_url(
                url,
                protocol=2,  # every server supports it, and sends only replies
                socket_timeout=self.TIMEOUT,
                socket_connect_timeout=self.TIMEOUT,
                retry=Retry(NoBackoff(), 0),  # a retry would wait for another TIMEOUT
            )
            # This does not connect, but fails now if the URL has an unknown option. Otherwise each
            # request would fail.
            pool = self.redis.connection_pool
            pool.connection_class(**pool.connection_kwargs)
        except (redis.RedisError, TypeError, ValueError):
            # The text of the error may contain a part of the URL, which may contain a password.
            raise ValueError(
                "expected a URL such as redis://:password@host:6379/0, "
                "rediss://host (with TLS) or unix:///path?db=0, "
                "with no options other than those of the redis package"
            ) from None
        self.slow_answers = 0  # in a row; not locked, because a lost count does no harm
        # during an outage, a moment of `clock`; infinity while a request tries Redis again
        self.retry_at: float | None = None
        self.lock = threading.Lock()  # guards `retry_at`

    def take(self, client: bytes) -> Decision:
        outage = self.retry_at is not None
        if outage and not self.retry_is_due():
            return self.fallback.take(client)
        began = self.clock()
        try:
            now, *full_at = self.run_script(client)
        except Exception as error:  # whatever it is, the request is answered
            self.begin_outage(f"{type(error).__name__}: {error}")
            return self.fallback.take(client)
        if self.clock() - began < self.SLOW:
            self.slow_answers = 0
            if outage:
                self.end_outage()
        else:
            self.slow_answers += 1
            if self.retry_at is not None or self.slow_answers >= self.SLOW_ANSWERS:
                self.begin_outage(
                    f"{self.SLOW_ANSWERS} answers in a row took {self.SLOW} s or longer"
                )
        return take(self.limits, full_at, now)[0]

    def run_script(self, client: bytes) -> list[int]:
        """The reply of SCRIPT: the time, and the moments before this request."""
        arguments = [
            str(number) for limit in self.limits for number in (limit.interval, limit.capacity)
        ]
        reply: list[int] = self.redis.eval(SCRIPT, 1, b"racedata:" + client, *arguments)
        return reply

    def retry_is_due(self) -> bool:
        """Whether this thread should try Redis."""
        with self.lock:
            if self.retry_at is None:  # another thread has just ended the outage
                return True
            if self.clock() < self.retry_at:
                return False
            self.retry_at = math.inf
            return True

    def begin_outage(self, reason: str) -> None:
        """Begins an outage, or prolongs it."""
        with self.lock:
            if self.retry_at is None:
                log.warning(
                    "limit store unavailable (%s); each machine now counts its own requests", reason
                )
            self.retry_at = self.clock() + self.RETRY

    def end_outage(self) -> None:
        with self.lock:
            if self.retry_at is not None:
                log.info("limit store available again")
            self.retry_at = None

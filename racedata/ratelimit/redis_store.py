"""The limit store for several machines: buckets in a Redis or Valkey. Imported only if one is configured."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from racedata.ratelimit.bucket import Decision, Limit, take
from racedata.ratelimit.local_store import LocalStore

log = logging.getLogger(__name__)


class RedisStore:
    """The buckets in a Redis or Valkey at `url`, which any number of machines may share.

    One call of a script per request. During an outage `fallback` decides, and one request per RETRY seconds tries Redis
    again. `clock` returns seconds.
    """

    TIMEOUT = 0.25  # seconds to wait for a connection, and for an answer
    RETRY = 1  # seconds between attempts during an outage

    # `take` in Lua, without the Decision: `take` itself makes that from the moments that the script has read.
    # The time is the server's, because the clocks of several machines differ. A key expires when its buckets are full.
    SCRIPT = """
        local time = redis.call('TIME')
        local now = time[1] * 1000000 + time[2]
        local found, after, last, allowed = {now}, {}, now, true
        for moment in string.gmatch(redis.call('GET', KEYS[1]) or '', '%d+') do
            table.insert(found, tonumber(moment))
        end
        for i = 1, #ARGV / 2 do
            local interval, capacity = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
            found[i + 1] = found[i + 1] or 0
            local full = math.min(math.max(found[i + 1], now), now + capacity) + interval
            allowed = allowed and full <= now + capacity
            last = math.max(last, full)
            after[i] = string.format('%.0f', full)
        end
        if allowed then
            redis.call('SET', KEYS[1], table.concat(after, ' '), 'PX', math.ceil((last - now) / 1000))
        end
        return found
    """

    def __init__(
        self, url: str, limits: Sequence[Limit], fallback: LocalStore, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits, self.fallback, self.clock = limits, fallback, clock
        # One retry, at once: the server may have closed a connection that was idle.
        server = redis.Redis.from_url(
            url, socket_timeout=self.TIMEOUT, socket_connect_timeout=self.TIMEOUT, retry=Retry(NoBackoff(), 1)
        )
        self._script = server.register_script(self.SCRIPT)
        self._arguments = [number for limit in limits for number in (limit.interval, limit.capacity)]
        self._retry_at: float | None = None  # during an outage, a moment of `clock`
        self._threads = threading.Lock()

    def take(self, client: bytes) -> Decision:
        """Takes a token for `client`."""
        outage = self._retry_at is not None
        if outage and not self._retry_is_due():
            return self.fallback.take(client)
        try:
            now, *full_at = self._script(keys=[b"racedata:" + client], args=self._arguments)
        except redis.RedisError as error:
            self._set_reached(False, "the limit store cannot be reached, each machine counts for itself: %s", error)
            return self.fallback.take(client)
        if outage:
            self._set_reached(True, "the limit store is reached again")
        return take(self.limits, full_at[: len(self.limits)], now)[0]

    def _retry_is_due(self) -> bool:
        """Whether this thread should try Redis again: during an outage, one thread per RETRY seconds."""
        with self._threads:
            if self._retry_at is None or self.clock() < self._retry_at:
                return self._retry_at is None
            self._retry_at = self.clock() + self.RETRY
            return True

    def _set_reached(self, reached: bool, *message: object) -> None:
        """Begins or ends an outage, and logs `message` if this changes anything."""
        with self._threads:
            if reached != (self._retry_at is None):
                log.warning(*message)
            self._retry_at = None if reached else self.clock() + self.RETRY

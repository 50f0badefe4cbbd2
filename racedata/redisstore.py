"""Token buckets in a Redis or Valkey, which several machines share; nothing else of the rate limits is here."""

import logging
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from racedata.ratelimit import take

log = logging.getLogger(__name__)


class RedisStore:
    """The buckets in a Redis or Valkey at `url`, which any number of machines may share.

    One call of a script to each request. While the server cannot be reached, `fallback` answers, another store; after
    an outage it is asked again within RETRY seconds.
    """

    TIMEOUT = 0.25  # seconds to wait for a connection, and for an answer
    RETRY = 1  # seconds between attempts during an outage

    # `take` in Lua, but for the Decision: that is made here, by `take` itself, from the moments that the script found.
    # The server's clock, because those of many machines differ. The key expires when its buckets are full.
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

    def __init__(self, url, limits, fallback, clock=time.monotonic):
        self.limits, self.fallback, self.clock = limits, fallback, clock
        # One retry, at once: a connection that was idle may have been closed by the server.
        server = redis.Redis.from_url(
            url, socket_timeout=self.TIMEOUT, socket_connect_timeout=self.TIMEOUT, retry=Retry(NoBackoff(), 1)
        )
        self._script = server.register_script(self.SCRIPT)
        self._arguments = [number for limit in limits for number in (limit.interval, limit.capacity)]
        self._ask_again_at = None  # during an outage, a moment of `clock`
        self._threads = threading.Lock()

    def take(self, client):
        """Takes a token for `client`, some bytes; returns the Decision."""
        outage = self._ask_again_at is not None
        if outage and not self._worth_asking():
            return self.fallback.take(client)
        try:
            now, *full_at = self._script(keys=[b"racedata:" + client], args=self._arguments)
        except redis.RedisError as error:
            self._reached(False, "the limit store cannot be reached, limits are kept by this machine alone: %s", error)
            return self.fallback.take(client)
        if outage:
            self._reached(True, "the limit store is reached again")
        return take(self.limits, full_at[: len(self.limits)], now)[0]

    def _worth_asking(self):
        """In an outage: for one thread now and then."""
        with self._threads:
            if self._ask_again_at is None or self.clock() < self._ask_again_at:
                return self._ask_again_at is None
            self._ask_again_at = self.clock() + self.RETRY
            return True

    def _reached(self, reached, *message):
        """Begins or ends an outage; logs `message` where that is news."""
        with self._threads:
            if reached != (self._ask_again_at is None):
                log.warning(*message)
            self._ask_again_at = None if reached else self.clock() + self.RETRY

"""What the tests of several rate limit modules need: two limits, and stores with a clock that a test moves."""

import time
from contextlib import contextmanager

from conftest import Clock

from racedata.ratelimit.bucket import Limit
from racedata.ratelimit.local_store import LocalStore
from racedata.ratelimit.redis_store import RedisStore

BURST, SUSTAINED = Limit("burst", 4, 1), Limit("sustained", 500, 3600)
SECOND = 1_000_000  # microseconds
NOW = 10**12  # microseconds


def local_store(clients=1024):
    """A LocalStore with both limits; its `clock` is a Clock."""
    return LocalStore([BURST, SUSTAINED], clients, Clock(NOW))


@contextmanager
def redis_store(url, limits=(BURST, SUSTAINED), clock=time.monotonic):
    """A RedisStore; its connections and threads end with the block."""
    store = RedisStore(url, limits, LocalStore(limits, 1024, Clock(NOW)), clock)
    try:
        yield store
    finally:
        store._redis.close()
        store._executor.shutdown()


def allowed(store, client, requests):
    """How many of so many requests of `client` the store allows."""
    return sum(store.take(client).refused_by is None for _ in range(requests))

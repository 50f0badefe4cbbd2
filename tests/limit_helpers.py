"""What the tests of several rate limit modules need: two limits, and a local store on a clock that stands still."""

from conftest import Clock

from racedata.ratelimit.bucket import Limit
from racedata.ratelimit.local_store import LocalStore

BURST, SUSTAINED = Limit("burst", 4, 1), Limit("sustained", 500, 3600)
SECOND = 1_000_000  # microseconds
NOW = 10**12  # microseconds


def local_store(clients=1024):
    """A LocalStore with both limits; its `clock` is a Clock."""
    return LocalStore([BURST, SUSTAINED], clients, Clock(NOW))


def allowed(store, client, requests):
    """How many of so many requests of `client` the store allows."""
    return sum(store.take(client).refused_by is None for _ in range(requests))

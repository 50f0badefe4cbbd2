"""Rate limits in a real Redis: exact when two services share it, and decided by the local store while it is down."""

import threading
import time

import pytest
import redis
from floods import ADDRESS, FOUR_WORKERS, SECONDS, assert_limited
from hypothesis import given, settings
from hypothesis import strategies as st
from limit_helpers import local_store
from servers import Redis
from service import service
from traffic import Client, run, traffic

from racedata.ratelimit.bucket import Limit
from racedata.ratelimit.local_store import LocalStore
from racedata.ratelimit.redis_store import RedisStore


@pytest.fixture
def redis_server(tmp_path):
    server = Redis(tmp_path)
    yield server
    server.kill()


@pytest.fixture(scope="module")
def shared_redis(tmp_path_factory):
    server = Redis(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


TWO_WORKERS = {**FOUR_WORKERS, "WEB_CONCURRENCY": "2"}


def run_together(*pairs):
    """Runs each client of the (address, client) pairs, all at the same time."""
    threads = [threading.Thread(target=run, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Sum:
    """The statuses of several clients together, and the time from the first request to the last answer."""

    def __init__(self, *clients):
        self.statuses = sum((client.statuses for client in clients), start=type(clients[0].statuses)())
        self.began = min(client.began for client in clients)
        self.ended = max(client.ended for client in clients)


@pytest.mark.parametrize(
    ("limits", "quota", "per_second"),
    [
        ({}, 4, 4),
        ({"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "20/minute"}, 20, 20 / 60),
    ],
)
def test_two_services_on_one_redis_allow_a_client_no_more_than_one_would(
    sample_database, tmp_path, redis_server, limits, quota, per_second
):
    options = {**TWO_WORKERS, **limits, "RACEDATA_LIMIT_STORE": redis_server.url}
    floods = [Client(ADDRESS, SECONDS, connections=32) for _ in range(2)]
    others = [Client(ADDRESS, SECONDS, pause=0.26, source=f"127.0.0.{number}") for number in range(2, 6)]
    with (
        service(sample_database, tmp_path / "1", **options) as one,
        service(sample_database, tmp_path / "2", **options) as two,
    ):
        run_together(
            (one.address, floods[0]),
            (two.address, floods[1]),
            *([one.address, other] for other in others if not limits),
        )
    assert_limited(Sum(*floods), quota, per_second)
    if not limits:
        assert all(set(other.statuses) == {200} for other in others)


def test_a_redis_that_dies_and_comes_back_under_load_fails_no_request(sample_database, tmp_path, redis_server):
    flood = Client(ADDRESS, SECONDS + 6, connections=32)
    options = {**TWO_WORKERS, "RACEDATA_LIMIT_STORE": redis_server.url}
    with service(sample_database, tmp_path / "log", **options) as running:
        with traffic(running.address, flood):
            time.sleep(SECONDS / 2)
            redis_server.kill()
            time.sleep(3)
            redis_server.start()
        # Redis decides again: it has a bucket of the flooding client.
        assert redis.Redis.from_url(redis_server.url).keys() == [b"racedata:4" + bytes([127, 0, 0, 1])]
    assert set(flood.statuses) == {200, 429}
    assert flood.broken == 0
    log = (tmp_path / "log").read_text()
    assert 1 <= log.count("the limit store cannot be reached") <= 2  # once per worker
    assert log.count("the limit store is reached again") == log.count("the limit store cannot be reached")


def test_keys_expire_when_their_buckets_are_full(redis_server):
    local = local_store()
    store = RedisStore(redis_server.url, local.limits, fallback=local)
    store.take(b"a")
    server = redis.Redis.from_url(redis_server.url)
    assert 7000 < server.pttl("racedata:a") <= 7200
    store.take(b"a")
    assert 14_000 < server.pttl("racedata:a") <= 14_400


@settings(max_examples=50)
@given(
    quotas=st.lists(st.tuples(st.integers(1, 5), st.sampled_from([3600, 86400])), min_size=1, max_size=2),
    requests=st.integers(1, 12),
)
def test_the_script_allows_what_the_local_store_allows(shared_redis, quotas, requests):
    limits = [Limit(f"limit{number}", *quota) for number, quota in enumerate(quotas)]
    local = LocalStore(limits, clients=16)
    shared = RedisStore(shared_redis.url, limits, fallback=local)
    client = repr(quotas).encode() + str(time.monotonic_ns()).encode()
    for _ in range(requests):
        here, there = local.take(client), shared.take(client)
        assert (here.refused_by, here.remaining) == (there.refused_by, there.remaining)

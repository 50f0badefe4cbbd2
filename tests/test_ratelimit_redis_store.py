"""racedata.ratelimit.redis_store without a Redis; tests/system/test_redis.py tests it with one."""

from conftest import Clock
from limit_helpers import BURST, SUSTAINED, allowed, local_store

from racedata.ratelimit.redis_store import RedisStore


def test_if_redis_cannot_be_reached_the_local_store_decides_and_one_line_is_logged(caplog):
    clock = Clock(0)
    store = RedisStore("redis://127.0.0.1:1", [BURST, SUSTAINED], local_store(), clock=clock)
    assert allowed(store, b"a", 6) == 4
    clock.now += 5
    assert allowed(store, b"a", 6) == 0
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "the limit store cannot be reached, each machine counts for itself"
    ]

"""racedata.redisstore without a Redis; with one it is tried in tests/system/test_redis.py."""

from conftest import Clock
from test_ratelimit import BURST, SUSTAINED, allowed, store

from racedata.redisstore import RedisStore


def test_a_redis_that_is_not_there_is_said_once_and_the_local_store_answers(caplog):
    clock = Clock(0)
    kept = RedisStore("redis://127.0.0.1:1", [BURST, SUSTAINED], store(), clock=clock)
    assert allowed(kept, b"a", 6) == 4
    clock.now += 5
    assert allowed(kept, b"a", 6) == 0
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "the limit store cannot be reached, limits are kept by this machine alone"
    ]

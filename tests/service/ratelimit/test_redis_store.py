"""racedata.service.ratelimit.redis_store with a Redis that fails. tests/system/test_redis.py has a
real one.
"""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from support.limits import NOW, Clock, allowed, fake_redis, redis_store

from racedata.service.ratelimit.redis_store import RedisStore

FULL = b"*3\r\n:%d\r\n:0\r\n:0\r\n" % NOW  # the buckets are full: the request is allowed


@pytest.fixture
def patient(monkeypatch):
    """A timeout that no call reaches, even on a busy machine; the test's clock decides what is
    slow.
    """
    monkeypatch.setattr(RedisStore, "TIMEOUT", 20)


@pytest.fixture
def in_one_timeout(monkeypatch):
    """A context that ends within one timeout: it must not wait for a second attempt.

    The timeout is longer here, so that a busy machine does not make one look like two.
    """
    assert RedisStore.TIMEOUT < 0.5
    monkeypatch.setattr(RedisStore, "TIMEOUT", 2)

    @contextmanager
    def measured():
        began = time.monotonic()
        yield
        assert time.monotonic() - began < 2 * RedisStore.TIMEOUT

    return measured


def outages(caplog):
    return [
        record.message
        for record in caplog.records
        if record.message.startswith("limit store unavailable")
    ]


def test_if_redis_cannot_be_reached_the_local_store_decides_and_one_line_is_logged(caplog):
    clock = Clock(0)
    with redis_store("redis://127.0.0.1:1", clock=clock) as store:
        assert allowed(store, b"a", 6) == 4
        clock.now += 5
        assert allowed(store, b"a", 6) == 0
    (record,) = caplog.records
    assert record.message.startswith("limit store unavailable (")
    assert record.message.endswith("Connection refused.); each machine now counts its own requests")


REPLIES = [
    b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    b"-MISCONF Redis is configured to save RDB snapshots\r\n",
    b"-LOADING Redis is loading the dataset in memory\r\n",
    b"-ERR unknown command 'EVAL'\r\n",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"$-1\r\n",
]


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: repr(reply[:30]))
def test_if_redis_refuses_the_call_the_local_store_decides(caplog, reply):
    with (
        fake_redis(lambda connection, command: connection.sendall(reply)) as fake,
        redis_store(fake.url) as store,
    ):
        assert allowed(store, b"a", 6) == 4
    assert len(outages(caplog)) == 1


@pytest.mark.parametrize("during", ["answer", "set_up"])
def test_if_redis_hangs_each_request_is_decided_in_one_timeout(caplog, in_one_timeout, during):
    def hang(connection, command):
        connection.recv(1)  # until the store closes the connection

    def take(_):
        with in_one_timeout():
            return store.take(b"a")

    with (
        fake_redis(**{"answer": None, during: hang}) as fake,
        redis_store(fake.url) as store,
        ThreadPoolExecutor(8) as threads,
    ):
        assert len(list(threads.map(take, range(8)))) == 8
    assert len(outages(caplog)) == 1


def test_an_answer_ends_an_outage_and_both_are_logged_once(patient, caplog):
    caplog.set_level("INFO", "racedata")
    clock = Clock(0)

    def answer(connection, command):
        connection.sendall(b"-LOADING\r\n" if len(fake.commands) < 3 else FULL)

    with fake_redis(answer) as fake, redis_store(fake.url, clock=clock) as store:
        for _ in range(4):
            for _ in range(10):
                store.take(b"a")
            clock.now += 1
    assert len(fake.commands) == 22  # two attempts fail, all later requests reach it
    began, ended = [record.message for record in caplog.records]
    assert began.startswith("limit store unavailable (")
    assert ended == "limit store available again"


def test_during_an_outage_one_request_at_a_time_tries_redis_again(patient):
    clock, meanwhile = Clock(0), []

    def answer(connection, command):
        if len(fake.commands) > 1:
            clock.now += 10
            meanwhile.extend(store.take(b"b") for _ in range(6))
        connection.sendall(b"-LOADING\r\n")

    with fake_redis(answer) as fake, redis_store(fake.url, clock=clock) as store:
        store.take(b"a")
        clock.now += 1
        store.take(b"a")
        assert len(fake.commands) == 2
        assert [decision.refused_by is None for decision in meanwhile] == [True] * 4 + [False] * 2


def test_a_connection_that_redis_has_closed_is_replaced(patient, caplog):
    closed = threading.Semaphore(0)

    def answer(connection, command):
        connection.sendall(FULL)
        connection.shutdown(socket.SHUT_RDWR)
        closed.release()

    with fake_redis(answer) as fake, redis_store(fake.url) as store:
        for _ in range(5):
            assert store.take(b"a").remaining == [3, 499]
            assert closed.acquire(timeout=20)
        assert len(fake.commands) == 5
    assert caplog.records == []

"""Rate limits in a real Redis: shared by two services, exact, and decided by the local store while
it is down.
"""

import re
import ssl
import subprocess
import time
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.limits import NOW, SECOND, allowed, fake_redis, redis_store
from support.processes import Redis, make_certificate, serve_with, service, until
from support.traffic import (
    ADDRESS,
    FOUR_WORKERS,
    SECONDS,
    Client,
    assert_limited,
    assert_served,
    get,
    run,
    traffic,
)

from racedata.service.ratelimit.local_store import LocalStore
from racedata.service.ratelimit.redis_store import RedisStore
from racedata.settings import Rate

# To this service, a Redis on a busy machine is never down because it is slow.
PATIENT = serve_with(
    "from racedata.service.ratelimit.redis_store import RedisStore\n"
    "RedisStore.TIMEOUT = RedisStore.SLOW = 60"
)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """No store of a test takes a busy machine for an outage."""
    monkeypatch.setattr(RedisStore, "TIMEOUT", 60)
    monkeypatch.setattr(RedisStore, "SLOW", 60)


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


def redis_cli(server, *arguments):
    """What redis-cli prints."""
    command = ["redis-cli", "-u", server.url, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


KEY = "racedata:4\x7f\0\0\1"  # of a client at 127.0.0.1
TWO_WORKERS = {**FOUR_WORKERS, "WEB_CONCURRENCY": "2"}


@pytest.mark.parametrize(
    ("limits", "quota", "per_second"),
    [
        ({}, 4, 4),
        ({"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "20/minute"}, 20, 20 / 60),
    ],
)
def test_two_services_on_one_redis_allow_a_client_no_more_than_a_single_one(
    sample_database, tmp_path, redis_server, limits, quota, per_second
):
    options = {**TWO_WORKERS, **limits, "RACEDATA_LIMIT_STORE": redis_server.url}
    floods = [Client(ADDRESS, SECONDS, connections=32) for _ in range(2)]
    others = [
        Client(ADDRESS, SECONDS, pause=0.26, source=f"127.0.0.{number}") for number in range(2, 6)
    ]
    others = [] if limits else others
    with (
        service(sample_database, tmp_path / "1", command=PATIENT, **options) as one,
        service(sample_database, tmp_path / "2", command=PATIENT, **options) as two,
        traffic(two.address, floods[1]),
    ):
        run(one.address, floods[0], *others)
    assert_limited(*floods, quota=quota, per_second=per_second)
    assert_served(*others)


def outages(log):
    """What each worker has said of its store, in this order."""
    said = re.findall(r"\[(\d+)\] .*limit store (unavailable|available again)", log.read_text())
    found = defaultdict(list)
    for worker, change in said:
        found[worker].append(change)
    return [*found.values()]


@pytest.mark.long
def test_a_redis_that_dies_and_comes_back_under_load_fails_no_request(
    sample_database, tmp_path, redis_server
):
    log = tmp_path / "log"
    flood = Client(ADDRESS, connections=32)
    options = {**TWO_WORKERS, "RACEDATA_LIMIT_STORE": redis_server.url}

    def has_outage(last):
        found = outages(log)
        return found != [] and all(each[-1] == last for each in found)

    with service(sample_database, log, **options) as running:
        with traffic(running.address, flood):
            until(lambda: {200, 429} <= flood.statuses.keys())
            redis_server.kill()
            until(lambda: has_outage("unavailable"))
            redis_server.start()
            until(lambda: has_outage("available again"))
        # Redis decides again: it has a bucket of the flooding client.
        until(lambda: get(running.address) and redis_cli(redis_server, "KEYS", "*") == KEY)
    assert (flood.statuses.keys(), flood.broken) == ({200, 429}, 0)
    # on a busy machine, Redis may seem to be down more than once
    for each in outages(log):
        assert {*each[::2]} == {"unavailable"} and {*each[1::2]} == {"available again"}


def test_keys_expire_when_their_buckets_are_full(redis_server):
    begin = time.monotonic()

    def milliseconds():
        """How long the key lasts from the beginning on: between these two."""
        left = int(redis_cli(redis_server, "PTTL", "racedata:a"))
        return left, left + (time.monotonic() - begin) * 1000

    with redis_store(redis_server.url) as store:
        for tokens in (1, 2):
            store.take(b"a")
            least, most = milliseconds()
            assert least <= tokens * 7200 <= most + 1  # Redis rounds


WRONG = ["LPUSH 1", "HSET 1 1", "SET ", "SET no moments: -1, 1e5", "SET " + "1 " * 1000]


def test_a_key_with_a_wrong_value_is_a_full_bucket_and_no_outage(redis_server, caplog):
    """And one with a moment too far in the future an empty one, which fills."""
    for case in WRONG:
        command, _, value = case.partition(" ")
        redis_cli(redis_server, "DEL", "racedata:a")
        values = [value] if command == "SET" else value.split()
        redis_cli(redis_server, command, "racedata:a", *values)
        with redis_store(redis_server.url, [Rate("limit", 3, 86400)]) as store:
            assert allowed(store, b"a", 5) == 3, case
    redis_cli(redis_server, "SET", "racedata:a", "9" * 1000)
    with redis_store(redis_server.url, [Rate("limit", 3, 86400)]) as store:
        assert store.take(b"a").reset == [86400 * SECOND]
    assert 0 < int(redis_cli(redis_server, "PTTL", "racedata:a")) <= 4 / 3 * 86_400_000
    assert caplog.records == []


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        ("maxmemory", "1", "OutOfMemoryError: "),
        ("requirepass", "s@cret", "AuthenticationError: Authentication required."),
    ],
)
def test_while_redis_has_no_memory_or_wants_a_password_the_local_store_decides(
    redis_server, caplog, setting, value, why
):
    redis_cli(redis_server, "CONFIG", "SET", setting, value)
    with redis_store(redis_server.url) as store:
        assert allowed(store, b"a", 6) == 4
    (record,) = caplog.records
    assert record.message.startswith(f"limit store unavailable ({why}")
    assert record.message.endswith("); each machine now counts its own requests")


def test_a_password_is_sent(redis_server, caplog):
    redis_cli(redis_server, "CONFIG", "SET", "requirepass", "s@cret")
    with redis_store(redis_server.url.replace("//", "//:s%40cret@")) as store:
        assert allowed(store, b"a", 6) == 4
    assert caplog.records == []


def test_tls_needs_a_trusted_certificate(tmp_path, monkeypatch, caplog):
    make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    reply = b"*3\r\n:%d\r\n:0\r\n:0\r\n" % NOW
    with fake_redis(lambda connection, command: connection.sendall(reply), tls=tls) as fake:
        with redis_store(fake.url) as store:
            store.take(b"a")
        assert [
            record.message
            for record in caplog.records
            if "certificate verify failed" in record.message
        ]
        assert fake.commands == []
        caplog.clear()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate"))
        with redis_store(fake.url) as store:
            store.take(b"a")
            store.take(b"a")
        assert len(fake.commands) == 2
    assert caplog.records == []


@settings(max_examples=50)
@given(
    quotas=st.lists(
        st.tuples(st.integers(1, 12), st.sampled_from([3600, 86400])), min_size=1, max_size=2
    ),
    requests=st.integers(1, 24),
)
def test_the_script_allows_what_the_local_store_allows(shared_redis, quotas, requests):
    limits = [Rate(f"limit{number}", *quota) for number, quota in enumerate(quotas)]
    local = LocalStore(limits, clients=16)
    client = repr(quotas).encode() + str(time.monotonic_ns()).encode()
    with redis_store(shared_redis.url, limits) as shared:
        for _ in range(requests):
            here, there = local.take(client), shared.take(client)
            assert (here.refused_by, here.remaining) == (there.refused_by, there.remaining)

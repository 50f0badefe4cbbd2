"""racedata.ratelimit: the bucket against a slow model; stores under processes, threads and kills; clients; headers."""

import ast
import subprocess
import sys
import threading
import tracemalloc
from fractions import Fraction
from ipaddress import ip_address

import pytest
import webtest
from conftest import ROOT, Clock, opened
from hypothesis import given
from hypothesis import strategies as st

from racedata import ratelimit
from racedata.app import create_app
from racedata.ratelimit import Limit, LocalStore, TrustedProxies, bucket_of, seconds, take
from racedata.settings import SettingError, Settings

BURST, SUSTAINED = Limit("burst", 4, 1), Limit("sustained", 500, 3600)
SECOND = 1_000_000


class Model:
    """A token bucket as one would explain it: a number of tokens, and when they were counted."""

    def __init__(self, limit, now):
        self.limit, self.tokens, self.now = limit, Fraction(limit.quota), now

    def refill(self, now):
        self.tokens = min(Fraction(self.limit.quota), self.tokens + Fraction(now - self.now, self.limit.interval))
        self.now = now


LIMITS = st.builds(Limit, st.just("limit"), st.integers(1, 40), st.sampled_from([1, 7, 60, 3600]))


@given(st.lists(LIMITS, min_size=1, max_size=2), st.lists(st.integers(0, 3 * SECOND) | st.integers(0, 10**10)))
def test_the_bucket_does_what_a_slow_and_obvious_one_does(limits, pauses):
    now, full_at = 10**12, [0] * len(limits)
    models = [Model(limit, now) for limit in limits]
    for pause in pauses:
        now += pause
        for model in models:
            model.refill(now)
        allowed = all(model.tokens >= 1 for model in models)
        if allowed:
            for model in models:
                model.tokens -= 1
        decision, full_at = take(limits, full_at, now)
        assert (decision.refused_by is None) == allowed
        assert decision.remaining == [model.tokens // 1 for model in models]
        assert decision.reset == [(m.limit.quota - m.tokens) * m.limit.interval for m in models]
        waits = [max(0, (1 - model.tokens) * model.limit.interval) for model in models]
        assert decision.wait == (0 if allowed else max(waits))
        if not allowed:
            assert decision.refused_by is limits[waits.index(max(waits))]


@given(st.lists(LIMITS, min_size=1, max_size=2), st.integers(0, 100), st.integers(0, SECOND))
def test_after_the_wait_in_whole_seconds_it_is_allowed_and_a_second_earlier_it_is_not(limits, requests, pause):
    now, full_at = 10**12, [0] * len(limits)
    for _ in range(requests):
        now += pause
        decision, full_at = take(limits, full_at, now)
        if decision.refused_by:
            wait = seconds(decision.wait)
            assert take(limits, full_at, now + wait * SECOND)[0].refused_by is None
            assert take(limits, full_at, now + (wait - 1) * SECOND)[0].refused_by is not None


def test_a_client_pacing_at_a_quarter_second_is_never_refused_by_the_burst_limit():
    full_at = [0]
    for request in range(10_000):
        decision, full_at = take([BURST], full_at, 10**12 + request * SECOND // 4)
        assert decision.refused_by is None


def test_a_refused_request_takes_from_neither_bucket():
    full_at = [0, 0]
    for _ in range(4):
        _, full_at = take([BURST, SUSTAINED], full_at, 10**12)
    for _ in range(1000):
        decision, after = take([BURST, SUSTAINED], full_at, 10**12)
        assert (decision.refused_by, after) == (BURST, full_at)
    assert decision.remaining == [0, 496]


@given(LIMITS, st.integers(1, 200))
def test_never_more_than_the_quota_in_a_window_whatever_the_pace(limit, step):
    full_at, allowed = [0], 0
    now, end = 10**12, 10**12 + limit.window * SECOND
    pause = max(1, limit.window * SECOND // step)
    while now < end:
        decision, full_at = take([limit], full_at, now)
        allowed += decision.refused_by is None
        now += pause
    assert allowed <= 2 * limit.quota  # a full bucket, and what a window brings


def test_what_was_kept_under_larger_limits_does_not_lock_a_client_out():
    decision, _ = take([BURST], [10**12 + 86400 * SECOND], 10**12)
    assert decision.wait == SECOND // 4


def store(**options):
    return LocalStore([BURST, SUSTAINED], **{"clients": 1024, "clock": Clock(10**12), **options})


def allowed(store, client, requests):
    return sum(store.take(client).refused_by is None for _ in range(requests))


def test_clients_do_not_share_a_bucket():
    clients = [bytes([number]) for number in range(200)]
    kept = store()
    assert [allowed(kept, client, 6) for client in clients] == [4] * 200


def test_tokens_come_back_with_time():
    kept = store()
    assert allowed(kept, b"a", 9) == 4
    kept.clock.now += SECOND // 2
    assert allowed(kept, b"a", 9) == 2
    kept.clock.now += 100 * SECOND
    assert allowed(kept, b"a", 9) == 4


def test_threads_together_get_no_more_than_one_would():
    kept, counts = store(), []
    threads = [threading.Thread(target=lambda: counts.append(allowed(kept, b"a", 500))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 4


def run(code):
    """What `code` prints, in a process of its own that may fork as it likes."""
    prelude = """
import itertools, os, signal
from racedata.ratelimit import Limit, LocalStore
clock = lambda: 10**12
kept = LocalStore([Limit("burst", 40, 1), Limit("sustained", 500, 3600)], clients=4096, clock=clock)
allowed = lambda client, requests: sum(kept.take(client).refused_by is None for _ in range(requests))
"""
    done = subprocess.run([sys.executable, "-c", prelude + code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return ast.literal_eval(done.stdout)


def test_processes_together_get_no_more_than_one_would():
    assert run("""
children = []
for _ in range(6):
    read, write = os.pipe()
    if not os.fork():
        os.write(write, bytes([allowed(b"a", 300), allowed(b"b", 30)]))
        os._exit(0)
    children.append(read)
    os.close(write)
counts = [os.read(read, 2) for read in children]
print([sum(each) for each in zip(*counts)])
""") == [40, 40]


def test_a_process_killed_at_any_step_blocks_nobody_and_has_taken_from_both_buckets_or_from_neither():
    # The child dies at its nth access to the shared memory, for every n there is, with the set locked.
    deaths, left = run("""
class Deadly:
    def __init__(self, memory, steps):
        self.memory, self.steps = memory, steps
    def count(self):
        if next(self.steps) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    def __getitem__(self, key):
        self.count()
        return self.memory[key]
    def __setitem__(self, key, value):
        self.count()
        self.memory[key] = value
    def find(self, *arguments):
        self.count()
        return self.memory.find(*arguments)

left, deaths = set(), 0
for known in (0, 1):
    for step in itertools.count():
        client = bytes([known, step])
        allowed(client, known)
        child = os.fork()
        if not child:
            steps = itertools.count(step, -1)
            kept._words, kept._memory = Deadly(kept._words, steps), Deadly(kept._memory, steps)
            kept.take(client)
            os._exit(0)
        killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        deaths += killed
        burst, sustained = kept.take(client).remaining
        left.add((burst + known, sustained + known))
        if not killed:
            break
print([deaths, sorted(left)])
""")
    assert deaths > 15
    assert left == [(38, 498), (39, 499)]


def test_memory_is_bounded_and_who_is_full_the_soonest_is_forgotten_first():
    kept = store(clients=64)
    size = len(kept._memory)
    heavy = [bytes([number]) for number in range(8)]
    for client in heavy:
        assert allowed(kept, client, 4) == 4
    for number in range(20_000):
        assert kept.take(number.to_bytes(4, "big")).refused_by is None
    assert len(kept._memory) == size
    # All at one moment, so that nobody is full again by time: still, who asked least is forgotten.
    assert [kept.take(client).refused_by for client in heavy] == [BURST] * 8


PROXIES = TrustedProxies("127.0.0.1, 10.0.0.0/8,unix,fd00::/8")


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "client"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),  # not a proxy: not believed
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "192.0.2.1, 198.51.100.1", "198.51.100.1"),  # the left one the client wrote itself
        ("127.0.0.1", "192.0.2.1, 198.51.100.1 ,10.1.2.3", "198.51.100.1"),
        ("127.0.0.1", "10.1.2.3,10.1.2.4", "10.1.2.3"),
        ("127.0.0.1", "198.51.100.1, garbage", "127.0.0.1"),
        ("127.0.0.1", "garbage, 10.1.2.3", "10.1.2.3"),
        ("127.0.0.1", ",,,", "127.0.0.1"),
        ("127.0.0.1", "unknown", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
        ("127.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"),
        ("127.0.0.1", "2001:db8::1", "2001:db8::1"),
        ("127.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"),
        ("::ffff:127.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("::ffff:10.1.1.1", "198.51.100.1", "198.51.100.1"),
        ("fd00::5", "198.51.100.1", "198.51.100.1"),
        ("", "198.51.100.1", "198.51.100.1"),  # a unix socket
    ],
)
def test_the_client_is_the_first_address_from_the_right_that_is_no_trusted_proxy(peer, forwarded_for, client):
    assert PROXIES.client(peer, forwarded_for) == ip_address(client)


def test_a_unix_socket_that_is_not_trusted_is_one_client():
    proxies = TrustedProxies("127.0.0.1")
    assert proxies.client("", "198.51.100.1") is proxies.client("", "") is None
    assert bucket_of(None) == b"unix"


def test_an_ipv6_client_is_its_64():
    same, other = ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:2::1%eth0"], "2001:db8:1:3::1"
    assert len({bucket_of(ip_address(text)) for text in same}) == 1
    assert bucket_of(ip_address(other)) != bucket_of(ip_address(same[0]))
    assert bucket_of(ip_address("198.51.100.1")) != bucket_of(ip_address("198.51.100.2"))
    assert bucket_of(ip_address("117.110.105.120")) != bucket_of(None)  # whose four bytes read "unix"


@given(st.text())
def test_what_stands_in_the_header_never_fails_a_request_and_garbage_opens_no_bucket(text):
    client = PROXIES.client("127.0.0.1", text)
    if not any(character.isdigit() or character == ":" for character in text):
        assert client == ip_address("127.0.0.1")


@given(st.text(), st.text())
def test_who_is_no_proxy_has_one_bucket_whatever_it_writes(first, second):
    assert PROXIES.client("203.0.113.9", first) == PROXIES.client("203.0.113.9", second)


@pytest.fixture
def app(sample_database):
    """The application with default limits on a clock that stands still, `app.clock`."""
    clock = Clock(10**12)
    settings = Settings(trusted_proxies="127.0.0.1")
    limits = LocalStore([BURST, SUSTAINED], clients=64, clock=clock)
    made = webtest.TestApp(create_app(settings, opened(sample_database), limits), {"REMOTE_ADDR": "203.0.113.9"})
    made.clock = clock
    return made


ADDRESS = "/ergast/f1/2023/18.json"


def test_every_answer_tells_where_the_client_stands(app):
    answer = app.get(ADDRESS)
    assert answer.headers["RateLimit-Policy"] == '"burst";q=4;w=1, "sustained";q=500;w=3600'
    assert answer.headers["RateLimit"] == '"burst";r=3;t=1, "sustained";r=499;t=8'


def test_beyond_the_limit_it_is_429_with_the_wait_after_which_it_succeeds(app):
    for _ in range(4):
        app.get(ADDRESS, status=200)
    refused = app.get(ADDRESS, status=429)
    assert refused.content_type == "application/problem+json"
    assert refused.json == {
        "type": "about:blank",
        "title": "Too Many Requests",
        "status": 429,
        "detail": "The burst limit of 4 requests in 1 s is reached; this request succeeds after 1 s.",
    }
    assert refused.headers["Retry-After"] == "1"
    assert refused.headers["RateLimit"] == '"burst";r=0;t=1, "sustained";r=496;t=29'
    assert refused.headers["Access-Control-Allow-Origin"] == "*"
    app.clock.now += int(refused.headers["Retry-After"]) * SECOND
    app.get(ADDRESS, status=200)


def test_the_sustained_limit_holds_when_the_burst_limit_is_kept(app):
    for request in range(535):  # 500, and what comes back in the time they take
        app.clock.now += SECOND // 4
        answer = app.get(ADDRESS, expect_errors=True)
        if answer.status_int == 429:
            break
    assert request == 500 + (request + 1) // 4 // 7.2
    assert "The sustained limit of 500 requests in 3600 s is reached" in answer.json["detail"]
    wait = int(answer.headers["Retry-After"])
    app.clock.now += (wait - 1) * SECOND
    app.get(ADDRESS, status=429)
    app.clock.now += SECOND
    app.get(ADDRESS, status=200)


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("HEAD", ADDRESS, 200),
        ("GET", "/ergast/f1/nothing", 404),
        ("GET", "/Ergast/F1/2023?limit=x", 400),
        ("POST", ADDRESS, 405),
        ("OPTIONS", ADDRESS, 200),
        ("GET", "/ergast/f1", 404),
    ],
)
def test_everything_under_the_base_address_counts(app, method, address, status):
    for _ in range(4):
        answer = app.request(address, method=method, expect_errors=True)
        assert (answer.status_int, "RateLimit" in answer.headers) == (status, True)
    assert app.request(address, method=method, expect_errors=True).status_int == 429


def test_a_conditional_request_counts_too(app):
    for _ in range(4):
        answer = app.get(ADDRESS, headers={"If-None-Match": "*"}, status=304)
        assert answer.headers["RateLimit"].startswith('"burst";r=')
    app.get(ADDRESS, headers={"If-None-Match": "*"}, status=429)


@pytest.mark.parametrize(
    ("method", "address", "headers"),
    [
        ("GET", "/healthz", {}),
        ("GET", "/", {}),
        ("GET", "/ergast/f1x", {}),
        ("OPTIONS", ADDRESS, {"Origin": "https://example.org", "Access-Control-Request-Method": "GET"}),
    ],
)
def test_what_is_outside_it_and_a_preflight_do_not_count(app, method, address, headers):
    for _ in range(9):
        answer = app.request(address, method=method, headers=headers, expect_errors=True)
        assert answer.status_int in (200, 404)
        assert "RateLimit" not in answer.headers
    assert app.get(ADDRESS).headers["RateLimit"].startswith('"burst";r=3;')


def test_behind_a_trusted_proxy_each_client_has_its_own_bucket(app):
    for client in ("198.51.100.1", "198.51.100.2"):
        environ = {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": client}
        assert [app.get(ADDRESS, extra_environ=environ, expect_errors=True).status_int for _ in range(5)] == [
            200,
            200,
            200,
            200,
            429,
        ]


def test_a_client_that_invents_forwarded_addresses_has_one_bucket(app):
    for number in range(4):
        app.get(ADDRESS, headers={"X-Forwarded-For": f"198.51.100.{number}"}, status=200)
    app.get(ADDRESS, headers={"X-Forwarded-For": "198.51.100.99"}, status=429)


def test_limits_are_settings_and_either_or_both_may_be_off():
    made = ratelimit.store_for(Settings(burst_limit="off", sustained_limit="20/minute"))
    assert [(limit.name, limit.quota, limit.window) for limit in made.limits] == [("sustained", 20, 60)]
    assert ratelimit.store_for(Settings(burst_limit="off", sustained_limit="off")) is None
    days = ratelimit.store_for(Settings(burst_limit="9/hour", sustained_limit="1000/day"))
    assert [(limit.quota, limit.window) for limit in days.limits] == [(9, 3600), (1000, 86400)]


def test_without_limits_there_are_no_headers(sample):
    assert "RateLimit" not in sample.get(ADDRESS).headers


def test_a_redis_url_without_its_package_is_refused_with_what_to_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "racedata.redisstore", raising=False)
    with pytest.raises(SettingError, match=r"run: pip install '.\[redis\]'"):
        ratelimit.store_for(Settings(limit_store="redis://127.0.0.1"))


def test_forwarded_addresses_of_any_length_take_no_memory(app):
    app.get(ADDRESS)
    tracemalloc.start()
    for number in range(300):
        app.get(ADDRESS, headers={"X-Forwarded-For": f"{number}, " * 20_000}, expect_errors=True)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 3_000_000  # of 30 MB


def test_the_client_is_found_at_the_end_of_a_long_header(app):
    for _ in range(4):
        environ = {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "203.0.113.9, " * 1000 + "198.51.100.7"}
        app.get(ADDRESS, extra_environ=environ, status=200)
    environ["HTTP_X_FORWARDED_FOR"] = "198.51.100.7"
    app.get(ADDRESS, extra_environ=environ, status=429)

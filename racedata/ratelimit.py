"""Rate limits: the token bucket, the store that keeps the buckets, who a client is, and the middleware over them.

The bucket is arithmetic in whole microseconds and knows no clock; a store knows no HTTP, which the middleware does. The
store for several machines is in redisstore.py.
"""

import ctypes
import errno
import hashlib
import ipaddress
import mmap
import os
import time
from functools import lru_cache
from typing import NamedTuple

import falcon

from racedata.settings import SettingError, names_in


class Limit:
    """`quota` requests in `window` seconds, as a token bucket: full at first, refilled continuously.

    A bucket is kept as one number, the moment it is full again. A token moves that moment one `interval` on, and there
    is a token as long as the moment is no further away than `capacity`, the time an empty bucket takes to fill.
    """

    def __init__(self, name, quota, window):
        self.name, self.quota, self.window = name, quota, window
        # Microseconds. Rounded up, so that a quota that does not divide its window allows no more than it says.
        self.interval = -(-window * 1_000_000 // quota)
        self.capacity = self.interval * quota


class Decision(NamedTuple):
    """What became of a request."""

    refused_by: object  # the Limit that has no token for the longest time, or None
    wait: int  # microseconds until the same request would be allowed; 0 where it was
    remaining: list  # whole tokens left, to each limit
    reset: list  # microseconds until the bucket is full, to each limit


def take(limits, full_at, now):
    """A token from the bucket of each limit, or none from any.

    `full_at` has the moments at which the buckets are full, in microseconds of the clock that `now` is of; a moment
    past is a full bucket. Returns (Decision, the moments afterwards).
    """
    wait, refused_by, fill_times = 0, None, []
    for limit, full in zip(limits, full_at):
        fill_time = full - now
        if fill_time < 0:
            fill_time = 0
        elif fill_time > limit.capacity:
            # It was kept under larger limits, or by a clock that was set back since: that must not lock a client out.
            fill_time = limit.capacity
        fill_times.append(fill_time)
        missing = fill_time + limit.interval - limit.capacity
        if missing > wait:
            wait, refused_by = missing, limit
    if refused_by is None:
        fill_times = [fill_time + limit.interval for limit, fill_time in zip(limits, fill_times)]
    remaining = [(limit.capacity - fill_time) // limit.interval for limit, fill_time in zip(limits, fill_times)]
    return Decision(refused_by, wait, remaining, fill_times), [now + fill_time for fill_time in fill_times]


def microseconds():
    """The machine's own clock: every process reads the same, and nobody can set it."""
    return time.monotonic_ns() // 1000


class Mutexes:
    """Locks that threads and processes share and that outlive any of them: POSIX's robust mutexes, in shared memory.

    Python itself has none, so they are called in the C library. It has the kernel's locks on files (fcntl.lockf), which
    take 0.5 µs instead of 0.25; but around each such call it lets other threads run, and then waits for its turn. Under
    load that made a twelfth fewer requests per second.
    """

    SIZE = 64  # bytes to each; pthread_mutex_t has 40 to 48 on the machines there are
    PROCESS_SHARED, ROBUST = 1, 1  # of pthread.h, glibc's and musl's

    def __init__(self, count):
        self._memory = mmap.mmap(-1, count * self.SIZE)
        self._first = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        holding, waiting = ctypes.PyDLL(None), ctypes.CDLL(None)  # the latter lets other threads run
        self._try, self._wait = holding.pthread_mutex_trylock, waiting.pthread_mutex_lock
        self._consistent, self._unlock = holding.pthread_mutex_consistent, holding.pthread_mutex_unlock
        for function in (self._try, self._wait, self._consistent, self._unlock):
            function.argtypes = [ctypes.c_void_p]
        attributes = ctypes.create_string_buffer(64)
        outcomes = [
            holding.pthread_mutexattr_init(attributes),
            holding.pthread_mutexattr_setpshared(attributes, self.PROCESS_SHARED),
            holding.pthread_mutexattr_setrobust(attributes, self.ROBUST),
            *(
                holding.pthread_mutex_init(ctypes.c_void_p(self._first + number * self.SIZE), attributes)
                for number in range(count)
            ),
        ]
        if any(outcomes):
            raise OSError(max(outcomes), os.strerror(max(outcomes)))

    def lock(self, number):
        mutex = self._first + number * self.SIZE
        outcome = self._try(mutex)
        if outcome == errno.EBUSY:
            outcome = self._wait(mutex)
        if outcome == errno.EOWNERDEAD:  # it is ours; what its owner left unfinished, the slots are made for
            self._consistent(mutex)

    def unlock(self, number):
        self._unlock(self._first + number * self.SIZE)


class LocalStore:
    """The buckets of up to `clients` clients, in memory shared with all processes that are forked after its making.

    Exact among any number of processes and threads. A client has one of the WAYS slots of one set; the set is chosen by
    a keyed hash, so that nobody can aim at another's. Who works on a set holds one of the mutexes, which the kernel
    takes back from a process that dies. A slot is its client's key, the two states a slot can be in, and which
    of them counts. What is new goes into the state that does not count, and then one word, which a machine writes
    wholly or not at all, makes it count: who is killed in between has changed nothing.

    A decision takes 4 µs, 10 µs for a client not seen before (Python 3.11, 2 cores). An SQLite file on tmpfs with one
    UPSERT takes 9 µs; but with 4 processes at once some of its decisions waited 80 to 430 ms, here 15 ms at most.

    Memory never grows. Where all slots of a set are taken, the bucket that is full the soonest makes room; nearly
    always it is full already, and nothing is lost by it.
    """

    WAYS = 16
    MUTEXES = 1024  # each for every 1024th set
    KEY = 16  # bytes
    SLOT = 5  # words of 64 bits: which state counts (0 or 1), two moments of state 0, two moments of state 1

    def __init__(self, limits, clients=1 << 18, clock=microseconds):
        self.limits, self.clock = limits, clock
        self._sets = -(-clients // self.WAYS)
        slots = self._sets * self.WAYS
        self._memory = mmap.mmap(-1, slots * (self.KEY + 8 * self.SLOT))
        self._words = memoryview(self._memory)[slots * self.KEY :].cast("q")
        self._secret = os.urandom(16)
        self._mutexes = Mutexes(self.MUTEXES)
        self._place = lru_cache(maxsize=4096)(self._place)

    def _place(self, client):
        """A client's key, and the number of its set."""
        key = hashlib.blake2b(client, digest_size=self.KEY, key=self._secret).digest()
        return key, int.from_bytes(key[:8], "little") % self._sets

    def take(self, client):
        """Takes a token for `client`, some bytes; returns the Decision."""
        key, number = self._place(client)
        self._mutexes.lock(number % self.MUTEXES)
        try:
            slot = self._slot(key, number * self.WAYS)
            # The clock is read under the lock: then moments are in the order of decisions.
            decision, full_at = take(self.limits, self._state(slot), self.clock())
            if decision.refused_by is None:
                self._change(slot, full_at)
            return decision
        finally:
            self._mutexes.unlock(number % self.MUTEXES)

    def _slot(self, key, first):
        """The slot that `key` has among those of its set, or is given."""
        place = self._memory.find(key, first * self.KEY, (first + self.WAYS) * self.KEY)
        if place >= 0:
            return place // self.KEY
        words = self._words[first * self.SLOT : (first + self.WAYS) * self.SLOT].tolist()
        # Of a slot's states, the one that counts has the later moments.
        last = [max(words[word + 1 : word + self.SLOT]) for word in range(0, len(words), self.SLOT)]
        slot = first + last.index(min(last))
        # First the old client's state, then the key: who is killed in between leaves a full bucket, whoever's.
        self._change(slot, [0, 0])
        self._memory[slot * self.KEY : (slot + 1) * self.KEY] = key
        return slot

    def _state(self, slot):
        word = slot * self.SLOT
        word += 1 + 2 * self._words[word]
        return self._words[word : word + 2]

    def _change(self, slot, full_at):
        word = slot * self.SLOT
        other = 1 - self._words[word]
        for place, moment in enumerate(full_at, word + 1 + 2 * other):
            self._words[place] = moment
        self._words[word] = other


class TrustedProxies:
    """Who is believed when it says for whom it asks: addresses, networks, and `unix`, with commas between."""

    def __init__(self, text):
        names = names_in(text)
        self.unix = "unix" in names
        self.networks = [ipaddress.ip_network(name) for name in names if name != "unix"]

    def trusts(self, hop):
        return self.unix if hop is None else any(hop in network for network in self.networks)

    def client(self, peer, forwarded_for):
        """The client's address, or None for a unix socket: the first from the right that is not a trusted proxy's.

        `peer` is who is connected, `forwarded_for` the X-Forwarded-For header. Each hop wrote the entry to its left; an
        entry that is no address ends the belief, and the client is who passed it on.
        """
        client = address(peer)
        entries = forwarded_for.split(",")
        while self.trusts(client) and entries:
            hop = address(entries.pop())
            if hop is None:
                break
            client = hop
        return client


@lru_cache(maxsize=4096)
def address(text):
    """The IP address in `text`, with or without a port, an IPv4 in IPv6 as IPv4; None where there is none."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


@lru_cache(maxsize=4096)
def bucket_of(client):
    """The bytes that stand for a client in a store: an IPv6 client is its /64, in which one host has all addresses."""
    if client is None:
        return b"unix"
    return b"6" + client.packed[:8] if client.version == 6 else b"4" + client.packed


FORWARDED_CHARACTERS = 500  # of X-Forwarded-For: some ten proxies in a row


class RateLimits:
    """Middleware: counts what is asked under the base address, says where the client stands, refuses with 429."""

    def __init__(self, store, proxies, base_address):
        self.store = store
        self.base = base_address.lower() + "/"
        self.policy = ", ".join(f'"{limit.name}";q={limit.quota};w={limit.window}' for limit in store.limits)
        self.standing = ", ".join(f'"{limit.name}";r=%d;t=%d' for limit in store.limits)
        # Clients come again; whoever writes ever new headers only makes itself be looked at anew.
        self.bucket_of = lru_cache(maxsize=4096)(lambda peer, via: bucket_of(proxies.client(peer, via)))

    def process_request(self, req, resp):
        env = req.env
        if not f"{req.path.lower()}/".startswith(self.base) or is_preflight(env):
            return
        # The end of the header alone, which proxies have appended: the rest may be of any length, and new each time.
        via = env.get("HTTP_X_FORWARDED_FOR", "")[-FORWARDED_CHARACTERS:]
        bucket = self.bucket_of(env.get("REMOTE_ADDR", ""), via)
        refused_by, wait, remaining, reset = self.store.take(bucket)
        standing = []
        for left, fill_time in zip(remaining, reset):
            standing += left, seconds(fill_time)
        resp.set_header("RateLimit-Policy", self.policy)
        resp.set_header("RateLimit", self.standing % tuple(standing))
        if refused_by:
            raise falcon.HTTPTooManyRequests(
                description=f"The {refused_by.name} limit of {refused_by.quota} requests in {refused_by.window} s is "
                f"reached; this request succeeds after {seconds(wait)} s.",
                retry_after=seconds(wait),
            )


def is_preflight(env):
    """Whether a browser asks, before a script's own request, if that is allowed."""
    return "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in env and "HTTP_ORIGIN" in env and env["REQUEST_METHOD"] == "OPTIONS"


def seconds(microseconds):
    """Whole seconds, rounded up."""
    return -(-microseconds // 1_000_000)


WINDOWS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}  # seconds


def store_for(settings):
    """The store that the settings name, with their limits; None where both are off. Raises SettingError."""
    named = {"burst": settings.burst_limit, "sustained": settings.sustained_limit}
    parts = {name: text.split("/") for name, text in named.items() if text != "off"}
    limits = [Limit(name, int(quota), WINDOWS[unit]) for name, (quota, unit) in parts.items()]
    if not limits:
        return None
    try:
        local = LocalStore(limits)
    except (AttributeError, OSError):
        raise SettingError(
            "rate limits need a system whose mutexes may be robust, such as Linux: "
            "expected RACEDATA_BURST_LIMIT=off and RACEDATA_SUSTAINED_LIMIT=off"
        ) from None
    if settings.limit_store == "local":
        return local
    try:
        # Here and not above: its package is an extra, and takes half as long to import as all else together.
        from racedata.redisstore import RedisStore

        return RedisStore(settings.limit_store, limits, fallback=local)
    except ImportError:
        raise SettingError("RACEDATA_LIMIT_STORE names a Redis: expected its package too; run: pip install '.[redis]'")
    except ValueError as error:
        raise SettingError(f"RACEDATA_LIMIT_STORE={settings.limit_store!r}: {error}") from None

"""The limit store for one machine: buckets in memory that all worker processes share, and the locks for it."""

import ctypes
import errno
import hashlib
import mmap
import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from racedata.ratelimit.bucket import Decision, Limit, take


def monotonic_microseconds() -> int:
    """The system's monotonic clock, which is the same in every process and cannot be set."""
    return time.monotonic_ns() // 1000


class Mutexes:
    """Locks shared by threads and processes, which survive the death of their holder: POSIX robust mutexes.

    Python has none, so this calls the C library. Python does have file locks (fcntl.lockf). They take 0.5 µs instead of
    0.25 µs, but each call also releases the GIL and must then wait to get it back. Under load that cost one request in
    twelve.

    Raises AttributeError if the C library has no robust mutexes, OSError if they cannot be initialised.
    """

    SIZE = 64  # bytes per mutex; pthread_mutex_t has 40 to 48, depending on the platform
    PROCESS_SHARED, ROBUST = 1, 1  # constants of pthread.h, the same in glibc and musl

    def __init__(self, count: int) -> None:
        self._memory = mmap.mmap(-1, count * self.SIZE)
        self._first = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        # A PyDLL keeps the GIL during a call, a CDLL releases it: only a call that may block should release it.
        keeps_gil, releases_gil = ctypes.PyDLL(None), ctypes.CDLL(None)
        self._try, self._wait = keeps_gil.pthread_mutex_trylock, releases_gil.pthread_mutex_lock
        self._consistent, self._unlock = keeps_gil.pthread_mutex_consistent, keeps_gil.pthread_mutex_unlock
        for function in (self._try, self._wait, self._consistent, self._unlock):
            function.argtypes = [ctypes.c_void_p]
        attributes = ctypes.create_string_buffer(64)
        results: list[int] = [
            keeps_gil.pthread_mutexattr_init(attributes),
            keeps_gil.pthread_mutexattr_setpshared(attributes, self.PROCESS_SHARED),
            keeps_gil.pthread_mutexattr_setrobust(attributes, self.ROBUST),
            *(
                keeps_gil.pthread_mutex_init(ctypes.c_void_p(self._first + number * self.SIZE), attributes)
                for number in range(count)
            ),
        ]
        if any(results):
            raise OSError(max(results), os.strerror(max(results)))

    def lock(self, number: int) -> None:
        mutex = self._first + number * self.SIZE
        result = self._try(mutex)
        if result == errno.EBUSY:
            result = self._wait(mutex)
        if result == errno.EOWNERDEAD:
            # The holder died, and this thread holds the mutex now. The data is valid: see LocalStore.
            self._consistent(mutex)

    def unlock(self, number: int) -> None:
        self._unlock(self._first + number * self.SIZE)


class LocalStore:
    """The buckets of up to `clients` clients, in memory shared with all processes forked after it is made.

    Counts are exact with any number of processes and threads. `clock` returns microseconds.

    The memory is a hash table. A client's key is a keyed hash, so that a client cannot cause a collision with another
    client's key. The key selects a set of WAYS slots, and the client has one of them. One of the mutexes guards each
    set; the kernel releases a mutex if its holder dies.

    A process may die at any point while it writes to a slot. So a slot has two states, and a word that says which of
    them is valid. New values go to the other state. Then one atomic write of that word makes the other state valid.

    Memory never grows. If all slots of a set are in use, a new client gets the slot whose buckets are full the soonest.
    Nearly always they are full already, so nothing is lost.
    """

    WAYS = 16
    MUTEXES = 1024  # a mutex guards every 1024th set
    KEY = 16  # bytes

    def __init__(
        self, limits: Sequence[Limit], clients: int = 1 << 18, clock: Callable[[], int] = monotonic_microseconds
    ) -> None:
        self.limits, self.clock = limits, clock
        # The 64-bit words of a slot: which state is valid (0 or 1), the moments of state 0, the moments of state 1.
        self._slot_words = 1 + 2 * len(limits)
        self._sets = -(-clients // self.WAYS)
        slots = self._sets * self.WAYS
        self._memory = mmap.mmap(-1, slots * (self.KEY + 8 * self._slot_words))
        self._words = memoryview(self._memory)[slots * self.KEY :].cast("q")
        self._secret = os.urandom(16)
        self._mutexes = Mutexes(self.MUTEXES)
        self._place = lru_cache(maxsize=4096)(self._hash)

    def _hash(self, client: bytes) -> tuple[bytes, int, int]:
        """The key of a client, the first slot of its set, and the number of the set's mutex."""
        key = hashlib.blake2b(client, digest_size=self.KEY, key=self._secret).digest()
        number = int.from_bytes(key[:8], "little") % self._sets
        return key, number * self.WAYS, number % self.MUTEXES

    def take(self, client: bytes) -> Decision:
        """Takes a token for `client`."""
        key, first, mutex = self._place(client)
        self._mutexes.lock(mutex)
        try:
            slot = self._slot(key, first)
            # The clock is read under the lock, so that moments are in the order of decisions.
            decision, full_at = take(self.limits, self._read(slot), self.clock())
            if decision.refused_by is None:
                self._write(slot, full_at)
            return decision
        finally:
            self._mutexes.unlock(mutex)

    def _slot(self, key: bytes, first: int) -> int:
        """The slot of `key` in the set that begins at slot `first`; a new key is given one."""
        position = self._memory.find(key, first * self.KEY, (first + self.WAYS) * self.KEY)
        if position >= 0:
            return position // self.KEY
        size = self._slot_words
        words = self._words[first * size : (first + self.WAYS) * size].tolist()
        # The valid state of a slot has the later moments of the two.
        full_at = [max(words[word + 1 : word + size]) for word in range(0, len(words), size)]
        slot = first + full_at.index(min(full_at))
        # The state first, then the key: if the process dies in between, the old client has full buckets.
        self._write(slot, [0] * len(self.limits))
        self._memory[slot * self.KEY : (slot + 1) * self.KEY] = key
        return slot

    def _read(self, slot: int) -> memoryview:
        word, moments = slot * self._slot_words, len(self.limits)
        word += 1 + moments * self._words[word]
        return self._words[word : word + moments]

    def _write(self, slot: int, full_at: Iterable[int]) -> None:
        word = slot * self._slot_words
        other = 1 - self._words[word]
        for position, moment in enumerate(full_at, word + 1 + len(self.limits) * other):
            self._words[position] = moment
        self._words[word] = other

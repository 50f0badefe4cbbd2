"""The limit store for one machine: buckets in memory that all workers share, and their locks.

It knows keys and moments, but not what a limit is (bucket.py), nor who a client is (clients.py).
"""

import fcntl
import hashlib
import mmap
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from racedata.service.ratelimit.bucket import Decision, take
from racedata.settings import Rate


def monotonic_microseconds() -> int:
    """The system's monotonic clock, which is the same in every process and cannot be set."""
    return time.monotonic_ns() // 1000


class LocalStore:
    """The buckets of up to `clients` clients, in memory shared with processes forked later.

    Counts are exact with any number of processes and threads. `clock` returns microseconds.

    The memory is a hash table. A client's key is a keyed hash, so that a client cannot cause a
    collision with another client's key. The key selects a set of WAYS slots, and the client has one
    of them. A lock guards each set: a byte of an empty file for processes, which the kernel unlocks
    if its holder dies, and one lock for the threads of a process.

    A process that dies while it writes to a slot has counted its last request for some of the
    limits only.

    Memory never grows. If all slots of a set are in use, a new client gets the slot whose buckets
    are full the soonest. Nearly always they are full already, so nothing is lost.
    """

    WAYS = 16
    KEY = 16  # bytes

    def __init__(
        self,
        limits: Sequence[Rate],
        clients: int = 1 << 18,
        clock: Callable[[], int] = monotonic_microseconds,
    ) -> None:
        self.limits, self.clock = limits, clock
        # A slot has a key and, per limit, a 64-bit word: the moment when the bucket is full.
        self.sets = -(-clients // self.WAYS)
        slots = self.sets * self.WAYS
        self.memory = mmap.mmap(-1, slots * (self.KEY + 8 * len(limits)))
        self.words = memoryview(self.memory)[slots * self.KEY :].cast("q")
        self.secret = os.urandom(16)
        self.threads = threading.Lock()
        # A file in memory: the service starts even if no disk has room.
        self.file = os.memfd_create("racedata-limits")

    def __del__(self) -> None:
        if hasattr(self, "file"):
            os.close(self.file)

    def hashed(self, client: bytes) -> tuple[bytes, int]:
        """The key of a client, and the first slot of its set."""
        key = hashlib.blake2b(client, digest_size=self.KEY, key=self.secret).digest()
        return key, int.from_bytes(key[:8], "little") % self.sets * self.WAYS

    def take(self, client: bytes) -> Decision:
        key, first = self.hashed(client)
        with self.threads:
            fcntl.lockf(self.file, fcntl.LOCK_EX, 1, first)
            try:
                words = self.words_of(self.slot_of(key, first))
                # The clock is read under the lock, so that moments are in the order of decisions.
                decision, full_at = take(self.limits, self.words[words], self.clock())
                if decision.refused_by is None:
                    self.write(words, full_at)
                return decision
            finally:
                fcntl.lockf(self.file, fcntl.LOCK_UN, 1, first)

    def slot_of(self, key: bytes, first: int) -> int:
        """The slot of `key` in the set that begins at slot `first`; a new key is given one."""
        position = self.memory.find(key, first * self.KEY, (first + self.WAYS) * self.KEY)
        if position >= 0:
            return position // self.KEY
        slot = min(
            range(first, first + self.WAYS), key=lambda slot: max(self.words[self.words_of(slot)])
        )
        # The moments first, then the key. So a new client never has the moments of another one.
        self.write(self.words_of(slot), [0] * len(self.limits))
        self.memory[slot * self.KEY : (slot + 1) * self.KEY] = key
        return slot

    def words_of(self, slot: int) -> slice:
        return slice(slot * len(self.limits), (slot + 1) * len(self.limits))

    def write(self, words: slice, full_at: Iterable[int]) -> None:
        for word, moment in enumerate(full_at, words.start):
            self.words[word] = moment

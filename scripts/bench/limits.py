#!/usr/bin/env python3
"""Measures the local limit store for more and more clients: time per decision, and memory.

.venv/bin/python scripts/bench/limits.py [CLIENTS]
"""

import resource
import sys
import time

from racedata.service.ratelimit.bucket import Limit
from racedata.service.ratelimit.local_store import LocalStore

STEP = 100_000


def median_and_p99(times: list[int]) -> tuple[float, float]:
    """The median and the 99th percentile, in microseconds, of times in nanoseconds."""
    times.sort()
    return times[len(times) // 2] / 1000, times[len(times) * 99 // 100] / 1000


def memory() -> float:
    """The memory of this process in megabytes. It only grows here."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    clients = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    store = LocalStore([Limit("burst", 4, 1), Limit("sustained", 500, 3600)])
    print("   clients   a new client: median, p99   a known client: median, p99    memory")
    print("{:10,}{:>64}".format(0, f"{memory():.1f} MB"))
    for first in range(0, clients, STEP):
        new: list[int] = []
        known: list[int] = []
        for number in range(first, first + STEP):
            client = number.to_bytes(4, "big")
            for times in (new, known):
                begin = time.perf_counter_ns()
                store.take(client)
                times.append(time.perf_counter_ns() - begin)
        print(
            "{:10,}        {:5.1f} µs  {:5.1f} µs           {:5.1f} µs  "
            "{:5.1f} µs   {:5.1f} MB".format(
                first + STEP, *median_and_p99(new), *median_and_p99(known), memory()
            )
        )


if __name__ == "__main__":
    main()

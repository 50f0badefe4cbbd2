"""The memory of this process: what the garbage collector looks at, and what glibc keeps.

glibc is the C library. With another one, these functions only set the garbage collector.
"""

import ctypes
import gc
from contextlib import suppress


def return_large_blocks() -> None:
    """Makes the C library return large blocks to the system when they are freed.

    glibc may keep such blocks for each thread that has freed some. So each thread that reads a
    database could keep as much memory as the database has.
    """
    threshold = -3  # M_MMAP_THRESHOLD in malloc.h
    with suppress(AttributeError):  # other C libraries do not have it
        ctypes.CDLL(None).mallopt(threshold, 1 << 20)


def collect_seldom() -> None:
    """Lets the garbage collector look for cycles less often.

    A page of 2,000 records makes about 14,000 objects. By default, it would look for cycles in them
    twenty times, and find none.
    """
    gc.set_threshold(20_000)


def keep_what_exists() -> None:
    """Tells the garbage collector that what exists now is not freed, so that it can skip it.

    It then does not write to these objects, so processes that are forked share their memory. This
    ends with `free_memory`: a worker with new data has data of its own, and nothing to share.
    """
    gc.freeze()


def free_memory() -> None:
    """Returns all memory to the system that this process does not use any more."""
    gc.unfreeze()
    gc.collect()
    # glibc keeps small blocks that were freed, some megabytes.
    with suppress(AttributeError):  # other C libraries do not have it
        ctypes.CDLL(None).malloc_trim(0)

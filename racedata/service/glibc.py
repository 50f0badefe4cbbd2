"""Returns memory to the system that glibc, the C library, would keep.

With another C library, these functions only collect garbage.
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


def free_memory() -> None:
    """Returns all memory to the system that this process does not use any more."""
    gc.unfreeze()  # the objects that app.application() has frozen
    gc.collect()
    # glibc keeps small blocks that were freed, some megabytes.
    with suppress(AttributeError):  # other C libraries do not have it
        ctypes.CDLL(None).malloc_trim(0)

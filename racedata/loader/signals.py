"""Signals that end a program of the loader: the first one interrupts it, a second one ends it at
once. That is safe: a database is replaced as a whole, and the next load removes what this one left.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# Windows has no SIGHUP.
END_SIGNALS = [each for each in signal.Signals if each.name in ("SIGHUP", "SIGINT", "SIGTERM")]


def ignore(number: int, frame: FrameType | None) -> None:
    """Ignores a signal. SIG_IGN would make Python report a signal that is already pending."""


def ignore_end_signals() -> None:
    for number in END_SIGNALS:
        signal.signal(number, ignore)


@contextmanager
def interrupted_by_end_signals() -> Iterator[Callable[[], None]]:
    """In the block, the first end signal raises KeyboardInterrupt. After it, signals are ignored.

    If the signal arrives in a function that SQLite calls, SQLite makes another error of the
    exception; in a `__del__`, Python only prints it. So the block gets a function that raises it
    again, and calls it often. The end of the block does the same.
    """
    arrived: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        if arrived:
            os._exit(128 + number)
        arrived.append(number)
        raise KeyboardInterrupt

    def raise_again() -> None:
        if arrived:
            raise KeyboardInterrupt

    try:
        for number in END_SIGNALS:
            signal.signal(number, end)
        yield raise_again
    finally:
        ignore_end_signals()
        raise_again()

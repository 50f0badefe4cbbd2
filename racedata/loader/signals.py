"""Signals that end a program of the loader: the first one interrupts it, later ones are ignored."""

import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Windows has no SIGHUP.
END_SIGNALS = [each for each in signal.Signals if each.name in ("SIGINT", "SIGTERM", "SIGHUP")]


def ignore(number: int, frame: FrameType | None) -> None:
    """Ignores a signal. SIG_IGN would make Python report a signal that is already pending."""


def ignore_end_signals() -> None:
    for number in END_SIGNALS:
        signal.signal(number, ignore)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handles the first end signal, and ignores later ones, which would disturb the clean-up."""
    ignore_end_signals()
    while frame is not None:
        if frame.f_code is interrupt_again.__code__:  # what it raises would be lost
            interrupt_soon()
            return
        frame = frame.f_back
    stop_alarms()
    raise KeyboardInterrupt


def interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Handles an exception that Python would only print.

    A signal may arrive in a `__del__`, which cannot raise. Or it arrives in a function that SQLite
    calls, and becomes another error there.
    """
    if unraisable.exc_type is KeyboardInterrupt:
        interrupt_soon()
    else:
        sys.__unraisablehook__(unraisable)


def interrupt_soon() -> None:
    """Raises an alarm each millisecond: a call that blocks does not see those before it."""
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)


def stop_alarms() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, ignore)


@contextmanager
def interrupted_by_end_signals() -> Iterator[None]:
    """In the block, the first end signal raises KeyboardInterrupt.

    Later signals, even after the block, are ignored.
    """
    hook, sys.unraisablehook = sys.unraisablehook, interrupt_again
    sqlite3.enable_callback_tracebacks(True)  # SQLite then gives errors of functions to the hook
    try:
        for number in END_SIGNALS:
            signal.signal(number, interrupt)
        yield
    finally:
        ignore_end_signals()
        sqlite3.enable_callback_tracebacks(False)
        sys.unraisablehook = hook
        # The error that SQLite made may end the block before the alarm.
        if signal.getsignal(signal.SIGALRM) is interrupt:
            stop_alarms()
            raise KeyboardInterrupt

"""Threads of one program, which end together: at a signal, or when a pipe closes.

No signal interrupts them. They notice the end where they wait.
"""

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from racedata.loader.signals import ignore_end_signals

Sleep = Callable[[float], None]  # waits for some seconds, or raises Ended
END_SECONDS = 8  # for a thread that is writing; all others notice the end at once


class Ended(BaseException):
    """The program is to end."""


class Threads:
    """The threads of this program. `parent` is the reading end of a pipe."""

    def __init__(self, parent: int | None) -> None:
        self.threads: list[Thread] = []
        self.parent = parent
        # There is something to read from the moment when the program is to end.
        self.ending, self.wake = os.pipe()
        os.set_blocking(self.wake, False)
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        ignore_end_signals()  # but they are written into the pipe

    def start(self, work: Callable[[], object]) -> None:
        thread = Thread(target=self.run, args=(work,), daemon=True)
        self.threads.append(thread)
        thread.start()

    def run(self, work: Callable[[], object]) -> None:
        with suppress(Ended):
            work()

    def sleep(self, seconds: float) -> None:
        if select.select([self.ending], [], [], seconds)[0]:
            raise Ended

    def wait(self) -> None:
        """Waits until the program is to end, and its threads have ended."""
        watched = [self.ending] if self.parent is None else [self.ending, self.parent]
        select.select(watched, [], [])
        os.write(self.wake, b"\0")
        until = time.monotonic() + END_SECONDS
        for thread in self.threads:
            thread.join(max(0, until - time.monotonic()))

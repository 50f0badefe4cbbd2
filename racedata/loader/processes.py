"""Processes of one program: each is restarted if it ends, and all end with the program.

The work of the processes does not belong here.
"""

import math
import os
import select
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from racedata.loader.signals import END_SIGNALS, ignore

Sleep = Callable[[float], None]
STEADY_SECONDS = 3600  # after this time, a process counts as working


class Waiter:
    """Waits for a time or a signal. Unlike time.sleep, it also notices a signal that arrived just
    before.
    """

    def __init__(self, parent: int | None = None) -> None:
        """`parent` is the reading end of a pipe. When it closes, this process ends."""
        self.parent = parent
        self.signals, self.wake = os.pipe()
        os.set_blocking(self.signals, False)
        os.set_blocking(self.wake, False)
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        signal.set_wakeup_fd(-1)
        os.close(self.signals)
        os.close(self.wake)

    def wait(self, seconds: float) -> None:
        """Waits for some seconds, or until any signal arrives."""
        watched = [self.signals] if self.parent is None else [self.signals, self.parent]
        ready, _, _ = select.select(watched, [], [], seconds)
        if self.signals in ready:
            os.read(self.signals, 4096)
        if self.parent in ready:
            raise KeyboardInterrupt

    def sleep(self, seconds: float) -> None:
        """Waits for some seconds. Only a signal whose handler raises ends it earlier."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.wait(left)


@dataclass
class Child:
    """A process: its name, and its work, which gets a function to sleep."""

    name: str
    work: Callable[[Sleep], object]
    pid: int = 0  # 0 while it is not running
    start: float = 0.0  # when it was started, or is due
    failures: int = 0  # consecutive


class Children:
    """The processes of this program.

    `complain(name, how, failures)` reports a process that has ended, and returns the seconds until
    it is started again. `failures` counts consecutive ends.
    """

    def __init__(
        self, works: Sequence[tuple[str, Callable[[Sleep], object]]], complain: Callable[..., float]
    ) -> None:
        self.children, self.complain = [Child(*work) for work in works], complain
        self.alive, self.own = os.pipe()  # nothing is written; only this process keeps `own` open
        signal.signal(signal.SIGCHLD, ignore)  # but it wakes the Waiter

    def start(self) -> float:
        """Starts the processes that are due. Returns when the next is due, by time.monotonic."""
        for child in self.children:
            if not child.pid and child.start <= time.monotonic():
                child.start = time.monotonic()
                # In the new process, no signal may arrive before `run` handles it.
                signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)
                child.pid = os.fork() or self.run(child)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)
        return min((child.start for child in self.children if not child.pid), default=math.inf)

    def run(self, child: Child) -> int:
        """Does the work of a process, in that process, and ends it."""
        status = 1
        try:
            os.close(self.own)
            waiter = Waiter(self.alive)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)
            child.work(waiter.sleep)  # never returns
        except KeyboardInterrupt:
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def collect(self) -> None:
        """Notes which processes have ended, and when to restart them."""
        for child in self.children:
            if child.pid and (ended := os.waitpid(child.pid, os.WNOHANG))[0]:
                now = time.monotonic()
                child.failures = 1 if now - child.start > STEADY_SECONDS else child.failures + 1
                code = os.waitstatus_to_exitcode(ended[1])
                how = (
                    f"was terminated by signal {-code}"
                    if code < 0
                    else f"has ended with status {code}"
                )
                child.pid, child.start = 0, now + self.complain(child.name, how, child.failures)

    def end(self) -> None:
        """Ends all of them, and waits until they have ended."""
        running = [child.pid for child in self.children if child.pid]
        for pid in running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for pid in running:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)

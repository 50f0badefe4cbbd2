"""racedata.loader.processes: a process that ends is started again, and a wait misses no signal."""

import signal
import subprocess
import sys
import time

import pytest

from racedata.loader.processes import Waiter

PROGRAM = """
import os, signal, sys
from racedata.loader.processes import Children, Waiter
from racedata.loader.signals import interrupt

signal.signal(signal.SIGTERM, interrupt)
said = []

def complain(name, how, failures):
    said.append(f"{name} {how}, {failures} in a row")
    return 0

waiter = Waiter()
children = Children([("one", lambda sleep: WORK), ("two", lambda sleep: sleep(600))], complain)
while len(said) < 3:
    children.start()
    children.children[0].start -= AGE  # seconds for which the first has run already
    waiter.wait(600)
    children.collect()
children.end()
print(*said, sep="; ")
"""


def run(work, age=0):
    command = [sys.executable, "-c", PROGRAM.replace("WORK", work).replace("AGE", str(age))]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("work", "how"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "was terminated by signal 9"),
        ("os._exit(3)", "has ended with status 3"),
        ("1 / 0", "has ended with status 1"),
        ("None", "has ended with status 1"),
    ],
)
def test_a_process_that_ends_is_started_again(work, how):
    ended = run(work)
    assert ended.stdout == "; ".join(f"one {how}, {number} in a row" for number in (1, 2, 3)) + "\n"
    assert ended.stderr.count("ZeroDivisionError: division by zero\n") == (
        3 if work == "1 / 0" else 0
    )
    assert ended.returncode == 0


def test_the_failures_of_a_process_that_has_run_for_an_hour_are_forgotten():
    for age, failures in ((3500, (1, 2, 3)), (3601, (1, 1, 1))):
        said = (f"one has ended with status 3, {number} in a row" for number in failures)
        assert run("os._exit(3)", age).stdout == "; ".join(said) + "\n"


@pytest.fixture
def waiter():
    """A wait, after a signal that has just arrived."""
    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    with Waiter() as waiter:
        signal.raise_signal(signal.SIGALRM)
        yield waiter
    signal.signal(signal.SIGALRM, before)


def test_a_signal_that_arrives_just_before_a_wait_ends_it(waiter):
    waiter.wait(600)


def test_a_signal_does_not_shorten_a_sleep(waiter):
    before = time.monotonic()
    waiter.sleep(0.05)
    assert time.monotonic() >= before + 0.05

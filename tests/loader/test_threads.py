"""racedata.loader.threads: all threads end at a signal, or when a pipe closes."""

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from functools import partial
from racedata.loader.threads import Ended, Threads

threads = Threads(int(sys.argv[1]))

def work(name):
    try:
        while True:
            os.write(1, f"{name} works\\n".encode())
            threads.sleep(600)
    except Ended:
        os.write(1, f"{name} ends\\n".encode())
        raise

for name in ("one", "two"):
    threads.start(partial(work, name))
threads.wait()
print("done", flush=True)
"""


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, None], ids=lambda number: str(number)
)
def test_all_threads_end_at_a_signal_or_when_the_pipe_closes(number):
    alive, own = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(alive)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[alive],
        text=True,
    ) as program:
        begun = {program.stdout.readline() for _ in range(2)}
        if number:
            program.send_signal(number)
        else:
            os.close(own)
        *ends, last = program.communicate()[0].splitlines()
    assert begun == {"one works\n", "two works\n"}
    assert (sorted(ends), last, program.returncode) == (["one ends", "two ends"], "done", 0)
    os.close(alive)
    if number:
        os.close(own)

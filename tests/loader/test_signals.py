"""racedata.loader.signals: the first signal to end interrupts a program, wherever it arrives."""

import subprocess
import sys

IN_DEL = """
import os, signal, time
from racedata.loader.signals import interrupted_by_end_signals

class Ends:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

try:
    with interrupted_by_end_signals():
        ends = Ends()
        del ends
        time.sleep(600)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_signal_to_end_is_obeyed_even_if_it_arrives_where_python_swallows_exceptions():
    ended = subprocess.run(
        [sys.executable, "-c", IN_DEL], capture_output=True, text=True, timeout=60
    )
    assert (ended.stdout, ended.stderr) == ("interrupted\n", "")

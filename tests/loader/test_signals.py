"""racedata.loader.signals: the first signal to end interrupts a program, wherever it arrives."""

import subprocess
import sys

import pytest

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

IN_FUNCTION = """
import os, signal, sqlite3, time
from racedata.loader.signals import interrupted_by_end_signals

db = sqlite3.connect(":memory:")
db.create_function("end", 0, lambda: os.kill(os.getpid(), signal.SIGTERM))
try:
    with interrupted_by_end_signals():
        try:
            db.execute("SELECT end()")
        except sqlite3.Error:
            {then}
except KeyboardInterrupt:
    print("interrupted")
"""

IN_REPORT_OF_ANOTHER_ERROR = """
import os, signal, sys, time
from racedata.loader.signals import interrupted_by_end_signals

class Fails:
    def __del__(self):
        raise ValueError

sys.__unraisablehook__ = lambda error: os.kill(os.getpid(), signal.SIGTERM)
try:
    with interrupted_by_end_signals():
        fails = Fails()
        del fails
        time.sleep(600)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    "program",
    [
        IN_DEL,
        IN_FUNCTION.format(then="time.sleep(600)"),
        IN_FUNCTION.format(then="raise"),
        IN_REPORT_OF_ANOTHER_ERROR,
    ],
)
def test_a_signal_to_end_is_obeyed_even_if_it_arrives_where_exceptions_are_swallowed(program):
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("interrupted\n", "")

"""racedata.loader.signals: the first signal to end interrupts a program, wherever it arrives; a
second one ends it at once.
"""

import signal
import subprocess
import sys

import pytest

BEGIN = """
import os, signal, sqlite3, time
from racedata.loader.program import run

def end():
    os.kill(os.getpid(), signal.SIGTERM)
"""

IN_DEL = """
class Ends:
    def __del__(self):
        end()

def work(progress):
    ends = Ends()
    del ends
    progress("the next step")
    time.sleep(600)

run("load", "racedata.db", work)
"""

IN_FUNCTION = """
def work(progress):
    db = sqlite3.connect(":memory:")
    db.create_function("end", 0, end)
    try:
        db.execute("SELECT end()")
    except sqlite3.Error:
        {then}

run("load", "racedata.db", work)
"""

IN_THE_CLEAN_UP = """
def work(progress):
    try:
        end()
        time.sleep(600)
    finally:
        end()
        time.sleep(600)

run("load", "racedata.db", work)
"""


def ended(program, folder):
    command = [sys.executable, "-c", BEGIN + program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize(
    "program",
    [
        IN_DEL,
        IN_FUNCTION.format(then="progress('the next source'); time.sleep(600)"),
        IN_FUNCTION.format(then="raise"),
        IN_FUNCTION.format(then="return ['done']"),
    ],
)
def test_a_signal_is_obeyed_even_if_it_arrives_where_exceptions_are_swallowed(program, tmp_path):
    run = ended(program, tmp_path)
    # what Python prints about an exception in a __del__ comes first
    assert run.stderr.splitlines()[-1] == "racedata load: interrupted; nothing was changed"
    assert (run.stdout, run.returncode) == ("", 1)


def test_a_second_signal_ends_a_program_at_once(tmp_path):
    run = ended(IN_THE_CLEAN_UP, tmp_path)
    assert (run.stdout, run.stderr, run.returncode) == ("", "", 128 + signal.SIGTERM)

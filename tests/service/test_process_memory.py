"""racedata.service.process_memory: the garbage collector in the process that forks the workers. A
test of what glibc keeps is in test_reload.py.
"""

import gc
import os
import subprocess
import sys

STARTED = """
import gc, sys
from racedata.service import server
from racedata.settings import Settings

settings = Settings(database=sys.argv[1], workers=1)
server.set_up_process()
server.application(settings)
print(gc.get_threshold()[0], gc.get_freeze_count())
"""


def test_the_service_looks_for_cycles_seldom_and_not_in_what_existed_before_the_fork(
    sample_database,
):
    command = [sys.executable, "-c", STARTED, sample_database]
    environ = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    threshold, frozen = map(int, done.stdout.split())
    assert threshold > 14_000 > gc.get_threshold()[0]  # the objects of a page of 2,000 records
    assert frozen > 10_000

"""racedata.service.ratelimit.local_store under threads, processes, kills and more clients than it
has room for.
"""

import ast
import subprocess
import sys

from support import ROOT
from support.limits import BURST, allowed, local_store


def run(code):
    """What `code` prints, run in a process of its own, which may fork: this one has threads of
    other tests.
    """
    prelude = """
import itertools, os, signal
from racedata.settings import Rate
from racedata.service.ratelimit.local_store import LocalStore
clock = lambda: 10**12
limits = [Rate("burst", 40, 1), Rate("sustained", 500, 3600)]
store = LocalStore(limits, clients=4096, clock=clock)
allowed = lambda client, n: sum(store.take(client).refused_by is None for _ in range(n))
"""
    done = subprocess.run(
        [sys.executable, "-c", prelude + code], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return ast.literal_eval(done.stdout)


def test_a_process_waits_while_another_one_decides_about_the_same_client():
    # The clock is read in the middle of a decision. Then a rival, in a process of its own, asks for
    # the same client; it waits until the alarm ends it.
    assert run("""
import threading
def clock():
    global rival_waits
    rival = os.fork()
    if not rival:
        # the lock of this process's threads, which the decision above holds
        store.threads, store.clock = threading.Lock(), lambda: 10**12
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        store.take(b"a")
        os._exit(0)
    rival_waits = os.WIFSIGNALED(os.waitpid(rival, 0)[1])
    return 10**12
store.clock = clock
print([rival_waits for _ in range(2) if store.take(b"a").refused_by is None])
""") == [True, True]


def test_a_process_killed_at_any_step_blocks_nobody_and_loses_at_most_its_last_request():
    # The child dies at its nth access to the shared memory, for each possible n, while it holds the
    # lock. All slots are in use, so the client gets one whose buckets were empty.
    deaths, tokens_before = run("""
class Deadly:
    def __init__(self, memory, steps):
        self.memory, self.steps = memory, steps
    def count(self):
        if next(self.steps) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    def __getitem__(self, key):
        self.count()
        return self.memory[key]
    def __setitem__(self, key, value):
        self.count()
        self.memory[key] = value
    def find(self, *arguments):
        self.count()
        return self.memory.find(*arguments)

store = LocalStore(limits, clients=16, clock=clock)
for number in range(16):
    allowed(b"old %d" % number, 40)
tokens_before, deaths = set(), 0
for requests_before in (0, 1):
    for step in itertools.count():
        client = bytes([requests_before, step])
        allowed(client, requests_before)
        child = os.fork()
        if not child:
            steps = itertools.count(step, -1)
            store.words, store.memory = Deadly(store.words, steps), Deadly(store.memory, steps)
            store.take(client)
            os._exit(0)
        killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        deaths += killed
        burst, sustained = store.take(client).remaining
        tokens_before.add((burst + requests_before, sustained + requests_before))
        if not killed:
            break
print([deaths, sorted(tokens_before)])
""")
    assert deaths > 15
    # taken from neither bucket, from one, or from both
    assert tokens_before == [(38, 498), (38, 499), (39, 499)]


def test_memory_is_bounded_and_the_bucket_that_is_full_the_soonest_makes_room():
    store = local_store(clients=64)
    size = len(store.memory)
    heavy = [bytes([number]) for number in range(8)]
    for client in heavy:
        assert allowed(store, client, 4) == 4
    for number in range(20_000):
        assert store.take(number.to_bytes(4, "big")).refused_by is None
    assert len(store.memory) == size
    # The clock stands still, so no bucket has refilled; the clients with one request made room, not
    # these with four.
    assert [store.take(client).refused_by for client in heavy] == [BURST] * 8

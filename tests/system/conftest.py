"""A network without other machines, for clients that must ask only the service."""

import ctypes
import os
import subprocess
from pathlib import Path

import pytest

CLONE_NEWNET = 0x40000000  # os.unshare and os.setns are new in Python 3.12
libc = ctypes.CDLL(None, use_errno=True)


def check(status):
    """Raises OSError if a call of libc has failed."""
    if status:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def refused():
    """How often a process of this network tried to reach another machine, or a name server."""
    lines = Path("/proc/thread-self/net/snmp").read_text().splitlines()
    counts = {}
    for names, values in zip(lines[::2], lines[1::2]):
        counts[names.partition(":")[0]] = dict(zip(names.split(), values.split()))
    # A name server on this machine cannot be reached either, but has a route.
    return int(counts["Ip"]["OutNoRoutes"]) + int(counts["Udp"]["NoPorts"])


@pytest.fixture(scope="module")
def attempts():
    """A network with this machine only, for this thread and the processes it starts, until the end
    of the module. Linux refuses what is sent to other machines; this function counts that.

    A service must start in it, after this fixture.
    """
    if os.geteuid():
        pytest.skip("only root may make a network")
    with open("/proc/thread-self/ns/net") as outside:
        check(libc.unshare(CLONE_NEWNET))
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield refused
        finally:
            check(libc.setns(outside.fileno(), CLONE_NEWNET))


@pytest.fixture
def only_this_machine(attempts):
    """Fails if a test has tried to reach another machine, even if that did no harm."""
    before = attempts()
    yield
    assert attempts() == before, "a client asked another machine"

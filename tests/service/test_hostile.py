"""A real gunicorn under malformed, truncated and ambiguous requests: it refuses them and answers
the next good one.
"""

import time

import pytest
from support import ROOT
from support.hostile import (
    GOOD,
    GOOD_KEEP_ALIVE,
    MALFORMED,
    SMUGGLED,
    TRUNCATED,
    UNUSUAL,
    send,
    statuses,
)
from support.processes import OFF, service, until


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile") / "log"


@pytest.fixture(scope="module")
def running(sample_database, log):
    with service(sample_database, log, WEB_CONCURRENCY="1", **OFF) as started:
        until(lambda: len(started.workers()) == 1)
        before = started.workers()
        yield started
        assert started.workers() == before
    written = log.read_text()
    assert "Traceback" not in written and "[ERROR]" not in written


# What is sent, and whether the client then says that it sends no more.
SENT = {
    **{f"malformed: {name}": (sent, False) for name, sent in MALFORMED.items()},
    **{f"truncated: {name}": (sent, True) for name, sent in TRUNCATED.items()},
    **{f"unusual: {name}": (sent, False) for name, sent in UNUSUAL.items()},
    **{f"smuggled: {name}": (sent, True) for name, sent in SMUGGLED.items()},
}


@pytest.mark.parametrize("name", SENT)
def test_a_hostile_request_is_refused_and_the_next_good_one_answered(running, name):
    kind, (sent, ends) = name.partition(":")[0], SENT[name]
    answer = send(running.address, sent, end=ends)
    found = {*statuses(answer)}
    assert found or kind in ("truncated", "smuggled")
    if kind in ("malformed", "truncated"):
        assert all(400 <= status < 500 for status in found)
    elif kind == "unusual":  # HTTP allows an answer to some
        assert all(status < 500 for status in found)
    else:
        # 405: the method; 501: an unknown transfer coding (RFC 9112, section 6.1). With an
        # underscore it is another header, so the body is not ambiguous and the second request is a
        # request.
        assert found <= ({405, 200} if b"_" in sent else {400, 405, 501})
    for secret in (b"Traceback", b".py", b"site-packages", bytes(ROOT), b"sqlite3"):
        assert secret not in answer
    answer = send(running.address, GOOD)
    assert statuses(answer) == [200]
    assert b"\r\nServer: gunicorn\r\n" in answer  # without its version


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_after_a_good_one_is_refused(running, name):
    answer = send(running.address, GOOD_KEEP_ALIVE + MALFORMED[name])
    assert statuses(answer)[0] == 200
    assert all(400 <= status < 500 for status in statuses(answer)[1:])


def test_malformed_requests_add_one_short_line_per_second_to_the_log(running, log):
    length = len(log.read_text())
    began = time.monotonic()
    for _ in range(200):
        assert statuses(send(running.address, MALFORMED["7,000 bytes above 127"])) == [400]
    seconds = time.monotonic() - began
    lines = log.read_text()[length:].splitlines()
    assert all(
        "Invalid request from ip=127.0.0.1: Invalid HTTP request line" in line for line in lines
    )
    assert all(len(line) <= 200 for line in lines)
    assert len(lines) <= seconds + 1

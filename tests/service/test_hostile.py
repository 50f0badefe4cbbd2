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


def assert_still_works(running, answer):
    """The answer reveals nothing, and the next request is answered."""
    for secret in (b"Traceback", b".py", b"site-packages", bytes(ROOT), b"sqlite3"):
        assert secret not in answer
    assert statuses(send(running.address, GOOD)) == [200]


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_is_refused(running, name):
    answer = send(running.address, MALFORMED[name])
    assert statuses(answer) and all(400 <= status < 500 for status in statuses(answer))
    assert_still_works(running, answer)


def test_an_answer_does_not_reveal_the_version_of_the_server(running):
    assert b"\r\nServer: gunicorn\r\n" in send(running.address, GOOD)


@pytest.mark.parametrize("name", TRUNCATED)
def test_a_truncated_request_is_refused_or_not_answered(running, name):
    answer = send(running.address, TRUNCATED[name], end=True)
    assert all(400 <= status < 500 for status in statuses(answer))
    assert_still_works(running, answer)


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_unusual_request_is_answered_or_refused(running, name):
    answer = send(running.address, UNUSUAL[name])
    assert statuses(answer) and all(status < 500 for status in statuses(answer))
    assert_still_works(running, answer)


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_request_with_an_ambiguous_body_is_refused(running, name):
    answer = send(running.address, SMUGGLED[name], end=True)
    # 405: the method; 501: an unknown transfer coding (RFC 9112, section 6.1). With an underscore
    # it is another header, so the body is not ambiguous and the second request is a request.
    assert set(statuses(answer)) <= ({405, 200} if b"_" in SMUGGLED[name] else {400, 405, 501})
    assert_still_works(running, answer)


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_after_a_good_one_is_refused(running, name):
    answer = send(running.address, GOOD_KEEP_ALIVE + MALFORMED[name])
    assert statuses(answer)[0] == 200
    assert all(400 <= status < 500 for status in statuses(answer)[1:])
    assert_still_works(running, answer)


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

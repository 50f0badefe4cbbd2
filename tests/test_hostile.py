"""A real gunicorn under bytes that no decent client sends: refused, and the next good request is answered."""

import pytest
from conftest import ROOT
from hostile import CUT_SHORT, GOOD, KEPT, REFUSED, SMUGGLED, UNUSUAL, send, statuses
from service import OFF, service, until


@pytest.fixture(scope="module")
def running(sample_database, tmp_path_factory):
    log = tmp_path_factory.mktemp("hostile") / "log"
    with service(sample_database, log, WEB_CONCURRENCY="1", **OFF) as started:
        until(lambda: len(started.workers()) == 1)
        before = started.workers()
        yield started
        assert started.workers() == before
    said = log.read_text()
    assert "Traceback" not in said and "[ERROR]" not in said


def assert_goes_on(running, answer):
    """Nothing of the inside is told, and who asks next is answered."""
    for inside in (b"Traceback", b".py", b"site-packages", bytes(ROOT), b"sqlite3"):
        assert inside not in answer
    assert statuses(send(running.address, GOOD)) == [200]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused(running, name):
    answer = send(running.address, REFUSED[name])
    assert statuses(answer) and all(400 <= status < 500 for status in statuses(answer))
    assert_goes_on(running, answer)


def test_an_answer_tells_no_version_of_the_server(running):
    assert b"\r\nServer: gunicorn\r\n" in send(running.address, GOOD)


@pytest.mark.parametrize("name", CUT_SHORT)
def test_what_is_cut_short_is_refused_or_not_answered(running, name):
    answer = send(running.address, CUT_SHORT[name], cut_short=True)
    assert all(400 <= status < 500 for status in statuses(answer))
    assert_goes_on(running, answer)


@pytest.mark.parametrize("name", UNUSUAL)
def test_what_is_unusual_is_understood_or_refused(running, name):
    answer = send(running.address, UNUSUAL[name])
    assert statuses(answer) and all(status < 500 for status in statuses(answer))
    assert_goes_on(running, answer)


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_body_that_is_ambiguous_is_refused(running, name):
    answer = send(running.address, SMUGGLED[name], cut_short=True)
    # 405 is for the method; 501 is HTTP's own word for codings that a server does not know (RFC 9112, 6.1). With an
    # underscore it is another header, so that nothing is ambiguous: the second request is one.
    assert set(statuses(answer)) <= ({405, 200} if b"_" in SMUGGLED[name] else {400, 405, 501})
    assert_goes_on(running, answer)


@pytest.mark.parametrize("name", REFUSED)
def test_garbage_behind_a_good_request_gets_no_more_than_a_refusal(running, name):
    answer = send(running.address, KEPT + REFUSED[name])
    assert statuses(answer)[0] == 200
    assert all(400 <= status < 500 for status in statuses(answer)[1:])
    assert_goes_on(running, answer)

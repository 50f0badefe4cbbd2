"""racedata.service.filebody: a file reaches a socket in pieces."""

import socket

import pytest

from racedata.database import OpenFile
from racedata.service.filebody import FileBody


@pytest.fixture
def opened(tmp_path):
    """A file of 300,000 bytes, and the same file opened."""
    path = tmp_path / "file"
    path.write_bytes(bytes(range(250)) * 1200)
    with path.open("rb") as file:
        yield path, OpenFile(file.fileno())


def test_a_file_is_sent_in_pieces(opened):
    path, file = opened
    body, received, is_sent = FileBody(file), b"", False
    sender, receiver = socket.socketpair()
    with sender, receiver:
        while not is_sent:
            is_sent = body.send(sender)
            while len(received) < body.sent:
                received += receiver.recv(1 << 16)
    assert received == path.read_bytes() == b"".join(FileBody(file))


def test_a_file_that_has_become_shorter_breaks_the_connection(opened):
    path, file = opened
    path.write_bytes(b"")
    sender, receiver = socket.socketpair()
    with sender, receiver, pytest.raises(OSError, match="the file has become shorter"):
        FileBody(file).send(sender)

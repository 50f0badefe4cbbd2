"""racedata.service.filepart: bytes of a file reach a socket in pieces, and only from one file."""

import socket

import pytest

from racedata.database import OpenFile
from racedata.service.filepart import FilePart


@pytest.fixture
def opened(tmp_path):
    """A file of 300,000 bytes, and the same file opened."""
    path = tmp_path / "file"
    path.write_bytes(bytes(range(250)) * 1200)
    with path.open("rb") as file:
        yield path, OpenFile(file.fileno())


def test_a_part_of_a_file_is_sent_in_pieces(opened):
    path, file = opened
    part = FilePart(file, 1000, 200_000)
    received = b""
    sender, receiver = socket.socketpair()
    with sender, receiver:
        while part.size:
            part.send(sender)
            while len(received) < part.start - 1000:
                received += receiver.recv(1 << 16)
    assert received == path.read_bytes()[1000:201_000]


def test_a_file_that_a_program_writes_to_is_not_sent(opened):
    path, file = opened
    parts = iter(FilePart(file, 0, 300_000))
    next(parts)
    with path.open("ab") as other:
        other.write(b"more")
    with pytest.raises(OSError, match="a program has written to the file"):
        next(parts)
    sender, receiver = socket.socketpair()
    with sender, receiver, pytest.raises(OSError, match="a program has written to the file"):
        FilePart(file, 0, 100).send(sender)

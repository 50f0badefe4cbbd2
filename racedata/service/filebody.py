"""A file as the body of an answer: from the file to the socket, in the kernel.

download.py chooses the file; worker.py calls `send` when the socket is ready.
"""

import os
import socket
from collections.abc import Iterator

from racedata.database import OpenFile


class FileBody:
    """The body of an answer: a file, which the worker sends without reading it."""

    # how many bytes one client gets before others have their turn
    AT_ONCE = 1 << 17

    def __init__(self, file: OpenFile) -> None:
        self.file = file
        self.sent = 0  # bytes

    def send(self, sock: socket.socket) -> bool:
        """Sends the next bytes to a socket; returns whether that was all. Raises OSError."""
        sent = os.sendfile(sock.fileno(), self.file.descriptor, self.sent, self.AT_ONCE)
        if not sent:
            raise OSError("the file has become shorter")
        self.sent += sent
        return self.sent >= self.file.size

    def __iter__(self) -> Iterator[bytes]:
        """The bytes, for servers that do not know `send`."""
        while part := os.pread(self.file.descriptor, self.AT_ONCE, self.sent):
            self.sent += len(part)
            yield part

"""A part of a file as the body of an answer: from the file to the socket, in the kernel.

download.py chooses the file and the bytes; worker.py calls `send` when the socket is ready.
"""

import os
import socket
from collections.abc import Iterator

from racedata.database import OpenFile


class FilePart:
    """The body of an answer: bytes of a file, which the worker sends without reading them."""

    # how many bytes one client gets before others have their turn
    AT_ONCE = 1 << 17

    def __init__(self, file: OpenFile, start: int, size: int) -> None:
        self.file = file
        self.start = start
        self.size = size  # bytes that are left

    def send(self, sock: socket.socket) -> None:
        """Sends the next bytes to a socket. Raises OSError."""
        sent = os.sendfile(
            sock.fileno(), self.file.descriptor, self.start, min(self.size, self.AT_ONCE)
        )
        # A broken connection is better than a mixture of two files.
        if not sent or self.file.has_changed():
            raise OSError("a program has written to the file")
        self.start, self.size = self.start + sent, self.size - sent

    def __iter__(self) -> Iterator[bytes]:
        """The bytes, for servers that do not know `send`."""
        while self.size:
            part = os.pread(self.file.descriptor, min(self.size, self.AT_ONCE), self.start)
            if not part or self.file.has_changed():
                raise OSError("a program has written to the file")
            self.start, self.size = self.start + len(part), self.size - len(part)
            yield part

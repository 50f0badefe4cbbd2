"""What the worker and the application agree on beyond WSGI: bodies, slow answers, and keys in the
environment.

The application gives the worker a body: a SlowBody, a FileBody, or, if the answer is ready, any
other iterable of bytes. Calendars, HTML pages and answers with a `limit` above 100 are slow, unless
they are cached or their status is not 200. Who calls whom:

    worker.answer → app.App → Falcon → caching.respond: leaves it UNFINISHED, or 503 if IS_BUSY
    worker.answer ← app.App, after all middleware: a SlowBody
    worker.do_in_thread → worker.complete → SlowBody → app.finished → `finish` of caching.respond
    worker.handle_events → worker.send, when the thread is done

One thread of each worker makes the slow answers, one after the other, while other clients are
served. These wait at most for one SQL statement of a slow answer, because all share the connection
(snapshot.py): for 27 ms, with full data. A worker IS_BUSY while a hundred wait in it. If a client
closes its connection, or only its sending side, while it waits, worker.drop drops its answer.
"""

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from racedata.database import OpenFile

if TYPE_CHECKING:
    from socket import socket

# From caching.py to app.py: what makes a slow answer later, as `(req, resp, finish)`.
UNFINISHED = "racedata.unfinished"
# From worker.py to caching.py: whether too many slow answers already wait.
IS_BUSY = "racedata.is_busy"


class SlowBody:
    """The body of a slow answer. It is made, and its headers are set, when the worker iterates over
    it.
    """

    def __init__(self, parts: Iterable[bytes]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.parts)


class FileBody:
    """An open file as the body of an answer.

    The worker sends the headers first. Then, whenever the socket can take more, it calls `send_to`.
    """

    AT_ONCE = 1 << 17  # bytes that one client gets before others have their turn

    def __init__(self, file: OpenFile) -> None:
        self.file = file
        self.size = file.size  # bytes
        self.sent = 0  # bytes

    def send_to(self, sock: "socket") -> bool:
        """Lets the kernel send the next bytes to a socket; returns whether these were the last.

        Raises OSError if the file has changed; then the connection is closed.
        """
        if self.file.has_changed():
            raise OSError("the file has changed")
        self.sent += os.sendfile(sock.fileno(), self.file.descriptor, self.sent, self.AT_ONCE)
        return self.sent >= self.size

    def __iter__(self) -> Iterator[bytes]:
        """The bytes, for servers that do not know `send_to`."""
        while part := os.pread(self.file.descriptor, self.AT_ONCE, self.sent):
            self.sent += len(part)
            yield part

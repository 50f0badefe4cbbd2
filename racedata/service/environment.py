"""What the worker and the application agree on beyond WSGI: bodies, slow answers, and keys in the
environment.

The application gives the worker a body: a SlowBody, a FileBody, or, if the answer is ready, any
other iterable of bytes. Calendars, HTML pages and answers with a `limit` above 100 are slow, unless
they are cached or their status is not 200. Who calls whom:

    worker.answer → app.App → Falcon → caching.respond: leaves it UNFINISHED, or 503 if IS_BUSY
    worker.answer ← app.App, after all middleware: a SlowBody
    worker.in_thread → worker.complete → SlowBody → app.finished → `finish` of caching.respond
    worker.handle_events → worker.in_thread → worker.send, when the thread is done

One thread of each worker makes the slow answers, one after the other, while other clients are
served. These wait at most for one SQL statement of a slow answer, because all share the connection
(snapshot.py): for 27 ms, with full data. A worker IS_BUSY while a hundred wait in it. If a client
closes its connection, or only its sending side, while it waits, worker.in_thread drops its answer.
"""

import os
from collections.abc import Iterable, Iterator

from racedata.database import OpenFile

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
    """An open file as the body of an answer, in pieces.

    The worker reads a piece whenever the socket can take more, so other clients have their turn in
    between, and a download takes little memory.
    """

    PIECE = 1 << 16  # bytes

    def __init__(self, file: OpenFile) -> None:
        self.file = file

    def __iter__(self) -> Iterator[bytes]:
        """Raises OSError if the file has changed; then the connection is closed."""
        for begin in range(0, self.file.size, self.PIECE):
            if self.file.has_changed():
                raise OSError("the file has changed")
            yield os.pread(self.file.descriptor, self.PIECE, begin)

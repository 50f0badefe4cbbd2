"""The application that is made again when the database file changes.

It does not know what an application does: app.py makes it.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from racedata.database import DatabaseError, file_state, not_enough_memory
from racedata.service.snapshot import Snapshot, free_memory

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

log = logging.getLogger(__name__)


class ReloadingApp:
    """The application that `make_app` makes from each good file at `path`.

    One application answers each request from start to end. If a new file cannot be served, one
    line in the log says why, and the last good data stays in service. Raises DatabaseError if the
    first file is not good.
    """

    INTERVAL = 0.5  # seconds between checks of the file

    def __init__(self, path: str, make_app: Callable[[Snapshot], "WSGIApplication"]) -> None:
        self.path, self.make_app = path, make_app
        # read before the content, so that the next check finds a change in between
        self._state = file_state(path)
        self.data = Snapshot.read(path)
        self.app = self.application_of(self.data)

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        return self.app(environ, start_response)

    def watch(self) -> None:
        """Starts a thread that checks the file, so that no request waits for a new one."""
        threading.Thread(target=self.check_forever, name="watch", daemon=True).start()

    def check_forever(self) -> None:
        while True:
            time.sleep(self.INTERVAL)
            self.check()

    def check(self) -> None:
        """Serves the file that is now at the path, if it is new and valid."""
        state = file_state(self.path)
        if state == self._state:
            return
        try:
            data = Snapshot.read(self.path)
            if data.checksum != self.data.checksum:  # else the same database, moved or copied
                self.app, self.data = self.application_of(data), data
                log.info("%s has changed; now serving the new data", self.path)
                free_memory()
            self.data.file = data.file
            self.data.rejection = None
            self._state = state
        except DatabaseError as error:
            if error.fault != self.data.rejection:
                log.error("%s; the last good data is still served", error)
            self.data.rejection = error.fault
            if not error.transient:
                self._state = state

    def application_of(self, data: Snapshot) -> "WSGIApplication":
        try:
            return self.make_app(data)
        except MemoryError:
            raise not_enough_memory(self.path) from None
        # After any error, the previous application is better than none.
        except Exception as error:
            raise DatabaseError(self.path, f"has unexpected content ({error})") from error

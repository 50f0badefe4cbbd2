"""What is made again when the database file changes: the application, or what assistants ask.

This module does not know what an application does: app.py makes it.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from racedata.database import DatabaseError, FileState, file_state, not_enough_memory
from racedata.service.process_memory import free_memory
from racedata.service.snapshot import Snapshot

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

log = logging.getLogger(__name__)
Made = TypeVar("Made")
Application: TypeAlias = "WSGIApplication"


class Reloading(Generic[Made]):
    """Reads a file again when it changes. `data` is the last good content, and `made` what `make`
    has made of it.

    If a new file cannot be used, one line in the log says why, and the last good data stays in
    service. Raises DatabaseError if the first file is not good.
    """

    def __init__(self, path: str, make: Callable[[Snapshot], Made]) -> None:
        self.path, self.make = path, make
        self.checking = threading.Lock()
        # read before the content, so that the next check finds a change in between
        self.state = file_state(path)
        self.data = Snapshot.read(path)
        self.made = self.made_from(self.data)

    def check(self) -> None:
        """Takes the file that is now at the path, if it is new and valid.

        Threads may call this at the same time: none waits while another one reads a file.
        """
        if self.checking.acquire(blocking=False):
            try:
                self.take(file_state(self.path))
            finally:
                self.checking.release()

    def take(self, state: FileState | None) -> None:
        """Takes the file in this state, if it is new and valid."""
        if state == self.state:
            return
        try:
            data = Snapshot.read(self.path)
            if data.checksum == self.data.checksum:  # the same database, moved or copied
                self.data.file, self.data.rejection = data.file, None
            else:
                self.made, self.data = self.made_from(data), data
                log.info("%s has changed; now serving the new data", self.path)
                free_memory()
            self.state = state
        except DatabaseError as error:
            if error.fault != self.data.rejection:
                log.error("%s; the last good data is still served", error)
            self.data.rejection = error.fault
            if not error.transient:
                self.state = state

    def made_from(self, data: Snapshot) -> Made:
        try:
            return self.make(data)
        except MemoryError:
            raise not_enough_memory(self.path) from None
        except DatabaseError:
            raise
        # After any error, what was made before is better than nothing.
        except Exception as error:
            raise DatabaseError(self.path, f"has unexpected content ({error})") from error


class ReloadingApp(Reloading[Application]):
    """The application made from the last good file. One answers each request from start to end."""

    INTERVAL = 0.5  # seconds between checks of the file

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        return self.made(environ, start_response)

    def watch(self) -> None:
        """Starts a thread that checks the file, so that no request waits for a new one."""
        threading.Thread(target=self.check_forever, name="watch", daemon=True).start()

    def check_forever(self) -> None:
        while True:
            time.sleep(self.INTERVAL)
            self.check()

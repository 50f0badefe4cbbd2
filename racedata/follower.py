"""The process that keeps the database fresh while this one serves it: its start, and its restarts.

What it does is in loader/follow.py.
"""

import os
import subprocess
import sys
import time


class FollowerProcess:
    """A process of `racedata refresh --follow`, which ends with the last process of this service.

    It is a new program: a fork of a running service would keep its data and its sockets. Exits with
    a one-line error if RACEDATA_SOURCES is invalid.
    """

    RESTART_SECONDS = 5  # from a start to the next one, at least

    def __init__(self, database: str) -> None:
        from racedata.loader import refresh_command
        from racedata.loader.errors import LoadError

        self.arguments = ["--follow", "--database", database]
        try:
            # only to check the sources
            refresh_command.addresses_of(refresh_command.parse(self.arguments))
        except LoadError as error:
            sys.exit(f"racedata serve --follow: {error}")
        # nothing is written; all processes of the service keep `own` open
        self.alive, self.own = os.pipe()
        self.fault = ""  # why it could not be started again
        try:
            # as this process was started, and where
            self.program, self.folder = sys.orig_argv[1 : 1 - len(sys.argv)], os.getcwd()
            self.start()
        except OSError as error:
            sys.exit(f"racedata serve --follow: cannot start the follower: {error}")

    def start(self) -> None:
        command = [sys.executable, *self.program, "refresh", *self.arguments]
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [*command, "--parent", str(self.alive)],
            cwd=self.folder,
            pass_fds=[self.alive],
            start_new_session=True,  # a terminal sends Ctrl-C only to the service
        )

    def restart_if_ended(self) -> str:
        """Starts it again if it has ended; returns what happened, in one line, or nothing."""
        is_due = time.monotonic() >= self.started + self.RESTART_SECONDS
        if not is_due or self.process.poll() is None:
            return ""
        ended = self.process.pid
        try:
            self.start()
        except OSError as error:  # such as a lack of memory, which may end
            before, self.fault = self.fault, str(error)
            return f"Cannot start the follower: {error}" if self.fault != before else ""
        self.fault = ""
        return f"The follower (pid: {ended}) has ended; started another (pid: {self.process.pid})"

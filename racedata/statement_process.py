"""A process for the statements of strangers, which ends itself if one takes too long.

SQLite cannot stop a function that has begun. `LIKE` of two long texts takes seconds, and a
statement may have it hundreds of times. SQLite also expands a view at each place that names it, so
that a short statement may need gigabytes.
"""

import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from threading import Timer

from racedata.database import DatabaseError, FileState
from racedata.statements import Bounds, Rows, StatementError, Statements

MAX_HEAP = 64 << 20  # bytes that SQLite may take
OUT_OF_TIME = 3  # the code with which the process ends itself


class StatementProcess:
    """Runs one statement after the other, over the file at `path`.

    The process starts with the first one. It ends with this object, which closes the connection.
    """

    def __init__(self, path: str, bounds: Bounds, seconds: float) -> None:
        self.path, self.bounds, self.seconds = path, bounds, seconds
        self.process: SpawnProcess | None = None

    def started(self) -> SpawnProcess:
        """The process, a new one if the last one has ended. Raises StatementError."""
        if self.process and self.process.is_alive():
            return self.process
        # `spawn` runs everywhere, and copies no threads and no open files
        context = get_context("spawn")
        try:
            self.connection, other = context.Pipe()
            arguments = other, self.path, self.bounds, self.seconds
            process = context.Process(target=answer_statements, args=arguments, daemon=True)
            with closing(other):
                process.start()
        except OSError as error:
            fault = f"no process for statements can start ({error.strerror}); ask again later"
            raise StatementError(fault) from None
        self.process = process
        return process

    def run(self, sql: str, state: FileState, check: Callable[[], object] = lambda: None) -> Rows:
        """The rows of one statement that only reads. Raises StatementError.

        `state` is the one in which the file was checked: the process opens no other file.
        Meanwhile, this calls `check` again and again. An error of `check` ends the statement.
        """
        process = self.started()
        try:
            self.connection.send((sql, state))
            while not self.connection.poll(0.1):
                check()
            answer = self.connection.recv()
        except (EOFError, OSError):
            process.join()
            fault = "the process for statements has ended; ask again"
            if process.exitcode == 1:  # such as after an update of racedata
                fault = "the process for statements does not start; start racedata mcp again"
            if process.exitcode == OUT_OF_TIME:
                fault = (
                    f"stopped after {self.seconds:g} seconds; expected a statement that reads less"
                )
            raise StatementError(fault) from None
        except BaseException:
            process.kill()
            process.join()
            raise
        if isinstance(answer, Rows):
            return answer
        raise StatementError(answer)


def answer_statements(connection: Connection, path: str, bounds: Bounds, seconds: float) -> None:
    """Answers statements until the other end is closed: with rows, or why there are none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    limit_heap()
    statements: Statements | None = None
    with suppress(EOFError):
        while True:
            sql, state = connection.recv()
            timer = Timer(seconds, os._exit, [OUT_OF_TIME])
            timer.start()
            answer: Rows | str
            try:
                statements = statements or Statements(path, state, bounds)
                answer = statements.run(sql)
            except (StatementError, DatabaseError) as error:
                answer = str(error)
            timer.cancel()
            timer.join()  # if it is too late to cancel it, this process ends before it answers
            connection.send(answer)


def limit_heap() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(f"PRAGMA hard_heap_limit = {MAX_HEAP}")

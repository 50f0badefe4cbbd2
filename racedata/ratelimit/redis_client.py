"""A client for one kind of Redis command: the reply is an array of integers. No rate limits belong here.

Its own code, because it must bound each call in time and size whatever the server does. The `redis` package has a
timeout per read instead of per call, and reads replies of any size and shape. The protocol is RESP2:
https://redis.io/docs/latest/develop/reference/protocol-spec/
"""

import re
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

MAX_REPLY = 1024  # bytes
INTEGERS = re.compile(rb"(:-?[0-9]{1,18}\r\n)*")
URL_FORMS = (
    "redis://[[user]:password@]host[:port][/database], the same with rediss:// for TLS, "
    "or unix://[[user]:password@]/path[?db=database]"
)


class UnexpectedReply(Exception):
    """The server sent an error or anything else that is not the expected reply."""


class RedisClient:
    """A client of the Redis or Valkey at `url`, for any number of threads.

    `timeout` is the most that a call takes, in seconds of `clock`. Only the lookup of a host name may take longer.
    Raises ValueError if `url` has none of the URL_FORMS.
    """

    def __init__(self, url: str, timeout: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.timeout, self.clock = timeout, clock
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port or 6379
            self._host.encode("idna")  # as getaddrinfo does
        except ValueError:
            raise ValueError(f"expected {URL_FORMS}") from None
        self._unix_path = unquote(parts.path) if parts.scheme == "unix" else ""
        if self._unix_path:
            database = re.fullmatch("(?:db=)?([0-9]{0,9})", parts.query)
        else:
            database = re.fullmatch("/?([0-9]{0,9})", parts._replace(scheme="", netloc="").geturl())
        if database is None or bool(self._host) == bool(self._unix_path):
            raise ValueError(f"expected {URL_FORMS}")
        self._tls = ssl.create_default_context() if parts.scheme == "rediss" else None
        # The first commands on each connection.
        self._setup: list[bytes] = []
        if parts.password:
            user = [unquote(parts.username)] if parts.username else []
            self._setup.append(encode("AUTH", *user, unquote(parts.password)))
        if int(database[1] or 0):
            self._setup.append(encode("SELECT", database[1]))
        # Connections are opened by the first calls: none may be shared with a forked process.
        self._idle: list[socket.socket] = []

    def call(self, command: bytes, count: int) -> list[int]:
        """Sends `command`, which is encoded, and returns the `count` integers of its reply.

        Raises UnexpectedReply, or OSError if the server cannot be reached or takes longer than the timeout.
        """
        until = self.clock() + self.timeout
        while True:
            try:
                connection, reused = self._idle.pop(), True
            except IndexError:
                connection, reused = self._connect(until), False
            try:
                integers = self._exchange(connection, command, b"*%d" % count, count, until)
            except BaseException as error:
                connection.close()
                # The server may have closed an idle connection: try another one, or a new one.
                if not (reused and isinstance(error, OSError)):
                    raise
            else:
                self._idle.append(connection)
                return integers

    def _connect(self, until: float) -> socket.socket:
        addresses: list[tuple[socket.AddressFamily, Any]]
        if self._unix_path:
            addresses = [(socket.AF_UNIX, self._unix_path)]
        else:
            found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            addresses = [(family, address) for family, _, _, _, address in found]
        while True:
            # Each address gets its share of the time, because the first one may not answer at all.
            share = self._left(until) / len(addresses)
            family, address = addresses.pop(0)
            connection = socket.socket(family)
            try:
                connection.settimeout(share)
                connection.connect(address)
                if self._tls:
                    connection.settimeout(self._left(until))
                    connection = self._tls.wrap_socket(connection, server_hostname=self._host)
                for command in self._setup:
                    self._exchange(connection, command, b"+OK", 0, until)
                return connection
            except BaseException as error:
                connection.close()
                if not (addresses and isinstance(error, OSError)):
                    raise

    def _exchange(
        self, connection: socket.socket, command: bytes, header: bytes, count: int, until: float
    ) -> list[int]:
        """The integers of a reply that must be the line `header` and then `count` lines with an integer."""
        connection.settimeout(self._left(until))
        connection.sendall(command)
        reply = b""
        while True:
            connection.settimeout(self._left(until))
            received = connection.recv(MAX_REPLY - len(reply))
            if not received:
                raise ConnectionError("the server closed the connection")
            reply += received
            first, line_end, rest = reply.partition(b"\r\n")
            ends = rest.count(b"\r\n")
            if len(reply) == MAX_REPLY or (line_end and (first != header or ends >= count)):
                break
        if first != header or ends != count or not INTEGERS.fullmatch(rest):
            raise UnexpectedReply(f"unexpected reply {reply[:100]!r}")
        return [int(line[1:]) for line in rest.split()]

    def _left(self, until: float) -> float:
        """Seconds until the moment `until`. Raises TimeoutError if it has passed."""
        left = until - self.clock()
        if left <= 0:
            raise TimeoutError("timed out")
        return left


def encode(*arguments: bytes | str) -> bytes:
    """A command in RESP: an array of strings."""
    strings = [argument if isinstance(argument, bytes) else argument.encode() for argument in arguments]
    return b"*%d\r\n" % len(strings) + b"".join(b"$%d\r\n%b\r\n" % (len(string), string) for string in strings)

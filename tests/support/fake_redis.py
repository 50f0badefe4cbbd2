"""A server that speaks the Redis protocol as badly as a test wants: a real Redis cannot be made to misbehave."""

import socketserver
import threading
from contextlib import contextmanager


class FakeRedis:
    """`url` names it; `commands` are the EVAL commands it has received, as bytes."""

    def __init__(self, url):
        self.url, self.commands = url, []


def ok(connection, command):
    connection.sendall(b"+OK\r\n")


@contextmanager
def fake_redis(answer, set_up=ok, tls=None):
    """Runs a FakeRedis on a free port, with TLS if `tls` is an SSLContext.

    It calls `answer(connection, command)` for each EVAL command, and `set_up` for the commands that redis-py sends
    first on a connection.
    """

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            try:
                while command := self.request.recv(65536):
                    if b"EVAL" in command:
                        fake.commands.append(command)
                        answer(self.request, command)
                    else:
                        set_up(self.request, command)
            except OSError:
                pass  # the client has closed the connection

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        fake = FakeRedis(f"{'rediss' if tls else 'redis'}://localhost:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield fake
        finally:
            server.shutdown()
            thread.join()

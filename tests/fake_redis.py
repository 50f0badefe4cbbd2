"""A server that speaks the Redis protocol as badly as a test wants: a real Redis cannot be made to misbehave."""

import socketserver
import threading
from contextlib import contextmanager


class FakeRedis:
    """`url` names it; `commands` are the commands it has received, as bytes."""

    def __init__(self, url):
        self.url, self.commands = url, []


@contextmanager
def fake_redis(answer, unix_path=None, tls=None):
    """Runs a FakeRedis that calls `answer(connection, command)` for each command, and closes if that returns False.

    It listens at `unix_path`, or on a free port; there with TLS if `tls` is an SSLContext.
    """

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            try:
                while command := self.request.recv(65536):
                    fake.commands.append(command)
                    if answer(self.request, command) is False:
                        break
            except OSError:
                pass  # the client has closed the connection

    class Server(socketserver.ThreadingUnixStreamServer if unix_path else socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(str(unix_path) if unix_path else ("127.0.0.1", 0), Handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        scheme = "rediss" if tls else "redis"
        fake = FakeRedis(f"unix://{unix_path}" if unix_path else f"{scheme}://localhost:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield fake
        finally:
            server.shutdown()
            thread.join()

"""`racedata mcp`: the tools of assistants.py over the Model Context Protocol.

The only module that needs the package `mcp`, an extra. On stdio, or over HTTP at /mcp.
"""

import argparse
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

from racedata import __version__
from racedata.assistants import BOUNDS, RESOURCES, TEXTS, Assistant
from racedata.service.endpoints import BY_NAME
from racedata.service.selection import NoLastRound
from racedata.settings import add_database_argument, argument, host_name, in_url, whole_number
from racedata.statements import views

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp.server.transport_security import TransportSecuritySettings

PATH = "/mcp"
MAX_REQUEST = 1 << 18  # bytes
RUNNING, WAITING = 2, 8  # statements at the same time; a further one is refused
STOPPING = 10  # seconds for answers at a signal: enough for all of these statements
LOCAL = ("127.0.0.1", "localhost", "[::1]")  # names by which this machine reaches itself


def server_of(assistant: Assistant) -> "MCPServer":
    from anyio import CapacityLimiter, to_thread
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.resources import TextResource
    from mcp.types import ToolAnnotations
    from pydantic import Field

    server = MCPServer(
        "racedata", version=__version__, instructions=TEXTS["instructions"], log_level="WARNING"
    )
    reads = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

    limiter, arguments = CapacityLimiter(RUNNING), TEXTS["arguments"]

    def answer(function: Callable[..., str], *arguments: object) -> str:
        try:
            return function(*arguments)
        except (ValueError, NoLastRound) as error:
            raise ToolError(str(error)) from None

    # MCP's SDK calls a `def` in a thread, so that no other client waits for it. `sql` is `async`:
    # it waits for its turn without a thread.
    def ask(address: Annotated[str, Field(description=arguments["address"])]) -> str:
        return answer(assistant.ask, address)

    async def sql(select: Annotated[str, Field(description=arguments["select"])]) -> str:
        if limiter.statistics().tasks_waiting >= WAITING:
            raise ToolError(f"{WAITING} statements wait already; ask again in some seconds")
        async with limiter:
            return await to_thread.run_sync(answer, assistant.sql, select)

    def coverage() -> str:
        return answer(assistant.coverage)

    def changes(since: Annotated[str, Field(description=arguments["since"])]) -> str:
        return answer(assistant.changes, since)

    facts = dict(endpoints=", ".join(BY_NAME), views="; ".join(views()), **BOUNDS._asdict())
    for function in (ask, sql, coverage, changes):
        description = TEXTS["tools"][function.__name__].format_map(facts)
        server.tool(description=description, annotations=reads, structured_output=False)(function)

    for uri, (description, text) in RESOURCES.items():
        name = uri.rpartition("/")[2]
        server.add_resource(
            TextResource(
                uri=uri, name=name, description=description, mime_type="text/plain", text=text
            )
        )
    return server


def security_of(names: Sequence[str], port: int) -> "TransportSecuritySettings":
    """Accepts only these names of this machine in Host and Origin.

    So a web page cannot reach the server under a name of its own (DNS rebinding).
    """
    from mcp.server.transport_security import TransportSecuritySettings

    hosts = [f"{name}:{port}" for name in names]
    if port == 80:
        hosts += names  # clients leave it out
    return TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
    )


def serve_http(server: "MCPServer", host: str, port: int, names: Sequence[str]) -> None:
    """Serves on a port until a signal. Exits with one line if that is not possible."""
    import uvicorn

    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises it again once it has ended
        signal.signal(number, lambda number, frame: sys.exit())
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        sys.exit(
            f"racedata mcp: cannot listen on {in_url(host)}:{port}: {os.strerror(error.errno or 0)}"
        )
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,  # a client keeps its tools when the server starts again
        max_request_body_size=MAX_REQUEST,
        transport_security=security_of([*dict.fromkeys([*LOCAL, in_url(host), *names])], port),
    )
    print(f"racedata mcp: http://{in_url(host)}:{port}{PATH}", file=sys.stderr, flush=True)

    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=STOPPING)
    uvicorn.Server(config).run(sockets=[listening])


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="racedata mcp",
        description="Answer AI assistants from the database, over the Model Context Protocol: on "
        "stdin and stdout, or with --http at http://HOST:PORT/mcp.",
        allow_abbrev=False,
    )
    add_database_argument(parser)
    parser.add_argument("--http", action="store_true", help="serve over HTTP instead of stdio")
    parser.add_argument(
        "--host",
        type=argument(host_name),
        default="127.0.0.1",
        help="address to listen on (default: %(default)s)",
    )
    parser.add_argument(
        "--port",
        type=argument(whole_number(1, 65535)),
        default=8001,
        help="port to listen on (default: %(default)s)",
    )
    parser.add_argument(
        "--name",
        type=argument(host_name),
        action="append",
        default=[],
        help="a name by which other machines reach this one, such as racedata.lan; may be repeated",
    )
    parsed = parser.parse_args(arguments)
    names = [n for n in ("host", "port", "name") if getattr(parsed, n) != parser.get_default(n)]
    if names and not parsed.http:
        parser.error(f"--{names[0]}: expected --http too")
    return parsed


def main(arguments: Sequence[str]) -> None:
    parsed = parse(arguments)
    try:
        import anyio

        server = server_of(Assistant(parsed.database))
    except ImportError:
        sys.exit(
            "racedata mcp: the package mcp is not installed: "
            f"run {shlex.quote(sys.executable)} -m pip install 'racedata-f1[mcp]'"
        )
    if parsed.http:
        serve_http(server, parsed.host, parsed.port, parsed.name)
    else:
        anyio.run(server.run_stdio_async)

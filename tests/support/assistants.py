"""Assistants: the real client of the SDK, over stdio or HTTP, and the server that it asks."""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import orjson
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent, TextResourceContents

from racedata.formats import Json
from support.processes import free_port, started

Call = tuple[str, dict[str, str]]


class Served(NamedTuple):
    """A running `racedata mcp --http`."""

    url: str
    port: int
    process: int


def command(database: Path | str, *options: str) -> list[str]:
    return ["-m", "racedata", "mcp", "--database", str(database), *options]


def patient(database: Path | str, *options: str) -> list[str]:
    """The command, with so much time for a statement that a busy machine stops none."""
    longer = "assistants.BOUNDS = assistants.BOUNDS._replace(seconds=60)"
    code = f"from racedata import assistants, cli; {longer}; cli.main()"
    return ["-c", code, *command(database, *options)[2:]]


@contextmanager
def over_http(
    database: Path | str, *options: str, command: Callable[..., list[str]] = command
) -> Iterator[Served]:
    """`racedata mcp --http` as a process of its own, until the end of the block."""
    port = free_port()
    arguments = command(database, "--http", "--port", str(port), *options)
    site = ("127.0.0.1", port)
    with started([sys.executable, *arguments], site, stderr=subprocess.DEVNULL) as process:
        yield Served(f"http://127.0.0.1:{port}/mcp", port, process.pid)


def over_stdio(database: Path | str) -> Any:
    """What a client needs to start `racedata mcp` and to talk to it."""
    return stdio_client(
        StdioServerParameters(command=sys.executable, args=patient(database), env=dict(os.environ))
    )


def talked(server: Any, *parts: Callable[[Client], Awaitable[Any]]) -> list[Any]:
    """The results of the parts of a conversation over one connection.

    `server` is a URL, or what `over_stdio` returns.
    """

    async def talk() -> list[Any]:
        async with Client(server) as client:
            return [await part(client) for part in parts]

    return anyio.run(talk)


def calling(*calls: Call) -> Callable[[Client], Awaitable[list[CallToolResult]]]:
    """The part of a conversation that calls tools, with their results."""

    async def call(client: Client) -> list[CallToolResult]:
        return [await client.call_tool(*each) for each in calls]

    return call


async def describing(client: Client) -> tuple[Json, dict[str, str]]:
    """The descriptions of tools by name, and the texts of resources by address."""
    tools = {tool.name: tool.description for tool in (await client.list_tools()).tools}
    texts = {}
    for resource in (await client.list_resources()).resources:
        (content,) = (await client.read_resource(resource.uri)).contents
        assert isinstance(content, TextResourceContents)
        texts[str(resource.uri)] = content.text
    return tools, texts


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def asked(server: Any, tool: str, **arguments: str) -> Json:
    """The answer of a tool."""
    ((result,),) = talked(server, calling((tool, arguments)))
    assert not result.is_error, text_of(result)
    answer: Json = orjson.loads(text_of(result))
    return answer


def refusal(server: Any, tool: str, **arguments: str) -> str:
    """Why a tool refuses."""
    ((result,),) = talked(server, calling((tool, arguments)))
    assert result.is_error, text_of(result)
    return text_of(result).removeprefix(f"Error executing tool {tool}: ")

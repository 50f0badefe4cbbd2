"""Downloads the dump that Jolpica publishes: finds it in an index, and checks its SHA-256.
jolpica.py reads it.
"""

import io
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.client import HTTPMessage
from typing import IO, Any, Self

from racedata.loader.errors import LoadError, Progress, counted
from racedata.loader.files.archives import Dump, downloaded
from racedata.loader.files.download import HTTP, download
from racedata.loader.sources.dump import PUBLISHED, RECOGNISED_BY, DumpSource
from racedata.loader.sources.pace import Pace

INDEX = "https://api.jolpi.ca/data/dumps/download/"
INDEX_BYTES = 1_000_000


class JolpicaDump(DumpSource):
    """The dump in the index."""

    @classmethod
    def at(cls, address: str, pace: Pace) -> Self | None:
        return cls(address, pace) if address == PUBLISHED["jolpica"] else None

    def dump(self, progress: Progress) -> AbstractContextManager[Dump]:
        return published_dump(os.environ.get("JOLPICA_TOKEN"), RECOGNISED_BY, progress)


@contextmanager
def published_dump(
    token: str | None, recognised_by: Collection[str], progress: Progress, index: str = INDEX
) -> Iterator[Dump]:
    """The dump in the index at a URL: with a token the latest, else one 14 days old.

    It has a file with one of the names in `recognised_by`.

    Raises LoadError, in which the token does not appear.
    """
    handlers = []
    if token:
        if not re.fullmatch("[!-~]+", token):  # urllib's message would contain it
            raise LoadError(
                "JOLPICA_TOKEN contains characters that no token has; "
                "expected letters, digits and punctuation"
            )
        handlers = [Token(token, index)]
    try:
        content = io.BytesIO()
        download(
            index,
            content,
            progress,
            size=INDEX_BYTES,
            expected="Jolpica's index",
            handlers=handlers,
        )
        url, checksum = dump_in_index(content.getvalue(), "latest" if token else "delayed", index)
        with downloaded(url, (checksum, index), recognised_by, progress, handlers) as dump:
            yield dump._replace(address="jolpica")  # the URL is of this release only
    except LoadError as error:
        raise LoadError(str(error).replace(token, "…") if token else str(error)) from None


def dump_in_index(content: bytes, name: str, index: str) -> tuple[str, str]:
    """The URL and SHA-256 of the dump `name` (`latest` or `delayed`) in the JSON of an index.

    Only the form of an entry is known: its name is a key or a value, and it holds a URL and a
    SHA-256. What their keys are called is not documented, so they are found by how they look.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise LoadError(f"{index}: not JSON; expected Jolpica's index") from None
    entries = [
        value
        for key, value in values_in(document)
        if isinstance(value, dict) and (key == name or name in value.values())
    ]
    texts = {text for entry in entries for _, text in values_in(entry) if isinstance(text, str)}
    urls = [text for text in texts if HTTP.match(text)]
    checksums = {text.lower() for text in texts if re.fullmatch("[0-9A-Fa-f]{64}", text)}
    if len(urls) != 1 or len(checksums) != 1:
        found = f"{counted(len(urls), 'URL')} and {counted(len(checksums), 'SHA-256 checksum')}"
        what = f"has {found} for the dump {name!r}"
        raise LoadError(f"{index}: {what}; expected one of each")
    if index.lower().startswith("https:") and not urls[0].lower().startswith("https:"):
        raise LoadError(f"{index}: the dump {name!r} is not at an https address; expected one")
    return urls[0], checksums.pop()


def values_in(document: Any) -> Iterator[tuple[str | None, Any]]:
    """Each value in a JSON document, at any depth, with its key if it is in an object."""
    values = [(None, document)]
    while values:
        key, value = values.pop()
        yield key, value
        if isinstance(value, dict):
            values += value.items()
        elif isinstance(value, list):
            values += [(None, item) for item in value]


class Token(urllib.request.BaseHandler):
    """Adds a token to requests to the scheme, host and port of `index`, but not to others, such as
    those after a redirect.
    """

    def __init__(self, token: str, index: str) -> None:
        self.token = token
        self.index = urllib.request.Request(index)

    def is_for(self, request: urllib.request.Request) -> bool:
        return (request.type, request.host) == (self.index.type, self.index.host)

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        if self.is_for(request):
            # urllib copies other headers into the request that follows a redirect.
            request.add_unredirected_header("Authorization", f"Token {self.token}")
        return request

    https_request = http_request

    def http_error_401(
        self,
        request: urllib.request.Request,
        response: IO[bytes],
        code: int,
        reason: str,
        headers: HTTPMessage,
    ) -> None:
        if self.is_for(request):
            response.close()
            raise urllib.error.URLError(f"does not accept JOLPICA_TOKEN ({code})")

    http_error_403 = http_error_401

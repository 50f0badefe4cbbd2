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
from contextlib import contextmanager
from functools import cached_property
from http.client import HTTPMessage
from typing import IO, Self

from racedata.formats import HTTP
from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.archives import Dump, downloaded
from racedata.loader.files.download import check_address, download
from racedata.loader.sources.dump import PUBLISHED, RECOGNISED_BY, DumpSource
from racedata.loader.sources.pace import Pace
from racedata.settings import LoaderSettings

INDEX = "https://api.jolpi.ca/data/dumps/download/"
INDEX_BYTES = 1_000_000


class JolpicaDump(DumpSource):
    """The dump in an index: Jolpica's own, or another one, named by `jolpica:` and its URL."""

    @classmethod
    def at(cls, address: str, pace: Pace) -> Self | None:
        return cls(address, pace) if address.partition(":")[0] == PUBLISHED["jolpica"] else None

    @cached_property
    def name(self) -> str:
        return PUBLISHED["jolpica"]

    @property
    def is_rest(self) -> bool:
        return False

    @contextmanager
    def dump(self, progress: Progress) -> Iterator[Dump]:
        token = LoaderSettings.read(os.environ).jolpica_token
        index = self.address.partition(":")[2] or INDEX
        with published_dump(token, RECOGNISED_BY, progress, index) as dump:
            yield dump._replace(address=self.address)  # the URL is of this release only


@contextmanager
def published_dump(
    token: str | None, recognised_by: Collection[str], progress: Progress, index: str
) -> Iterator[Dump]:
    """The dump in the index at a URL: with a token the latest, else one 14 days old.

    It has a file with one of the names in `recognised_by`.

    Raises LoadError, in which the token does not appear.
    """
    check_address(index, "the URL of a source")
    handlers = []
    if token:
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
            yield dump
    except LoadError as error:
        raise LoadError(str(error).replace(token, "…") if token else str(error)) from None


def dump_in_index(content: bytes, name: str, index: str) -> tuple[str, str]:
    """The URL and SHA-256 of the CSV dump `name` (`latest` or `delayed`) in the JSON of an index.

    Jolpica's serializers name the fields: `{"latest_dumps": {"csv": {"download_url", "file_hash",
    …}}, "delayed_dumps": …}`. An index may lack `delayed_dumps`.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise LoadError(f"{index}: not JSON; expected Jolpica's index") from None
    entry = document
    for key in (f"{name}_dumps", "csv"):
        entry = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(entry, dict):
        raise LoadError(f"{index}: no {name}_dumps.csv; expected the {name} dump in CSV files")
    url, checksum = entry.get("download_url"), entry.get("file_hash")
    scheme = "https:" if index.lower().startswith("https:") else "http"
    if not (isinstance(url, str) and HTTP.match(url) and url.lower().startswith(scheme)):
        what = f"{name}_dumps.csv.download_url is {str(url)[:80]!r}"
        raise LoadError(f"{index}: {what}; expected an {scheme.rstrip(':')} address")
    if not (isinstance(checksum, str) and re.fullmatch("[0-9A-Fa-f]{64}", checksum)):
        what = f"{name}_dumps.csv.file_hash is {str(checksum)[:80]!r}"
        raise LoadError(f"{index}: {what}; expected a SHA-256 in hexadecimal")
    return url, checksum.lower()


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

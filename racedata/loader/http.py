"""What the loader requests and what it is answered: addresses, limits, faults. exchange.py does it.

How often a source may be asked belongs to sources/pace.py, and what an answer means to the source.
"""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from racedata.formats import HTTP, without_query
from racedata.loader.errors import LoadError

CREDENTIALS = re.compile("https?://[^/?#]*@", re.IGNORECASE)  # errors and databases would show them

# Limits of time and memory, far above what any dump needs.
DOWNLOAD_SECONDS = 600
DOWNLOAD_BYTES = 200_000_000


class Secret(NamedTuple):
    """The value of a header Authorization, only for the scheme, host and port of an address."""

    value: str
    address: str


class Request(NamedTuple):
    """What is requested. `expected` names it in errors."""

    url: str
    expected: str
    seconds: float = DOWNLOAD_SECONDS  # for all of it, however slowly it arrives
    size: int = DOWNLOAD_BYTES
    method: str = "GET"
    known: Collection[str] = ()  # entity tags of content that is not to be sent
    secret: Secret | None = None
    is_public: bool = False  # whether errors show its query, which may contain a key

    @property
    def place(self) -> str:
        return self.url if self.is_public else without_query(self.url)


class Answer(NamedTuple):
    """What an answer says about its content, which is in the file."""

    etag: str  # its entity tag; empty if it has none that can be sent back
    is_known: bool  # whether the content is known, and was not sent
    location: str = ""  # the target of a redirect


class NotFetched(LoadError):
    """A request that failed. Another try may succeed."""


class WrongStatus(NotFetched):
    """An answer with a status other than 200. `type` is its media type."""

    def __init__(
        self,
        request: Request,
        status: int,
        phrase: str,  # what the status means; empty if no standard has it
        headers: Mapping[str, str],
    ) -> None:
        self.status = status
        self.type = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        self.retry_after = headers.get("Retry-After")
        reason = f"{status} {phrase}".strip()
        super().__init__(f"{request.place}: status {reason}; expected {request.expected}")


def is_address(url: str) -> bool:
    """Whether a text is an http(s) address that can be requested, without a user or password."""
    if CREDENTIALS.match(url) or not HTTP.match(url):
        return False
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0  # `port` raises ValueError above 65535
    except ValueError:
        return False


def host_of(url: str) -> str:
    """The host in an address; empty if it is not one that can be requested."""
    return urlsplit(url).hostname or "" if is_address(url) else ""


def check_address(url: str) -> None:
    """Raises LoadError, without any password, if `url` is not such an address."""
    if CREDENTIALS.match(url):
        raise LoadError("the URL of a source has a user or password in it; expected one without")
    if not is_address(url):
        expected = "an http(s) URL with a host and, if any, a port from 1 to 65535"
        raise LoadError(f"{url}: not the URL of a source; expected {expected}")

"""What a request asks for, read once: the address, the page of it, and the URL that the answer names.

The middleware here puts it on `req.context`. The grammar of addresses is in addresses.py.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import falcon

from racedata.addresses import Address, AddressError, Grammar, UnknownAddress
from racedata.settings import Settings

METHODS = ("GET", "HEAD", "OPTIONS")
DEFAULT_LIMIT = 100  # records


class Requested(NamedTuple):
    """All of a request that its answer depends on."""

    address: Address
    limit: int  # records of the page
    offset: int  # records before it
    base_url: str  # what `MRData.url` begins with


class RequestReader:
    """Middleware: sets `req.context.requested` and sends the request to its endpoint's route; refuses the rest."""

    def __init__(self, settings: Settings, grammar: Grammar) -> None:
        self.settings, self.grammar = settings, grammar
        self.base = settings.base_address.lower()
        self.default_limit = min(DEFAULT_LIMIT, settings.max_limit)

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        # Before there is a route: Falcon itself answers a method it does not know with 400.
        if req.method not in METHODS:
            raise falcon.HTTPMethodNotAllowed(METHODS, description=f"Accepted are {', '.join(METHODS)}.")
        path, base = req.path, self.base
        behind = path[len(base) :]
        if path[: len(base)].lower() == base and (behind[:1] in ("/", "") or behind.lower() == ".json"):
            req.context.requested = requested = self.read(req, behind)
            req.path = f"{base}/{requested.address.endpoint}"
        elif path.startswith("//"):
            self.not_found(req, resp)  # Falcon ignores slashes at the front, and would find the route of `/…`

    def read(self, req: falcon.Request, path: str) -> Requested:
        """Raises HTTPNotFound or HTTPBadRequest."""
        try:
            address = self.grammar.parse(path)
        except UnknownAddress as error:
            raise falcon.HTTPNotFound(description=str(error)) from None
        except AddressError as error:
            raise falcon.HTTPBadRequest(description=str(error)) from None
        if req.query_string:
            limit = min(whole_number(req, "limit", self.default_limit), self.settings.max_limit)
            offset = whole_number(req, "offset", 0)
        else:
            limit, offset = self.default_limit, 0
        base_url = self.settings.base_url or f"{req.scheme}://{host(req)}{self.settings.base_address}"
        return Requested(address, limit, offset, base_url)

    def not_found(self, req: falcon.Request, resp: falcon.Response, **params: object) -> None:
        """The sink for every address outside the base address that has no route."""
        raise falcon.HTTPNotFound(description=str(self.grammar.unknown("Nothing has this address")))


def whole_number(req: falcon.Request, name: str, default: int) -> int:
    """The query parameter `name` as a whole number from 0. Raises HTTPBadRequest if it is anything else."""
    values = req.get_param_as_list(name)
    if values is None:
        return default
    if len(values) > 1:
        raise falcon.HTTPBadRequest(description=f"{name} is given {len(values)} times; it is accepted once.")
    # ASCII digits only: int() also takes signs, spaces, underscores and the digits of other scripts; 4300 at most.
    if not re.fullmatch("[0-9]{1,4000}", values[0]):
        example = DEFAULT_LIMIT if name == "limit" else 0
        raise falcon.HTTPBadRequest(
            description=f"{name} is {values[0][:50]!r}; accepted is a whole number from 0, such as {name}={example}."
        )
    return int(values[0])


def host(req: falcon.Request) -> str:
    """The Host header, which the answer repeats. Raises HTTPBadRequest if it is missing or malformed."""
    env = req.env
    name: str = env.get("HTTP_HOST", "")
    if not name and env["SERVER_PROTOCOL"] == "HTTP/1.0":  # which needs no Host; then it is the server's own name
        name = req.netloc
    if not name or not is_host(name):
        raise falcon.HTTPBadRequest(description="The Host header is not a host name or address with an optional port.")
    return name


@lru_cache(maxsize=1024)
def is_host(text: str) -> bool:
    return bool(re.fullmatch(r"[\w.~-]+(:[0-9]{0,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{0,5})?", text, re.ASCII))

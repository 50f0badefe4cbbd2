"""The Falcon middleware: reads requests over HTTP, and adds headers to the responses.

ratelimit/middleware.py counts requests. request.py says what a request asks.
"""

import re
from functools import lru_cache

import falcon

from racedata.service.addresses import AddressError, Grammar, UnknownAddress, after_base
from racedata.service.request import (
    FORMATS,
    ParameterError,
    ParsedRequest,
    parse_query,
    with_parameters,
)
from racedata.settings import Settings

METHODS = ("GET", "HEAD", "OPTIONS")  # others are a 405 (D2)


class OneSlash:
    """Several slashes at the front of a path, or after the base address, are one.

    Clients write them if their base address ends with a slash.
    """

    def __init__(self, base_address: str) -> None:
        self.base = base_address.lower()

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        if "//" not in req.path:
            return
        req.path = "/" + req.path.lstrip("/")
        if (after_base(req.path, self.base) or "").startswith("//"):
            base, rest = req.path[: len(self.base)], req.path[len(self.base) :]
            req.path = f"{base}/{rest.lstrip('/')}"


class Cors:
    """CORS for any origin, and `nosniff`, on every response of the application.

    gunicorn refuses malformed HTTP itself, without them.

    falcon.CORSMiddleware sends its headers only if the request has an Origin. A shared cache may
    store an answer to a request without one, so here every answer has the headers.
    """

    HEADERS = (
        ("access-control-allow-origin", "*"),
        ("access-control-expose-headers", "*"),
        ("x-content-type-options", "nosniff"),
    )

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        resp.set_headers(self.HEADERS)
        if req.method == "OPTIONS" and req_succeeded:
            resp.set_header("Allow", ", ".join(METHODS))
            resp.set_header("Access-Control-Allow-Methods", ", ".join(METHODS))
            resp.set_header("Access-Control-Allow-Headers", "*")
            resp.set_header("Access-Control-Max-Age", "86400")  # seconds


class RequestParser:
    """Sets `req.context.request` and routes the request to its endpoint; refuses the rest."""

    def __init__(self, settings: Settings, grammar: Grammar) -> None:
        self.settings, self.grammar = settings, grammar
        self.base = settings.base_address.lower()
        # Clients repeat requests. Parsing takes a third of the time of a cached answer; an entry
        # takes 1 KB.
        self.parse_cached = lru_cache(maxsize=8192)(self.parse_uncached)

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        # Before routing, because Falcon answers an unknown method with 400.
        if req.method not in METHODS:
            raise falcon.HTTPMethodNotAllowed(
                METHODS, description="This method is not supported; expected GET, HEAD or OPTIONS."
            )
        request = self.parse(req.path, req.query_string, req.env["wsgi.url_scheme"], host_of(req))
        if request:
            req.context.request = request
            req.path = f"{self.base}/{request.address.endpoint}"

    def parse(self, path: str, query: str, scheme: str, host: str) -> ParsedRequest | None:
        """Parses a request; None if it is outside the base address.

        Raises HTTPNotFound or HTTPBadRequest.
        """
        # Long requests are not cached, because an entry would use too much memory.
        parse = (
            self.parse_cached if len(path) + len(query) + len(host) < 300 else self.parse_uncached
        )
        return parse(path, query, scheme, host)

    def parse_uncached(self, path: str, query: str, scheme: str, host: str) -> ParsedRequest | None:
        """Like `parse`, without its cache."""
        check_host(host)
        rest = after_base(path, self.base)
        if rest is None:
            return None
        given = parse_query(query)
        try:
            address = self.grammar.parse(rest)
            rules = self.grammar.endpoints[address.endpoint]
            own_url = f"{scheme}://{host}{self.settings.base_address}"
            has_own_url = FORMATS[address.ending].has_own_url
            base_url = (self.settings.base_url or own_url) if has_own_url else ""
            return with_parameters(address, rules, given, self.settings, base_url)
        except UnknownAddress as error:
            raise falcon.HTTPNotFound(description=str(error)) from None
        except (AddressError, ParameterError) as error:
            raise falcon.HTTPBadRequest(description=str(error)) from None


def host_of(req: falcon.Request) -> str:
    """The host that the client asked, which the answer repeats.

    HTTP/1.0 allows a request without one; then it is the server's own name.
    """
    host: str = req.env.get("HTTP_HOST", "")
    if not host and req.env["SERVER_PROTOCOL"] == "HTTP/1.0":
        host = req.netloc
    return host


def check_host(host: str) -> None:
    """Raises HTTPBadRequest if the Host header is not a valid host."""
    if not re.fullmatch(r"[\w.~-]+(:[0-9]{0,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{0,5})?", host, re.ASCII):
        raise falcon.HTTPBadRequest(
            description=f"The Host header is {host[:50]!r}; expected a host name or an IP address, "
            "with an optional port."
        )

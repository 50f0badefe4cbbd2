"""Parses a request: its address, its page, and the URL for the answer.

The middleware here sets `req.context.request`; direct.py uses the same parsers without HTTP. The
grammar of addresses is in addresses.py. Nothing here depends on the database: the season or driver
in an address need not exist.
"""

import re
from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import falcon

from racedata.model import SESSION_GROUPS
from racedata.service.addresses import (
    ATOM,
    CSV,
    ICS,
    JSON,
    Address,
    AddressError,
    Grammar,
    Rules,
    UnknownAddress,
    after_base,
)
from racedata.settings import Settings
from racedata.values import TIME_OF_DAY, Parser

METHODS = ("GET", "HEAD", "OPTIONS")  # others are a 405 (D2)
PROVENANCE = "provenance"  # asks where records are from; for JSON only
PAGE = ("limit", "offset")
# The parameters that each ending accepts, and those that it rejects: a client that sends them
# expects another format. An endpoint may accept more (`OWN_PARAMETERS`). All others are ignored.
ACCEPTED = {JSON: PAGE, CSV: PAGE, ICS: (*PAGE, "sessions", "alarm"), ATOM: PAGE}
REFUSED = {
    JSON: (),
    CSV: ("callback", "sessions", "alarm"),
    ICS: ("callback",),
    ATOM: ("callback", "sessions", "alarm"),
}
LONGEST_ALARM = 10080  # minutes: a week
ALL = 1_000_000_000  # records: more than any answer has

# The parameters of a query by name; a list if a parameter is given repeatedly.
Parameters = Mapping[str, str | list[str]]


def parse_query(query: str) -> Parameters:
    """The parameters of a query, even those with an empty value."""
    return falcon.uri.parse_query_string(query, keep_blank=True)


class ParameterError(ValueError):
    """A parameter that an address does not accept; the text says what was expected."""


class ParsedRequest(NamedTuple):
    """The parts of a request that its answer depends on."""

    address: Address
    limit: int  # records of the page
    offset: int  # records before it
    # the start of `MRData.url`; empty in other formats, so that all hosts share a cached answer
    base_url: str
    parameters: tuple[tuple[str, int | str], ...] = ()  # all others that are given, by name

    @property
    def key(self) -> Hashable:
        """Identifies the request: the path and the ending stand for the whole address."""
        path, ending = self.address.path, self.address.ending
        return path, ending, self.limit, self.offset, self.base_url, self.parameters


class OneSlash:
    """Middleware: several slashes at the front of a path, or after the base address, are one.

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


class RequestParser:
    """Sets `req.context.request` and routes the request to its endpoint; refuses the rest."""

    def __init__(self, settings: Settings, grammar: Grammar) -> None:
        self.settings, self.grammar = settings, grammar
        self.base = settings.base_address.lower()
        # Clients repeat requests. Parsing takes 8 of the 100 microseconds of a cached answer; an
        # entry takes 1 KB.
        self.parse_cached = lru_cache(maxsize=8192)(self.parse_uncached)

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        # Before routing, because Falcon answers an unknown method with 400.
        if req.method not in METHODS:
            raise falcon.HTTPMethodNotAllowed(
                METHODS, description="This method is not supported; expected GET, HEAD or OPTIONS."
            )
        if req.path == "*":  # the whole service (RFC 9110, 9.3.7); gunicorn accepts only OPTIONS
            req.path = "/"
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
            ending = address.ending
            accepted = accepted_parameters(self.grammar.endpoints[address.endpoint], ending)
            refuse(given, ending, accepted)
            own_url = f"{scheme}://{host}{self.settings.base_address}"
            base_url = (self.settings.base_url or own_url) if ending in (JSON, ATOM) else ""
            return with_parameters(address, given, accepted, self.settings, base_url)
        except UnknownAddress as error:
            raise falcon.HTTPNotFound(description=str(error)) from None
        except (AddressError, ParameterError) as error:
            raise falcon.HTTPBadRequest(description=str(error)) from None


def with_parameters(
    address: Address,
    given: Parameters,
    accepted: Iterable[str],
    settings: Settings,
    base_url: str,
) -> ParsedRequest:
    """An address with those of the given parameters that it accepts. Raises ParameterError."""
    values = {name: value for name in accepted if (value := parameter(given, name)) is not None}
    limit = int(values.pop("limit", limit_of_ending(settings, address.ending)))
    return ParsedRequest(
        address,
        limit=min(limit, settings.max_limit),  # more is no error (D3)
        offset=int(values.pop("offset", 0)),
        base_url=base_url,
        parameters=tuple(values.items()),
    )


def limit_of_ending(settings: Settings, ending: str) -> int:
    """The number of records in the answer to a request without a `limit`."""
    # Calendar clients and feed readers never fetch a second page.
    return settings.max_limit if ending in (ICS, ATOM) else settings.usual_limit


def minutes(text: str) -> int:
    if int(text) > LONGEST_ALARM:
        raise ValueError
    return int(text)


def existing_time(text: str) -> str:
    datetime.fromisoformat(text)
    return text


# The parameters that only some endpoints have.
OWN_PARAMETERS = {
    PROVENANCE: Parser("1", "1"),
    "since": Parser(
        "a day or a time in UTC, such as 2026-09-01 or 2026-09-01T12:00:00Z",
        f"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(T{TIME_OF_DAY}Z)?",
        existing_time,
    ),
    "state": Parser("open, explained or resolved", "open|explained|resolved"),
}
# ASCII digits only: int() also takes signs, spaces, underscores and other scripts, and fails above
# 4,300 digits.
COUNT = "[0-9]{1,4000}"
GROUP = f"({'|'.join(SESSION_GROUPS)})"
PARAMETERS: Mapping[str, Parser] = {
    "limit": Parser("a whole number, 0 or more, such as limit=100", COUNT, int),
    "offset": Parser("a whole number, 0 or more, such as offset=0", COUNT, int),
    "sessions": Parser(
        f"one or more of {', '.join(SESSION_GROUPS)}, separated by commas",
        f"(?i:{GROUP}(,{GROUP})*)",
        str.lower,
    ),
    "alarm": Parser(
        f"a whole number of minutes, 0 to {LONGEST_ALARM}, such as alarm=30", "[0-9]{1,5}", minutes
    ),
    **OWN_PARAMETERS,
}


def parameter(given: Parameters, name: str) -> int | str | None:
    """The value of a parameter; None without it. Raises ParameterError."""
    text = given.get(name)
    if text is None:
        return None
    if isinstance(text, list):
        raise ParameterError(f"{name} is given {len(text)} times; expected once.")
    parse = PARAMETERS[name]
    try:
        return parse(text)
    except ValueError:
        raise ParameterError(f"{name} is {text[:50]!r}; expected {parse.expected}.") from None


def accepted_parameters(rules: Rules, ending: str) -> list[str]:
    """The names of the parameters that an endpoint accepts with an ending."""
    own = (name for name in rules.parameters if name != PROVENANCE or ending == JSON)
    return [*ACCEPTED[ending], *own]


def refuse(given: Parameters, ending: str, accepted: Iterable[str]) -> None:
    """Raises ParameterError for a parameter that the ending rejects."""
    for name in REFUSED[ending]:
        if name in given:
            raise ParameterError(
                f"{ending} does not accept {name}; expected only {', '.join(accepted)}."
            )


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

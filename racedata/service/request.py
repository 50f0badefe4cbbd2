"""Parses a request: its address, its page, and the URL for the answer.

The middleware here sets `req.context.request`. The grammar of addresses is in addresses.py. Nothing
here depends on the database: the season or driver in an address need not exist.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
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
# The parameters that each ending accepts, and those that it rejects: a client that sends them
# expects another format. An endpoint may accept more (`OWN_PARAMETERS`). All others are ignored.
ACCEPTED = {
    JSON: ("limit", "offset"),
    CSV: ("limit", "offset"),
    ICS: ("limit", "offset", "sessions", "alarm"),
    ATOM: ("limit", "offset"),
}
REFUSED = {
    JSON: (),
    CSV: ("callback", "sessions", "alarm"),
    ICS: ("callback",),
    ATOM: ("callback", "sessions", "alarm"),
}
LONGEST_ALARM = 10080  # minutes: a week

# The parameters of a query by name; a list if a parameter is given repeatedly.
Parameters = Mapping[str, str | list[str]]


class ParsedRequest(NamedTuple):
    """The parts of a request that its answer depends on."""

    address: Address
    limit: int  # records of the page
    offset: int  # records before it
    # the start of `MRData.url`; empty in other formats, so that all hosts share a cached answer
    base_url: str
    sessions: tuple[str, ...] = SESSION_GROUPS  # the sessions in a calendar
    alarm: int | None = None  # minutes before a session, in a calendar
    own_parameters: tuple[tuple[str, str], ...] = ()  # those of the endpoint, with their values

    @property
    def key(self) -> Hashable:
        """Identifies the request: the path and the ending stand for the whole address."""
        return self.address.path, self.address.ending, *self[1:]


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
        address = self.parse_address(rest)
        is_calendar = address.ending == ICS
        parameters = falcon.uri.parse_query_string(query, keep_blank=True)
        own = own_parameters(self.grammar.endpoints[address.endpoint], address.ending)
        check_parameters(parameters, address.ending, own)
        return ParsedRequest(
            address,
            limit=self.limit(parameters, address.ending),
            offset=page_parameter(parameters, "offset", 0),
            base_url=self.base_url(scheme, host) if address.ending in (JSON, ATOM) else "",
            sessions=sessions_parameter(parameters) if is_calendar else SESSION_GROUPS,
            alarm=alarm_parameter(parameters) if is_calendar else None,
            own_parameters=tuple(
                (name, value) for name in own if (value := own_parameter(parameters, name))
            ),
        )

    def parse_address(self, rest: str) -> Address:
        """Parses the path after the base address. Raises HTTPNotFound or HTTPBadRequest."""
        try:
            return self.grammar.parse(rest)
        except UnknownAddress as error:
            raise falcon.HTTPNotFound(description=str(error)) from None
        except AddressError as error:
            raise falcon.HTTPBadRequest(description=str(error)) from None

    def limit(self, parameters: Parameters, ending: str) -> int:
        """The number of records that the client may get. Raises HTTPBadRequest."""
        asked = page_parameter(parameters, "limit", default_limit(self.settings, ending))
        return min(asked, self.settings.max_limit)  # more is no error (D3)

    def base_url(self, scheme: str, host: str) -> str:
        return self.settings.base_url or f"{scheme}://{host}{self.settings.base_address}"


def default_limit(settings: Settings, ending: str) -> int:
    """The number of records in the answer to a request without a `limit`."""
    # Calendar clients and feed readers never fetch a second page.
    return settings.max_limit if ending in (ICS, ATOM) else settings.usual_limit


def parameter(parameters: Parameters, name: str, example: str = "") -> str | None:
    """The text of a parameter; None without it. Raises HTTPBadRequest if there are several."""
    value = parameters.get(name)
    if isinstance(value, list):
        raise falcon.HTTPBadRequest(
            description=f"{name} is given {len(value)} times; expected once{example}."
        )
    return value


def page_parameter(parameters: Parameters, name: str, default: int) -> int:
    """A query parameter as a whole number, 0 or more. Raises HTTPBadRequest."""
    value = parameter(parameters, name)
    if value is None:
        return default
    # ASCII digits only: int() also takes signs, spaces, underscores and other scripts, and fails
    # above 4,300 digits.
    if not re.fullmatch("[0-9]{1,4000}", value):
        example = 100 if name == "limit" else 0
        raise falcon.HTTPBadRequest(
            description=f"{name} is {value[:50]!r}; expected a whole number, 0 or more, "
            f"such as {name}={example}."
        )
    return int(value)


def alarm_parameter(parameters: Parameters) -> int | None:
    """How many minutes before a session an alarm is; None without one. Raises HTTPBadRequest."""
    value = parameter(parameters, "alarm", ", as in alarm=30")
    if value is None:
        return None
    if not re.fullmatch("[0-9]{1,5}", value) or int(value) > LONGEST_ALARM:
        raise falcon.HTTPBadRequest(
            description=f"alarm is {value[:50]!r}; expected a whole number of minutes, "
            f"0 to {LONGEST_ALARM}, such as alarm=30."
        )
    return int(value)


def sessions_parameter(parameters: Parameters) -> tuple[str, ...]:
    """The groups of sessions in the parameter `sessions`. Raises HTTPBadRequest."""
    value = parameter(parameters, "sessions", ", as in sessions=race,qualifying")
    if value is None:
        return SESSION_GROUPS
    names = value.lower().split(",")
    for name in names:
        if name not in SESSION_GROUPS:
            raise falcon.HTTPBadRequest(
                description=f"sessions has {name[:50]!r}; expected one or more of "
                f"{', '.join(SESSION_GROUPS)}, separated by commas."
            )
    return tuple(group for group in SESSION_GROUPS if group in names)


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


def own_parameters(rules: Rules, ending: str) -> list[str]:
    """The names of an endpoint's own parameters that an ending accepts."""
    return [name for name in rules.parameters if name != PROVENANCE or ending == JSON]


def own_parameter(parameters: Parameters, name: str) -> str | None:
    """The text of a parameter that only some endpoints have. Raises HTTPBadRequest."""
    value = parameter(parameters, name)
    if value is None:
        return None
    parse = OWN_PARAMETERS[name]
    try:
        return str(parse(value))
    except ValueError:
        raise falcon.HTTPBadRequest(
            description=f"{name} is {value[:50]!r}; expected {parse.expected}."
        ) from None


def check_parameters(parameters: Parameters, ending: str, own: Sequence[str]) -> None:
    """Raises HTTPBadRequest for a parameter that the ending rejects; `own` are the endpoint's."""
    for name in REFUSED[ending]:
        if name in parameters:
            raise falcon.HTTPBadRequest(
                description=f"{ending} does not accept {name}; "
                f"expected only {', '.join([*ACCEPTED[ending], *own])}."
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

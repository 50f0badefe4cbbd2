"""What a request asks: an address, a page of its records, and other parameters.

This module knows no HTTP: middleware.py is for requests over HTTP, direct.py for those without. The
grammar of addresses is in addresses.py. Nothing here depends on the database: the season or driver
in an address need not exist.
"""

from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from urllib.parse import parse_qs

from racedata.model import SESSION_GROUPS
from racedata.service.addresses import ATOM, CSV, ICS, JSON, Address, Rules
from racedata.settings import Settings
from racedata.values import TIME_OF_DAY, Parser

PROVENANCE = "provenance"  # asks where records are from; for JSON only
PAGE = ("limit", "offset")
ICS_PARAMETERS = ("sessions", "alarm")
OF_FORMATS = ("callback", *ICS_PARAMETERS)  # each only has a meaning in some formats


class Format(NamedTuple):
    """The format of an answer, and what it means for a request."""

    content_type: str
    accepted: Sequence[str] = PAGE  # parameters; an endpoint may accept more (`OWN_PARAMETERS`)
    # Whether a request without a `limit` gets as many records as one may ask for: calendar clients
    # and feed readers never fetch a second page.
    is_whole: bool = False
    has_own_url: bool = False  # whether answers repeat the address of the service
    is_slow: bool = False  # whether an answer takes long even if it has few records


# By the ending of an address.
FORMATS: Mapping[str, Format] = {
    JSON: Format("application/json", has_own_url=True),
    CSV: Format("text/csv; charset=utf-8; header=present"),
    ICS: Format(
        "text/calendar; charset=utf-8",
        accepted=(*PAGE, *ICS_PARAMETERS),
        is_whole=True,
        is_slow=True,
    ),
    ATOM: Format("application/atom+xml; charset=utf-8", is_whole=True, has_own_url=True),
}
LONGEST_ALARM = 10080  # minutes: a week
ALL = 1_000_000_000  # records: more than any answer has

# The parameters of a query by name; a list if a parameter is given repeatedly.
Parameters = Mapping[str, str | list[str]]


def parse_query(query: str) -> Parameters:
    """The parameters of a query, even those with an empty value."""
    given = parse_qs(query, keep_blank_values=True)
    return {name: values if values[1:] else values[0] for name, values in given.items()}


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


def with_parameters(
    address: Address, rules: Rules, given: Parameters, settings: Settings, base_url: str
) -> ParsedRequest:
    """An address with those of the given parameters that it accepts. Raises ParameterError.

    Others are ignored, except those of another format than JSON: a client that sends them expects
    that one.
    """
    accepted = accepted_parameters(rules, address.ending)
    for name in OF_FORMATS if address.ending != JSON else ():
        if name in given and name not in accepted:
            raise ParameterError(
                f"{address.ending} does not accept {name}; expected only {', '.join(accepted)}."
            )
    values = {name: value for name in accepted if (value := parameter(given, name)) is not None}
    is_whole = FORMATS[address.ending].is_whole
    limit = int(values.pop("limit", settings.max_limit if is_whole else settings.usual_limit))
    return ParsedRequest(
        address,
        limit=min(limit, settings.max_limit),  # more is no error (D3)
        offset=int(values.pop("offset", 0)),
        base_url=base_url,
        parameters=tuple(values.items()),
    )


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
    return [*FORMATS[ending].accepted, *own]

"""The grammar of addresses: parses the path after the base address, or says why it cannot.

    [ "/" season [ "/" round ] ] *( "/" filter "/" value ) [ "/" endpoint [ "/" value ] ] [ ending ]

Some endpoints have other spellings: `fp1` is `practice/1`.

This module knows the words and the forms of their values, but not HTTP, SQL, or which seasons and
drivers exist.
"""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from racedata import model
from racedata.values import DIGITS, ROUND, SEASON, Parser

Value = int | str
Season = int | Literal["current"]
Round = int | Literal["last", "next"]

# The endings of addresses. Without one, the answer is JSON.
JSON, CSV, ICS, ATOM = ENDINGS = (".json", ".csv", ".ics", ".atom")


class AddressError(ValueError):
    """An address that is not served; the text says what is wrong and what was expected."""


class UnknownAddress(AddressError):
    """The grammar cannot read it: an unknown word, or a value of the wrong form."""


class RefusedAddress(AddressError):  # 400, not 404 (D7)
    """An address that its endpoint does not accept: an unsupported filter, or no season."""


def after_base(path: str, base: str) -> str | None:
    """The rest of a path after `base`, which is in lower case; None if the path is outside."""
    rest = path[len(base) :]
    is_under = path[: len(base)].lower() == base and (
        rest[:1] in ("/", "") or rest.lower() in ENDINGS
    )
    return rest if is_under else None


class Rules(NamedTuple):
    """The filters and endings that an endpoint accepts, and whether it needs a season."""

    filters: frozenset[str]
    needs_season: bool = False
    # By filter: the only other filters that it combines with. A filter that is not in here
    # combines with all.
    only_beside: Mapping[str, frozenset[str]] = {}
    endings: Collection[str] = (JSON, CSV)
    parameters: Collection[str] = ()  # of the query, beside those of the page


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address. Its `path` and `ending` identify it."""

    # the path of the request in lower case, with the names of this module and without the ending:
    # `2023/drivers/alonso/results`
    path: str
    endpoint: str
    season: Season | None = None
    round: Round | None = None
    # by name: an id in lower case, a number, or a place such as `1` or `R`
    filters: Mapping[str, Value] = field(default_factory=dict)
    ending: str = JSON


def without_zeros(place: str) -> str:
    """`1` from `01`, `R` from `r`."""
    return str(int(place)) if place.isdigit() else place.upper()


NUMBER = "a number of at most 18 digits"
parse_id = Parser("an id of letters, digits, _ and -", "[a-z0-9_-]+")
parse_number = Parser(NUMBER, DIGITS, int)
# A place in a championship, as in `positionText`: a number, never a letter (D15).
parse_place = Parser(NUMBER, DIGITS, without_zeros)
# A `positionText`: a place in a race, or the letter of a driver who was not classified (D17).
LETTERS = "".join(sorted(model.LETTERS)).lower()
parse_position = Parser(
    f"{NUMBER}, or one of the letters {', '.join(LETTERS[:-1])} and {LETTERS[-1]}",
    f"{DIGITS}|[{LETTERS}]",
    without_zeros,
)

# Every filter, and the parser of its value, which comes in small letters. All except `grid` and
# `fastest` are endpoints too.
FILTERS: Mapping[str, Parser] = {
    "circuits": parse_id,
    "constructors": parse_id,
    "drivers": parse_id,
    "grid": parse_number,
    "fastest": parse_number,
    "results": parse_position,
    "status": parse_number,
    "laps": parse_number,
    "pitstops": parse_number,
    "qualifying": parse_number,
    "sprint": parse_position,
    "sprintqualifying": parse_number,
    "practice": parse_number,
    "driverstandings": parse_place,
    "constructorstandings": parse_place,
}
# Other spellings that clients use: of a name, or of a name with its value.
SPELLINGS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "sprint/qualifying",
            "sprint/shootout",
            "sprint-qualifying",
            "sprint-shootout",
            "sprintshootout",
        ),
        ("sprintqualifying",),
    ),
    **{f"fp{number}": ("practice", str(number)) for number in (1, 2, 3)},
}
# Season and round at the front of a path.
FRONT = re.compile(f"/(current|{SEASON})(?:/(last|next|{ROUND}))?(?=/|\\Z)")


class Grammar:
    """Parses addresses under `base`. `endpoints` has the rules of each endpoint by its name."""

    def __init__(self, base: str, endpoints: Mapping[str, Rules]) -> None:
        self.base, self.endpoints = base, endpoints

    def parse(self, path: str) -> Address:
        """Parses the path after the base, such as `/2023/18/Results.json`. Raises AddressError."""
        if not path.isascii():  # lower() turns some other letters into ASCII
            raise self.unknown("An address may contain only ASCII characters")
        path, ending = split_ending(path.lower())  # in any letter case (D1)
        if ending not in ENDINGS:
            *others, last = map(self.with_its_endpoints, ENDINGS)
            expected = f"{', '.join(others)} or {last}"
            raise self.unknown(f"{ending[:50]!r} is not an ending; expected {expected}")
        season, round, front, rest = split_front(path)
        if not rest:
            self.check_ending("races", ending)
            return Address(f"{front}/races"[1:], "races", season, round, ending=ending)
        if rest[0].isdigit():  # no filter or endpoint is a number
            what = "season" if season is None else "round" if round is None else "filter"
            raise self.unknown(f"{rest[0][:50]!r} is not a {what}")
        rest = with_own_names(rest)
        # The last name is the endpoint; a value after it is another filter.
        endpoint = rest[-1] if len(rest) % 2 else rest[-2]
        for word in ("last", "next"):
            if word in (rest[0], endpoint):
                raise self.unknown(f"{word!r} must follow a season, as in /current/{word}")
        if endpoint not in self.endpoints:
            raise self.unknown(
                f"{endpoint[:50]!r} is not an endpoint{did_you_mean(endpoint, self.endpoints)}"
            )
        filters = self.parse_filters(endpoint, rest)
        self.check_ending(endpoint, ending)
        self.check_rules(endpoint, season, filters)
        return Address("/".join([front, *rest])[1:], endpoint, season, round, filters, ending)

    def parse_filters(self, endpoint: str, segments: list[str]) -> dict[str, Value]:
        """The values of filters by name. If a filter appears twice, the last one applies."""
        filters: dict[str, Value] = {}
        without_value = None
        for name, text in zip(segments[::2], segments[1::2]):
            # The value could be an id, so the message says that this endpoint takes none.
            if name in self.endpoints and name not in FILTERS and parse_id.fullmatch(text):
                without_value = name
                continue
            parse = FILTERS.get(name)
            if parse is None:
                raise UnknownAddress(
                    f"{name[:50]!r} is not a filter{did_you_mean(name, FILTERS)}; "
                    f"{self.expected(endpoint)}"
                )
            try:
                filters[name] = parse(text)  # instead of an earlier one (D8)
            except ValueError:
                raise self.unknown(
                    f"{text[:50]!r} is not a valid value for {name}; expected {parse.expected}"
                ) from None
        if without_value:
            raise RefusedAddress(f"{without_value} takes no value. {self.example(without_value)}")
        return filters

    def check_ending(self, endpoint: str, ending: str) -> None:
        """Raises UnknownAddress if no address of the endpoint has this ending."""
        if ending not in self.endpoints[endpoint].endings:
            others = self.endpoints_with(ending)
            raise UnknownAddress(
                f"{endpoint} does not accept the ending {ending}, "
                f"which is only for {', '.join(others)}. "
                f"Try {self.base}/2023/{others[0]}{ending}."
            )

    def endpoints_with(self, ending: str) -> list[str]:
        return [name for name, rules in self.endpoints.items() if ending in rules.endings]

    def with_its_endpoints(self, ending: str) -> str:
        """An ending, and the endpoints that accept it if not all do."""
        names = self.endpoints_with(ending)
        return ending if [*self.endpoints] == names else f"{ending} for {', '.join(names)}"

    def check_rules(self, endpoint: str, season: Season | None, filters: Iterable[str]) -> None:
        """Raises RefusedAddress if the endpoint refuses a filter or needs a season."""
        rules = self.endpoints[endpoint]
        for name in filters:
            if name not in rules.filters:
                raise RefusedAddress(
                    f"{endpoint} does not accept the filter {name}; {self.expected(endpoint)}"
                )
        for name, others in rules.only_beside.items():
            if name in filters:
                for other in filters:
                    if other != name and other not in others:
                        beside = ", ".join(["season", "round", *sorted(others - {name})])
                        raise RefusedAddress(
                            f"{endpoint} does not accept the filter {other} with {name}; "
                            f"expected only {beside}."
                        )
        if rules.needs_season and season is None:
            raise RefusedAddress(
                f"{endpoint} needs a season at the start of the address. {self.example(endpoint)}"
            )

    def expected(self, endpoint: str) -> str:
        filters = [name for name in FILTERS if name in self.endpoints[endpoint].filters]
        return f"expected one of {', '.join(filters)}. {self.example(endpoint)}"

    def example(self, endpoint: str) -> str:
        season = "/2023/18" if self.endpoints[endpoint].needs_season else "/2023"
        return f"Try {self.base}{season}/{endpoint}.json."

    def unknown(self, what: str) -> UnknownAddress:
        return UnknownAddress(
            f"{what}. An address is {self.base}, then a season (four digits, or current), "
            "a round (a number from 1, or last or next), filters with their values, and an "
            f"endpoint: {', '.join(self.endpoints)}. "
            f"Try {self.base}/2023/18/results.json."
        )


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Which of the words was probably meant, as a question; empty if none is similar."""
    found = difflib.get_close_matches(word[:50], list(words), n=1)
    return f" (did you mean {found[0]}?)" if found else ""


def split_ending(path: str) -> tuple[str, str]:
    """A path without its ending or its last slash, and the ending; JSON if it has none."""
    match = re.search(r"\.[a-z]+\Z", path)
    if not match:
        return path.removesuffix("/"), JSON
    return path[: match.start()], match[0]


def split_front(path: str) -> tuple[Season | None, Round | None, str, list[str]]:
    """Season and round, the front that has them, and the segments after it."""
    match = FRONT.match(path)
    words: Sequence[Any] = match.groups() if match else (None, None)
    season, round = (int(word) if word and word.isdigit() else word for word in words)
    end = match.end() if match else 0
    return season, round, path[:end], path[end:].split("/")[1:]


def with_own_names(segments: Sequence[str]) -> list[str]:
    """Names and values in turn, with the names that this module uses."""
    names_and_values: list[str] = []
    while segments:
        # Only a name has other spellings: `drivers/fp1` is a driver.
        spellings = {} if len(names_and_values) % 2 else SPELLINGS
        count = 2 if "/".join(segments[:2]) in spellings else 1
        word, segments = "/".join(segments[:count]), segments[count:]
        names_and_values += spellings.get(word, (word,))
    return names_and_values

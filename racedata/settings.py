"""The settings of both halves, one line each: default, parser, help, and what it affects.

Variables, options, help, checks and error messages come from these lines, and a test compares
docs/settings.md with them. Variables that other programs share, such as SOURCE_DATE_EPOCH, are no
settings: they are read where they are used.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Literal, NamedTuple, Never, Self, TypeVar

from racedata.database import default_path
from racedata.values import SEASON, Parser

# The exit status of a process that cannot start. It tells gunicorn that no other worker can start
# either, so gunicorn stops.
CANNOT_START = 3

WINDOWS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}  # seconds

T = TypeVar("T")
# Parses the text of a setting. If it is wrong, raises a ValueError that says what was expected.
Parse = Callable[[str], Any]


class SettingError(ValueError):
    """An unusable setting: one line names the variable, its value and what is expected."""


@dataclass(frozen=True)
class Rate:
    """A rate limit: `quota` requests in `window` seconds. RateLimit headers have its name."""

    name: str
    quota: int
    window: int

    @cached_property
    def interval(self) -> int:
        """Microseconds until a token comes back. Rounded up: if the quota does not divide the
        window, rounding down would allow more than quota.
        """
        return -(-self.window * 1_000_000 // self.quota)

    @cached_property
    def capacity(self) -> int:
        """Microseconds until an empty bucket is full."""
        return self.interval * self.quota


def argument(parse: Callable[[str], T]) -> Callable[[str], T]:
    """The same parser for argparse, which shows the errors of arguments."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except ValueError as expected:
            raise argparse.ArgumentTypeError(f"{text!r}: expected {expected}") from None

    return parsed


def whole_number(least: int, most: int) -> Parser:
    def in_range(text: str) -> int:
        if not least <= int(text) <= most:
            raise ValueError
        return int(text)

    return Parser(f"a whole number from {least} to {most}", "[0-9]{1,9}", in_range)


def host_name(text: str) -> int | str:
    try:
        return str(ip_address(text))
    except ValueError:
        return HOST(text)


def in_url(host: str) -> str:
    """A host as URLs have it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def proxies(text: str) -> tuple[IPv4Network | IPv6Network | None, ...]:
    """Parses comma-separated addresses and networks. `unix` is None: its peers have no address."""
    names = [name.strip() for name in text.split(",")] if text else []
    try:
        return tuple(None if name == "unix" else ip_network(name) for name in names)
    except ValueError:
        raise ValueError(
            "IP addresses, networks or the word unix, separated by commas, "
            "such as 127.0.0.1,10.0.0.0/8"
        ) from None


def rate(name: str) -> Parse:
    """Parses a rate limit, which RateLimit headers call `name`. `off` gives None."""

    def parse(text: str) -> Rate | None:
        match = re.fullmatch(f"([1-9][0-9]{{0,5}})/({'|'.join(WINDOWS)})", text, re.ASCII)
        if not match and text != "off":
            raise ValueError(
                "off, or a number from 1 to 999999 per second, minute, hour or day, "
                "such as 4/second"
            )
        return Rate(name, int(match[1]), WINDOWS[match[2]]) if match else None

    return parse


HOST = Parser("a host name or an IP address", r"[\w-]+(\.[\w-]+)*")
ON_OR_OFF = Parser("on or off", "on|off", lambda text: text == "on")
FILE = Parser("the path of a file", r"/*[^/].*")
# Addresses that begin with a year or with one of these words are pages, as in PAGES in
# pages/resources.py, or other addresses outside the base address.
START_OF_PAGES = (
    f"{SEASON}|(?i:changes|circuits|constructors|current|data|discrepancies|docs|drivers|find|"
    "healthz|records|seasons)"
)
PATH = Parser(
    "nothing, or a path such as /ergast, without a slash at the end, and in front neither a year "
    "nor the address of a page, such as /drivers",
    rf"(?!/({START_OF_PAGES})(/|$))(/[\w.~-]+)*",
)
NAME = Parser(
    "letters, digits, - and _, such as f1, and neither only a year nor the address of a page, "
    "such as drivers",
    rf"(?!({START_OF_PAGES})$)[\w-]+",
)
URL = Parser(
    "nothing, or an http(s) URL such as https://api.example.org/ergast/f1, without a trailing "
    "slash",
    r"(https?://[\w.:\[\]-]+(/[\w.~-]+)*)?",
)
LICENCES = ("any", "open")
LICENCE = Parser("any or open", "|".join(LICENCES))
TIMES = Parser("total or gap", "total|gap")
STORE = Parser("local, or a URL such as redis://127.0.0.1:6379/0", r"local|(rediss?|unix)://\S+")
CONTACT = Parser(
    "at most 200 characters in one line: a text, a URL, or mailto:…", r"[^\x00-\x1f\x7f]{0,200}"
)
TOKEN = Parser("letters, digits and punctuation", "[!-~]*")

# What a setting affects.
Affected = Literal["every answer", "the HTML pages", "the description", "no answer"]


def setting(
    default: str,
    parse: Parse,
    help: str,
    affects: Affected = "no answer",
    variable: str = "",
    is_secret: bool = False,
) -> Any:
    """A field that `variable` in the environment sets; by default, RACEDATA_ and the field's name.

    `default` is a text for `parse`. `affects` says which ETags depend on it. Messages do not show
    the value of a secret.
    """
    metadata = {
        "default": default,
        "parse": parse,
        "help": help,
        "affects": affects,
        "variable": variable,
        "is_secret": is_secret,
    }
    return field(default=parse(default), metadata=metadata)


@dataclass(frozen=True)
class SharedSettings:
    """What both halves need. In a subclass, `read` parses the settings of that half."""

    database: str = setting(default_path(os.environ), FILE, "the file that racedata load built")

    @classmethod
    def read(cls, environ: Mapping[str, str], options: Mapping[str, str] = {}) -> Self:
        """The settings in `environ` and in options, which take precedence. Raises SettingError.

        Options have the names of their fields.
        """
        for variable in environ:
            if variable.startswith("RACEDATA_") and variable not in VARIABLES:
                names = ", ".join(name for name in VARIABLES if name.startswith("RACEDATA_"))
                raise SettingError(
                    f"{variable}={environ[variable]!r}: no such setting; expected one of {names}"
                )
        values = {}
        for own in settings_in(cls):
            if own.name in options:
                values[own.name] = value_of(own, option(own.name), options[own.name])
            elif (variable := variable_of(own)) in environ:
                values[own.name] = value_of(own, variable, environ[variable])
        return cls(**values)


# fmt: off
@dataclass(frozen=True)
class LoaderSettings(SharedSettings):
    """The settings of the loader. Its commands check all of them at the start."""

    sources: str = setting("", str, "the sources to load and to follow, the most trusted first; empty for the list that commands change")
    licence: str = setting("any", LICENCE, "which sources may be used: any, or open for only those under CC BY or CC0")
    corrections: str = setting("", str, "a file of corrections beside the project's, none or default; empty for the last choice", variable="CORRECTIONS")
    jolpica_token: str = setting("", TOKEN, "your token for Jolpica-F1's latest dump; it is sent only to the host of the index", variable="JOLPICA_TOKEN", is_secret=True)

    @property
    def is_only_open(self) -> bool:
        return self.licence == "open"


@dataclass(frozen=True)
class Settings(SharedSettings):
    """The settings of the service. Each is also an option of `racedata serve`."""

    host: str = setting("127.0.0.1", host_name, "address to listen on", variable="HOST")
    port: int = setting("8000", whole_number(1, 65535), "port to listen on", variable="PORT")
    workers: int = setting(str(min(os.cpu_count() or 1, 8)), whole_number(1, 512), "worker processes", variable="WEB_CONCURRENCY")
    base_path: str = setting("/ergast", PATH, "path before the series; may be empty", "every answer")
    series: str = setting("f1", NAME, "the series: last part of the base address, and MRData.series", "every answer")
    base_url: str = setting("", URL, "start of MRData.url, such as https://api.example.org/ergast/f1; if empty, taken from the request", "every answer")
    finish_times: str = setting("total", TIMES, "Time.time of results: total for each driver's own time, gap for the gap to the winner", "every answer")
    max_limit: int = setting("2000", whole_number(1, 100_000), "the largest limit that a request can have; larger values are capped", "every answer")  # no race has 2000 records
    default_limit: int = setting("100", whole_number(1, 100_000), "the limit of a request that names none, at most the largest limit", "every answer")
    max_age: int = setting("300", whole_number(0, 31_536_000), "seconds for which clients and proxies may cache an answer")
    cache_size: int = setting("24", whole_number(0, 100_000), "megabytes of cached answers per worker")
    burst_limit: Rate | None = setting("4/second", rate("burst"), "requests per client in a second, minute, hour or day; or off", "the HTML pages")
    sustained_limit: Rate | None = setting("500/hour", rate("sustained"), "a second limit per client, usually over a longer period", "the HTML pages")
    limit_store: str = setting("local", STORE, "where requests are counted: local, or a Redis server such as redis://127.0.0.1:6379/0")
    trusted_proxies: Sequence[IPv4Network | IPv6Network | None] = setting("", proxies, "proxies whose X-Forwarded-For is trusted: addresses and networks, and unix for a unix socket, separated by commas")
    download: bool = setting("off", ON_OR_OFF, "whether clients may download the database, from /racedata.db", "the description")
    contact: str = setting("", CONTACT, "how to reach you, at the end of each HTML page: a text, a URL, or mailto: and an address", "the HTML pages")
    # fmt: on

    # No variable sets these two: the commands `serve --follow` and `export site` do.
    # whether this service also loads and follows its sources: the page at / says how to, if not
    follows: bool = field(default=False, metadata={"affects": "the HTML pages"})
    is_static: bool = False  # whether answers become the files of a static copy, which ignore parameters

    @property
    def base_address(self) -> str:
        """The path in front of all endpoints."""
        return f"{self.base_path}/{self.series}"

    @property
    def base_link(self) -> str:
        """A link to the base address: a URL if a setting has one, else a path on the same host."""
        return self.base_url or self.base_address

    @property
    def root_link(self) -> str:
        """What is in front of the paths of pages and other addresses outside the base address.

        It is a URL without a slash at the end if the settings imply one, otherwise empty.
        """
        is_implied = self.base_url.endswith(self.base_address)
        return self.base_url.removesuffix(self.base_address) if is_implied else ""

    @property
    def rate_limits(self) -> list[Rate]:
        """The rate limits that are not off. A request needs a token of each."""
        return [each for each in (self.burst_limit, self.sustained_limit) if each]

    def values_that_affect(self, *shown: Affected) -> list[Any]:
        affecting = ("every answer", *shown)
        return [
            getattr(self, each.name)
            for each in fields(self)
            if each.metadata.get("affects") in affecting
        ]

    @property
    def usual_limit(self) -> int:
        """The `limit` of a request that names none, in records."""
        return min(self.default_limit, self.max_limit)

    @property
    def health_url(self) -> str:
        """The URL at which this machine reaches the service's health report."""
        # These listen on all addresses.
        local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{in_url(local)}:{self.port}/healthz"


def settings_in(half: type[SharedSettings]) -> "list[Field[Any]]":
    return [each for each in fields(half) if "parse" in each.metadata]


def variable_of(declared: "Field[Any]") -> str:
    """The variable in the environment that sets a field."""
    return declared.metadata["variable"] or f"RACEDATA_{declared.name.upper()}"


# Both halves share a file of settings. Any other variable that begins with RACEDATA_ is an error.
VARIABLES = dict.fromkeys(
    variable_of(each) for half in (Settings, LoaderSettings) for each in settings_in(half)
)


def option(name: str) -> str:
    """The option for the field of this name: `--base-path`."""
    return "--" + name.replace("_", "-")


def value_of(declared: "Field[Any]", name: str, text: str) -> Any:
    """The value of a setting given as `text` under this name. Raises SettingError."""
    try:
        return declared.metadata["parse"](text)
    except ValueError as expected:
        given = name if declared.metadata["is_secret"] else f"{name}={text!r}"
        raise SettingError(f"{given}: expected {expected}") from None


def add_database_argument(parser: argparse.ArgumentParser) -> None:
    """Adds `--database`, for commands that need a file that exists. Raises SettingError."""
    parser.add_argument(
        "--database",
        type=argument(FILE),
        default=LoaderSettings.read(os.environ).database,
        metavar="FILE",
        help="the database file (RACEDATA_DATABASE; default: %(default)s)",
    )


class Arguments(NamedTuple):
    """The command line of `racedata serve`, and the environment."""

    settings: Settings
    gunicorn_options: Sequence[str]  # the arguments after `--`


def parse_arguments(arguments: Sequence[str]) -> Arguments:
    """Parses the arguments of `racedata serve`. If one is wrong, stops."""
    parser = argparse.ArgumentParser(
        prog="racedata serve",
        usage="racedata serve [--follow] [SETTING …] [-- GUNICORN-OPTION …]",
        description="Serve the database over HTTP. If the default database is missing, it is "
        "first built from the sample; with --follow, so is any other missing database.",
        epilog="Each setting can also be an environment variable; options take precedence. "
        f"Exit status {CANNOT_START}: a setting or the database cannot be used.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="also run `racedata refresh --follow`, "
        "with the sources in the variable RACEDATA_SOURCES",
    )
    group = parser.add_argument_group("settings")
    for each in settings_in(Settings):
        default = each.metadata["default"].replace("%", "%%") or "empty"
        help = f"{each.metadata['help']} ({variable_of(each)}; default: {default})"
        group.add_argument(option(each.name), metavar="VALUE", help=help)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    values = vars(parser.parse_args(arguments[:end]))
    follow = values.pop("follow")
    options = {name: text for name, text in values.items() if text is not None}
    try:
        LoaderSettings.read(os.environ)  # a wrong one is an error even if nothing needs it yet
        settings = replace(Settings.read(os.environ, options), follows=follow)
        return Arguments(settings, arguments[end + 1 :])
    except SettingError as error:
        stop(error)


def stop(reason: object) -> Never:
    """Prints on stderr why the service cannot start, in one line, and exits with CANNOT_START."""
    print(f"racedata: {reason}", file=sys.stderr)
    sys.exit(CANNOT_START)

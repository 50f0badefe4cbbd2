"""The settings of the service: their names, valid values, defaults and effects.

No other module of the service parses a setting, and `racedata serve --help` is made from these
fields. loader/ reads its own variables.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from ipaddress import ip_address
from typing import Any, ClassVar, Literal, NamedTuple, Never

from racedata.database import default_path
from racedata.service.ratelimit.bucket import WINDOWS, Limit
from racedata.service.ratelimit.clients import TrustedProxies

# The exit status of a process that cannot start. It tells gunicorn that no other worker can start
# either, so gunicorn stops.
CANNOT_START = 3

# A variable of `refresh --follow`, which shares a file of settings with the service. Every other
# unknown variable that begins with RACEDATA_ is an error.
LIST_OF_SOURCES = "RACEDATA_SOURCES"

# Parses the text of a setting. If it is wrong, raises a ValueError that says what was expected.
Parse = Callable[[str], Any]


class SettingError(ValueError):
    """An unusable setting: one line names the variable, its value and what is expected."""


def matching(pattern: str, expected: str) -> Parse:
    """Parses text that matches all of `pattern`; `expected` says so in words."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(expected)
        return text

    return parse


def whole_number(least: int, most: int) -> Parse:
    """Parses whole numbers from `least` to `most`."""

    def parse(text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return parse


def host_name(text: str) -> str:
    """Parses host names and IP addresses."""
    try:
        return str(ip_address(text))
    except ValueError:
        name: str = matching(r"[\w-]+(\.[\w-]+)*", "a host name or an IP address")(text)
        return name


def on_or_off(text: str) -> bool:
    """Parses `on` and `off`."""
    if text not in ("on", "off"):
        raise ValueError("on or off")
    return text == "on"


def proxies(text: str) -> TrustedProxies:
    """Parses comma-separated addresses and networks."""
    try:
        return TrustedProxies.parse(text)
    except ValueError:
        raise ValueError(
            "IP addresses, networks or the word unix, separated by commas, "
            "such as 127.0.0.1,10.0.0.0/8"
        ) from None


def rate(name: str) -> Parse:
    """Parses a rate limit, which RateLimit headers call `name`. `off` gives None."""

    def parse(text: str) -> Limit | None:
        match = re.fullmatch(f"([1-9][0-9]{{0,5}})/({'|'.join(WINDOWS)})", text, re.ASCII)
        if not match and text != "off":
            raise ValueError(
                "off, or a number from 1 to 999999 per second, minute, hour or day, "
                "such as 4/second"
            )
        return Limit(name, int(match[1]), WINDOWS[match[2]]) if match else None

    return parse


Answers = Literal["every answer", "the HTML pages", "the description", "no answer"]


def setting(
    variable: str, parse: Parse, default: str, metavar: str, help: str, affects: Answers
) -> Any:
    """A field that `variable` in the environment sets, or an option of `racedata serve`.

    `default` is a text for `parse`. `metavar` and `help` are as in argparse. `affects` says which
    ETags depend on it.
    """
    metadata = {
        "variable": variable,
        "parse": parse,
        "default": default,
        "metavar": metavar,
        "help": help,
        "affects": affects,
    }
    return field(default=parse(default), metadata=metadata)


@dataclass(frozen=True)
class Settings:
    host: str = setting(
        "HOST",
        host_name,
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on",
        affects="no answer",
    )
    port: int = setting(
        "PORT",
        whole_number(1, 65535),
        default="8000",
        metavar="NUMBER",
        help="port to listen on",
        affects="no answer",
    )
    workers: int = setting(
        "WEB_CONCURRENCY",
        whole_number(1, 512),
        default=str(min(os.cpu_count() or 1, 8)),
        metavar="NUMBER",
        help="worker processes",
        affects="no answer",
    )
    database: str = setting(
        "RACEDATA_DATABASE",
        matching(r".+", "the path of a file"),
        default=default_path(os.environ),
        metavar="FILE",
        help="the file that racedata load built",
        affects="no answer",
    )
    base_path: str = setting(
        "RACEDATA_BASE_PATH",
        matching(r"(/[\w.~-]+)*", "nothing, or a path such as /ergast, without a trailing slash"),
        default="/ergast",
        metavar="PATH",
        help="path before the series; may be empty",
        affects="every answer",
    )
    series: str = setting(
        "RACEDATA_SERIES",
        matching(r"[\w-]+", "letters, digits, - and _, such as f1"),
        default="f1",
        metavar="NAME",
        help="the series: last part of the base address, and MRData.series",
        affects="every answer",
    )
    base_url: str = setting(
        "RACEDATA_BASE_URL",
        matching(
            r"(https?://[\w.:\[\]-]+(/[\w.~-]+)*)?",
            "nothing, or an http(s) URL such as https://api.example.org/ergast/f1, "
            "without a trailing slash",
        ),
        default="",
        metavar="URL",
        help="start of MRData.url, such as https://api.example.org/ergast/f1; if empty, "
        "taken from the request",
        affects="every answer",
    )
    finish_times: str = setting(
        "RACEDATA_FINISH_TIMES",
        matching("total|gap", "total or gap"),
        default="total",
        metavar="total|gap",
        help="Time.time of results: total for each driver's own time, "
        "gap for the gap to the winner",
        affects="every answer",
    )
    max_limit: int = setting(  # no race has 2000 records
        "RACEDATA_MAX_LIMIT",
        whole_number(1, 100000),
        default="2000",
        metavar="RECORDS",
        help="the largest limit that a request can have; larger values are capped",
        affects="every answer",
    )
    default_limit: int = setting(
        "RACEDATA_DEFAULT_LIMIT",
        whole_number(1, 100000),
        default="100",
        metavar="RECORDS",
        help="the limit of a request that names none, at most the largest limit",
        affects="every answer",
    )
    max_age: int = setting(
        "RACEDATA_MAX_AGE",
        whole_number(0, 31_536_000),
        default="300",
        metavar="SECONDS",
        help="seconds for which clients and proxies may cache an answer",
        affects="no answer",
    )
    cache_size: int = setting(
        "RACEDATA_CACHE_SIZE",
        whole_number(0, 100_000),
        default="24",
        metavar="MEGABYTES",
        help="megabytes of cached answers per worker",
        affects="no answer",
    )
    # A request needs a token of each limit.
    burst_limit: Limit | None = setting(
        "RACEDATA_BURST_LIMIT",
        rate("burst"),
        default="4/second",
        metavar="NUMBER/TIME",
        help="requests per client in a second, minute, hour or day; or off",
        affects="the HTML pages",
    )
    sustained_limit: Limit | None = setting(
        "RACEDATA_SUSTAINED_LIMIT",
        rate("sustained"),
        default="500/hour",
        metavar="NUMBER/TIME",
        help="a second limit per client, usually over a longer period",
        affects="the HTML pages",
    )
    limit_store: str = setting(
        "RACEDATA_LIMIT_STORE",
        matching(r"local|(rediss?|unix)://\S+", "local, or a URL such as redis://127.0.0.1:6379/0"),
        default="local",
        metavar="STORE",
        help="where requests are counted: local, or a Redis server such as redis://127.0.0.1:6379/0",
        affects="no answer",
    )
    trusted_proxies: TrustedProxies = setting(  # `unix` means every client of a unix socket
        "RACEDATA_TRUSTED_PROXIES",
        proxies,
        default="",
        metavar="ADDRESSES",
        help="proxies whose X-Forwarded-For is trusted: addresses and networks, and unix for a "
        "unix socket, separated by commas",
        affects="no answer",
    )

    download: bool = setting(
        "RACEDATA_DOWNLOAD",
        on_or_off,
        default="off",
        metavar="on|off",
        help="whether clients may download the database, from /racedata.db",
        affects="the description",
    )

    # whether this service also loads and follows its sources: an option, but no setting
    follows: ClassVar[bool] = False

    @property
    def base_address(self) -> str:
        """The path in front of all endpoints."""
        return f"{self.base_path}/{self.series}"

    @property
    def season_pages(self) -> str:
        """The path of the pages of seasons, relative to `/`. `2023` or `2023/18` follows it."""
        # Addresses under the base address belong to the endpoints, even if it begins with a year.
        return "seasons/" if re.match("/[1-9][0-9]{3}(/|$)", self.base_address) else ""

    @property
    def base_link(self) -> str:
        """A link to the base address: a URL if a setting has one, else a path on the same host."""
        return self.base_url or self.base_address

    @property
    def root_link(self) -> str:
        """A link to the page and other addresses outside the base address.

        It is a URL if the settings imply one, otherwise a path.
        """
        is_implied = self.base_url.endswith(self.base_address)
        return self.base_url.removesuffix(self.base_address) if is_implied else "/"

    @property
    def rate_limits(self) -> list[Limit]:
        """The rate limits that are not off."""
        values = (getattr(self, each.name) for each in fields(self))
        return [value for value in values if isinstance(value, Limit)]

    def values_that_affect(self, *answers: Answers) -> list[Any]:
        """The values of the settings that affect one of these."""
        # the page at / tells users to load sources only if the service does not
        follows = [self.follows] if "the HTML pages" in answers else []
        return follows + [
            getattr(self, each.name) for each in fields(self) if each.metadata["affects"] in answers
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
        return f"http://{f'[{local}]' if ':' in local else local}:{self.port}/healthz"

    @classmethod
    def read(cls, environ: Mapping[str, str], options: Mapping[str, str] = {}) -> "Settings":
        """The settings in `environ` and in options, which take precedence. Raises SettingError.

        Options have the names of their fields.
        """
        by_variable = {each.metadata["variable"]: each for each in fields(cls)}
        for variable in environ:
            known = [name for name in by_variable if name.startswith("RACEDATA_")]
            known.append(LIST_OF_SOURCES)
            if variable.startswith("RACEDATA_") and variable not in known:
                names = ", ".join(known)
                raise SettingError(
                    f"{variable}={environ[variable]!r}: no such setting; expected one of {names}"
                )
        values = {}
        for variable, each in by_variable.items():
            if each.name in options:
                values[each.name] = value_of(each, option(each.name), options[each.name])
            elif variable in environ:
                values[each.name] = value_of(each, variable, environ[variable])
        settings = cls(**values)
        # compose.yaml passes a default of 100 even if only a lower largest limit is set. So up to
        # 100, `usual_limit` lowers it instead.
        if settings.default_limit > max(settings.max_limit, cls.default_limit):
            is_option = "default_limit" in options
            name = option("default_limit") if is_option else "RACEDATA_DEFAULT_LIMIT"
            raise SettingError(
                f"{name}='{settings.default_limit}': expected at most {settings.max_limit}, "
                "as RACEDATA_MAX_LIMIT says"
            )
        return settings


class FollowingSettings(Settings):
    """The settings of `racedata serve --follow`."""

    follows = True


def option(name: str) -> str:
    """The option of `racedata serve` for the field of this name: `--base-path`."""
    return "--" + name.replace("_", "-")


def value_of(declared: "Field[Any]", name: str, text: str) -> Any:
    """The value of a setting given as `text` under this name. Raises SettingError."""
    try:
        return declared.metadata["parse"](text)
    except ValueError as expected:
        raise SettingError(f"{name}={text!r}: expected {expected}") from None


class Arguments(NamedTuple):
    """The command line of `racedata serve`, and the environment."""

    settings: Settings
    follow: bool  # whether to keep the database fresh while serving
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
    for each in fields(Settings):
        variable, metavar, help = (each.metadata[key] for key in ("variable", "metavar", "help"))
        default = each.metadata["default"].replace("%", "%%") or "empty"
        group.add_argument(
            option(each.name), metavar=metavar, help=f"{help} ({variable}; default: {default})"
        )
    end = arguments.index("--") if "--" in arguments else len(arguments)
    values = vars(parser.parse_args(arguments[:end]))
    follow = values.pop("follow")
    options = {name: text for name, text in values.items() if text is not None}
    try:
        settings = (FollowingSettings if follow else Settings).read(os.environ, options)
        return Arguments(settings, follow, arguments[end + 1 :])
    except SettingError as error:
        stop(error)


def stop(reason: object) -> Never:
    """Prints on stderr why the service cannot start, in one line, and exits with CANNOT_START."""
    print(f"racedata: {reason}", file=sys.stderr)
    sys.exit(CANNOT_START)

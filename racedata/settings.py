"""The settings of the service: their names, accepted values, defaults, and what they set.

No other module of the service parses a setting, and `racedata serve --help` is made from these fields. What the loader
reads from the environment is in loader/.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from ipaddress import ip_address, ip_network
from typing import Any, Literal, Never

from racedata.database import default_path

CANNOT_START = 3  # exit status; it tells gunicorn that no other worker can start either, so that it stops

SOURCE_OF_A_LOAD = "RACEDATA_SOURCE"  # for `refresh --follow`, which shares a file of settings with the service

# Parses the text of a setting. If it is wrong, raises a ValueError that says what the setting accepts.
Parse = Callable[[str], Any]


class SettingError(ValueError):
    """A setting that cannot be used: one line that names the variable, its value and what is accepted."""


def matching(pattern: str, accepted: str) -> Parse:
    """Parses text that matches all of `pattern`; `accepted` says so in words."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(accepted)
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


def names_in(text: str) -> list[str]:
    """The names in a comma-separated text."""
    return [name.strip() for name in text.split(",")] if text else []


def proxies(text: str) -> str:
    """Checks comma-separated addresses and networks, and returns the text."""
    try:
        for name in names_in(text):
            if name != "unix":
                ip_network(name)
    except ValueError:
        raise ValueError("comma-separated addresses, networks and unix, such as 127.0.0.1,10.0.0.0/8") from None
    return text


RATE = "off|[1-9][0-9]{0,5}/(second|minute|hour|day)"
RATE_ACCEPTED = "off, or a number from 1 to 999999 per second, minute, hour or day, such as 4/second"


Affected = Literal["every answer", "the page", "no answer"]


def setting(variable: str, parse: Parse, default: Any, metavar: str, help: str, affects: Affected) -> Any:
    """A field that the environment's `variable` sets, and an option of `racedata serve`.

    `metavar` and `help` are as in argparse. `affects` says which ETags depend on it.
    """
    metadata = {"variable": variable, "parse": parse, "metavar": metavar, "help": help, "affects": affects}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    host: str = setting(
        "HOST",
        host_name,
        "127.0.0.1",
        "ADDRESS",
        "address to listen on",
        affects="no answer",
    )
    port: int = setting(
        "PORT",
        whole_number(1, 65535),
        8000,
        "NUMBER",
        "port to listen on",
        affects="no answer",
    )
    workers: int = setting(
        "WEB_CONCURRENCY",
        whole_number(1, 512),
        min(os.cpu_count() or 1, 8),
        "NUMBER",
        "worker processes",
        affects="no answer",
    )
    database: str = setting(
        "RACEDATA_DATABASE",
        matching(r".+", "the path of a file"),
        default_path(os.environ),
        "FILE",
        "the file that racedata load built",
        affects="no answer",
    )
    base_path: str = setting(
        "RACEDATA_BASE_PATH",
        matching(r"(/[\w.~-]+)*", "nothing, or a path such as /ergast, without a slash at its end"),
        "/ergast",
        "PATH",
        "path before the series; may be empty",
        affects="every answer",
    )
    series: str = setting(
        "RACEDATA_SERIES",
        matching(r"[\w-]+", "letters, digits, - and _, such as f1"),
        "f1",
        "NAME",
        "the series: last part of the base address, and MRData.series",
        affects="every answer",
    )
    base_url: str = setting(
        "RACEDATA_BASE_URL",
        matching(
            r"(https?://[\w.:\[\]-]+(/[\w.~-]+)*)?",
            "nothing, or an http(s) URL such as https://api.example.org/ergast/f1, without a slash at its end",
        ),
        "",
        "URL",
        "start of MRData.url, such as https://api.example.org/ergast/f1; if empty, taken from the request",
        affects="every answer",
    )
    finish_times: str = setting(
        "RACEDATA_FINISH_TIMES",
        matching("total|gap", "total or gap"),
        "total",
        "total|gap",
        "Time.time of results: total for each driver's own time, gap for the gap to the winner",
        affects="every answer",
    )
    max_limit: int = setting(  # no race has 2000 records
        "RACEDATA_MAX_LIMIT",
        whole_number(1, 100000),
        2000,
        "RECORDS",
        "the largest limit; larger values are lowered to it",
        affects="every answer",
    )
    max_age: int = setting(
        "RACEDATA_MAX_AGE",
        whole_number(0, 31_536_000),
        300,
        "SECONDS",
        "seconds for which clients and proxies may cache an answer",
        affects="no answer",
    )
    cache_size: int = setting(
        "RACEDATA_CACHE_SIZE",
        whole_number(0, 100_000),
        24,
        "MEGABYTES",
        "megabytes of cached answers per worker",
        affects="no answer",
    )
    # A request needs a token of each limit.
    burst_limit: str = setting(
        "RACEDATA_BURST_LIMIT",
        matching(RATE, RATE_ACCEPTED),
        "4/second",
        "NUMBER/TIME",
        "requests per client in a second, minute, hour or day; or off",
        affects="the page",
    )
    sustained_limit: str = setting(
        "RACEDATA_SUSTAINED_LIMIT",
        matching(RATE, RATE_ACCEPTED),
        "500/hour",
        "NUMBER/TIME",
        "a second limit of requests per client, usually over a longer time",
        affects="the page",
    )
    limit_store: str = setting(
        "RACEDATA_LIMIT_STORE",
        matching(r"local|(rediss?|unix)://\S+", "local, or a URL such as redis://127.0.0.1:6379/0"),
        "local",
        "STORE",
        "where requests are counted: local, or a Redis server such as redis://127.0.0.1:6379/0",
        affects="no answer",
    )
    trusted_proxies: str = setting(  # `unix` means every client of a unix socket
        "RACEDATA_TRUSTED_PROXIES",
        proxies,
        "",
        "ADDRESSES",
        "proxies whose X-Forwarded-For is trusted: addresses, networks and unix, separated by commas",
        affects="no answer",
    )

    @property
    def base_address(self) -> str:
        """The path in front of all endpoints."""
        return f"{self.base_path}/{self.series}"

    @property
    def season_pages(self) -> str:
        """The path of the pages of seasons, relative to `/`; the season follows: `2023`, `2023/18`."""
        # Everything under the base address is for its endpoints, even if it begins with a year.
        return "seasons/" if re.match("/[1-9][0-9]{3}(/|$)", self.base_address) else ""

    @property
    def base_link(self) -> str:
        """A link to the base address: a URL if the settings have one, else a path on the same host."""
        return self.base_url or self.base_address

    @property
    def root_link(self) -> str:
        """A link to the page and all else outside the base address: a URL if the settings imply one, else a path."""
        is_implied = self.base_url.endswith(self.base_address)
        return self.base_url.removesuffix(self.base_address) if is_implied else "/"

    @property
    def rate_limits(self) -> Mapping[str, tuple[int, str]]:
        """The rate limits that are not off, by their names in RateLimit headers: requests, and the unit of time."""
        texts = {"burst": self.burst_limit, "sustained": self.sustained_limit}
        parts = {name: text.split("/") for name, text in texts.items() if text != "off"}
        return {name: (int(quota), unit) for name, (quota, unit) in parts.items()}

    def affecting(self, *affected: Affected) -> list[Any]:
        """The values of the settings that affect one of these."""
        return [getattr(self, each.name) for each in fields(self) if each.metadata["affects"] in affected]

    @property
    def default_limit(self) -> int:
        """The `limit` of a request that names none, in records."""
        return min(100, self.max_limit)

    @property
    def health_url(self) -> str:
        """Where this machine reaches the health report of the service."""
        local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # it listens on all addresses
        return f"http://{f'[{local}]' if ':' in local else local}:{self.port}/healthz"

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Settings":
        """The settings in `environ`. Raises SettingError."""
        known = {each.metadata["variable"]: each for each in fields(cls)}
        for variable in environ:
            if variable.startswith("RACEDATA_") and variable not in known and variable != SOURCE_OF_A_LOAD:
                accepted = ", ".join(name for name in known if name.startswith("RACEDATA_"))
                raise SettingError(f"{variable}={environ[variable]!r}: there is no such setting; there are {accepted}")
        values = {}
        for variable, each in known.items():
            if variable in environ:
                values[each.name] = value_of(each, variable, environ[variable])
        return cls(**values)


def value_of(declared: "Field[Any]", name: str, text: str) -> Any:
    """The value of a setting given as `text` under this name. Raises SettingError."""
    try:
        return declared.metadata["parse"](text)
    except ValueError as accepted:
        raise SettingError(f"{name}={text!r}: expected {accepted}") from None


def read_settings() -> Settings:
    """The settings of the environment. If one is wrong, stops."""
    try:
        return Settings.from_environ(os.environ)
    except SettingError as error:
        stop(error)


def stop(reason: object) -> Never:
    """Prints on stderr why the service cannot start, in one line, and exits with CANNOT_START."""
    print(f"racedata: {reason}", file=sys.stderr)
    sys.exit(CANNOT_START)

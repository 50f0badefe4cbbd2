"""The settings of the service: their names, accepted values and defaults.

The environment is read and checked only here, once at start.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_address, ip_network
from typing import Any

from racedata.database import default_path

CANNOT_START = 3  # exit status; it tells gunicorn that no other worker can start either, so that it stops

# Parses the text of a setting. If it is wrong, raises a ValueError that says what the setting accepts.
Reader = Callable[[str], Any]


class SettingError(ValueError):
    """A setting that cannot be used: one line that names the variable, its value and what is accepted."""


def matching(pattern: str, accepted: str) -> Reader:
    """A reader of text that matches all of `pattern`; `accepted` says so in words."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(accepted)
        return text

    return read


def whole_number(least: int, most: int) -> Reader:
    """A reader of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return read


def host(text: str) -> str:
    """A reader of host names and IP addresses."""
    try:
        return str(ip_address(text))
    except ValueError:
        name: str = matching(r"[\w-]+(\.[\w-]+)*", "a host name or an IP address")(text)
        return name


def names_in(text: str) -> list[str]:
    """The names in a comma-separated text."""
    return [name.strip() for name in text.split(",")] if text else []


def proxies(text: str) -> str:
    """A reader of comma-separated addresses and networks, returned as text."""
    try:
        for name in names_in(text):
            if name != "unix":
                ip_network(name)
    except ValueError:
        raise ValueError("comma-separated addresses, networks and unix, such as 127.0.0.1,10.0.0.0/8") from None
    return text


LIMIT = "off|[1-9][0-9]{0,5}/(second|minute|hour|day)"
LIMIT_ACCEPTED = "off, or a number from 1 to 999999 per second, minute, hour or day, such as 4/second"


def setting(variable: str, read: Reader, default: Any) -> Any:
    """A field that the environment's `variable` sets."""
    return field(default=default, metadata={"variable": variable, "read": read})


@dataclass(frozen=True)
class Settings:
    # The address that gunicorn listens on, and its port.
    host: str = setting("HOST", host, "127.0.0.1")
    port: int = setting("PORT", whole_number(1, 65535), 8000)

    # Worker processes of gunicorn.
    workers: int = setting("WEB_CONCURRENCY", whole_number(1, 512), min(os.cpu_count() or 1, 8))

    # The file that the loader built.
    database: str = setting("RACEDATA_DATABASE", matching(r".+", "the path of a file"), default_path(os.environ))

    # The service answers under {base_path}/{series}; `base_path` may be empty.
    base_path: str = setting(
        "RACEDATA_BASE_PATH",
        matching(r"(/[\w.~-]+)*", "nothing, or a path such as /ergast, without a slash at its end"),
        "/ergast",
    )
    series: str = setting("RACEDATA_SERIES", matching(r"[\w-]+", "letters, digits, - and _, such as f1"), "f1")

    # The start of `MRData.url`, including the series. If empty: scheme and host of the request, and the base address.
    base_url: str = setting(
        "RACEDATA_BASE_URL",
        matching(
            r"(https?://[\w.:\[\]-]+(/[\w.~-]+)*)?",
            "nothing, or an http(s) URL such as https://api.example.org/ergast/f1, without a slash at its end",
        ),
        "",
    )

    # `Time.time` of a race or sprint result. total: the driver's own time; gap: the gap to the winner, as in Ergast.
    finish_times: str = setting("RACEDATA_FINISH_TIMES", matching("total|gap", "total or gap"), "total")

    # The largest `limit`, in records; larger values are lowered to it. No race has 2000.
    max_limit: int = setting("RACEDATA_MAX_LIMIT", whole_number(1, 100000), 2000)

    # Seconds for which clients and proxies may reuse an answer.
    max_age: int = setting("RACEDATA_MAX_AGE", whole_number(0, 31_536_000), 300)

    # Megabytes of answers that each worker caches.
    cache_size: int = setting("RACEDATA_CACHE_SIZE", whole_number(0, 100_000), 24)

    # Requests per client: a quota and its window (`4/second`), or `off`. A request needs a token from both.
    burst_limit: str = setting("RACEDATA_BURST_LIMIT", matching(LIMIT, LIMIT_ACCEPTED), "4/second")
    sustained_limit: str = setting("RACEDATA_SUSTAINED_LIMIT", matching(LIMIT, LIMIT_ACCEPTED), "500/hour")

    # Where the buckets are: in memory that this machine's workers share, or in a Redis that several machines share.
    limit_store: str = setting(
        "RACEDATA_LIMIT_STORE",
        matching(r"local|(rediss?|unix)://\S+", "local, or a URL such as redis://127.0.0.1:6379/0"),
        "local",
    )

    # Proxies whose X-Forwarded-For is trusted; `unix` means every client of a unix socket.
    trusted_proxies: str = setting("RACEDATA_TRUSTED_PROXIES", proxies, "")

    @property
    def base_address(self) -> str:
        """The path in front of all endpoints."""
        return f"{self.base_path}/{self.series}"

    @property
    def default_limit(self) -> int:
        """The `limit` of a request that names none, in records."""
        return min(100, self.max_limit)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Settings":
        """The settings in `environ`. Raises SettingError."""
        known = {each.metadata["variable"]: each for each in fields(cls)}
        for variable in environ:
            if variable.startswith("RACEDATA_") and variable not in known:
                accepted = ", ".join(name for name in known if name.startswith("RACEDATA_"))
                raise SettingError(f"{variable}={environ[variable]!r}: there is no such setting; there are {accepted}")
        values = {}
        for variable, each in known.items():
            if variable in environ:
                try:
                    values[each.name] = each.metadata["read"](environ[variable])
                except ValueError as accepted:
                    raise SettingError(f"{variable}={environ[variable]!r}: expected {accepted}") from None
        return cls(**values)


def read_settings() -> Settings:
    """The settings of the environment. If one is wrong, prints one line on stderr and exits with CANNOT_START."""
    try:
        return Settings.from_environ(os.environ)
    except SettingError as error:
        print(f"racedata: {error}", file=sys.stderr)
        sys.exit(CANNOT_START)

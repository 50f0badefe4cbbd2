"""`racedata healthcheck`: asks a running service whether it answers, and whether its data is fresh.

Needs only Python.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from racedata.formats import timestamp
from racedata.settings import Settings, argument, whole_number

SECONDS = 5


def health_line(arguments: Sequence[str]) -> str:
    """The line to print if the service is healthy; else, exits with 1 and a line that says why."""
    parser = argparse.ArgumentParser(
        prog="racedata healthcheck",
        description="Check that a running service answers, and show which data it has.",
        epilog="Exit status: 0 if it answers and its data is not too old, else 1. A service that "
        "refused a new database file still serves the old data, and counts as healthy: a restart "
        "would not help.",
    )
    parser.add_argument(
        "--url", help="address of /healthz (default: on the service's HOST and PORT)"
    )
    parser.add_argument(
        "--stale-after",
        type=argument(days),
        metavar="DAYS",
        help="also fail if a followed source has not been refreshed for this long or, if no source "
        "is followed, if the database is older than this; and if only the sample is loaded",
    )
    parsed = parser.parse_args(arguments)
    settings = Settings.read(os.environ)
    url = settings.health_url if parsed.url is None else parsed.url
    try:
        # A proxy of the environment is not for this machine.
        with build_opener(ProxyHandler({})).open(url, timeout=SECONDS) as answer:
            health = json.load(answer)
        line = described(health)
        stale = parsed.stale_after and staleness(health, parsed.stale_after)
    except HTTPError as error:
        sys.exit(f"racedata healthcheck: {url}: status {error.code}; expected 200")
    except OSError as error:
        cause = getattr(error, "reason", error)
        sys.exit(f"racedata healthcheck: {url}: {getattr(cause, 'strerror', None) or cause}")
    except (KeyError, TypeError, ValueError, HTTPException):
        sys.exit(
            f"racedata healthcheck: {url}: not a health report; expected the address of racedata's "
            "/healthz"
        )
    if stale:
        sys.exit(f"racedata healthcheck: {url}: {stale}")
    return f"{line}\n"


def days(text: str) -> timedelta:
    return timedelta(int(whole_number(1, 999)(text)))


def described(health: Any) -> str:
    """The answer in one line. Raises an error if it is not the one of a healthy service."""
    if health["status"] != "ok":
        raise ValueError
    # Others are followed, but have not provided any records.
    sources = " and ".join(source["name"] for source in health["sources"] if "readAt" in source)
    line = f"{health['status']}: {sources}, built at {health['builtAt']}"
    return line + (
        f"; still serving earlier data: {health['refused']}" if "refused" in health else ""
    )


def staleness(health: Any, stale_after: timedelta) -> str | None:
    """What has not been refreshed for longer than `stale_after`; None if all is fresh.

    Only sources that are followed count or, without one, the database. The sample never is fresh.
    """
    if "sample" in health:
        return f"{health['sample']}"
    refreshed = [
        # a source that was followed again may have been refreshed long ago
        (max(source["followedSince"], source.get("refreshedAt", "")), source["name"])
        for source in health["sources"]
        if "followedSince" in source
    ]
    time, name = min(refreshed, default=(health["builtAt"], "the database"))
    limit = timestamp(datetime.now(UTC) - stale_after)
    if time >= limit:
        return None
    return f"{name} has not been refreshed since {time}; expected a refresh after {limit}"

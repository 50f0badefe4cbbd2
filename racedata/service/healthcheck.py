"""`racedata healthcheck`: asks a running service whether it answers. Needs only Python."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from http.client import HTTPException
from types import FrameType
from typing import Never
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from racedata.service.settings import SettingError, Settings

SECONDS = 5


def health_line(arguments: Sequence[str]) -> str:
    """The line to print if the service answers; else, exits with 1 and a line that says why."""
    parser = argparse.ArgumentParser(
        prog="racedata healthcheck",
        description="Ask a running service whether it answers, and which data it has.",
        epilog="Exit status: 0 if it answers, else 1. A service that rejected a new database file "
        "still serves the old data, and counts as healthy: a restart would not help.",
    )
    parser.add_argument(
        "--url", help="address of /healthz (default: at HOST and PORT, the settings of the service)"
    )
    url = parser.parse_args(arguments).url
    try:
        url = url or Settings.read(os.environ).health_url
        if not url.lower().startswith(("http://", "https://")):
            sys.exit(
                f"racedata healthcheck: {url}: expected an address that begins with "
                "http:// or https://"
            )
        line = described(answer_of(url))
    except SettingError as error:
        sys.exit(f"racedata healthcheck: {error}")
    except HTTPError as error:
        sys.exit(f"racedata healthcheck: {url}: status {error.code}; expected 200")
    except OSError as error:
        cause = getattr(error, "reason", error)
        sys.exit(f"racedata healthcheck: {url}: {getattr(cause, 'strerror', None) or cause}")
    except (KeyError, TypeError, ValueError, RecursionError, HTTPException):
        sys.exit(f"racedata healthcheck: {url}: expected the answer of racedata's /healthz")
    return "".join(character if character.isprintable() else " " for character in line) + "\n"


def answer_of(url: str) -> bytes:
    # A timeout of the connection would start again with each byte.
    signal.signal(signal.SIGALRM, end_of_time)
    signal.alarm(SECONDS)
    with build_opener(ProxyHandler({})).open(url) as answer:
        content: bytes = answer.read(100_000)
    return content


def end_of_time(number: int, frame: FrameType | None) -> Never:
    raise TimeoutError(f"no complete answer in {SECONDS} seconds")


def described(answer: bytes) -> str:
    """The answer in one line. Raises an error if it is not the one of a healthy service."""
    health = json.loads(answer)
    if health["status"] != "ok":
        raise ValueError
    sources = " and ".join(source["name"] for source in health["sources"])
    line = f"{health['status']}: {sources}, built at {health['builtAt']}"
    return line + (f"; a new file was refused: {health['refused']}" if "refused" in health else "")

"""Which sources are allowed: with `--licence open`, only those under CC BY or CC0."""

import argparse
import os

from racedata.formats import without_query
from racedata.licences import is_open
from racedata.loader.errors import LoadError
from racedata.settings import LICENCES, LoaderSettings

VARIABLE = "RACEDATA_LICENCE"


def add_licence_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--licence",
        choices=LICENCES,
        help=f"open refuses every source that is not under CC BY or CC0 ({VARIABLE}; default: any)",
    )


def set_licence(licence: str | None) -> None:
    """Sets the variable to the value of `--licence`, if that is given. So the rule also holds in
    each thread of a follower, and in a build from the store.
    """
    if licence:
        os.environ[VARIABLE] = licence


def is_only_open() -> bool:
    return LoaderSettings.read(os.environ).licence == "open"


def check_licence(address: str, licence: str | None) -> None:
    """Raises LoadError if a source with this licence is not allowed."""
    if is_only_open() and not is_open(licence):
        what = f"its licence is {licence or 'not stated'}"
        raise LoadError(
            f"{without_query(address)}: {what}; expected CC BY or CC0, as {VARIABLE}=open says"
        )

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
        default=LoaderSettings.read(os.environ).licence,
        help=f"open refuses every source that is not under CC BY or CC0 ({VARIABLE}; default: any)",
    )


def check_licence(address: str, licence: str | None, only_open: bool) -> None:
    """Raises LoadError if a source with this licence is not allowed, because it must be open."""
    if only_open and not is_open(licence):
        what = f"its licence is {licence or 'not stated'}"
        raise LoadError(
            f"{without_query(address)}: {what}; expected CC BY or CC0, as {VARIABLE}=open says"
        )

"""The command `racedata refresh`: its arguments, and whether it refreshes once or follows.

refresh.py has what a refresh does, follow.py when to check a source.
"""

import argparse
import os
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from racedata import values
from racedata.loader.allowed import add_licence_argument
from racedata.loader.corrections import add_corrections_argument
from racedata.loader.errors import LoadError, Progress
from racedata.loader.follow import Follower
from racedata.loader.load import whole_of
from racedata.loader.program import run, say, settings_of
from racedata.loader.rebuild import store_of
from racedata.loader.refresh import Refresh
from racedata.loader.same_bytes import SAMPLE_NAME
from racedata.loader.source_list import (
    check_configured,
    check_licences,
    configured,
    list_of,
)
from racedata.loader.sources import DEFAULT_LIST, NAMES, each_once, sources_named, whole_database
from racedata.loader.threads import Threads
from racedata.settings import add_database_argument, argument


def addresses_of(parsed: argparse.Namespace) -> list[str]:
    """The sources that the command names, or else the list. Raises LoadError if one is
    wrong or not allowed, or if a whole database is not the only one.
    """
    addresses: list[str] = parsed.addresses or listed_at(parsed.database)
    if not addresses:
        raise LoadError("the list has only the sample; name a source: --from SOURCE")
    settings = settings_of(parsed)
    if not whole_of(addresses, settings):
        check_configured(parsed.addresses)
    check_licences(addresses, settings.is_only_open)
    return addresses


def listed_at(database: str) -> list[str]:
    addresses = configured()
    if not addresses:
        try:
            with store_of(Path(database)) as store:
                addresses = list_of(store)
        except (LoadError, OSError, sqlite3.Error):  # each source says what is wrong with the file
            addresses = [*DEFAULT_LIST]
    return [address for address in addresses if address != SAMPLE_NAME]


def main(arguments: Sequence[str]) -> None:
    parsed = parse(arguments)
    settings = settings_of(parsed)
    if parsed.follow:
        try:
            addresses = addresses_of(parsed)
        except LoadError as error:
            sys.exit(f"racedata refresh: {error}")
        Follower(settings, addresses, bool(parsed.addresses), Threads(parsed.parent)).run()
        return

    def work(progress: Progress) -> list[str]:
        faults: list[str] = []
        addresses = addresses_of(parsed)
        is_listed = not (parsed.addresses or parsed.season or whole_database(addresses))
        refresh = Refresh(
            settings=settings,
            addresses=addresses,
            is_named=bool(parsed.addresses),
            season=parsed.season,
            progress=progress,
        )
        was_refused = refresh.run(lambda line: faults.append(say(line)), loads_unread=is_listed)
        # `say` returns errors of stdout. After the first, it writes nothing more.
        if fault := "".join(faults):
            raise LoadError(fault)
        if was_refused:
            sys.exit(os.EX_TEMPFAIL)
        return []

    run("refresh", parsed.database, work)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="racedata refresh",
        description="Bring the database up to date: ask the list of sources for every season from "
        "the first unfinished one. A dump of the list that was never read is loaded first. "
        "The list is in RACEDATA_SOURCES, or else the default; `racedata sources` shows it.",
        epilog="Exit status: 0 if all sources were read; 75 if one asked to try again later, such "
        "as at its limit of requests; 1 if one failed; 2 for wrong arguments.",
    )
    parser.add_argument(
        "--from",
        dest="addresses",
        action="append",
        type=argument(sources_named),
        default=[],
        metavar="SOURCE",
        help=f"ask only this source: a name ({', '.join(NAMES)}), a dump, or the base address of "
        "an API in that format. Repeat the option for several. A source that is new joins "
        "the list: an API ahead of the dumps, a dump behind them. A database, such as "
        "https://f1.example.org/racedata.db, is copied unchanged and replaces yours",
    )
    parser.add_argument(
        "--season",
        type=argument(values.year),
        metavar="YEAR",
        help="fetch only this season, with all details",
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="keep running: check again whenever the calendar suggests new records, and at least "
        "daily",
    )
    # `serve --follow` passes the reading end of a pipe, which closes when the service has ended.
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    add_database_argument(parser)
    add_corrections_argument(parser)
    add_licence_argument(parser)
    parsed = parser.parse_args(arguments)
    if parsed.follow and parsed.season:
        parser.error("--follow and --season: expected only one of them")
    parsed.addresses = each_once(parsed.addresses)
    return parsed

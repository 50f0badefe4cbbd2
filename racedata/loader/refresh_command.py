"""The command `racedata refresh`: its arguments, and whether it refreshes once or follows.

refresh.py has what a refresh does, follow.py when to check a source.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

from racedata import values
from racedata.formats import without_query
from racedata.loader.configured import ConfiguredSources
from racedata.loader.corrections import add_corrections_argument
from racedata.loader.errors import LoadError, Progress
from racedata.loader.follow import FollowedSource, Preparation, follow_in_processes
from racedata.loader.processes import Sleep
from racedata.loader.program import add_database_argument, run, say
from racedata.loader.refresh import Refresh, followed_source
from racedata.loader.sources import (
    FROM,
    FROM_DEFAULT,
    Pace,
    addresses_in,
    source_at,
    whole_database,
)


def follower(parsed: argparse.Namespace) -> Callable[[int | None], None]:
    """A function that follows sources until a signal, or until a pipe closes.

    The function gets the reading end of this pipe, or None. Raises LoadError if the sources are
    wrong.
    """
    path, addresses, corrections = parsed.database, parsed.addresses, parsed.corrections

    def make(number: int, sleep: Sleep) -> FollowedSource:
        lines: list[str] = []
        refresh = Refresh(
            path=path,
            addresses=addresses,
            season=None,
            corrections=corrections,
            progress=lambda text: None,
            say=lines.append,
            new_pace=partial(Pace, sleep=sleep),
            waits=True,
        )
        return followed_source(refresh.sources[number], refresh, lines)

    # A whole database is loaded instead of the sources in RACEDATA_SOURCE.
    configured = (
        addresses
        if whole_database(addresses)
        else list(dict.fromkeys(addresses_in(os.environ.get("RACEDATA_SOURCE", ""))))
    )
    # As in Refresh.run, the preferred source comes last: at first, all are due at once.
    numbered = reversed(list(enumerate(addresses)))
    sources = [(without_query(address), partial(make, number)) for number, address in numbered]
    names = [source_at(address).name for address in addresses]
    loads = ConfiguredSources(path, configured, corrections, names)
    return partial(follow_in_processes, path, sources, Preparation(loads.load, loads.are_optional))


def season(text: str) -> int:
    """The value of `--season`."""
    if not values.year.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r}; expected {values.year.expected}")
    return int(text)


def main(arguments: Sequence[str]) -> None:
    parsed = parse(arguments)
    if parsed.follow:
        try:
            follower(parsed)(parsed.parent)
        except LoadError as error:
            sys.exit(f"racedata refresh: {error}")
        return

    was_refused = False

    def work(progress: Progress) -> list[str]:
        nonlocal was_refused
        faults: list[str] = []
        whole_database(parsed.addresses)
        refresh = Refresh(
            path=parsed.database,
            addresses=parsed.addresses,
            season=parsed.season,
            corrections=parsed.corrections,
            progress=progress,
            say=lambda line: faults.append(say(line)),
        )
        refresh.run()
        was_refused = refresh.was_refused
        # `say` returns errors of stdout. After the first, it writes nothing more.
        if fault := "".join(faults):
            raise LoadError(fault)
        return []

    run("refresh", parsed.database, work)
    if was_refused:
        sys.exit(os.EX_TEMPFAIL)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="racedata refresh",
        description="Bring the database up to date: fetch every season from the first unfinished "
        "one.",
        epilog="Exit status: 0 if all sources were read; 75 if one asked to try again later, such "
        "as at its limit of requests; 1 if one failed; 2 for wrong arguments.",
    )
    parser.add_argument(
        "--from",
        dest="addresses",
        action="append",
        metavar="SOURCE",
        help=FROM,
    )
    parser.add_argument(
        "--season",
        type=season,
        metavar="YEAR",
        help="fetch only this season, with all details",
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="keep running: check again whenever the calendar suggests new records, and at least "
        "daily. If the database is missing, is the sample, or was built from sources other than "
        "those in RACEDATA_SOURCE, load those sources first",
    )
    # `serve --follow` passes the reading end of a pipe, which closes when the service has ended.
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    add_database_argument(parser)
    add_corrections_argument(parser)
    parsed = parser.parse_args(arguments)
    if parsed.follow and parsed.season:
        parser.error("--follow and --season: expected only one of them")
    parsed.addresses = [
        address for text in parsed.addresses or [] for address in addresses_in(text)
    ] or FROM_DEFAULT
    return parsed

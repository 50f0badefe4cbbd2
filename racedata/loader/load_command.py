"""The command `racedata load`: its arguments. load.py has what a load does."""

import argparse
from collections.abc import Sequence

from racedata.loader.allowed import add_licence_argument
from racedata.loader.corrections import add_corrections_argument
from racedata.loader.errors import Progress
from racedata.loader.load import load
from racedata.loader.program import run, settings_of
from racedata.loader.sources import PUBLISHED, each_once, sources_named
from racedata.settings import add_database_argument, argument


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="racedata load", description="Build the database from one or more sources."
    )
    parser.add_argument(
        "sources",
        nargs="*",
        type=argument(sources_named),
        metavar="SOURCE",
        help="a folder of CSV files, a zip of them, the http(s) URL of such a zip, or a name: "
        f"{', '.join(PUBLISHED)}. Name the most trusted source first: for each race and kind of "
        "records, the first that has them counts. A file or URL that ends with .db is a database, "
        "which is copied unchanged. By default, load reads the sources in RACEDATA_SOURCES, those "
        "of the last load, or else the sample",
    )
    parser.add_argument(
        "--only",
        action="store_true",
        help="make these sources the whole list: refresh asks no other source from then on",
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="replace the existing database even if it is damaged, if a newer version of racedata "
        "built it, or if it is newer than the database to copy; the records that refreshes added "
        "to it are lost",
    )
    add_database_argument(parser)
    add_corrections_argument(parser)
    add_licence_argument(parser)
    parsed = parser.parse_args(arguments)
    sources = each_once(parsed.sources)
    if not sources and (parsed.only or parsed.replace):
        parser.error(f"--{'only' if parsed.only else 'replace'}: expected a SOURCE too")

    def work(progress: Progress) -> list[str]:
        settings = settings_of(parsed)
        return load(sources, settings, progress, replace=parsed.replace, only=parsed.only)

    run("load", parsed.database, work)

"""What the store has, and a build from it: `racedata sources`, `parts` and `build`."""

import argparse
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from racedata.database import is_missing
from racedata.formats import counted
from racedata.loader.choose import Choice, choose
from racedata.loader.corrections import add_corrections_argument, corrections_of
from racedata.loader.errors import LoadError, Progress
from racedata.loader.existing import ExistingDatabase
from racedata.loader.files.csvfile import csv_line
from racedata.loader.parts import PARTS
from racedata.loader.program import run, settings_of
from racedata.loader.rebuild import new_database, replace_from_store, store_of
from racedata.loader.source_list import (
    configured,
    counting,
    elsewhere,
    list_of,
    names_in,
    remember_list,
)
from racedata.loader.sources import whole_database
from racedata.loader.store import Store, StoredPart, UnknownStore, store_to_read
from racedata.settings import LoaderSettings, add_database_argument


def source_lines(database: str) -> Iterator[str]:
    """A line for each source of the list, the most trusted first, and each other one."""
    gave: dict[str, str] = {}
    if not is_missing(Path(database)):
        with closing(ExistingDatabase(Path(database))) as existing:
            gave = dict(existing.db.execute("SELECT name, gave FROM sources").fetchall())
    try:
        store_to_read(Path(database)).close()
    except UnknownStore as error:  # then the list is not known, only what the database has
        yield str(error)
    with store_of(Path(database)) as store:
        whole = whole_database(configured())
        names = {} if whole else names_in(store, list_of(store))
        if whole:
            yield f"1. {whole.address}: a database, which is copied as it is"
        for place, (address, name) in enumerate(names.items(), 1):
            source = store.source(name)
            read = f"read {source.read_at}" if source else "never read"
            what = gave.get(name) or "nothing"
            where = "" if name == address else f" at {address}"
            yield f"{place}. {name}{where}: {read}" + (f"; counts: {what}" if source else "")
        for source in store.known_sources():
            if source.place is None:
                why = "not in the list, so it does not count"
            elif source.name not in names.values():
                until = "" if whole else " until the list is loaded"
                why = f"counts{until}: {gave.get(source.name) or 'nothing'}"
            else:
                continue
            yield f"-  {source.name}: read {source.read_at}; {why}"


def remove(settings: LoaderSettings, name: str, progress: Progress) -> list[str]:
    """Takes a source from the list, and builds the database without it. Its parts stay stored."""
    if configured():
        raise elsewhere(f"--remove {name!r}")
    with new_database(settings) as new, new.store() as (store, corrections):
        names = names_in(store, list_of(store))
        kept = [address for address in names if name not in (address, names[address])]
        if len(kept) == len(names):
            known = ", ".join(names.values())
            raise LoadError(f"--remove {name!r}: not in the list; expected one of {known}")
        if names.get(name, name) in counting(store, kept):
            raise LoadError(f"--remove {name!r}: no dump would be left; load another one first")
        remember_list(store, kept)
        report = new.build(store, corrections, progress)
    return [*report.lines, f"{settings.database}: {report.seasons}, without {name}"]


RACE = re.compile("([0-9]{4})/([0-9]{1,2})")


def part_lines(settings: LoaderSettings, race: str, kind: str) -> Iterator[str]:
    """What each source says about a kind of a race: as CSV, what counts first."""
    match = RACE.fullmatch(race)
    if not match:
        raise LoadError(f"{race!r}: expected a season and a round, such as 2023/18")
    if kind not in PARTS:
        raise LoadError(f"{kind!r}: expected one of {', '.join(PARTS)}")
    season, round = map(int, match.groups())
    with store_of(Path(settings.database)) as store:
        corrections = corrections_of(store, settings.corrections)
        choice = choose(
            store.sources(), store.calendars(), store.parts(), corrections.corrected_calendar
        )
        parts = list(parts_in(choice, season, round, kind))
        if not parts:
            raise LoadError(f"{race}: no source has {kind}; expected a race of which one has them")
        for part, what in parts:
            yield from lines_of(store, part, what)


def parts_in(
    choice: Choice, season: int, round: int, kind: str
) -> Iterator[tuple[StoredPart, str]]:
    """The parts of a race, and whether each counts."""
    for race in choice.races:
        if (race.season, race.facts["round"]) == (season, round):
            for part in race.ranked_parts(kind):
                yield part, "counts" if part is race.parts.get(kind) else "does not count"


def lines_of(store: Store, part: StoredPart, what: str) -> Iterator[str]:
    columns, rows = store.rows(part)
    yield f"{part.source}, {part.confirmed_at}: {counted(len(rows), 'row')}, {what}"
    yield csv_line(columns)
    yield from map(csv_line, rows)


def parser_of(command: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"racedata {command}", description=description)
    add_database_argument(parser)
    return parser


def build_command(arguments: Sequence[str]) -> None:
    description = "Build the database again from what its sources have said, without a request."
    parser = parser_of("build", description)
    add_corrections_argument(parser)
    settings = settings_of(parser.parse_args(arguments))
    run("build", settings.database, partial(replace_from_store, settings))


def sources_command(arguments: Sequence[str]) -> None:
    description = "Show the list of sources, the most trusted first: what each has, and since when."
    parser = parser_of("sources", description)
    parser.add_argument(
        "--remove",
        metavar="NAME",
        help="take a source from the list: what it has said stays stored, but does not count",
    )
    parsed = parser.parse_args(arguments)

    def work(progress: Progress) -> list[str]:
        if parsed.remove is not None:
            return remove(settings_of(parsed), parsed.remove, progress)
        return list(source_lines(parsed.database))

    run("sources", parsed.database, work, replaces=parsed.remove is not None)


def parts_command(arguments: Sequence[str]) -> None:
    description = "Show what each source says about a race."
    parser = parser_of("parts", description)
    parser.add_argument("race", metavar="RACE", help="a season and a round, such as 2023/18")
    parser.add_argument("kind", metavar="KIND", help=f"one of {', '.join(PARTS)}")
    parsed = parser.parse_args(arguments)
    lines = part_lines(settings_of(parsed), parsed.race, parsed.kind)
    run("parts", parsed.database, lambda progress: list(lines), replaces=False)

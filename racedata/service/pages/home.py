"""The page at `/`: the next race, the last result, both championships, what is loaded, its sources.

The next race depends on the data, not on a clock; script.js changes the heading if it is over.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from sqlite3 import Row
from typing import Any, NamedTuple

from racedata.formats import public_name, public_url
from racedata.model import KINDS
from racedata.service import queries
from racedata.service.pages import races
from racedata.service.pages.ask import Ask
from racedata.service.snapshot import COPIED, Snapshot, is_database

PLACES = 10  # how many places of a result the page shows
RefreshTimes = Mapping[str, str]  # when a refresh last read each source


class Source(NamedTuple):
    """A source: what it gave, and when it was last read or, if `is_checked`, asked for new data."""

    name: str
    url: str | None
    is_checked: bool
    at: str
    newest: Row | None = None  # its newest records: `(kind, race, date)`
    licence: str | None = None
    records: str = ""  # empty if another database says it


def facts(ask: Ask, shown_times: RefreshTimes) -> dict[str, Any]:
    data, settings = ask.data, ask.settings
    built, last_check = data.build()["builtAt"], max(shown_times.values(), default="")
    (last,) = ask("results", PLACES, "current", "last")
    corrections, _ = queries.corrections(data, {}, 0, 0)
    return {
        "notice": data.sample_notice(settings.follows),  # that this is only the sample
        # when a refresh last asked a source; empty if the database is newer
        "last_check": last_check if last_check > built else "",
        "next_race": next_race(ask),
        "last_race": last,
        "last_places": races.places(last["Results"]),
        # the source of the last result, if that is provisional
        "provisional": ask.provisional_source(last),
        # If the last race has no standings yet, those after an earlier one.
        "championships": [*races.championships(ask, ("current", "last"), ("current", None))],
        "decades": decades(ask.catalogue.rounds),
        "seasons_loaded": queries.seasons_loaded(data),
        "counts": data.row_counts(),
        "corrections": corrections,
        "built": built,
        "kinds": KINDS,  # of records
        "coverage": data.coverage(),
        "licence": data.licence(),
        "sources": [*sources(data, shown_times)],
        # bytes; None if the service does not offer its database
        "download_size": data.file.size if settings.download else None,
    }


def next_race(ask: Ask) -> dict[str, Any] | None:
    """The race after the last one with results, its sessions, and the first places of those that
    are loaded; None without a race.
    """
    for race in ask("races", 1, "current", "next"):
        front = int(race["season"]), int(race["round"])
        return {
            "race": race,
            "start": races.start(race),
            "sessions": races.sessions(race),
            "qualifying": races.qualified(ask.records("qualifying", PLACES, *front)),
            "sprint": races.places(ask.records("sprint", PLACES, *front)),
            "sprint_qualifying": races.qualified(ask.records("sprintqualifying", PLACES, *front)),
        }
    return None


def decades(seasons: Iterable[int]) -> list[tuple[int, list[int]]]:
    """The first years of decades, each with its seasons that have races, the latest first."""
    latest_first = sorted(seasons, reverse=True)
    return [
        (decade, [*of_decade])
        for decade, of_decade in groupby(latest_first, key=lambda season: season // 10 * 10)
    ]


def sources(data: Snapshot, times: RefreshTimes) -> Iterator[Source]:
    """The sources. Those that were asked but have given nothing yet come last."""
    newest, other_times = queries.newest_records(data), {**times}
    for source in data.sources():
        read_at, checked_at = source["readAt"], other_times.pop(source["name"], "")
        records = source["gave"] or "none"
        if source["isProvisional"] and source["gave"]:
            records += "; provisional, until another source has them"
        yield Source(
            public_name(source["name"]),
            public_url(source["address"]),
            checked_at > read_at,
            max(read_at, checked_at),
            newest.get(source["name"]),
            source["licence"] or "not stated",
            records,
        )
    for name, at in other_times.items():
        if is_database(name):  # then all of the above was copied from there
            yield Source(COPIED, None, True, at)
        else:
            yield Source(public_name(name), public_url(name), True, at, records="none")

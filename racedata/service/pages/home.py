"""The page at `/`: the next race, the last result, both championships, what is loaded, its sources.

The next race depends on the data, not on a clock; script.js changes the heading if it is over.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from sqlite3 import Row
from typing import NamedTuple, TypedDict

from racedata.formats import Json, public_name, public_url
from racedata.model import KINDS, Table
from racedata.service import queries
from racedata.service.catalogue import Catalogue
from racedata.service.pages import races
from racedata.service.pages.ask import Ask
from racedata.service.pages.races import Championship, Session
from racedata.service.snapshot import Snapshot
from racedata.service.sources import COPIED, is_database
from racedata.settings import Settings

PLACES = 10  # how many places of a result the page shows
RefreshTimes = Mapping[str, str]  # when a refresh last read each source


class NextRace(TypedDict):
    """The next race, its sessions, and the first places of those that are loaded."""

    race: Json
    start: str
    sessions: list[Session]
    qualifying: list[Json]
    sprint: list[Json]
    sprint_qualifying: list[Json]


class Source(NamedTuple):
    """A source: what it gave, and when it was last read or, if `is_checked`, asked for new data."""

    name: str
    url: str | None
    is_checked: bool
    at: str
    newest: Row | None = None  # its newest records: `(kind, race, date)`
    licence: str | None = None
    records: str = ""  # empty if another database says it


class Facts(TypedDict):
    base: str  # a link to the base address
    notice: str | None  # that this is only the sample
    last_check: str  # when a refresh last asked a source; empty if the database is newer
    next_race: NextRace | None
    last_race: Json
    last_places: list[Json]
    provisional: str | None  # the source of the last result, if that is provisional
    championships: list[Championship]
    decades: list[tuple[int, list[int]]]
    seasons_loaded: tuple[int, int, int]
    counts: Mapping[str, int]
    corrections: int
    built: str
    kinds: Mapping[str, Table]  # of records
    coverage: Mapping[str, Mapping[str, int]]  # as `Snapshot.coverage` returns it
    licence: str
    sources: list[Source]
    download_size: int | None  # bytes; None if the service does not offer its database


def facts(
    settings: Settings, data: Snapshot, catalogue: Catalogue, ask: Ask, times: RefreshTimes
) -> Facts:
    """What home.html shows."""
    built, last_check = data.build()["builtAt"], max(times.values(), default="")
    (last,) = ask("/current/last/results", PLACES)
    corrections, _ = queries.corrections(data, {}, 0, 0)
    return Facts(
        base=settings.base_link,
        notice=data.sample_notice(settings.follows),
        last_check=last_check if last_check > built else "",
        next_race=next_race(ask),
        last_race=last,
        last_places=races.places(last["Results"]),
        provisional=ask.provisional_source(last),
        # If the last race has no standings yet, those after an earlier one.
        championships=[*races.championships(ask, "/current/last", "/current")],
        decades=[*decades(catalogue)],
        seasons_loaded=queries.seasons_loaded(data),
        counts=data.row_counts(),
        corrections=corrections,
        built=built,
        kinds=KINDS,
        coverage=data.coverage(),
        licence=data.licence(),
        sources=[*sources(data, times)],
        download_size=data.file.size if settings.download else None,
    )


def next_race(ask: Ask) -> NextRace | None:
    """The race after the last one with results, and what is known of it; None without a race."""
    for race in ask("/current/next", 1):
        front = f"/{race['season']}/{race['round']}"
        return NextRace(
            race=race,
            start=races.start(race),
            sessions=races.sessions(race),
            qualifying=races.qualified(ask.records(f"{front}/qualifying", PLACES)),
            sprint=races.places(ask.records(f"{front}/sprint", PLACES)),
            sprint_qualifying=races.qualified(ask.records(f"{front}/sprintqualifying", PLACES)),
        )
    return None


def decades(catalogue: Catalogue) -> Iterator[tuple[int, list[int]]]:
    """The first years of decades, each with its seasons that have races, the latest first."""
    seasons = sorted({year for year, _ in catalogue.id_of_round}, reverse=True)
    for decade, of_decade in groupby(seasons, key=lambda season: season // 10 * 10):
        yield decade, [*of_decade]


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

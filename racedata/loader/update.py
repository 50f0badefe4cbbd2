"""Puts what sources say into the store.

load.py reads sources whole, and refresh.py asks them for news; both use this module. rebuild.py
builds the database.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from racedata.formats import abridged, timestamp
from racedata.loader.choose import ChosenRace, choose, may_be_short
from racedata.loader.corrections import Corrections
from racedata.loader.delivery import OWN_ID, Delivery
from racedata.loader.errors import LoadError
from racedata.loader.matching import (
    calendar_races,
    days_between,
    match_across_sources,
    match_with_earlier,
)
from racedata.loader.parts import LIST_OF, REFERENCE, Calendar, Part
from racedata.loader.store import Races, Store, StoredCalendar, StoredSource
from racedata.values import Value

# How long all sources must have lacked a race: a calendar may be incomplete for some time.
CANCELLED_AFTER = timedelta(hours=12)

# The columns that tell the rows of a list apart.
KEYS = {
    **{name: (REFERENCE[id],) for id, name in LIST_OF.items()},
    "seasons": ("year",),
    "corrections": ("tableName", "key", "columnName"),
    "ids": OWN_ID,
}


def check_calendars(store: Store, corrections: Corrections) -> None:
    """Raises LoadError for what cannot be in a stored calendar that counts, unless a correction
    mends it.

    The error begins with the name of the source, or with the file of corrections if these are
    wrong.
    """
    for source in store.sources():
        for stored in store.calendars(source.name):
            season, races = stored.season, stored.counting or stored.races
            if fault := fault_in_calendar(
                season, corrections.corrected_calendar(season, races), corrections
            ):
                is_own = fault_in_calendar(season, races, Corrections([]))
                raise LoadError(f"{source.name if is_own else corrections.file}: {fault}")


def fault_in_calendar(year: int, races: Races, corrections: Corrections) -> str:
    """A date outside of the season, or a race given twice, in words; empty if there is none."""
    # The sessions of a race in early January may be in December.
    first, last = f"{year - 1}-12-01", f"{year}-12-31"
    for race in races:
        dates = {"": race["date"]}
        for row in race["sessions"]:
            key = f"{year}/{race['round']}/{row['session']}"
            date = corrections.corrected_row("sessions", key, row)["date"]
            dates[f"{row['session']} of "] = date or first
        for what, date in dates.items():
            if not (first if what else f"{year}-01-01") <= date <= last:
                return (
                    f"the date of {what}{year}/{race['round']} {race['name']} is {date!r}; "
                    f"expected a date in its season, {year}"
                )
    # No season has had two races with the same name, or at one circuit on one day.
    for what, mark in (
        ("name", lambda race: race["name"]),
        ("circuit and date", lambda race: (race["circuitId"], race["date"])),
    ):
        rounds: dict[object, Value] = {}
        for race in races:
            if (before := rounds.setdefault(mark(race), race["round"])) != race["round"]:
                both = f"{year}/{before} and {year}/{race['round']}"
                return f"{both} have the same {what}; expected different ones"
    return ""


def put_whole(store: Store, delivery: Delivery) -> None:
    """Replaces all that a source has said.

    The source counts behind all others, until `apply_list` gives it another place.
    """
    source = delivery.source
    store.forget(source.name)
    store.put_source(source._replace(place=len(store.known_sources()) + 1))
    keys: dict[tuple[int, int], str] = {}
    fetched_at = None if source.is_loaded else source.read_at
    for calendar in delivery.calendars:
        new = calendar_of(source.name, calendar, None, fetched_at)
        keys |= {(new.season, race["round"]): race["key"] for race in new.races}
        store.put_calendar(new)
    parts = (
        (keys[part.season, part.round], part, fetched_at)
        for part, fetched_at in delivery.parts
        if (part.season, part.round) in keys
    )
    store.put_parts(source.name, source.read_at, parts)
    put_lists(store, delivery)


def put_lists(store: Store, delivery: Delivery) -> None:
    for name, rows in delivery.lists.items():
        keyed_rows = [(" ".join(str(row[key]) for key in KEYS[name]), row) for row in rows]
        store.put_list(delivery.source.name, name, keyed_rows)


def put_news(
    store: Store,
    delivery: Delivery,
    corrections: Corrections,
    may_be_shorter: bool,
    now: datetime,
) -> list[str]:
    """Adds to what a source has said. Returns lines that say what was not added.

    What is shorter than before, because it has fewer races or entrants, is not added, unless it
    `may_be_shorter`.
    """
    source = as_known(delivery.source, store.source(delivery.source.name))
    store.put_source(source)
    incomplete: list[str] = []  # calendars
    missing: list[str] = []
    calendars = list(delivery.calendars)
    served = served_calendars(store, corrections, {each.season for each in calendars})
    keys: dict[tuple[int, int], str] = {}
    for calendar in calendars:
        before = store.calendar(source.name, calendar.season)
        new = calendar_of(source.name, calendar, before, source.read_at)
        keys |= {(new.season, int(race["round"])): race["key"] for race in new.races}
        if calendar.may_count and not may_be_shorter:
            lost = lost_races(new, served.get(new.season, []))
            new = unless_lost(new, before, lost, now)
            if held := [race.name for race in lost if "results" in race.parts]:
                incomplete.append(f"the calendar of {new.season}, which lacks {held[0]}")
            missing += [f"{new.season} {name}" for name in new.lacks]
        store.put_calendar(new)
    stored = () if may_be_shorter else store.parts(source.name)
    had = {(part.season, part.race, part.kind): part.entrants for part in stored}
    parts, shorter = without_shorter(delivery.parts, keys, had)
    store.put_parts(source.name, source.read_at, parts)
    put_lists(store, delivery)
    remarks = (
        (incomplete, "the database has results of that race; not used"),
        (shorter, "fewer records than this source had before; not used"),
        (
            missing,
            "missing from the source's calendar; that calendar is not used until every such race "
            f"has been missing for {CANCELLED_AFTER // timedelta(hours=1)} hours",
        ),
    )
    return [f"{abridged(names)}: {what}" for names, what in remarks if names]


def calendar_of(
    name: str, calendar: Calendar, before: StoredCalendar | None, fetched_at: str | None
) -> StoredCalendar:
    """A calendar of a source. A race that was in `before` keeps its key."""
    races = keyed(calendar.races, all_races(before))
    counting = races if calendar.may_count else None
    return StoredCalendar(name, calendar.season, fetched_at, races, counting, {})


def keyed(new: Races, old: Races) -> list[dict[str, Any]]:
    """The races of a calendar of a source. A race of an older calendar keeps its key.

    It also keeps its sessions and time if the new calendar has none, unless it has moved.
    """
    matched = match_with_earlier(calendar_races(new), calendar_races(old))
    keys = {at: old[before]["key"] for at, before in matched.items()}
    races = []
    for at, race in enumerate(new):
        if at not in keys:
            keys[at] = free_key(str(race["name"]), keys.values())
            races.append({**race, "key": keys[at]})
            continue
        before = old[matched[at]]
        race = {**race, "key": keys[at]}
        if days_between(race["date"], before["date"]) <= 1:
            race["sessions"] = race["sessions"] or before["sessions"]
        if race["date"] == before["date"] and race["time"] is None:
            race["time"] = before["time"]
        races.append(race)
    return races


def free_key(name: str, used: Collection[str]) -> str:
    number, key = 1, name
    while key in used:
        number += 1
        key = f"{name} {number}"
    return key


def as_known(source: StoredSource, old: StoredSource | None) -> StoredSource:
    """The source of news. What a load said about it stays, if it is still in the list."""
    if not old or old.place is None:
        return source
    return source._replace(
        place=old.place,
        is_loaded=old.is_loaded,
        is_sample=old.is_sample,
        address=old.address if old.is_loaded else source.address,
    )


def unless_lost(
    new: StoredCalendar,
    before: StoredCalendar | None,
    lost: Sequence[ChosenRace],
    now: datetime,
) -> StoredCalendar:
    """The new calendar of a source. If it has `lost` races, the one before counts instead:

    - for good, if one of these races has results;
    - otherwise until all of them are cancelled. `lacks` notes since when each has been lost.
    """
    if not lost:
        return new
    earlier = new._replace(counting=before and before.counting)
    if any("results" in race.parts for race in lost):
        return earlier
    noted = before.lacks if before else {}
    lacks = {race.name: noted.get(race.name, timestamp(now)) for race in lost}
    are_cancelled = all(is_cancelled(since, now) for since in lacks.values())
    return new if are_cancelled else earlier._replace(lacks=lacks)


def is_cancelled(since: str, now: datetime) -> bool:
    """Whether a race counts as cancelled that sources have lacked since a time."""
    return since <= timestamp(now - CANCELLED_AFTER)


def without_shorter(
    parts: Iterable[tuple[Part, str | None]],
    keys: Mapping[tuple[int, int], str],
    had: Mapping[tuple[int, str, str], int],
) -> tuple[list[tuple[str, Part, str | None]], list[str]]:
    """The parts of known races, each with the key of its race; and in words, the parts that are
    left out, because they are shorter than before.

    `keys` are by season and round. `had` has the entrants, by season, key and kind. The results of
    a race come before its fastest laps.
    """
    kept: list[tuple[str, Part, str | None]] = []
    shorter: list[str] = []
    with_results = set()
    for part, fetched_at in parts:
        key = keys.get((part.season, part.round))
        if key is None:
            continue
        of_race = (part.season, key)
        is_shorter = part.entrants < had.get((*of_race, part.kind), 0)
        if is_shorter and not may_be_short(part.kind, of_race in with_results):
            shorter.append(f"{part.kind} of {part.season}/{part.round} {key}")
            continue
        if part.kind == "results":
            with_results.add(of_race)
        kept.append((key, part, fetched_at))
    return kept, shorter


def all_races(calendar: StoredCalendar | None) -> list[dict[str, Any]]:
    """The races of a stored calendar: its latest ones, and older ones that still count."""
    if not calendar:
        return []
    keys = {race["key"] for race in calendar.races}
    earlier = (race for race in calendar.counting or () if race["key"] not in keys)
    return [*calendar.races, *earlier]


def served_calendars(
    store: Store, corrections: Corrections, seasons: Collection[int]
) -> dict[int, list[ChosenRace]]:
    """The calendars of these seasons that count, with the results that count."""
    results = store.parts(kind="results")
    choice = choose(
        store.sources(), store.calendars(), results, corrections.corrected_calendar, seasons
    )
    calendars: dict[int, list[ChosenRace]] = {}
    for race in choice.races:
        calendars.setdefault(race.season, []).append(race)
    return calendars


def lost_races(new: StoredCalendar, served: Sequence[ChosenRace]) -> list[ChosenRace]:
    """The races that count, and that a new calendar of a source lacks.

    Another source may have other names and articles, so its races also match by circuit. The
    source itself would have kept a name or an article: another race at the circuit is a new one.
    """
    both = calendar_races(new.races), calendar_races([race.facts for race in served])
    others = {at for at, race in enumerate(served) if race.calendar.source != new.source}
    kept = {*match_with_earlier(*both).values()}
    kept |= others & {*match_across_sources(*both).values()}
    return [race for at, race in enumerate(served) if at not in kept]

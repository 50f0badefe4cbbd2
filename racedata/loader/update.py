"""Puts what sources say into the store, and keeps the store and the database in step.

load.py reads sources whole, and refresh.py asks them for news; both use this module. It also takes
a database apart, if its store is lost. build.py builds the database.
"""

import gc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from racedata.database import OLDEST_VERSION, is_missing, store_path
from racedata.formats import HTTP, without_query
from racedata.formats import listed as listed_words
from racedata.loader.changes import take_changes
from racedata.loader.choose import ChosenRace, choose
from racedata.loader.correction_lines import NOTED
from racedata.loader.corrections import CorrectedRows
from racedata.loader.delivery import OWN_ID, Delivery, delivery_of
from racedata.loader.errors import LoadError
from racedata.loader.existing import ExistingDatabase
from racedata.loader.listed import after_load, after_refresh, put_list
from racedata.loader.matching import calendar_races, match_calendars, same_races
from racedata.loader.parts import Calendar, Part, Tables
from racedata.loader.sources import DEFAULT_LIST
from racedata.loader.sql import column_names
from racedata.loader.store import (
    Store,
    StoredCalendar,
    StoredSource,
    keyed,
    opened_store,
)
from racedata.values import Value


def checked(
    calendars: Iterable[Calendar], corrected: CorrectedRows, place: str
) -> Iterator[Calendar]:
    """The same calendars. Raises LoadError, which begins with the place, for a date outside of its
    season, or a race given twice, unless a correction mends it.
    """
    for calendar in calendars:
        year, races = calendar.season, corrected.calendar(calendar.season, calendar.races)
        # The sessions of a race in early January may be in December.
        first, last = f"{year - 1}-12-01", f"{year}-12-31"
        for race in races:
            dates = {"": race["date"]}
            for row in race["sessions"]:
                key = f"{year}/{race['round']}/{row['session']}"
                date = corrected.row("sessions", key, row)["date"]
                dates[f"{row['session']} of "] = date or first
            for what, date in dates.items():
                if not (first if what else f"{year}-01-01") <= date <= last:
                    raise LoadError(
                        f"{place}: the date of {what}{year}/{race['round']} {race['name']} is "
                        f"{date!r}; expected a date in its season, {year}"
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
                    raise LoadError(
                        f"{place}: {both} have the same {what}; expected different ones"
                    )
        yield calendar


def put_whole(store: Store, delivery: Delivery, corrected: CorrectedRows) -> None:
    """Replaces all that a source has said. Raises LoadError for a wrong calendar."""
    source = delivery.source
    store.forget(source.name)
    store.put_source(source)
    keys: dict[tuple[int, int], str] = {}
    for calendar in checked(delivery.calendars, corrected, source.address):
        races = keyed(calendar.races, [])
        keys |= {(calendar.season, race["round"]): race["key"] for race in races}
        fetched_at = None if source.is_loaded else source.read_at
        counts = races if calendar.counts else None
        store.put_calendar(
            StoredCalendar(source.name, calendar.season, fetched_at, races, counts, {})
        )
    parts = (
        (keys[part.season, part.round], part, fetched_at)
        for part, fetched_at in delivery.parts
        if (part.season, part.round) in keys
    )
    store.put_parts(source.name, source.read_at, parts)
    put_lists(store, delivery)


def put_lists(store: Store, delivery: Delivery) -> None:
    keys = {
        "corrections": NOTED[:3],
        "ids": OWN_ID,
        "seasons": ("year",),
        "status": ("status",),
    }
    for name, rows in delivery.lists.items():
        names = keys.get(name, (f"{name[:-1]}Ref",))
        keyed_rows = [(" ".join(str(row[name]) for name in names), row) for row in rows]
        store.put_list(delivery.source.name, name, keyed_rows)


def put_news(
    store: Store,
    delivery: Delivery,
    corrected: CorrectedRows,
    may_shrink: bool,
    are_cancelled: Callable[[Collection[str]], bool],
    now: str,
) -> list[str]:
    """Adds to what a source has said. Returns lines that say what was not added.

    `may_shrink` says whether it may have fewer races and entrants than before. `are_cancelled` gets
    the times since when a calendar has lacked races.
    """
    source = delivery.source._replace(has_ids=False)  # those of a load are kept
    old = store.source(source.name)
    if old and old.place is not None:  # what a load said about it stays
        source = source._replace(
            place=old.place, is_loaded=old.is_loaded, has_ids=old.has_ids, is_sample=old.is_sample
        )
        if old.is_loaded:
            source = source._replace(address=old.address)
    store.put_source(source)
    served = served_calendars(store, corrected)
    smaller: list[str] = []
    missing: list[str] = []
    keys: dict[tuple[int, int], str] = {}
    for calendar in checked(delivery.calendars, corrected, delivery.source.address):
        before = store.calendar(source.name, calendar.season)
        races = keyed(calendar.races, all_races(before))
        keys |= {(calendar.season, int(race["round"])): race["key"] for race in races}
        counts = races if calendar.counts else None
        new = StoredCalendar(source.name, calendar.season, source.read_at, races, counts, {})
        if calendar.counts and not may_shrink:
            lost = lost_races(source.name, races, served.get(calendar.season, []))
            noted = before.lacks if before else {}
            # the clock may have been ahead
            lacks = {name: min(noted.get(name, now), now) for name in (race.name for race in lost)}
            if held := [race for race in lost if "results" in race.parts]:
                smaller.append(f"the calendar of {calendar.season}, which lacks {held[0].name}")
                new = new._replace(counts=before and before.counts)
            elif lost and not are_cancelled(lacks.values()):
                missing += [f"{calendar.season} {name}" for name in lacks]
                new = new._replace(counts=before and before.counts, lacks=lacks)
        store.put_calendar(new)
    had = {} if may_shrink else {each[1:4]: each.entrants for each in store.parts(source.name)}
    parts = not_shorter(delivery.parts, keys, had, smaller)
    store.put_parts(source.name, source.read_at, parts)
    put_lists(store, delivery)
    remarks = (
        (smaller, "fewer records than the database has; not used"),
        (
            missing,
            "missing from the source's calendar; that calendar is not used until every such race "
            "has been missing for 12 hours",
        ),
    )
    return [f"{listed_words(names)}: {what}" for names, what in remarks if names]


def not_shorter(
    parts: Iterable[tuple[Part, str | None]],
    keys: Mapping[tuple[int, int], str],
    had: Mapping[tuple[int, str, str], int],
    smaller: list[str],
) -> Iterator[tuple[str, Part, str | None]]:
    """The parts of known races, with the keys of these. Adds those that are shorter than before to
    `smaller` instead.

    `keys` are by season and round. `had` has the entrants, by season, key and kind.
    """
    with_results = set()
    for part, fetched_at in parts:
        key = keys.get((part.season, part.round))
        if key is None:
            continue
        of_race = (part.season, key)
        # A source may leave out the fastest lap of a driver who completed one lap.
        may_be_short = part.kind == "fastest_laps" and of_race in with_results
        is_short = part.entrants < had.get((*of_race, part.kind), 0)
        if is_short and not (may_be_short or part.kind == "entries"):
            smaller.append(f"{part.kind} of {part.season}/{part.round} {key}")
            continue
        if part.kind == "results":
            with_results.add(of_race)
        yield key, part, fetched_at


def all_races(calendar: StoredCalendar | None) -> list[dict[str, Any]]:
    """The races of a stored calendar: the latest ones, and those that still count."""
    if not calendar:
        return []
    keys = {race["key"] for race in calendar.races}
    return [*calendar.races, *(race for race in calendar.counts or () if race["key"] not in keys)]


def served_calendars(store: Store, corrected: CorrectedRows) -> dict[int, list[ChosenRace]]:
    """The calendars that count, by season, with the results that count."""
    results = store.parts(kind="results")
    choice = choose(store.sources(), store.calendars(), results, corrected.calendar)
    found: dict[int, list[ChosenRace]] = {}
    for race in choice.races:
        found.setdefault(race.season, []).append(race)
    return found


def lost_races(
    source: str, new: Sequence[dict[str, Any]], served: Sequence[ChosenRace]
) -> list[ChosenRace]:
    """The races that count, and that a new calendar of a source lacks."""
    both = calendar_races(new), calendar_races([race.facts for race in served])
    others = {at for at, race in enumerate(served) if race.calendar.source != source}
    kept = {*match_calendars(*both).values(), *(others & {*same_races(*both).values()})}
    return [race for at, race in enumerate(served) if at not in kept]


# A database whose store is lost, or that was copied.


def is_behind(database: Path) -> bool:
    """Whether the store has changed since the database was built, or the database is lost: a
    program was killed, or somebody has removed the file.
    """
    if not store_path(database).exists():
        return False
    with closing(opened_store(database, checks=False)) as store:
        if is_missing(database):
            return bool(store.sources())
        with closing(ExistingDatabase(database)) as existing:
            id, changes = existing.store
            if id != store.state[0]:  # the service builds the sample if the database is lost
                return existing.is_sample and any(not each.is_sample for each in store.sources())
        return changes < store.state[1]


@contextmanager
def changed_store(database: Path) -> Iterator[Store]:
    """The store of a database, in a transaction. A new one is removed if the block raises."""
    is_new = not store_path(database).exists()
    try:
        with (
            without_garbage_collection(),
            closing(opened_store(database)) as store,
            store.transaction(),
        ):
            yield store
    except BaseException:
        if is_new:
            store_path(database).unlink(missing_ok=True)
        raise


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """A build makes very many objects and no cycles: to look for some costs 6% of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def synced_store(database: Path) -> Store:
    """The store of a database, which is taken apart if that was built from another one."""
    store = opened_store(database)
    try:
        if not is_missing(database):
            with closing(ExistingDatabase(database, OLDEST_VERSION)) as existing:
                id, changes = existing.store
                if id != store.state[0] or changes > store.state[1]:
                    with store.transaction():
                        synced(store, existing)
    except BaseException:
        store.close()
        raise
    return store


def synced(store: Store, existing: ExistingDatabase) -> None:
    """Takes a database apart if the store is not the one from which it was built, or an older
    copy of that.
    """
    id, changes = existing.store
    is_older_copy = id == store.state[0] and changes > store.state[1]
    # The service builds the sample if the database is lost: it is not what the sources say.
    has_more = any(not source.is_sample for source in store.known_sources())
    is_other = id != store.state[0] and not (has_more and (existing.is_sample or not id))
    if is_older_copy or is_other:
        take_apart(existing, store)
        store.state = id or store.state[0], changes


def take_apart(existing: ExistingDatabase, store: Store) -> None:
    """Puts what a database has into the store, by source."""
    tables = Tables(existing.db, "main")
    for source in store.known_sources():
        store.forget(source.name)
    store.db.execute("DELETE FROM sources")
    for number, source in stored_sources(existing):
        put_whole(store, delivery_of(source, tables, number), CorrectedRows([]))
    loaded = [source.address for source in store.known_sources() if source.is_loaded]
    asked = [
        f"{source.name}:{source.address}" if source.is_provisional else source.address
        for source in store.known_sources()
        if not source.is_loaded
    ]
    addresses = after_refresh(after_load(DEFAULT_LIST, loaded), asked)
    put_list(store, addresses, is_read=False)
    store.put_statuses(
        {str(row["status"]): int(str(row["statusId"])) for row in tables.list_rows("status")}
    )
    take_changes(existing.db, store)


def stored_sources(existing: ExistingDatabase) -> Iterable[tuple[int, StoredSource]]:
    """The sources of a database, with their numbers."""
    stored = column_names(existing.db, "sources")
    provisional = "isProvisional" if "isProvisional" in stored else "0"
    rows = existing.db.execute(
        f"""SELECT sourceId, name, address, licence, checksum, readAt, isLoaded, {provisional}
            FROM sources ORDER BY sourceId"""
    )
    for number, name, address, licence, checksum, read_at, is_loaded, is_provisional in rows:
        is_api = (
            not is_loaded
            and not is_provisional
            and bool(HTTP.match(address))
            and not without_query(address).endswith(".zip")
        )
        yield (
            number,
            StoredSource(
                name=name,
                address=address,
                licence=licence,
                checksum=checksum,
                read_at=read_at,
                is_loaded=bool(is_loaded),
                is_api=is_api,
                is_provisional=bool(is_provisional),
                is_sample=number == 1 and existing.is_sample,
                has_ids=number == 1,
            ),
        )

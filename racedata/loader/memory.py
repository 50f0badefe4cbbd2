"""What refreshes remember of each source, in the store: from one run to the next.

A fact is lost if it cannot be written: then, the next refresh only asks for more.
"""

import sqlite3
from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from racedata.database import store_path
from racedata.formats import is_timestamp, timestamp, utc_now
from racedata.loader.corrections import corrections_file, file_named
from racedata.loader.existing import checksum_at_end
from racedata.loader.store import NotAStore, Store, UnknownStore, opened_store

T = TypeVar("T")

LONGEST_REFUSAL = timedelta(days=1)  # for how long a source is believed that refuses requests


def ask_store(database: Path, question: Callable[[Store], T], otherwise: T) -> T:
    """The store's answer to a question; the other one if there is no store that can be read."""
    with suppress(OSError, sqlite3.Error, NotAStore, UnknownStore):
        if store_path(database).is_file():
            with closing(Store(store_path(database), checks=False)) as store:
                return question(store)
    return otherwise


def remember(database: Path, name: str, facts: Mapping[str, object]) -> None:
    """Remembers facts about a source. A fact that is None is forgotten."""
    with suppress(OSError, sqlite3.Error, UnknownStore):
        database.stat()  # without a database, there is nothing to remember
        with closing(opened_store(database, checks=False)) as store, store.transaction():
            store.remember(name, facts)


def corrections_to_use(database: Path, named: str) -> Path | None:
    """The file of corrections that a setting names, or else the one that the store remembers; the
    project's own without a store.
    """
    without_store = file_named(named or "default")
    return ask_store(database, lambda store: corrections_file(store, named), without_store)


def copied_from(database: Path) -> list[str]:
    """The address of the database that this one is a copy of; empty if it is not, or no longer."""

    def copies(store: Store) -> list[str]:
        checksum = checksum_at_end(database)
        remembered = store.remembered_sources()
        return [name for name in remembered if store.recalled(name).get("copied") == checksum]

    return ask_store(database, copies, [])


def refusal(now: datetime, seconds: float) -> dict[str, object]:
    """The fact that a source refuses requests for so many seconds from now."""
    # 18 digits of seconds are too many for a timedelta
    until = timestamp(now + timedelta(seconds=min(seconds, LONGEST_REFUSAL.total_seconds())))
    return {"refusedUntil": until}


def refused_until(facts: Mapping[str, Any], now: datetime) -> str:
    """Until when a source refuses requests, at most a day from now; empty if it does not. `facts`
    are what is remembered of the source.
    """
    until = facts.get("refusedUntil")
    if not is_timestamp(until):
        return ""
    return until if timestamp(now) < until <= timestamp(now + LONGEST_REFUSAL) else ""


def remembered_requests(facts: Mapping[str, Any]) -> list[int]:
    """When the latest requests to a source ended, in seconds since 1970. `facts` are as above."""
    found = facts.get("requests")
    return [each for each in found if type(each) is int] if isinstance(found, list) else []


def remember_followed(database: Path, names: Collection[str]) -> None:
    """Remembers which sources are followed, and since when, for monitors."""
    now = utc_now()
    with suppress(OSError, sqlite3.Error, UnknownStore):
        database.stat()  # without a database, there is nothing to remember
        with closing(opened_store(database)) as store, store.transaction():
            for name in {*names, *store.remembered_sources()}:
                since = store.recalled(name).get("followedSince", "")
                # the clock may have been ahead
                believed = isinstance(since, str) and "" < since <= now
                fact = (since if believed else now) if name in names else None
                store.remember(name, {"followedSince": fact})

"""What refreshes remember of each source, in the store: from one run to the next.

A fact is lost if it cannot be written: then, the next refresh only asks for more.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from racedata.formats import timestamp, utc_now
from racedata.loader.existing import checksum_at_end
from racedata.loader.store import UnknownStore, changed_store, store_to_read

LONGEST_REFUSAL = timedelta(days=1)  # for how long a source is believed that refuses requests


def remember(database: Path, name: str, facts: Mapping[str, object]) -> None:
    """Remembers facts about a source. A fact that is None is forgotten."""
    with suppress(OSError, sqlite3.Error, UnknownStore):
        database.stat()  # without a database, there is nothing to remember
        with changed_store(database) as store:
            store.remember(name, facts)


def copied_from(database: Path) -> list[str]:
    """The address of the database that this one is a copy of; empty if it is not, or no longer."""
    with suppress(OSError), closing(store_to_read(database)) as store:
        checksum = checksum_at_end(database)
        remembered = store.remembered_sources()
        return [name for name in remembered if store.recalled(name).get("copied") == checksum]
    return []


def refusal(now: datetime, seconds: float) -> dict[str, object]:
    """The fact that a source refuses requests for so many seconds from now."""
    # 18 digits of seconds are too many for a timedelta
    until = timestamp(now + timedelta(seconds=min(seconds, LONGEST_REFUSAL.total_seconds())))
    return {"refusedUntil": until}


def refused_until(facts: Mapping[str, Any], now: datetime) -> str:
    """Until when a source refuses requests, at most a day from now; empty if it does not. `facts`
    are what is remembered of the source.
    """
    until: str = facts.get("refusedUntil", "")
    # the clock may have been ahead
    return until if timestamp(now) < until <= timestamp(now + LONGEST_REFUSAL) else ""


def remember_followed(database: Path, sources: Sequence[tuple[str, str]]) -> None:
    """Remembers since when sources are followed, for monitors: by their names and addresses."""
    with suppress(OSError, sqlite3.Error, UnknownStore):
        database.stat()  # without a database, there is nothing to remember
        with changed_store(database) as store:
            names = {store.name_of(name, address) for name, address in sources}
            for name in {*names, *store.remembered_sources()}:
                since = store.recalled(name).get("followedSince") or utc_now()
                store.remember(name, {"followedSince": since if name in names else None})

"""The notes next to the database: findings of the last refreshes, and which sources are followed.

They are not in the database, because a refresh that finds nothing new leaves it unchanged.
"""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from racedata.database import read_refreshes, refreshes_path
from racedata.formats import is_timestamp, timestamp, utc_now
from racedata.loader.errors import LoadError
from racedata.loader.existing import checksum_at_end
from racedata.loader.replacement import copy_attributes, locked

# facts about a source that stay when a refresh notes others
KEPT = ("refreshedAt", "followedSince", "requests")
# the longest time for which a refusal is believed
LONGEST_REFUSAL = timedelta(days=1)


def facts_noted(database: Path, name: str) -> Mapping[str, Any] | None:
    """The notes of a source's last refresh; None if that was for another database file."""
    noted = read_refreshes(database).get(name, {})
    return noted if noted.get("database") == checksum_at_end(database) else None


def lacked_races(database: Path, name: str, now: str) -> Mapping[str, str]:
    """The races that a source lacked at its last refresh, and since when: never after `now`."""
    found = read_refreshes(database).get(name, {}).get("lacks")
    if not isinstance(found, dict):
        return {}
    return {race: time for race, time in found.items() if is_timestamp(time) and time <= now}


def note_facts(
    database: Path, name: str, facts: Mapping[str, object], before: str, after: str
) -> None:
    """Notes facts about a source when a new file is about to replace the database.

    `before` and `after` are the checksums of the two. The caller has the lock of the folder.
    """
    noted = read_refreshes(database)
    for other in noted.values():
        if other.get("database") == before:  # the records of other sources are in the new one too
            other["database"] = after
    kept = {key: value for key, value in noted.get(name, {}).items() if key in KEPT}
    noted[name] = {**kept, **facts, "database": after}
    write_notes(database, noted)


def note_copied(database: Path, name: str, etag: str) -> None:
    """Notes that the database is now a copy of another one, and nothing else."""
    with suppress(OSError), locked(Path(os.path.realpath(database)).parent, wait=True):
        noted = read_refreshes(database).get(name, {})
        kept = {key: value for key, value in noted.items() if key in KEPT}
        checksum = checksum_at_end(database)
        facts = {"database": checksum, "copied": checksum, "etag": etag}
        write_notes(database, {name: {**kept, **facts}})


def copied_from(database: Path) -> list[str]:
    """The address of the database that this one is a copy of; empty if it is not, or no longer."""
    with suppress(OSError):  # there may be no database
        checksum = checksum_at_end(database)
        noted = read_refreshes(database).items()
        return [name for name, facts in noted if facts.get("copied") == checksum]
    return []


def note_asked(database: Path, name: str) -> None:
    """Notes that a source was asked successfully."""
    with suppress(OSError), locked(Path(os.path.realpath(database)).parent, wait=True):
        noted = read_refreshes(database)
        noted.setdefault(name, {})["refreshedAt"] = utc_now()
        write_notes(database, noted)


def note_refused(database: Path, name: str, now: datetime, seconds: float) -> None:
    """Notes for how many seconds from now a source refuses requests."""
    # 18 digits of seconds are too many for a timedelta
    until = timestamp(now + timedelta(seconds=min(seconds, LONGEST_REFUSAL.total_seconds())))
    with suppress(OSError), locked(Path(os.path.realpath(database)).parent, wait=True):
        noted = read_refreshes(database)
        noted.setdefault(name, {})["refusedUntil"] = until
        write_notes(database, noted)


def refused_until(database: Path, name: str, now: datetime) -> str:
    """Until when a source refuses requests, at most a day from now; empty if it does not."""
    until = read_refreshes(database).get(name, {}).get("refusedUntil")
    if not is_timestamp(until):
        return ""
    return until if timestamp(now) < until <= timestamp(now + LONGEST_REFUSAL) else ""


def note_requests(database: Path, name: str, ends: Sequence[int]) -> None:
    """Notes when the latest requests to a source ended: seconds since 1970."""
    with suppress(OSError), locked(Path(os.path.realpath(database)).parent, wait=True):
        noted = read_refreshes(database)
        noted.setdefault(name, {})["requests"] = ends
        write_notes(database, noted)


def requests_noted(database: Path, name: str) -> list[int]:
    """When the latest requests to a source ended; none if that cannot be read."""
    found = read_refreshes(database).get(name, {}).get("requests")
    return [each for each in found if type(each) is int] if isinstance(found, list) else []


def note_followed(database: Path, names: Collection[str]) -> bool:
    """Notes which sources are followed, and since when, for monitors.

    Returns false if the database is missing or another program has the lock.
    """
    now = utc_now()
    with suppress(OSError, LoadError), locked(Path(os.path.realpath(database)).parent, wait=False):
        database.stat()  # without a database, there are no notes
        noted = read_refreshes(database)
        for name in {*names, *noted}:
            since = noted.get(name, {}).pop("followedSince", "")
            if name in names:
                # the clock may have been ahead
                believed = isinstance(since, str) and "" < since <= now
                noted.setdefault(name, {})["followedSince"] = since if believed else now
        write_notes(database, noted)
        return True
    return False


def write_notes(database: Path, noted: Mapping[str, object]) -> None:
    """Replaces the file of notes. The caller has the lock of the folder."""
    path = refreshes_path(database)
    new = path.with_name(f".{path.name}.writing")
    with suppress(OSError):  # the only loss: the next refresh asks for more
        try:
            new.unlink(missing_ok=True)  # left by a refresh that was killed
            new.write_text(json.dumps(noted), encoding="utf-8")
            copy_attributes(database, new)
            os.replace(new, path)
        finally:
            new.unlink(missing_ok=True)

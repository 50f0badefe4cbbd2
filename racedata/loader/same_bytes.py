"""What makes two builds of the same sources the same bytes: their times, and the id of the store.

The sample has fixed ones. For other sources, the variable SOURCE_DATE_EPOCH fixes them.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from racedata.formats import timestamp, utc_now
from racedata.loader.errors import LoadError
from racedata.loader.store import Store, new_id

SAMPLE = str(Path(__file__).resolve().parent.parent / "sample")
# Its name and its address: the package may be anywhere.
SAMPLE_NAME = "sample"
SAMPLE_TIME = "2026-11-26T00:00:00Z"  # when its files were last changed, and so when it was built

EPOCH = "SOURCE_DATE_EPOCH"  # seconds since 1970


def build_time() -> str:
    """The time that a load or a build notes. Raises LoadError if SOURCE_DATE_EPOCH is wrong."""
    text = os.environ.get(EPOCH)
    if not text:
        return utc_now()
    if not re.fullmatch("[0-9]{1,11}", text):
        raise LoadError(f"{EPOCH}={text!r}: expected seconds since 1970")
    return timestamp(datetime.fromtimestamp(int(text), UTC))


def is_only_sample(store: Store) -> bool:
    """Whether the sample is all that is in the list of sources."""
    return all(source.is_sample for source in store.sources())


def put_next_state(
    store: Store, facts: Sequence[object] = (), before: tuple[str, int] | None = None
) -> None:
    """Counts a build: gives the store the state that the new database notes.

    Its id stays, and its revision rises: programs that follow the database learn what has changed.
    If the database is to have the same bytes as others, its state follows from its sources and
    these facts; unless it replaces a database with more than the sample, of the state `before`.
    """
    id, revision = store.state
    named = [(source.name, source.checksum) for source in store.sources()]
    if is_only_sample(store):
        store.state = f"{SAMPLE_NAME}-{digest(named)}", 1
    elif os.environ.get(EPOCH) and before is None:
        store.state = f"sources-{digest([*named, *facts])}", 1
    else:
        # The id of the sample's store is the same on all machines. One that gets more has its own.
        store.state = new_id() if id.startswith(SAMPLE_NAME) else id, revision + 1


def digest(facts: Sequence[object]) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

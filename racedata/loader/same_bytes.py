"""What makes two builds of the same sources the same bytes: their times, and the id of the store.

The sample has fixed ones. For other sources, the variable SOURCE_DATE_EPOCH fixes them.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from racedata.formats import timestamp, utc_now
from racedata.loader.errors import LoadError
from racedata.loader.store import Store

SAMPLE = str(Path(__file__).resolve().parent.parent / "sample")
# Its name, and its address in a database: the package may be anywhere.
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


def fix_state(store: Store, facts: Sequence[object], before: str | None) -> None:
    """Gives a store the state that follows from its sources and these facts, if its database is to
    have the same bytes as others.

    `before` is the id of the database that this build replaces. If that has other sources, its id
    stays and its revision rises: programs that follow it learn what has changed. A store that has
    had only the sample, whose id is the same on all machines, gets its own when it gets more.
    """
    id, revision = store.state
    named = [(source.name, source.checksum) for source in store.sources()]
    if is_only_sample(store):
        store.state = f"{SAMPLE_NAME}-{digest(named)}", 1
    elif os.environ.get(EPOCH):
        own = f"sources-{digest([*named, *facts])}"
        if before is None:
            store.state = own, 1
        elif before == own:
            # the build has counted itself already, but the same bytes have the same revision
            store.state = own, revision - 1
    elif id.startswith(SAMPLE_NAME):
        store.state = secrets.token_hex(8), revision


def digest(facts: Sequence[object]) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

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
    """Counts a build: gives the store the state that the new database notes. If that is to have the
    same bytes as others, its state follows from its sources and these facts.

    `before` is the state of the database that it replaces, unless that is the sample. If that has
    other sources, its id stays and its revision rises: programs that follow it learn what has
    changed. A store that has had only the sample, whose id is the same on all machines, gets its
    own when it gets more.
    """
    id, revision = store.state
    sources = store.sources()
    named = [(source.name, source.checksum) for source in sources]
    if is_only_sample(store):
        store.state = f"{SAMPLE_NAME}-{digest(named)}", 1
        return
    if os.environ.get(EPOCH):
        own = f"sources-{digest([*named, *facts])}", 1
        # A later revision may have had other sources, and what an API says has no checksum.
        if before is None or (before == own and all(source.checksum for source in sources)):
            store.state = own
            return
    is_of_sample = id.startswith(SAMPLE_NAME)
    store.state = secrets.token_hex(8) if is_of_sample else id, revision + 1


def digest(facts: Sequence[object]) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

"""What makes two builds of the same sources the same bytes: their times, and the id of the store.

The sample has fixed ones. For other sources, the variable SOURCE_DATE_EPOCH fixes them.
"""

import hashlib
import os
import re
import secrets
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


def fix_state(store: Store) -> None:
    """Gives a store the state that follows from its sources, if its database is to have the same
    bytes as others.

    A store that has had only the sample gets an id of its own when it gets more: the sample's is
    the same on all machines.
    """
    id, changes = store.state
    if is_only_sample(store) or os.environ.get(EPOCH):
        facts = [(source.name, source.checksum) for source in store.sources()]
        digest = hashlib.sha256(repr(facts).encode()).hexdigest()
        store.state = f"{SAMPLE_NAME if is_only_sample(store) else 'sources'}-{digest[:16]}", 1
    elif id.startswith(SAMPLE_NAME):
        store.state = secrets.token_hex(8), changes

"""Copies a whole database as it is, byte for byte: then both give the same answers.

It decides which one may replace ours. foreign.py checks the content.
"""

import os
import shlex
import shutil
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from racedata.formats import utc_now, without_query
from racedata.hints import COMMAND
from racedata.licences import SOURCES
from racedata.loader.allowed import check_licence
from racedata.loader.existing import ExistingDatabase, open_read_only
from racedata.loader.foreign import Refused


class Copy(NamedTuple):
    """A checked copy of another database."""

    path: Path
    address: str  # the other database's
    etag: str  # its entity tag there; empty if it has none


def install_copy(copy: Copy, new: Path, existing: ExistingDatabase | None, only_open: bool) -> None:
    """Writes the copy to `new`. Raises Refused if it may not replace the existing database, and
    LoadError if its sources must be open and one is not.
    """
    with closing(open_read_only(copy.path)) as db:
        for name, licence in db.execute(SOURCES):
            check_licence(f"{without_query(copy.address)}: {name}", licence, only_open)
    if existing:
        check_age(copy, existing)
    with copy.path.open("rb") as source, new.open("wb") as target:
        shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())


def check_age(copy: Copy, existing: ExistingDatabase) -> None:
    """Raises Refused if clients would get older answers: from an older database, or the sample."""
    with closing(ExistingDatabase(copy.path)) as other:
        built_at, is_sample = other.built_at, other.is_sample
    if is_sample < existing.is_sample:
        return
    if is_sample > existing.is_sample:
        fault = "is only the sample; expected the data itself"
    # If our clock was ahead, every database would be older for a long time.
    elif built_at < existing.built_at <= utc_now():
        fault = (
            f"was built at {built_at}; the existing database is newer, built at {existing.built_at}"
        )
    else:
        return
    what_to_do = (
        "to replace the existing database with it anyway, run: "
        f"{COMMAND} load {without_query(copy.address)} --replace "
        f"--database {shlex.quote(str(existing.path))}"
    )
    raise Refused(f"{without_query(copy.address)} {fault}; {what_to_do}")

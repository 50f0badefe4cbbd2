"""Reads sources whole, each into a Stage, and puts what they say into the store: for a load, and
for a check that compares with another source.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from racedata.loader.delivery import delivery_of
from racedata.loader.errors import LoadError, Progress
from racedata.loader.parts import Tables
from racedata.loader.same_bytes import SAMPLE_NAME
from racedata.loader.sources import Source, source_at
from racedata.loader.stage import Stage, staged
from racedata.loader.store import Store
from racedata.loader.update import put_whole


class ReadSources(NamedTuple):
    """Sources that were read into one Stage: one, or an export and its rest."""

    sources: Sequence[Source]
    stage: Stage | None  # None if they cannot be read
    lines: list[str]  # remarks
    close: Callable[[], None]  # closes the sources, and deletes the stage
    fault: str = ""


def sources_read_together(addresses: Sequence[str]) -> list[list[Source]]:
    """The sources that are read together. An export and its rest have the same ids."""
    first, *others = [source_at(address) for address in addresses]
    rests = [source for source in others if source.is_rest]
    return [[first, *rests], *([source] for source in others if source not in rests)]


@contextmanager
def read(
    sources: Sequence[Source], progress: Progress, may_fail: bool = False
) -> Iterator[ReadSources]:
    """Reads sources, which are closed at the end of the block if they are not yet.

    If that fails and `may_fail`, their stored parts count. Raises LoadError.
    """
    with ExitStack() as stack:
        try:
            readers = [stack.enter_context(source.opened(progress)) for source in sources]
            stage = stack.enter_context(staged(progress))
            lines = [line for read_into in readers for line in read_into(stage)]
        except LoadError as error:
            if not may_fail:
                raise
            kept = f"{error}; the records of this source in the database are kept"
            group = ReadSources(sources, None, [], stack.close, kept)
        else:
            group = ReadSources(sources, stage, lines, stack.close)
        yield group


def put_all_read(store: Store, groups: Sequence[ReadSources], progress: Progress) -> None:
    """Puts all that was read into the store, and closes it: before a build, because the disk may
    not have room for the stages and the new database.

    Raises LoadError for two sources of one name: the store has one place for them.
    """
    addresses: dict[str, str] = {}  # by the names of sources
    is_sample = [source.address for group in groups for source in group.sources] == [SAMPLE_NAME]
    for _, stage, _, close, _ in groups:
        if stage is None:  # its stored parts count
            continue
        for number, source in stage.stored_sources(is_sample):
            if (other := addresses.setdefault(source.name, source.address)) != source.address:
                raise LoadError(
                    f"{other} and {source.address} are both {source.name}; expected one of them"
                )
            progress(f"storing {source.name}")
            delivery = delivery_of(source, Tables(stage.db, "stage"), number)
            put_whole(store, delivery)
        close()

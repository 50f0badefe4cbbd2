"""Reads sources whole, each into a Stage, and puts what they say into the store."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from racedata.loader.delivery import delivery_of
from racedata.loader.errors import LoadError, Progress
from racedata.loader.parts import Tables
from racedata.loader.same_bytes import SAMPLE_NAME, SAMPLE_TIME
from racedata.loader.sources import source_at
from racedata.loader.stage import Stage, staged
from racedata.loader.store import Store
from racedata.loader.update import put_whole


@contextmanager
def all_read(
    addresses: Sequence[str], progress: Progress, may_fail: Collection[str] = ()
) -> Iterator[list[Stage]]:
    """Reads sources, each into a Stage. The rest of an export is read into the first one: both have
    the same ids.

    If one of those that `may_fail` cannot be read, its Stage only has a remark: what it said before
    counts. The first must not fail. Raises LoadError.
    """
    stages: list[Stage] = []
    with ExitStack() as stack:
        for source in [source_at(address) for address in addresses]:
            is_rest = bool(stages) and source.is_rest
            if not is_rest:
                stages.append(stack.enter_context(staged(progress)))
            stage = stages[0 if is_rest else -1]
            try:
                source.read(stage)
            except LoadError as error:
                if stage is stages[0] or source.address not in may_fail:
                    raise
                kept = "the records of this source in the database are kept"
                stage.remarks = [f"{error}; {kept}"]
        yield stages


def put_all_read(store: Store, stages: Sequence[Stage], progress: Progress) -> None:
    """Puts all that was read into the store, and closes it: before a build, because the disk may
    not have room for the stages and the new database.

    Raises LoadError for two sources of one name: the store has one place for them.
    """
    addresses: dict[str, str] = {}  # by the names of sources
    is_sample = [each.address for stage in stages for each in stage.sources] == [SAMPLE_NAME]
    for stage in stages:
        tables = Tables(stage.db, "stage")
        for number, source in enumerate(stage.sources, 1):
            if (other := addresses.setdefault(source.name, source.address)) != source.address:
                raise LoadError(
                    f"{other} and {source.address} are both {source.name}; expected one of them"
                )
            if is_sample:
                source = source._replace(read_at=SAMPLE_TIME, is_sample=True)
            progress(f"storing {source.name}")
            put_whole(store, delivery_of(source, tables, number))
        stage.db.close()

"""Brings a database, its store and the list of sources into step: what `refresh` does before it
asks a source, what `build` does, and what a load does without a source.

What is necessary depends on the condition of the files (`rebuild.Condition`) and on the list.
"""

from pathlib import Path

from racedata.database import can_be_built_again
from racedata.loader.errors import LoadError, Progress
from racedata.loader.load import load, load_into, make_default_folder
from racedata.loader.memory import copied_from
from racedata.loader.rebuild import (
    Condition,
    condition_at,
    new_database,
    replace_from_store,
    store_of,
)
from racedata.loader.same_bytes import SAMPLE_NAME
from racedata.loader.source_list import dumps_in, list_that_counts, put_source_list, wanted_list
from racedata.settings import LoaderSettings


def bring_into_step(
    settings: LoaderSettings, progress: Progress, loads_unread: bool = False
) -> str:
    """Builds the database again if it is of an earlier version, or behind its store. Returns what
    it did, in one line.

    With `loads_unread`, `load_unread` comes first. If that does something, nothing more is needed.
    """
    if loads_unread and (line := load_unread(settings, progress)):
        return line
    condition = condition_at(Path(settings.database))
    if condition is Condition.OLDER:
        # its sources may have tables that the earlier version of racedata did not load
        return load_or_rebuild(settings, progress)[-1]
    if condition is Condition.BEHIND:
        return replace_from_store(settings, progress, condition.value)[-1]
    return ""


def load_unread(settings: LoaderSettings, progress: Progress) -> str:
    """Loads the dumps of the list if one of them was never read whole. Otherwise, builds the
    database again if the list has changed. Returns what it did.
    """
    path = Path(settings.database)
    unread, has_changed = unread_at(path)
    if not (unread or has_changed):
        return ""
    make_default_folder(settings.database)
    with new_database(settings) as new:
        # before it locked the folder, another command may have done this, or changed the list
        unread, has_changed = unread_at(path)
        if unread:
            return load_into(new, unread, progress)[-1]
        if not has_changed:
            new.stay()
            return ""
        with new.store() as (store, corrected):
            put_source_list(store, wanted_list(store))
            report = new.build(store, corrected, progress)
        why = "because the list of sources has changed"
        return f"{settings.database}: {report.seasons} from its store, {why}"


def unread_at(path: Path) -> tuple[list[str], bool]:
    """The dumps of the list, if one of them was never read whole; and whether the list is not the
    one by which the database was built.
    """
    with store_of(path) as store:
        addresses, known = wanted_list(store), store.known_sources()
        dumps = dumps_in(addresses)
        if {*dumps} != {SAMPLE_NAME}:  # which leaves the list when another dump is loaded
            dumps = [address for address in dumps if address != SAMPLE_NAME]
        is_read = {*dumps} <= {source.address for source in known if source.is_loaded}
        return [] if is_read else dumps, bool(known) and addresses != list_that_counts(store)


def load_or_rebuild(settings: LoaderSettings, progress: Progress) -> list[str]:
    """Reads the sources of the last load again, or copies its whole database. If that fails and an
    earlier version built the database, builds it from the store. Returns a report. Raises what
    `load` does.
    """
    path = Path(settings.database)
    try:
        return load(copied_from(path), settings, progress)
    except (LoadError, OSError) as error:
        if not can_be_built_again(path):
            raise
        return replace_from_store(settings, progress, f"its source failed: {error}")

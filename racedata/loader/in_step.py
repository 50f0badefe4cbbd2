"""Brings a database, its store and the list of sources into step: what `refresh` does before it
asks a source.
"""

from pathlib import Path

from racedata.loader.errors import Progress
from racedata.loader.load import load_into, make_default_folder
from racedata.loader.rebuild import is_behind, new_database, replace_from_store, store_of
from racedata.loader.same_bytes import SAMPLE_NAME
from racedata.loader.source_list import dumps_in, list_that_counts, put_source_list, wanted_list
from racedata.settings import LoaderSettings


def bring_into_step(
    settings: LoaderSettings, progress: Progress, loads_unread: bool = False
) -> str:
    """Builds the database again if it is behind its store. Returns what it did, in one line.

    With `loads_unread`, `load_unread` comes first. If that does something, nothing more is needed.
    """
    must_build = is_behind(Path(settings.database))  # raises an error before anything is read
    if loads_unread and (line := load_unread(settings, progress)):
        return line
    if must_build:
        return replace_from_store(settings, progress)[-1]
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
        with new.store() as (store, corrections):
            put_source_list(store, wanted_list(store))
            report = new.build(store, corrections, progress)
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

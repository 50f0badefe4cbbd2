"""Brings a database, its store and the list of sources into step: what `refresh` does before it
asks a source.
"""

from pathlib import Path

from racedata.loader.errors import Progress
from racedata.loader.load import load_into
from racedata.loader.rebuild import is_behind, new_database, store_of
from racedata.loader.source_list import list_of, unread
from racedata.settings import LoaderSettings


def bring_into_step(
    settings: LoaderSettings, progress: Progress, loads_unread: bool = False
) -> str:
    """Builds the database again if it is behind its store or the list of sources. Returns what it
    did, in one line.

    With `loads_unread`, it loads the dumps of the list if one of them was never read whole.
    """
    path = Path(settings.database)
    must_build = is_behind(path)  # raises an error before anything is read
    if not (must_build or (loads_unread and unread_at(path))):
        return ""
    with new_database(settings) as new:
        # before it locked the folder, another command may have read them, or changed the list
        if loads_unread and (dumps := unread_at(path)):
            return load_into(new, dumps, progress)[-1]
        with new.store() as (store, corrections):
            report = new.build(store, corrections, progress)
    return f"{settings.database}: {report.seasons} from its store"


def unread_at(path: Path) -> list[str]:
    """The dumps of the list of a database, if one of them was never read whole."""
    with store_of(path) as store:
        return unread(store, list_of(store))

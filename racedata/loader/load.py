"""Loads: reads dumps whole, and builds the database with them. load_command.py has the command.

They replace the dumps in the list of sources, the most trusted first. What APIs have said
stays. A refresh begins with `bring_into_step`, which loads what was never read.
"""

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from racedata.formats import without_query
from racedata.loader.copies import clear_for_copy, install_copy
from racedata.loader.errors import LoadError, Progress
from racedata.loader.existing import open_read_only
from racedata.loader.memory import copied_from
from racedata.loader.reading import all_read, put_all_read
from racedata.loader.rebuild import NewDatabase, is_behind, new_database, store_of
from racedata.loader.report import seasons_of, table_of_rows
from racedata.loader.same_bytes import SAMPLE_NAME
from racedata.loader.source_list import (
    after_load,
    check_configured,
    check_licences,
    configured,
    dumps_in,
    list_of,
    remember_list,
    unread,
)
from racedata.loader.sources import Source, whole_database
from racedata.loader.store import store_to_read
from racedata.settings import LoaderSettings


def load(
    sources: Sequence[str],
    settings: LoaderSettings,
    progress: Progress,
    *,
    replace: bool = False,
    only: bool = False,
) -> list[str]:
    """Reads sources into the store, and builds the database from it. A whole database is copied
    instead. Returns a report.

    The sources replace the dumps in the list; with `only`, they are the whole list. Without
    sources, it reads those in RACEDATA_SOURCES, those of the last load, or the sample. It may
    `replace` a database that cannot be read. Raises LoadError, sqlite3.Error or OSError.
    """
    addresses = sources or configured() or copied_from(Path(settings.database))
    if whole := whole_of(addresses, settings, only):
        return load_whole(whole, settings, progress, replace)
    check_configured(sources, only)
    with new_database(settings, may_replace=replace) as new:
        return load_into(new, sources, progress, only)


def whole_of(
    addresses: Sequence[str], settings: LoaderSettings, only: bool = False
) -> Source | None:
    """The whole database at the only one of these addresses; None if they are other sources. Raises
    LoadError for one beside other sources, or with an option that could only change it.
    """
    whole = whole_database(addresses)
    changes_data = settings.corrections != LoaderSettings.read(os.environ).corrections
    if whole and (only or changes_data):
        option = "--only" if only else "--corrections"
        what = f"a database is copied unchanged; expected no {option}"
        raise LoadError(f"{without_query(whole.address)}: {what}")
    return whole


def load_into(
    new: NewDatabase, sources: Sequence[str], progress: Progress, only: bool = False
) -> list[str]:
    """Reads sources into the store, and builds the new database from it: see `load`."""
    database = new.settings.database
    loaded = loaded_before(new)
    sources = sources or dumps_in(configured()) or loaded or [SAMPLE_NAME]
    # without APIs: an address of an API may also be a zip
    check_licences(dumps_in(sources), new.settings.is_only_open)
    # All sources are read before the store is locked.
    with (
        all_read(sources, progress, may_fail=loaded) as stages,
        new.store() as (store, corrections),
    ):
        put_all_read(store, stages, progress)
        remember_list(store, sources if only else after_load(list_of(store), sources))
        report = new.build(store, corrections, progress)
        counts = SAMPLE_NAME not in sources or any(each.is_sample for each in store.sources())
    lines = [line for stage in stages for line in stage.remarks]
    last = f"{database}: {report.seasons} from {' and '.join(sources)}"
    if not counts:
        lines.append("sample: does not count beside the dumps of the list; expected --only too")
    rows = table_of_rows(stages[0].rows, report.rows)
    return [*rows, *lines, *report.lines, *report.remarks, last]


def load_whole(
    source: Source, settings: LoaderSettings, progress: Progress, replace: bool
) -> list[str]:
    """Replaces the database with another one, as it is, unless that is older. Returns a report."""
    database, path = settings.database, Path(settings.database)
    if os.path.realpath(source.address) == os.path.realpath(database):
        raise LoadError(f"{database}: is the database itself; expected another file")
    with source.copied(progress) as copy, new_database(settings, may_replace=replace) as new:
        existing = None if replace else new.existing
        install_copy(copy, new.path, existing, settings.is_only_open)
    clear_for_copy(path, source.name, copy.etag)
    with closing(open_read_only(path)) as db:
        return [f"{database}: {seasons_of(db)} from {source.address}"]


def loaded_before(new: NewDatabase) -> list[str]:
    """The dumps of the last load. Raises LoadError if the store cannot be used."""
    with closing(store_to_read(Path(new.settings.database))) as store:
        # the database may be lost
        sources = new.existing.sources() if new.existing else store.sources()
        return [source.address for source in sources if source.is_loaded]


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

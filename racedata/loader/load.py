"""Loads: reads dumps whole, and builds the database with them. load_command.py has the command.

They replace the dumps in the list of sources, the most trusted first. What APIs have said
stays. Without an argument, a load reads the dumps of the last one.
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from racedata.database import default_path
from racedata.loader.copies import clear_for_copy, install_copy
from racedata.loader.errors import LoadError, Progress
from racedata.loader.existing import ExistingDatabase, open_read_only
from racedata.loader.reading import put_all_read, read, sources_read_together
from racedata.loader.rebuild import NewDatabase, new_database
from racedata.loader.report import seasons_of, table_of_rows
from racedata.loader.same_bytes import SAMPLE_NAME
from racedata.loader.source_list import (
    after_load,
    check_licences,
    configured,
    dumps_in,
    is_changed,
    put_source_list,
    wanted_list,
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
    sources, it reads the dumps of the last load, or the sample. It may `replace` a database that
    cannot be read. Raises LoadError, sqlite3.Error or OSError.
    """
    if whole := whole_database(sources):
        return load_whole(whole, settings, progress, replace)
    with new_database(settings, may_replace=replace) as new:
        return load_into(new, sources, progress, only)


def load_into(
    new: NewDatabase, sources: Sequence[str], progress: Progress, only: bool = False
) -> list[str]:
    """Reads sources into the store, and builds the new database from it: see `load`."""
    database = new.settings.database
    loaded = loaded_before(Path(database), new.existing)
    sources = sources or loaded
    # without APIs: an address of an API may also be a zip
    check_licences(dumps_in(sources), new.settings.is_only_open)
    with ExitStack() as reading:
        first, *others = sources_read_together(sources)
        # If one of the others fails, what it said at the last load counts. The base must not fail.
        groups = [
            reading.enter_context(read(first, progress)),
            *(
                reading.enter_context(read(group, progress, group[0].address in loaded))
                for group in others
            ),
        ]
        assert groups[0].stage
        rows_read = groups[0].stage.rows

        # All sources are read: the store is locked only while it changes.
        with new.store() as (store, corrections):
            put_all_read(store, groups, corrections, progress)
            put_source_list(store, sources if only else after_load(wanted_list(store), sources))
            report = new.build(store, corrections, progress)
    lines = [line for group in groups for line in (*group.lines, group.fault) if line]
    last = f"{database}: {report.seasons} from {' and '.join(sources)}"
    return [*table_of_rows(rows_read, report.rows), *lines, *report.lines, *report.remarks, last]


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


def loaded_before(path: Path, existing: ExistingDatabase | None) -> list[str]:
    """The dumps in RACEDATA_SOURCES if it has changed since they were read, or else those of the
    last load; the sample if there are none.
    """
    with closing(store_to_read(path)) as store:
        if is_changed(store) and (dumps := dumps_in(configured())):
            return dumps
        if existing:
            return existing.loaded_sources
        # the database is missing, perhaps lost
        return [source.address for source in store.sources() if source.is_loaded] or [SAMPLE_NAME]


def make_default_folder(database: str) -> None:
    """Makes the folder of the database if it is the default place."""
    if database == default_path(os.environ):
        os.makedirs(os.path.dirname(database), exist_ok=True)

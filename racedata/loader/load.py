"""Reads dumps whole: `racedata load`.

They replace the dumps in the list of sources, the most trusted first. What APIs have said
stays. Without an argument, it reads the dumps of the last load.
"""

import argparse
import os
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from racedata.database import can_be_built_again, default_path, store_path
from racedata.formats import without_query
from racedata.loader.allowed import add_licence_argument
from racedata.loader.copies import install_copy
from racedata.loader.corrections import add_corrections_argument
from racedata.loader.errors import LoadError, Progress
from racedata.loader.existing import ExistingDatabase, open_read_only
from racedata.loader.memory import clear_for_copy, copied_from
from racedata.loader.program import add_database_argument, run, settings_of
from racedata.loader.reading import put_all_read, read, sources_read_together
from racedata.loader.rebuild import (
    Condition,
    NewDatabase,
    NothingNew,
    condition_at,
    new_database,
    replace_from_store,
    store_of,
)
from racedata.loader.report import seasons_of, table_of_rows
from racedata.loader.same_bytes import SAMPLE_NAME
from racedata.loader.source_list import (
    after_load,
    check_licences,
    configured,
    dumps_in,
    is_new_list,
    list_that_counts,
    put_source_list,
    wanted_list,
)
from racedata.loader.sources import PUBLISHED, Source, each_once, sources_named, whole_database
from racedata.loader.store import opened_store
from racedata.settings import LoaderSettings, argument


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
        with new.store() as (store, corrected):
            put_all_read(store, groups, corrected, progress)
            put_source_list(store, sources if only else after_load(wanted_list(store), sources))
            report = new.build(store, corrected, progress)
    lines = [line for group in groups for line in (*group.lines, group.fault) if line]
    last = f"{database}: {report.seasons} from {' and '.join(sources)}"
    return [*table_of_rows(rows_read, report.rows), *lines, *report.lines, *report.remarks, last]


def unwanted_option(whole: Source, expected: str) -> LoadError:
    """The error for a whole database with an option that could only change it."""
    what = f"a database is copied unchanged; expected {expected}"
    return LoadError(f"{without_query(whole.address)}: {what}")


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
    if is_new_list(path) and (dumps := dumps_in(configured())):
        return dumps
    if existing:
        return existing.loaded_sources
    if store_path(path).exists():  # only the database is lost
        with closing(opened_store(path)) as store:
            loaded = [source.address for source in store.sources() if source.is_loaded]
        return loaded or [SAMPLE_NAME]
    return [SAMPLE_NAME]


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
            raise NothingNew
        with new.store() as (store, corrected):
            put_source_list(store, wanted_list(store))
            report = new.build(store, corrected, progress)
        why = "because the list of sources has changed"
        return f"{settings.database}: {report.seasons} from its store, {why}"
    return ""


def unread_at(path: Path) -> tuple[list[str], bool]:
    """The dumps of the list, if one of them was never read whole; and whether the list is not the
    one by which the database was built.
    """
    with store_of(path, may_write=True) as store:
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


def bring_into_step(settings: LoaderSettings, progress: Progress) -> str:
    """Builds the database again if it is lost, of an earlier version, or behind its store. Returns
    what it did.
    """
    condition = condition_at(Path(settings.database))
    if condition is Condition.OLDER:
        # its sources may have tables that the earlier version of racedata did not load
        return load_or_rebuild(settings, progress)[-1]
    if condition in (Condition.LOST, Condition.BEHIND):
        return replace_from_store(settings, progress, condition.value)[-1]
    return ""


def make_default_folder(database: str) -> None:
    """Makes the folder of the database if it is the default place."""
    if database == default_path(os.environ):
        os.makedirs(os.path.dirname(database), exist_ok=True)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="racedata load", description="Build the database from one or more sources."
    )
    parser.add_argument(
        "sources",
        nargs="*",
        type=argument(sources_named),
        metavar="SOURCE",
        help="a folder of CSV files, a zip of them, the http(s) URL of such a zip, or a name: "
        f"{', '.join(PUBLISHED)}. Name the most trusted source first: for each race and kind of "
        "records, the first that has them counts. A file or URL that ends with .db is a database, "
        "which is copied unchanged. By default, load reads the dumps of the list of sources, or "
        "else the sample",
    )
    parser.add_argument(
        "--only",
        action="store_true",
        help="make these sources the whole list: refresh asks no other source from then on",
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="replace the existing database even if it is damaged, if a newer version of racedata "
        "built it, or if it is newer than the database to copy; the records that refreshes added "
        "to it are lost",
    )
    add_database_argument(parser)
    add_corrections_argument(parser)
    add_licence_argument(parser)
    parsed = parser.parse_args(arguments)
    settings = settings_of(parsed)
    sources = each_once(parsed.sources)
    if not sources and (parsed.only or parsed.replace):
        parser.error(f"--{'only' if parsed.only else 'replace'}: expected a SOURCE too")

    def work(progress: Progress) -> list[str]:
        make_default_folder(settings.database)
        has_options = parsed.only or parsed.corrections != parser.get_default("corrections")
        whole = whole_database(sources or copied_from(Path(settings.database)))
        if whole and has_options:
            raise unwanted_option(whole, "neither --only nor --corrections")
        if not sources:
            return load_or_rebuild(settings, progress)
        return load(sources, settings, progress, replace=parsed.replace, only=parsed.only)

    run("load", parsed.database, work)

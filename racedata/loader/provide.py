"""Builds what the service can begin with: a database from what the store has, or from the sample.

A load or refresh that is running takes minutes, has locked the folder, and uses the store beside
the database. This waits for neither: its store is in memory, and its file is only put in place if
no other has been.

There is one exception. If the store is empty and RACEDATA_LICENCE=open does not allow the sample,
it loads sources as `racedata load` does, which locks the folder.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

from racedata.database import store_path
from racedata.loader.build import build_database
from racedata.loader.corrections import corrections_of
from racedata.loader.errors import LoadError, Progress
from racedata.loader.http import NotFetched
from racedata.loader.load import load
from racedata.loader.program import fault_text, run
from racedata.loader.reading import all_read, put_all_read
from racedata.loader.rebuild import store_of
from racedata.loader.replacement import identity_of_file, replace_file
from racedata.loader.same_bytes import SAMPLE_NAME, put_next_state
from racedata.loader.source_list import apply_list, check_licences, configured
from racedata.loader.store import Store
from racedata.loader.temporary import temporary_folder
from racedata.settings import LoaderSettings


def provide(database: str) -> None:
    """Builds a database where there is none of this version. Exits as `run` does.

    If the store has nothing, and the sample is not allowed, it loads the sources in
    RACEDATA_SOURCES. If one of them is out of reach, it prints the line and exits with EX_TEMPFAIL:
    a later start may succeed.
    """
    settings = replace(LoaderSettings.read(os.environ), database=database)

    def work(progress: Progress) -> list[str]:
        path = Path(os.path.realpath(database))
        path.parent.mkdir(parents=True, exist_ok=True)
        with store_of(path) as store:
            apply_list(store)
            if store.sources() or not settings.is_only_open:
                build_without_lock(path, store, settings, progress)
                return []
        try:
            return load_open_sources(settings, progress)
        except NotFetched as error:
            progress("")
            print(f"racedata serve: {fault_text(error, database)}", file=sys.stderr)
            sys.exit(os.EX_TEMPFAIL)

    run("serve", database, work, replaces=False)


def load_open_sources(settings: LoaderSettings, progress: Progress) -> list[str]:
    addresses = configured()
    if not addresses:
        raise LoadError(
            "RACEDATA_LICENCE=open does not allow the sample; expected RACEDATA_SOURCES with "
            "sources under CC BY or CC0"
        )
    check_licences(addresses, only_open=True)  # also of those that a load does not read
    return load([], settings, progress)


def build_without_lock(
    path: Path, store: Store, settings: LoaderSettings, progress: Progress
) -> None:
    before = identity_of_file(str(path))
    with temporary_folder(path.parent) as folder:
        corrections = corrections_of(store, settings.corrections)
        if not store.sources():
            if (file := store_path(path)).exists():
                progress("")
                said = "has nothing that can be used: building the database from the sample"
                print(f"racedata serve: {file}: {said}", file=sys.stderr, flush=True)
            with all_read([SAMPLE_NAME], progress) as stages:
                put_all_read(store, stages, progress)
            put_next_state(store)
        new = folder / path.name
        build_database(new, store, corrections, progress, only_open=settings.is_only_open)
        # If the file has changed, a load has ended, and its data is better.
        if identity_of_file(str(path)) == before:
            replace_file(new, path)

"""Builds a new database from the store, and replaces the old one: what every command does that
changes what the store has.

Usually, the database is made from the store. If the store is lost, or another one's or older, it is
made from the database: see `is_behind` and `is_apart`.
"""

import gc
import os
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from racedata.database import OLDEST_VERSION, default_path, is_missing, is_older, store_path
from racedata.loader.build import Report, build_database
from racedata.loader.compare.changes import take_changes
from racedata.loader.compare.tables import differences
from racedata.loader.corrections import Corrections, corrections_of, remember_corrections
from racedata.loader.delivery import delivery_of
from racedata.loader.errors import LoadError, Progress
from racedata.loader.existing import ExistingDatabase, open_read_only, read_only_uri
from racedata.loader.parts import Tables
from racedata.loader.replacement import replacement
from racedata.loader.same_bytes import put_next_state
from racedata.loader.source_list import (
    after_load,
    after_refresh,
    apply_list,
    counting,
    list_of,
    remember_list,
)
from racedata.loader.store import (
    IN_MEMORY,
    Store,
    UnknownStore,
    changed_store,
    store_to_read,
)
from racedata.loader.threads import Sleep
from racedata.loader.update import check_calendars, put_whole
from racedata.settings import LoaderSettings


@dataclass
class NewDatabase:
    """A new database, and the one that it replaces, if there is one.

    The block of `store` ends first, and commits the store; then the block of `new_database` ends,
    and puts the file in place. If the program is killed in between, the database is behind its
    store, and the next command builds it again.
    """

    path: Path  # of the new file
    settings: LoaderSettings  # with the path of the old one
    existing: ExistingDatabase | None

    @contextmanager
    def store(self) -> Iterator[tuple[Store, Corrections]]:
        """The store, in a transaction, and the corrections: to change the store, and then `build`
        the database from it.
        """
        database = Path(self.settings.database)
        is_new = not store_path(database).exists()
        try:
            with without_garbage_collection(), changed_store(database) as store:
                if self.existing:
                    put_if_apart(self.existing, store)
                yield store, corrections_of(store, self.settings.corrections)
        except BaseException:
            if is_new:
                store_path(database).unlink(missing_ok=True)
            raise

    def build(
        self,
        store: Store,
        corrections: Corrections,
        progress: Progress,
        may_stay: bool = False,
        others: Collection[str] = (),
    ) -> Report:
        """Builds the database from the store. It also writes to the store: the places of the
        sources in the list, the file of corrections, and the next revision.

        If the old database `may_stay`, the report says what differs. If nothing does, it stays, and
        the store has its state.

        A table differs that sources fill, or one of the `others`: see compare/tables.py.
        """
        settings, old = self.settings, self.existing
        apply_list(store)
        check_calendars(store, corrections)
        remember_corrections(store, settings.corrections)
        put_next_state(store, corrections.written, old.state if old and not old.is_sample else None)
        report = build_database(self.path, store, corrections, progress, old, settings.is_only_open)
        if may_stay:
            report = report._replace(differences=self.differences(progress, *others))
            if old and not report.differences:
                store.state = old.state
                self.keep_old()
        return report

    def keep_old(self) -> None:
        """Leaves the old database in place: `replacement` needs a new file to replace it."""
        self.path.unlink()

    def differences(self, progress: Progress, *others: str) -> list[str]:
        """A line for each table that differs: see compare/tables.py."""
        if not self.existing or is_older(self.existing.path):
            return ["a new database"]
        with closing(open_read_only(self.path)) as new:
            new.execute("ATTACH ? AS old", (read_only_uri(self.existing.path),))
            return differences(self.existing.db, new, progress, *others)


@contextmanager
def new_database(
    settings: LoaderSettings, sleep: Sleep | None = None, may_replace: bool = False
) -> Iterator[NewDatabase]:
    """A new database, which replaces the old one unless the block raises, or calls `keep_old`.

    If the old one cannot be read, raises LoadError or sqlite3.Error, unless it `may_replace` such a
    file. `sleep` is as in `replacement`.
    """
    path = Path(settings.database)
    if settings.database == default_path(os.environ):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacement(settings.database, sleep) as new, ExitStack() as stack:
        existing = None
        if not is_missing(path):
            with suppress(*([LoadError, sqlite3.Error] if may_replace else [])):
                existing = ExistingDatabase(path, OLDEST_VERSION)
                stack.enter_context(closing(existing))
        yield NewDatabase(new, settings, existing)


def replace_from_store(settings: LoaderSettings, progress: Progress) -> list[str]:
    """Builds the database from its store, and replaces it if it differs. Returns a report."""
    database = settings.database
    with new_database(settings) as new, new.store() as (store, corrections):
        report = new.build(store, corrections, progress, may_stay=True, others=["corrections"])
    if not report.differences:
        return [*report.misfits, f"{database}: nothing new"]
    return [*report.lines, *report.differences, f"{database}: {report.seasons} from its store"]


# Which of a database and its store is to be made from the other:
#
# - the database is lost or behind: it is built from the store (`is_behind`, then
#   `NewDatabase.build`);
# - the store is apart, because it is another machine's, lost or older: it is filled from the
#   database (`is_apart`, then `take_apart`). Then the database is not behind.


def is_behind(database: Path) -> bool:
    """Whether a database must be built again: it was lost, an earlier version built it, a program
    was killed after it had changed the store, or the list of sources has changed. Raises LoadError
    or sqlite3.Error if one of them cannot be used.
    """
    if is_older(database):
        return True
    with closing(store_to_read(database)) as store:
        if is_missing(database):
            return bool(store.sources())
        with closing(ExistingDatabase(database)) as existing:
            if is_apart(existing, store):
                return False
            listed = [source.name for source in store.sources()]
            return existing.state != store.state or listed != counting(store, list_of(store))


def is_apart(existing: ExistingDatabase, store: Store) -> bool:
    """Whether a store is another one than the database's, or an older copy of its own."""
    (id, revision), (store_id, newest) = existing.state, store.state
    return id != store_id or revision > newest


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """A build makes very many objects and no cycles: to look for some costs 6% of its time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def store_of(database: Path) -> Iterator[Store]:
    """A copy in memory of the store of a database. If that has none, or one that this version
    cannot read, or was built from another one, it is taken apart.
    """
    try:
        store = store_to_read(database)
    except UnknownStore:
        store = Store(IN_MEMORY)
    with closing(store):
        if not is_missing(database):
            with closing(ExistingDatabase(database, OLDEST_VERSION)) as existing:
                put_if_apart(existing, store)
        yield store


def put_if_apart(existing: ExistingDatabase, store: Store) -> None:
    if is_apart(existing, store):
        take_apart(existing, store)


def take_apart(existing: ExistingDatabase, store: Store) -> None:
    """Puts what a database has into the store, by source. The store has its state then.

    An older copy of the database's own store knows the list of sources, which the database does not
    have.
    """
    tables = Tables(existing.db, "main")
    if store.state[0] != existing.state[0]:
        remember_list(store, [])
    store.clear()
    # All sources have ids of the same database.
    sources = [source._replace(ids=existing.state[0]) for source in existing.sources()]
    if existing.is_sample:
        sources[0] = sources[0]._replace(is_sample=True)
    for number, source in enumerate(sources, 1):
        put_whole(store, delivery_of(source, tables, number))
    loaded = [source.address for source in sources if source.is_loaded]
    # A provisional source is given by its name and address: see Source.accepts.
    asked = [
        f"{source.name}:{source.address}" if source.is_provisional else source.address
        for source in sources
        if not source.is_loaded
    ]
    remember_list(store, after_refresh(after_load(list_of(store), loaded), asked))
    store.put_statuses(tables.list_rows("status"))
    take_changes(existing.db, store)
    store.state = existing.state

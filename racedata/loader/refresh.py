"""Brings the database up to date from its sources.

It updates every season from the first unfinished one to the latest: what a source says goes into
the store, and a new database, built from that, replaces the old one. If nothing has changed, the
old one stays. sources/ decides what to ask each source for, and choose.py what counts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from racedata.formats import utc_now, without_query
from racedata.loader.copies import Copy, clear_for_copy, install_copy
from racedata.loader.delivery import Delivery
from racedata.loader.errors import FAULTS, LoadError, NotYet, Progress
from racedata.loader.existing import ExistingDatabase, checksum_at_end
from racedata.loader.load import bring_into_step
from racedata.loader.memory import refusal, refused_until, remember
from racedata.loader.program import fault_text
from racedata.loader.rebuild import new_database, store_of
from racedata.loader.schedule import Expected
from racedata.loader.source_list import after_refresh, list_of, remember_list
from racedata.loader.sources import History, Pace, Source, Task, history_in, source_at
from racedata.loader.store import store_to_read
from racedata.loader.threads import Sleep
from racedata.loader.update import is_cancelled, put_news
from racedata.settings import LoaderSettings

Say = Callable[[str], object]  # prints a line


@dataclass
class Refresh:
    """A refresh of a database from sources: `run` asks all of them, and `ask` one, once the
    database is in step.
    """

    settings: LoaderSettings
    addresses: Sequence[str]  # of the sources
    season: int | None  # the only one to bring, with all details of its races
    progress: Progress
    new_pace: Callable[[], Pace] = Pace  # makes the pace of the requests to a source
    # With it, a refresh does not fail if another program or thread is replacing the database: it
    # waits.
    sleep: Sleep | None = None
    is_named: bool = True  # whether the command names the sources

    def __post_init__(self) -> None:
        self.path = Path(self.settings.database)
        self.sources = [source_at(address, self.new_pace()) for address in self.addresses]

    def run(self, say: Say, loads_unread: bool = False) -> bool:
        """Asks each source. Returns whether one has asked to try again later.

        With `loads_unread`, it first loads the dumps of the list that were never read. If a source
        fails, raises LoadError after asking the others.
        """
        was_refused, faults = False, []
        # before any source adds to the database: each source brings the same seasons
        first = self.first_season(say, loads_unread)
        # The most trusted comes last: dumps only bring seasons that are still unfinished.
        for source in reversed(self.sources):
            try:
                self.ask(source, say, first)
            except NotYet as error:
                say(str(error))
                was_refused = True
            except FAULTS as error:
                faults.append(fault_text(error, self.settings.database))
        if faults:
            raise LoadError("; ".join(faults))
        return was_refused

    def first_season(self, say: Say, loads_unread: bool = False) -> int:
        """The first unfinished season of the database, which is first brought into step. Raises
        LoadError, before any request, if it is missing or damaged.
        """
        if line := bring_into_step(self.settings, self.progress, loads_unread):
            say(line)
        with closing(ExistingDatabase(self.path)) as existing:
            return existing.first_season([])

    def ask(self, source: Source, say: Say, first: int) -> bool:
        """Fetches the records of a source. Returns whether a new database was stored.

        It brings each season from the first that it finds unfinished, or from `first` if that is
        earlier. A dump brings none from before the first that is still unfinished.
        """
        history = self.recall(source)
        stored = SourceRefresh(self, source, say, history.readings)
        task = Task(
            history=history,
            season=self.season,
            first=first,
            is_named=self.is_named,
            lacks_cancelled=any(is_cancelled(each, source.pace.time()) for each in history.lacked),
            progress=self.progress,
            say=say,
            deliver=stored.deliver,
            replace_with=stored.replace_with,
        )
        with self.limits_remembered(source, history) as facts:
            where = source.bring(task)
            facts["refreshedAt"] = utc_now()
        say(f"{self.path}: {'new data' if stored.is_new else 'nothing new'}{where}")
        return stored.is_new

    def has_news(self, source: Source, expected: Sequence[Expected]) -> bool:
        history = self.recall(source)
        with self.limits_remembered(source, history):
            return source.has_news(expected, history, self.progress)

    def recall(self, source: Source) -> History:
        """What is known of a source before it is asked. The source gets its name in the store."""
        # a copied database is of another store: do not take it apart
        of_copy = closing(store_to_read(self.path)) if source.is_whole else store_of(self.path)
        with of_copy as store:
            history = history_in(store, self.path, source.name, source.address)
        source.name = history.name
        return history

    @contextmanager
    def limits_remembered(self, source: Source, history: History) -> Iterator[dict[str, object]]:
        """Keeps to the limits of the source over restarts: counts the requests of earlier runs, and
        raises NotYet without a request as long as it refuses.

        What the block adds to the facts is remembered too, at its end, even if it fails.
        """
        if until := refused_until(history.remembered, source.pace.time()):
            raise NotYet(
                f"{without_query(source.address)}: refuses requests until {until}; try again then"
            )
        source.pace.resume(history.remembered.get("requests", []))
        facts: dict[str, object] = {}
        try:
            yield facts
        except NotYet as error:
            if error.seconds:
                facts |= refusal(source.pace.time(), error.seconds)
            raise
        finally:
            if ends := source.pace.counted_requests():
                facts["requests"] = ends
            if facts:
                remember(self.path, source.name, facts)


@dataclass
class SourceRefresh:
    """What a refresh stores from one source. The source calls `deliver` for each delivery."""

    refresh: Refresh
    source: Source
    say: Say
    # what the store says as long as no other program stores records
    known_readings: Mapping[str, int]
    is_new: bool = False  # whether a new database was stored

    def deliver(self, delivery: Delivery) -> None:
        """Puts a delivery into the store, and builds a new database, which replaces the old one if
        it differs.

        Raises LoadError if another program has stored records of this source since it was asked,
        perhaps newer ones.
        """
        refresh, source, name = self.refresh, self.source, delivery.source.name
        with new_database(refresh.settings, refresh.sleep) as new:
            with new.store() as (store, corrections):
                if store.readings_by_source().get(name) != self.known_readings.get(name):
                    what = f"another program has stored records from {source.address}"
                    raise LoadError(f"{refresh.path}: {what} in the meantime; try again")
                remarks = put_news(
                    store,
                    delivery,
                    corrections,
                    # who names a season wants it as the source has it, even with less
                    may_be_shorter=bool(refresh.season),
                    now=source.pace.time(),
                )
                if refresh.is_named:
                    remember_list(store, after_refresh(list_of(store), refresh.addresses))
                store.remember(source.name, delivery.notes)
                report = new.build(store, corrections, refresh.progress, may_stay=True)
                self.known_readings = store.readings_by_source()
            for line in (*remarks, *report.remarks, *report.differences):
                self.say(line)
            if report.differences:
                self.is_new = True

    def replace_with(self, copy: Copy) -> None:
        """Replaces the database with a copy of another one, if they differ."""
        refresh = self.refresh
        if checksum_at_end(copy.path) != checksum_at_end(refresh.path):
            with new_database(refresh.settings, refresh.sleep) as new:
                install_copy(copy, new.path, new.existing, refresh.settings.is_only_open)
                differences = new.differences(refresh.progress)
            for line in differences:
                self.say(line)
            self.is_new = True
        clear_for_copy(refresh.path, self.source.name, copy.etag)

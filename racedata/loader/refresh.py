"""Brings the database up to date from its sources.

It updates every season from the first unfinished one to the latest. A new database, built from the
old one's own tables and the source's records, replaces the old one. If nothing has changed, the old
one stays. This module decides the order of the sources; sources/ decides what to ask each one for,
and rules.py which record wins.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from racedata.database import is_older
from racedata.formats import timestamp
from racedata.loader.addition import Addition
from racedata.loader.build import build
from racedata.loader.copies import Copy, install_copy
from racedata.loader.errors import FAULTS, LoadError, NotYet, Progress
from racedata.loader.existing import LAST_SEASON, ExistingDatabase, checksum_at_end
from racedata.loader.follow import FollowedSource
from racedata.loader.load import load_or_rebuild
from racedata.loader.notes import (
    lacked_races,
    note_asked,
    note_copied,
    note_facts,
    note_refused,
    note_requests,
    refused_until,
    requests_noted,
)
from racedata.loader.program import fault_text
from racedata.loader.replacement import replacement
from racedata.loader.rules import by_preference, is_preferred
from racedata.loader.schedule import Expected
from racedata.loader.sources import (
    Delivery,
    History,
    Pace,
    Source,
    Task,
    source_at,
)

CANCELLED_AFTER = timedelta(hours=12)  # a calendar may be incomplete for some time


class NothingNew(Exception):
    """The new database would have the same rows as the old one."""


class Refresh:
    """A refresh of the database at `path` from sources at `addresses`, the preferred one first.

    `season` limits it to one season, with all details of its races. `say` prints a line. `new_pace`
    makes the pace of the requests to a source. A refresh that `waits` does not fail if another
    program is replacing the database.
    """

    def __init__(
        self,
        path: str,
        addresses: Sequence[str],
        season: int | None,
        corrections: Path | None,
        progress: Progress,
        say: Callable[[str], object],
        new_pace: Callable[[], Pace] = Pace,
        waits: bool = False,
    ) -> None:
        self.sources = [source_at(address, new_pace()) for address in addresses]
        self.path, self.season, self.corrections = Path(path), season, corrections
        self.progress, self.say, self.waits = progress, say, waits
        self.order = [source.name for source in self.sources]  # at the start: a folder may vanish
        # The first season to bring, which `run` sets before any source has changed the database.
        # A follower never calls `run`: each source brings what it finds unfinished.
        self.first = LAST_SEASON
        self.was_refused = False  # whether a source has asked `run` to try again later

    def run(self) -> int:
        """Asks each source. Returns how many changes were stored.

        If a source fails, raises LoadError after asking the others.
        """
        changes, faults = 0, []
        with closing(self.existing()) as existing:
            # before any source adds to it: each source brings the same seasons
            self.first = existing.first_season([])
        # Ask the preferred source last, so that it wins.
        for source in reversed(self.sources):
            try:
                changes += self.ask(source)
            except NotYet as error:
                self.say(str(error))
                self.was_refused = True
            except FAULTS as error:
                faults.append(fault_text(error, str(self.path)))
        if faults:
            raise LoadError("; ".join(faults))
        return changes

    def existing(self) -> ExistingDatabase:
        """The database. Raises LoadError, before any request, if it is damaged.

        A database of an earlier version is rebuilt first.
        """
        if is_older(self.path):
            # From its sources, which may have tables that the earlier version of racedata did not
            # load.
            self.say(load_or_rebuild(str(self.path), self.corrections, self.progress)[-1])
        return ExistingDatabase(self.path)

    def ask(self, source: Source) -> int:
        """Fetches the records of a source. Returns how many changes were stored."""
        of_source = SourceRefresh(self, source)
        with self.limits_remembered(source):
            where = source.bring(of_source.task())
        note_asked(self.path, source.name)
        self.say(f"{self.path}: {'new data' if of_source.changes else 'nothing new'}{where}")
        return of_source.changes

    def has_news(self, source: Source, expected: Sequence[Expected]) -> bool:
        """Whether a source has new records or changed results."""
        with self.limits_remembered(source):
            return source.has_news(expected, self.history_of(source), self.progress)

    @contextmanager
    def limits_remembered(self, source: Source) -> Iterator[None]:
        """Keeps to the limits of the source over restarts: counts the requests of earlier runs, and
        raises NotYet without a request as long as it refuses.
        """
        if until := refused_until(self.path, source.name, self.now()):
            raise NotYet(f"{source.address}: refuses requests until {until}; try again then")
        source.pace.resume(requests_noted(self.path, source.name))
        try:
            yield
        except NotYet as error:
            if error.seconds:
                note_refused(self.path, source.name, self.now(), error.seconds)
            raise
        finally:
            if ends := source.pace.counted_requests():
                note_requests(self.path, source.name, ends)

    def history_of(self, source: Source) -> History:
        return History(self.path, source.name)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.sources[0].pace.now(), UTC)

    def is_long_ago(self, time: str) -> bool:
        return time <= timestamp(self.now() - CANCELLED_AFTER)


class SourceRefresh:
    """What a refresh stores from one source. The source calls `store` for each delivery."""

    def __init__(self, refresh: Refresh, source: Source) -> None:
        self.refresh, self.source = refresh, source
        self.history = refresh.history_of(source)
        with closing(refresh.existing()) as existing:
            self.row = existing.source(source.name)  # as this refresh knows it
        # Races that the source's calendar lacks, such as `2023 Monaco Grand Prix`, and since when:
        # as noted by its last refresh, and now.
        self.lacked_before = lacked_races(refresh.path, source.name, timestamp(refresh.now()))
        self.lacking: dict[str, str] = {}
        self.changes = 0  # new databases that were stored

    def task(self) -> Task:
        refresh = self.refresh
        return Task(
            history=self.history,
            season=refresh.season,
            first=refresh.first,
            lacks_cancelled=any(map(refresh.is_long_ago, self.lacked_before.values())),
            may_replace=partial(
                is_preferred, refresh.order, self.source.name, self.source.is_fresher_than_loads
            ),
            progress=refresh.progress,
            say=refresh.say,
            store=self.store,
            replace_with=self.replace_with,
        )

    def store(self, delivery: Delivery) -> None:
        """Builds a new database with a delivery, and stores it if it differs.

        Also notes facts about the source. Raises LoadError if another program has stored records of
        this source since it was asked, perhaps newer ones.
        """
        refresh, source = self.refresh, self.source
        addition = Addition(
            delivery.fill,
            by_preference(refresh.order, source.name, source.is_fresher_than_loads),
            delivery.years,
            has_calendars=True,
            may_shrink=bool(refresh.season),
            are_cancelled=self.are_cancelled,
            updates_lists=delivery.updates_lists,
        )
        with suppress(NothingNew), replacement(str(refresh.path), refresh.waits) as new:
            before = checksum_at_end(refresh.path)
            with closing(ExistingDatabase(refresh.path)) as existing:
                if existing.source(source.name) != self.row:
                    what = (
                        f"another program has stored records from {source.address} in the meantime"
                    )
                    raise LoadError(f"{refresh.path}: {what}; try again")
                built = build(
                    new,
                    existing.fill,
                    [addition],
                    refresh.corrections,
                    is_sample=existing.is_sample,
                    progress=refresh.progress,
                )
                changes = existing.differences(new)
            for line in (*built.merged, *changes):
                refresh.say(line)
            facts = {**delivery.notes, "lacks": self.lacking}
            after = checksum_at_end(new) if changes else before
            note_facts(refresh.path, source.name, facts, before, after)
            if not changes:
                raise NothingNew  # `replacement` then removes the new file, and the old one stays
            self.changes += 1
        self.row = self.history.row()

    def replace_with(self, copy: Copy) -> None:
        """Replaces the database with a copy of another one, if they differ."""
        refresh = self.refresh
        if checksum_at_end(copy.path) != checksum_at_end(refresh.path):
            with (
                replacement(str(refresh.path), refresh.waits) as new,
                closing(ExistingDatabase(refresh.path)) as existing,
            ):
                install_copy(copy, new, existing)
                changes = existing.differences(new)
            for line in changes:
                refresh.say(line)
            self.changes += 1
        note_copied(refresh.path, self.source.name, copy.etag)

    def are_cancelled(self, year: int, races: Sequence[str]) -> bool:
        """Whether the source has lacked all these races for so long that they are cancelled.

        Otherwise, notes since when the source has lacked them.
        """
        now = timestamp(self.refresh.now())
        since = {f"{year} {race}": self.lacked_before.get(f"{year} {race}", now) for race in races}
        if all(map(self.refresh.is_long_ago, since.values())):
            return True
        self.lacking |= since
        return False


def followed_source(source: Source, refresh: Refresh, lines: list[str]) -> FollowedSource:
    """A source of a refresh, for follow.py. `lines` has what the refresh says."""

    def bring() -> str:
        lines.clear()
        changes = refresh.ask(source)
        return "; ".join(" ".join(line.split()) for line in lines) if changes else ""

    return FollowedSource(source, partial(refresh.has_news, source), bring)

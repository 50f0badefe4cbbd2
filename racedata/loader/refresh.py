"""Brings the database up to date from its sources: `racedata refresh`.

It brings every season from the first that is unfinished here up to the latest. A new database,
built from the old one's own tables and what a source brings, replaces the old one. If nothing has
changed, the old one stays. The order of the sources is decided here, what to ask each one for in
sources/, and which record wins in rules.py.
"""

import argparse
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from racedata.database import OLDEST_VERSION, is_older, read_refreshes, refreshes_path
from racedata.loader import values
from racedata.loader.build import build, load, load_or_rebuild, make_default_folder, utc_now
from racedata.loader.corrections import add_corrections_argument
from racedata.loader.errors import LoadError, NotYet, Progress
from racedata.loader.existing import LAST_SEASON, ExistingDatabase, checksum_at_end
from racedata.loader.files.download import without_query
from racedata.loader.follow import Followed, Preparation, follow
from racedata.loader.merge import Addition
from racedata.loader.processes import Sleep
from racedata.loader.replacement import (
    FAULTS,
    add_database_argument,
    copy_attributes,
    fault_text,
    locked,
    progress_of_terminal,
    replaced_file,
    replacement,
    run,
    say,
)
from racedata.loader.rules import by_preference, is_preferred
from racedata.loader.schedule import Expected
from racedata.loader.sources import (
    FROM,
    FROM_DEFAULT,
    Brought,
    Known,
    Pace,
    Source,
    Wanted,
    addresses_in,
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
        self.order = [source.name for source in self.sources]  # now: a folder may change or go
        # the first season to bring; `run` sets it before any source has changed the database
        self.first = LAST_SEASON
        # Races here that the calendar of a source lacks, such as `2023 Monaco Grand Prix`, and
        # since when: as its last refresh has noted, and now.
        self.lacked: Mapping[str, str] = {}
        self.lacks: dict[str, str] = {}

    def run(self) -> int:
        """Asks each source. Returns how many changes were stored.

        If a source fails, raises LoadError after asking the others.
        """
        changes, faults = 0, []
        with closing(self.existing()) as existing:
            self.first = existing.first_season([])  # what one source fills in, another still brings
        # The preferred source has the last word.
        for source in reversed(self.sources):
            try:
                changes += self.ask(source)
            except NotYet as error:
                self.say(str(error))
            except FAULTS as error:
                faults.append(fault_text(error, str(self.path)))
        if faults:
            raise LoadError("; ".join(faults))
        return changes

    def existing(self) -> ExistingDatabase:
        """The database. Raises LoadError, before any request, if it is damaged.

        First, one of an earlier version is built again.
        """
        if is_older(self.path):
            # From its sources, which may have tables that the earlier version of racedata did not
            # load.
            self.say(load_or_rebuild(str(self.path), self.corrections, self.progress)[-1])
        return ExistingDatabase(self.path)

    def ask(self, source: Source) -> int:
        """Brings what a source has. Returns how many changes were stored."""
        with closing(self.existing()) as existing:
            given = existing.source(source.name)
        self.lacked, self.lacks = self.noted_as_lacking(source), {}
        changes, known = 0, self.known(source)

        def store(brought: Brought) -> None:
            nonlocal changes, given
            changes += self.store(source, brought, given)
            given = known.row()

        wanted = Wanted(
            known,
            self.season,
            self.first,
            any(map(self.is_long_ago, self.lacked.values())),
            partial(is_preferred, self.order, source.name, source.is_fresher_than_loads),
            self.progress,
            self.say,
            store,
        )
        where = source.bring(wanted)
        self.note_asked(source)
        self.say(f"{self.path}: {'new data' if changes else 'nothing new'}{where}")
        return changes

    def has_news(self, source: Source, asked: Sequence[Expected]) -> bool:
        """Whether a source has records that are missing here, or other results."""
        return source.has_news(asked, self.known(source), self.progress)

    def known(self, source: Source) -> Known:
        return Known(self.path, source.name)

    def store(self, source: Source, brought: Brought, given: object) -> int:
        """Builds the new database. Returns 1 if it differs and is stored, else 0.

        It also notes facts about the source.

        `given` is what the source had given when it was asked. If that has changed since, raises
        LoadError: another program has asked the source too, perhaps later than this one, and stored
        what it has.
        """
        addition = Addition(
            brought.fill,
            by_preference(self.order, source.name, source.is_fresher_than_loads),
            brought.years,
            has_calendars=True,
            may_shrink=bool(self.season),
            are_cancelled=self.are_cancelled,
            updates_lists=brought.updates_lists,
        )
        with suppress(NothingNew), replacement(str(self.path), self.waits) as new:
            before = checksum_at_end(self.path)
            with closing(ExistingDatabase(self.path)) as existing:
                if existing.source(source.name) != given:
                    what = f"another program has stored records of {source.address} meanwhile"
                    raise LoadError(
                        f"{self.path}: {what}; expected no other load or refresh of this source"
                    )
                built = build(
                    new,
                    existing.fill,
                    [addition],
                    self.corrections,
                    existing.is_sample,
                    self.progress,
                )
                changes = existing.differences(new)
            for line in (*built.merged, *changes):
                self.say(line)
            if not changes:
                self.note(source, brought.notes, before, before)
                raise NothingNew  # `replacement` then removes the new file, and the old one stays
            self.note(source, brought.notes, before, checksum_at_end(new))
            return 1
        return 0

    def are_cancelled(self, year: int, races: Sequence[str]) -> bool:
        """Whether the source has lacked all these races for so long that they are cancelled.

        Else, it notes since when the source lacks them.
        """
        now = timestamp(self.now())
        since = {f"{year} {race}": self.lacked.get(f"{year} {race}", now) for race in races}
        if all(map(self.is_long_ago, since.values())):
            return True
        self.lacks |= since
        return False

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.sources[0].pace.now(), UTC)

    def is_long_ago(self, time: str) -> bool:
        return time <= timestamp(self.now() - CANCELLED_AFTER)

    # What the last refreshes found is in a file beside the database, because they may leave the
    # database as it is.

    def noted_as_lacking(self, source: Source) -> Mapping[str, str]:
        """The races that the source lacked at its last refresh, and since when.

        No time is in the future.
        """
        found, now = (
            read_refreshes(self.path).get(source.name, {}).get("lacks"),
            timestamp(self.now()),
        )
        if not isinstance(found, dict):
            return {}
        return {
            race: time
            for race, time in found.items()
            if isinstance(time, str) and values.fetch_time.fullmatch(time) and time <= now
        }

    def note(self, source: Source, facts: Mapping[str, object], before: str, after: str) -> None:
        """Notes facts about a source when a database is about to replace another.

        `before` and `after` are the checksums of the two.
        """
        noted, name = read_refreshes(self.path), source.name
        for other in noted.values():
            if other.get("database") == before:  # what other sources gave is in the new one too
                other["database"] = after
        times = {
            key: value
            for key, value in noted.get(name, {}).items()
            if key in ("refreshedAt", "followedSince")
        }
        lacks = {"lacks": self.lacks} if self.lacks else {}
        noted[name] = {**times, **facts, **lacks, "database": after}
        write_notes(self.path, noted)

    def note_asked(self, source: Source) -> None:
        """Notes that a source was asked successfully."""
        with suppress(OSError), locked(Path(os.path.realpath(self.path)).parent, wait=True):
            noted = read_refreshes(self.path)
            noted.setdefault(source.name, {})["refreshedAt"] = utc_now()
            write_notes(self.path, noted)


def note_followed(path: Path, names: Collection[str]) -> bool:
    """Notes for monitors which sources are followed, and since when.

    Returns whether it could: there is a database, and no other program has the lock.
    """
    now = utc_now()
    with suppress(OSError, LoadError), locked(Path(os.path.realpath(path)).parent, wait=False):
        path.stat()  # without a database, there are no notes
        noted = read_refreshes(path)
        for name in {*names, *noted}:
            since = noted.get(name, {}).pop("followedSince", "")
            if name in names:
                # the clock may have been ahead
                believed = isinstance(since, str) and "" < since <= now
                noted.setdefault(name, {})["followedSince"] = since if believed else now
        write_notes(path, noted)
        return True
    return False


def write_notes(database: Path, noted: Mapping[str, object]) -> None:
    """Replaces the file of notes. The caller has the lock of the folder."""
    path = refreshes_path(database)
    new = path.with_name(f".{path.name}.writing")
    with suppress(OSError):  # without this file, the next refresh only asks for more
        try:
            new.unlink(missing_ok=True)  # left by a refresh that was killed
            new.write_text(json.dumps(noted), encoding="utf-8")
            copy_attributes(database, new)
            os.replace(new, path)
        finally:
            new.unlink(missing_ok=True)


def followed(source: Source, refresh: Refresh, said: list[str]) -> Followed:
    """A source of a refresh, for follow.py. `said` has what the refresh says."""

    def bring() -> str:
        """Brings the database up to date. Returns what changed, in one line."""
        said.clear()
        changes = refresh.ask(source)
        return "; ".join(" ".join(line.split()) for line in said) if changes else ""

    return Followed(
        source.kinds,
        partial(refresh.has_news, source),
        bring,
        source.publishes_after_race,
        source.after_end,
        source.is_provisional,
    )


def timestamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def follow_sources(
    path: str, addresses: Sequence[str], corrections: Path | None, parent: int | None
) -> None:
    """Follows sources until a signal ends it, or the pipe `parent` closes."""

    def refresh(sleep: Sleep, said: list[str]) -> Refresh:
        new_pace = partial(Pace, sleep=sleep)
        return Refresh(
            path, addresses, None, corrections, lambda text: None, said.append, new_pace, waits=True
        )

    def follower(number: int, sleep: Sleep) -> Followed:
        said: list[str] = []
        bringing = refresh(sleep, said)
        return followed(bringing.sources[number], bringing, said)

    configured = list(dict.fromkeys(addresses_in(os.environ.get("RACEDATA_SOURCE", ""))))
    # As in Refresh.run, the preferred source has the last word: first, all are due at once.
    numbered = reversed(list(enumerate(addresses)))
    sources = [(without_query(address), partial(follower, number)) for number, address in numbered]
    names = [source_at(address).name for address in addresses]
    follow(path, sources, Loading(path, configured, corrections, names).preparation(), parent)


class Loading:
    """Loads the sources in RACEDATA_SOURCE for follow.py, if the database is not built from them.

    `followed` has the names of the sources that are followed then.
    """

    def __init__(
        self,
        path: str,
        configured: Sequence[str],
        corrections: Path | None,
        followed: Collection[str],
    ) -> None:
        self.path, self.configured, self.corrections, self.followed = (
            path,
            configured,
            corrections,
            followed,
        )
        self.progress = progress_of_terminal()
        # with what the database was built from: at the start, but not if it is loaded later
        self.compares = True
        self.checked: object = None  # the file that was checked, or loaded
        self.is_noted = False  # that the sources are followed

    def preparation(self) -> Preparation:
        return Preparation(
            self.prepare, lambda: not self.configured or has_more_than_the_sample(Path(self.path))
        )

    def prepare(self) -> str:
        """Loads the sources if necessary. Returns a line that says so.

        Raises LoadError if the file cannot be read.
        """
        if self.is_noted and replaced_file(self.path) == self.checked:
            return ""
        line = ""
        if self.configured and (remark := self.remark()) is not None:
            make_default_folder(self.path)
            line = load(self.configured, self.path, self.corrections, self.progress)[-1] + remark
        elif os.path.exists(self.path) and is_older(Path(self.path)):
            line = load_or_rebuild(self.path, self.corrections, self.progress)[-1]
        self.progress("")
        self.is_noted = (self.is_noted and not line) or note_followed(
            Path(self.path), self.followed
        )
        self.checked, self.compares = replaced_file(self.path), False
        return line

    def remark(self) -> str | None:
        """If the sources must be loaded, what to add to the line of the load; else None."""
        if not os.path.exists(self.path):
            return ""
        with closing(ExistingDatabase(Path(self.path), OLDEST_VERSION)) as existing:
            loaded = existing.loaded_sources
        if loaded == self.configured:
            return None
        if existing.is_sample:
            return ""
        return (
            f"; before, it was from {' and '.join(loaded)}: RACEDATA_SOURCE has changed"
            if self.compares
            else None
        )


def has_more_than_the_sample(path: Path) -> bool:
    try:
        with closing(ExistingDatabase(path, OLDEST_VERSION)) as existing:
            return not existing.is_sample
    except LoadError:
        return False


def season(text: str) -> int | None:
    """The value of `--season`. `make` passes an empty one."""
    if text and not values.year.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r}; expected {values.year.expected}")
    return int(text) if text else None


def main(arguments: Sequence[str], parent: int | None = None) -> None:
    """Runs the command. `parent` is the end to read of a pipe: when it closes, `--follow` ends."""
    parser = argparse.ArgumentParser(
        prog="racedata refresh",
        description="Bring the database up to date: "
        "every season from the first that is unfinished.",
    )
    parser.add_argument(
        "--from",
        dest="addresses",
        action="append",
        metavar="SOURCE",
        help=FROM,
    )
    parser.add_argument(
        "--season",
        type=season,
        metavar="YEAR",
        help="fetch this season only, and whole",
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="keep running: check again when the calendar says that there may be something new, "
        "and at least daily; if the database is missing, is the sample, or was built from other "
        "sources than RACEDATA_SOURCE names, load those first",
    )
    add_database_argument(parser)
    add_corrections_argument(parser)
    parsed = parser.parse_args(arguments)
    if parsed.follow and parsed.season:
        parser.error("--follow and --season: expected one of them")
    addresses = [
        address for text in parsed.addresses or [] for address in addresses_in(text)
    ] or FROM_DEFAULT

    if parsed.follow:
        follow_sources(parsed.database, addresses, parsed.corrections, parent)
        return

    def work(progress: Progress) -> list[str]:
        faults: list[str] = []
        refresh = Refresh(
            parsed.database,
            addresses,
            parsed.season,
            parsed.corrections,
            progress,
            lambda line: faults.append(say(line)),
        )
        refresh.run()
        if fault := "".join(faults):  # of stdout: after the first, nothing more is written
            raise LoadError(fault)
        return []

    run("refresh", parsed.database, work)

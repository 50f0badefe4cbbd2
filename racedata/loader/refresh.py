"""Brings the database up to date, from APIs in Ergast's format and from dumps such as f1db's: `racedata refresh`.

It brings every season from the first that is unfinished here up to the latest. Each season of an API is stored before
the next is fetched: a new database, built from the old one's own tables and what was fetched, replaces the old one. If
nothing has changed, the old one stays. Which seasons, and which source is preferred, is decided here; what to fetch of
a season, in fetch.py.
"""

import argparse
import json
import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from racedata.database import CHECKSUM_BYTES, COMMAND, OLDEST_VERSION, is_older, read_refreshes, refreshes_path
from racedata.kinds import KINDS
from racedata.loader import values
from racedata.loader.api import JOLPICA, PACE, Api, Pace
from racedata.loader.api_rows import rows_of
from racedata.loader.build import build, load, load_or_rebuild, make_default_folder
from racedata.loader.corrections import add_corrections_argument
from racedata.loader.errors import LoadError, Progress
from racedata.loader.fetch import RACES, OldDatabase, SeasonFetch, digest_of, fetch_calendar, is_changed
from racedata.loader.files.download import HTTP, NotDownloaded, without_query
from racedata.loader.follow import Preparation, Source, follow
from racedata.loader.merge import Addition, Part, Rule
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
from racedata.loader.schedule import Expected, release_wait
from racedata.loader.sources import (
    PUBLISHED,
    addresses_in,
    earlier,
    name_of,
    open_dump,
    read_dump,
    utc_now,
)
from racedata.loader.sources.f1db_download import is_release, release_checksum
from racedata.loader.stage import Stage
from racedata.loader.tables import BY_NAME, RECORDS

DEFAULT = (JOLPICA, PUBLISHED["f1db"])  # the first is preferred

# Kinds of records that APIs need not have, and f1db does not have. From an API that has practice and sprint qualifying,
# they are fetched with the results of the race.
NOT_OF_AN_API = [kind.name for kind in KINDS.values() if not kind.is_of_ergast]
NOT_OF_F1DB = ["lap_times"]
# Records per race, for the estimate of requests: more than most races have.
LAPS = 1300
DETAILS = {"pitstops": 100, "driverstandings": 30, "constructorstandings": 20, "practice": 80, "sprintqualifying": 20}
LAST_SEASON = 9999  # that a date can have
CANCELLED_AFTER = timedelta(hours=12)  # a calendar may be incomplete for some time


class NothingNew(Exception):
    """The new database would have the same rows as the old one."""


class Unusable(NamedTuple):
    """A release that was downloaded and could not be used."""

    release: str  # its SHA-256
    failures: int
    until: float  # when it may be downloaded again, by the clock of a Pace


class Refresh:
    """A refresh of the database at `path` from sources at `addresses`, the first of which is preferred.

    `season` limits it to one season, with all details of its races. `say` prints a line. `new_pace` makes the pace of
    the requests to a source. A refresh that `waits` does not fail if another program is replacing the database.
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
        self.addresses = [plain(address) for address in addresses]
        self.path, self.season, self.corrections = Path(path), season, corrections
        self.progress, self.say, self.waits = progress, say, waits
        self.names = {address: name_of(address) for address in self.addresses}  # now: a folder may change or go
        self.order = list(self.names.values())
        self.first = LAST_SEASON  # to bring; `run` sets it before any source has changed the database
        self.paces = {address: new_pace() for address in self.addresses}
        self.unusable: Unusable | None = None
        # Races here that the calendar of a source lacks, such as `2023 Monaco Grand Prix`, and since when: as its last
        # refresh has noted, and now.
        self.lacked: Mapping[str, str] = {}
        self.lacks: dict[str, str] = {}

    def run(self) -> int:
        """Asks each source. Returns how many changes were stored. Raises LoadError if a source fails, after all."""
        self.check_database()
        changes, faults = 0, []
        with closing(OldDatabase(self.path)) as old:
            self.first = old.first_season([])  # what one source fills in, another still brings
        # The preferred source has the last word.
        for address in reversed(self.addresses):
            try:
                changes += self.ask(address)
            except FAULTS as error:
                faults.append(fault_text(error, str(self.path)))
        if faults:
            raise LoadError("; ".join(faults))
        return changes

    def check_database(self) -> None:
        """Raises LoadError, before any request, if the database is damaged. Builds one of an earlier version again."""
        if is_older(self.path):
            # From its sources, which may have tables that the earlier version of racedata did not load.
            self.say(load_or_rebuild(str(self.path), self.corrections, self.progress)[-1])
        OldDatabase(self.path).close()

    def ask(self, address: str) -> int:
        """Brings what a source has. Returns how many changes were stored."""
        self.check_database()
        self.lacked, self.lacks = self.noted_as_lacking(address), {}
        release = release_checksum(address, self.progress) if is_release(address) else None
        if is_api(address):
            requests = self.paces[address].requests
            changes = self.ask_api(address)
            why = f" after {self.paces[address].requests - requests} requests to {address}"
        elif self.has_nothing_new(address, release):
            changes, why = 0, f": no later release at {address}"
        else:
            changes, why = (
                self.ask_release(address, release) if release else self.ask_dump(address),
                f" after {address}",
            )
        self.note_asked(address)
        self.say(f"{self.path}: {'new data' if changes else 'nothing new'}{why}")
        return changes

    def has_nothing_new(self, address: str, release: str | None) -> bool:
        """Whether a release was read before, and lacks no race that now counts as cancelled."""
        if not release or self.season or release != self.known_release(self.names[address]):
            return False
        return not any(map(self.is_long_ago, self.lacked.values()))

    def api(self, address: str) -> Api:
        """The API at an address, for one piece of work."""
        return Api(address, self.progress, self.paces[address])

    def ask_release(self, address: str, release: str) -> int:
        """Brings what the release with this SHA-256 has. Raises LoadError if it could not be used a short time ago."""
        clock = self.paces[address].clock
        if wait := self.wait_for_release(address, release):
            what = f"this release could not be used; next download in {math.ceil(wait / 60):,} minutes"
            raise LoadError(f"{address}: {what}; expected a newer release")
        try:
            return self.ask_dump(address, release)
        except NotDownloaded:
            raise
        except FAULTS:
            failures = self.unusable.failures + 1 if self.unusable and self.unusable.release == release else 1
            self.unusable = Unusable(release, failures, clock() + release_wait(failures).total_seconds())
            raise

    def wait_for_release(self, address: str, release: str) -> float:
        """For how many seconds a release is not downloaded again, because it could not be used."""
        if self.unusable and self.unusable.release == release:
            return max(0.0, self.unusable.until - self.paces[address].clock())
        return 0.0

    def ask_dump(self, address: str, release: str | None = None) -> int:
        def fill(stage: Stage) -> list[str]:
            remarks = read_dump(dump, stage, is_loaded=False)
            if self.season:
                found = stage.db.execute("SELECT DISTINCT year FROM dump.races ORDER BY year").fetchall()
                check_season(self.season, [year for (year,) in found], address)
            return remarks

        given = self.given(address)
        with open_dump(address, os.environ.get("JOLPICA_TOKEN"), self.progress) as dump:
            with closing(OldDatabase(self.path)) as old:
                first = self.season or old.first_season([])
            years = [self.season] if self.season else range(first, LAST_SEASON)
            addition = Addition(
                fill,
                self.rule(address),
                years,
                has_calendars=True,
                may_shrink=bool(self.season),
                are_cancelled=self.are_cancelled,
            )
            return self.store(addition, address, given, {"release": release} if release and not self.season else {})

    def ask_api(self, address: str) -> int:
        api = self.api(address)
        found = {str(season.get("season")): season for (season,) in api.records("seasons")}
        if not found or not all(map(values.year.fullmatch, found)):
            what = f"seasons {', '.join(found)[:80]!r}; expected years from 1950"
            raise LoadError(f"{api.address('seasons')}: {what}")
        seasons = {int(year): facts for year, facts in sorted(found.items())}
        if self.season:
            check_season(self.season, list(seasons), api.address("seasons"))
        rule = self.rule(api.url)
        with closing(OldDatabase(self.path)) as old:
            # Laps are to come in seasons that a less preferred source has filled in.
            is_preferred = rule(Part(api.url, True, ""), Part("f1db", True, ""))
            filled_in = old.without_laps(also_from_apis=False).values() if is_preferred else ()
            first = self.season or min([self.first, old.first_season(list(seasons)), *filled_in])
        seen = self.seen(api.url)
        years = [self.season] if self.season else [year for year in seasons if year >= first]
        self.announce(api, years)
        changes, calendars = 0, 0
        for year in years:
            api, given = self.api(address), self.given(address)
            with closing(OldDatabase(self.path)) as old:
                races = fetch_calendar(api, year)
                if not races:  # in winter, an API may list the next season before its calendar is known
                    continue
                calendars += 1
                fetched = SeasonFetch(api, old, seasons[year], races, bool(self.season), seen)
                fetched.fetch()
                self.say(fetched.report())
                addition = Addition(
                    fetched.fill,
                    rule,
                    has_calendars=True,
                    may_shrink=bool(self.season),
                    are_cancelled=self.are_cancelled,
                    updates_lists=True,
                )
                changes += self.store(addition, address, given, {"seen": fetched.digests})
        if not calendars:
            what = f"no races in any season from {first} on; expected the calendar of at least one"
            raise LoadError(f"{api.url}: {what}")
        return changes

    def announce(self, api: Api, years: Sequence[int]) -> None:
        """Says how many requests it takes, if there are several seasons to bring."""
        if len(years) < 2:
            return
        with closing(OldDatabase(self.path)) as old:
            of_race = sum(math.ceil(records / api.limit) for records in (LAPS, *DETAILS.values()))
            # The calendar and new statuses; results, qualifying and sprints of all races.
            lists = 2 + 3 * math.ceil(RACES * 22 / api.limit)
            filled_in = list(old.without_laps(also_from_apis=False).values())
            races = {year: old.races_to_fetch(year) + filled_in.count(year) for year in years}
            requests = sum(lists + of_race * count for count in races.values())
        quota, seconds = PACE[-1]
        hint = ""
        if api.requests + requests > quota:
            hint = f", at most {quota} in {seconds // 60} minutes; to load a dump first is quicker: {COMMAND} load"
        self.say(f"{years[0]} to {years[-1]}: about {requests:,} requests to {api.url}{hint}")

    def store(self, addition: Addition, address: str, given: object, facts: Mapping[str, object]) -> int:
        """Builds the new database, and notes facts about the source. Returns 1 if it differs and is stored, else 0.

        `given` is what the source had given when it was asked. If that has changed since, raises LoadError: another
        program has asked the source too, perhaps later than this one, and stored what it has.
        """
        with suppress(NothingNew), replacement(str(self.path), self.waits) as new:
            before = checksum_at_end(self.path)
            if self.given(address) != given:
                what = f"another program has stored records of {address} meanwhile"
                raise LoadError(f"{self.path}: {what}; expected no other load or refresh of this source")
            with closing(OldDatabase(self.path)) as old:
                is_sample = earlier.is_sample(old.db)
                fill = partial(earlier.read, old.db)
                built = build(new, fill, [addition], self.corrections, is_sample, self.progress)
                changes = old.differences(new)
            for line in (*built.merged, *changes):
                self.say(line)
            if not changes:
                self.note(address, facts, before, before)
                raise NothingNew  # `replacement` then removes the new file, and the old one stays
            self.note(address, facts, before, checksum_at_end(new))
            return 1
        return 0

    def given(self, address: str) -> object:
        """What changes if anything else from a source is stored."""
        with closing(OldDatabase(self.path)) as old:
            sql = "SELECT readAt, checksum FROM sources WHERE name = ?"
            return old.db.execute(sql, (self.names[address],)).fetchone()

    def rule(self, address: str) -> Rule:
        """What a source may replace: its own records, those of less preferred sources; an API also those of a dump."""
        mine = self.order.index(self.names[address])

        def may_replace(new: Part, old: Part) -> bool:
            if old.source == new.source:
                return True
            if old.source in self.order:
                return mine < self.order.index(old.source)
            return is_api(address)

        return may_replace

    def are_cancelled(self, year: int, races: Sequence[str]) -> bool:
        """Whether the source has lacked all these races for so long that they are cancelled. Else notes since when."""
        now = timestamp(self.now())
        since = {f"{year} {race}": self.lacked.get(f"{year} {race}", now) for race in races}
        if all(map(self.is_long_ago, since.values())):
            return True
        self.lacks |= since
        return False

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.paces[self.addresses[0]].now(), UTC)

    def is_long_ago(self, time: str) -> bool:
        return time <= timestamp(self.now() - CANCELLED_AFTER)

    # What the last refreshes found is in a file beside the database, because they may leave the database as it is.

    def known_release(self, name: str) -> str | None:
        """The SHA-256 of the latest release of a source that was refreshed from, or loaded, into this database."""
        with closing(OldDatabase(self.path)) as old:
            found = old.db.execute("SELECT checksum FROM sources WHERE name = ?", (name,)).fetchone()
        noted = read_refreshes(self.path)
        if noted.get(name, {}).get("database") == checksum_at_end(self.path):
            return noted[name].get("release")
        return str(found[0]) if found else None

    def seen(self, url: str) -> Mapping[str, str]:
        """The digests of the lists that were fetched from an API for this database, by race and endpoint."""
        noted = read_refreshes(self.path).get(url, {})
        found = noted.get("seen") if noted.get("database") == checksum_at_end(self.path) else None
        return found if isinstance(found, dict) else {}

    def noted_as_lacking(self, address: str) -> Mapping[str, str]:
        """The races that the source lacked at the last refresh from it, and since when. No time is in the future."""
        found, now = read_refreshes(self.path).get(self.names[address], {}).get("lacks"), timestamp(self.now())
        if not isinstance(found, dict):
            return {}
        return {
            race: time
            for race, time in found.items()
            if isinstance(time, str) and values.fetch_time.fullmatch(time) and time <= now
        }

    def note(self, address: str, facts: Mapping[str, object], before: str, after: str) -> None:
        """Notes facts about a source, when a database is about to replace another. They are named by checksum."""
        noted, name = read_refreshes(self.path), self.names[address]
        for other in noted.values():
            if other.get("database") == before:  # what other sources gave is in the new one too
                other["database"] = after
        times = {key: value for key, value in noted.get(name, {}).items() if key in ("refreshedAt", "followedSince")}
        lacks = {"lacks": self.lacks} if self.lacks else {}
        noted[name] = {**times, **facts, **lacks, "database": after}
        write_notes(self.path, noted)

    def note_asked(self, address: str) -> None:
        """Notes that a source was asked successfully."""
        with suppress(OSError), locked(Path(os.path.realpath(self.path)).parent, wait=True):
            noted = read_refreshes(self.path)
            noted.setdefault(self.names[address], {})["refreshedAt"] = utc_now()
            write_notes(self.path, noted)


def note_followed(path: Path, names: Collection[str]) -> bool:
    """Notes which sources are followed, and since when: so a monitor knows which should have been asked.

    Returns whether it could: there is a database, and no other program has the lock.
    """
    now = utc_now()
    with suppress(OSError, LoadError), locked(Path(os.path.realpath(path)).parent, wait=False):
        path.stat()  # without a database, there are no notes
        noted = read_refreshes(path)
        for name in {*names, *noted}:
            since = noted.get(name, {}).pop("followedSince", "")
            if name in names:
                believed = isinstance(since, str) and "" < since <= now  # the clock may have been ahead
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


def checksum_at_end(path: Path) -> str:
    """The checksum of a database, which its file ends with."""
    with path.open("rb") as file:
        file.seek(-CHECKSUM_BYTES, os.SEEK_END)
        return file.read().hex()


class Followed:
    """A source for follow.py. `refresh` knows all addresses, because their order says what is preferred."""

    def __init__(self, address: str, refresh: Refresh, said: list[str]) -> None:
        self.address, self.refresh, self.said = address, refresh, said

    def source(self) -> Source:
        lacking = NOT_OF_AN_API if is_api(self.address) else NOT_OF_F1DB
        kinds = [kind for kind in RECORDS if kind not in lacking]
        return Source(kinds, self.has_news, self.bring, only_after_race=not is_api(self.address))

    def bring(self) -> str:
        """Brings the database up to date. Returns what changed, in one line."""
        self.said.clear()
        changes = self.refresh.ask(self.address)
        return "; ".join(" ".join(line.split()) for line in self.said) if changes else ""

    def has_news(self, asked: Sequence[Expected]) -> bool:
        """Whether the source has records that are missing here, or other results."""
        if not is_api(self.address):
            if not is_release(self.address):
                return False  # only a download would tell: it is refreshed once a day
            release = release_checksum(self.address, self.refresh.progress)
            is_known = release == self.refresh.known_release(self.refresh.names[self.address])
            return not is_known and not self.refresh.wait_for_release(self.address, release)
        api = self.refresh.api(self.address)
        return any(self.is_new(api, each) for each in asked)

    def is_new(self, api: Api, expected: Expected) -> bool:
        table = BY_NAME[expected.kind]
        if not table.endpoint:
            return False
        path = f"{expected.year}/{expected.round}/{table.endpoint.name}"
        page = api.page(path, 0)
        if not expected.is_stored or not page.records:
            return bool(page.records)
        place, records = api.address(path), [record[-1] for record in page.records]
        if self.refresh.seen(api.url).get(path) == digest_of(records):
            return False
        with closing(OldDatabase(self.refresh.path)) as old:
            id = old.race_id(expected.year, expected.round)
            return is_changed(list(rows_of(records, table, place)), old.rows(table, id))


def timestamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def check_season(season: int, found: Sequence[int], place: str) -> None:
    """Raises LoadError, which begins with a place, unless the season is among those found there."""
    if season not in found:
        seasons = f"{found[0]} to {found[-1]}" if found else "no races"
        raise LoadError(f"{place}: no season {season}; it has {seasons}")


def is_api(address: str) -> bool:
    """Whether an address is that of an API; else it is one of a dump."""
    return bool(HTTP.match(address)) and not address.partition("?")[0].endswith(".zip")


def plain(address: str) -> str:
    """An address as it is stored: that of an API does not end in a slash."""
    return address.rstrip("/") if is_api(address) else address


def follow_sources(path: str, addresses: Sequence[str], corrections: Path | None, parent: int | None) -> None:
    """Follows sources until a signal ends it, or the pipe `parent` closes."""

    def refresh(sleep: Sleep, said: list[str]) -> Refresh:
        new_pace = partial(Pace, sleep=sleep)
        return Refresh(path, addresses, None, corrections, lambda text: None, said.append, new_pace, waits=True)

    def source(address: str, sleep: Sleep) -> Source:
        said: list[str] = []
        return Followed(address, refresh(sleep, said), said).source()

    configured = list(dict.fromkeys(addresses_in(os.environ.get("RACEDATA_SOURCE", ""))))
    # As in Refresh.run, the preferred source has the last word: first, all are due at once.
    sources = [(without_query(address), partial(source, plain(address))) for address in reversed(addresses)]
    names = [name_of(plain(address)) for address in addresses]
    follow(path, sources, Loading(path, configured, corrections, names).preparation(), parent)


class Loading:
    """Loads the sources in RACEDATA_SOURCE for follow.py, if the database is not built from them.

    `followed` has the names of the sources that are followed then.
    """

    def __init__(
        self, path: str, configured: Sequence[str], corrections: Path | None, followed: Collection[str]
    ) -> None:
        self.path, self.configured, self.corrections, self.followed = path, configured, corrections, followed
        self.progress = progress_of_terminal()
        self.compares = True  # with what the database was built from: at the start, but not if it is loaded later
        self.checked: object = None  # the file that was checked, or loaded
        self.is_noted = False  # that the sources are followed

    def preparation(self) -> Preparation:
        return Preparation(self.prepare, lambda: not self.configured or has_more_than_the_sample(Path(self.path)))

    def prepare(self) -> str:
        """Loads the sources if necessary. Returns a line that says so. Raises LoadError if the file cannot be read."""
        if self.is_noted and replaced_file(self.path) == self.checked:
            return ""
        line = ""
        if self.configured and (remark := self.remark()) is not None:
            make_default_folder(self.path)
            line = load(self.configured, self.path, self.corrections, self.progress)[-1] + remark
        elif os.path.exists(self.path) and is_older(Path(self.path)):
            line = load_or_rebuild(self.path, self.corrections, self.progress)[-1]
        self.progress("")
        self.is_noted = (self.is_noted and not line) or note_followed(Path(self.path), self.followed)
        self.checked, self.compares = replaced_file(self.path), False
        return line

    def remark(self) -> str | None:
        """If the sources must be loaded, what to add to the line of the load; else None."""
        if not os.path.exists(self.path):
            return ""
        with closing(earlier.open_checked(Path(self.path), OLDEST_VERSION)) as db:
            loaded = earlier.loaded_sources(db)
            if loaded == self.configured:
                return None
            if earlier.is_sample(db):
                return ""
        return f"; before, it was from {' and '.join(loaded)}: RACEDATA_SOURCE has changed" if self.compares else None


def has_more_than_the_sample(path: Path) -> bool:
    try:
        with closing(earlier.open_checked(path, OLDEST_VERSION)) as db:
            return not earlier.is_sample(db)
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
        description="Bring the database up to date: every season from the first that is unfinished.",
    )
    parser.add_argument(
        "--from",
        dest="addresses",
        action="append",
        metavar="SOURCE",
        help="base address of an API in Ergast's format, f1db, or a dump such as a zip of f1db; may be repeated, and "
        f"the first is preferred (default: {JOLPICA}, then f1db)",
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
        help="keep running: check again when the calendar says that there may be something new, and at least daily; "
        "if the database is missing, is the sample, or was built from other sources than RACEDATA_SOURCE names, load "
        "those first",
    )
    add_database_argument(parser)
    add_corrections_argument(parser)
    parsed = parser.parse_args(arguments)
    if parsed.follow and parsed.season:
        parser.error("--follow and --season: expected one of them")
    addresses = [address for text in parsed.addresses or [] for address in addresses_in(text)] or DEFAULT

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

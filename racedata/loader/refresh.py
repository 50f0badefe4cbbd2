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
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from racedata.database import CHECKSUM_BYTES, COMMAND, OLDEST_VERSION, is_older, read_refreshes, refreshes_path
from racedata.loader import values
from racedata.loader.api import JOLPICA, PACE, Api
from racedata.loader.api_rows import rows_of
from racedata.loader.build import build, load, load_or_rebuild, make_default_folder
from racedata.loader.corrections import add_corrections_argument
from racedata.loader.download import HTTP
from racedata.loader.errors import LoadError, Progress
from racedata.loader.fetch import RACES, OldDatabase, SeasonFetch, digest_of, fetch_calendar, is_changed
from racedata.loader.follow import Source, follow
from racedata.loader.merge import Addition, Part, Rule
from racedata.loader.replacement import (
    FAULTS,
    add_database_argument,
    copy_attributes,
    fault_text,
    locked,
    progress_of_terminal,
    replacement,
    run,
    say,
)
from racedata.loader.schedule import Expected
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
from racedata.loader.tables import BY_NAME, KINDS

DEFAULT = (JOLPICA, PUBLISHED["f1db"])  # the first is preferred

# Kinds of records that an API, and f1db, do not have. From an API that has practice and sprint qualifying, they are
# fetched with the results of the race.
NOT_OF_AN_API, NOT_OF_F1DB = ("practice", "sprint_qualifying"), ("lap_times",)
LAPS = 1200  # of a race that is not here, to tell how many requests it takes
LAST_SEASON = 9999  # that a date can have
CANCELLED_AFTER = timedelta(hours=12)  # a calendar may be incomplete for some time


class NothingNew(Exception):
    """The new database would have the same rows as the old one."""


class Refresh:
    """A refresh of the database at `path` from sources at `addresses`, the first of which is preferred.

    `season` limits it to one season, with all details of its races. `say` prints a line.
    """

    def __init__(
        self,
        path: str,
        addresses: Sequence[str],
        season: int | None,
        corrections: Path | None,
        progress: Progress,
        say: Callable[[str], object],
        new_api: Callable[[str, Progress], Api] = Api,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.addresses = [address.rstrip("/") if is_api(address) else address for address in addresses]
        self.path, self.season, self.corrections = Path(path), season, corrections
        self.progress, self.say, self.new_api, self.now = progress, say, new_api, now
        self.names = {address: name_of(address) for address in self.addresses}  # now: a folder may change or go
        self.order = list(self.names.values())
        self.first = LAST_SEASON  # to bring; `run` sets it before any source has changed the database
        self.digests: dict[str, dict[str, str]] = {}  # of what was fetched from APIs, by address
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
        before = self.checksum()
        self.lacked, self.lacks = self.noted_as_lacking(address), {}
        release = release_checksum(address, self.progress) if is_release(address) else None
        if is_api(address):
            api = self.new_api(address, self.progress)
            requests = api.requests
            changes = self.ask_api(api)
            why = f" after {api.requests - requests} requests to {api.url}"
        elif self.has_nothing_new(address, release):
            changes, why = 0, f": no later release at {address}"
            self.lacks = {**self.lacked}
        else:
            changes, why = self.ask_dump(address), f" after {address}"
        self.note(address, release, before)
        self.say(f"{self.path}: {'new data' if changes else 'nothing new'}{why}")
        return changes

    def has_nothing_new(self, address: str, release: str | None) -> bool:
        """Whether a release was read before, and lacks no race that now counts as cancelled."""
        if not release or self.season or release != self.known_release(self.names[address]):
            return False
        return not any(map(self.is_long_ago, self.lacked.values()))

    def ask_dump(self, address: str) -> int:
        def fill(stage: Stage) -> list[str]:
            remarks = read_dump(dump, stage, is_loaded=False)
            if self.season:
                found = stage.db.execute("SELECT DISTINCT year FROM dump.races ORDER BY year").fetchall()
                check_season(self.season, [year for (year,) in found], address)
            return remarks

        with open_dump(address, os.environ.get("JOLPICA_TOKEN"), self.progress) as dump:
            with closing(OldDatabase(self.path)) as old:
                first = self.season or old.first_season([])
            years = [self.season] if self.season else range(first, LAST_SEASON)
            return self.store(
                Addition(
                    fill,
                    self.rule(address),
                    years,
                    has_calendars=True,
                    may_shrink=bool(self.season),
                    are_cancelled=self.are_cancelled,
                )
            )

    def ask_api(self, api: Api) -> int:
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
            api.renew_limits()
            with closing(OldDatabase(self.path)) as old:
                races = fetch_calendar(api, year)
                if not races:  # in winter, an API may list the next season before its calendar is known
                    continue
                calendars += 1
                fetched = SeasonFetch(api, old, seasons[year], races, bool(self.season), seen)
                fetched.fetch()
                self.say(fetched.report())
                changes += self.store(
                    Addition(
                        fetched.fill,
                        rule,
                        has_calendars=True,
                        may_shrink=bool(self.season),
                        are_cancelled=self.are_cancelled,
                        updates_lists=True,
                    )
                )
                self.digests[api.url] = fetched.digests  # of the latest season
        if not calendars:
            what = f"no races in any season from {first} on; expected the calendar of at least one"
            raise LoadError(f"{api.url}: {what}")
        return changes

    def announce(self, api: Api, years: Sequence[int]) -> None:
        """Says how many requests it takes, if there are several seasons to bring."""
        if len(years) < 2:
            return
        with closing(OldDatabase(self.path)) as old:
            of_race = 3 + math.ceil(LAPS / api.limit)
            lists = 2 + 2 * math.ceil(RACES * 20 / api.limit)
            requests = sum(lists + of_race * old.races_to_fetch(year) for year in years)
        quota, seconds = PACE[-1]
        hint = ""
        if requests > quota:
            hint = f", at most {quota} in {seconds // 60} minutes; to load a dump first is quicker: {COMMAND} load"
        self.say(f"{years[0]} to {years[-1]}: about {requests:,} requests to {api.url}{hint}")

    def store(self, addition: Addition) -> int:
        """Builds the new database. Returns 1 if it differs and is stored, else 0."""
        with suppress(NothingNew), replacement(str(self.path)) as new:
            with closing(OldDatabase(self.path)) as old:
                is_sample = earlier.is_sample(old.db)
                fill = partial(earlier.read, old.db)
                built = build(new, fill, [addition], self.corrections, is_sample, self.progress)
                changes = old.differences(new)
            for line in (*built.merged, *changes):
                self.say(line)
            if not changes:
                raise NothingNew  # `replacement` then removes the new file, and the old one stays
            return 1
        return 0

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

    def is_long_ago(self, time: str) -> bool:
        return time <= timestamp(self.now() - CANCELLED_AFTER)

    # What the last refreshes found is in a file beside the database, because they may leave the database as it is.

    def known_release(self, name: str) -> str | None:
        """The SHA-256 of the latest release of a source that was refreshed from, or loaded, into this database."""
        with closing(OldDatabase(self.path)) as old:
            found = old.db.execute("SELECT checksum FROM sources WHERE name = ?", (name,)).fetchone()
        noted = read_refreshes(self.path)
        if noted.get(name, {}).get("database") == self.checksum():
            return noted[name].get("release")
        return str(found[0]) if found else None

    def seen(self, url: str) -> Mapping[str, str]:
        """The digests of the lists that were fetched from an API for this database, by race and endpoint."""
        noted = read_refreshes(self.path).get(url, {})
        found = noted.get("seen") if noted.get("database") == self.checksum() else None
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

    def note(self, address: str, release: str | None, before: str) -> None:
        """Notes that a source was asked. `before` is the checksum that the database had."""
        checksum = self.checksum()  # not that of what another program stores while this one waits for its lock
        # Without this file, the next refresh only asks for more.
        with suppress(OSError), locked(Path(os.path.realpath(self.path)).parent, wait=True):
            noted = read_refreshes(self.path)
            for other in noted.values():
                if other.get("database") == before:  # what other sources gave is still there
                    other["database"] = checksum
            noted[self.names[address]] = {
                "refreshedAt": utc_now(),
                "database": checksum,
                **({"release": release} if release else {}),
                **({"seen": self.digests[address]} if address in self.digests else {}),
                **({"lacks": self.lacks} if self.lacks else {}),
            }
            path = refreshes_path(self.path)
            new = path.with_name(f".{path.name}.writing")
            try:
                new.unlink(missing_ok=True)  # left by a refresh that was killed
                new.write_text(json.dumps(noted), encoding="utf-8")
                copy_attributes(self.path, new)
                os.replace(new, path)
            finally:
                new.unlink(missing_ok=True)

    def checksum(self) -> str:
        """The checksum of the database, which its file ends with."""
        with self.path.open("rb") as file:
            file.seek(-CHECKSUM_BYTES, os.SEEK_END)
            return file.read().hex()


class Followed:
    """A source for follow.py. `refresh` knows all addresses, because their order says what is preferred."""

    def __init__(self, address: str, refresh: Refresh, said: list[str]) -> None:
        self.address, self.refresh, self.said = address, refresh, said

    def source(self) -> Source:
        lacking = NOT_OF_AN_API if is_api(self.address) else NOT_OF_F1DB
        kinds = [kind for kind in KINDS[1:-1] if kind not in lacking]
        return Source(kinds, self.has_news, self.bring, only_after_race=not is_api(self.address))

    def bring(self) -> str:
        """Brings the database up to date. Returns what changed, in one line."""
        self.said.clear()
        changes = self.refresh.ask(self.address)
        return "; ".join(" ".join(line.split()) for line in self.said) if changes else ""

    def has_news(self, asked: Sequence[Expected]) -> bool:
        """Whether the source has records that are missing here, or other results."""
        if not is_api(self.address):
            known = self.refresh.known_release(self.refresh.names[self.address])
            # Of other dumps, only a download would tell: they are refreshed once a day.
            return is_release(self.address) and release_checksum(self.address, self.refresh.progress) != known
        api = self.refresh.new_api(self.address, self.refresh.progress)
        api.renew_limits()
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


def follow_sources(path: str, addresses: Sequence[str], corrections: Path | None) -> None:
    """Follows sources, until a signal ends it."""
    progress = progress_of_terminal()
    apis: dict[str, Api] = {}  # each keeps its pace

    def new_api(url: str, progress: Progress) -> Api:
        # A failure is tried again after the wait of follow.py.
        return apis.setdefault(url, Api(url, progress, tries=1))

    said: list[str] = []
    refresh = Refresh(path, addresses, None, corrections, progress, said.append, new_api)
    configured = addresses_in(os.environ.get("RACEDATA_SOURCE", ""))

    def load_configured() -> str:
        if has_more_than_the_sample(Path(path)):  # another program has loaded it meanwhile
            return ""
        make_default_folder(path)
        return load(configured, path, corrections, progress)[-1]

    is_needed = configured and not has_more_than_the_sample(Path(path))
    # As in Refresh.run, the preferred source has the last word: first, all are due at once.
    sources = [Followed(address, refresh, said).source() for address in reversed(refresh.addresses)]
    follow(path, sources, load_configured if is_needed else None)


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


def main(arguments: Sequence[str]) -> None:
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
        help="go on for good: look again when the calendar says that there may be something new, and at least daily; "
        "without a database, or with only the sample, load the sources in RACEDATA_SOURCE first",
    )
    add_database_argument(parser)
    add_corrections_argument(parser)
    parsed = parser.parse_args(arguments)
    if parsed.follow and parsed.season:
        parser.error("--follow and --season: expected one of them")
    addresses = [address for text in parsed.addresses or [] for address in addresses_in(text)] or DEFAULT

    if parsed.follow:
        follow_sources(parsed.database, addresses, parsed.corrections)
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

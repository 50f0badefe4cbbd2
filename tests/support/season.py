"""A season played in simulated time: its sources publish late, correct, fail and move races.

Or with the real client of an API, which asks a real server.
"""

import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from math import ceil
from pathlib import Path
from typing import NamedTuple

from racedata.loader.errors import LoadError
from racedata.loader.existing import expected_records, open_read_only
from racedata.loader.follow import CheckLoop, FollowedSource, followed_source
from racedata.loader.refresh import Refresh
from racedata.loader.schedule import FIRST_CHECK, Expected
from racedata.loader.sources import Pace, Source
from racedata.loader.sources.api_client import JOLPICA_LIMITS
from racedata.model import KINDS, RECORDS
from support.apis import Answer
from support.loads import loader_settings

Key = tuple[int, str, str]  # round, session and kind

CLASSIFICATIONS = ("qualifying", "sprint_results", "results")
API_KINDS = {kind.name for kind in KINDS.values() if kind.endpoint and kind.is_in_every_api}
F1DB_KINDS = {*RECORDS} - {"lap_times"}


class SeasonOver(BaseException):
    """The simulated year has ended."""


def hours(least: float, most: float) -> timedelta:
    return timedelta(hours=random.uniform(least, most))


def source_that(**facts: object) -> Source:
    """A source that is nothing but these facts, such as the kinds that it publishes."""
    source: Source = type("Simulated", (Source,), facts)("", Pace())
    return source


class Season:
    """The year, and a database as at its beginning: with the calendar, and without records."""

    def __init__(
        self, database: Path, year: int, moves: Mapping[int, tuple[timedelta, timedelta]]
    ) -> None:
        """`moves` says by round how long before the race it is moved, and by how much."""
        self.year, self.now = year, datetime(year, 1, 1, tzinfo=UTC)
        self.db = sqlite3.connect(":memory:")
        with closing(open_read_only(database)) as whole:
            whole.backup(self.db)
        for kind in API_KINDS | F1DB_KINDS:
            self.db.execute(
                f"DELETE FROM {kind} WHERE raceId IN (SELECT raceId FROM races WHERE year >= ?)",
                (year,),
            )
        self.db.execute("DELETE FROM races WHERE year > ?", (year,))
        self.ids = dict(
            self.db.execute("SELECT round, raceId FROM races WHERE year = ?", (year,)).fetchall()
        )
        self.read: list[Expected] = []  # what was read from the database since it was changed
        # When each session really starts, by key.
        self.starts = {each[1:4]: each.starts for each in self.expected() if each.year == year}
        self.moves = {
            round: (self.starts[round, "race", "results"] - ahead, by)
            for round, (ahead, by) in moves.items()
        }
        self.starts = {
            key: starts + moves.get(key[0], [timedelta()])[-1]
            for key, starts in self.starts.items()
        }
        self.stored: dict[Key, datetime] = {}  # when each key was first
        self.next_tries: list[timedelta] = []  # after each fault

    def races(self) -> dict[int, datetime]:
        """When each race really starts."""
        return {
            round: starts for (round, _, kind), starts in self.starts.items() if kind == "results"
        }

    def play(self, sources: Sequence["SimulatedSource"]) -> None:
        followed = [
            FollowedSource(
                source_that(
                    kinds=source.kinds, publishes_after_race=isinstance(source, SimulatedF1db)
                ),
                source.has_news,
                source.refresh,
            )
            for source in sources
        ]
        with closing(self.db), suppress(SeasonOver):
            loop = CheckLoop(
                self.expected, lambda: self.now, self.wait, lambda text: None, self.note_fault
            )
            while True:  # of several threads, the one that is due first
                loop.check(min(followed, key=lambda each: each.due))

    def note_fault(self, fault: Exception, due: datetime) -> None:
        self.next_tries.append(due - self.now)

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        if self.now.year > self.year:
            raise SeasonOver

    def expected(self) -> list[Expected]:
        self.read = self.read or expected_records(self.db)
        return self.read

    def store(self, key: Key) -> None:
        if key not in self.stored:
            self.stored[key], self.read = self.now, []
            round, session, kind = key
            columns = [
                name
                for _, name, _, needed, *_ in self.db.execute(f"PRAGMA table_info({kind})")
                if needed
            ]
            values = [
                {"raceId": self.ids[round], "session": session[-1]}.get(column, 1)
                for column in columns
            ]
            self.db.execute(
                f"INSERT INTO {kind} ({', '.join(columns)}) VALUES "
                f"({', '.join('?' * len(values))})",
                values,
            )

    def announced(self) -> list[int]:
        """The rounds that are known to be moved, but not in the database."""
        return [round for round, (announced, _) in self.moves.items() if announced <= self.now]

    def store_calendar(self) -> None:
        for round in self.announced():
            _, by = self.moves.pop(round)
            self.read = []
            for table in ("races", "sessions"):
                sql = f"UPDATE {table} SET date = date(date, ?) WHERE raceId = ?"
                self.db.execute(sql, (f"{by.days} days", self.ids[round]))


class SimulatedSource:
    """What a source publishes when, and when it was asked."""

    def __init__(
        self, season: Season, kinds: Collection[str], outages: Sequence[tuple[datetime, datetime]]
    ) -> None:
        self.season, self.kinds, self.outages = season, kinds, outages
        # When it publishes each version of records, and when each was fetched.
        self.versions: dict[Key, list[datetime]] = {
            key: [] for key in season.starts if key[2] in kinds
        }
        self.fetched: dict[Key, list[datetime]] = {key: [] for key in self.versions}
        self.requests: list[datetime] = []
        self.questions = self.in_vain = 0

    def request(self, count: int = 1) -> None:
        for _ in range(count):
            self.season.now += timedelta(seconds=1)
            self.requests.append(self.season.now)
            if any(start <= self.season.now < end for start, end in self.outages):
                raise LoadError("status 503; expected 200")

    def available(self, published: datetime, wait: timedelta) -> datetime:
        """When something can be had: after an outage that is on then, or begins within `wait`."""
        return next(
            (end for start, end in self.outages if start - wait <= published < end), published
        )

    def news(self, key: Key) -> int:
        return sum(time <= self.season.now for time in self.versions[key]) - len(self.fetched[key])

    def has_news(self, asked: Sequence[Expected]) -> bool:
        self.questions += 1
        found = self.answer(asked)
        self.in_vain += not found
        return found

    def answer(self, asked: Sequence[Expected]) -> bool:
        raise NotImplementedError

    def refresh(self) -> str:
        new = {key: count for key in self.versions if (count := self.news(key))}
        self.request(self.cost(new))
        for key, count in new.items():
            self.season.store(key)
            self.fetched[key] += [self.season.now] * count
        return "new" if new else ""

    def cost(self, new: Collection[Key]) -> int:
        raise NotImplementedError


class SimulatedApi(SimulatedSource):
    """Publishes each kind on its own: laps within a day, and `late` rounds ten hours later."""

    def __init__(
        self, season: Season, outages: Sequence[tuple[datetime, datetime]], late: Collection[int]
    ) -> None:
        super().__init__(season, API_KINDS, outages)
        delays = {
            "results": 0,
            "lap_times": 24,
            "pit_stops": 2,
            "driver_standings": 0.2,
            "constructor_standings": 0.2,
        }
        for (round, session, kind), starts in season.starts.items():
            if kind in CLASSIFICATIONS:
                published = starts + FIRST_CHECK + (hours(9, 11) if round in late else hours(0, 4))
                for each in delays if kind == "results" else [kind]:
                    self.versions[round, session, each] = [
                        published + hours(0, delays.get(each, 0))
                    ]
                if kind == "results":
                    corrected = [published + hours(1, 20), published + hours(100, 300)]
                    self.versions[round, session, kind] += corrected[: round % 3]

    def answer(self, asked: Sequence[Expected]) -> bool:
        for records in asked:
            self.request()
            if self.news(records[1:4]):
                return True
        if any(records.kind in CLASSIFICATIONS and not records.is_stored for records in asked):
            self.request()  # the calendar: the session may have been moved
            return bool(self.season.announced())
        return False

    def refresh(self) -> str:
        changed = super().refresh()
        self.season.store_calendar()
        return changed

    def cost(self, new: Collection[Key]) -> int:
        """Requests: calendar, lists in pages of 100; stops, laps, standings of new races."""
        rows = Counter(key[2] for key, fetched in self.fetched.items() if fetched)
        lists = sum(ceil((20 * rows[kind] + 1) / 100) for kind in CLASSIFICATIONS)
        return (
            2
            + lists
            + 4 * len({key[0] for key in new})
            + 12 * sum(key[2] == "lap_times" for key in new)
        )


class SimulatedF1db(SimulatedSource):
    """Has a release of a weekend two to six hours after the race; another two days later."""

    def __init__(self, season: Season) -> None:
        super().__init__(season, F1DB_KINDS, [])
        releases = {round: starts + hours(3, 7) for round, starts in season.races().items()}
        self.versions = {
            key: [releases[key[0]], releases[key[0]] + timedelta(days=2)] for key in self.versions
        }

    def answer(self, asked: Sequence[Expected]) -> bool:
        self.request()
        assert all(
            self.season.races()[each.round] + FIRST_CHECK <= self.season.now for each in asked
        )
        return any(map(self.news, self.versions))

    def cost(self, new: Collection[Key]) -> int:
        return 2 if new else 1


class SimulatedTime:
    """Clocks, in UTC, that only waits and questions move. At the end, they raise SeasonOver."""

    def __init__(self, now: datetime, end: datetime) -> None:
        self.now, self.end = now, end

    def utc(self) -> datetime:
        return self.now

    def seconds(self) -> float:
        return self.now.timestamp()

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        if self.now > self.end:
            raise SeasonOver


class Answered(NamedTuple):
    """What an API was asked, and when."""

    time: datetime
    path: str
    status: int


# Jolpica-F1 quotes it in docs/rate_limits.md.
THROTTLED: Answer = (
    429,
    {"Content-Type": "application/json"},
    b'{"detail":"Request was throttled."}',
)


class LimitedApi:
    """An API with Jolpica-F1's limits or others. `answer` is for `served`, `published` its data.

    Like Jolpica-F1's, its refusals do not say how long to wait.
    """

    def __init__(
        self,
        time: SimulatedTime,
        published: Callable[[str], Answer],
        limits: Collection[tuple[int, int]] = JOLPICA_LIMITS,
        too_many: Answer = THROTTLED,
    ) -> None:
        self.time, self.published, self.limits = time, published, limits
        self.too_many = too_many
        self.answered: list[Answered] = []

    def answer(self, path: str) -> Answer:
        self.time.now += timedelta(seconds=0.1)
        found = self.refusal() or self.published(path)
        self.answered.append(Answered(self.time.now, path, found[0]))
        return found

    def refusal(self) -> Answer | None:
        served = [each.time for each in self.answered if each.status == 200]
        for count, seconds in self.limits:
            if len(served) >= count and served[-count] > self.time.now - timedelta(seconds=seconds):
                return self.too_many
        return None


def follow_source(database: Path, address: str, time: SimulatedTime) -> list[str]:
    """Follows a source until the end, as the command does. Returns the complaints."""
    complaints: list[str] = []

    def expected() -> list[Expected]:
        with closing(open_read_only(database)) as db:
            return expected_records(db)

    new_pace = partial(Pace, time.seconds, time.sleep, time.seconds)
    refresh = Refresh(loader_settings(database), [address], None, lambda text: None, new_pace)
    source = followed_source(refresh, refresh.sources[0])
    with suppress(SeasonOver):
        CheckLoop(
            expected,
            time.utc,
            time.sleep,
            lambda line: None,
            lambda error, due: complaints.append(str(error)),
        ).run(source)
    return complaints

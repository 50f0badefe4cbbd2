"""Following in simulated time, with the real client of an API, which asks a real server."""

from collections.abc import Callable, Collection
from contextlib import closing, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from racedata.loader.existing import expected_records, open_read_only
from racedata.loader.follow import CheckLoop, FollowedSource, followed_source
from racedata.loader.refresh import Refresh
from racedata.loader.schedule import Expected
from racedata.loader.sources import Pace, Source
from racedata.loader.sources.api_client import JOLPICA_LIMITS
from support.apis import Answer
from support.loads import loader_settings


class SeasonOver(BaseException):
    """The simulated time has ended."""


def source_that(**facts: object) -> Source:
    """A source that is nothing but these facts, such as the kinds that it publishes."""
    source: Source = type("Simulated", (Source,), facts)("", Pace())
    return source


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


def follow_source(
    database: Path,
    time: SimulatedTime,
    *addresses: str,
    note: Callable[[str], None] = lambda line: None,
) -> list[str]:
    """Follows sources until the end, as the command does. Returns the complaints."""
    complaints: list[str] = []

    def expected() -> list[Expected]:
        with closing(open_read_only(database)) as db:
            return expected_records(db)

    new_pace = partial(Pace, time.seconds, time.sleep, time.seconds)

    def following(number: int) -> FollowedSource:
        refresh = Refresh(loader_settings(database), addresses, None, lambda text: None, new_pace)
        return followed_source(refresh, refresh.sources[number])

    each = [following(number) for number in range(len(addresses))]
    loop = CheckLoop(
        expected, time.utc, time.sleep, note, lambda error, due: complaints.append(str(error))
    )
    with suppress(SeasonOver):
        while True:
            loop.check(min(each, key=lambda one: one.due))
    return complaints

"""The interface of a source. Each type of source is a module, perhaps with others of its prefix."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import cached_property
from typing import ClassVar, NamedTuple

from racedata.loader.copies import Copy
from racedata.loader.delivery import Delivery
from racedata.loader.errors import LoadError, Progress
from racedata.loader.parts import Tables
from racedata.loader.schedule import Expected
from racedata.loader.sources.history import History
from racedata.loader.sources.pace import Pace
from racedata.loader.stage import Stage, staged
from racedata.loader.store import StoredSource
from racedata.model import RECORDS


class Task(NamedTuple):
    """What a refresh wants of a source, and what it does for the source."""

    history: History
    # the only season to bring, whole; None: every season from the first that is unfinished
    season: int | None
    first: int  # the first unfinished season, before any source changed the database
    is_named: bool  # whether the command names the source
    lacks_cancelled: bool  # whether the source lacked a race that now counts as cancelled
    progress: Progress
    say: Callable[[str], object]
    # These store at once what the source has, or replace the database with it. If they raise one of
    # FAULTS, it was of no use.
    deliver: Callable[[Delivery], None]
    replace_with: Callable[[Copy], None]


class Source:
    """A source. Its functions raise one of FAULTS if they fail.

    Each type has `accepts`, `has_news` and `bring`. The rest:

    | | its mark | `read` | `copied` | `bring` calls |
    |---|---|---|---|---|
    | dump | `is_dump` | yes | no | `task.deliver` |
    | API | `is_api` | refuses | no | `task.deliver` |
    | provisional | `is_provisional` | refuses | no | `task.deliver` |
    | whole database | `is_whole` | no, but its own `opened` | yes | `task.replace_with` |

    If the store is lost, rebuild.py fills it again from the database, which has few facts about a
    source. So these must hold:

    - A dump has a checksum. A source without one is taken for an API, unless it is provisional. The
      parts of an API may be short or outdated, and its facts about drivers replace a dump's.
    - A provisional source accepts the address `name:address`.

    The lists of a provisional source, such as drivers, repeat ours. So sides.py does not compare
    them, and no driver gets his permanent number from them.
    """

    # kinds that it may publish for a refresh: names in model.py
    kinds: ClassVar[Collection[str]] = RECORDS
    # whether it publishes all sessions of a weekend together; otherwise after each session
    publishes_after_race: ClassVar[bool] = True
    # how long after the planned end of a session it may have records; None: FIRST_CHECK counts
    after_end: ClassVar[timedelta | None] = None
    # whether another source's records replace its own as soon as they exist
    is_provisional: ClassVar[bool] = False
    # whether it is an API with final records
    is_api: ClassVar[bool] = False
    # whether it is a dump, which a load reads whole
    is_dump: ClassVar[bool] = False
    # whether it is a whole database, which replaces ours as it is
    is_whole: ClassVar[bool] = False
    # how often it is asked while it is followed; None: when the calendar says so
    interval: ClassVar[timedelta | None] = None

    # the licence of its data, if that is known before it is read
    licence: str | None = None

    def __init__(self, address: str, pace: Pace) -> None:
        self.address, self.pace = address, pace

    @cached_property
    def name(self) -> str:
        """Its name in the table `sources`. If only reading it tells the name, a refresh sets it."""
        return self.address

    @cached_property
    def is_rest(self) -> bool:
        """Whether it is the rest of an export: then its rows have the ids of the export."""
        return False

    @classmethod
    def accepts(cls, address: str) -> bool:
        """Whether this type of source may have such an address."""
        raise NotImplementedError

    def read(self, stage: Stage) -> None:
        """Fills a Stage with all that the source has."""
        raise NotImplementedError

    @contextmanager
    def opened(self, progress: Progress) -> Iterator[tuple[Tables, list[StoredSource]]]:
        """All that the source has, and the sources of that, by their numbers."""
        with staged(progress) as stage:
            self.read(stage)
            yield Tables(stage.db, "stage"), stage.sources

    def copied(self, progress: Progress) -> AbstractContextManager[Copy]:
        """A checked copy of the source, if it is a whole database."""
        raise NotImplementedError

    def has_news(self, expected: Sequence[Expected], history: History, progress: Progress) -> bool:
        """Whether it has new records or changed results: one cheap request."""
        raise NotImplementedError

    def bring(self, task: Task) -> str:
        """Calls `task.deliver` for each delivery of what the task wants, such as a season.

        A part of a delivery has columns of `parts.columns_of`, with references and texts instead of
        ids. The results of a race come before its fastest laps. A part counts only if the delivery
        has a calendar with its race, and the lists have what it names: `with_our_calendar` adds
        both for a source that has only records. Returns how the source got them: `after 12 requests
        to …`.
        """
        raise NotImplementedError


def check_season(season: int, found: Sequence[int], place: str) -> None:
    """Raises LoadError, which begins with `place`, unless the season is among the found ones."""
    if season not in found:
        seasons = f"{found[0]} to {found[-1]}" if found else "no races"
        raise LoadError(f"{place}: no season {season}; it has {seasons}")

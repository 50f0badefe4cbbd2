"""Chooses what counts, from what every source says. It needs no SQL, file or clock.

docs/data.md has the rules as a table. Those for calendars and records are here, and whose ids come
first. lists.py has those for drivers, their numbers, and the like; fill.py, those for ids, the
articles of seasons and the constructors of cars. store.py has the sources, calendars and parts.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from racedata.hints import COMMAND
from racedata.loader.errors import LoadError
from racedata.loader.matching import calendar_races, days_after, days_between, match_across_sources
from racedata.loader.store import Races, StoredCalendar, StoredPart, StoredSource

DAYS_FROM_RACE = 4  # maximum between a session and its race
# An API's part that is not confirmed for this time comes after a later dump.
CONFIRMED_DAYS = 30

# by source, season and the key of the race
PartsOfRaces = dict[tuple[str, int, str], list[StoredPart]]


class Order(NamedTuple):
    """The sort key of the parts of a kind in a race: the lowest counts.

    An API that has not confirmed its part for long may no longer exist. So outdated comes before
    short.
    """

    is_provisional: bool
    is_outdated: bool
    is_short: bool  # see short_parts
    place: int  # of the source in the list, among those that have a part


@dataclass(eq=False)  # a key of dicts, as in Filling.race_ids
class ChosenRace:
    """A race of the chosen calendar, and what counts of it."""

    season: int
    facts: dict[str, Any]  # the columns of `races`, with the reference of the circuit
    calendar: StoredCalendar  # the one that it is from
    keys: dict[str, str] = field(default_factory=dict)  # of the race, by source
    parts: dict[str, StoredPart] = field(default_factory=dict)  # by kind
    sessions: Races = ()
    sessions_from: StoredCalendar | None = None  # the calendar that has them
    # other parts of the race, by kind, the next best first
    others: dict[str, list[StoredPart]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.facts["name"])

    @property
    def label(self) -> str:
        return f"{self.season}/{self.facts['round']} {self.name}"

    def ranked_parts(self, kind: str) -> list[StoredPart]:
        """All parts of a kind, the one that counts first. It may be that no entries count."""
        counts = [self.parts[kind]] if kind in self.parts else []
        return [*counts, *self.others.get(kind, ())]


class Choice(NamedTuple):
    """What counts."""

    races: Sequence[ChosenRace]  # by season and round
    unmatched: Sequence[str]  # races with records that the chosen calendars lack
    smaller: Sequence[str]  # parts of APIs that have fewer entrants than others
    newest: Mapping[str, str]  # the date of the newest result of each source


def choose(
    sources: Sequence[StoredSource],
    calendars: Iterable[StoredCalendar],
    parts: Iterable[StoredPart],
    correct: Callable[[int, Races], Races],
    seasons: Collection[int] | None = None,
) -> Choice:
    """Chooses the calendar of each season, and the parts of each race.

    `sources` has the list, the most trusted first. `correct` corrects the dates of a season,
    which decide whether two races are the same. With `seasons`, it chooses only for these.
    """
    by_name = {source.name: source for source in sources}
    by_season: dict[int, dict[str, StoredCalendar]] = {}
    for calendar in calendars:
        if calendar.source in by_name:
            by_season.setdefault(calendar.season, {})[calendar.source] = calendar
    by_race: PartsOfRaces = {}
    for part in parts:
        if part.source in by_name:
            by_race.setdefault((part.source, part.season, part.race), []).append(part)
    newest = newest_results(by_season, by_race)
    races: list[ChosenRace] = []
    unmatched: list[str] = []
    smaller: list[str] = []
    for season, calendars_of_season in sorted(by_season.items()):
        if seasons is not None and season not in seasons:
            continue
        chosen = calendar_that_counts(by_name, calendars_of_season, newest)
        if not chosen:
            continue
        of_season = chosen_races(season, chosen, calendars_of_season, sources, correct)
        unmatched += unmatched_races(of_season, calendars_of_season, by_race)
        for race in of_season:
            candidates = candidates_for(race, by_name, by_race)
            smaller += choose_parts(race, candidates, by_name, newest)
        races += of_season
    return Choice(races, list(dict.fromkeys(unmatched)), smaller, newest)


def candidates_for(
    race: ChosenRace, sources: Iterable[str], by_race: PartsOfRaces
) -> dict[str, list[StoredPart]]:
    """All parts of a race, by kind, those of the most trusted source first."""
    candidates: dict[str, list[StoredPart]] = {}
    for name in sources:
        for part in by_race.get((name, race.season, race.keys.get(name, "")), ()):
            candidates.setdefault(part.kind, []).append(part)
    return candidates


def unmatched_races(
    races: Sequence[ChosenRace], calendars: Mapping[str, StoredCalendar], by_race: PartsOfRaces
) -> Iterator[str]:
    """The races with records that the chosen calendar of their season lacks."""
    matched = {(name, key) for race in races for name, key in race.keys.items()}
    for name, calendar in calendars.items():
        for race in calendar.races:
            key = race["key"]
            if (name, key) not in matched and (name, calendar.season, key) in by_race:
                yield f"{calendar.season}/{race['round']} {race['name']}"


def newest_results(
    by_season: Mapping[int, Mapping[str, StoredCalendar]], by_race: PartsOfRaces
) -> dict[str, str]:
    """The date of the latest race of which each source has results."""
    newest: dict[str, str] = {}
    for season, calendars_by_source in by_season.items():
        for name, calendar in calendars_by_source.items():
            for race in calendar.races:
                parts = by_race.get((name, season, race["key"]), ())
                if any(part.kind == "results" for part in parts):
                    newest[name] = max(newest.get(name, ""), race["date"])
    return newest


def calendar_that_counts(
    by_name: Mapping[str, StoredSource],
    calendars_by_source: Mapping[str, StoredCalendar],
    newest: Mapping[str, str],
) -> StoredCalendar | None:
    """The calendar of a season: of the first source whose calendar may count and is not outdated;
    if all are, of the first. None if no source has one. A provisional source's never counts.
    """
    final = [name for name, source in by_name.items() if not source.is_provisional]
    found = (calendars_by_source[name] for name in final if name in calendars_by_source)
    calendars = [calendar for calendar in found if calendar.counting is not None]

    def is_old(calendar: StoredCalendar) -> bool:
        source = by_name[calendar.source]
        others = [by_name[other.source] for other in calendars]
        dumps = dumps_with_results_after(newest.get(source.name, ""), others, newest)
        return is_outdated(source, calendar.fetched_at, source.reading, dumps)

    return min(calendars, key=is_old, default=None)


def chosen_races(
    season: int,
    chosen: StoredCalendar,
    calendars: Mapping[str, StoredCalendar],
    sources: Sequence[StoredSource],
    correct: Callable[[int, Races], Races],
) -> list[ChosenRace]:
    """The races of a season, with their keys in all calendars, their sessions and start times."""
    assert chosen.counting is not None
    counting: Races = sorted(chosen.counting, key=lambda race: int(race["round"]))
    races = [
        ChosenRace(
            season,
            {name: value for name, value in race.items() if name not in ("key", "sessions")},
            chosen,
            {},
        )
        for race in counting
    ]
    ours = correct(season, counting)
    for name in (chosen.source, *(each.name for each in sources if each.name != chosen.source)):
        calendar = calendars.get(name)
        if not calendar:
            continue
        if calendar is chosen:
            theirs, corrected = counting, ours
            matched: Mapping[int, int] = {at: at for at in range(len(races))}
        else:
            theirs, corrected = calendar.races, correct(season, calendar.races)
            matched = match_across_sources(calendar_races(corrected), calendar_races(ours))
        for at, own in matched.items():
            races[own].keys[name] = theirs[at]["key"]
            take_times(races[own], ours[own]["date"], theirs[at], corrected[at]["date"], calendar)
    return races


def take_times(
    race: ChosenRace,
    date: str,
    facts: Mapping[str, Any],
    their_date: str,
    calendar: StoredCalendar,
) -> None:
    """Takes the sessions and the start of a race, if those before had none. `facts` are what the
    calendar says; both dates are corrected.
    """
    days = [session["date"] for session in facts["sessions"] if session["date"]]
    is_own = calendar is race.calendar
    if facts["sessions"] and (
        is_own
        or (
            days
            and not any(session["date"] for session in race.sessions)
            and all(days_between(day, date) <= DAYS_FROM_RACE for day in days)
        )
    ):
        race.sessions, race.sessions_from = facts["sessions"], calendar
    if race.facts["time"] is None and their_date == date:
        race.facts["time"] = facts["time"]


def choose_parts(
    race: ChosenRace,
    candidates: Mapping[str, Sequence[StoredPart]],
    by_name: Mapping[str, StoredSource],
    newest: Mapping[str, str],
) -> list[str]:
    """Chooses the parts of a race. Returns those that lose because they are short."""
    smaller = []
    dumps = dumps_with_results_after(race.facts["date"], by_name.values(), newest)
    # `short_parts` needs the results that count
    for kind in sorted(candidates, key=lambda kind: kind != "results"):
        if kind == "entries":
            continue
        parts = candidates[kind]
        short = short_parts(parts, race, by_name)
        orders = {
            part.source: Order(
                by_name[part.source].is_provisional,
                is_outdated(by_name[part.source], part.confirmed_at, part.reading, dumps),
                part in short,
                place,
            )
            for place, part in enumerate(parts)
        }
        first, *others = sorted(parts, key=lambda part: orders[part.source])
        race.parts[kind], race.others[kind] = first, others
        if any(orders[part.source].place < orders[first.source].place for part in short):
            smaller.append(f"{kind} of {race.label}")
    choose_entries(race, candidates.get("entries", ()), by_name)
    return smaller


def short_parts(
    parts: Sequence[StoredPart], race: ChosenRace, by_name: Mapping[str, StoredSource]
) -> list[StoredPart]:
    """The parts of a kind that come later in `Order` because they are short. Parts of provisional
    sources never are.

    An API's part is short if another part has more drivers or constructors. Any part that comes
    after a short one is short too, if it has no more of them.

    If an API has 18 drivers, the first dump 17 and the second dump 20, then the 20 count. The 18 of
    the API are short. So are the 17, or they would come first, although they are fewer than the 18.
    """
    final = [part for part in parts if not by_name[part.source].is_provisional]
    most = max((part.entrants for part in final), default=0)
    results = race.parts.get("results")
    short: list[StoredPart] = []
    for part in final:
        if may_be_short(part.kind, bool(results and results.source == part.source)):
            continue
        lacks_some = by_name[part.source].is_api and part.entrants < most
        if lacks_some or any(part.entrants <= before.entrants for before in short):
            short.append(part)
    return short


def may_be_short(kind: str, has_results: bool) -> bool:
    """Whether a part may lack drivers. `has_results` says whether its source has the results too:
    then it may leave out the fastest lap of a driver who completed one lap.
    """
    return kind == "entries" or (kind == "fastest_laps" and has_results)


def dumps_with_results_after(
    day: str, sources: Iterable[StoredSource], newest: Mapping[str, str]
) -> list[StoredSource]:
    return [source for source in sources if source.is_loaded and newest.get(source.name, "") > day]


def is_outdated(
    source: StoredSource, confirmed_at: str | None, reading: int, dumps: Iterable[StoredSource]
) -> bool:
    """Whether one of these dumps was read after an API, and more than CONFIRMED_DAYS after the API
    last confirmed a part. Then the part comes after the parts of all other final sources.
    """
    if not source.is_api or confirmed_at is None:
        return False
    return any(
        dump.reading > reading
        # if it was confirmed in the future, the clock was ahead
        and (
            confirmed_at > dump.read_at
            or days_after(confirmed_at[:10], dump.read_at[:10]) > CONFIRMED_DAYS
        )
        for dump in dumps
    )


def choose_entries(
    race: ChosenRace, parts: Sequence[StoredPart], by_name: Mapping[str, StoredSource]
) -> None:
    """Chooses the drivers without a result, from the source of the results.

    An API lists none, so it is completed by the next source that does.
    """
    results = race.parts.get("results")
    for part in parts:
        if results and (part.source == results.source or by_name[results.source].is_api):
            race.parts["entries"] = part
            break
    race.others["entries"] = [part for part in parts if part is not race.parts.get("entries")]


def dumps_among(sources: Sequence[StoredSource]) -> list[StoredSource]:
    """Those that have lists of all drivers, constructors and circuits. A database needs one."""
    return [source for source in sources if not source.is_api and not source.is_provisional]


def base_of(sources: Sequence[StoredSource]) -> StoredSource:
    """The first dump that has ids; or else, the first dump."""
    dumps = dumps_among(sources)
    if not dumps:
        raise LoadError(f"no dump of the list was read; to read one, run: {COMMAND} load SOURCE")
    return next((source for source in dumps if source.ids), dumps[0])

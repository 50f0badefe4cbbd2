"""What several pages show of a race or a season: places, championships, sessions, times."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from racedata.formats import Json, short_time
from racedata.model import KINDS
from racedata.service.addresses import Round, Season
from racedata.service.endpoints import Endpoint
from racedata.service.pages.ask import Ask
from racedata.service.pages.notes import Asterisk, Notes
from racedata.service.serializers import gap_time, sessions_of
from racedata.service.words import points_in_words

T = TypeVar("T")
MOST = 10  # of those who won most often, which pages show

# the texts that tables of places may show
UNKNOWN = {
    **dict.fromkeys(("positionText", "grid", "laps", "time", "points", "wins"), ""),
    **dict.fromkeys(("Q1", "Q2", "Q3"), ""),
}

# The records of a weekend, by the group of their session: `qualifying`, `practice`, `race`, …
RecordsByGroup = Mapping[str, Sequence[Json]]


class ShownSession(NamedTuple):
    """A session of a weekend."""

    name: str  # as in model.py
    label: str
    start: str  # as `start` returns it
    minutes: int  # its usual duration
    anchor: str  # of its results on the page of the race; empty without results
    asterisk: Asterisk | None


class Championship(NamedTuple):
    name: str  # `Driver` or `Constructor`
    address: str  # of all its standings, below the base address
    season: int
    round: int  # after which round
    places: list[Json]  # as `place` returns them
    lead: str  # of the first over the second, in words; empty if they have as many points


def place(record: Json, **texts: str) -> Json:
    """A row of a classification or championship: a result, with more texts, and unknown ones empty.

    It has a list of constructors, and no driver in the championship of the constructors.
    """
    constructors = [record["Constructor"]] if "Constructor" in record else record["Constructors"]
    return {**UNKNOWN, **record, "Constructors": constructors, **texts}


def places(results: Sequence[Json]) -> list[Json]:
    """The rows of a race or sprint."""
    winner = results[0].get("Time") if results else None
    return [place(each, time=time_or_status(each, winner)) for each in results]


def time_or_status(result: Json, winner: Json | None) -> str:
    """The winner's time, the gap to it, or the status of a driver who was lapped or did not finish.

    Some sources have total times of these drivers too, but a gap says nothing about them.
    """
    status: str = result.get("status", "")
    if "Time" not in result or status not in ("Finished", ""):
        return status
    return gap_time(int(result["Time"]["millis"]), int(winner["millis"]) if winner else None)


def total_time(place: Json) -> str:
    """The driver's own time, to stand beside the gap; empty if there is no gap."""
    has_gap = place["time"].startswith("+") and place["time"] != place.get("status")
    return short_time(int(place["Time"]["millis"])) if has_gap else ""


def gained(place: Json) -> int:
    """How many places a driver gained on the grid place; 0 if one of both is unknown."""
    grid, position = place["grid"], place["positionText"]
    return int(grid) - int(position) if grid not in ("", "0") and position.isdigit() else 0


def grid(places: Iterable[Json]) -> list[Json]:
    """The places with a place on the grid, in its order."""
    return sorted(
        (each for each in places if each["grid"] not in ("", "0")),
        key=lambda each: int(each["grid"]),
    )


def timed(results: Sequence[Json]) -> list[Json]:
    """The rows of qualifying, with each driver's time in the last part, or of a practice."""
    return [
        place(
            result,
            positionText=result.get("position", ""),
            time=result.get("Q3") or result.get("Q2") or result.get("Q1") or time_of(result),
        )
        for result in results
    ]


def time_of(record: Json) -> str:
    time: str = record.get("Time", {}).get("time", "")
    return time


def championships(ask: Ask, *fronts: tuple[Season, Round | None]) -> Iterator[Championship]:
    """Both championships, each after the first season or race of `fronts` that has standings."""
    for name, kind in (
        ("Driver", KINDS["driver_standings"]),
        ("Constructor", KINDS["constructor_standings"]),
    ):
        lists = (ask(kind.endpoint, season, round) for season, round in fronts)
        for standings in next(filter(None, lists), ()):
            season, round = int(standings["season"]), int(standings["round"])
            places = [place(each) for each in standings[kind.keys[2]]]
            yield Championship(
                name,
                f"/{season}/{round}/{kind.endpoint}",
                season,
                round,
                Notes(ask, season, round).marked(places, kind.name),
                lead(places, round == ask.catalogue.rounds[season][-1]),
            )


def lead(places: Sequence[Json], is_over: bool) -> str:
    """`Hamilton is 2 points ahead`, or `Hamilton won by 2 points` after the last race of a season;
    empty if nobody is ahead on points.
    """
    ranked = [each for each in places if each["positionText"].isdigit() and each["points"]]
    if len(ranked) < 2:
        return ""
    first, second = ranked[:2]
    points = points_ahead(first, second)
    name = first["Driver"]["familyName"] if "Driver" in first else first["Constructor"]["name"]
    by = points_in_words(points)
    return (f"{name} won by {by}" if is_over else f"{name} is {by} ahead") if points > 0 else ""


def points_ahead(first: Json, second: Json) -> float:
    """The points that a place in a championship has more than another one."""
    # rounded: some seasons have points in thirds and sevenths
    return round(float(first["points"]) - float(second["points"]), 2)


def start(session: Json) -> str:
    """When a session starts: its date, or date and time in UTC."""
    return f"{session['date']}T{session['time']}" if "time" in session else str(session["date"])


def sessions(race: Json, records: RecordsByGroup, notes: Notes) -> list[ShownSession]:
    """The sessions of a race, in the order of their start. `records` has the weekend's."""
    in_order = sorted(
        sessions_of(race), key=lambda each: (each[1]["date"], each[1].get("time", "~"))
    )
    return [
        ShownSession(
            session.name,
            session.label,
            start(at),
            session.minutes,
            session.group if of_session(session.name, session.group, records) else "",
            notes.asterisk(["sessions"], session.name)
            if session.key
            else notes.asterisk(["races"], "", ["date", "time"]),
        )
        for session, at in in_order
    ]


def record_counts(ask: Ask, season: int, round: int | None = None) -> list[tuple[Endpoint, int]]:
    """The endpoints with records of a season or race, and how many these are."""
    return [
        (endpoint, total)
        for endpoint in ask.endpoints.values()
        if endpoint.records_key  # else it has no records of races
        and (total := ask.content(endpoint.name, season, round, limit=0).total)
    ]


def neighbours(numbers: Sequence[int], number: int) -> tuple[int | None, int | None]:
    """The numbers before and after one of a sorted list; None at its ends."""
    index = numbers.index(number)
    around = [None, *numbers, None]
    return around[index], around[index + 2]


def most(winners: Iterable[Json]) -> list[tuple[Json, int]]:
    """Those who won more than once, with the number, as `ranked` returns them."""
    by_id: dict[str, Json] = {}
    counts: Counter[str] = Counter()
    for winner in winners:
        id = winner.get("driverId") or winner["constructorId"]
        by_id[id] = winner
        counts[id] += 1
    found = [(by_id[id], count) for id, count in counts.most_common() if count > 1]
    return ranked(found, lambda pair: pair[1])


def ranked(ranking: Sequence[T], number: Callable[[T], Any], first: int = MOST) -> list[T]:
    """The first of a ranking, and those who share the number of the last one: if the fifth and the
    sixth have three wins each, both are among the first five.
    """
    return [
        each
        for place, each in enumerate(ranking)
        if place < first or number(each) == number(ranking[first - 1])
    ]


def of_session(session: str, group: str, records: RecordsByGroup) -> Sequence[Json]:
    """The records of a session, such as `fp2`, which are among the records of its group."""
    of_group = records.get(group, ())
    if group != "practice":
        return of_group
    return [each for each in of_group if f"fp{each['session']}" == session]

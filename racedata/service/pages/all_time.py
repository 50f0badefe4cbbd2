"""The page at `/records`: who and what was first, longest, closest, youngest in all races here.

To add a ranking, add a line to the list below that it belongs to. Starts, wins, podiums and poles
are counted as on the page of a driver.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, NamedTuple

from racedata.formats import Json, counted, short_time
from racedata.service.pages import seasons
from racedata.service.pages.ask import Ask
from racedata.service.pages.career import Drive, drives
from racedata.service.pages.names import plain
from racedata.service.pages.races import ranked
from racedata.service.words import place_in_words, points_in_words

SHOWN = 5  # of a ranking, and all with the same number as the last of them


class Entry(NamedTuple):
    """A row of a ranking."""

    number: float | tuple[int, int]  # by which entries are in order; an age is years and days
    who: Json  # a driver or constructor; of a race, who won it; of a season, the champion
    races: Sequence[Json] = ()  # the race, or the first and the last in a row
    season: str = ""
    second: Json | None = None  # if the number is how far the first was ahead


class Ranking(NamedTuple):
    """A table of the page."""

    caption: str
    head: str  # of the numbers
    entries: Callable[[Any], Iterable[Entry]]  # of one of those that are ranked, such as a History
    is_most: bool = True  # whether the largest number is first
    in_words: Callable[[Any], str] = "{:,}".format  # a number for people


class History(NamedTuple):
    """All races of a driver or constructor, in order. `what` names a field of Drive: only drives in
    which it is more than 0 count.
    """

    who: Json
    drives: Sequence[Drive]

    def races_with(self, what: str) -> list[Json]:
        """The races that count."""
        return [drive.race for drive in self.drives if getattr(drive, what) > 0]

    def total(self, what: str) -> Iterator[Entry]:
        if races := self.races_with(what):
            yield Entry(len(races), self.who)

    def in_a_row(self, what: str) -> Iterator[Entry]:
        """Starts that all count, one after the other: at least two."""
        starts = (drive for drive in self.drives if drive.starts)
        for does_count, in_row in groupby(starts, lambda drive: getattr(drive, what) > 0):
            races = [drive.race for drive in in_row]
            if does_count and len(races) > 1:
                yield Entry(len(races), self.who, [races[0], races[-1]])

    def by_season(self, what: str) -> Iterator[Entry]:
        for season, number in Counter(race["season"] for race in self.races_with(what)).items():
            yield Entry(number, self.who, season=season)

    def age_at(self, which: int, what: str) -> Iterator[Entry]:
        """The age at the first race that counts, 0, or at the last one, -1."""
        races = self.races_with(what)
        if races and "dateOfBirth" in self.who:
            race = races[which]
            yield Entry(age(self.who["dateOfBirth"], race["date"]), self.who, [race])


class WonRace(NamedTuple):
    """A race with a winner. Times are in milliseconds; 0 and None are unknown."""

    race: Json
    winner: Json
    second: Json | None
    gap: int | None
    time: int | None
    grid: int | None

    def entry(self, what: str) -> Iterator[Entry]:
        if number := getattr(self, what):
            yield Entry(
                number, self.winner, [self.race], "", self.second if what == "gap" else None
            )


def age(born: str, day: str) -> tuple[int, int]:
    """The years on a day, and the days since the last birthday."""
    birth, today = date.fromisoformat(born), date.fromisoformat(day)
    years = today.year - birth.year - ((today.month, today.day) < (birth.month, birth.day))
    # 29 February is 1 March in other years
    birthday = date(birth.year + years, birth.month, 1) + timedelta(birth.day - 1)
    return years, (today - birthday).days


def age_in_words(number: tuple[int, int]) -> str:
    """`18 years, 228 days`, on two lines at most."""
    years, days = number
    words = counted(years, "year"), counted(days, "day")
    return ", ".join(each.replace(" ", "\N{NO-BREAK SPACE}") for each in words)


def gap_in_words(milliseconds: int) -> str:
    """`+0.010`."""
    return f"+{short_time(milliseconds)}"


def grid_in_words(place: int) -> str:
    """`22nd`."""
    return place_in_words(str(place))


CAREERS = (
    Ranking("Most wins", "Wins", lambda one: one.total("wins")),
    Ranking("Most starts", "Starts", lambda one: one.total("starts")),
    Ranking("Most races with a podium", "Races", lambda one: one.total("podiums")),
    Ranking("Most poles", "Poles", lambda one: one.total("poles")),
    Ranking("Most wins in a season", "Wins", lambda one: one.by_season("wins")),
    Ranking("Most races with a podium in a season", "Races", lambda one: one.by_season("podiums")),
    Ranking("Most poles in a season", "Poles", lambda one: one.by_season("poles")),
    Ranking("Most wins in a row", "Wins", lambda one: one.in_a_row("wins")),
    Ranking("Most podiums in a row", "Races", lambda one: one.in_a_row("podiums")),
    Ranking("Most races with points in a row", "Races", lambda one: one.in_a_row("points")),
)
AGES = (
    Ranking("Youngest winners", "Age", lambda one: one.age_at(0, "wins"), False, age_in_words),
    Ranking("Oldest winners", "Age", lambda one: one.age_at(-1, "wins"), True, age_in_words),
    Ranking(
        "Youngest at the first start",
        "Age",
        lambda one: one.age_at(0, "starts"),
        False,
        age_in_words,
    ),
    Ranking(
        "Oldest at the last start", "Age", lambda one: one.age_at(-1, "starts"), True, age_in_words
    ),
)
RACES = (
    Ranking("Closest finishes", "Gap", lambda one: one.entry("gap"), False, gap_in_words),
    Ranking("Largest gaps", "Gap", lambda one: one.entry("gap"), True, gap_in_words),
    Ranking("Shortest races", "Winner's time", lambda one: one.entry("time"), False, short_time),
    Ranking("Longest races", "Winner's time", lambda one: one.entry("time"), True, short_time),
    Ranking(
        "Winners from furthest back", "Grid", lambda one: one.entry("grid"), True, grid_in_words
    ),
)
SEASONS = (
    Ranking("Closest championships", "Points", lambda lead: [lead], False, points_in_words),
    Ranking("Largest leads", "Points", lambda lead: [lead], True, points_in_words),
)


def facts(ask: Ask) -> dict[str, Any]:
    drivers, constructors, won = histories(ask, "driver"), histories(ask, "constructor"), races(ask)
    return {
        # by title; of each section, what it ranks, and the rankings with their entries by anchor
        "sections": {
            f"{kind}s": (kind, with_entries(kind, rankings, those))
            for kind, rankings, those in (
                ("Driver", CAREERS + AGES, drivers),
                ("Constructor", CAREERS, constructors),
                ("Race", RACES, won),
                ("Season", SEASONS, [*leads(ask)]),
            )
        },
        "races": len(won),
    }


def with_entries(
    kind: str, rankings: Iterable[Ranking], those: Sequence[object]
) -> dict[str, tuple[Ranking, list[Entry]]]:
    """The rankings that have entries, with these, by where they are on the page:
    `drivers-most-wins`.
    """
    number, found = attrgetter("number"), {}
    for ranking in rankings:
        entries = chain.from_iterable(map(ranking.entries, those))
        in_order = sorted(entries, key=number, reverse=ranking.is_most)
        if in_order:
            anchor = "-".join(plain(f"{kind}s {ranking.caption}").split())
            found[anchor] = ranking, ranked(in_order, number, SHOWN)
    return found


def histories(ask: Ask, who: str) -> list[History]:
    found: dict[str, list[Drive]] = {}
    for year in ask.catalogue.rounds:  # other clients need not wait for one long statement
        for id, drive in drives(ask, who, "year", year):
            found.setdefault(id, []).append(drive)
    return [History(ask.object(who, id), of_one) for id, of_one in found.items()]


def races(ask: Ask) -> list[WonRace]:
    drivers = ask.catalogue.drivers
    return [
        WonRace(
            ask.catalogue.races[row["raceId"]],
            drivers[row["driverId"]],
            drivers.get(row["secondId"]),
            row["gap"],
            row["milliseconds"],
            row["grid"],
        )
        for row in ask.rows("won races")
    ]


def leads(ask: Ask) -> Iterator[Entry]:
    """How far champions were ahead."""
    standings, over = seasons.first_places(ask, "driverstandings", "DriverStandings")
    for year in sorted(over, reverse=True):
        if lead := seasons.ahead(standings[year]):
            first, second = (place["Driver"] for place in standings[year])
            yield Entry(lead, first, (), str(year), second)

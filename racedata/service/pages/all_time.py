"""The page at `/records`: who and what was first, longest, closest, youngest in all races here.

To add a ranking, add a line to the list below that it belongs to. Starts, wins, podiums and poles
are counted as on the page of a driver.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import chain, groupby
from operator import attrgetter
from sqlite3 import Row
from typing import Any, NamedTuple

from racedata.formats import Json, counted, short_time
from racedata.service.pages import seasons
from racedata.service.pages.ask import Ask
from racedata.service.pages.career import Drive, drives
from racedata.service.pages.names import plain
from racedata.service.pages.races import ranked
from racedata.service.words import place_in_words, points_in_words

SHOWN = 5  # of a ranking, and all with the same number as the last of them

Amount = float | tuple[int, int]  # by which entries are in order; an age is years and days
ToWords = Callable[[Any], str]


class Entry(NamedTuple):
    """A row of a ranking."""

    number: Amount
    who: Json  # a driver or constructor; of a race, who won it; of a season, the champion
    races: Sequence[Json] = ()  # the race, or the first and the last in a row
    season: str = ""
    second: Json | None = None  # if the number is how far the first was ahead


class Ranking(NamedTuple):
    """A table of the page."""

    caption: str
    kind: str  # of what it ranks, the head of its column: `Driver`, `Constructor`, `Race`, `Season`
    head: str  # of the numbers
    entries: list[Entry]
    in_words: ToWords  # a number for people


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


# Rankings of drivers and of constructors: the caption, the head of the numbers, each one's entries.
CAREERS: Sequence[tuple[str, str, Callable[[History], Iterable[Entry]]]] = (
    ("Most wins", "Wins", lambda one: one.total("wins")),
    ("Most starts", "Starts", lambda one: one.total("starts")),
    ("Most races with a podium", "Races", lambda one: one.total("podiums")),
    ("Most poles", "Poles", lambda one: one.total("poles")),
    ("Most wins in a season", "Wins", lambda one: one.by_season("wins")),
    ("Most races with a podium in a season", "Races", lambda one: one.by_season("podiums")),
    ("Most poles in a season", "Poles", lambda one: one.by_season("poles")),
    ("Most wins in a row", "Wins", lambda one: one.in_a_row("wins")),
    ("Most podiums in a row", "Races", lambda one: one.in_a_row("podiums")),
    ("Most races with points in a row", "Races", lambda one: one.in_a_row("points")),
)
# Rankings of drivers by age: the caption, whether the oldest is first, each one's entries.
AGES: Sequence[tuple[str, bool, Callable[[History], Iterable[Entry]]]] = (
    ("Youngest winners", False, lambda one: one.age_at(0, "wins")),
    ("Oldest winners", True, lambda one: one.age_at(-1, "wins")),
    ("Youngest at the first start", False, lambda one: one.age_at(0, "starts")),
    ("Oldest at the last start", True, lambda one: one.age_at(-1, "starts")),
)
# Rankings of races: the caption, the head of the numbers, their column in the query `won races`,
# whether the most is first, and the words.
RACES: Sequence[tuple[str, str, str, bool, ToWords]] = (
    ("Closest finishes", "Gap", "gap", False, gap_in_words),
    ("Largest gaps", "Gap", "gap", True, gap_in_words),
    ("Shortest races", "Winner's time", "milliseconds", False, short_time),
    ("Longest races", "Winner's time", "milliseconds", True, short_time),
    ("Winners from furthest back", "Grid", "grid", True, grid_in_words),
)
# Rankings of seasons by how far champions were ahead: the caption, whether the most is first.
LEADS = (("Closest championships", False), ("Largest leads", True))


def facts(ask: Ask) -> dict[str, Any]:
    drivers, constructors = histories(ask, "driver"), histories(ask, "constructor")
    won = ask.rows("won races")
    rankings = {
        "Drivers": [*of_careers("Driver", drivers), *of_ages(drivers)],
        "Constructors": [*of_careers("Constructor", constructors)],
        "Races": [*of_races(ask, won)],
        "Seasons": [*of_seasons(ask)],
    }
    return {
        # by section and anchor
        "sections": {
            section: {anchor(section, each.caption): each for each in of_section if each.entries}
            for section, of_section in rankings.items()
        },
        "races": len(won),
    }


def anchor(section: str, caption: str) -> str:
    """`drivers-most-wins`: where the ranking is on the page."""
    return "-".join(plain(f"{section} {caption}").split())


def histories(ask: Ask, who: str) -> list[History]:
    found: dict[str, list[Drive]] = {}
    for year in ask.catalogue.rounds:  # other clients need not wait for one long statement
        for id, drive in drives(ask, who, "year", year):
            found.setdefault(id, []).append(drive)
    return [History(ask.object(who, id), of_one) for id, of_one in found.items()]


def of_careers(kind: str, histories: Sequence[History]) -> Iterator[Ranking]:
    for caption, head, entries in CAREERS:
        found = chain.from_iterable(map(entries, histories))
        yield Ranking(caption, kind, head, first_of(found), "{:,}".format)


def of_ages(drivers: Sequence[History]) -> Iterator[Ranking]:
    for caption, is_oldest, entries in AGES:
        found = chain.from_iterable(map(entries, drivers))
        yield Ranking(caption, "Driver", "Age", first_of(found, is_oldest), age_in_words)


def of_races(ask: Ask, won: Sequence[Row]) -> Iterator[Ranking]:
    catalogue = ask.catalogue
    for caption, head, column, is_most, in_words in RACES:
        found = [
            Entry(
                row[column],
                catalogue.drivers[row["driverId"]],
                [catalogue.races[row["raceId"]]],
                second=catalogue.drivers[row["secondId"]] if column == "gap" else None,
            )
            for row in won
            if row[column]
        ]
        yield Ranking(caption, "Race", head, first_of(found, is_most), in_words)


def of_seasons(ask: Ask) -> Iterator[Ranking]:
    standings, over = seasons.first_places(ask, "driverstandings", "DriverStandings")
    rows = [seasons.row_of(year, True, standings[year], ()) for year in sorted(over, reverse=True)]
    leads = [
        Entry(
            float(row.ahead),
            row.driver["Driver"],
            season=str(row.year),
            second=standings[row.year][1]["Driver"],
        )
        for row in rows
        if row.driver and row.ahead
    ]
    for caption, is_most in LEADS:
        yield Ranking(caption, "Season", "Points", first_of(leads, is_most), points_in_words)


def first_of(entries: Iterable[Entry], is_most: bool = True) -> list[Entry]:
    """The first entries of a ranking: those with the largest number, or with the smallest."""
    number = attrgetter("number")
    return ranked(sorted(entries, key=number, reverse=is_most), number, SHOWN)

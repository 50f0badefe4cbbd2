"""What sources disagree about: the pages at `/discrepancies` and, of one season, at
`/2023/discrepancies`. What changed: the page at `/changes`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from racedata.formats import Json
from racedata.service import words
from racedata.service.content import LIST_BY_KEY
from racedata.service.news import by_subject, lines_of, title_of
from racedata.service.pages.ask import Ask
from racedata.service.pages.notes import OPEN, in_order, sides_in_words
from racedata.service.request import ALL

# With more, the pages would be longer than 15 KB compressed.
DOUBTS = 320
NEWS = 30
LINES = 20  # values in an entry of the news

CHANGES = 2000  # the latest changed values, of which the page shows the first NEWS entries


class Doubt(NamedTuple):
    """An open discrepancy, of a race or else of a driver, constructor or circuit."""

    name: str
    link: str  # to the page of what has the name; empty without one
    race: Json | None
    sources: str  # what each of them says


class News(NamedTuple):
    """What changed at a time, in words: `Monaco Grand Prix 2026: Gasly 3rd → 7th`."""

    title: str
    race: tuple[str, str] | None  # season and round
    lines: list[str]  # the values with their reasons


def discrepancies(ask: Ask, season: int | None = None) -> dict[str, Any]:
    names = links_and_names(ask)
    found = ask.content("discrepancies", DOUBTS, season, None, OPEN)
    doubts: dict[str, dict[str, list[Doubt]]] = {}
    for record in found.objects:
        what, each = what_in_words(record), doubt(record, names, ask.names)
        doubts.setdefault(what, {}).setdefault(record["explanation"], []).append(each)
    by_kind: dict[str, Counter[str]] = {}
    open_by_season = Counter[str]()
    for count in ask("discrepancycounts", ALL, season):
        number = int(count["count"])
        by_kind.setdefault(count["kind"], Counter())[count["state"]] += number
        if count["state"] == "open" and "season" in count:
            open_by_season[count["season"]] += number
    return {
        "season": season,
        "doubts": doubts,  # by what they are about, and what would settle them
        "shown": len(found.objects),
        "open": found.total,
        "total": sum(counts.total() for counts in by_kind.values()),
        # how many there are in each state
        "by_kind": [(label, by_kind[kind]) for kind, label in in_order(by_kind)],
        "open_by_season": sorted(open_by_season.items()),
        "corrected": corrected(ask, season),
    }


def corrected(ask: Ask, season: int | None) -> list[tuple[str, str, int]]:
    """How many values of a season are corrected in each race, or else in each season: names, links
    and numbers.
    """
    races = ask.rows("corrected races", season)
    if season:
        return [(race["name"], f"{season}/{race['round']}#notes", race["count"]) for race in races]
    seasons = Counter[int]()
    for race in races:
        seasons[race["year"]] += race["count"]
    return [(str(year), f"{year}/discrepancies#corrected", n) for year, n in seasons.items()]


def what_in_words(record: Json) -> str:
    """What a discrepancy is about: `qualifying, q1`."""
    return f"{words.kind_in_words(record['kind'])}, {words.column_in_words(record['column'])}"


def doubt(record: Json, names: Mapping[str, str], entrants: words.Names) -> Doubt:
    links = [f"{name}/{record[key]}" for key, name in LIST_BY_KEY.items() if key in record]
    link = links[0] if links else ""
    return Doubt(
        names[link] if link else record["key"],
        link,
        record if "round" in record else None,
        sides_in_words(record, entrants),
    )


def links_and_names(ask: Ask) -> dict[str, str]:
    """The names of all drivers, constructors and circuits, by the links to their pages."""
    drivers, constructors, circuits = (
        each.values()
        for each in (ask.catalogue.drivers, ask.catalogue.constructors, ask.catalogue.circuits)
    )
    return {
        **{f"drivers/{each['driverId']}": each["familyName"] for each in drivers},
        **{f"constructors/{each['constructorId']}": each["name"] for each in constructors},
        **{f"circuits/{each['circuitId']}": each["circuitName"] for each in circuits},
    }


def changes(ask: Ask) -> dict[str, Any]:
    return {"news": [*news(ask, NEWS)]}


def news(ask: Ask, limit: int) -> Iterator[News]:
    """What changed lately in the records of races and in names, the newest first."""
    full_names = {
        each["driverId"]: words.full_name(each) for each in ask.catalogue.drivers.values()
    }
    names = ask.names._replace(drivers=full_names)
    for of_subject in islice(by_subject(ask("changes", CHANGES)), limit):
        first = of_subject[0]
        race = (first["season"], first["round"]) if "round" in first else None
        yield News(title_of(of_subject, names), race, lines_of(of_subject, names, LINES))

"""What sources disagree about: the pages at `/discrepancies` and, of one season, at
`/2023/discrepancies`. What changed: the page at `/changes`.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from racedata.formats import Json
from racedata.model import TABLE_BY_NAME
from racedata.service import words
from racedata.service.news import by_subject, lines_of, title_of
from racedata.service.pages.ask import Ask
from racedata.service.pages.notes import in_order, sides_in_words

# With more, the pages would be longer than 15 KB compressed.
DOUBTS = 320
NEWS = 30
LINES = 20  # values in an entry of the news
# The lists that a discrepancy may be about, by the key of an id in them.
LIST_BY_KEY = {TABLE_BY_NAME[name].id_key: name for name in ("drivers", "constructors", "circuits")}
# by the key of an id: the key of the name in the object
NAME = {"driverId": "familyName", "constructorId": "name", "circuitId": "circuitName"}
CHANGES = 2000  # the latest changed values, of which the page shows the first NEWS entries


def discrepancies(ask: Ask, season: int | None = None) -> dict[str, Any]:
    found = ask.content("discrepancies", season, wanted={"state": "open"}, limit=DOUBTS)
    doubts: dict[str, dict[str, list[Json]]] = {}
    for record in found.objects:
        # what it is about: `qualifying, q1`
        what = f"{words.kind_in_words(record['kind'])}, {words.column_in_words(record['column'])}"
        of_what = doubts.setdefault(what, {})
        of_what.setdefault(record["explanation"], []).append(doubt(record, ask))
    by_kind: dict[str, Counter[str]] = {}
    open_by_season = Counter[str]()
    for count in ask("discrepancycounts", season):
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


def doubt(record: Json, ask: Ask) -> Json:
    """An open discrepancy, of a race or else of a driver, constructor or circuit: the name of that
    and the link to its page, if it has one, and what sources say.
    """
    of_what = {"name": record["key"], "link": ""}
    for key, name in LIST_BY_KEY.items():
        if key in record:
            id = ask.catalogue.ids[name][record[key].lower()]
            of_what["name"] = ask.catalogue.lists[name][id][NAME[key]]
            of_what["link"] = f"{name}/{record[key]}"
            break
    race = record if "round" in record else None
    return {**of_what, "race": race, "sources": sides_in_words(record, ask.names)}


def changes(ask: Ask) -> dict[str, Any]:
    return {"news": [*news(ask, NEWS)]}


def news(ask: Ask, limit: int) -> Iterator[Json]:
    """What changed lately in the records of races and in names, the newest first: in words, with
    the season and the round of the race.
    """
    full_names = {
        each["driverId"]: words.full_name(each) for each in ask.catalogue.drivers.values()
    }
    names = ask.names._replace(drivers=full_names)
    for of_subject in islice(by_subject(ask.content("changes", limit=CHANGES).objects), limit):
        first = of_subject[0]
        race = (first["season"], first["round"]) if "round" in first else None
        lines = lines_of(of_subject, names, LINES)
        yield {"title": title_of(of_subject, names), "race": race, "lines": lines}

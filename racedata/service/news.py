"""What changed, in words: a title and lines for each subject, such as a race.

The feed and the pages use them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date

from racedata.formats import Json, counted
from racedata.model import STANDINGS
from racedata.service.words import (
    Names,
    column_in_words,
    kind_in_words,
    place_in_words,
    value_in_words,
)

MAX_PLACES = 4  # drivers in a title


def by_subject(changes: Sequence[Json]) -> list[list[Json]]:
    """The changes of each build about each subject, the newest build first.

    After a decision, its race comes before the races whose standings follow.
    """
    found: dict[tuple[str, ...], list[Json]] = {}
    for change in changes:  # those of a calendar may be between those of its races
        found.setdefault((change["revision"], *subject(change)), []).append(change)
    return sorted(
        found.values(),
        key=lambda of_subject: (
            -int(of_subject[0]["revision"]),
            all(change["kind"] in STANDINGS for change in of_subject),
        ),
    )


def subject(change: Json) -> tuple[str, str]:
    """What a change is about: a race, the calendar of a season, or the lists of names; or the
    sources, if very much changed.
    """
    if change["column"] == "values":
        return "", "sources"
    if change["kind"] in ("races", "seasons") and change["column"] in ("row", "url"):
        return change["season"], "calendar"
    return change.get("season", ""), change.get("raceName", "lists")


def title_of(changes: Sequence[Json], names: Names) -> str:
    """`Monaco Grand Prix 2026: Gasly 3rd → 7th, Hadjar 4th → 3rd (jolpica, 4 September)`."""
    season, about = subject(changes[0])
    words = {"calendar": f"Calendar {season}", "lists": "Names", "sources": "Other sources"}
    what = words.get(about, f"{about} {season}")
    day = date.fromisoformat(changes[0]["time"][:10])
    sources = dict.fromkeys(each["source"] for each in changes if "source" in each)
    where = [*sources, f"{day.day} {day:%B}"]
    return f"{what}: {', '.join(headlines(changes, names))} ({', '.join(where)})"


def headlines(changes: Sequence[Json], names: Names) -> Iterator[str]:
    """What changed: records that are new, places in the race, and how many other values."""
    records = [change for change in changes if change["column"] == "records"]
    for are_in, what in ((True, "are in"), (False, "are gone")):
        kinds = [change["kind"] for change in records if ("value" in change) == are_in]
        if kinds:
            named = ["results"] if "results" in kinds else map(kind_in_words, kinds)
            yield f"{', '.join(named)} {what}"
    places = [change for change in changes if is_place(change)]
    places.sort(
        key=lambda change: (
            -abs(number_of_place(change["value"]) - number_of_place(change["oldValue"])),
            number_of_place(change["value"]),
        )
    )
    for change in places[:MAX_PLACES]:
        before, after = place_in_words(change["oldValue"]), place_in_words(change["value"])
        yield f"{entrant_name(change, names)} {before} → {after}"
    if len(places) > MAX_PLACES:
        yield f"{counted(len(places) - MAX_PLACES, 'other place')}"
    # After results, the rest follows from them.
    if not (records or places):
        others = Counter[str]()
        for change in changes:
            count = int(change["value"]) if change["column"] == "values" else 1
            others[kind_in_words(change["kind"])] += count
        for kind, count in others.items():
            yield f"{counted(count, 'value')} of {kind}"


def is_place(change: Json) -> bool:
    """Whether a driver got another place in the race."""
    is_of_results = (change["kind"], change["column"]) == ("results", "positionText")
    return is_of_results and {"value", "oldValue"} <= change.keys()


def entrant_name(change: Json, names: Names) -> str:
    """Whose value it is; empty if it is of a race."""
    if driver := change.get("driverId"):
        return names.drivers.get(driver, driver)
    constructor = change.get("constructorId", "")
    return names.constructors.get(constructor, constructor)


def number_of_place(place: str) -> int:
    """The number of a place; a high one for letters."""
    return int(place) if place.isdigit() else 100


def lines_of(changes: Sequence[Json], names: Names, limit: int) -> list[str]:
    """A line for each of the first changed values, with its reason; the last says how many more
    there are.
    """
    lines = []
    for change in changes[:limit]:
        column = change["column"]
        lacking, unit = ("none", " records") if column == "records" else ("unknown", "")
        values = [
            value_in_words(column, change[name], names) + unit if name in change else lacking
            for name in ("oldValue", "value")
        ]
        about = [
            kind_in_words(change["kind"]),
            entrant_name(change, names),
            column_in_words(column),
        ]
        lines.append(f"{', '.join(filter(None, about))}: {' → '.join(values)}; {change['reason']}")
    if rest := len(changes) - len(lines):
        lines.append(f"and {counted(rest, 'other value')}")
    return lines

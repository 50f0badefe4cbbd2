"""The feed of changes: Atom (RFC 4287), an entry for each race and build.

endpoints.py decides which changes a feed has. Their objects come from serializers.py.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from urllib.parse import urljoin
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree

from racedata import __version__
from racedata.formats import Json, counted
from racedata.model import STANDINGS
from racedata.service.content import Served
from racedata.service.words import (
    Names,
    column_in_words,
    kind_in_words,
    names_of,
    place_in_words,
    value_in_words,
)

CONTENT_TYPE = "application/atom+xml; charset=utf-8"
NAMESPACE = "http://www.w3.org/2005/Atom"
MAX_ENTRIES = 50
MAX_LINES = 200  # values in the text of an entry
MAX_PLACES = 4  # drivers in a title


def write(changes: Sequence[Json], served: Served, url: str) -> bytes:
    """The feed of changes, the newest first. `url` is its address.

    An entry keeps its id for ever: also in a copy of the database on another machine.
    """
    names, build = names_of(served.catalogue), served.data.build()
    feed = ElementTree.Element("feed", xmlns=NAMESPACE)
    add(feed, "id", urn(url))
    add(feed, "title", "Changes in Formula One data")
    add(feed, "updated", changes[0]["time"] if changes else build["builtAt"])
    add(add(feed, "author"), "name", "racedata")
    add(feed, "link", rel="self", type="application/atom+xml", href=url)
    add(feed, "generator", "racedata", version=__version__)
    if not changes:
        # Home Assistant never asks again for a feed that was empty at first.
        entry = add(feed, "entry")
        add(entry, "id", urn(f"{url}/none"))
        add(entry, "title", "No changes yet")
        add(entry, "updated", build["builtAt"])
        add(entry, "content", "Changes will be listed here.", type="text")
    for of_entry in by_entry(changes)[:MAX_ENTRIES]:
        first = of_entry[0]
        page = f"/{first['season']}/{first['round']}" if "round" in first else "/"
        entry = add(feed, "entry")
        add(entry, "id", urn("/".join([build["storeId"], first["revision"], *subject(first)])))
        add(entry, "title", title_of(of_entry, names))
        add(entry, "updated", first["time"])
        add(entry, "link", href=urljoin(url, served.settings.root_link + page))
        content = "\n".join(lines_of(of_entry, names, MAX_LINES))
        add(entry, "content", content, type="text")
    document: bytes = ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return document


def by_entry(changes: Sequence[Json]) -> list[list[Json]]:
    """The changes of each entry. After a decision, that of its race comes before those of races
    whose standings follow.
    """
    found: dict[tuple[str, ...], list[Json]] = {}
    for change in changes:  # those of a calendar may be between those of its races
        found.setdefault((change["revision"], *subject(change)), []).append(change)
    return sorted(
        found.values(),
        key=lambda of_entry: (
            -int(of_entry[0]["revision"]),
            all(change["kind"] in STANDINGS for change in of_entry),
        ),
    )


def add(
    parent: ElementTree.Element, name: str, text: str = "", **attributes: str
) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, name, attributes)
    element.text = text or None
    return element


def urn(name: str) -> str:
    """An id that is the same for the same name."""
    return f"urn:uuid:{uuid5(NAMESPACE_URL, f'racedata:{name}')}"


def subject(change: Json) -> tuple[str, str]:
    """What an entry is about: a race, the calendar of a season, or the lists of names; or the
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
    new = [change["kind"] for change in changes if is_new(change)]
    if new:
        yield f"{', '.join(['results'] if 'results' in new else map(kind_in_words, new))} are in"
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
    others = Counter[str]()
    for change in changes:
        if not is_new(change) and not is_place(change):
            count = int(change["value"]) if change["column"] == "values" else 1
            others[kind_in_words(change["kind"])] += count
    # After results, the rest follows from them.
    if not new and not places:
        for kind, count in others.items():
            yield f"{counted(count, 'value')} of {kind}"


def is_new(change: Json) -> bool:
    """Whether a race got its first records of a kind."""
    return change["column"] == "records" and "value" in change


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
        old, new = (
            value_in_words(change["column"], change.get(name, "unknown"), names)
            for name in ("oldValue", "value")
        )
        if is_new(change):
            old, new = "none", f"{new} records"
        about = [
            kind_in_words(change["kind"]),
            entrant_name(change, names),
            column_in_words(change["column"]),
        ]
        lines.append(f"{', '.join(filter(None, about))}: {old} → {new}; {change['reason']}")
    if rest := len(changes) - len(lines):
        lines.append(f"and {counted(rest, 'other value')}")
    return lines

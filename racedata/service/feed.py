"""The feed of changes: Atom (RFC 4287), an entry for each race and build.

queries.py finds the changes of a feed. serializers.py makes their objects. news.py writes
the words of an entry.
"""

from collections.abc import Sequence
from urllib.parse import urljoin
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree

from racedata import __version__
from racedata.formats import Json
from racedata.service.content import Served
from racedata.service.news import by_subject, lines_of, subject, title_of
from racedata.service.words import names_of

NAMESPACE = "http://www.w3.org/2005/Atom"
MAX_ENTRIES = 50
MAX_LINES = 200  # values in the text of an entry


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
    for of_entry in by_subject(changes)[:MAX_ENTRIES]:
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


def add(
    parent: ElementTree.Element, name: str, text: str = "", **attributes: str
) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, name, attributes)
    element.text = text or None
    return element


def urn(name: str) -> str:
    """An id that is the same for the same name."""
    return f"urn:uuid:{uuid5(NAMESPACE_URL, f'racedata:{name}')}"

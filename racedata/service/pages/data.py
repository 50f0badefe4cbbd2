"""The page at `/data`: sources with their licences, how fresh and complete the data is."""

from collections.abc import Iterator
from sqlite3 import Row
from typing import Any, NamedTuple

from racedata.model import KINDS
from racedata.service.pages.ask import Ask
from racedata.service.refresh_times import AskedAt
from racedata.service.snapshot import COPIED
from racedata.service.words import NOT_HERE

# Endpoints about the data itself, which the page links to if they have records.
ABOUT_VALUES = ("corrections", "discrepancies", "changes")


class Source(NamedTuple):
    """A source: what it gave, and when it was last read or, if `is_checked`, asked for new data."""

    name: str
    url: str | None
    is_checked: bool
    at: str
    newest: Row | None = None  # its newest records: `(kind, race, date)`
    licence: str | None = None
    records: str = ""  # empty if another database says it
    is_local: bool = False  # whether it was read from files, which have no link


def facts(ask: Ask, shown_times: AskedAt) -> dict[str, Any]:
    data, settings, seasons = ask.data, ask.settings, ask.catalogue.rounds
    return {
        "not_here": NOT_HERE,
        "seasons_loaded": (len(seasons), min(seasons), max(seasons)),
        "counts": data.row_counts(),
        # by endpoint, its summary and how many records it has
        "about_values": {
            name: (ask.endpoints[name].summary, ask.content(name, 0).total) for name in ABOUT_VALUES
        },
        "built": data.build()["builtAt"],
        "kinds": KINDS,  # of records
        "coverage": data.coverage(),
        "licence": data.licence(),
        "sources": [*sources(ask, shown_times)],
        # bytes; None if the service does not offer its database
        "download_size": data.file.size if settings.download else None,
    }


def sources(ask: Ask, times: AskedAt) -> Iterator[Source]:
    """The sources. Those that were asked but have given nothing yet come last."""
    # If a source gave results, these count, because other kinds may be of a race without a result.
    order = [*reversed(KINDS)]
    rows = [row for row in ask.rows("newest records") if row["kind"] in KINDS]
    rows.sort(key=lambda row: (row["kind"] == "results", row["date"], order.index(row["kind"])))
    newest = {row["source"]: row for row in rows}
    for row, name, url, asked_at in ask.data.sources_with(times, ""):
        if row is None:
            yield Source(name, url, True, asked_at, records="" if name == COPIED else "none")
            continue
        records = row["gave"] or "none"
        if row["isProvisional"] and row["gave"]:
            records += "; provisional, until another source has them"
        yield Source(
            name,
            url,
            asked_at > row["readAt"],
            max(row["readAt"], asked_at),
            newest.get(row["name"]),
            row["licence"] or "not stated",
            records,
            url is None,
        )

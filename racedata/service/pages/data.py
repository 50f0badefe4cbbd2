"""The page at `/data`: sources with their licences, how fresh and complete the data is."""

from sqlite3 import Row
from typing import Any

from racedata.model import KINDS
from racedata.service.pages.ask import Ask
from racedata.service.snapshot import COPIED, AskedAt
from racedata.service.words import NOT_HERE

# Endpoints about the data itself, which the page links to if they have records.
ABOUT_VALUES = ("corrections", "discrepancies", "changes")


def facts(ask: Ask, shown_times: AskedAt) -> dict[str, Any]:
    data, settings, seasons = ask.data, ask.settings, ask.catalogue.rounds
    return {
        "not_here": NOT_HERE,
        "seasons_loaded": (len(seasons), min(seasons), max(seasons)),
        "counts": data.row_counts(),
        # by endpoint, its summary and how many records it has
        "about_values": {
            name: (ask.endpoints[name].summary, ask.content(name, limit=0).total)
            for name in ABOUT_VALUES
        },
        "built": data.build()["builtAt"],
        "kinds": KINDS,  # of records
        "coverage": data.coverage(),
        "licence": data.licence(),
        # those that were asked but have given nothing yet come last
        "sources": [*data.sources_with(shown_times, "")],
        "copied": COPIED,
        "newest": newest_records(ask),
        # bytes; None if the service does not offer its database
        "download_size": data.file.size if settings.download else None,
    }


def newest_records(ask: Ask) -> dict[str, Row]:
    """The newest records of each source, by its name: `(source, kind, race, date)`.

    If a source gave results, these count, because other kinds may be of a race without a result.
    """
    order = [*reversed(KINDS)]
    rows = [row for row in ask.rows("newest records") if row["kind"] in KINDS]
    rows.sort(key=lambda row: (row["kind"] == "results", row["date"], order.index(row["kind"])))
    return {row["source"]: row for row in rows}

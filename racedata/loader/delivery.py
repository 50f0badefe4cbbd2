"""What a source says, on its way into the store: as tables of a Stage, or taken apart already."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from racedata.formats import public_name
from racedata.loader.correction_lines import NOTED
from racedata.loader.parts import LISTS, Calendar, Part, Row, Tables
from racedata.loader.store import StoredSource

OWN_ID = ("kind", "reference", "id")  # the columns of what a source calls one of its things


class Delivery(NamedTuple):
    """What a source says. Its iterables are read once."""

    source: StoredSource
    calendars: Iterable[Calendar]
    parts: Iterable[tuple[Part, str | None]]  # and when a refresh fetched each
    lists: Mapping[str, Sequence[Row]]  # by name, with `seasons`, `corrections` and `ids`
    # facts that a check of the source has to remember
    notes: Mapping[str, object] = {}


def delivery_of(
    source: StoredSource, tables: Tables, number: int, years: Collection[int] | None = None
) -> Delivery:
    """What the source with a number has given to tables."""
    # Each source gets the whole lists: the source before it may leave the list of sources.
    lists: dict[str, Sequence[Row]]
    lists = {name: tables.list_rows(name) for name in (*LISTS, "seasons")}
    if number == 1:  # a database does not say which source has noted them
        lists["corrections"] = [dict(zip(NOTED, row)) for row in tables.rows("corrections", NOTED)]
    name = public_name(source.name)  # the sample's is not its path
    lists["ids"] = [
        dict(zip(OWN_ID, row))
        for row in tables.rows("ids", (*OWN_ID, "source"))
        if public_name(str(row[-1])) == name
    ]
    parts = tables.parts(number, years, has_ids=source.ids is not None)
    return Delivery(source, tables.calendars(number, years), parts, lists)

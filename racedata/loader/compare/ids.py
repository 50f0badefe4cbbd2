"""Which driver, constructor or circuit of ours each source means: by the source's references, and
by the ids of the table `ids`.
"""

import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from racedata.formats import public_name
from racedata.loader.lists import IdsOf, Lists
from racedata.loader.parts import LIST_OF, REFERENCE, Row
from racedata.loader.sql import insertion
from racedata.loader.store import Store
from racedata.model import LIST_BY_SINGULAR
from racedata.values import Value

# The lists whose rows the sources may call by other references and ids.
IDENTIFIED = ("drivers", "constructors", "circuits")
COLUMNS = ("kind", "reference", "source", "id")


class Register(NamedTuple):
    """What the sources of the list call the things in the lists."""

    rows: Mapping[tuple[str, str], list[Row]]  # by source and list
    ids: Mapping[tuple[str, str], IdsOf]  # ours, by source and list
    # by the column with our ids: our references, by id
    references: Mapping[str, Mapping[Value, Value]]


def register_of(db: sqlite3.Connection, store: Store, lists: Lists) -> Register:
    """The register for the new database, which has its lists."""
    sources = [source.name for source in store.sources()]
    rows = {
        (source, name): store.list_rows(source, name) for source in sources for name in IDENTIFIED
    }
    ids: dict[tuple[str, str], IdsOf] = {}
    for (source, name), of_source in rows.items():
        merged = lists.merged[name]
        own = ((row[merged.reference], merged.find(row)) for row in of_source)
        known = {reference: id for reference, id in own if id is not None}
        ids[source, name] = IdsOf(known, merged.ids)
    references = {
        id: dict(db.execute(f"SELECT {id}, {name} FROM main.{LIST_OF[id]}").fetchall())
        for id, name in REFERENCE.items()
        if LIST_OF[id] in IDENTIFIED
    }
    return Register(rows, ids, references)


def fill_ids(db: sqlite3.Connection, store: Store, register: Register) -> None:
    """Fills the table with the sources' own ids for what the new database has."""
    facts = set()
    for source in store.sources():
        for row in store.list_rows(source.name, "ids"):
            kind, reference, own = (str(row[name]) for name in ("kind", "reference", "id"))
            table = LIST_BY_SINGULAR[kind]
            id = register.ids[source.name, table.name].of(reference)
            if ours := register.references[table.id_key].get(id):
                facts.add((kind, str(ours), public_name(source.name), own))
    db.executemany(insertion("main.ids", COLUMNS), sorted(facts))

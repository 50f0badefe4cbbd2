"""The table `ids`: what the sources call our drivers, constructors and circuits."""

from racedata.formats import public_name
from racedata.loader.compare.sides import Said
from racedata.loader.sql import insertion
from racedata.model import LIST_BY_SINGULAR

COLUMNS = ("kind", "reference", "source", "id")


def fill_ids(said: Said) -> None:
    """Fills the table with the sources' own ids for what the new database has."""
    facts = set()
    for source in said.sources:
        for row in said.store.list_rows(source.name, "ids"):
            kind, reference, own = (str(row[name]) for name in ("kind", "reference", "id"))
            table = LIST_BY_SINGULAR[kind]
            if ours := said.ours(source.name, table.name, reference):
                facts.add((kind, str(ours), public_name(source.name), own))
    said.db.executemany(insertion("main.ids", COLUMNS), sorted(facts))

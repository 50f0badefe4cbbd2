"""What a source asks the database and the store about itself, and about what is missing."""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from racedata.loader.existing import PROVISIONAL, ExistingDatabase, checksum_at_end, open_read_only
from racedata.loader.parts import REFERENCE
from racedata.loader.store import Store, StoredSource
from racedata.model import TABLE_BY_NAME, Table
from racedata.values import Value


class OldDatabase(ExistingDatabase):
    """The database that a refresh may replace, as sources ask it."""

    def references(self, name: str) -> set[Value]:
        """What other rows call those of a list, such as all driverRefs."""
        reference = REFERENCE[TABLE_BY_NAME[name].names[0]]
        return {text for (text,) in self.db.execute(f"SELECT {reference} FROM {name}")}

    def count(self, table: Table, race_id: int | None) -> int:
        """How many rows of a table a race has."""
        (rows,) = self.db.execute(
            f"SELECT count(*) FROM {table.name} WHERE raceId = ?", (race_id,)
        ).fetchone()
        return int(rows)

    def rows(self, table: Table, race_id: int | None) -> list[dict[str, Value]]:
        """The rows of a race in a classification: references and texts instead of ids.

        api_rows.py makes such rows too.
        """
        names = list(table.paths)
        records = self.db.execute(
            f"""SELECT {", ".join(REFERENCE.get(name) or f"classified.{name}" for name in names)}
                FROM {table.name} AS classified
                JOIN drivers USING (driverId) JOIN constructors USING (constructorId)
                {"LEFT JOIN status USING (statusId)" if "statusId" in names else ""}
                WHERE raceId = ?""",
            (race_id,),
        )
        return [dict(zip(names, row)) for row in records]

    def race_id(self, year: int, round: int) -> int | None:
        row = self.db.execute(
            "SELECT raceId FROM races WHERE year = ? AND round = ?", (year, round)
        ).fetchone()
        return int(row[0]) if row else None

    def without_laps(self, also_from_apis: bool) -> dict[int, int]:
        """The races whose results a refresh has stored, and which have no final laps: their seasons
        by raceId. Those whose results are from an API are left out, unless `also_from_apis`.
        """
        sources = enumerate(self.sources(), 1)
        numbers = [number for number, source in sources if also_from_apis or not source.is_api]
        races = self.db.execute(
            f"""SELECT raceId, year FROM origins JOIN races USING (raceId)
                WHERE kind = 'results' AND fetchedAt NOT NULL
                    AND sourceId IN ({", ".join(map(str, numbers))})
                    AND (raceId NOT IN (SELECT raceId FROM lap_times)
                        OR (raceId, 'lap_times') IN ({PROVISIONAL}))"""
        )
        return dict(races.fetchall())

    def provisional(self, kinds: Collection[str]) -> set[int]:
        """The races that have provisional records of one of these kinds."""
        return {race for race, kind in self.db.execute(PROVISIONAL) if kind in kinds}


class History(NamedTuple):
    """What the database, and the store next to it, had of a source before it was asked."""

    path: Path
    name: str  # in the store
    # what the store says about the source; None if it was not read
    source: StoredSource | None = None
    # what refreshes have remembered of the source
    remembered: Mapping[str, Any] = MappingProxyType({})
    # the same, if it is about this database; nothing if it is about another one
    notes: Mapping[str, Any] = MappingProxyType({})
    # the number of the latest reading of each source
    readings: Mapping[str, int] = MappingProxyType({})
    # since when its calendars have lacked races
    lacked: Sequence[str] = ()

    @contextmanager
    def database(self) -> Iterator[OldDatabase]:
        with closing(OldDatabase(self.path)) as old:
            yield old


def history_in(store: Store, path: Path, name: str, address: str) -> History:
    """The history of the source with this name and address, from the store of a database."""
    name = store.name_of(name, address)
    remembered = store.recalled(name)
    return History(
        path,
        name,
        store.source(name),
        remembered,
        remembered if is_about(path, store, remembered) else {},
        store.readings_by_source(),
        [since for each in store.calendars(name) for since in each.lacks.values()],
    )


def is_about(database: Path, store: Store, remembered: Mapping[str, Any]) -> bool:
    """Whether facts that a store remembers of a source are about its database, not another one."""
    with suppress(OSError, sqlite3.Error), closing(open_read_only(database)) as db:
        (id,) = db.execute("SELECT storeId FROM build").fetchone()
        return id == store.state[0] or remembered.get("copied") == checksum_at_end(database)
    return False

"""Queries for what AI assistants are told about the records in an answer: which sources they
are from, and which are provisional, corrected or disputed.

Each takes the kinds of the records, and the raceIds of their races, or None for all races. Other
queries are in queries.py.
"""

from collections.abc import Collection, Mapping
from sqlite3 import Row

from racedata.licences import SOURCES
from racedata.model import KIND_OF_COLUMN
from racedata.service.queries import Where
from racedata.service.snapshot import Snapshot

Races = Collection[int] | None


def where_about(column: str, kinds: Collection[str], races: Races) -> Where:
    """The conditions for rows about these records. The column has their kind or their table."""
    in_rows = {kind for (table, _), kind in KIND_OF_COLUMN.items() if table in kinds}
    where = Where()
    where.among(column, {*kinds, *in_rows})
    if races is not None:
        where.among("raceId", races)
    return where


def sources(data: Snapshot, kinds: Collection[str], races: Races) -> list[Row]:
    """The sources of the records: `(name, licence)`. Lists, such as drivers, are of all sources."""
    where = where_about("kind", kinds, races)
    found = data.rows(
        f"""SELECT name, licence FROM sources
            WHERE sourceId IN (SELECT sourceId FROM origins{where}) ORDER BY sourceId""",
        where.values,
    )
    return found or data.rows(SOURCES)


def corrected_values(data: Snapshot, kinds: Collection[str], races: Races) -> int:
    where = where_about("tableName", kinds, races)
    return int(data.value(f"SELECT count(*) FROM corrections{where}", where.values))


def provisional_races(data: Snapshot, kinds: Collection[str], races: Races) -> list[Row]:
    """The races with provisional records, the latest first: `(year, round, race, kinds, source)`.

    The kinds are separated by commas.
    """
    where = where_about("kind", kinds, races)
    where.add("isProvisional", [])
    return data.rows(
        f"""SELECT year, round, races.name AS race, group_concat(DISTINCT kind) AS kinds,
                sources.name AS source
            FROM origins JOIN sources USING (sourceId) JOIN races USING (raceId){where}
            GROUP BY raceId ORDER BY year DESC, round DESC""",
        where.values,
    )


def disputed_columns(
    data: Snapshot,
    kinds: Collection[str],
    races: Races,
    ids: Mapping[str, Collection[int]] | None,
) -> list[Row]:
    """The columns in which sources disagree: `(columnName, count)`, the most frequent first.

    With `ids`, only values of these drivers, constructors and circuits, by the column of their id.
    """
    where = where_about("kind", kinds, races)
    where.add("state = 'open'", [])
    for column, values in (ids or {}).items():
        its = Where()
        its.among(column, values)
        # for a record, the circuit only says where the race is
        other = "raceId IS NOT NULL OR " if column == "circuitId" else ""
        where.add(f"({other}{column} IS NULL OR {its.terms[0]})", its.values)
    return data.rows(
        f"""SELECT columnName, count(*) AS count FROM discrepancies{where}
            GROUP BY columnName ORDER BY count DESC, columnName""",
        where.values,
    )


def first_change(data: Snapshot) -> str | None:
    """When a build first altered a value; None if none has."""
    time: str | None = data.value("SELECT min(changedAt) FROM changes")
    return time

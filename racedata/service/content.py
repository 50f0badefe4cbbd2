"""The content of answers: what makes a page of objects, and counts all of them.

Each endpoint has a function or a method `page` for this, as its record in endpoints.py says. It
gets rows from queries.py, and makes the objects with serializers.py; or it takes objects from the
catalogue.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from racedata.formats import Json
from racedata.model import STANDINGS, TABLE_BY_NAME
from racedata.service import queries, serializers
from racedata.service.catalogue import Catalogue
from racedata.service.queries import COLUMNS, RecordTable, Wanted
from racedata.service.selection import Selection, wanted_standings
from racedata.service.serializers import AnyRow, Objects, json_object
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings


class Served(NamedTuple):
    """What answers are made of: a database, its catalogue, and the settings."""

    data: Snapshot
    catalogue: Catalogue
    settings: Settings


class Content(NamedTuple):
    """The content of an answer, before it is written in a format."""

    selection: Selection
    total: int  # the number of all records that match
    objects: list[Json]  # the objects of the page


# the number of all records that match, and the objects of the page
TotalAndPage = tuple[int, list[Json]]
# Makes a page of the records that match: `make_page(served, wanted, limit, offset)`.
MakePage = Callable[[Served, Wanted, int, int], TotalAndPage]


@dataclass(frozen=True)
class ObjectList:
    """A list in the catalogue, whose objects are the records of an endpoint."""

    name: str
    ids: Callable[[Served, Wanted], Collection[int]]  # of the objects that match

    def page(self, served: Served, wanted: Wanted, limit: int, offset: int) -> TotalAndPage:
        """A page of all objects, or of those that match."""
        objects, order = served.catalogue.lists[self.name], served.catalogue.orders[self.name]
        if not wanted:
            return len(objects), [*objects.values()][offset : offset + limit]
        # A filter may find races of a season that the list does not have.
        ids = sorted(objects.keys() & self.ids(served, wanted), key=order.__getitem__)
        return len(ids), [objects[id] for id in ids[offset : offset + limit]]


def ids_of_seasons(served: Served, wanted: Wanted) -> set[int]:
    def years(races: Iterable[int]) -> set[int]:
        return {served.catalogue.race_rows[id]["year"] for id in races}

    if "driverstandings" in wanted or "constructorstandings" in wanted:
        # Compared by season, because its two championships may end with different races.
        return set.intersection(
            *(
                years(ids_in_standings(served, standings, "raceId", wanted))
                for standings in (queries.DRIVER_STANDINGS, queries.CONSTRUCTOR_STANDINGS)
                if any(name in wanted for name in standings.own)
            )
        )
    return years(queries.ids_of_races(served.data, wanted))


def ids_of_circuits(served: Served, wanted: Wanted) -> set[int]:
    races = served.catalogue.race_rows
    return {races[id]["circuitId"] for id in queries.ids_of_races(served.data, wanted)}


def ids_of_entrants(
    name: str, standings: RecordTable, served: Served, wanted: Wanted
) -> Collection[int]:
    column = COLUMNS[name]
    if standings.kind.endpoint in wanted:
        return ids_in_standings(served, standings, column, wanted)
    if set(wanted) == {name}:  # a driver who never raced is in the answer too
        return [int(wanted[name])]
    return queries.ids_in_results(served.data, column, wanted)


def ids_in_standings(
    served: Served, standings: RecordTable, column: str, wanted: Wanted
) -> set[int]:
    """The driverIds, constructorIds or raceIds in the standings that an address selects."""
    lists = wanted_standings(served.catalogue, standings.name, wanted)
    if lists is None:
        return set()
    return queries.distinct(served.data, column, standings.name, standings.where(lists))


SEASONS = ObjectList("seasons", ids_of_seasons)
CIRCUITS = ObjectList("circuits", ids_of_circuits)
RACES = ObjectList("races", lambda served, wanted: queries.ids_of_races(served.data, wanted))
DRIVERS = ObjectList("drivers", partial(ids_of_entrants, "drivers", queries.DRIVER_STANDINGS))
CONSTRUCTORS = ObjectList(
    "constructors", partial(ids_of_entrants, "constructors", queries.CONSTRUCTOR_STANDINGS)
)


# Makes the records of one race of its rows in a table: `of_race(served, table, rows)`.
OfRace = Callable[[Served, RecordTable, Sequence[AnyRow]], list[Json]]


def page_of_records(
    table: RecordTable, of_race: OfRace, served: Served, wanted: Wanted, limit: int, offset: int
) -> TotalAndPage:
    """The rows of a table as records: in their races, or in lists of standings.

    The lists are one per season, or the one after a round. A driver may have two rows in a race,
    but each race is in `Races` once (D23).
    """
    catalogue, has_lists = served.catalogue, table.name in STANDINGS
    selected = wanted_standings(catalogue, table.name, wanted) if has_lists else wanted
    if selected is None:
        return 0, []
    total, rows = table.page(served.data, selected, limit, offset)

    def without_records(race: int) -> Json:
        if has_lists:
            return serializers.standings_list(catalogue.race_rows[race])
        return catalogue.races[race]

    key = table.kind.keys[2]
    return total, [
        {**without_records(id), key: of_race(served, table, list(rows_of_race))}
        for id, rows_of_race in groupby(rows, itemgetter("raceId"))
    ]


def each_row(
    record: Callable[[AnyRow, Objects, Objects], Json],
    served: Served,
    _: RecordTable,
    rows: Sequence[AnyRow],
) -> list[Json]:
    """A record for each row, which needs only drivers and constructors."""
    drivers, constructors = served.catalogue.drivers, served.catalogue.constructors
    return [record(row, drivers, constructors) for row in rows]


def classification(
    formats: Mapping[str, serializers.TimeFormat],
    served: Served,
    table: RecordTable,
    rows: Sequence[AnyRow],
) -> list[Json]:
    """Results of a race or sprint, with times in the format that the settings name."""
    data, catalogue, settings = served
    format_time, winner = formats[settings.finish_times], None
    if settings.finish_times == "gap":
        winner = queries.winner_time(data, table, rows[0]["raceId"])
    drivers, constructors = catalogue.drivers, catalogue.constructors
    return [
        serializers.result(row, drivers, constructors, catalogue.statuses, format_time, winner)
        for row in rows
    ]


def laps(served: Served, _: RecordTable, rows: Sequence[AnyRow]) -> list[Json]:
    return serializers.laps(rows, served.catalogue.drivers)


def statuses(served: Served, wanted: Wanted, limit: int, offset: int) -> TotalAndPage:
    """The statuses of matching results with their counts, the most frequent first."""
    texts = served.catalogue.statuses
    counts = sorted(
        queries.status_counts(served.data, wanted), key=lambda each: (-each[1], texts[each[0]])
    )
    page = counts[offset : offset + limit]
    return len(counts), [
        json_object(statusId=id, count=count, status=texts[id]) for id, count in page
    ]


def of_rows(
    query: Callable[[Snapshot, Wanted, int, int], tuple[int, list[AnyRow]]],
    served: Served,
    wanted: Wanted,
    limit: int,
    offset: int,
) -> TotalAndPage:
    """Each row of a query is an object: its columns have the names that answers have."""
    total, rows = query(served.data, wanted, limit, offset)
    return total, [json_object(**row) for row in rows]


corrections = partial(of_rows, partial(queries.notes, "corrections"))
changes = partial(of_rows, partial(queries.notes, "changes"))
discrepancy_counts = partial(of_rows, queries.discrepancy_counts)


def discrepancies(served: Served, wanted: Wanted, limit: int, offset: int) -> TotalAndPage:
    """Matching facts about which sources disagree, the most doubtful first."""
    total, rows = queries.notes("discrepancies", served.data, wanted, limit, offset)
    values = queries.values_of_sources(served.data, [row["record"] for row in rows])
    found = []
    for row in map(dict, rows):
        said = values[row.pop("record")]
        sources = [json_object(source=source, value=value) for _, source, value in said]
        found.append(json_object(**row, Sources=sources))
    return total, found


def source_ids(served: Served, wanted: Wanted, limit: int, offset: int) -> TotalAndPage:
    """What sources call matching drivers, constructors and circuits.

    If a filter names one, the others do not match.
    """
    references: dict[str, list[str]] | None = None
    if wanted:
        lists = (DRIVERS, CONSTRUCTORS, CIRCUITS)
        references = {}
        for each in [each for each in lists if each.name in wanted] or lists:
            table, objects = TABLE_BY_NAME[each.name], served.catalogue.lists[each.name]
            ids = each.ids(served, wanted)
            references[table.singular] = [objects[id][table.id_key] for id in ids]
    rows = queries.ids_of_sources(served.data, references)
    return len(rows), [json_object(**row) for row in rows[offset : offset + limit]]


def with_provenance(served: Served, kind: str, objects: Sequence[Json]) -> list[Json]:
    """Races or standings lists, each with where its records of a kind are from, if it has any.

    Fastest laps have a source of their own.
    """
    data, catalogue, _ = served
    ids = [catalogue.id_of_round[int(each["season"]), int(each["round"])] for each in objects]
    found = queries.origins(data, kind, ids)
    laps = queries.origins(data, "fastest_laps", ids) if kind == "results" else {}
    return [
        {**each, "Provenance": serializers.provenance(found[id], laps.get(id))}
        if id in found
        else each
        for id, each in zip(ids, objects)
    ]

"""The endpoints: one record each, with its facts and the function that makes a page of it.

The way of a request, once request.py has parsed it:

1. `Endpoint.content` lets the catalogue say what its address selects: `Wanted`, with the database's
   own ids instead of those in the address.
2. It calls the endpoint's function `page`, such as `page_of_races`. This one gets rows from
   queries.py, and makes the objects with serializers.py; or it takes objects from the catalogue.
3. `Endpoint.answer` puts the objects into the envelope `MRData`, with what repeats the request.
   Instead, answers.py gives the content to the writer of another format.

`ENDPOINTS` is the only list of them. Routes, messages, the page at `/docs`, the OpenAPI paths and
the tests use it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from racedata import model
from racedata.formats import Json
from racedata.service import queries, serializers
from racedata.service.addresses import ATOM, CSV, ICS, JSON, Rules
from racedata.service.catalogue import Catalogue, Selection
from racedata.service.queries import RESULT_COLUMNS, RecordTable, Wanted
from racedata.service.request import PROVENANCE, ParsedRequest
from racedata.service.serializers import Objects, Row
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings


class Served(NamedTuple):
    """What answers are made of: a database, its catalogue, and the settings."""

    data: Snapshot
    catalogue: Catalogue
    settings: Settings


# the number of all records that match, and the objects of the page
TotalAndPage = tuple[int, list[Json]]
# One page of the records that match: `page(served, wanted, limit, offset)`.
MakePage = Callable[[Served, Wanted, int, int], TotalAndPage]
# The records that the rows of one race become.
ToRecords = Callable[[Served, Sequence[Row]], list[Json]]
# The ids of the objects of a list that match.
Ids = Callable[[Served, Wanted], Collection[int]]


class Content(NamedTuple):
    """The content of an answer, before it is written in a format."""

    selection: Selection
    total: int  # the number of all records that match
    objects: list[Json]  # the objects of the page


@dataclass(frozen=True, eq=False)
class Endpoint:
    """An endpoint under the base address: the last word of an address is its name."""

    name: str
    # in MRData: of the table, of the list of objects in it, and of the list of records in each
    keys: Sequence[str]
    summary: str  # one line, for the page at `/docs` and the OpenAPI document
    rules: Rules
    schema: str  # of a record, in openapi.json
    page: MakePage
    not_echoed: frozenset[str] = frozenset()  # filters that the table does not repeat
    record_kind: str = ""  # the name in KINDS; empty if its records are of none
    # whether the OpenAPI document has only its path without season and round
    has_one_path: bool = False

    @property
    def table_key(self) -> str:
        """`RaceTable`."""
        return self.keys[0]

    @property
    def objects_key(self) -> str:
        """`Races`."""
        return self.keys[1]

    @property
    def records_key(self) -> str:
        """`Results`; empty if each object is a record."""
        return self.keys[2] if len(self.keys) > 2 else ""

    @property
    def container(self) -> str:
        """The schema of an object that has records, without them: `Race` for `Races`."""
        return self.objects_key.removesuffix("s")

    def content(self, served: Served, request: ParsedRequest) -> Content:
        """The content of the answer to a request. Raises NoLastRound."""
        selection = served.catalogue.select(request.address)
        if selection.wanted is None:
            return Content(selection, 0, [])
        wanted = {**selection.wanted, **self.selecting_parameters(request)}
        return Content(selection, *self.page(served, wanted, request.limit, request.offset))

    def selecting_parameters(self, request: ParsedRequest) -> Wanted:
        """The endpoint's own parameters that select records."""
        own = {*self.rules.parameters} - {PROVENANCE}
        return {f"?{name}": value for name, value in request.parameters if name in own}

    def answer(self, served: Served, request: ParsedRequest) -> Json:
        """The whole answer, as JSON. Raises NoLastRound."""
        selection, total, objects = self.content(served, request)
        if PROVENANCE in dict(request.parameters):
            objects = with_provenance(served, self.record_kind, objects)
        table = {**self.echo(served.catalogue, selection, request), self.objects_key: objects}
        return serializers.mrdata(
            served.settings.series,
            f"{request.base_url}/{request.address.path}.json",
            limit=request.limit,
            offset=request.offset,
            total=total,
            **{self.table_key: table},
        )

    def echo(self, catalogue: Catalogue, selection: Selection, request: ParsedRequest) -> Json:
        """The part of the table that repeats the request."""
        filters = request.address.filters
        echoed = serializers.echo(
            selection.season,
            selection.round,
            {name: value for name, value in filters.items() if name not in self.not_echoed},
        )
        if self.record_kind in model.STANDINGS and selection.season and not selection.round:
            latest = catalogue.latest_with[self.record_kind].get(selection.season)
            if latest is not None:
                # D14: clients read it
                echoed["round"] = str(catalogue.race_rows[latest]["round"])
        return echoed


def with_provenance(served: Served, kind: str, objects: Sequence[Json]) -> list[Json]:
    """Races or standings lists, each with where its records are from."""
    catalogue = served.catalogue
    ids = [catalogue.id_of_round[int(each["season"]), int(each["round"])] for each in objects]
    found = provenances(served.data, kind, ids)
    return [
        {**each, "Provenance": found[id]} if id in found else each for id, each in zip(ids, objects)
    ]


def provenances(data: Snapshot, kind: str, races: Sequence[int]) -> dict[int, Json]:
    """Where the records of a kind are from, by raceId. Fastest laps have a source of their own."""
    laps = queries.provenance(data, "fastest_laps", races) if kind == "results" else {}
    return {
        id: serializers.provenance(row, laps.get(id))
        for id, row in queries.provenance(data, kind, races).items()
    }


def page_of_list(
    objects_of: Callable[[Catalogue], Objects],
    ids: Ids,
    served: Served,
    wanted: Wanted,
    limit: int,
    offset: int,
) -> TotalAndPage:
    """Objects in the catalogue: all, or those that match."""
    objects = objects_of(served.catalogue)
    matching = ids(served, wanted) if wanted else objects
    found = [each for id, each in objects.items() if id in matching]
    return len(found), found[offset : offset + limit]


def ids_of_seasons(served: Served, wanted: Wanted) -> set[int]:
    """The seasons with a matching race, or a matching standing."""

    def years(races: Iterable[int]) -> set[int]:
        return {served.catalogue.race_rows[id]["year"] for id in races}

    if "driverstandings" in wanted or "constructorstandings" in wanted:
        # Compared by season, because its two championships may end with different races.
        return set.intersection(
            *(
                years(ids_in_chosen_standings(served, standings, "raceId", wanted))
                for standings in (queries.DRIVER_STANDINGS, queries.CONSTRUCTOR_STANDINGS)
                if any(name in wanted for name in standings.filter_columns)
            )
        )
    return years(queries.ids_of_races(served.data, wanted))


def ids_of_circuits(served: Served, wanted: Wanted) -> set[int]:
    """The circuitIds of matching races."""
    races = served.catalogue.race_rows
    return {races[id]["circuitId"] for id in queries.ids_of_races(served.data, wanted)}


def ids_of_entrants(
    name: str, standings: RecordTable, served: Served, wanted: Wanted
) -> Collection[int]:
    """The driverIds or constructorIds of matching results, or in matching standings."""
    column = RESULT_COLUMNS[name]
    if standings.kind.endpoint in wanted:
        return ids_in_chosen_standings(served, standings, column, wanted)
    if set(wanted) == {name}:  # a driver who never raced is in the answer too
        return [int(wanted[name])]
    return queries.ids_of_entrants(served.data, column, wanted)


ids_of_drivers = partial(ids_of_entrants, "drivers", queries.DRIVER_STANDINGS)
ids_of_constructors = partial(ids_of_entrants, "constructors", queries.CONSTRUCTOR_STANDINGS)


def ids_in_chosen_standings(
    served: Served, standings: RecordTable, column: str, wanted: Wanted
) -> set[int]:
    """The driverIds, constructorIds or raceIds in the standings that an address selects."""
    lists = served.catalogue.wanted_lists(standings.name, wanted)
    return queries.ids_in_standings(served.data, standings, column, lists) if lists else set()


def scheduled_races(served: Served, wanted: Wanted, limit: int, offset: int) -> TotalAndPage:
    """Matching races, with their sessions."""
    catalogue = served.catalogue
    ids = (
        sorted(queries.ids_of_races(served.data, wanted), key=catalogue.race_order.__getitem__)
        if wanted
        else [*catalogue.races]
    )
    return len(ids), [catalogue.calendar[id] for id in ids[offset : offset + limit]]


def statuses(served: Served, wanted: Wanted, limit: int, offset: int) -> TotalAndPage:
    """The statuses of matching results with their counts, the most frequent first."""
    texts = served.catalogue.statuses
    counts = sorted(
        queries.status_counts(served.data, wanted), key=lambda each: (-each[1], texts[each[0]])
    )
    page = counts[offset : offset + limit]
    return len(counts), [serializers.status(id, count, texts[id]) for id, count in page]


def corrections(served: Served, wanted: Wanted, limit: int, offset: int) -> TotalAndPage:
    """Matching corrections."""
    total, rows = queries.notes(served.data, "corrections", wanted, limit, offset)
    races = served.catalogue.race_rows
    return total, [serializers.correction(row, races.get(row["raceId"])) for row in rows]


def changes(served: Served, wanted: Wanted, limit: int, offset: int) -> TotalAndPage:
    """Matching changes, the newest first."""
    total, rows = queries.notes(served.data, "changes", wanted, limit, offset)
    return total, [serializers.change(row, ids_of_note(served, row)) for row in rows]


def discrepancies(served: Served, wanted: Wanted, limit: int, offset: int) -> TotalAndPage:
    """Matching facts about which sources disagree, the most doubtful first."""
    total, rows = queries.notes(served.data, "discrepancies", wanted, limit, offset)
    values = queries.values_of_sources(served.data, rows)
    races = served.catalogue.race_rows
    return total, [
        serializers.discrepancy(
            row, races.get(row["raceId"]), ids_of_note(served, row), values[row["record"]]
        )
        for row in rows
    ]


def ids_of_note(served: Served, row: Row) -> dict[str, str | None]:
    catalogue = served.catalogue
    return serializers.ids_of_note(
        row, catalogue.drivers, catalogue.constructors, catalogue.circuits
    )


def discrepancy_counts(served: Served, wanted: Wanted, limit: int, offset: int) -> TotalAndPage:
    """How many facts sources disagree about, by kind, season and state."""
    total, rows = queries.discrepancy_counts(served.data, wanted, limit, offset)
    return total, list(map(serializers.discrepancy_count, rows))


def source_ids(served: Served, wanted: Wanted, limit: int, offset: int) -> TotalAndPage:
    """What sources call matching drivers, constructors and circuits.

    If a filter names one, the others do not match.
    """
    catalogue = served.catalogue
    # By filter: the kind in the rows, the objects, and which of them match.
    lists: Mapping[str, tuple[str, Objects, Ids]] = {
        "drivers": ("driver", catalogue.drivers, ids_of_drivers),
        "constructors": ("constructor", catalogue.constructors, ids_of_constructors),
        "circuits": ("circuit", catalogue.circuits, ids_of_circuits),
    }
    rows = queries.ids_of_sources(served.data)
    if wanted:
        named = [name for name in lists if name in wanted]
        matching = set[tuple[str, str]]()
        for name in named or lists:
            kind, objects, ids = lists[name]
            matching.update((kind, objects[id][f"{kind}Id"]) for id in ids(served, wanted))
        rows = [row for row in rows if (row["kind"], row["reference"]) in matching]
    return len(rows), list(map(serializers.source_id, rows[offset : offset + limit]))


def page_of_races(
    table: RecordTable, records: ToRecords, served: Served, wanted: Wanted, limit: int, offset: int
) -> TotalAndPage:
    """Races with their records.

    A driver may have two rows in a race, but each race is in `Races` once (D23).
    """
    total, rows = table.page(served.data, wanted, limit, offset)
    races, key = served.catalogue.races, table.kind.keys[2]
    return total, [
        {**races[id], key: records(served, list(of_race))}
        for id, of_race in groupby(rows, itemgetter("raceId"))
    ]


def page_of_standings(
    table: RecordTable, records: ToRecords, served: Served, wanted: Wanted, limit: int, offset: int
) -> TotalAndPage:
    """Standings in a championship: one list per season, or the one after a round."""
    lists = served.catalogue.wanted_lists(table.name, wanted)
    if lists is None:
        return 0, []
    total, rows = table.page(served.data, lists, limit, offset)
    races, key = served.catalogue.race_rows, table.kind.keys[2]
    return total, [
        {
            **serializers.echo(races[id]["year"], races[id]["round"], {}),
            key: records(served, list(of_race)),
        }
        for id, of_race in groupby(rows, itemgetter("raceId"))
    ]


def race_results(served: Served, rows: Sequence[Row]) -> list[Json]:
    return classification(queries.RESULTS, serializers.RACE_TIMES, served, rows)


def sprint_results(served: Served, rows: Sequence[Row]) -> list[Json]:
    return classification(queries.SPRINT, serializers.SPRINT_TIMES, served, rows)


def classification(
    table: RecordTable,
    formats: Mapping[str, serializers.TimeFormat],
    served: Served,
    rows: Sequence[Row],
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


def for_each_row(
    record: Callable[[Row, Objects, Objects], Json], served: Served, rows: Sequence[Row]
) -> list[Json]:
    """A record for each row, which needs only drivers and constructors."""
    drivers, constructors = served.catalogue.drivers, served.catalogue.constructors
    return [record(row, drivers, constructors) for row in rows]


def laps(served: Served, rows: Sequence[Row]) -> list[Json]:
    return serializers.laps(rows, served.catalogue.drivers)


def of_table(
    table: RecordTable,
    summary: str,
    schema: str,
    page: Callable[[RecordTable, ToRecords, Served, Wanted, int, int], TotalAndPage],
    records: ToRecords,
    not_echoed: frozenset[str] = frozenset(),
) -> Endpoint:
    """An endpoint whose records are the rows of a table, which has its name, keys and filters."""
    return Endpoint(
        table.kind.endpoint,
        table.kind.keys,
        summary,
        # Without a season, a page would have to count the records of every race.
        Rules(
            table.filters,
            needs_season=table.kind.is_numbered_by_race,
            parameters=(PROVENANCE,),
        ),
        schema,
        partial(page, table, records),
        not_echoed,
        record_kind=table.name,
    )


# The filters of a row of `results`: its columns, and the circuit of its race.
RESULT_FILTERS = queries.RESULTS.filters
# Those of a row of `changes` or `discrepancies`, and of an id. A correction has no circuit.
NOTE_FILTERS = frozenset({"circuits", "constructors", "drivers"})

# In the order of `/docs` and the OpenAPI document.
ENDPOINTS: Sequence[Endpoint] = (
    Endpoint(
        "seasons",
        model.TABLE_BY_NAME["seasons"].keys,
        summary="Seasons",
        rules=Rules(
            RESULT_FILTERS | {"driverstandings", "constructorstandings"},  # places (D13)
            only_beside={
                "driverstandings": frozenset({"constructorstandings", "drivers", "constructors"}),
                "constructorstandings": frozenset({"driverstandings", "drivers", "constructors"}),
            },
        ),
        schema="SeasonObject",
        has_one_path=True,
        page=partial(page_of_list, lambda catalogue: catalogue.seasons, ids_of_seasons),
    ),
    Endpoint(
        "circuits",
        ("CircuitTable", "Circuits"),
        summary="Circuits",
        rules=Rules(RESULT_FILTERS),
        schema="Circuit",
        page=partial(page_of_list, lambda catalogue: catalogue.circuits, ids_of_circuits),
    ),
    Endpoint(
        "races",
        model.TABLE_BY_NAME["races"].keys,
        summary="Races with their sessions: a season's calendar, or one race",
        rules=Rules(RESULT_FILTERS, endings=(JSON, CSV, ICS)),
        schema="ScheduledRace",
        page=scheduled_races,
    ),
    Endpoint(
        "constructors",
        ("ConstructorTable", "Constructors"),
        summary="Constructors",
        rules=Rules(
            RESULT_FILTERS | {"constructorstandings"},
            only_beside={"constructorstandings": frozenset({"constructors"})},
        ),
        schema="Constructor",
        page=partial(page_of_list, lambda catalogue: catalogue.constructors, ids_of_constructors),
    ),
    Endpoint(
        "drivers",
        ("DriverTable", "Drivers"),
        summary="Drivers",
        rules=Rules(
            RESULT_FILTERS | {"qualifying", "driverstandings"},
            only_beside={"driverstandings": frozenset({"drivers"})},
        ),
        schema="Driver",
        page=partial(page_of_list, lambda catalogue: catalogue.drivers, ids_of_drivers),
    ),
    of_table(queries.RESULTS, "Race results", "Result", page_of_races, race_results),
    of_table(
        queries.QUALIFYING,
        "Qualifying results",
        "QualifyingResult",
        page_of_races,
        partial(for_each_row, serializers.qualifying_result),
    ),
    of_table(queries.SPRINT, "Sprint results", "Result", page_of_races, sprint_results),
    of_table(
        queries.SPRINT_QUALIFYING,
        "Sprint qualifying results",
        "QualifyingResult",
        page_of_races,
        partial(for_each_row, serializers.qualifying_result),
    ),
    of_table(
        queries.PRACTICE,
        "Practice results",
        "PracticeResult",
        page_of_races,
        partial(for_each_row, serializers.practice_result),
    ),
    of_table(
        queries.PITSTOPS,
        "Pit stops",
        "PitStop",
        page_of_races,
        partial(for_each_row, serializers.pit_stop),
    ),
    of_table(queries.LAPS, "Lap timings", "Lap", page_of_races, laps, frozenset({"laps"})),
    of_table(
        queries.DRIVER_STANDINGS,
        "Driver standings",
        "DriverStanding",
        page_of_standings,
        partial(for_each_row, serializers.driver_standing),
    ),
    of_table(
        queries.CONSTRUCTOR_STANDINGS,
        "Constructor standings",
        "ConstructorStanding",
        page_of_standings,
        partial(for_each_row, serializers.constructor_standing),
    ),
    Endpoint(
        "status",
        model.TABLE_BY_NAME["status"].keys,
        summary="Finishing statuses with their counts",
        rules=Rules(RESULT_FILTERS),
        schema="Status",
        page=statuses,
    ),
    Endpoint(
        "corrections",
        ("CorrectionTable", "Corrections"),
        summary="Corrected values, with the source's value and the evidence",
        rules=Rules(frozenset({"constructors", "drivers"})),
        schema="Correction",
        has_one_path=True,
        page=corrections,
    ),
    Endpoint(
        "changes",
        ("ChangeTable", "Changes"),
        summary="Values that a new database altered: the old one, the new one, and why",
        rules=Rules(
            NOTE_FILTERS,
            endings=(JSON, CSV, ATOM),
            parameters=("since",),
        ),
        schema="Change",
        has_one_path=True,
        page=changes,
    ),
    Endpoint(
        "discrepancies",
        ("DiscrepancyTable", "Discrepancies"),
        summary="Facts about which sources disagree, the most doubtful first",
        rules=Rules(NOTE_FILTERS, parameters=("state",)),
        schema="Discrepancy",
        has_one_path=True,
        page=discrepancies,
    ),
    Endpoint(
        "discrepancycounts",
        ("DiscrepancyTable", "Counts"),
        summary="About how many facts sources disagree, by kind, season and state",
        rules=Rules(NOTE_FILTERS, parameters=("state",)),
        schema="DiscrepancyCount",
        has_one_path=True,
        page=discrepancy_counts,
    ),
    Endpoint(
        "ids",
        ("IdTable", "Ids"),
        summary="What each source calls drivers, constructors and circuits",
        rules=Rules(NOTE_FILTERS),
        schema="SourceId",
        has_one_path=True,
        page=source_ids,
    ),
)
BY_NAME: Mapping[str, Endpoint] = {endpoint.name: endpoint for endpoint in ENDPOINTS}
RULES: Mapping[str, Rules] = {endpoint.name: endpoint.rules for endpoint in ENDPOINTS}

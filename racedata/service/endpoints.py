"""The endpoints: one record each, with its facts and the function that makes a page of it.

The way of a request, once request.py has parsed it:

1. `Endpoint.find` lets selection.py say what its address selects: `Wanted`, with the database's
   own ids instead of those in the address.
2. It calls the endpoint's function `make_page`, which is in content.py.
3. answers.py gives this content to the writer of a format. For JSON, `Endpoint.in_envelope` puts
   the objects into the envelope `MRData`, with what repeats the request.

`ENDPOINTS` is the only list of them. Routes, messages, the page at `/docs`, the OpenAPI paths and
the tests use it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from racedata import model
from racedata.formats import Json
from racedata.service import content, queries, serializers
from racedata.service.addresses import ATOM, CSV, ICS, JSON, Rules
from racedata.service.catalogue import Catalogue
from racedata.service.content import (
    Content,
    MakePage,
    OfRace,
    Served,
    classification,
    each_row,
    page_of_records,
)
from racedata.service.queries import RecordTable
from racedata.service.request import PROVENANCE, ParsedRequest
from racedata.service.selection import Selection, select

# The schemas of objects that have records, by the key of their list.
CONTAINERS = {"Races": "Race", "StandingsLists": "StandingsList"}


@dataclass(frozen=True, eq=False)
class Endpoint:
    """An endpoint under the base address: the last word of an address is its name."""

    name: str
    # in MRData: of the table, of the list of objects in it, and of the list of records in each
    keys: Sequence[str]
    summary: str  # one line, for the page at `/docs` and the OpenAPI document
    rules: Rules
    schema: str  # of a record, in openapi.json
    make_page: MakePage
    not_echoed: frozenset[str] = frozenset()  # filters that the table does not repeat
    record_kind: str = ""  # the name in KINDS; empty if its records are of none
    # Whether programs ask for it by race. Otherwise, the OpenAPI document has only its path without
    # season and round, and a static copy has no list of a race.
    is_asked_by_race: bool = True

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
        return CONTAINERS[self.objects_key]

    def find(self, served: Served, request: ParsedRequest) -> Content:
        """The content of the answer to a request. Raises NoLastRound."""
        selection = select(served.catalogue, request.address)
        if selection.wanted is None:
            return Content(selection, 0, [])
        own = {*self.rules.parameters} - {PROVENANCE}  # those that select records
        parameters = {name: value for name, value in request.parameters if name in own}
        wanted = {**selection.wanted, **parameters}
        return Content(selection, *self.make_page(served, wanted, request.limit, request.offset))

    def answer(self, served: Served, request: ParsedRequest) -> Json:
        """The whole answer, as JSON. Raises NoLastRound."""
        return self.in_envelope(served, request, self.find(served, request))

    def in_envelope(self, served: Served, request: ParsedRequest, found: Content) -> Json:
        """The whole answer, as JSON, from its content."""
        selection, total, objects = found
        if PROVENANCE in dict(request.parameters):
            objects = content.with_provenance(served, self.record_kind, objects)
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


def of_table(
    table: RecordTable,
    of_race: OfRace,
    summary: str,
    schema: str,
    not_echoed: frozenset[str] = frozenset(),
) -> Endpoint:
    """An endpoint whose records are the rows of a table, which has its name, keys and filters."""
    return Endpoint(
        table.kind.endpoint,
        table.kind.keys,
        summary,
        # Without a season, a page would have to count the records of every race.
        Rules(table.filters, needs_season=table.kind.is_numbered_by_race, parameters=(PROVENANCE,)),
        schema,
        partial(page_of_records, table, of_race),
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
        is_asked_by_race=False,
        make_page=content.SEASONS.page,
    ),
    Endpoint(
        "circuits",
        ("CircuitTable", "Circuits"),
        summary="Circuits",
        rules=Rules(RESULT_FILTERS),
        schema="Circuit",
        make_page=content.CIRCUITS.page,
    ),
    Endpoint(
        "races",
        model.TABLE_BY_NAME["races"].keys,
        summary="Races with their sessions: a season's calendar, or one race",
        rules=Rules(RESULT_FILTERS, endings=(JSON, CSV, ICS)),
        schema="ScheduledRace",
        make_page=content.RACES.page,
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
        make_page=content.CONSTRUCTORS.page,
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
        make_page=content.DRIVERS.page,
    ),
    of_table(
        queries.RESULTS, partial(classification, serializers.RACE_TIMES), "Race results", "Result"
    ),
    of_table(
        queries.QUALIFYING,
        partial(each_row, serializers.qualifying_result),
        "Qualifying results",
        "QualifyingResult",
    ),
    of_table(
        queries.SPRINT,
        partial(classification, serializers.SPRINT_TIMES),
        "Sprint results",
        "Result",
    ),
    of_table(
        queries.SPRINT_QUALIFYING,
        partial(each_row, serializers.qualifying_result),
        "Sprint qualifying results",
        "QualifyingResult",
    ),
    of_table(
        queries.PRACTICE,
        partial(each_row, serializers.practice_result),
        "Practice results",
        "PracticeResult",
    ),
    of_table(queries.PITSTOPS, partial(each_row, serializers.pit_stop), "Pit stops", "PitStop"),
    of_table(queries.LAPS, content.laps, "Lap timings", "Lap", frozenset({"laps"})),
    of_table(
        queries.DRIVER_STANDINGS,
        partial(each_row, serializers.driver_standing),
        "Driver standings",
        "DriverStanding",
    ),
    of_table(
        queries.CONSTRUCTOR_STANDINGS,
        partial(each_row, serializers.constructor_standing),
        "Constructor standings",
        "ConstructorStanding",
    ),
    Endpoint(
        "status",
        model.TABLE_BY_NAME["status"].keys,
        summary="Finishing statuses with their counts",
        rules=Rules(RESULT_FILTERS),
        schema="Status",
        make_page=content.statuses,
    ),
    Endpoint(
        "corrections",
        ("CorrectionTable", "Corrections"),
        summary="Corrected values, with the source's value and the evidence",
        rules=Rules(frozenset({"constructors", "drivers"})),
        schema="Correction",
        is_asked_by_race=False,
        make_page=content.corrections,
    ),
    Endpoint(
        "changes",
        ("ChangeTable", "Changes"),
        summary="Values that a new database altered: the old one, the new one, and why",
        rules=Rules(NOTE_FILTERS, endings=(JSON, CSV, ATOM), parameters=("since",)),
        schema="Change",
        is_asked_by_race=False,
        make_page=content.changes,
    ),
    Endpoint(
        "discrepancies",
        ("DiscrepancyTable", "Discrepancies"),
        summary="Facts about which sources disagree, the most doubtful first",
        rules=Rules(NOTE_FILTERS, parameters=("state",)),
        schema="Discrepancy",
        is_asked_by_race=False,
        make_page=content.discrepancies,
    ),
    Endpoint(
        "discrepancycounts",
        ("DiscrepancyTable", "Counts"),
        summary="About how many facts sources disagree, by kind, season and state",
        rules=Rules(NOTE_FILTERS, parameters=("state",)),
        schema="DiscrepancyCount",
        is_asked_by_race=False,
        make_page=content.discrepancy_counts,
    ),
    Endpoint(
        "ids",
        ("IdTable", "Ids"),
        summary="What each source calls drivers, constructors and circuits",
        rules=Rules(NOTE_FILTERS),
        schema="SourceId",
        is_asked_by_race=False,
        make_page=content.source_ids,
    ),
)
BY_NAME: Mapping[str, Endpoint] = {endpoint.name: endpoint for endpoint in ENDPOINTS}
RULES: Mapping[str, Rules] = {endpoint.name: endpoint.rules for endpoint in ENDPOINTS}

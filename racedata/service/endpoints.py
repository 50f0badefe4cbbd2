"""The endpoints: one class each, which declares the endpoint and makes the objects of its answers.

`ENDPOINTS` is the only list of them. Routes, messages, the page at `/docs`, the OpenAPI paths and
the tests use it. HTTP is in endpoint.py, SQL in queries.py, the JSON objects in
serializers.py.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import ClassVar

from racedata.formats import Json
from racedata.model import BY_NAME
from racedata.service import queries, serializers
from racedata.service.addresses import CSV, ICS, JSON, Rules
from racedata.service.catalogue import Selection
from racedata.service.endpoint import Endpoint, TotalAndPage, page_of
from racedata.service.queries import Filters, RecordTable
from racedata.service.request import ParsedRequest
from racedata.service.serializers import Row

# The filters of a row of `results`: its columns, and the circuit of its race.
RESULT_FILTERS = queries.RESULTS.filters


class Seasons(Endpoint):
    """`/seasons`: the seasons with a matching race, or a matching standing."""

    name = "seasons"
    summary = "Seasons"
    rules = Rules(
        RESULT_FILTERS | {"driverstandings", "constructorstandings"},  # D13
        only_beside={
            "driverstandings": frozenset({"constructorstandings", "drivers", "constructors"}),
            "constructorstandings": frozenset({"driverstandings", "drivers", "constructors"}),
        },
    )
    schema = "SeasonObject"
    table, objects = BY_NAME["seasons"].keys

    def page(self, filters: Filters, limit: int, offset: int) -> TotalAndPage:
        seasons = self.catalogue.seasons
        if not filters:
            return page_of(list(seasons.values()), limit, offset)
        if "driverstandings" in filters or "constructorstandings" in filters:
            years = self.standing_years(filters)
        else:
            years = self.years(queries.ids_of_races(self.data, filters))
        return page_of([season for year, season in seasons.items() if year in years], limit, offset)

    def standing_years(self, filters: Filters) -> set[int]:
        """The seasons with the driver, the constructor or both in the standings."""
        # Compared by season, because its two championships may end with different races.
        return set.intersection(
            *(
                self.years(ids_in_chosen_standings(self, standings, "raceId", filters))
                for standings in (queries.DRIVER_STANDINGS, queries.CONSTRUCTOR_STANDINGS)
                if any(name in filters for name in standings.filter_columns)
            )
        )

    def years(self, races: Iterable[int]) -> set[int]:
        return {self.catalogue.race_rows[id]["year"] for id in races}


class Circuits(Endpoint):
    """`/circuits`: the circuits of matching races."""

    name = "circuits"
    summary = "Circuits"
    rules = Rules(RESULT_FILTERS)
    schema = "Circuit"
    table, objects = "CircuitTable", "Circuits"

    def page(self, filters: Filters, limit: int, offset: int) -> TotalAndPage:
        circuits, rows = self.catalogue.circuits, self.catalogue.race_rows
        if not filters:
            return page_of(list(circuits.values()), limit, offset)
        ids = {rows[id]["circuitId"] for id in queries.ids_of_races(self.data, filters)}
        return page_of([circuit for id, circuit in circuits.items() if id in ids], limit, offset)


class Races(Endpoint):
    """`/{season}/races`, `/{season}`, `/{season}/{round}`: races with their sessions."""

    name = "races"
    summary = "Races with their sessions: a season's calendar, or one race"
    rules = Rules(RESULT_FILTERS, endings=(JSON, CSV, ICS))
    schema = "ScheduledRace"
    table, objects = BY_NAME["races"].keys

    def select_page(self, selection: Selection, request: ParsedRequest) -> TotalAndPage:
        address, filters = request.address, selection.filters
        if (
            filters
            and address.ending == ICS
            and address.season == "current"
            and address.round is None
        ):
            # In winter the season has no races left, so subscribers also get the following seasons.
            others = {name: value for name, value in filters.items() if name != "season"}
            rows = self.catalogue.race_rows
            current, _ = self.catalogue.season_and_round("current", None)
            ids = [id for id in self.ids_that_match(others) if rows[id]["year"] >= current]
            return self.page_of_ids(ids, request.limit, request.offset)
        return super().select_page(selection, request)

    def page(self, filters: Filters, limit: int, offset: int) -> TotalAndPage:
        return self.page_of_ids(self.ids_that_match(filters), limit, offset)

    def ids_that_match(self, filters: Filters) -> Sequence[int]:
        """The raceIds that match, in the order of answers."""
        if not filters:
            return list(self.catalogue.races)
        return self.catalogue.in_order_of_races(queries.ids_of_races(self.data, filters))

    def page_of_ids(self, ids: Sequence[int], limit: int, offset: int) -> TotalAndPage:
        return len(ids), [self.catalogue.calendar[id] for id in ids[offset : offset + limit]]


class Entrants(Endpoint):
    """Constructors or drivers: those of matching results, or of matching standings."""

    standings: ClassVar[RecordTable]

    @abstractmethod
    def all(self) -> Mapping[int, Json]:
        """All of them by id, in the order of answers."""

    def page(self, filters: Filters, limit: int, offset: int) -> TotalAndPage:
        ids = self.ids_that_match(filters)
        return page_of(
            [each for id, each in self.all().items() if ids is None or id in ids], limit, offset
        )

    def ids_that_match(self, filters: Filters) -> Collection[int] | None:
        """The ids that match; None if all match."""
        column = queries.RESULT_COLUMNS[self.name]
        if any(
            filter in filters for filter in self.standings.filter_columns if filter != self.name
        ):
            return ids_in_chosen_standings(self, self.standings, column, filters)
        if not filters:
            return None
        if set(filters) == {self.name}:  # a driver who never raced is in the answer too
            return [int(filters[self.name])]
        return queries.ids_of_entrants(self.data, column, filters)


class Constructors(Entrants):
    """`/constructors`: the constructors of matching results, or in matching standings."""

    name = "constructors"
    summary = "Constructors"
    rules = Rules(
        RESULT_FILTERS | {"constructorstandings"},
        only_beside={"constructorstandings": frozenset({"constructors"})},
    )
    schema = "Constructor"
    table, objects = "ConstructorTable", "Constructors"
    standings = queries.CONSTRUCTOR_STANDINGS

    def all(self) -> Mapping[int, Json]:
        return self.catalogue.constructors


class Drivers(Entrants):
    """`/drivers`: the drivers of matching results, or in matching standings."""

    name = "drivers"
    summary = "Drivers"
    rules = Rules(
        RESULT_FILTERS | {"qualifying", "driverstandings"},
        only_beside={"driverstandings": frozenset({"drivers"})},
    )
    schema = "Driver"
    table, objects = "DriverTable", "Drivers"
    standings = queries.DRIVER_STANDINGS

    def all(self) -> Mapping[int, Json]:
        return self.catalogue.drivers


class RecordEndpoint(Endpoint):
    """An endpoint whose records are the rows of one table, which says its name, keys, filters."""

    record_table: ClassVar[RecordTable]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if table := vars(cls).get("record_table"):
            cls.name = table.kind.endpoint
            cls.table, cls.objects, cls.key, *_ = table.kind.keys
            # Without a season, a page would have to count the records of every race.
            cls.rules = Rules(table.filters, needs_season=table.kind.is_numbered_by_race)


class RaceRecords(RecordEndpoint):
    """Records that belong to races: `Races` has the races of a page, each with its records.

    A driver may have two rows in a race, but each race is in `Races` once (D23).
    """

    container = "Race"

    def page(self, filters: Filters, limit: int, offset: int) -> TotalAndPage:
        total, rows = self.record_table.page(self.data, filters, limit, offset)
        races = self.catalogue.races
        return total, [
            {**races[id], self.key: self.records(list(of_race))}
            for id, of_race in groupby(rows, itemgetter("raceId"))
        ]

    @abstractmethod
    def records(self, rows: Sequence[Row]) -> list[Json]:
        """The records that the rows of one race become."""


class Classification(RaceRecords):
    """An endpoint whose records are results, of races or sprints."""

    schema = "Result"
    time_formats: ClassVar[Mapping[str, serializers.TimeFormat]]  # by the setting `finish_times`

    def records(self, rows: Sequence[Row]) -> list[Json]:
        catalogue, format_time = self.catalogue, self.time_formats[self.settings.finish_times]
        winner = None
        if self.settings.finish_times == "gap":
            winner = queries.winner_time(self.data, self.record_table, rows[0]["raceId"])
        drivers, constructors = catalogue.drivers, catalogue.constructors
        return [
            serializers.result(row, drivers, constructors, catalogue.statuses, format_time, winner)
            for row in rows
        ]


class Results(Classification):
    """`/{season}/{round}/results`: rows of the classifications of races."""

    summary = "Race results"
    record_table = queries.RESULTS
    time_formats = serializers.RACE_TIMES


class Qualifying(RaceRecords):
    """`/{season}/{round}/qualifying`: rows of qualifying classifications."""

    summary = "Qualifying results"
    record_table = queries.QUALIFYING
    schema = "QualifyingResult"

    def records(self, rows: Sequence[Row]) -> list[Json]:
        catalogue = self.catalogue
        return [
            serializers.qualifying_result(row, catalogue.drivers, catalogue.constructors)
            for row in rows
        ]


class Sprint(Classification):
    """`/{season}/{round}/sprint`: rows of the classifications of sprints."""

    summary = "Sprint results"
    record_table = queries.SPRINT
    time_formats = serializers.SPRINT_TIMES


class SprintQualifying(Qualifying):
    """`/{season}/{round}/sprintqualifying`: results of sessions that set a sprint's grid."""

    summary = "Sprint qualifying results"
    record_table = queries.SPRINT_QUALIFYING


class Practice(RaceRecords):
    """`/{season}/{round}/practice`: rows of the classifications of practices."""

    summary = "Practice results"
    record_table = queries.PRACTICE
    schema = "PracticeResult"

    def records(self, rows: Sequence[Row]) -> list[Json]:
        catalogue = self.catalogue
        return [
            serializers.practice_result(row, catalogue.drivers, catalogue.constructors)
            for row in rows
        ]


class Laps(RaceRecords):
    """`/{season}/{round}/laps`: the lap timings of a race or season. A record is a driver's lap."""

    summary = "Lap timings"
    record_table = queries.LAPS
    schema = "Lap"
    not_echoed = frozenset({"laps"})

    def records(self, rows: Sequence[Row]) -> list[Json]:
        return serializers.laps(rows, self.catalogue.drivers)


class PitStops(RaceRecords):
    """`/{season}/{round}/pitstops`: the pit stops of a race, or of all races of a season."""

    summary = "Pit stops"
    record_table = queries.PITSTOPS
    schema = "PitStop"

    def records(self, rows: Sequence[Row]) -> list[Json]:
        return [serializers.pit_stop(row, self.catalogue.drivers) for row in rows]


class Standings(RecordEndpoint):
    """Standings in a championship: one list per season, or the one after a round."""

    container = "StandingsList"

    def page(self, filters: Filters, limit: int, offset: int) -> TotalAndPage:
        lists = self.catalogue.standings_filters(self.record_table.name, filters)
        if lists is None:
            return 0, []
        total, rows = self.record_table.page(self.data, lists, limit, offset)
        races = self.catalogue.race_rows
        return total, [
            {
                **serializers.echo(races[id]["year"], races[id]["round"], {}),
                self.key: [self.record(row) for row in of_race],
            }
            for id, of_race in groupby(rows, itemgetter("raceId"))
        ]

    def echo(self, selection: Selection, filters: Filters) -> Json:
        echoed = super().echo(selection, filters)
        latest = self.catalogue.latest_with[self.record_table.name]
        if selection.round is None and selection.season is not None and selection.season in latest:
            race = self.catalogue.race_rows[latest[selection.season]]
            echoed["round"] = str(race["round"])  # D14: clients read it
        return echoed

    @abstractmethod
    def record(self, row: Row) -> Json:
        """The record that a row becomes."""


class DriverStandings(Standings):
    """`/{season}/driverstandings`: drivers in the championship."""

    summary = "Driver standings"
    record_table = queries.DRIVER_STANDINGS
    schema = "DriverStanding"

    def record(self, row: Row) -> Json:
        constructors = [self.catalogue.constructors[int(id)] for id in row["constructors"].split()]
        return serializers.standing(
            row, Driver=self.catalogue.drivers[row["driverId"]], Constructors=constructors
        )


class ConstructorStandings(Standings):
    """`/{season}/constructorstandings`: constructors in the championship."""

    summary = "Constructor standings"
    record_table = queries.CONSTRUCTOR_STANDINGS
    schema = "ConstructorStanding"

    def record(self, row: Row) -> Json:
        return serializers.standing(
            row, Constructor=self.catalogue.constructors[row["constructorId"]]
        )


class Status(Endpoint):
    """`/status`: how drivers finished, and how many of the matching results have each status."""

    name = "status"
    summary = "Finishing statuses with their counts"
    rules = Rules(RESULT_FILTERS)
    schema = "Status"
    table, objects = BY_NAME["status"].keys

    def page(self, filters: Filters, limit: int, offset: int) -> TotalAndPage:
        texts = self.catalogue.statuses
        counts = sorted(
            queries.status_counts(self.data, filters), key=lambda each: (-each[1], texts[each[0]])
        )
        return page_of(
            [serializers.status(id, count, texts[id]) for id, count in counts], limit, offset
        )


class Corrections(Endpoint):
    """`/corrections`: wrong values of sources, each with the right one."""

    name = "corrections"
    summary = "Corrected values, with the source's value and the evidence"
    rules = Rules(frozenset({"constructors", "drivers"}))
    schema = "Correction"
    table, objects = "CorrectionTable", "Corrections"

    def page(self, filters: Filters, limit: int, offset: int) -> TotalAndPage:
        total, rows = queries.corrections(self.data, filters, limit, offset)
        return total, [self.record(row) for row in rows]

    def record(self, row: Row) -> Json:
        race = row["raceId"]
        round = None if race is None else self.catalogue.race_rows[race]["round"]
        return serializers.correction(row, round)


def ids_in_chosen_standings(
    endpoint: Endpoint, standings: RecordTable, column: str, filters: Filters
) -> set[int]:
    """The driverIds, constructorIds or raceIds in the standings that an address selects."""
    lists = endpoint.catalogue.standings_filters(standings.name, filters)
    if lists is None:
        return set()
    return queries.ids_in_standings(endpoint.data, standings, column, lists)


# In the order of `/docs` and the OpenAPI document.
ENDPOINTS: Sequence[type[Endpoint]] = (
    Seasons,
    Circuits,
    Races,
    Constructors,
    Drivers,
    Results,
    Qualifying,
    Sprint,
    SprintQualifying,
    Practice,
    PitStops,
    Laps,
    DriverStandings,
    ConstructorStandings,
    Status,
    Corrections,
)

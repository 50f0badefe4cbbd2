"""The endpoints, one class each: its declaration, and how its records become the table of an answer.

`ENDPOINTS` is the only list of them: routes, messages, the page at `/`, the OpenAPI paths and the tests follow it.
SQL is in queries.py, the JSON objects are in serializers.py.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import ClassVar

import falcon
import orjson

from racedata import queries, serializers
from racedata.addresses import Rules, Value
from racedata.answers import Answers
from racedata.datafile import DataFile
from racedata.queries import Directory, Source
from racedata.requested import Requested
from racedata.serializers import Json, Row
from racedata.settings import Settings

Filters = Mapping[str, Value]
Page = tuple[int, list[Json]]  # the total number of records, and the objects that have those of the page


class Endpoint:
    """An endpoint under the base address: the last word of an address is its name."""

    name: ClassVar[str]
    summary: ClassVar[str]  # one line, for the page and the description
    rules: ClassVar[Rules]
    table: ClassVar[str]  # in MRData: `RaceTable`
    objects: ClassVar[str]  # in the table: `Races`
    # The records are those objects themselves, or are nested in them under `key`. Schemas are those of openapi.json.
    key: ClassVar[str] = ""
    schema: ClassVar[str]  # of a record
    container: ClassVar[str] = ""  # the schema of an object without its records
    not_echoed: ClassVar[frozenset[str]] = frozenset()  # filters that the table does not repeat

    def __init__(self, data: DataFile, directory: Directory, answers: Answers, settings: Settings) -> None:
        self.data, self.directory, self.answers, self.settings = data, directory, answers, settings

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        if self.answers.is_current(req):
            self.answers.send_not_modified(resp)
            return
        try:
            answer = self.answer(req.context.requested)
        except queries.NotRun as error:
            raise falcon.HTTPNotFound(description=str(error)) from None
        self.answers.send(req, resp, orjson.dumps(answer))

    on_head = on_get

    def answer(self, requested: Requested) -> Json:
        """The whole answer. Raises NotRun."""
        address, limit, offset, base_url = requested
        selection = self.directory.select(address)
        total, objects = 0, list[Json]()
        if selection.filters is not None:
            total, objects = self.page(selection.filters, limit, offset)
        echoed = {name: value for name, value in address.filters.items() if name not in self.not_echoed}
        table = {**serializers.echo(selection.season, selection.round, echoed), self.objects: objects}
        url = f"{base_url}/{address.path}.json"
        return serializers.mrdata(self.settings.series, url, limit, offset, total, **{self.table: table})

    def page(self, filters: Filters, limit: int, offset: int) -> Page:
        raise NotImplementedError


class Races(Endpoint):
    """`/{season}/races`, `/{season}`, `/{season}/{round}`: races with their sessions."""

    name = "races"
    summary = "Races with their sessions: a season's calendar, or one race"
    rules = Rules(queries.RESULTS.filters)
    schema = "ScheduledRace"
    table, objects = "RaceTable", "Races"

    def page(self, filters: Filters, limit: int, offset: int) -> Page:
        ids = queries.races(self.data, self.directory, filters)
        races, rows = self.directory.races, self.directory.race_rows
        return len(ids), [{**races[id], **serializers.schedule(rows[id])} for id in ids[offset : offset + limit]]


class RaceRecords(Endpoint):
    """An endpoint whose records belong to races: `Races` has each race with its records on the page under `key`."""

    table, objects = "RaceTable", "Races"
    container = "Race"
    source: ClassVar[Source]

    def page(self, filters: Filters, limit: int, offset: int) -> Page:
        total, rows = self.source.page(self.data, filters, limit, offset)
        races = self.directory.races
        return total, [
            {**races[id], self.key: self.records(list(of_race))} for id, of_race in groupby(rows, itemgetter("raceId"))
        ]

    def records(self, rows: Sequence[Row]) -> list[Json]:
        raise NotImplementedError


class Classification(RaceRecords):
    """An endpoint whose records are results, of races or sprints."""

    schema = "Result"
    clocks: ClassVar[Mapping[str, serializers.Clock]]  # by the setting `finish_times`

    def records(self, rows: Sequence[Row]) -> list[Json]:
        directory, clock = self.directory, self.clocks[self.settings.finish_times]
        return [
            serializers.result(row, directory.drivers, directory.constructors, directory.statuses, clock)
            for row in rows
        ]


class Results(Classification):
    """`/{season}/{round}/results`: rows of the classifications of races."""

    name = "results"
    summary = "Race results"
    source = queries.RESULTS
    rules = Rules(source.filters)
    key = "Results"
    clocks = serializers.RACE_TIMES


class Qualifying(RaceRecords):
    """`/{season}/{round}/qualifying`: rows of the classifications of qualifyings."""

    name = "qualifying"
    summary = "Qualifying results"
    source = queries.QUALIFYING
    rules = Rules(source.filters)
    key = "QualifyingResults"
    schema = "QualifyingResult"
    not_echoed = frozenset({"qualifying"})

    def records(self, rows: Sequence[Row]) -> list[Json]:
        directory = self.directory
        return [serializers.qualifying_result(row, directory.drivers, directory.constructors) for row in rows]


class Sprint(Classification):
    """`/{season}/{round}/sprint`: rows of the classifications of sprints."""

    name = "sprint"
    summary = "Sprint results"
    source = queries.SPRINT
    rules = Rules(source.filters)
    key = "SprintResults"
    clocks = serializers.SPRINT_TIMES
    not_echoed = frozenset({"sprint"})


class Laps(RaceRecords):
    """`/{season}/{round}/laps`: the lap timings of a race. A record is one driver's lap."""

    name = "laps"
    summary = "Lap timings of a race"
    source = queries.LAPS
    rules = Rules(source.filters, needs_round=True)
    key = "Laps"
    schema = "Lap"
    not_echoed = frozenset({"laps"})

    def records(self, rows: Sequence[Row]) -> list[Json]:
        return serializers.laps(rows, self.directory.drivers)


# In the order of the page and the description.
ENDPOINTS: Sequence[type[Endpoint]] = (Races, Results, Qualifying, Sprint, Laps)


class Health:
    """`/healthz`, outside the base address: which database is served, and whether a newer file was rejected."""

    def __init__(self, data: DataFile) -> None:
        self.data = data

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        build = self.data.build()
        health = {
            "status": "ok",
            "schemaVersion": build["schemaVersion"],
            "sourceChecksum": build["sourceChecksum"],
            "builtAt": build["builtAt"],
            "rows": self.data.row_counts(),
        }
        if self.data.refused:
            health["refused"] = f"The file now at the database's path {self.data.refused}."
        resp.content_type = falcon.MEDIA_JSON
        resp.data = orjson.dumps(health)

    on_head = on_get


class Document:
    """`/` and `/openapi.json`, outside the base address: a text made once per database."""

    def __init__(self, answers: Answers, text: str, content_type: str) -> None:
        self.answers, self.body, self.content_type = answers, text.encode(), content_type

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        self.answers.answer(req, resp, self.body, self.content_type)

    on_head = on_get

"""One class to each endpoint, in the order of the route table: it asks the database and has serializers.py assemble.

What endpoints share stands above them: the page that is asked for, the envelope, the url that an answer bears.
"""

import re

import falcon
import orjson

from racedata import serializers

DEFAULT_LIMIT = 100


class Endpoint:
    """An endpoint under the base address, which answers with records about races.

    A class has the `name` its address ends with, and `races(season, [round,] limit, offset)`: the total number of
    records, and the Race objects with those of the page.
    """

    def __init__(self, database, directory, answers, settings):
        self.database, self.directory, self.answers, self.settings = database, directory, answers, settings

    def on_get(self, req, resp, season, round=None):
        limit = min(whole_number(req, "limit", DEFAULT_LIMIT), self.settings.max_limit)
        offset = whole_number(req, "offset", 0)
        if self.answers.is_current(req):
            self.answers.send_not_modified(resp)
            return
        place = [season] if round is None else [season, round]
        with self.database.confirmed():
            total, races = self.races(*place, limit=limit, offset=offset)
        # An endpoint's addresses all get the same body, so its url is made from the endpoint and not from the path.
        url = "/".join([self.base_url(req), *map(str, place), f"{self.name}.json"])
        table = serializers.race_table(season, round, races)
        answer = serializers.mrdata(self.settings.series, url, limit, offset, total, RaceTable=table)
        self.answers.send(req, resp, orjson.dumps(answer))

    on_head = on_get

    def base_url(self, req):
        return self.settings.base_url or f"{req.scheme}://{host(req)}{self.settings.base_address}"


class RaceRecords(Endpoint):
    """An endpoint whose records belong to one race.

    A class has `total(race_id)`, and `records(race_id, limit, offset)`: what stands under `key` in the race.
    """

    def races(self, season, round, limit, offset):
        race = self.database.race(season, round)
        total = self.total(race["raceId"]) if race else 0
        if limit == 0 or offset >= total:
            return total, []
        records = self.records(race["raceId"], limit, offset)
        return total, [{**serializers.race(race, self.directory), self.key: records}]


class Calendar(Endpoint):
    """`/{season}/races`, `/{season}`: the races of a season."""

    name = "races"

    def races(self, season, limit, offset):
        total = self.database.races_total(season)
        if limit == 0 or offset >= total:
            return total, []
        rows = self.database.races(season, limit, offset)
        return total, [serializers.scheduled_race(row, self.directory) for row in rows]


class Race(Endpoint):
    """`/{season}/{round}`, `/{season}/{round}/races`: the description of one race."""

    name = "races"

    def races(self, season, round, limit, offset):
        race = self.database.race(season, round)
        if race is None:
            return 0, []
        return 1, [serializers.scheduled_race(race, self.directory)] if limit > offset == 0 else []


class Results(RaceRecords):
    """`/{season}/{round}/results`: the classification of a race."""

    name = "results"
    key = "Results"

    def total(self, race_id):
        return self.database.results_total(race_id)

    def records(self, race_id, limit, offset):
        finish_time = serializers.RACE_TIMES[self.settings.finish_times]
        rows = self.database.results(race_id, limit, offset)
        return [serializers.result(row, self.directory, finish_time) for row in rows]


class Qualifying(RaceRecords):
    """`/{season}/{round}/qualifying`: the classification of a qualifying."""

    name = "qualifying"
    key = "QualifyingResults"

    def total(self, race_id):
        return self.database.qualifying_total(race_id)

    def records(self, race_id, limit, offset):
        rows = self.database.qualifying(race_id, limit, offset)
        return [serializers.qualifying_result(row, self.directory) for row in rows]


class Sprint(RaceRecords):
    """`/{season}/{round}/sprint`: the classification of a sprint."""

    name = "sprint"
    key = "SprintResults"

    def total(self, race_id):
        return self.database.sprint_results_total(race_id)

    def records(self, race_id, limit, offset):
        finish_time = serializers.SPRINT_TIMES[self.settings.finish_times]
        rows = self.database.sprint_results(race_id, limit, offset)
        return [serializers.result(row, self.directory, finish_time) for row in rows]


class Laps(RaceRecords):
    """`/{season}/{round}/laps`: the lap timings of a race; a record is one driver's lap."""

    name = "laps"
    key = "Laps"

    def total(self, race_id):
        return self.database.lap_times_total(race_id)

    def records(self, race_id, limit, offset):
        return serializers.laps(self.database.lap_times(race_id, limit, offset), self.directory)


class Health:
    """`/healthz`, outside the base address: what is being served; 503 when the database cannot be read."""

    def __init__(self, database):
        self.database = database

    def on_get(self, req, resp):
        with self.database.confirmed():
            build, rows = self.database.build(), self.database.row_counts()
        health = {
            "status": "ok",
            "schemaVersion": build["schemaVersion"],
            "sourceChecksum": build["sourceChecksum"],
            "builtAt": build["builtAt"],
            "rows": rows,
        }
        if self.database.refused:
            health["refused"] = f"What is at the database's path now {self.database.refused}."
        resp.content_type = falcon.MEDIA_JSON
        resp.data = orjson.dumps(health)

    on_head = on_get


class Document:
    """`/` and `/openapi.json`, outside the base address: a text that is the same as long as the database is."""

    def __init__(self, answers, text, content_type):
        self.answers, self.body, self.content_type = answers, text.encode(), content_type

    def on_get(self, req, resp):
        self.answers.answer(req, resp, self.body, self.content_type)

    on_head = on_get


def whole_number(req, name, default):
    """The query parameter `name` as a whole number from 0; what else it is raises HTTPBadRequest."""
    values = req.get_param_as_list(name) if req.has_param(name) else [str(default)]
    if len(values) > 1:
        raise falcon.HTTPBadRequest(description=f"{name} is given {len(values)} times; it is accepted once.")
    # ASCII digits alone: int() takes signs, spaces, underscores and other scripts' digits too; and 4300 digits at most.
    if not re.fullmatch("[0-9]{1,4000}", values[0]):
        raise falcon.HTTPBadRequest(
            description=f"{name} is {values[0][:50]!r}; accepted is a whole number from 0, such as {name}={default}."
        )
    return int(values[0])


def host(req):
    """The Host header, which the url of an answer repeats; HTTPBadRequest where it could be none."""
    if not re.fullmatch(r"[\w.~-]+(:[0-9]{0,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{0,5})?", req.netloc, re.ASCII):
        raise falcon.HTTPBadRequest(description="The Host header is not a host name or address with an optional port.")
    return req.netloc


def unknown_address(base):
    """The sink for every address that no route matches."""

    def refuse(req, resp):
        raise falcon.HTTPNotFound(
            description=f"No endpoint has this address. All are under {base}: a season is four digits, such as "
            f"{base}/2023/races; a round is a whole number from 1, such as {base}/2023/9; a round has results, "
            f"qualifying, sprint and laps, such as {base}/2023/9/results."
        )

    return refuse

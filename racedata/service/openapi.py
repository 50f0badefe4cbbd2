"""The OpenAPI document of the service, made once per database.

All that follows from the endpoints is made here: their paths, their answers and their tags. The
rest is in openapi.json. A path for each combination of filters would make clients of many thousand
lines, so the document names the filters of an endpoint in words, and has paths for the most
frequent ones.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from racedata import __version__
from racedata.service import download, queries
from racedata.service.addresses import FILTERS, Grammar, Rules
from racedata.service.content import Served
from racedata.service.endpoints import ENDPOINTS, Endpoint
from racedata.service.request import PAGE, ParsedRequest
from racedata.service.schemas import OPENAPI, Schema, name_of_schema, schema_of
from racedata.service.serializers import ECHO

PARAMETERS: Mapping[str, Any] = OPENAPI["components"]["parameters"]
# The endpoints' responses other than 200, by status.
RESPONSES: Mapping[str, Any] = OPENAPI["components"]["responses"]

# The paths with a filter, by endpoint.
WITH_FILTER = {
    "races": ["/circuits/{circuitId}/races"],
    "circuits": ["/circuits/{circuitId}"],
    "drivers": ["/drivers/{driverId}"],
    "constructors": ["/constructors/{constructorId}"],
    "results": [
        "/drivers/{driverId}/results",
        "/{season}/drivers/{driverId}/results",
        "/{season}/constructors/{constructorId}/results",
    ],
    "laps": ["/{season}/{round}/drivers/{driverId}/laps"],
}
# Maps the schema of a filter in a request to the schema of its echo in the answer.
ECHO_SCHEMAS = {"RequestId": "Id", "RequestNumber": "Whole", "RequestPosition": "PositionText"}


def document(served: Served, grammar: Grammar) -> bytes:
    """The OpenAPI document of a service, as JSON."""
    settings = served.settings
    content = orjson.loads(orjson.dumps(OPENAPI))  # a copy
    content["info"]["version"] = __version__
    content["servers"][0]["url"] = settings.base_link
    content["tags"] = [
        {"name": endpoint.name, "description": accepted_filters(endpoint.rules)}
        for endpoint in ENDPOINTS
    ]
    race = "/{}/{}".format(*queries.example_race(served.data))
    outside_base, content["paths"] = content["paths"], {}
    for endpoint in ENDPOINTS:
        name = f"{endpoint.name}-answer"
        answer = answer_response(endpoint, served, grammar, f"{race}/{endpoint.name}")
        content["components"]["responses"][name] = answer
        content["components"]["schemas"][name] = answer_schema(endpoint)
        for path in paths_of(endpoint):
            content["paths"][path] = operation(endpoint, path)
    for path, described in outside_base.items():
        if path != download.PATH or settings.download:
            described["servers"][0]["url"] = settings.root_link or "/"
            content["paths"][path] = described
    limit = content["components"]["parameters"]["limit"]
    limit["description"] = limit["description"].replace("{max_limit}", str(settings.max_limit))
    limit["schema"]["default"] = settings.usual_limit
    return orjson.dumps(content)


def accepted_filters(rules: Rules) -> str:
    """The filters that an endpoint accepts, as sentences."""
    names = [name for name in FILTERS if name in rules.filters and name not in rules.only_beside]
    text = f"Filters: {', '.join(names)}."
    if rules.needs_season:
        text = f"Needs a season. {text}"
    for name, others in rules.only_beside.items():
        *most, last = sorted(others)
        combined = f"{', '.join(most)} and {last}" if most else last
        text += f" Also {name}, which combines only with {combined}."
    return text


def paths_of(endpoint: Endpoint) -> Iterator[str]:
    """The paths of an endpoint, with parameters in braces."""
    fronts = [*([] if endpoint.rules.needs_season else [""]), "/{season}", "/{season}/{round}"]
    if not endpoint.is_asked_by_race:
        fronts = fronts[:1]
    yield from (f"{front}/{endpoint.name}" for front in fronts)
    if endpoint.name == "races":  # the only endpoint that needs no name
        yield from fronts[1:]
    yield from WITH_FILTER.get(endpoint.name, ())


def parameters_of(path: str) -> Iterator[str]:
    """The parameters of a path, as named in openapi.json: `season`, `round` and filters."""
    segments = path.split("/")[1:]
    for before, segment in zip(["", *segments], segments):
        if segment.startswith("{"):
            yield before if before in FILTERS else segment.strip("{}")


def operation(endpoint: Endpoint, path: str) -> dict[str, Any]:
    return {
        "parameters": references(*parameters_of(path)),
        "get": {
            "operationId": "_".join(["get", *re.findall(r"\w+", path)]),
            "tags": [endpoint.name],
            "summary": endpoint.summary,
            "parameters": references(*PAGE, *endpoint.rules.parameters, "If-None-Match"),
            "responses": {
                "200": reference("responses", f"{endpoint.name}-answer"),
                **{status: reference("responses", status) for status in sorted(RESPONSES)},
            },
        },
    }


def answer_response(
    endpoint: Endpoint, served: Served, grammar: Grammar, address: str
) -> dict[str, Any]:
    """The 200 response of an endpoint, with the real answer at `address` as its example."""
    base_url = "http://127.0.0.1:8000" + grammar.base
    answer = endpoint.answer(served, ParsedRequest(grammar.parse(address), 1, 0, base_url))
    return {
        "description": f"{endpoint.summary}.",
        "headers": {
            "Content-Encoding": reference("headers", "Content-Encoding"),
            **RESPONSES["304"]["headers"],
        },
        "content": {
            "application/json": {
                "schema": reference("schemas", f"{endpoint.name}-answer"),
                "examples": {"one record": {"summary": f"{address}?limit=1", "value": answer}},
            }
        },
    }


def answer_schema(endpoint: Endpoint) -> Schema:
    """The schema of an endpoint's 200 response: envelope, table, and the list in the table."""
    record: Schema = reference("schemas", endpoint.schema)
    if endpoint.records_key:  # records nested in the objects of the list
        record = with_property(
            schema_of(endpoint.container),
            endpoint.records_key,
            {"type": "array", "minItems": 1, "items": record},
        )
    table = with_property(
        table_schema(endpoint), endpoint.objects_key, {"type": "array", "items": record}
    )
    envelope = with_property(schema_of("Envelope"), endpoint.table_key, table)
    return with_property({"type": "object"}, "MRData", envelope)


def table_schema(endpoint: Endpoint) -> Schema:
    """The schema of an endpoint's table before its list: with the filters that it repeats."""
    echoed = {
        key: reference("schemas", ECHO_SCHEMAS[str(name_of_schema(PARAMETERS[name]["schema"]))])
        for name, key in ECHO.items()
        if name in endpoint.rules.filters - endpoint.not_echoed
    }
    table = schema_of("Table")
    return {**table, "properties": {**table["properties"], **echoed}}


def with_property(schema: Schema, name: str, value: Schema) -> Schema:
    """The schema of an object with a last property.

    It repeats all properties, because generators ignore those next to a `$ref`.
    """
    return {
        **schema,
        "required": [*schema.get("required", ()), name],
        "properties": {**schema.get("properties", {}), name: value},
    }


def reference(kind: str, name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/{kind}/{name}"}


def references(*parameters: str) -> list[dict[str, Any]]:
    return [reference("parameters", name) for name in parameters]

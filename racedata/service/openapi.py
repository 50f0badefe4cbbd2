"""The OpenAPI document of the service, made once per database.

Parameters, headers and schemas are in openapi.json. Paths and responses are made here, from the
endpoints. A path for each combination of filters would make clients of many thousand lines, so the
document names the filters of an endpoint in words, and has paths for the most frequent ones.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from racedata import __version__
from racedata.service import download, queries
from racedata.service.addresses import FILTERS, Grammar, Rules
from racedata.service.content import Served
from racedata.service.endpoints import ENDPOINTS, Endpoint
from racedata.service.request import PAGE, ParsedRequest
from racedata.service.schemas import OPENAPI, Schema, name_of, schema_of
from racedata.service.serializers import ECHO

PARAMETERS: Mapping[str, Any] = OPENAPI["components"]["parameters"]

# Headers of all responses, of responses that the rate limits count, of responses that a client may
# cache, and of HTML pages.
COMMON_HEADERS = (
    "X-Content-Type-Options",
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
)
RATE_LIMIT_HEADERS = ("RateLimit-Policy", "RateLimit", *COMMON_HEADERS)
CACHE_HEADERS = ("ETag", "Last-Modified", "Cache-Control", "Vary")
PAGE_HEADERS = ("Content-Security-Policy", "Referrer-Policy")
NOT_MODIFIED = "The client's copy is still current."
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
    content["components"]["responses"] = dict(RESPONSES)
    content["tags"] = [
        {"name": endpoint.name, "description": accepted_filters(endpoint.rules)}
        for endpoint in ENDPOINTS
    ]
    race = "/{}/{}".format(*queries.example_race(served.data))
    for endpoint in ENDPOINTS:
        name = f"{endpoint.name}-answer"
        answer = answer_response(endpoint, served, grammar, f"{race}/{endpoint.name}")
        content["components"]["responses"][name] = answer
        content["components"]["schemas"][name] = answer_schema(endpoint)
        for path in paths_of(endpoint):
            content["paths"][path] = operation(endpoint, path)
    content["paths"] |= {
        path: {"servers": [{"url": settings.root_link or "/"}], "get": get}
        for path, get in outside_base(settings.download).items()
    }
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
    return response(
        endpoint.summary + ".",
        ("Content-Encoding", *CACHE_HEADERS, *RATE_LIMIT_HEADERS),
        {
            "application/json": {
                "schema": reference("schemas", f"{endpoint.name}-answer"),
                "examples": {"one record": {"summary": f"{address}?limit=1", "value": answer}},
            }
        },
    )


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
        key: reference("schemas", ECHO_SCHEMAS[str(name_of(PARAMETERS[name]["schema"]))])
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


def response(
    description: str, headers: Sequence[str], content: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    described = {
        "description": description,
        "headers": {name: reference("headers", name) for name in headers},
    }
    return {**described, "content": content} if content else described


def problem(description: str, *headers: str) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": reference("schemas", "Problem")}}
    return response(description, (*headers, *RATE_LIMIT_HEADERS), content)


TOO_LONG = {
    "description": "The request line or a header is longer than about 8,000 bytes. "
    "nginx or gunicorn refuses it.",
    "content": {
        "application/problem+json": {"schema": reference("schemas", "Problem")},
        "text/html": {"schema": {"type": "string"}},
    },
}

# The endpoints' responses other than 200, by status.
RESPONSES = {
    "304": response(NOT_MODIFIED, (*CACHE_HEADERS, *RATE_LIMIT_HEADERS)),
    "400": problem(
        "The endpoint does not accept one of the filters, or needs a season; "
        "or a parameter is wrong."
    ),
    "404": problem("No endpoint has this address, or the season has no last round yet."),
    "429": problem(
        "A rate limit has been reached. The same request succeeds after Retry-After seconds, "
        "unless the client sends another one first.",
        "Retry-After",
    ),
    "414": TOO_LONG,
    "431": TOO_LONG,
    "503": problem("Too many pages and large answers are waiting to be made.", "Retry-After"),
}


# Problems that any address outside the base address may have, and any that the limits count.
PROBLEMS = {"431": reference("responses", "431")}
COUNTED_PROBLEMS = {**PROBLEMS, "429": reference("responses", "429")}


def cacheable(
    description: str, type: str, schema: Mapping[str, Any], *headers: str
) -> dict[str, Any]:
    """The responses of an address outside the base address that a client may cache."""
    names = (*CACHE_HEADERS, *headers)
    return {
        "200": response(description, (*names, "Content-Encoding"), {type: {"schema": schema}}),
        "304": response(NOT_MODIFIED, names),
    }


def of_database() -> dict[str, Any]:
    """The responses of `/racedata.db`."""
    content: dict[str, Any] = {download.CONTENT_TYPE: {}}  # in OpenAPI 3.1: any bytes
    names = ("Last-Modified", "Cache-Control", "Link", *RATE_LIMIT_HEADERS)
    answers = {
        "200": response("The whole file.", names, content),
        "304": response(NOT_MODIFIED, names),
    }
    for answer in answers.values():
        answer["headers"]["ETag"] = reference("headers", "ETag-of-file")
    broken = problem("Something has written into the file.", "Retry-After")
    return {**answers, **COUNTED_PROBLEMS, "503": broken}


def outside(name: str, summary: str, responses: Mapping[str, Any]) -> dict[str, Any]:
    """An operation outside the base address."""
    return {
        "operationId": name,
        "tags": ["about the service"],
        "summary": summary,
        **({"parameters": references("If-None-Match")} if "304" in responses else {}),
        "responses": responses,
    }


def outside_base(offers_download: bool) -> dict[str, dict[str, Any]]:
    """The operations outside the base address."""
    health = {"application/json": {"schema": reference("schemas", "Health")}}
    of_health = {"200": response("The service answers.", COMMON_HEADERS, health)}
    of_description = cacheable(
        "An OpenAPI document.",
        "application/json",
        {"type": "object", "required": ["openapi", "info", "paths"]},
        *RATE_LIMIT_HEADERS,
    )
    of_page = cacheable("A page.", "text/html", {"type": "string"}, *PAGE_HEADERS, *COMMON_HEADERS)
    of_page |= PROBLEMS
    operations = {
        "/healthz": outside(
            "get_healthz",
            "Which database is served. This request does not count towards the rate limits",
            of_health | PROBLEMS,
        ),
        "/openapi.json": outside(
            "get_description", "This description", of_description | COUNTED_PROBLEMS
        ),
        "/": outside("get_page", "A page for people: the weekend and the season", of_page),
        "/docs": outside("get_docs", "A page for people: how to request data", of_page),
    }
    if offers_download:
        summary = "The database, as an SQLite file"
        operations[download.PATH] = outside("get_database", summary, of_database())
    return operations

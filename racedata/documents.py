"""Documents about the service: the OpenAPI document, and the page at `/`.

Both are made once per database. The parts that are the same for all endpoints are in openapi.json and home.html. The
rest is generated from the classes in resources.py.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from racedata import queries
from racedata.addresses import FILTERS, FORMS, Grammar, Rules
from racedata.directory import Directory
from racedata.requested import DEFAULT_LIMIT, Requested
from racedata.resources import Endpoint
from racedata.settings import Settings
from racedata.snapshot import Snapshot, public_source

OPENAPI: dict[str, Any] = json.loads(files(__package__).joinpath("openapi.json").read_text(encoding="utf-8"))
HOME = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))

# The names of tables on the page.
RECORDS = {
    "races": "Races",
    "circuits": "Circuits",
    "drivers": "Drivers",
    "constructors": "Constructors",
    "results": "Results",
    "qualifying": "Qualifying results",
    "sprint_results": "Sprint results",
    "pit_stops": "Pit stops",
    "lap_times": "Lap timings",
    "driver_standings": "Driver standings",
    "constructor_standings": "Constructor standings",
}

# The groups of endpoints on the page. Each endpoint has addresses to try, with a text that describes the answer. Names
# in braces are replaced by `example_values`.
EXAMPLES: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "Seasons and calendar": {
        "seasons": {"/seasons": "all seasons", "/drivers/{driver}/seasons": "those of {driver_name}"},
        "races": {
            "/{season}": "the calendar of {season}",
            "/{season}/{round}": "one race, with its sessions",
            "/circuits/{circuit}/races": "all races at {circuit_name}",
        },
        "circuits": {"/{season}/circuits": "where {season} was held", "/circuits/{circuit}": "one circuit"},
    },
    "Drivers and constructors": {
        "drivers": {
            "/drivers/{driver}": "one driver",
            "/{season}/{round}/drivers": "who took part in one race",
            "/constructors/{constructor}/drivers": "who drove for {constructor_name}",
        },
        "constructors": {
            "/{season}/constructors": "the constructors of {season}",
            "/drivers/{driver}/constructors": "those that {driver_name} drove for",
        },
    },
    "Races and their sessions": {
        "results": {
            "/{season}/{round}/results": "one race",
            "/{season}/results/1": "the winners of {season}",
            "/drivers/{driver}/circuits/{circuit}/results": "{driver_name} at {circuit_name}",
        },
        "qualifying": {
            "/{season}/{round}/qualifying": "one qualifying",
            "/{season}/qualifying/1": "first places of {season}",
        },
        "sprint": {"/{season}/{round}/sprint": "one sprint", "/{season}/sprint/1": "the winners of sprints"},
        "pitstops": {
            "/{season}/{round}/pitstops": "one race",
            "/{season}/{round}/drivers/{driver}/pitstops": "{driver_name} in that race",
        },
        "laps": {
            "/{season}/{round}/laps/1": "the first lap of one race",
            "/{season}/{round}/drivers/{driver}/laps": "all laps of {driver_name}",
        },
        "status": {"/{season}/status": "how races of {season} ended", "/drivers/{driver}/status": "for {driver_name}"},
    },
    "Championships": {
        "driverstandings": {
            "/{season}/driverstandings": "the latest of {season}",
            "/{season}/{round}/driverstandings": "after one race",
            "/driverstandings/1": "all champions",
        },
        "constructorstandings": {
            "/{season}/constructorstandings": "the latest of {season}",
            "/constructorstandings/1": "all champions",
        },
    },
}

# Headers of all responses, of responses that the rate limits count, and of responses that a client may cache.
EVERYWHERE = ("X-Content-Type-Options", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers")
COUNTED = ("RateLimit-Policy", "RateLimit", *EVERYWHERE)
CONDITIONAL = ("If-None-Match", "If-Modified-Since")
CACHEABLE = ("ETag", "Last-Modified", "Cache-Control", "Vary")
NOT_MODIFIED = "The answer that the client already has, according to its request, is still current."


def description(settings: Settings, endpoints: Sequence[Endpoint], grammar: Grammar) -> str:
    """The OpenAPI document of a service with these settings, as JSON text."""
    document = deepcopy(OPENAPI)
    document["servers"][0]["url"] = base_of(settings)
    place = "/{season}/{round}".format_map(queries.loaded(endpoints[0].data))
    for endpoint in endpoints:
        answer = answer_response(endpoint, grammar, f"{place}/{endpoint.name}")
        document["components"]["responses"][response_name(endpoint)] = answer
        document["components"]["schemas"][response_name(endpoint)] = answer_schema(endpoint)
        for path in paths_of(endpoint):
            document["paths"][path] = operation(endpoint, path)
    document["paths"] |= {
        path: {"servers": [{"url": root_of(settings)}], "get": get} for path, get in outside_base().items()
    }
    limit = document["components"]["parameters"]["limit"]
    limit["description"] = limit["description"].replace("2000", str(settings.max_limit))
    limit["schema"]["default"] = default_limit(settings)
    return json.dumps(document, indent=1, ensure_ascii=False)


def paths_of(endpoint: type[Endpoint] | Endpoint) -> Iterator[str]:
    """The addresses of an endpoint as templates: without a filter, then with each filter on its own."""
    name, rules = endpoint.name, endpoint.rules
    fronts = ["/{season}/{round}"] if rules.needs_round else ["", "/{season}", "/{season}/{round}"]
    for front in fronts:
        yield f"{front}/{name}"
    if name == "races":  # the only endpoint that needs no name
        yield from ("/{season}", "/{season}/{round}")
    for filter in FILTERS:
        if filter in rules.filters:
            value = f"{{{OPENAPI['components']['parameters'][filter]['name']}}}"
            yield f"{fronts[0]}/{name}/{value}" if filter == name else f"{fronts[0]}/{filter}/{value}/{name}"


def filters_of(path: str) -> Iterator[str]:
    """The parameters of a template, by their names in openapi.json: `season`, `round`, and filters."""
    segments = path.split("/")[1:]
    for before, segment in zip(["", *segments], segments):
        if segment.startswith("{"):
            yield before if before in FILTERS else segment.strip("{}")


def operation(endpoint: Endpoint, path: str) -> dict[str, Any]:
    return {
        "parameters": [reference("parameters", name) for name in filters_of(path)],
        "get": {
            "operationId": "get " + " ".join(re.findall(r"\w+", path)),
            "tags": [endpoint.name],
            "summary": endpoint.summary,
            "parameters": [reference("parameters", name) for name in ("limit", "offset", *CONDITIONAL)],
            "responses": {
                "200": reference("responses", response_name(endpoint)),
                **{status: reference("responses", status) for status in ("304", "400", "404", "414", "429", "431")},
            },
        },
    }


def answer_response(endpoint: Endpoint, grammar: Grammar, address: str) -> dict[str, Any]:
    """The 200 response of an endpoint, with the real answer at `address` as its example."""
    answer = endpoint.answer(Requested(grammar.parse(address), 1, 0, "http://127.0.0.1:8000" + grammar.base))
    return response(
        endpoint.summary + ".",
        ("Content-Encoding", *CACHEABLE, *COUNTED),
        {
            "application/json": {
                "schema": reference("schemas", response_name(endpoint)),
                "examples": {"one record": {"summary": f"{address}?limit=1", "value": answer}},
            }
        },
    )


def answer_schema(endpoint: Endpoint) -> dict[str, Any]:
    """The schema of an endpoint's 200 response: the envelope, its table, and the list in the table."""
    each = reference("schemas", endpoint.schema)
    if endpoint.key:  # records nested in the objects of the list
        records = {"type": "array", "minItems": 1, "items": each}
        each = {
            **reference("schemas", endpoint.container),
            "required": [endpoint.key],
            "properties": {endpoint.key: records},
            "unevaluatedProperties": False,
        }
    table = {
        **reference("schemas", "Table"),
        "required": [endpoint.objects],
        "properties": {endpoint.objects: {"type": "array", "items": each}},
        "unevaluatedProperties": False,
    }
    envelope = {
        **reference("schemas", "Envelope"),
        "required": [endpoint.table],
        "properties": {endpoint.table: table},
        "unevaluatedProperties": False,
    }
    return {
        "type": "object",
        "required": ["MRData"],
        "additionalProperties": False,
        "properties": {"MRData": envelope},
    }


def response_name(endpoint: Endpoint) -> str:
    return f"{endpoint.name}-answer"


def reference(kind: str, name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/{kind}/{name}"}


def response(description: str, headers: Sequence[str], content: Mapping[str, Any] | None = None) -> dict[str, Any]:
    described = {"description": description, "headers": {name: reference("headers", name) for name in headers}}
    return {**described, "content": content} if content else described


def problem(description: str, *headers: str) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": reference("schemas", "Problem")}}
    return response(description, (*headers, *COUNTED), content)


TOO_LONG = {
    "description": "The request line or a header is longer than about 8,000 bytes; the server refuses it.",
    "content": {"text/html": {"schema": {"type": "string"}}},
}

# The responses of all endpoints other than 200, by status.
OPENAPI["components"]["responses"] = {
    "304": response(NOT_MODIFIED, (*CACHEABLE, *COUNTED)),
    "400": problem("The endpoint does not accept a filter, or needs a season and round; or a parameter is wrong."),
    "404": problem("No endpoint has this address, or there is no last round yet."),
    "429": problem("A rate limit is reached. The same request succeeds after Retry-After seconds.", "Retry-After"),
    "414": TOO_LONG,
    "431": TOO_LONG,
}


def outside_base() -> dict[str, dict[str, Any]]:
    """The operations outside the base address."""
    described = {"type": "object", "required": ["openapi", "info", "paths"]}
    conditional = {
        "parameters": [reference("parameters", name) for name in CONDITIONAL],
    }

    def responses(description: str, headers: Sequence[str], type: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        found = {"200": response(description, (*headers, *EVERYWHERE), {type: {"schema": schema}})}
        if headers:
            found["200"]["headers"]["Content-Encoding"] = reference("headers", "Content-Encoding")
            found["304"] = response(NOT_MODIFIED, (*headers, *EVERYWHERE))
        return {**found, "431": reference("responses", "431")}

    return {
        "/healthz": {
            "operationId": "get healthz",
            "tags": ["about the service"],
            "summary": "Which database is served. This request does not count towards the rate limits",
            "responses": responses("The service answers.", (), "application/json", reference("schemas", "Health")),
        },
        "/openapi.json": {
            "operationId": "get description",
            "tags": ["about the service"],
            "summary": "This description",
            **conditional,
            "responses": responses("An OpenAPI document.", CACHEABLE, "application/json", described),
        },
        "/": {
            "operationId": "get page",
            "tags": ["about the service"],
            "summary": "A page for people: what is loaded and how to request it",
            **conditional,
            "responses": responses("A page.", CACHEABLE, "text/html", {"type": "string"}),
        },
    }


def home(settings: Settings, endpoints: Sequence[Endpoint], data: Snapshot) -> str:
    """The page, as HTML text: what is loaded, the endpoints with links to try, the filters, the limits."""
    loaded, directory = queries.loaded(data), endpoints[0].directory
    values = example_values(data, directory, loaded)
    return HOME.substitute(
        base=escape(base_of(settings)),
        facts="\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts(data, loaded)),
        endpoints="\n".join(groups(settings, endpoints, values)),
        filters="\n".join(described_filters(values)),
        current="{}".format(*directory.place("current", None)),
        last="{}/{}".format(*directory.place("current", "last")),
        next="{}/{}".format(*directory.place("current", "next")),
        default_limit=default_limit(settings),
        max_limit=settings.max_limit,
        limits=limits(settings),
    )


def default_limit(settings: Settings) -> int:
    return min(DEFAULT_LIMIT, settings.max_limit)


def root_of(settings: Settings) -> str:
    """The URL of the page and the description, if the settings define it; otherwise `/`."""
    if settings.base_url.endswith(settings.base_address):
        return settings.base_url.removesuffix(settings.base_address)
    return "/"


def base_of(settings: Settings) -> str:
    """The URL of the endpoints, absolute or relative to the URL of the page."""
    return settings.base_url or settings.base_address


def facts(data: Snapshot, loaded: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is loaded: names, and values as HTML."""
    build, counts = data.build(), data.row_counts()
    yield "Seasons", "{seasons}, from {first} to {last}".format_map(loaded)
    for table, name in RECORDS.items():
        yield name, f"{counts[table]:,}"
    yield "Source", linked(public_source(build["source"]))
    if build["refreshedFrom"]:
        yield "Refreshed from", ", ".join(map(linked, build["refreshedFrom"].split(", ")))
    yield "Licence", escape(build["licence"] or "not stated by the source")
    yield "Built", build["builtAt"].replace("T", " ").replace("Z", " UTC")


def linked(text: str) -> str:
    """A text as HTML, as a link if it is a URL."""
    text = escape(text)
    return f'<a href="{text}">{text}</a>' if re.match("https?://", text, re.IGNORECASE) else text


def example_values(data: Snapshot, directory: Directory, loaded: Mapping[str, Any]) -> dict[str, str]:
    """The values for the addresses and texts of EXAMPLES: the race with the most data, its circuit and its winner."""
    race = directory.race_ids[loaded["season"], loaded["round"]]
    _, (winner,) = queries.RESULTS.page(data, {"race": race}, 1, 0)
    season, round, circuit = (directory.races[race][key] for key in ("season", "round", "Circuit"))
    driver, constructor = directory.drivers[winner["driverId"]], directory.constructors[winner["constructorId"]]
    return {
        "season": season,
        "round": round,
        "circuit": circuit["circuitId"],
        "circuit_name": circuit["circuitName"],
        "driver": driver["driverId"],
        "driver_name": "{givenName} {familyName}".format_map(driver),
        "constructor": constructor["constructorId"],
        "constructor_name": constructor["name"],
    }


def groups(settings: Settings, endpoints: Sequence[Endpoint], values: Mapping[str, str]) -> Iterator[str]:
    """The endpoints in their groups, as HTML: name, summary, links, filters."""
    by_name = {endpoint.name: endpoint for endpoint in endpoints}
    for group, examples in EXAMPLES.items():
        yield f"<h3>{group}</h3>"
        for name, addresses in examples.items():
            endpoint = by_name[name]
            yield f'<section id="{name}"><h4><code>{name}</code> <span>{escape(endpoint.summary)}</span></h4><ul>'
            for address, text in addresses.items():
                yield f"<li>{link(settings, address.format_map(values))} {escape(text.format_map(values))}</li>"
            yield f"</ul><p>{accepted(endpoint.rules)}</p></section>"


def link(settings: Settings, address: str) -> str:
    return f'<a href="{escape(base_of(settings) + address)}.json"><code>{escape(address)}</code></a>'


def accepted(rules: Rules) -> str:
    """The filters that an endpoint accepts, as a sentence or two."""
    names = [name for name in FILTERS if name in rules.filters and name not in rules.only_beside]
    text = "Needs a season and a round. " * rules.needs_round + f"Filters: {', '.join(names)}."
    if rules.only_beside:
        others = set[str]().union(*rules.only_beside.values()) - {*rules.only_beside}
        text += f" Also {' and '.join(rules.only_beside)}, with no other filter than {' and '.join(sorted(others))}."
    return text


def described_filters(values: Mapping[str, str]) -> Iterator[str]:
    """The filters, grouped by the form of their values, as HTML."""
    ids = {"circuits": "circuit", "constructors": "constructor", "drivers": "driver"}
    for form in dict.fromkeys(FORMS.values()):
        yield f"<h3>{form[0].upper()}{form[1:]}</h3><dl>"
        for name, read in FILTERS.items():
            if FORMS[read] == form:
                parameter = OPENAPI["components"]["parameters"][name]
                example = values[ids[name]] if name in ids else parameter["example"]
                text = marked(parameter["description"])
                yield f"<div><dt><code>{name}/{escape(example)}</code></dt><dd>{text}</dd></div>"
        yield "</dl>"


def marked(text: str) -> str:
    """Converts a text with code in backticks to HTML."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def limits(settings: Settings) -> str:
    """The rate limits in words."""
    parts = [limit.split("/") for limit in (settings.burst_limit, settings.sustained_limit) if limit != "off"]
    named = [f"{quota} request{'s' * (quota != '1')} per {window}" for quota, window in parts]
    if not named:
        return "None."
    return f"Each client may send {' and '.join(named)}. Beyond that, the answer is 429 with the seconds to wait."

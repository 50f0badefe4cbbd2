"""racedata.service.openapi, racedata.service.schemas: the document against routes and answers."""

import json

import pytest
from support import EMPTY
from support.answers import EXAMPLE_OF_FILTER, Description, client, routes_of_programs
from support.loads import remember

from racedata.service.addresses import FILTERS
from racedata.service.endpoints import ENDPOINTS
from racedata.service.openapi import paths_of
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings

BASE = Settings().base_address
OUTSIDE = ["/", "/docs", "/healthz", "/openapi.json"]  # the base address
ADDRESSES = {path: endpoint.name for endpoint in ENDPOINTS for path in paths_of(endpoint)}
ROUNDS = (1, 2, 5, 7, 9, 10, 12, 18, 22, 99, "next")  # those with most records, and some without
SEASONS = (1957, 1997, 2005, 2021, 2023, 2030, "current")


@pytest.fixture(scope="module")
def described(sample):
    return Description(sample)


def test_the_description_has_the_addresses_of_every_endpoint_and_the_routes_outside_the_base(
    sample, described
):
    assert set(described.paths) == {*ADDRESSES, *OUTSIDE}
    of_endpoints = {f"{BASE}/{each.name}" for each in ENDPOINTS}
    assert routes_of_programs(sample) == {*OUTSIDE, *of_endpoints, "/llms.txt"}


def test_the_description_has_at_most_60_paths_and_150_kb(sample, described):
    # Of each path, a generated client has a function and its types: 247 were 16,512 lines.
    assert len(described.paths) <= 60
    assert len(sample.get("/openapi.json").body) <= 150_000


def test_clients_may_get_fields_that_the_description_lacks(described):
    for schema in schemas_in(described.document["components"]):
        assert schema.get("additionalProperties") is not False


def test_every_filter_has_a_parameter_with_an_example_in_openapi_json():
    assert {*FILTERS} - {*EXAMPLE_OF_FILTER} == set()


def schemas_in(item):
    """The objects in a part of the document, at any depth: schemas, and lists of properties."""
    if isinstance(item, dict):
        yield item
    for each in item.values() if isinstance(item, dict) else item if isinstance(item, list) else ():
        yield from schemas_in(each)


def test_every_schema_of_an_object_spells_out_its_own_properties(described):
    # Generators of clients ignore properties next to a `$ref`, and make `Any` of what they cannot
    # combine.
    for schema in schemas_in(described.document["components"]["schemas"]):
        assert "$ref" not in schema or {*schema} <= {"$ref", "description"}, schema
        assert not {"allOf", "anyOf", "oneOf", "unevaluatedProperties"} & {*schema}, schema


def test_the_name_of_every_operation_is_an_identifier_of_its_own(described):
    names = [path["get"]["operationId"] for path in described.paths.values()]
    assert len(set(names)) == len(names)
    assert all(map(str.isidentifier, names))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_examples_of_the_description_are_real_answers(sample, described, endpoint):
    path = next(path for path, name in ADDRESSES.items() if name == endpoint.name)
    (media,) = described.response(path, 200)["content"].values()
    for example in media["examples"].values():
        answer = sample.get(f"{BASE}{example['summary']}", headers={"Host": "127.0.0.1:8000"})
        assert (answer.json["MRData"]["total"] == "0") == (endpoint.name in EMPTY)
        # As texts, because the order of keys counts.
        assert json.dumps(answer.json) == json.dumps(example["value"])


GAPS = [(path, "gap") for path, name in ADDRESSES.items() if name in ("results", "sprint")]


@pytest.mark.parametrize(
    ("path", "finish_times"), [*((path, "total") for path in ADDRESSES), *GAPS]
)
def test_every_answer_of_the_sample_is_as_described(sample_database, described, path, finish_times):
    app = client(sample_database, finish_times=finish_times)
    for season in SEASONS if "{season}" in path else [None]:
        for round in ROUNDS if "{round}" in path else [None]:
            for query in ("", "?limit=0", "?limit=3&offset=18"):
                address = BASE + described.address(path, season=season, round=round) + query
                described.hold(app.get(address), path)


@pytest.mark.long
def test_every_answer_of_a_full_dump_is_as_described(dump_database, described):
    data = Snapshot.read(dump_database)
    app = client(data, cache_size=0)
    races = [tuple(row) for row in data.rows("SELECT year, round FROM races")]
    for path in ADDRESSES:
        if "{round}" in path:
            places = races
        elif "{season}" in path:
            places = sorted({(season, None) for season, _ in races})
        else:
            places = [(None, None)]
        for season, round in places:
            address = described.address(path, season=season, round=round)
            described.hold(app.get(f"{BASE}{address}?limit=2000"), path)


@pytest.mark.parametrize("path", ADDRESSES)
def test_refusals_are_as_described(sample, described, path):
    address = BASE + described.address(path, season=2023, round=18)
    for query in ("?limit=-1", "?offset=1.5", "?limit=1&limit=2"):
        described.hold(sample.get(address + query, status=400), path)
    described.hold(sample.get(f"{address}/fish/fish", status=404), path)


@pytest.mark.parametrize("path", [*ADDRESSES, "/", "/docs", "/openapi.json"])
def test_a_conditional_request_is_answered_as_described(sample, described, path):
    address = path if path in OUTSIDE else BASE + described.address(path, season=2023, round=18)
    answer = sample.get(address)
    described.hold(answer, path)
    described.hold(
        sample.get(address, headers={"If-None-Match": answer.headers["ETag"]}, status=304), path
    )
    assert sample.head(address).headers["ETag"] == answer.headers["ETag"]


def test_limited_and_refused_answers_are_as_described(sample_database, described):
    app = client(sample_database, sustained_limit="2/hour")
    for path in ("/{season}/{round}/laps", "/{season}/{round}/laps", "/{season}"):
        answer = app.get(BASE + described.address(path, season=2023, round=18), status="*")
        described.hold(answer, path)
        assert {"RateLimit", "RateLimit-Policy"} <= set(
            described.response(path, answer.status_int)["headers"]
        )
    assert answer.status_int == 429


def test_health_is_as_described(several_sources, described):
    time = "2026-11-22T06:00:00Z"
    noted = {"f1db": {"refreshedAt": time}, "other": {"followedSince": time}}
    remember(several_sources, noted)
    described.hold(client(several_sources).get("/healthz"), "/healthz")


@pytest.mark.parametrize(
    ("settings", "limit"),
    [({}, 100), ({"max_limit": 50}, 50), ({"max_limit": 500}, 100), ({"default_limit": 30}, 30)],
)
def test_the_default_and_the_largest_limit_are_as_described(sample_database, settings, limit):
    app = client(sample_database, **settings)
    parameter = app.get("/openapi.json").json["components"]["parameters"]["limit"]
    assert parameter["schema"]["default"] == limit
    assert f"maximum, {settings.get('max_limit', 2000)}," in parameter["description"]
    assert app.get("/ergast/f1/2023/18/laps").json["MRData"]["limit"] == str(limit)


def test_the_description_names_the_base_address_of_the_service(sample, sample_database):
    assert sample.get("/openapi.json").json["servers"][0]["url"] == "/ergast/f1"
    moved = client(sample_database, base_path="", series="racing")
    assert moved.get("/openapi.json").json["servers"][0]["url"] == "/racing"
    public = (
        client(sample_database, base_url="https://example.org/api/ergast/f1")
        .get("/openapi.json")
        .json
    )
    assert public["servers"][0]["url"] == "https://example.org/api/ergast/f1"
    assert public["paths"]["/healthz"]["servers"][0]["url"] == "https://example.org/api"

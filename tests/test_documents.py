"""racedata.documents: the description in OpenAPI against the routes and their answers, and the page for people."""

import json
import re
import shutil
from html import unescape

import pytest
import webtest
from conftest import client, opened
from description import hold, response_of
from falcon.inspect import inspect_routes

from racedata import __version__, documents
from racedata.app import Service, create_app
from racedata.ratelimit.stores import store_for
from racedata.settings import Settings

OUTSIDE = {"/", "/healthz", "/openapi.json"}  # the base address
ADDRESSES = sorted(set(documents.OPENAPI["paths"]) - OUTSIDE)
ENDPOINTS = sorted(set(ADDRESSES) - {"/{season}", "/{season}/{round}/races"})  # each once


def test_the_description_has_the_addresses_of_the_route_table(sample):
    routes = {re.sub(r":\w+}", "}", route.path) for route in inspect_routes(sample.app)}
    assert {Settings().base_address + path for path in ADDRESSES} | OUTSIDE == routes


def test_the_description_is_of_this_version():
    assert documents.OPENAPI["info"]["version"] == __version__


@pytest.mark.parametrize("path", ENDPOINTS)
def test_examples_of_the_description_are_real_answers(sample, path):
    (media,) = response_of(path, 200)["content"].values()
    for example in media["examples"].values():
        answer = sample.get(f"/ergast/f1{example['summary']}", headers={"Host": "127.0.0.1:8000"})
        # As texts, because the order of keys counts.
        assert json.dumps(answer.json) == json.dumps(example["value"])


@pytest.mark.parametrize("finish_times", ["total", "gap"])
@pytest.mark.parametrize("path", ADDRESSES)
def test_every_answer_of_the_sample_is_as_described(sample_database, path, finish_times):
    app = client(sample_database, finish_times=finish_times)
    for season in (1957, 2005, 2021, 2023, 2030):
        for round in range(1, 24) if "{round}" in path else [None]:
            for query in ("", "?limit=0", "?limit=3&offset=18"):
                hold(app.get("/ergast/f1" + path.format(season=season, round=round) + query), path)


def test_every_answer_of_a_full_dump_is_as_described(dump_database):
    app, database = client(dump_database), opened(dump_database)
    races = [(season, round) for season in range(1950, 2027) for round in range(1, database.races_total(season) + 1)]
    for path in ENDPOINTS:
        for season, round in races if "{round}" in path else sorted({(season, None) for season, _ in races}):
            hold(app.get("/ergast/f1" + path.format(season=season, round=round) + "?limit=2000"), path)


@pytest.mark.parametrize("query", ["?limit=-1", "?offset=1.5", "?limit=1&limit=2"])
@pytest.mark.parametrize("path", ADDRESSES)
def test_refusals_are_as_described(sample, path, query):
    address = "/ergast/f1" + path.format(season=2023, round=18)
    hold(sample.get(address + query, status=400), path)
    hold(sample.get(address.replace("2023", "202"), status=404), path)


@pytest.mark.parametrize("path", [*ADDRESSES, "/", "/openapi.json"])
def test_a_conditional_request_is_answered_as_described(sample, path):
    address = path if path in OUTSIDE else "/ergast/f1" + path.format(season=2023, round=18)
    answer = sample.get(address)
    hold(answer, path)
    hold(sample.get(address, headers={"If-None-Match": answer.headers["ETag"]}, status=304), path)
    assert sample.head(address).headers["ETag"] == answer.headers["ETag"]


def test_limited_and_refused_answers_are_as_described(sample_database):
    settings = Settings(sustained_limit="2/hour")
    app = webtest.TestApp(create_app(settings, opened(sample_database), store_for(settings)))
    for path in ("/{season}/{round}/laps", "/{season}/{round}/laps", "/{season}"):
        answer = app.get("/ergast/f1" + path.format(season=2023, round=18), status="*")
        hold(answer, path)
        assert {"RateLimit", "RateLimit-Policy"} <= set(response_of(path, answer.status_int)["headers"])
    assert answer.status_int == 429


def test_health_and_what_is_said_without_a_database_are_as_described(sample, sample_database, tmp_path):
    hold(sample.get("/healthz"), "/healthz")
    path = shutil.copy(sample_database, tmp_path / "racedata.db")
    service = Service(Settings(database=str(path)), None)
    service.database.close()
    path.unlink()
    for address in ("/healthz", "/{season}/{round}/laps"):
        asked = address if address in OUTSIDE else "/ergast/f1" + address.format(season=2023, round=18)
        hold(webtest.TestApp(service).get(asked, status=503), address)


@pytest.mark.parametrize("settings, limit", [({}, 100), ({"max_limit": 50}, 50), ({"max_limit": 500}, 100)])
def test_the_limit_by_default_and_at_most_is_as_described(sample_database, settings, limit):
    app = client(sample_database, **settings)
    parameter = app.get("/openapi.json").json["components"]["parameters"]["limit"]
    assert parameter["schema"]["default"] == limit
    assert f"maximum, {settings.get('max_limit', 2000)}," in parameter["description"]
    assert f" ({limit} records by default) " in text_of(app.get("/").text)
    assert app.get("/ergast/f1/2023/18/laps").json["MRData"]["limit"] == str(limit)


def test_the_description_names_the_base_address_of_the_service(sample, sample_database):
    assert sample.get("/openapi.json").json["servers"][0]["url"] == "/ergast/f1"
    moved = client(sample_database, base_path="", series="racing")
    assert moved.get("/openapi.json").json["servers"][0]["url"] == "/racing"
    public = client(sample_database, base_url="https://example.org/api/ergast/f1").get("/openapi.json").json
    assert public["servers"][0]["url"] == "https://example.org/api/ergast/f1"
    assert public["paths"]["/healthz"]["servers"][0]["url"] == "https://example.org/api"


def text_of(html):
    return unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", html, flags=re.S))


def test_the_page_says_what_is_loaded_from_where_and_when(sample, sample_database):
    text = " ".join(text_of(sample.get("/").text).split())
    counts, build = opened(sample_database).row_counts(), opened(sample_database).build()
    assert "Seasons 4, from 1957 to 2023" in text
    for table, name in documents.RECORDS.items():
        assert f"{name} {counts[table]:,}" in text
    assert f"Source sample Built {build['builtAt'][:10]} {build['builtAt'][11:19]} UTC" in text


def test_every_link_of_the_page_works_and_those_of_endpoints_have_data(sample):
    links = re.findall('<a href="([^"]*)"', sample.get("/").text)
    assert len(links) == len(ADDRESSES) + 2
    for link in links:
        answer = sample.get(link if link.startswith("/") else f"/{link}", status=200)
        if link.startswith("/ergast"):
            assert answer.json["MRData"]["RaceTable"]["Races"]


def test_the_page_needs_no_script_and_loads_nothing(sample):
    page = sample.get("/").text
    assert not re.search(r"<script|<link (?!rel=\"icon\" href=\"data:)|<img|src=|url\(|@import", page)
    assert "default-src 'none'" in page


@pytest.mark.parametrize(
    "limits, said",
    [
        ({}, "4 requests per second and 500 requests per hour"),
        ({"burst_limit": "off"}, "A client has 500 requests per hour."),
        ({"burst_limit": "1/second", "sustained_limit": "off"}, "A client has 1 request per second."),
        ({"burst_limit": "off", "sustained_limit": "off"}, "None."),
    ],
)
def test_the_page_says_the_limits(sample_database, limits, said):
    assert said in text_of(client(sample_database, **limits).get("/").text)


@pytest.mark.parametrize(
    "source, shown",
    [
        (
            "https://example.org/data.zip?key=1",
            '<a href="https://example.org/data.zip">https://example.org/data.zip</a>',
        ),
        ("HTTP://example.org/data.zip#key=1", '<a href="HTTP://example.org/data.zip">HTTP://example.org/data.zip</a>'),
        ("/home/somebody/Downloads/data.zip", "data.zip"),
        ("C:\\Users\\somebody\\dump\\", "dump"),
        ("data/<b>sample</b>&/", "b&gt;&amp;"),
    ],
)
def test_the_page_tells_of_a_source_only_what_is_for_everybody(source, shown):
    assert documents.source(source) == shown

"""racedata.documents: the OpenAPI description against routes and answers, and the page at `/`."""

import json
import re
import shutil
from html import unescape

import pytest
import webtest
from conftest import SAMPLE, built, client
from falcon.inspect import inspect_routes
from support.description import Description

from racedata import __version__, documents
from racedata.addresses import FILTERS
from racedata.app import create_app
from racedata.ratelimit.stores import store_for
from racedata.resources import ENDPOINTS
from racedata.settings import Settings
from racedata.snapshot import Snapshot, public_source

BASE = Settings().base_address
OUTSIDE = ["/", "/healthz", "/openapi.json"]  # the base address
ADDRESSES = {path: endpoint.name for endpoint in ENDPOINTS for path in documents.paths_of(endpoint)}
ROUNDS = (1, 2, 5, 7, 9, 10, 12, 18, 22, 99, "next")  # those with most records, and some without
SEASONS = (1957, 1997, 2005, 2021, 2023, 2030, "current")


@pytest.fixture(scope="module")
def described(sample):
    return Description(sample)


def test_the_description_has_the_addresses_of_every_endpoint_and_the_routes_outside_the_base(sample, described):
    assert set(described.paths) == {*ADDRESSES, *OUTSIDE}
    routes = {route.path for route in inspect_routes(sample.app)}
    assert routes == {*OUTSIDE, *(f"{BASE}/{endpoint.name}" for endpoint in ENDPOINTS)}


def test_every_filter_of_every_endpoint_is_described(described):
    for endpoint in ENDPOINTS:
        templates = [path for path, name in ADDRESSES.items() if name == endpoint.name]
        filters = {name for path in templates for name in documents.filters_of(path)}
        assert filters == {"season", "round", *endpoint.rules.filters}


def test_the_description_is_of_this_version(described):
    assert described.document["info"]["version"] == __version__


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_examples_of_the_description_are_real_answers(sample, described, endpoint):
    (media,) = described.response(f"/{{season}}/{{round}}/{endpoint.name}", 200)["content"].values()
    for example in media["examples"].values():
        answer = sample.get(f"{BASE}{example['summary']}", headers={"Host": "127.0.0.1:8000"})
        assert answer.json["MRData"]["total"] != "0"
        # As texts, because the order of keys counts.
        assert json.dumps(answer.json) == json.dumps(example["value"])


@pytest.mark.parametrize("finish_times", ["total", "gap"])
@pytest.mark.parametrize("path", ADDRESSES)
def test_every_answer_of_the_sample_is_as_described(sample_database, described, path, finish_times):
    app = client(sample_database, finish_times=finish_times)
    for season in SEASONS if "{season}" in path else [None]:
        for round in ROUNDS if "{round}" in path else [None]:
            for query in ("", "?limit=0", "?limit=3&offset=18"):
                address = BASE + described.address(path, season=season, round=round) + query
                described.hold(app.get(address), path)


def test_every_answer_of_a_full_dump_is_as_described(dump_database, described):
    data = Snapshot.read(dump_database)
    app = webtest.TestApp(create_app(Settings(cache_size=0), data))
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


@pytest.mark.parametrize("query", ["?limit=-1", "?offset=1.5", "?limit=1&limit=2"])
@pytest.mark.parametrize("path", ADDRESSES)
def test_refusals_are_as_described(sample, described, path, query):
    address = BASE + described.address(path, season=2023, round=18)
    described.hold(sample.get(address + query, status=400), path)
    described.hold(sample.get(f"{address}/fish/fish", status=404), path)


@pytest.mark.parametrize("path", [*ADDRESSES, "/", "/openapi.json"])
def test_a_conditional_request_is_answered_as_described(sample, described, path):
    address = path if path in OUTSIDE else BASE + described.address(path, season=2023, round=18)
    answer = sample.get(address)
    described.hold(answer, path)
    described.hold(sample.get(address, headers={"If-None-Match": answer.headers["ETag"]}, status=304), path)
    assert sample.head(address).headers["ETag"] == answer.headers["ETag"]


def test_limited_and_refused_answers_are_as_described(sample_database, described):
    settings = Settings(sustained_limit="2/hour")
    app = webtest.TestApp(create_app(settings, Snapshot.read(sample_database), store_for(settings)))
    for path in ("/{season}/{round}/laps", "/{season}/{round}/laps", "/{season}"):
        answer = app.get(BASE + described.address(path, season=2023, round=18), status="*")
        described.hold(answer, path)
        assert {"RateLimit", "RateLimit-Policy"} <= set(described.response(path, answer.status_int)["headers"])
    assert answer.status_int == 429


def test_health_is_as_described(sample, described):
    described.hold(sample.get("/healthz"), "/healthz")


@pytest.mark.parametrize(("settings", "limit"), [({}, 100), ({"max_limit": 50}, 50), ({"max_limit": 500}, 100)])
def test_the_default_and_the_largest_limit_are_as_described(sample_database, settings, limit):
    app = client(sample_database, **settings)
    parameter = app.get("/openapi.json").json["components"]["parameters"]["limit"]
    assert parameter["schema"]["default"] == limit
    assert f"maximum, {settings.get('max_limit', 2000)}," in parameter["description"]
    most = settings.get("max_limit", 2000)
    assert f"({limit} records by default, at most {most})" in text_of(app.get("/").text)
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
    data = Snapshot.read(sample_database)
    counts, build = data.row_counts(), data.build()
    assert "Seasons 5, from 1957 to 2023" in text
    for table, name in documents.RECORDS.items():
        assert f"{name} {counts[table]:,}" in text
    assert f"Source sample Licence CC BY-NC-SA 4.0 Built {build['builtAt'][:10]} {build['builtAt'][11:19]} UTC" in text


def links_of(page):
    return [unescape(link) for link in re.findall('<a href="([^"]*)"', page)]


@pytest.mark.parametrize("base", ["/ergast/f1", "/racing"])
def test_every_link_of_the_page_works_and_those_of_endpoints_have_data(sample_database, base):
    settings = {} if base == "/ergast/f1" else {"base_path": "", "series": "racing"}
    app = client(sample_database, **settings)
    links = links_of(app.get("/").text)
    assert {"openapi.json", "healthz", f"{base}/current.json", f"{base}/seasons.json"} <= {*links}
    for link in links:
        answer = app.get(link if link.startswith("/") else f"/{link}", status=200)
        if link.startswith(base):
            assert answer.json["MRData"]["total"] != "0"


def test_every_link_of_the_page_has_data_in_a_full_dump(dump_database):
    app = client(dump_database)
    for link in links_of(app.get("/").text):
        if link.startswith(BASE) and link != f"{BASE}/current/next.json":  # after a season's last race there is no next
            assert app.get(link, status=200).json["MRData"]["total"] != "0", link


def test_the_page_shows_every_endpoint_once_in_its_group_with_its_filters(sample):
    names = [name for group in documents.EXAMPLES.values() for name in group]
    assert sorted(names) == sorted(endpoint.name for endpoint in ENDPOINTS)
    page = sample.get("/").text
    for endpoint in ENDPOINTS:
        (section,) = re.findall(f'<section id="{endpoint.name}">(.*?)</section>', page, re.S)
        tables = [{*sample.get(link).json["MRData"]} for link in links_of(section)]
        assert len(tables) >= 2
        assert all(endpoint.table in table for table in tables)
        filters = re.search(r"Filters: ([^.]*)\.(?: Also ([^,]*),)?", section)
        listed = {*filters[1].split(", "), *(filters[2] or "").split(" and ")} - {""}
        assert listed == endpoint.rules.filters
        assert ("Needs a season and a round." in section) == endpoint.rules.needs_round


def test_the_page_describes_every_filter_with_an_example_of_its_value(sample):
    page = sample.get("/").text
    described = re.findall(r"<dt><code>(\w+)/(\w+)</code></dt>", page)
    assert sorted(name for name, _ in described) == sorted(FILTERS)
    for name, value in described:
        assert FILTERS[name](value) is not None


def test_the_page_says_what_current_last_and_next_are_now(sample):
    text = " ".join(text_of(sample.get("/").text).split())
    for sentence in ("has results: 2023.", "of a season that has results: 2023/18.", "The race after it: 2023/19."):
        assert sentence in text


def test_the_links_of_the_page_are_to_the_race_that_has_most_and_to_its_winner(sample):
    links = links_of(sample.get("/").text)
    assert f"{BASE}/2023/18/drivers/max_verstappen/pitstops.json" in links
    assert f"{BASE}/drivers/max_verstappen/circuits/americas/results.json" in links


def test_the_links_of_the_page_are_to_a_race_with_results_even_if_another_has_only_its_qualifying(tmp_path):
    source = shutil.copytree(SAMPLE, tmp_path / "source")
    for optional in ("sprint_results", "lap_times", "pit_stops", "driver_standings", "constructor_standings"):
        (source / f"{optional}.csv").unlink()
    head, *rows = (source / "results.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    of_1957 = [row for row in rows if row.split(",")[1] == "5"]
    (source / "results.csv").write_text("".join([head, *of_1957]), encoding="utf-8")
    app = client(built(source, tmp_path / "racedata.db"))
    assert f"{BASE}/1957/5/results.json" in links_of(app.get("/").text)


def test_the_page_needs_no_script_and_loads_nothing(sample):
    page = sample.get("/").text
    assert not re.search(r"<script|<link (?!rel=\"icon\" href=\"data:)|<img|src=|url\(|@import", page)
    assert "default-src 'none'" in page


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({}, "4 requests per second and 500 requests per hour"),
        ({"burst_limit": "off"}, "Each client may send 500 requests per hour."),
        ({"burst_limit": "1/second", "sustained_limit": "off"}, "Each client may send 1 request per second."),
        ({"burst_limit": "off", "sustained_limit": "off"}, "None."),
    ],
)
def test_the_page_says_the_limits(sample_database, limits, text):
    assert text in text_of(client(sample_database, **limits).get("/").text)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (
            "https://example.org/data.zip?key=1",
            '<a href="https://example.org/data.zip">https://example.org/data.zip</a>',
        ),
        ("HTTP://example.org/data.zip#key=1", '<a href="HTTP://example.org/data.zip">HTTP://example.org/data.zip</a>'),
        ("/home/somebody/Downloads/data.zip", "data.zip"),
        ("C:\\Users\\somebody\\dump\\", "dump"),
        ("data/<b>&/", "&lt;b&gt;&amp;"),
    ],
)
def test_the_page_does_not_show_the_folder_or_the_key_of_a_source(source, shown):
    assert documents.linked(public_source(source)) == shown

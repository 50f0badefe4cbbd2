"""racedata.service.pages.interface: the page at `/docs`, and the text for AI assistants."""

import re
from urllib.parse import urljoin

import pytest
from support.answers import client, client_after, links_of, words_of

from racedata.service.endpoints import ENDPOINTS
from racedata.settings import Settings

BASE = Settings().base_address


def test_the_page_shows_every_endpoint_once_in_its_group_with_its_filters(sample):
    html = sample.get("/docs").text
    names = re.findall('<section id="(.*?)">', html)
    assert sorted(names) == sorted(endpoint.name for endpoint in ENDPOINTS)
    for endpoint in ENDPOINTS:
        (section,) = re.findall(f'<section id="{endpoint.name}">(.*?)</section>', html, re.S)
        tables = [{*sample.get(link).json["MRData"]} for link in links_of(section)]
        assert len(tables) >= 2
        assert all(endpoint.table_key in table for table in tables)
        filters = re.search(r"Filters: ([^.]*)\.", section)[1].split(", ")
        listed = {*filters, *re.findall(r" Also (\w+), which combines only with ", section)}
        assert listed == endpoint.rules.filters
        assert ("Needs a season." in section) == endpoint.rules.needs_season


def test_the_page_names_each_error_that_a_client_must_handle(sample):
    named = set(re.findall(r"<dt><code>(\d+)</code>", sample.get("/docs").text))
    responses = sample.get("/openapi.json").json["paths"]["/{season}/results"]["get"]["responses"]
    assert named == {*responses} - {"200", "304", "414", "431"}


def test_the_links_of_the_page_are_to_a_race_with_results_even_if_another_has_only_its_qualifying(
    database,
):
    app = client_after(
        database, "DELETE FROM results WHERE NOT RACE(1957/5)", "DELETE FROM pit_stops"
    )
    assert f"{BASE}/1957/5/results.json" in links_of(app.get("/docs").text)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({}, "4 requests per second and 500 requests per hour"),
        ({"burst_limit": "off"}, "Each client may send 500 requests per hour."),
        (
            {"burst_limit": "1/second", "sustained_limit": "off"},
            "Each client may send 1 request per second.",
        ),
        ({"burst_limit": "off", "sustained_limit": "off"}, "None."),
    ],
)
def test_the_page_says_the_limits(sample_database, limits, text):
    assert text in words_of(client(sample_database, **limits).get("/docs").text)


@pytest.mark.parametrize("settings", [{}, {"base_path": "/api", "series": "f2"}], ids=str)
def test_the_text_for_assistants_is_plain_and_short_and_leads_to_each_endpoint(
    sample_database, settings
):
    app = client(sample_database, **settings)
    answer = app.get("/llms.txt")
    assert answer.content_type == "text/plain" and len(answer.body) < 4000
    assert answer.text.startswith("# racedata\n\n> Formula One data from 1957 to 2023 as JSON")
    assert f"\n- Base address: {Settings(**settings).base_address}\n" in answer.text
    for endpoint in ENDPOINTS:
        assert f"[{endpoint.name}]" in answer.text and f": {endpoint.summary}\n" in answer.text
    links = re.findall(r"\]\((\S+)\)", answer.text)
    assert len(links) == len(ENDPOINTS) + 4
    for link in links:
        app.get(urljoin("/llms.txt", link), status=200)

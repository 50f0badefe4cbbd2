"""racedata.service.pages.home: the page at `/`, and that what it links to has data."""

import re
from html import unescape

import pytest
import webtest
from support import EMPTY
from support.answers import client, links_of, words_of

from racedata.service.app import create_app
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings, parse_arguments

BASE = Settings().base_address


@pytest.mark.parametrize("address", ["/", "/data", "/docs"])
def test_links_to_endpoints_have_data(sample, address):
    links = [link for link in links_of(sample.get(address).text) if link.startswith(BASE)]
    assert links
    for link in links:
        if not re.search("|".join(["csv$|ics$", *EMPTY]), link):
            assert sample.get(link).json["MRData"]["total"] != "0"


def test_the_second_calendar_of_the_page_has_every_session_but_practice(sample):
    links = re.findall(r'href="([^"]*\.ics[^"]*)"', sample.get("/").text)
    texts = [sample.get(unescape(link)).text for link in links]
    names = [re.findall("SUMMARY:.*", text) for text in texts]
    assert (names[2], names[3]) == (names[1], names[0])  # the last one is a file
    assert [text.count("TRIGGER:-PT30M") for text in texts] == [0, 0, len(names[1]), 0]
    assert names[1] == [name for name in names[0] if "Practice" not in name] != names[0]
    assert any("Sprint Shootout" in name for name in names[1])


@pytest.mark.parametrize("follows", [False, True])
def test_nobody_is_told_to_load_what_the_service_is_loading(sample_database, follows):
    settings = parse_arguments(["--follow"] if follows else []).settings
    app = webtest.TestApp(create_app(settings, Snapshot.read(str(sample_database))))
    notice = app.get("/healthz").json["sample"]
    assert notice in words_of(app.get("/").text)
    assert ("This service is loading its sources" in notice) == follows
    assert (" load tracinginsights f1db" in notice) != follows
    tags = {app.get("/").headers["ETag"], client(sample_database).get("/").headers["ETag"]}
    assert len(tags) == 1 + follows

"""racedata.service.pages.llms: the text for AI assistants."""

import re
from urllib.parse import urljoin

import pytest
from support.answers import client

from racedata.service.endpoints import ENDPOINTS
from racedata.settings import Settings

BASE = Settings().base_address


def test_it_is_plain_text_with_a_title_a_summary_and_the_base_address(sample):
    answer = sample.get("/llms.txt")
    assert answer.content_type == "text/plain"
    title, _, summary, *_ = answer.text.splitlines()
    assert title == "# racedata"
    assert summary.startswith("> Formula One data from 1957 to 2023 as JSON")
    assert f"\n- Base address: {BASE}\n" in answer.text
    assert len(answer.body) < 4000
    assert (
        sample.get("/llms.txt", headers={"If-None-Match": answer.headers["ETag"]}).status_int == 304
    )


def links_in(text):
    return re.findall(r"\]\((\S+)\)", text)


@pytest.mark.parametrize("settings", [{}, {"base_path": "/api", "series": "f2"}], ids=str)
def test_every_link_leads_to_an_answer(sample_database, settings):
    app = client(sample_database, **settings)
    links = links_in(app.get("/llms.txt").text)
    assert len(links) == len(ENDPOINTS) + 4
    for link in links:
        app.get(urljoin("/llms.txt", link), status=200)


def test_it_names_each_endpoint_with_its_summary(sample):
    text = sample.get("/llms.txt").text
    for endpoint in ENDPOINTS:
        assert f"[{endpoint.name}]" in text and f": {endpoint.summary}\n" in text

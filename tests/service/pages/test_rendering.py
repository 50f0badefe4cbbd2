"""racedata.service.pages.rendering: what all pages share."""

import re
from base64 import b64encode
from hashlib import sha256

import pytest
from jinja2 import UndefinedError, meta
from support.answers import client, words_of
from support.loads import changed

from racedata.service.catalogue import Catalogue
from racedata.service.endpoints import Served
from racedata.service.pages import rendering
from racedata.service.pages.ask import Ask
from racedata.service.pages.resources import DATA, DOCS, HOME, PAGES
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings


@pytest.mark.parametrize("address", ["/", "/data", "/docs"])
def test_a_page_loads_only_its_own_icon_and_manifest(sample, address):
    html = sample.get(address).text
    assert not re.search(r"<script |<img|src=|url\(|@import", html)
    links = re.findall('<link rel="(.*?)" href="(.*?)"', html)
    assert links == [("icon", "./icon.svg"), ("manifest", "./manifest.webmanifest")]
    assert html.count("<link ") == 2


@pytest.mark.parametrize(
    "address",
    ["/", "/docs", "/2023", "/2023/18", "/drivers/alonso", "/circuits/monza", "/find?q=a"],
)
def test_the_headers_of_a_page_allow_its_own_style_and_script_and_nothing_else(sample, address):
    answer = sample.get(address)
    policy = dict(
        part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; ")
    )
    own = {"img-src", "manifest-src", "form-action"}
    assert {policy[name] for name in own} == {"'self'"}
    assert policy.keys() - {"style-src", "script-src", *own} == {
        name for name, value in policy.items() if value == "'none'"
    }
    assert {"default-src", "base-uri", "frame-ancestors"} <= policy.keys()
    for tag in ("style", "script"):
        for text in re.findall(f"<{tag}>(.*?)</{tag}>", answer.text, re.S):
            assert (
                policy[f"{tag}-src"]
                == f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
            )
    assert not re.search(r"<[^>]* (style|on\w+)=", answer.text)
    assert answer.headers["Referrer-Policy"] == "no-referrer"


PARAMETERS = [[2023], [2023, 18], ["alonso"], ["red_bull"], ["americas"]]
SHOWN = [(HOME, [{}]), (DATA, [{}]), (DOCS, []), *zip(PAGES, PARAMETERS, strict=True)]


@pytest.mark.parametrize(("page", "parameters"), SHOWN)
def test_a_page_shows_each_fact_that_its_module_collects(sample_database, page, parameters):
    data = Snapshot.read(sample_database)
    facts = page.facts(Ask(Served(data, Catalogue(data), Settings())), *parameters)
    source, *_ = rendering.TEMPLATES.loader.get_source(rendering.TEMPLATES, page.template)
    used = meta.find_undeclared_variables(rendering.TEMPLATES.parse(source))
    assert facts.keys() - used == set()


def test_a_page_with_a_missing_fact_is_an_error():
    with pytest.raises(UndefinedError, match="'fault' is undefined"):
        rendering.render("not_found.html", "/x", season=2023, this_season=2023, contact="")


HOSTILE = "</title><script>alert(1)</script>\"'&<!--"


def test_times_on_the_pages_are_in_an_element_that_the_script_changes(sample):
    html = sample.get("/2023/18").text
    start = '<time datetime="2023-10-22T19:00:00Z">Sun 22 Oct 2023, 19:00</time>'
    assert f'{start} <span class="zone">UTC</span>' in html
    assert "<script>" in html


def test_names_cannot_change_the_page(database):
    quoted = HOSTILE.replace("'", "''")
    app = client(
        changed(
            database,
            f"UPDATE races SET name = '{quoted}'",
            f"UPDATE circuits SET name = '{quoted}', location = '{quoted}', country = '{quoted}'",
            f"UPDATE drivers SET forename = '{quoted}', surname = '{quoted}'",
            f"UPDATE constructors SET name = '{quoted}'",
            f"UPDATE status SET status = '{quoted}'",
            f"UPDATE results SET positionText = '{quoted}' WHERE positionOrder > 5",
        )
    )
    careers = ("/drivers/alonso", "/constructors/red_bull", "/circuits/americas", "/find?q=script")
    for address in ("/", "/2023", "/2023/18", "/2023/19", "/1957/5", *careers):
        html = app.get(address).text
        assert HOSTILE in words_of(html)
        assert html.count("<script") == html.count("</title><script") + 1 == 1
        assert html.count("</title>") == 1


@pytest.mark.parametrize(
    "address",
    ["/2023", "/2023/18", "/2023/19", "/drivers/moss", "/constructors/vanwall", "/circuits/monza"],
)
def test_each_table_has_a_caption_and_each_row_and_column_a_heading(sample, address):
    html = sample.get(address).text
    for table in re.findall("<table.*?</table>", html, re.S):
        assert table.count("<caption") == 1
        rows = re.findall("<tr[^>]*>(.*?)</tr>", table, re.S)
        assert "<td" not in rows[0] and rows[0].count('scope="col"') == rows[0].count("<th")
        assert all(row.startswith('<th scope="row">') for row in rows[1:])

"""racedata.service.pages.rendering: what all pages share."""

import re
from base64 import b64encode
from hashlib import sha256

import pytest
from jinja2 import UndefinedError
from support.answers import client, client_after, compressed_size, words_of

from racedata.service.pages import rendering


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


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://f1.example.org/x/ergast/f1", "https://f1.example.org/x/drivers/alonso"),
        ("https://f1.example.org/api", None),  # elsewhere than the pages
        ("", None),  # the service does not know its own name
    ],
)
def test_a_page_says_where_it_is_only_if_the_base_url_says_so(sample_database, base_url, url):
    html = client(sample_database, base_url=base_url).get("/drivers/ALONSO").text
    found = re.findall('<meta property="og:(?:url|image)" content="(.*?)">', html)
    assert found == ([url, "https://f1.example.org/x/card.png"] if url else [])


def test_the_card_is_an_image_of_the_size_that_other_sites_show(sample):
    answer = sample.get("/card.png")
    assert answer.content_type == "image/png"
    assert answer.body.startswith(b"\x89PNG\r\n")
    assert [int.from_bytes(answer.body[at : at + 4]) for at in (16, 20)] == [1200, 630]


@pytest.mark.parametrize("page", ["drivers", "constructors", "circuits", "discrepancies"])
def test_a_long_page_of_a_full_database_is_less_than_15_kb(full_database, page):
    assert compressed_size(full_database, f"/{page}") < 15_000


HOSTILE = "</title><script>alert(1)</script>\"'&<!--"


def test_names_cannot_change_the_page(database):
    quoted = HOSTILE.replace("'", "''")
    app = client_after(
        database,
        f"UPDATE races SET name = '{quoted}'",
        f"UPDATE circuits SET name = '{quoted}', location = '{quoted}', country = '{quoted}'",
        f"UPDATE drivers SET forename = '{quoted}', surname = '{quoted}'",
        f"UPDATE constructors SET name = '{quoted}'",
        f"UPDATE status SET status = '{quoted}'",
        f"UPDATE results SET positionText = '{quoted}' WHERE positionOrder > 5",
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


@pytest.mark.parametrize("address", ["/", "/drivers/alonso", "/find?q=sch%26"])
def test_a_page_says_to_other_sites_what_it_has(sample, address):
    html = sample.get(address).text
    graph = dict(re.findall('<meta property="og:(.*?)" content="(.*?)">', html))
    assert graph == {
        "type": "website",
        "site_name": "racedata",
        "title": re.search("<title>(.*?)</title>", html)[1],
        "description": re.search('<meta name="description" content="(.*?)">', html)[1],
    }


def test_a_page_with_a_missing_fact_is_an_error():
    with pytest.raises(UndefinedError, match="'fault' is undefined"):
        rendering.render("not_found.html", "/x", season=2023, this_season=2023, contact="")

"""racedata.service.pages.find and names: names by any part of them, the best matches first."""

import re
from html import unescape
from posixpath import join, normpath
from urllib.parse import quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.answers import asking, client, links_of, request, words_of
from support.loads import select

from racedata.formats import printable
from racedata.service.pages.find import LONGEST, MOST_REPLACED, SHOWN, AllNames
from racedata.service.pages.names import plain


@pytest.fixture(scope="module")
def names(sample_database):
    return AllNames(asking(sample_database))


@pytest.fixture(scope="module")
def full_names(full_database):
    return AllNames(asking(full_database))


def texts(names, query):
    """The names that are found, by kind."""
    found = names.find(plain(query).split())
    return {kind: [name.text for name in of_kind] for kind, of_kind in found}


# Queries with the kinds that they find, the best first, and the first names of each.
KINDS = """
alonso > Drivers: Fernando Alonso
FERN alo > Drivers: Fernando Alonso
perez > Drivers: Sergio Pérez
Pérez > Drivers: Sergio Pérez
checo > Drivers: Sergio Pérez
44 > Drivers: Lewis Hamilton
onso > Drivers: Fernando Alonso
VER > Drivers: Max Verstappen
max_verstappen > Drivers: Max Verstappen
lewis-evans > Drivers: Stuart Lewis-Evans
redbull > Constructors: Red Bull
nurburg > Circuits: Nürburgring
cota > Circuits: Circuit of the Americas
season 2023 > Seasons: Season 2023
mexico city > Circuits: Autódromo Hermanos Rodríguez; Races: Mexico City Grand Prix 2025
austin 2021 > Races: United States Grand Prix 2021
ferrari > Constructors: Ferrari
hamilton > Drivers: Lewis Hamilton
monza > Circuits: Autodromo Nazionale di Monza
1996 > Seasons: Season 1996
monaco 1996 > Races: Monaco Grand Prix 1996
alonso 2023 > Drivers: Fernando Alonso
hill > Drivers: Graham Hill, Damon Hill, Phil Hill
who won monaco 1996 > Races: Monaco Grand Prix 1996; Circuits: Circuit de Monaco; \
Seasons: Season 1996
hamilton silverstone 2021 > Races: British Grand Prix 2021; \
Drivers: Lewis Hamilton, Duncan Hamilton; Circuits: Silverstone Circuit; Seasons: Season 2021
hamilton vs russell > Drivers: Lewis Hamilton, George Russell, Duncan Hamilton
Sir Lewis Hamilton > Drivers: Lewis Hamilton
winner of monza in 1971 > Races: Italian Grand Prix 1971; Circuits: Autodromo Nazionale di Monza; \
Seasons: Season 1971
who drove for minardi > Constructors: Minardi
racing bulls > Constructors: RB F1 Team
"""


@pytest.mark.parametrize("line", KINDS.strip().splitlines())
def test_names_are_found_by_parts_of_them_without_accents_and_in_any_case(full_names, line):
    query, _, listed = line.partition(" > ")
    pairs = (kind.split(": ") for kind in listed.split("; "))
    kinds = {kind: names.split(", ") for kind, names in pairs}
    found = texts(full_names, query)
    assert [*found][: len(kinds)] == [*kinds]
    assert {kind: found[kind][: len(names)] for kind, names in kinds.items()} == kinds
    if len(query.split()) > 2:
        assert found == kinds


def test_whole_words_come_before_beginnings_and_those_before_other_parts(full_names):
    first = ["Lewis Hamilton", "Duncan Hamilton", "David Hampshire", "Graham Hill"]
    assert [name for name in texts(full_names, "ham")["Drivers"] if name in first] == first


@pytest.mark.parametrize("query", ["", "  ", "!?", "zzzz", "%", "_", "'"])
def test_nothing_is_found_by_signs_or_by_words_that_no_name_has(names, query):
    assert texts(names, query) == {}


def test_every_name_is_found_by_itself(names):
    for kind, listed in names.kinds.items():
        for name in listed:
            assert name.text in texts(names, name.text)[kind]


def test_all_races_of_a_year_are_shown_and_the_first_of_more_with_their_number(full_database):
    html = client(full_database).get("/find?q=2024").text
    assert len(re.findall('href="./2024/[0-9]+"', html)) == 24
    assert "Australian Grand Prix 2024 Sun 24 Mar 2024, Albert Park Grand" in words_of(html)
    assert "more:" not in html
    html = client(full_database).get("/find?q=monaco").text
    races = select(full_database, "SELECT count(*) FROM races WHERE name = 'Monaco Grand Prix'")
    assert len(re.findall('href="./[0-9]+/[0-9]+"', html)) == SHOWN
    more = f"{races[0][0] - SHOWN} more: write more of the name, or a year."
    assert more in words_of(html)


def test_a_page_that_finds_nothing_or_is_not_asked_says_what_to_do(sample):
    assert "Nothing here has this in its name." in words_of(sample.get("/find?q=zzzz").text)
    for address in ("/find", "/find?q=", "/find?q=%20", "/find?other=1"):
        page = sample.get(address, status=200)
        assert "Write a part of a name into the field" in words_of(page.text)
    examples = [link for link in links_of(page.text) if "q=" in link]
    assert len(examples) == 3
    for link in examples:
        sample.get(normpath(join("/", link)), status=200)


@pytest.mark.parametrize(
    ("query", "similar", "link"),
    [
        ("verstapen", {"verstapen": "verstappen"}, "./drivers/max_verstappen"),
        ("zzzzzz alonzo", {"alonzo": "alonso"}, "./drivers/alonso"),
        ("verstapen 2023", {"verstapen": "verstappen"}, "./drivers/max_verstappen"),
    ],
)
def test_a_word_that_no_name_has_is_replaced_with_a_similar_one_and_the_page_says_so(
    sample, names, query, similar, link
):
    assert names.similar(query.split()) == similar
    html = sample.get("/find", {"q": query}).text
    assert link in links_of(html)
    for word, shown in similar.items():
        said = f"Nothing here has “{word}” in its name. Shown is “{shown}”."
        assert said in words_of(html)


def test_few_words_are_replaced_and_none_that_is_inside_of_a_name(sample, names):
    assert names.similar(["alonso", "alons", "stappe", "xyz", "2027", "qqqqqqqq"]) == {}
    assert len(names.similar(["alonzo", "russelll", "hamiltonn", "verstapen"])) == MOST_REPLACED


HOSTILE = [
    "</title><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    "\x00\x1b\u202e\ufeff",
    "a" * 5000,
    "\ufdfa" * 100,  # each becomes 18 letters
]


@settings(max_examples=60)
@given(st.text(max_size=150) | st.sampled_from(HOSTILE))
def test_any_text_is_answered_and_only_text_in_the_page(sample, query):
    page = sample.get(f"/find?q={quote_plus(query, errors='surrogatepass')}", status=200)
    assert (page.content_type, page.text.count("<script")) == ("text/html", 1)
    assert page.text.count("</title>") == 1 and "<img" not in page.text
    assert len(page.text) < 40_000
    (shown,) = re.findall('name="q" value="([^"]*)"', page.text)
    assert unescape(shown) == " ".join(printable(query[:LONGEST]).split())
    assert not {*range(32)} - {*b"\n"} & {*page.body}


@given(st.binary(max_size=20) | st.sampled_from([b"q=%ff", b"q=%", b"q=a&q=b", b"q", b"q=%00"]))
def test_a_malformed_query_is_answered_too(sample, query):
    answer = request(sample, PATH_INFO="/find", QUERY_STRING=query.decode("latin-1"))
    assert (answer.status_int, answer.content_type) == (200, "text/html")


@pytest.mark.parametrize("query", ["alonso", "gr", "2023", "monza", "red b", "verstapen"])
def test_each_link_of_what_is_found_leads_to_a_page(sample, query):
    html = sample.get("/find", {"q": query}).text
    links = links_of("".join(re.findall('<ul class="list found">.*?</ul>', html, re.S)))
    assert links
    for link in links:
        sample.get(normpath(join("/", link)), status=200)

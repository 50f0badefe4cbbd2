"""racedata.service.pages.resources, ask: which page an address has, when it is made; the 404."""

import re
from posixpath import join, normpath
from urllib.parse import urljoin

import pytest
from support import EXPECTED
from support.answers import Counted, client, client_after, lines_of, links_of, request, words_of
from support.loads import remember

from racedata.database import store_path
from racedata.service.pages.resources import PAGES
from racedata.settings import Settings

GOLDEN = {
    "home": "/",
    "data": "/data",
    "docs": "/docs",
    "season-1957": "/1957",
    "season-2023": "/2023",
    "race-1957-2": "/1957/2",
    "race-2005-7": "/2005/7",
    "race-2023-9": "/2023/9",
    "race-2023-18": "/2023/18",
    "race-2023-19": "/2023/19",
    "seasons": "/seasons",
    "records": "/records",
    "drivers": "/drivers",
    "constructors": "/constructors",
    "circuits": "/circuits",
    "discrepancies": "/discrepancies",
    "discrepancies-2023": "/2023/discrepancies",
    "changes": "/changes",
    "driver-alonso": "/drivers/alonso",
    "driver-moss": "/drivers/moss",
    "constructor-vanwall": "/constructors/vanwall",
    "circuit-americas": "/circuits/americas",
    "find-gr": "/find?q=gr",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_words_and_links_of_a_page_are_the_expected_ones(sample, name, pytestconfig):
    path, lines = EXPECTED / "pages" / f"{name}.txt", lines_of(sample.get(GOLDEN[name]).text)
    if pytestconfig.getoption("--write-pages"):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert lines == path.read_text(encoding="utf-8").splitlines()


FORMS = {"year": "[0-9]{4}", "number": "[0-9]+", "id": "[a-z_]+"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.route)
def test_each_page_has_an_address_with_expected_words(page):
    pattern = re.sub(r"{\w+:(\w+)}", lambda field: FORMS[field[1]], page.route)
    paths = [address.partition("?")[0] for address in GOLDEN.values()]
    assert any(re.fullmatch(pattern, path) for path in paths)


@pytest.mark.parametrize("address", ["/", "/docs", "/2023/18", "/drivers/alonso", "/find?q=moss"])
def test_a_browser_asks_for_a_page_again_and_downloads_it_only_if_it_has_changed(sample, address):
    headers = sample.get(address).headers
    assert headers["Cache-Control"] == "no-cache"
    sample.get(address, headers={"If-None-Match": headers["ETag"]}, status=304)


def test_the_page_says_when_a_refresh_last_asked_a_source_and_is_made_again_only_then(database):
    data = Counted.read(str(database))
    app = client(data)
    before = app.get("/")
    assert "last checked" not in before.text

    def note(**times):
        remember(database, {name: {"refreshedAt": at} for name, at in times.items()})

    (source,) = data.sources()
    note(**{source["name"]: "2001-01-01T00:00:00Z"})  # the data is newer
    assert words_of(app.get("/").text) == words_of(before.text)
    note(sample="2101-01-01T00:00:00Z", f1db="2101-01-02T05:06:07Z")
    after = app.get("/", headers={"If-None-Match": before.headers["ETag"]}, status=200)
    assert "Sources last checked Sun 2 Jan 2101, 05:06 UTC . Where" in words_of(after.text)
    assert after.headers["Last-Modified"] == "Sun, 02 Jan 2101 05:06:07 GMT"
    data.queries = 0
    assert app.get("/").text == after.text
    app.get("/", headers={"If-None-Match": after.headers["ETag"]}, status=304)
    assert data.queries == 0
    store_path(database).unlink()
    assert app.get("/").text == before.text


def test_the_page_changes_when_a_source_is_asked_even_if_another_was_asked_later(several_sources):
    app = client(several_sources)
    noted = {"f1db": {"refreshedAt": "2101-01-02T00:00:00Z"}}
    remember(several_sources, noted)
    before = app.get("/data")
    noted["sample"] = {"refreshedAt": "2101-01-01T00:00:00Z"}
    remember(several_sources, noted)
    after = app.get("/data", headers={"If-None-Match": before.headers["ETag"]}, status=200)
    assert "Checked for new data Sat 1 Jan 2101, 00:00 UTC" in words_of(after.text)


@pytest.mark.parametrize(
    "settings", [{}, {"base_path": "", "series": "racing"}, {"base_path": "/x/2023"}]
)
def test_every_link_from_page_to_page_works_whatever_the_base_address_is(sample_database, settings):
    app = client(sample_database, **settings)
    base = Settings(**settings).base_address
    pages, seen = ["/"], {"/"}
    while pages:
        page = pages.pop()
        answer = app.get(page, status=200)
        if answer.content_type == "text/html":
            links = (link for link in links_of(answer.text) if not link.startswith(("#", "http")))
            found = {normpath(join(page.rpartition("/")[0] + "/", link)) for link in links}
            pages += found - seen
            seen |= found
        else:
            assert page.startswith(base) or page in ("/healthz", "/openapi.json", "/llms.txt")
    races = {page for page in seen if re.fullmatch(r"/\d{4}/\d+", page)}
    assert len(races) == int(app.get(f"{base}/races.json?limit=0").json["MRData"]["total"])


@pytest.mark.parametrize("kind", ["drivers/alonso", "constructors/red_bull", "circuits/americas"])
def test_the_case_of_an_id_does_not_matter(sample, kind):
    page, _, id = kind.partition("/")
    assert sample.get(f"/{page}/{id.upper()}").body == sample.get(f"/{kind}").body


WITH_SLASH = """
/2023/18/ /current/last/ /docs// //healthz/ /f%C3%B6/ /find//?q=s%C3%A3o+paulo&x=a/b?c /2023/?
/x/?a/
"""


@pytest.mark.parametrize("address", WITH_SLASH.split())
def test_a_slash_at_the_end_redirects_to_the_address_without_it(sample, address):
    answer = sample.get(address, status=301)
    place = urljoin(f"http://localhost{address}", answer.location)
    path, _, query = address.partition("?")
    assert place == f"http://localhost/{path.strip('/')}" + (f"?{query}" if query else "")


def test_a_redirect_writes_a_query_that_is_no_ascii_as_a_header_may_have_it(sample):
    """A client may send any byte; WSGI delivers each as a character."""
    answer = request(sample, PATH_INFO="/find/", QUERY_STRING='q="\xc3\xa9"\\^')
    assert answer.headers["Location"] == "../find?q=%22%C3%A9%22%5C%5E"


def test_current_leads_to_the_page_of_a_season_and_last_and_next_to_pages_of_races(sample):
    for address, page in (("", "/2023"), ("/last", "/2023/18"), ("/next", "/2023/19")):
        answer = sample.get(f"/current{address}", status=302)
        assert normpath(join(f"/current{address}/..", answer.location)) == page
        assert answer.follow().content_type == "text/html"


def test_the_page_of_the_next_race_is_404_if_no_later_race_is_loaded(database):
    app = client_after(database, "UPDATE results SET RACE(2023/22) WHERE RACE(2023/18)")
    assert app.get("/current/next", status=404).json["detail"].startswith("No later race is loaded")


def test_a_round_that_is_missing_between_others_is_404_and_no_page_links_to_it(database):
    app = client_after(
        database,
        "DELETE FROM sessions WHERE RACE(2023/5)",
        "DELETE FROM races WHERE year = 2023 AND round = 5",
    )
    said = app.get("/2023/5", status=404).json["detail"]
    assert said.startswith("Season 2023 has no round 5. ")
    assert {"3", "6"} <= {*links_of(app.get("/2023/4").text)}
    assert {"21"} <= {*links_of(app.get("/2023/22").text)}


NOTHING = "There is nothing at this address. "


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/2024", "Season 2024 is not loaded. An address is /ergast/f1, "),
        ("/2023/99", "Season 2023 has no round 99. "),
        ("/drivers/nobody", "No driver here has the id nobody. "),
        ("/constructors/alonso", "No constructor here has the id alonso. "),
        ("/circuits/nowhere", "No circuit here has the id nowhere. "),
        ("/racedata.db", "This service does not offer its database for download. "),
        *((address, NOTHING) for address in ("/2023/last", "/٢٠٢٣", "/2023\n", "/foo//<b>")),
        *((address, NOTHING) for address in ("/2023/" + "9" * 5000, "/drivers/alönso")),
        ("/drivers/" + "a" * 101, NOTHING),
    ],
)
def test_an_address_without_anything_is_404_with_a_page_for_browsers(sample, address, said):
    path = address.encode().decode("latin-1")
    for tag in ("", "*"):
        problem = request(sample, PATH_INFO=path, HTTP_IF_NONE_MATCH=tag)
        assert (problem.status_int, problem.content_type) == (404, "application/problem+json")
        assert problem.json["detail"].startswith(said)
    page = request(sample, PATH_INFO=path, HTTP_ACCEPT="text/html,*/*;q=0.8")
    assert (page.status_int, page.content_type) == (404, "text/html")
    assert problem.headers["Vary"] == page.headers["Vary"] == "Accept"
    assert page.headers["Content-Security-Policy"]
    assert said.partition(".")[0] in words_of(page.text)
    links = links_of(page.text)
    assert len(links) == 15  # eight of them at the top of each page
    for link in links:
        found = sample.get(urljoin("http://localhost" + path.partition("\n")[0], link))
        assert found.content_type == "text/html"

"""racedata.service.season: the pages of a season and of a race."""

import re
from posixpath import join, normpath
from urllib.parse import urljoin

import pytest
import webtest
from support.answers import Counted, client, links_of, request, words_of
from support.loads import changed

from racedata.service.app import create_app
from racedata.settings import Settings

HOSTILE = "</title><script>alert(1)</script>\"'&<!--"


def test_the_page_of_a_season_has_its_races_with_their_winners_and_links(sample):
    html = sample.get("/2023").text
    text = words_of(html)
    assert (
        "racedata Season 2023 ← 2021 Races and their winners Round Race Winner 1 Bahrain Grand Prix"
        in text
    )
    race = (
        "18 United States Grand Prix Sun 22 Oct 2023 , "
        "Circuit of the Americas Max Verstappen Red Bull 19 Mexico"
    )
    assert race in text
    assert "Race results 40 JSON CSV" in text
    links = {*links_of(html)}
    assert {"./", "2021", "2023/18", "/ergast/f1/2023.ics", "/ergast/f1/2023/results.csv"} <= links


def test_a_win_with_a_shared_car_has_both_drivers(sample):
    assert (
        "5 British Grand Prix Sat 20 Jul 1957 , Aintree Tony Brooks Vanwall Stirling Moss Vanwall 6"
        in words_of(sample.get("/1957").text)
    )


def test_the_page_of_a_race_has_its_results_and_its_records_with_links(sample):
    html = sample.get("/2023/18").text
    text = words_of(html)
    assert (
        "United States Grand Prix 2023 Round 18 of 2023. Circuit of the Americas, Austin, USA"
        in text
    )
    assert (
        "Sun 22 Oct 2023, 19:00 UTC . ← Qatar Grand Prix Season 2023 Mexico City Grand Prix → "
        "Result" in text
    )
    assert (
        "Pos Driver Grid Laps Time Points 1 Max Verstappen Red Bull 6 56 1:35:21.362 "
        "25 2 Lando Norris" in text
    )
    assert "R Fernando Alonso Aston Martin 0 49 Undertray 0" in text
    assert "Lap timings 1,014 JSON CSV" in text
    links = {*links_of(html)}
    assert {"../", "../2023", "17", "19", "/ergast/f1/2023/18/laps.json?limit=2000"} <= links
    assert "/ergast/f1/2023/18/qualifying.json" in links
    assert "sprintqualifying" not in sample.get("/1957/5").text


def test_the_page_of_a_season_has_both_championships(sample):
    text = words_of(sample.get("/2023").text)
    assert "Drivers after round 22 (all: JSON , CSV ) Pos Driver Points Wins 1 Max Verst" in text
    assert (
        "Constructors after round 22 (all: JSON , CSV ) Pos Constructor Points Wins 1 Red" in text
    )
    assert "Constructors after" not in words_of(sample.get("/1957").text)


def test_the_page_of_a_race_has_each_part_of_qualifying_and_the_sprint(sample):
    html = sample.get("/2023/9").text
    text = words_of(html)
    race = sample.get("/ergast/f1/2023/9/qualifying.json").json["MRData"]["RaceTable"]["Races"][0]
    first, last = race["QualifyingResults"][0], race["QualifyingResults"][-1]
    times = f"{first['Q1']} {first['Q2']} {first['Q3']}"
    assert f"Qualifying Pos Driver Q1 Q2 Q3 1 Max Verstappen Red Bull {times} 2" in text
    assert f"{last['Q1']} Sprint Pos Driver Grid Laps Time Points 1 Max Verstappen" in text
    assert "Sprint qualifying Pos Driver SQ1 SQ2 SQ3 1 Max Verstappen Red Bull" in text
    assert "Sprint" not in words_of(sample.get("/2005/1").text)
    assert "Qualifying Pos Driver Time 1" in words_of(sample.get("/2005/7").text)


def test_the_page_of_a_race_names_the_fastest_lap_or_all_if_drivers_share_it(database):
    app = client(
        changed(
            database,
            "UPDATE results SET rank = 1, fastestLapTime = NULL WHERE RACE(2005/7) AND grid = 1",
        )
    )
    assert "Fastest lap: Yuki Tsunoda, 1:38.139, lap 56. " in words_of(app.get("/2023/18").text)
    (said,) = re.findall("Fastest lap: ([^.]*[.][^.]*[.])", app.get("/2005/7").text)
    assert {"Fernando Alonso, 1:30.711, lap 44"} < {*said.removesuffix(".").split("; ")}
    assert "Fastest lap" not in app.get("/1957/2").text


def test_a_link_to_only_some_of_the_records_says_so(sample_database):
    html = client(sample_database, max_limit=150).get("/2023/18").text
    assert "Lap timings 1,014 JSON CSV (the first 150) " in words_of(html)
    assert "/ergast/f1/2023/18/laps.csv?limit=150" in links_of(html)


def test_the_page_of_a_race_without_results_has_its_sessions(sample):
    text = words_of(sample.get("/2023/19").text)
    assert (
        "No result of the race is loaded. Sessions, in UTC Session Start Practice 1 Fri 27" in text
    )
    assert "All records" not in text


def test_the_pages_show_the_sessions_before_a_race_that_are_known(database):
    kinds = ("qualifying", "sprint_results", "sprint_qualifying")
    app = client(
        changed(
            database, *(f"UPDATE {kind} SET RACE(2023/19) WHERE RACE(2023/18)" for kind in kinds)
        )
    )
    page = words_of(app.get("/2023/19").text)
    assert "No result of the race is loaded. Sessions, " in page
    assert "Qualifying Pos Driver Q1 Q2 Q3 1 Charles Leclerc Ferrari 1:36.061 1:35.004" in page
    home, _, rest = words_of(app.get("/").text).partition(" Subscribe ")
    assert (
        "Qualifying (all: JSON , CSV ) Pos Driver Time 1 Charles Leclerc Ferrari 1:34.723" in home
    )
    assert "11 Yuki Tsunoda AlphaTauri 1:36" not in home
    assert (
        "Sprint (all: JSON , CSV ) Pos Driver Time Points 1 Max Verstappen Red Bull 31:30.849 8"
        in home
    )
    assert "Sprint qualifying (all: JSON , CSV ) Pos Driver Time 1 Max Verstappen Red Bull" in home
    assert "Qualifying (all" not in rest


@pytest.mark.parametrize(
    "settings", [{}, {"base_path": "", "series": "2023"}, {"base_path": "/2023"}]
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
            assert page.startswith(base) or page in ("/healthz", "/openapi.json")
    prefix = "/seasons" if settings else ""
    races = {page for page in seen if re.fullmatch(rf"{prefix}/\d{{4}}/\d+", page)}
    assert len(races) == int(app.get(f"{base}/races.json?limit=0").json["MRData"]["total"])


def test_no_page_hides_a_base_address_that_begins_with_a_year(sample_database):
    app = client(sample_database, base_path="", series="2023")
    assert app.get("/2023/2023/18").json["MRData"]["RaceTable"]["round"] == "18"
    assert "/2023, then a season" in app.get("/2023/18", status=404).json["detail"]
    assert app.get("/seasons/2023/18").content_type == "text/html"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/2024", "Season 2024 is not loaded. An address is /ergast/f1, "),
        ("/2023/99", "Season 2023 has no round 99. "),
        ("/2023/last", "There is nothing at this address. "),
        ("/2023/018", "There is nothing at this address. "),
        ("/٢٠٢٣", "There is nothing at this address. "),
        ("/2023.0", "There is nothing at this address. "),
        ("/+2023", "There is nothing at this address. "),
        ("/" + "9" * 5000, "There is nothing at this address. "),
        ("/2023/" + "9" * 5000, "There is nothing at this address. "),
        ("/2023\n", "There is nothing at this address. "),
    ],
)
def test_a_season_or_race_that_is_not_loaded_is_404_even_with_a_current_tag(sample, address, said):
    path = address.encode().decode("latin-1")
    for tag in ("", "*"):
        answer = request(sample, PATH_INFO=path, HTTP_IF_NONE_MATCH=tag)
        assert (answer.status_int, answer.content_type) == (404, "application/problem+json")
        assert answer.json["detail"].startswith(said)


@pytest.mark.parametrize("settings", [{}, {"base_path": "", "series": "2023"}])
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/seasons/2024", "Season 2024 is not loaded."),
        ("/seasons/2021/99", "Season 2021 has no round 99."),
        ("/foo", "There is nothing at this address."),
        ("/0000", "There is nothing at this address."),
        ("/seasons/2021/last", "There is nothing at this address."),
        ("/foo//<b>", "There is nothing at this address."),
        ("/racedata.db", "This service does not offer its database for download."),
    ],
)
def test_a_browser_gets_a_page_with_links_at_an_address_without_anything(
    sample_database, settings, address, said
):
    app = client(sample_database, **settings)
    if not settings:
        address = address.removeprefix("/seasons")
    answer = app.get(address, headers={"Accept": "text/html,*/*;q=0.8"}, status=404)
    assert (answer.content_type, answer.headers["Vary"]) == ("text/html", "Accept")
    assert answer.headers["Content-Security-Policy"]
    assert said in words_of(answer.text)
    links = links_of(answer.text)
    assert len(links) == 4  # two to the home page
    for link in links:
        assert app.get(urljoin(f"http://localhost{address}", link)).content_type == "text/html"
    problem = app.get(address, status=404)
    assert (problem.content_type, problem.headers["Vary"]) == ("application/problem+json", "Accept")


@pytest.mark.parametrize(
    "address",
    ["/2023/", "/2023/18/", "/current/last/", "/docs/", "/docs//", "//healthz/", "/f%C3%B6/"],
)
def test_a_slash_at_the_end_redirects_to_the_address_without_it(sample, address):
    answer = sample.get(address, status=301)
    place = urljoin(f"http://localhost{address}", answer.location)
    assert place == f"http://localhost/{address.strip('/')}"


@pytest.mark.parametrize("address", ["/x" + "/" * 6000, "/" + "<" * 6000 + "/"])
def test_an_address_that_nothing_can_have_gives_no_long_header(sample, address):
    """nginx would answer 503 instead."""
    answer = request(sample, PATH_INFO=address)
    assert answer.status_int == 404
    assert all(len(value) < 1000 for value in answer.headers.values())


@pytest.mark.parametrize(
    ("settings", "front"), [({}, ""), ({"base_path": "", "series": "2023"}, "/seasons")]
)
def test_current_leads_to_the_page_of_a_season_and_last_and_next_to_pages_of_races(
    sample_database, settings, front
):
    app = client(sample_database, **settings)
    for address, page in (("", "/2023"), ("/last", "/2023/18"), ("/next", "/2023/19")):
        answer = app.get(f"{front}/current{address}", status=302)
        assert normpath(join(f"{front}/current{address}/..", answer.location)) == front + page
        assert answer.follow().content_type == "text/html"


def test_the_page_of_the_next_race_is_404_if_no_later_race_is_loaded(database):
    app = client(changed(database, "UPDATE results SET RACE(2023/22) WHERE RACE(2023/18)"))
    assert app.get("/current/next", status=404).json["detail"].startswith("No later race is loaded")


def test_the_page_of_a_race_explains_its_letters_as_positions_and_grid_0(sample):
    said = "R: retired, D: disqualified, grid 0: pit lane or no start. "
    assert said in words_of(sample.get("/2023/18").text)
    assert "grid 0" not in sample.get("/2005/1").text
    assert "retired" not in words_of(sample.get("/2023/19").text)


def test_times_on_the_pages_are_in_an_element_that_the_script_changes(sample):
    html = sample.get("/2023/18").text
    start = '<time datetime="2023-10-22T19:00:00Z">Sun 22 Oct 2023, 19:00</time>'
    assert f'{start} <span class="zone">UTC</span>' in html
    assert "<script>" in html


def test_a_round_that_is_missing_between_others_is_404_and_no_page_links_to_it(database):
    app = client(
        changed(
            database,
            "DELETE FROM sessions WHERE RACE(2023/5)",
            "DELETE FROM races WHERE year = 2023 AND round = 5",
        )
    )
    said = app.get("/2023/5", status=404).json["detail"]
    assert said.startswith("Season 2023 has no round 5. ")
    assert {"3", "6"} <= {*links_of(app.get("/2023/4").text)}
    assert {"21"} <= {*links_of(app.get("/2023/22").text)}


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
    for address in ("/", "/2023", "/2023/18", "/2023/19", "/1957/5"):
        html = app.get(address).text
        assert HOSTILE in words_of(html)
        assert html.count("<script") == html.count("</title><script") + 1 == 1
        assert html.count("</title>") == 1


def test_every_season_and_race_of_a_full_dump_has_a_page(full_database):
    app = client(full_database)
    for race in app.get("/ergast/f1/races?limit=2000").json["MRData"]["RaceTable"]["Races"]:
        for address in (f"/{race['season']}", f"/{race['season']}/{race['round']}"):
            assert race["raceName"] in words_of(app.get(address, status=200).text)


@pytest.mark.parametrize("address", ["/2023", "/2023/18"])
def test_a_page_is_made_once_and_is_the_same_with_and_without_gzip(sample_database, address):
    data = Counted.read(str(sample_database))
    app = webtest.TestApp(create_app(Settings(), data))
    first = app.get(address)
    data.queries = 0
    gzip = request(app, PATH_INFO=address, HTTP_ACCEPT_ENCODING="gzip")
    assert gzip.headers["Content-Encoding"] == "gzip"
    assert len(gzip.body) < len(first.body) / 2
    gzip.decode_content()
    assert gzip.body == first.body == app.get(address).body
    assert app.head(address).headers["ETag"] == first.headers["ETag"]
    assert data.queries == 0


def test_a_page_answers_only_the_methods_that_endpoints_answer(sample):
    get, head, options = (
        request(sample, PATH_INFO="/2023", REQUEST_METHOD=name)
        for name in ("GET", "HEAD", "OPTIONS")
    )
    assert (head.status_int, head.body, head.content_length) == (200, b"", len(get.body))
    assert (options.status_int, options.body, options.headers["Allow"]) == (
        200,
        b"",
        "GET, HEAD, OPTIONS",
    )
    assert request(sample, PATH_INFO="/2023", REQUEST_METHOD="POST").status_int == 405


@pytest.mark.parametrize("address", ["/2023", "/2023/18", "/2023/19"])
def test_each_table_has_a_caption_and_each_row_and_column_a_heading(sample, address):
    html = sample.get(address).text
    for table in re.findall("<table>.*?</table>", html, re.S):
        assert table.count("<caption>") == 1
        rows = re.findall("<tr>(.*?)</tr>", table, re.S)
        assert "<td" not in rows[0] and rows[0].count('scope="col"') == rows[0].count("<th")
        assert all(row.startswith('<th scope="row">') for row in rows[1:])

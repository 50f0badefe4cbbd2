"""racedata.service.pages.find and names: names by any part of them, the best matches first."""

import re
from html import unescape
from posixpath import join, normpath
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.answers import asking, client, client_after, links_of, request, words_of
from support.loads import changed, select

from racedata.formats import printable
from racedata.service.pages.find import LONGEST
from racedata.service.pages.names import MOST_REPLACED, SHOWN, AllNames, plain


@pytest.fixture(scope="module")
def names(sample_database):
    return AllNames(asking(sample_database))


@pytest.fixture(scope="module")
def full_names(full_database):
    return AllNames(asking(full_database))


def texts(names, query, kind):
    """The names that are shown of a kind."""
    found, _ = names.find(plain(query).split())
    return [name.text for each in found if each.kind == kind for name in each.names]


def races(names, query):
    """The races that are found, with their seasons."""
    _, found = names.find(plain(query).split())
    return {name.text: [race["season"] for race in editions] for name, editions in found}


@pytest.mark.parametrize(
    ("query", "kind", "text"),
    [
        ("alonso", "Drivers", "Fernando Alonso"),
        ("ALONSO", "Drivers", "Fernando Alonso"),
        ("fern alo", "Drivers", "Fernando Alonso"),
        ("perez", "Drivers", "Sergio Pérez"),
        ("Pérez", "Drivers", "Sergio Pérez"),
        ("sergio pe", "Drivers", "Sergio Pérez"),
        ("checo", "Drivers", "Sergio Pérez"),
        ("44", "Drivers", "Lewis Hamilton"),
        ("onso", "Drivers", "Fernando Alonso"),
        ("VER", "Drivers", "Max Verstappen"),
        ("max_verstappen", "Drivers", "Max Verstappen"),
        ("lewis-evans", "Drivers", "Stuart Lewis-Evans"),
        ("red b", "Constructors", "Red Bull"),
        ("monza", "Circuits", "Autodromo Nazionale di Monza"),
        ("nurburg", "Circuits", "Nürburgring"),
        ("sao paulo", "Circuits", "Autódromo José Carlos Pace"),
        ("2023", "Seasons", "Season 2023"),
        ("season 2023", "Seasons", "Season 2023"),
        ("alonso 2023", "Drivers", "Fernando Alonso"),
    ],
)
def test_any_part_of_a_name_finds_it_without_accents_and_in_any_case(names, query, kind, text):
    assert texts(names, query, kind)[0] == text


@pytest.mark.parametrize(
    ("query", "first"),
    [
        # a word of the name, those with more starts first; the beginning of the surname; of a word
        ("ham", ["Lewis Hamilton", "Duncan Hamilton", "David Hampshire", "Graham Hill"]),
        ("hill", ["Graham Hill", "Damon Hill", "Phil Hill"]),
        ("lewis", ["Lewis Hamilton", "Stuart Lewis-Evans", "Jackie Lewis"]),
        ("max", ["Max Verstappen", "Max Chilton", "Massimiliano Papis"]),
        ("schumacher", ["Michael Schumacher", "Ralf Schumacher", "Mick Schumacher"]),
    ],
)
def test_the_best_matches_are_first(full_names, query, first):
    found = texts(full_names, query, "Drivers")
    assert [name for name in found if name in first] == first
    assert found[0] == first[0]


def test_the_kind_with_the_best_match_is_first(full_names):
    for query, kind in {
        "ferrari": "Constructors",
        "hamilton": "Drivers",
        "monza": "Circuits",
        "1996": "Seasons",
    }.items():
        assert full_names.find([query])[0][0].kind == kind


def test_races_are_found_by_name_or_place_and_a_year_is_that_of_the_race(names):
    assert races(names, "mexico city") == {"Mexico City Grand Prix": ["2023", "2021"]}
    assert races(names, "united states 2023") == {"United States Grand Prix": ["2023"]}
    assert races(names, "austin 2023") == {"United States Grand Prix": ["2023"]}
    assert races(names, "usa gp 2023").keys() == {
        "Las Vegas Grand Prix",
        "Miami Grand Prix",
        "United States Grand Prix",
    }
    assert races(names, "monaco")["Monaco Grand Prix"] == ["2023", "2021", "2005", "1997", "1957"]
    assert len(races(names, "2023")) == 22
    assert races(names, "1999") == {}  # not loaded, and in no name


@pytest.mark.parametrize("query", ["", "  ", "!?", "zzzz", "alonso zzzz", "%", "_", "'", "x=1"])
def test_nothing_is_found_by_signs_or_by_words_that_no_name_has(names, query):
    assert names.find(plain(query).split()) == ([], [])


def test_only_the_first_of_many_are_shown_and_the_page_says_how_many_more_there_are(full_names):
    (drivers, *_), _ = full_names.find(["a"])
    assert len(drivers.names) == SHOWN < drivers.total


def test_every_name_is_found_by_itself(names):
    for kind, listed in names.kinds.items():
        for name in listed:
            found, _ = names.find(plain(name.text).split())
            (same,) = [each for each in found if each.kind == kind]
            assert same.total > SHOWN or name in same.names


def test_a_page_that_finds_nothing_or_is_not_asked_says_what_to_do(sample):
    assert "Nothing here has this in its name." in words_of(sample.get("/find?q=zzzz").text)
    for address in ("/find", "/find?q=", "/find?q=%20", "/find?other=1"):
        page = sample.get(address, status=200)
        assert "Write a part of a name into the field" in words_of(page.text)
    examples = [link for link in links_of(page.text) if "q=" in link]
    assert len(examples) == 3
    for link in examples:
        sample.get(normpath(join("/", link)), status=200)


def test_the_links_of_what_is_found_lead_to_pages(sample):
    for query in ("alonso", "red", "americas", "2023", "austin"):
        _, _, found = sample.get(f"/find?q={query}").text.partition("<h1>")
        links = links_of(found)
        assert links
        for link in links:
            assert sample.get(normpath(join("/", link)), status=200).content_type == "text/html"


HOSTILE = [
    "</title><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' OR 1=1; DROP TABLE drivers; --",
    "{{ 7 * 7 }}",
    "\x00\x1b\u202e\ufeff",
    "a" * 5000,
    "é" * 3000,
    "\ufdfa" * 100,  # each becomes 18 letters
    "../../etc/passwd",
]


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_query_is_only_text_in_the_page(sample, query):
    page = sample.get(f"/find?q={quote_plus(query)}", status=200)
    assert page.text.count("<script") == 1
    assert page.text.count("</title>") == 1
    assert "<img" not in page.text
    assert len(page.text) < 40_000
    (shown,) = re.findall('name="q" value="([^"]*)"', page.text)
    assert unescape(shown) == " ".join(printable(query[:LONGEST]).split())


@pytest.mark.parametrize("query", ["q=%ff", "q=%", "q=a&q=b", "q", "&&", "q=%00", "limit=5000&q=a"])
def test_a_malformed_query_is_answered_too(sample, query):
    answer = request(sample, PATH_INFO="/find", QUERY_STRING=query)
    assert answer.status_int == 200
    assert answer.content_type == "text/html"


@given(st.text(max_size=150))
def test_any_text_is_answered(sample, query):
    page = sample.get(f"/find?q={quote(query.encode('utf-8', 'surrogatepass'))}", status=200)
    assert "<h1>Find" in page.text


def test_words_are_without_accents_and_signs():
    assert plain("  Élie O'Connor-Ångström 2023! ") == "elie o connor angstrom 2023"


def test_the_field_is_on_every_page_and_keeps_what_was_asked(sample):
    for address in ("/", "/docs", "/2023", "/2023/18", "/drivers/alonso", "/circuits/monza"):
        html = sample.get(address).text
        (action,) = re.findall('<form [^>]*action="([^"]+)"', html)
        assert normpath(join(address.rpartition("/")[0] + "/", action)) == "/find"
    assert 'value="alonso &amp; co"' in sample.get("/find?q=alonso+%26+co").text


def test_if_nothing_has_all_words_the_names_that_have_one_are_found(sample, names):
    query = "Alonso, or McLaren at Monza 2023?"
    found = names.find_any(plain(query).split())
    page = words_of(sample.get("/find", {"q": query}).text)
    assert "Nothing here has all these words in its name. These names have one" in page
    assert [each.kind for each in found] == ["Drivers", "Constructors", "Circuits", "Seasons"]
    assert [name.text for name in found[0].names] == ["Fernando Alonso"]
    assert [name.text for name in found[2].names] == ["Autodromo Nazionale di Monza"]
    assert names.find_any(["alons"]) == []  # only a part of a word


def test_of_two_team_mates_the_page_says_how_often_each_was_ahead(sample):
    page = sample.get("/find?q=hamilton+vs+russell").text
    link = '<a href="./drivers/hamilton#mates">All team mates of Lewis Hamilton</a>'
    assert link in page
    assert "was ahead of George Russell, and how often behind Year Races Qua" in words_of(page)
    rows = re.findall(r'/2023">2023</a></th>(<td>.*</td>)', page)
    assert rows[0] in sample.get("/drivers/hamilton").text
    other = sample.get("/find?q=russell+hamilton").text
    assert "was ahead of Lewis Hamilton, and how often behind" in words_of(other)
    assert "Nothing here" not in words_of(page)
    assert "These names have one of the words: Drivers George Russell" in words_of(page)
    sample.get("/drivers/hamilton", status=200).mustcontain('id="mates"')
    for query in ("hamilton+vs+alonso", "hamilton+xyzzy", "hamilton"):
        assert "Team mates" not in sample.get(f"/find?q={query}").text


@pytest.mark.parametrize(
    "query", ["champion 1976", "1976", "hunt 1976", "zzzz 1976", "Who won the title in 1976?"]
)
def test_the_season_of_a_year_in_the_query_is_found_with_its_champions(full_database, query):
    html = client(full_database).get("/find", {"q": query}).text
    (season,) = re.findall('<li><a href="./1976">.*?</li>', html, re.S)
    assert words_of(season) == "Season 1976 Champions: James Hunt (drivers), Ferrari (constructors)"
    assert {"./drivers/hunt", "./constructors/ferrari"} <= {*links_of(season)}


def test_names_are_found_by_the_ids_of_sources_and_circuits_by_their_initials(full_names):
    assert texts(full_names, "racing bulls", "Constructors") == ["RB F1 Team"]
    assert texts(full_names, "cota", "Circuits") == ["Circuit of the Americas"]


@pytest.mark.parametrize(
    ("query", "similar", "link"),
    [
        ("verstapen", {"verstapen": "verstappen"}, "./drivers/max_verstappen"),
        ("hulkenburg 2023", {"hulkenburg": "hulkenberg"}, "./drivers/hulkenberg"),
        ("silvarstone", {"silvarstone": "silverstone"}, "./circuits/silverstone"),
        (
            "hamiltn vs russel",
            {"hamiltn": "hamilton", "russel": "russell"},
            "./drivers/hamilton#mates",
        ),
        ("zzzzzz alonzo", {"alonzo": "alonso"}, "./drivers/alonso"),
    ],
)
def test_a_misspelt_word_is_replaced_with_a_similar_one_and_the_page_says_so(
    sample, names, query, similar, link
):
    assert names.similar(query.split()) == similar
    html = sample.get("/find", {"q": query}).text
    assert link in links_of(html)
    for word, shown in similar.items():
        said = f"Nothing here has “{word}” in its name. Shown is “{shown}”."
        assert said in words_of(html)


def test_few_words_are_replaced_and_only_if_nothing_is_found(sample, names):
    assert names.similar(["alonso", "xyz", "qqqqqqqq"]) == {}
    assert len(names.similar(["alonzo", "russelll", "hamiltonn", "verstapen"])) == MOST_REPLACED
    assert "Shown is" not in words_of(sample.get("/find?q=onso").text)


def test_of_a_driver_and_a_circuit_the_page_has_the_results_there(full_database):
    app = client(full_database)
    html = app.get("/find?q=Senna+in+Monaco").text
    assert "Ayrton Senna at Circuit de Monaco" in words_of(html)
    assert "Nothing here" not in words_of(html)
    table = html.partition("<table")[2].partition("</table")[0]
    races = app.get("/ergast/f1/drivers/senna/circuits/monaco/results.json").json["MRData"]
    expected = [
        (race["season"], result["grid"], result["positionText"])
        for race in reversed(races["RaceTable"]["Races"])
        for result in race["Results"]
    ]
    rows = [words_of(row).split() for row in re.findall("<tr><th scope=.row.*?</tr>", table)]
    assert [(row[0], *row[-2:]) for row in rows] == expected
    assert len(expected) == 10
    assert " at " not in words_of(app.get("/find?q=senna+indianapolis").text.partition("<h3>")[0])


def test_of_a_driver_a_circuit_and_a_year_the_page_has_the_result_of_that_race(full_database):
    def found(query):
        html = client(full_database).get("/find", {"q": query}).text
        return html, re.findall('<th scope="row">([0-9]{4}) ', html)

    html, seasons = found("hamilton silverstone 2021")
    assert "Lewis Hamilton at Silverstone Circuit in 2021" in words_of(html)
    assert seasons == ["2021"]
    html, seasons = found("leclerc monaco 2024")  # also the country of the driver
    assert "Charles Leclerc at Circuit de Monaco in 2024" in words_of(html)
    assert seasons == ["2024"]
    html, seasons = found("senna monza 2021")  # when he did not race: all his races there
    assert "Ayrton Senna at Autodromo Nazionale di Monza The races" in words_of(html)
    assert seasons == [str(year) for year in range(1993, 1984, -1)]


@pytest.mark.parametrize(
    ("driver", "heading"),
    [
        ("alonso", "Fernando Alonso in 2025"),
        ("orey", "Fritz d'Orey in 1959"),
        # circuits have their names
        ("piquet", "Nelson Piquet in 1991"),
        ("gilles_villeneuve", "Gilles Villeneuve in 1982"),
    ],
)
def test_the_page_of_a_driver_leads_to_the_results_of_the_latest_season(
    dump_database, driver, heading
):
    app = client(dump_database)
    (link,) = re.findall('href="../(find[^"]*)"', app.get(f"/drivers/{driver}").text)
    assert heading in words_of(app.get(f"/{link}").text)


def test_ids_with_capitals_are_found_as_others(database):
    changed(
        database,
        "UPDATE drivers SET driverRef = 'Alonso' WHERE driverRef = 'alonso'",
        "UPDATE circuits SET circuitRef = 'Americas' WHERE circuitRef = 'americas'",
    )
    app = client(database)
    assert "Team mates" in words_of(app.get("/find?q=alonso+stroll").text)
    assert "at Circuit of the Americas" in words_of(app.get("/find?q=alonso+americas").text)


@pytest.mark.parametrize(
    ("query", "heading", "address"),
    [
        ("hamilton ferrari", "Lewis Hamilton for Ferrari", "drivers/hamilton/constructors/ferrari"),
        ("alonso 2010", "Fernando Alonso in 2010", "2010/drivers/alonso"),
        ("albon williams", "Alexander Albon for Williams", "drivers/albon/constructors/williams"),
        ("senna lotus", "Ayrton Senna for Team Lotus", "drivers/senna/constructors/team_lotus"),
        # not Bill Aston, who drove in 1952
        (
            "alonso aston martin",
            "Fernando Alonso for Aston Martin",
            "drivers/alonso/constructors/aston_martin",
        ),
    ],
)
def test_of_a_driver_and_a_constructor_or_a_year_the_page_has_the_results(
    full_database, query, heading, address
):
    app = client(full_database)
    html = app.get("/find", {"q": query}).text
    assert heading in words_of(html)
    answer = app.get(f"/ergast/f1/{address}/results.json?limit=2000").json["MRData"]
    races = [f"./{race['season']}/{race['round']}" for race in answer["RaceTable"]["Races"]]
    table = html.partition("<table")[2].partition("</table")[0]
    assert [link for link in links_of(table) if link in races] == races[::-1]
    assert len(races) > 10
    assert "Fernando Alonso in" not in app.get("/find?q=alonso+hamilton+2010").text


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("redbull", "Red Bull"),
        ("Red Bull Racing", "Red Bull"),
        ("Great Britain", "McLaren"),
        ("Deutschland", "Mercedes"),
    ],
)
def test_constructors_are_found_by_one_word_by_most_words_and_by_country(full_names, query, first):
    words = plain(query).split()
    found = full_names.find(words)[0] or full_names.find_any(words)
    names = next(each.names for each in found if each.kind == "Constructors")
    assert names[0].text == first


@pytest.mark.parametrize("query", ["most", "grid", "first", "kalender"])
def test_a_word_that_is_only_a_little_like_a_name_is_not_replaced(full_database, query):
    page = client(full_database).get(f"/find?q={query}").text
    assert "Shown is" not in page
    assert {"./drivers", "./records", "./seasons", "./current/last"} & {
        *links_of(page.partition("<main")[2])
    }


def test_of_results_at_a_circuit_what_is_unknown_is_left_out(database):
    unknown = "UPDATE results SET grid = NULL, positionText = NULL WHERE RACE(2023/18)"
    app = client_after(database, unknown, "UPDATE results SET grid = 0 WHERE RACE(1957/5)")
    assert "2023 United States Aston Martin These" in words_of(
        app.get("/find?q=alonso+americas").text
    )
    assert "1957 British Vanwall – 1 " in words_of(app.get("/find?q=brooks+aintree").text)  # noqa: RUF001


def test_words_that_no_name_has_are_not_hidden_by_the_season_that_was_found(sample):
    page = words_of(sample.get("/find?q=zzzz+2023").text)
    assert "Nothing here has all these words in its name. These names have one" in page
    assert "Nothing here" not in words_of(sample.get("/find?q=champion+2023").text)


def test_the_races_of_a_year_are_in_the_order_of_its_calendar(full_database):
    app = client(full_database)
    html = app.get("/find?q=2024").text
    races = app.get("/ergast/f1/2024.json").json["MRData"]["RaceTable"]["Races"]
    assert re.findall('href="./2024/([0-9]+)"', html) == [race["round"] for race in races]
    assert "Australian Grand Prix 2024 Sun 24 Mar 2024 , Albert Park Grand" in words_of(html)
    assert "more races" not in html


def test_a_year_selects_the_season_of_two_team_mates(full_database):
    def seasons(query):
        html = client(full_database).get(f"/find?q={query}").text
        return re.findall('<th scope="row"><a href="./([0-9]+)"', html)

    assert seasons("hamilton+russell+2023") == ["2023"]
    assert seasons("hamilton+russell") == ["2024", "2023", "2022"]
    assert seasons("hamilton+russell+1990") == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("points williams 1996", "Williams in 1996 : 1st in the championship, 175 points. "),
        # although another Rosberg has more starts
        ("rosberg 1982", "Keke Rosberg in 1982 : 1st in the championship, 44 points. "),
        ("schumacher 1997", "Schumacher in 1997 : disqualified from the championship, 78 points. "),
    ],
)
def test_the_place_in_the_championship_of_a_year_is_said(full_database, query, said):
    assert said in words_of(client(full_database).get("/find", {"q": query}).text)


def test_the_place_in_a_championship_that_is_not_over_is_the_one_so_far(database):
    standings = "driver_standings WHERE RACE(2023/22)"
    app = client_after(database, f"DELETE FROM {standings}")
    said = "Max Verstappen in 2023 : 1st in the championship, 466 points so far. "
    assert said in words_of(app.get("/find?q=verstappen+2023").text)
    app = client_after(
        database, "UPDATE driver_standings SET points = NULL WHERE DRIVER(max_verstappen)"
    )
    assert " 1st in the championship so far. " in words_of(app.get("/find?q=verstappen+2023").text)


@pytest.mark.parametrize(
    ("query", "link"),
    [
        ("who won monaco 1996", "./1996/6"),
        ("how many wins does hamilton have", "./drivers/hamilton#wins"),
        ("what is the fastest lap in monza", "./circuits/monza"),
        ("who drove for minardi", "./constructors/minardi"),
        ("driver number 44", "./drivers/hamilton"),
        ("Österreichring", "./circuits/red_bull_ring"),
    ],
)
def test_a_question_or_a_name_of_the_time_leads_to_the_page_that_answers(
    full_database, query, link
):
    html = client(full_database).get("/find", {"q": query}).text
    links = links_of(html.partition("<main")[2])
    assert link in links and "./drivers" not in links
    assert "Nothing here" not in words_of(html)


@pytest.mark.parametrize(
    "query", ["Finland", "finnish", "drivers from Finland", "Finland drivers", "finn"]
)
def test_drivers_are_found_by_their_nationality_or_its_country(full_database, query):
    html = client(full_database).get("/find", {"q": query}).text
    drivers = re.findall('href="./drivers/([a-z_]+)"', html)
    expected = select(full_database, "SELECT driverRef FROM drivers WHERE nationality = 'Finnish'")
    assert {*drivers} == {driver for (driver,) in expected}
    assert drivers[0] == "raikkonen"  # with the most starts


@pytest.mark.parametrize(
    ("query", "race"),
    [
        ("Gran Premio de España", "Spanish Grand Prix"),
        ("Großer Preis von Deutschland", "German Grand Prix"),
        ("GP Belgique", "Belgian Grand Prix"),
        ("Ungarn", "Hungarian Grand Prix"),
    ],
)
def test_races_are_found_by_their_names_in_other_languages(full_database, query, race):
    assert f"{race} 20" in words_of(client(full_database).get("/find", {"q": query}).text)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("red bull racing", "Red Bull"),
        ("Sir Lewis Hamilton", "Lewis Hamilton"),
        ("verstappen stats", "Max Verstappen"),
    ],
)
def test_words_that_a_name_does_not_need_are_left_out(full_database, query, name):
    page = words_of(client(full_database).get("/find", {"q": query}).text)
    assert re.search(rf" (Drivers|Constructors) {name} ", page)
    assert "Nothing here" not in page


def test_the_beginning_of_a_nationality_is_not_found_by_a_few_letters(full_names):
    assert "Fernando Alonso" not in texts(full_names, "spa", "Drivers")
    assert texts(full_names, "spanish", "Drivers")[0] == "Fernando Alonso"


def test_a_part_of_a_word_is_not_found_if_the_whole_word_is_a_name(full_names):
    assert texts(full_names, "spa", "Circuits") == ["Circuit de Spa-Francorchamps"]
    assert "Jarama" in texts(full_names, "spain", "Circuits")
    assert next(iter(races(full_names, "spa 1998"))) == "Belgian Grand Prix"


@pytest.mark.parametrize(
    ("query", "link"),
    [
        ("Senna poles", "./drivers/senna#poles"),
        ("wins of Ferrari", "./constructors/ferrari#wins"),
        ("alonso teammates 2007", "./drivers/alonso#mates"),
        ("career of jim clark", "./drivers/clark#seasons"),
        ("ferrari drivers", "./constructors/ferrari#seasons"),
        ("next race", "./"),
        ("calendar", "./current#races"),
        ("standings", "./current#championships"),
        ("champions", "./seasons"),
        ("most wins in a row", "./records#drivers-most-wins-in-a-row"),
        ("youngest winner", "./records#drivers-youngest-winners"),
        ("most sprint wins", "./records#drivers-most-sprint-wins"),
        ("most poles in a season", "./records#drivers-most-poles-in-a-season"),
        ("closest finish", "./records#races-closest-finishes"),
        ("fastest pit stop", "./current/last#stops"),
        ("who leads", "./current#championships"),
        ("what changed", "./changes"),
        ("help", "./docs"),
        ("today", "./"),
        ("records", "./records"),
        ("teams", "./constructors"),
        ("qualifying", "./current/last#qualifying"),
        ("fastest lap", "./current/last#fastest"),
        ("results", "./current/last"),
        ("f1 standings", "./current#championships"),
        ("monaco winners", "./circuits/monaco#winners"),
        ("qualifying 2023 monaco", "./2023/6#qualifying"),
        ("sprint qualifying 2024 austin", "./2024/19#sprintqualifying"),
        ("pit stops 2023 singapore", "./2023/15#stops"),
        ("Fastest lap, Monza 2021", "./2021/14#fastest"),
        ("pole position monaco 2023", "./2023/6#grid"),
        ("constructor standings 2019", "./2019#championships"),
        ("calendar 2023", "./2023#races"),
        ("wins 2023", "./2023#wins"),
        ("fastest pit stop 2023", "./2023#stops"),
        ("drivers 2023", "./2023#championships"),
        ("teams 2024", "./2024#championships"),
        ("abu dhabi 2021 result", "./2021/22#race"),
        ("most wins in a season", "./records#drivers-most-wins-in-a-season"),
    ],
)
def test_words_for_a_page_or_a_part_of_one_lead_there(full_database, query, link):
    app = client(full_database)
    html = app.get("/find", {"q": query}).text
    links = links_of(html.partition("<main")[2])
    assert links[0] == link or (link in links and "#" in link)
    page, _, part = link.removeprefix(".").partition("#")
    answer = app.get(page)
    if answer.status_code == 302:
        answer = answer.follow()
    assert not part or f'id="{part}"' in answer.text
    assert "Nothing here" not in words_of(html)


@pytest.mark.parametrize("word", ["weather", "tyres", "wet race", "safety car"])
def test_a_search_for_what_no_source_has_says_so(sample, word):
    page = words_of(sample.get("/find", {"q": word}).text)
    assert "No source here has telemetry, live timing, tyres, weather, team radio" in page
    assert "Shown is" not in page and "Nothing here" not in page


@pytest.mark.parametrize("year", ["1949", "2027", "19999"])
def test_a_year_that_is_not_loaded_is_not_replaced(full_database, year):
    page = words_of(client(full_database).get(f"/find?q={year}").text)
    assert "Nothing here has this in its name." in page and "Shown is" not in page


def test_the_races_of_a_year_and_a_name_come_before_other_names(full_database):
    html = client(full_database).get("/find?q=monaco+1996").text
    assert re.findall("<h2>([A-Z][a-z]+)", html)[:2] == ["Races", "Circuits"]
    html = client(full_database).get("/find?q=monaco").text
    assert re.findall("<h2>([A-Z][a-z]+)", html)[0] == "Circuits"


def links_to_races(app, query):
    """The links to races that a search shows."""
    return re.findall(r'href="./([0-9]+/[0-9]+[^"]*)"', app.get("/find", {"q": query}).text)


@pytest.mark.parametrize("query", ["sprint 2024", "2024 sprints"])
def test_the_sprints_of_a_year_are_the_races_that_have_one(full_database, query):
    app = client(full_database)
    answer = app.get("/ergast/f1/2024/sprint.json?limit=2000").json["MRData"]
    expected = [f"2024/{race['round']}#sprint" for race in answer["RaceTable"]["Races"]]
    assert links_to_races(app, query) == expected
    assert len(expected) == 6


def test_where_no_race_has_a_sprint_the_page_says_so(full_database):
    app = client(full_database)
    said = "No race that was found has a sprint."
    for query in ("sprint 2019", "sprint monaco 2023"):
        assert links_to_races(app, query) == []
        assert said in words_of(app.get("/find", {"q": query}).text)
    assert links_to_races(app, "sprint monza") == ["2021/14#sprint"]
    assert said not in words_of(app.get("/find?q=sprint+monza").text)


def test_the_races_of_a_year_are_left_out_if_another_part_of_its_page_was_asked_for(full_database):
    app = client(full_database)
    assert links_to_races(app, "constructor standings 2019") == []
    assert len(links_to_races(app, "practice 2019")) == 21


@pytest.mark.parametrize(
    ("query", "headings"),
    [
        ("pit stops 2023", ["Seasons: pit stops", "Races: pit stops"]),
        ("senna poles", ["Drivers: poles"]),
        ("qualifying monaco 2023", ["Races: qualifying", "Circuits", "Drivers", "Seasons"]),
        ("monaco 2023", ["Races", "Circuits", "Drivers", "Seasons"]),
        ("british", ["Constructors", "Drivers", "Races"]),
        ("british drivers", ["Drivers", "Constructors: seasons", "Races"]),
    ],
)
def test_headings_say_to_which_part_the_links_lead(full_database, query, headings):
    html = client(full_database).get("/find", {"q": query}).text
    assert re.findall("<h2>(.*?)</h2>", html) == headings


def test_a_query_with_control_characters_is_shown_without_them(sample):
    body = sample.get("/find?q=a%00lon%01so").body
    assert not {*range(32)} - {*b"\n"} & {*body}
    assert b'value="a lon so"' in body

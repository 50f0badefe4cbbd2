"""racedata.service.pages.differing_values: what sources disagree about, and what changed."""

import re
from collections import Counter

from support.answers import client, client_after, compressed_size, links_of, words_of
from support.loads import select

from racedata.service.words import kind_in_words

CHANGE = """INSERT INTO changes (revision, changedAt, kind, key, columnName, oldValue, value,
        source, reason, year, round, raceName, driverId)
    SELECT {revision}, '2026-11-20T10:00:00Z', 'results', '', 'positionText', '7', '6', 'f1db',
        'a decision', 2023, 18, 'United States Grand Prix', driverId FROM drivers {which}"""


def test_each_open_discrepancy_is_there_with_what_sources_say_and_what_would_settle_it(two_sources):
    html = client(two_sources).get("/discrepancies").text
    page = words_of(html)
    assert "One of the two is wrong, or it is another person." in page
    assert " Drivers, date of birth: 1 One of the two " in page
    assert "Gould sample 1918-09-20, f1db 1921-09-20" in page
    assert "./drivers/gould" in links_of(html)
    ((total, open),) = select(
        two_sources, "SELECT count(*), sum(state = 'open') FROM discrepancies"
    )
    assert f"Sources disagree about {total} facts. {open} of them are open" in page
    assert shown_in(html) == open


def shown_in(html):
    """How many discrepancies a page shows."""
    tables = re.findall('<table class="doubts">.*?</table>', html, re.S)
    return sum(table.count('<tr><th scope="row">') for table in tables)


def test_discrepancies_are_counted_by_kind_and_by_season_which_has_a_page(two_sources):
    app = client(two_sources)
    html = app.get("/discrepancies").text
    states = "sum(state = 'open'), sum(state = 'explained'), sum(state = 'resolved')"
    for kind, *numbers in select(
        two_sources, f"SELECT kind, {states} FROM discrepancies GROUP BY kind"
    ):
        cells = "".join(f"<td>{number or ''}</td>" for number in numbers)
        assert f'<tr><th scope="row">{kind_in_words(kind).capitalize()}</th>{cells}</tr>' in html
    of_seasons = "WHERE state = 'open' AND year NOT NULL GROUP BY year"
    for year, number in select(
        two_sources, f"SELECT year, count(*) FROM discrepancies {of_seasons}"
    ):
        assert f'<a href="./{year}/discrepancies">{year}</a>: {number}<' in html
        of_season = app.get(f"/{year}/discrepancies").text
        assert f"<h1>Discrepancies of {year}</h1>" in of_season
        assert f"/ergast/f1/{year}/discrepancies.json" in links_of(of_season)
        assert shown_in(of_season) == number
    app.get("/1949/discrepancies", status=404)


def test_without_a_discrepancy_or_change_the_pages_say_so_and_no_page_links_to_them(sample):
    page = words_of(sample.get("/discrepancies").text)
    assert "Sources disagree about 0 facts." in page and "most doubtful" not in page
    assert "Nothing has changed since the first load." in words_of(sample.get("/changes").text)
    for address in ("/", "/data", "/2023"):
        links = {*links_of(sample.get(address).text)}
        assert not links & {"changes", "discrepancies"}


def test_only_the_latest_changes_are_there_with_their_first_values(database):
    changes = [CHANGE.format(revision=revision, which="LIMIT 25") for revision in range(2, 42)]
    html = client_after(database, *changes).get("/changes").text
    assert html.count("<summary>") == 30
    assert html.count("and 5 other values") == 30
    assert compressed_size(database, "/changes") < 15_000


def test_corrected_values_are_counted_by_race_and_by_season_with_links_to_them(sample):
    records = sample.get("/ergast/f1/corrections.json?limit=2000").json["MRData"][
        "CorrectionTable"
    ]["Corrections"]
    of_races = [(each["season"], each["round"]) for each in records if "round" in each]
    page = sample.get("/discrepancies").text.partition('id="corrected"')[2]
    for season, number in Counter(season for season, _ in of_races).items():
        assert f'href="./{season}/discrepancies#corrected">{season}</a>: {number}<' in page
        of_season = sample.get(f"/{season}/discrepancies").text.partition('id="corrected"')[2]
        for (year, round), number in Counter(of_races).items():
            if year == season:
                assert re.search(f'href="../{year}/{round}#notes">[^<]+</a>: {number}<', of_season)
    sample.get("/2023", status=200).mustcontain('"2023/discrepancies#corrected">6 values corrected')
    sample.get("/1997", status=200).mustcontain("0 values corrected")

"""racedata.service.pages.home: the page at `/`, and that what it links to has data."""

import re
from html import unescape

import pytest
import webtest
from support import EMPTY
from support.answers import client, links_of, words_of
from support.loads import changed

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


def page_of(path, *statements):
    return client(changed(path, *statements) if statements else path).get("/").text


@pytest.mark.parametrize(
    ("time", "start"),
    [("'20:00:00'", "2023-10-29T20:00:00Z"), ("NULL", "2023-10-29")],
    ids=["time", "date"],
)
def test_the_heading_of_the_next_race_has_its_start_so_that_the_script_can_change_it(
    database, time, start
):
    html = page_of(database, f"UPDATE races SET time = {time} WHERE RACE(2023/19)")
    assert f'<span id="next" data-start="{start}">Next:</span> round 19 of 2023' in html


NEXT, LAST = "RACE(2023/19)", "RACE(2023/18)"


def test_the_page_has_the_later_weekends_for_the_script(sample):
    html = sample.get("/").text
    (after,) = re.findall('<span id="after">(.*?)</span>', html, re.S)
    assert words_of(after).startswith("Next race: São Paulo Grand Prix")
    later = re.findall('<template class="weekend" data-start="(.*?)">(.*?)</template>', html, re.S)
    assert [start for start, _ in later] == [
        *("2023-11-05T17:00:00Z", "2023-11-19T06:00:00Z", "2023-11-26T13:00:00Z")
    ]
    for start, weekend in later:
        assert f'<span id="next" data-start="{start}">' in weekend
        assert weekend.count("<tr data-start=") == 5


MOVED = "UPDATE {} SET RACE(2023/19) WHERE RACE(2023/18)"
IN_ORDER = ("practice", "qualifying", "sprint_qualifying", "sprint_results")


@pytest.mark.parametrize(
    ("kinds", "label", "anchor", "first"),
    [
        (0, "Race", "18#race", "1 Max Verstappen * Red Bull 1:35:21.362 2 Lando"),
        (1, "Practice 1", "19#practice", "1 Max Verstappen Red Bull 1:35.912 2 Charles"),
        (2, "Qualifying", "19#qualifying", "1 Charles Leclerc Ferrari 1:34.723 2 Lando"),
        (3, "Sprint Shootout", "19#sprintqualifying", "1 Max Verstappen Red Bull 1:34.538 2 Ch"),
        (4, "Sprint", "19#sprint", "1 Max Verstappen Red Bull 31:30.849 2 Lewis"),
    ],
)
def test_the_page_has_the_first_three_of_the_newest_session_and_a_link_to_the_others(
    database, kinds, label, anchor, first
):
    """The weekend of a sprint, from before its first practice to the sprint."""
    html = page_of(
        database,
        f"DELETE FROM sessions WHERE {NEXT}",
        f"UPDATE sessions SET raceId = (SELECT raceId FROM races WHERE {NEXT}) WHERE {LAST}",
        *(MOVED.format(kind) for kind in IN_ORDER[:kinds]),
    )
    newest = html[html.index('<div id="newest"') : html.index("Championships</h2>")]
    race = "United States" if "18#" in anchor else "Mexico City"
    assert f"<h2>{race} Grand Prix: {label.lower()}</h2>" in newest
    assert f'<a href="./2023/{anchor}">Whole table: {label.lower()}</a>' in newest
    assert ("the starting grid, before penalties" in newest) == (label == "Qualifying")
    assert f"Pos Driver Time {first}" in words_of(newest)
    assert newest.count('<th scope="row">') == 3
    weekend = html[html.index('<div class="beside" id="weekend">') : html.index('id="newest"')]
    assert weekend.count('href="./2023/19#') == kinds


QUALIFYING = [*(MOVED.format(table) for table in ("practice", "qualifying"))]
QUALIFYING += [f"{MOVED.format('origins')} AND kind = 'qualifying'"]


@pytest.mark.parametrize(
    ("moved", "condition", "said"),
    [
        ([], f"{LAST} AND kind = 'results'", "United States Grand Prix: race"),
        (QUALIFYING, f"{NEXT} AND kind = 'qualifying'", "Mexico City Grand Prix: qualifying"),
    ],
)
def test_the_page_marks_provisional_records_of_the_newest_session(database, moved, condition, said):
    provisional = f"""UPDATE sources SET isProvisional = 1 WHERE sourceId IN
        (SELECT sourceId FROM origins WHERE {condition})"""
    assert "Provisional" not in page_of(database, *moved)
    assert f"{said} Provisional The first three" in words_of(page_of(database, provisional))


CHANGE = """INSERT INTO changes (revision, changedAt, kind, key, columnName, oldValue, value,
        source, reason, year, round, raceName, driverId)
    SELECT 2, '2026-11-20T10:00:00Z', 'results', '', 'positionText', '7', '6', 'f1db', '', 2023,
        18, 'United States Grand Prix', driverId FROM drivers WHERE driverRef = 'gasly'"""


def test_the_page_says_what_changed_lately_with_links_to_races(database):
    assert "What changed lately" not in page_of(database)
    html = page_of(database, CHANGE)
    said = "United States Grand Prix 2023: Pierre Gasly 7th → 6th (f1db, 20 November)"
    assert f'<li><a href="2023/18">{said}</a></li>' in html
    # the race is not in the calendar any more
    assert f"<li>{said}</li>" in page_of(database, "UPDATE changes SET round = NULL")

"""racedata.service.pages.race, season, races, notes: the pages of a race and a season, what they
share, and what marks their rows.
"""

import re
from itertools import pairwise

import pytest
from support.answers import client, links_of, words_of
from support.loads import changed

from racedata.service.words import column_in_words


def part_of(html, start, end):
    return html[html.index(f'id="{start}"') : html.index(f'id="{end}"')]


def test_a_season_marks_only_its_next_race(sample):
    html = sample.get("/2023").text
    # the other races to come are for the script
    tags = re.findall('<span class="tag next" data-start="([^"]+)"( hidden|)>Next race<', html)
    assert [bool(hidden) for _, hidden in tags] == [False, True, True, True]
    assert tags[0][0] == "2023-10-29T20:00:00Z"
    assert html.count('<tr class="next">') == 1
    assert "Next race" not in sample.get("/2021").text


def test_a_link_to_only_some_of_the_records_says_so(sample_database):
    html = client(sample_database, max_limit=150).get("/2023/18").text
    assert "Lap timings 1,014 JSON CSV (the first 150) " in words_of(html)
    assert "/ergast/f1/2023/18/laps.csv?limit=150" in links_of(html)


def test_the_pages_name_the_source_of_fastest_laps_that_are_from_elsewhere(two_sources):
    app = client(two_sources)
    words = words_of(app.get("/1957/2").text)
    assert re.search(r"From sample, [^.]+ UTC \. Fastest laps from f1db, [^.]+ UTC \.", words)
    assert "Fastest laps from" not in words_of(app.get("/2023/18").text)
    season = words_of(app.get("/1957").text)
    assert "Results from sample, fastest laps from f1db; " in season


def disputed(kind, key, column, about="driverId"):
    """Statements for a discrepancy in 2023/18."""
    driver = "driverRef = 'norris'" if about == "driverId" else "0"
    constructor = "constructorRef = 'mclaren'" if about == "constructorId" else "0"
    return (
        f"""INSERT INTO discrepancies SELECT 9, '{kind}', '{key}', '{column}', 2023, raceId,
               (SELECT driverId FROM drivers WHERE {driver}),
               (SELECT constructorId FROM constructors WHERE {constructor}), circuitId, '2',
               'open', 'x', 1 FROM races WHERE RACE(2023/18)""",
        "INSERT INTO discrepancy_values VALUES (9, 1, 'sample', '2'), (9, 2, 'f1db', NULL)",
    )


ASTERISK = '<a class="asterisk" href="../2023/18#notes" title="Corrected or disputed: {}">*</a>'
# The kind, key and column of a discrepancy; the tables with a mark, by their ids; and in words.
DISPUTED = """
results norris grid race,grid Lando Norris, grid
results norris laps race Lando Norris, laps
fastest_laps norris rank race,fastest Lando Norris, rank of the fastest lap
qualifying norris q3 qualifying Lando Norris, Q3
sprint_results norris grid sprint Lando Norris, grid
sprint_qualifying norris q1 sprintqualifying Lando Norris, Q1
practice 1/norris position practice Lando Norris, practice 1, position
pit_stops norris/2 lap stops Lando Norris, stop 2, lap
"""
IDS = ["race", "grid", "qualifying", "sprint", "sprintqualifying", "practice", "stops", "fastest"]


@pytest.mark.parametrize("line", DISPUTED.strip().splitlines())
def test_each_table_of_a_race_marks_a_driver_with_a_disputed_value(database, line):
    kind, key, column, tables, said = line.split(" ", 4)
    changed(database, *disputed(kind, f"2023/18/{key}", column))
    html = client(database).get("/2023/18").text
    marked = f">Lando Norris</a>{ASTERISK.format(column_in_words(column))}"
    parts = {id: part_of(html, id, end) for id, end in pairwise([*IDS, "weekend"])}
    assert [id for id, part in parts.items() if marked in part] == tables.split(",")
    assert html.count(marked) == tables.count(",") + 1
    notes = part_of(html, "notes", "records")
    assert f"<li>{said}: sample has 2, f1db has none.</li>" in notes
    assert 'href="discrepancies"' in notes
    assert '<a href="#notes">Corrected or disputed</a>' in html


@pytest.mark.parametrize(
    ("kind", "about", "id", "name"),
    [
        ("driver_standings", "driverId", "norris", "Lando Norris"),
        ("constructor_standings", "constructorId", "mclaren", "McLaren"),
    ],
)
def test_championships_mark_a_disputed_place_with_a_link_to_the_race(
    database, kind, about, id, name
):
    changed(database, *disputed(kind, f"2023/18/{id}", "points", about))
    changed(database, f"DELETE FROM {kind} WHERE RACE(2023/22)")
    app = client(database)
    for address in ("/", "/2023"):
        link = '<a class="asterisk" href="./2023/18#notes"'
        assert f">{name}</a>{link}" in app.get(address).text
    assert f"<li>{name}, points: sample has 2, f1db has none.</li>" in app.get("/2023/18").text

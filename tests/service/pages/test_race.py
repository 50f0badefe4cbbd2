"""racedata.service.pages.race, with racedata.service.pages.races: the page of a race."""

import re

from support.answers import client, links_of, words_of
from support.loads import changed


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


def test_the_page_of_a_race_explains_its_letters_as_positions_and_grid_0(sample):
    said = "R: retired, D: disqualified, grid 0: pit lane or no start. "
    assert said in words_of(sample.get("/2023/18").text)
    assert "grid 0" not in sample.get("/2005/1").text
    assert "retired" not in words_of(sample.get("/2023/19").text)


def test_the_page_and_the_page_of_the_race_say_that_a_result_is_provisional(database):
    provisional = "Provisional result from data, until another source has it."
    origin = "UPDATE origins SET sourceId = 2 WHERE kind = 'results' AND RACE(2023/18)"
    app = client(
        changed(
            database,
            """INSERT INTO sources (name, address, readAt, isLoaded, gave, isProvisional) VALUES
               ('/home/somebody/data', '', '2026-11-22T06:00:00Z', 0, '', 1)""",
            origin,
        )
    )
    for address, begins in (("/", "Austin, USA."), ("/2023/18", "Mexico City Grand Prix →")):
        assert f"{begins} {provisional} Result" in words_of(app.get(address).text)
    assert "Provisional" not in app.get("/2021/10").text

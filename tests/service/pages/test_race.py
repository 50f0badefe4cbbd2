"""racedata.service.pages.race, racedata.service.pages.season and what they share,
racedata.service.pages.races.
"""

import re

from support.answers import client, links_of, words_of
from support.loads import changed


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


def test_every_season_and_race_of_a_full_dump_has_a_page(full_database):
    app = client(full_database)
    for race in app.get("/ergast/f1/races?limit=2000").json["MRData"]["RaceTable"]["Races"]:
        for address in (f"/{race['season']}", f"/{race['season']}/{race['round']}"):
            assert race["raceName"] in words_of(app.get(address, status=200).text)

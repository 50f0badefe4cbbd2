"""racedata.service.latest: the next race, the last result and the championships on the page."""

import pytest
from support.answers import client, words_of
from support.loads import changed


def page_of(path, *statements):
    return client(changed(path, *statements) if statements else path).get("/").text


def test_the_page_shows_the_next_race_with_its_sessions_in_order_of_time(sample_database):
    text = words_of(page_of(sample_database))
    assert (
        "Next: Mexico City Grand Prix Round 19 of 2023. Autódromo Hermanos Rodríguez, Mexico"
        in text
    )
    assert (
        "Sessions, in UTC Session Start Practice 1 Fri 27 Oct 2023, "
        "18:30 Practice 2 Fri 27 Oct 2023, 22:00" in text
    )
    assert (
        "Practice 3 Sat 28 Oct 2023, 17:30 Qualifying Sat 28 Oct 2023, 21:00 Race Sun 29 Oct 2023, "
        "20:00" in text
    )


def test_in_winter_the_next_race_is_the_first_of_the_next_season(database):
    winter = "UPDATE races SET year = 2024, round = round - 18 WHERE year = 2023 AND round > 18"
    text = words_of(page_of(database, winter))
    assert "Next: Mexico City Grand Prix Round 1 of 2024." in text
    assert "Last: United States Grand Prix Round 18 of 2023." in text


def test_the_sessions_of_a_sprint_weekend_have_their_names_of_that_year(database):
    renamed = (
        "UPDATE sessions SET session = iif(session = 'fp2', 'sq', "
        "'sprint') WHERE RACE(2023/19) AND session > 'fp1'"
    )
    text = words_of(page_of(database, f"{renamed} AND session < 'quali'"))
    assert "Sprint Shootout Fri 27 Oct 2023, 22:00 Sprint Sat 28 Oct 2023, 17:30 Quali" in text


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        (
            "UPDATE sessions SET time = NULL WHERE RACE(2023/19) AND session = 'fp1'",
            "Practice 1 Fri 27 Oct 2023 Pr",
        ),
        (
            "UPDATE sessions SET date = NULL WHERE RACE(2023/19) AND session = 'fp1'",
            "Start Practice 2 Fri",
        ),
        ("UPDATE races SET time = NULL WHERE RACE(2023/19)", "Race Sun 29 Oct 2023 Subscribe"),
        ("UPDATE results SET RACE(2023/22) WHERE RACE(2023/18)", "Next No later race is loaded."),
        ("UPDATE races SET name = '<b>&' WHERE RACE(2023/19)", "Next: <b>& Round 19"),
    ],
)
def test_the_page_shows_the_known_facts_of_the_next_race(database, statement, text):
    assert text in words_of(page_of(database, statement))


def test_the_page_shows_the_first_places_of_the_last_race(sample_database):
    text = words_of(page_of(sample_database))
    assert (
        "Last: United States Grand Prix Round 18 of 2023. Circuit of the Americas, Austin" in text
    )
    assert (
        "Points 1 Max Verstappen Red Bull 1:35:21.362 25 2 Lando Norris McLaren +10.730 "
        "18 3 Carlos Sainz" in text
    )
    assert "10 Logan Sargeant Williams +1:27.998 1 Full result Championships" in text


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ("milliseconds = NULL", "2 Lando Norris McLaren Finished 18 3"),
        ("milliseconds = NULL, statusId = NULL, points = NULL", "2 Lando Norris McLaren 3"),
        ("statusId = (SELECT statusId FROM status WHERE status = '+1 Lap')", "McLaren +1 Lap 18 3"),
        ("positionText = NULL", "25 Lando Norris McLaren +10.730 18 3"),
        ("positionText = '<b>'", "25 <b> Lando Norris McLaren"),
    ],
)
def test_the_page_shows_the_known_facts_of_a_result(database, columns, text):
    assert text in words_of(
        page_of(database, f"UPDATE results SET {columns} WHERE RACE(2023/18) AND DRIVER(norris)")
    )


def test_the_page_shows_the_leaders_of_both_championships(sample_database):
    text = words_of(page_of(sample_database))
    assert (
        "Drivers after round 18 (all: JSON , CSV ) Pos Driver Points Wins 1 Max Verstappen "
        "Red Bull 466 15 2" in text
    )
    assert (
        "Constructors after round 18 (all: JSON , "
        "CSV ) Pos Constructor Points Wins 1 Red Bull 706 17 2" in text
    )


def test_if_the_last_race_has_no_standings_yet_the_page_shows_the_latest(database):
    text = words_of(page_of(database, "DELETE FROM driver_standings WHERE RACE(2023/18)"))
    assert "Drivers after round 22" in text and "Constructors after round 18" in text


def test_all_drivers_and_constructors_of_a_championship_are_listed_and_the_last_ones_folded(
    sample_database,
):
    html = page_of(sample_database)
    for name, count in (("driver", 22), ("constructor", 10)):
        folded = html.partition(f"<details><summary>All {count} {name}s</summary>")[2].partition(
            "</details>"
        )[0]
        assert folded.count('scope="row"') == count - 5
        assert f"{name}s from place 6 Pos" in words_of(folded).lower().replace("pos", "Pos")


@pytest.mark.parametrize(
    ("time", "start"),
    [("'20:00:00'", "2023-10-29T20:00:00Z"), ("NULL", "2023-10-29")],
    ids=["time", "date"],
)
def test_the_heading_of_the_next_race_has_its_start_so_that_the_script_can_change_it(
    database, time, start
):
    html = page_of(database, f"UPDATE races SET time = {time} WHERE RACE(2023/19)")
    assert f'<h2><span id="next" data-start="{start}">Next:</span> <a href="2023/19">Mexico' in html


def test_a_championship_without_standings_is_not_shown(database):
    assert "Constructors after" not in page_of(database, "DELETE FROM constructor_standings")


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

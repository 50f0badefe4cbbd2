"""racedata.service.pages.all_time: rankings of drivers, constructors, races and seasons."""

import re

import pytest
from support.answers import client, words_of
from support.loads import changed

from racedata.service.pages.all_time import age


def rankings_of(app):
    """By section and caption, the words of each row."""
    sections = re.split(r"<h2 [^>]*>", app.get("/records").text)[1:]
    return {
        section.partition("</h2>")[0]: {
            caption: [
                words_of(row) for row in re.findall("<tr><th scope=.row.*?</tr>", table, re.S)
            ]
            for caption, table in re.findall("<h3>(.*?)</h3>(.*?)</details>", section, re.S)
        }
        for section in sections
    }


@pytest.fixture(scope="module")
def of_all_races(dump_database):
    return rankings_of(client(dump_database))


def test_five_entries_are_shown_and_those_with_the_number_of_the_fifth(of_all_races):
    rows = of_all_races["Drivers"]["Most wins in a season"]
    numbers = [int(row.split()[-1]) for row in rows]
    assert numbers[4:] == [numbers[4]] * len(numbers[4:]) and len(numbers) > 5
    assert len(of_all_races["Drivers"]["Youngest winners"]) == 5


@pytest.mark.parametrize(
    ("at_silverstone", "rows"),
    [
        ("positionText = '1'", ["2021 Belgian Grand Prix to 2023 United States Grand Prix 3"]),
        (
            "positionText = 'W', laps = 0",
            ["2021 Belgian Grand Prix to 2023 United States Grand Prix 2"],
        ),
        ("positionText = 'R'", []),
    ],
)
def test_a_race_without_a_start_does_not_end_a_row_of_wins_but_one_without_a_win_does(
    database, at_silverstone, rows
):
    changed(
        database,
        f"UPDATE results SET {at_silverstone} WHERE RACE(2023/9) AND DRIVER(max_verstappen)",
    )
    found = rankings_of(client(database))["Drivers"].get("Most wins in a row", [])
    assert found == [f"Max Verstappen {row}" for row in rows]


def test_a_ranking_without_an_entry_and_a_driver_without_a_date_of_birth_are_left_out(database):
    changed(
        database,
        "UPDATE results SET milliseconds = NULL",
        "UPDATE drivers SET dob = NULL WHERE driverRef <> 'alonso'",
        "DELETE FROM driver_standings",
    )
    rankings = rankings_of(client(database))
    assert [*rankings["Races"]] == ["Winners from furthest back"]
    assert rankings["Drivers"]["Oldest winners"] == [
        "Fernando Alonso 2005 European Grand Prix 23 years, 304 days"
    ]
    assert rankings.keys() == {"Drivers", "Constructors", "Races"}


@pytest.mark.parametrize(
    ("day", "number"),
    [
        ("2024-02-28", (23, 364)),
        ("2024-02-29", (24, 0)),
        ("2024-03-01", (24, 1)),
        ("2025-02-28", (24, 365)),
        ("2025-03-01", (25, 0)),
    ],
)
def test_who_was_born_on_29_february_is_a_year_older_on_1_march_of_other_years(day, number):
    assert age("2000-02-29", day) == number


# As books and the sport's own records have them.
FIRST = """
Drivers > Most wins in a season > Max Verstappen 2023 19
Drivers > Most races with a podium in a season > Max Verstappen 2023 21
Drivers > Most poles in a season > Sebastian Vettel 2011 15
Drivers > Most wins in a row > Max Verstappen 2023 Miami Grand Prix to 2023 Italian Grand Prix 10
Drivers > Most podiums in a row > Michael Schumacher 2001 United States Grand Prix to 2002 Japanese
Drivers > Youngest winners > Max Verstappen 2016 Spanish Grand Prix 18 years, 228 days
Drivers > Oldest winners > Luigi Fagioli 1951 French Grand Prix 53 years, 22 days
Drivers > Youngest at the first start > Max Verstappen 2015 Australian Grand Prix 17 years, 166 days
Drivers > Oldest at the last start > Louis Chiron 1955 Monaco Grand Prix 55 years, 292 days
Constructors > Most wins in a season > Red Bull 2023 21
Constructors > Most wins in a row > Red Bull 2022 Abu Dhabi Grand Prix to 2023 Italian Grand Prix 15
Races > Closest finishes > 1971 Italian Grand Prix Peter Gethin , ahead of Ronnie Peterson +0.010
Races > Shortest races > 2021 Belgian Grand Prix Max Verstappen 3:27.071
Races > Longest races > 2011 Canadian Grand Prix Jenson Button 4:04:39.537
Races > Winners from furthest back > 1983 United States Grand Prix West John Watson 22nd
Seasons > Closest championships > 1984 Niki Lauda , ahead of Alain Prost 0.5 points
"""


@pytest.mark.parametrize("line", FIRST.strip().splitlines())
def test_the_first_of_a_ranking_is_who_or_what_books_say(of_all_races, line):
    section, caption, first = line.split(" > ")
    assert of_all_races[section][caption][0].startswith(first)

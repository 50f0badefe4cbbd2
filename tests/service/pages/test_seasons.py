"""racedata.service.pages.seasons: the champions of all seasons, and how far ahead they were."""

import re

from support.answers import client, words_of
from support.loads import changed


def rows_of(app):
    """The words of each row of the table of champions, by year."""
    table = re.search("<table.*?</table>", app.get("/seasons").text, re.DOTALL)[0]
    rows = [words_of(row) for row in re.findall("<tr><th scope=.row.*?</tr>", table, re.DOTALL)]
    return {int(row[:4]): row[5:] for row in rows}


def test_every_season_of_the_endpoint_is_listed_with_the_first_of_its_standings(dump_database):
    app = client(dump_database)
    rows = rows_of(app)
    seasons = app.get("/ergast/f1/seasons.json?limit=2000").json["MRData"]["SeasonTable"]["Seasons"]
    assert {int(each["season"]) for each in seasons} == {*rows}
    for each in app.get("/ergast/f1/driverstandings/1.json?limit=2000").json["MRData"][
        "StandingsTable"
    ]["StandingsLists"]:
        (first,) = each["DriverStandings"]
        row = rows[int(each["season"])]
        assert row.startswith(f"{first['Driver']['givenName']} {first['Driver']['familyName']} ")
        assert f" {first['points']} " in row and "leads" not in row
    assert "Lauda McLaren 72 0.5 McLaren" in rows[1984]
    assert "Schumacher 7 " in words_of(app.get("/seasons").text).partition("Drivers with")[2]


def test_a_season_without_standings_is_listed_without_champions(database):
    for kind in ("driver", "constructor"):
        changed(database, f"DELETE FROM {kind}_standings")
    app = client(database)
    assert {*rows_of(app).values()} == {""}
    assert "Most titles" not in app.get("/seasons").text

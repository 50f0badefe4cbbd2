"""racedata.service.pages.ask and page_queries: pages get what a client gets, and the leaders."""

import pytest
from support.answers import asking
from support.loads import changed

from racedata.service.request import ALL


@pytest.fixture(scope="module")
def ask(sample_database):
    return asking(sample_database)


@pytest.mark.parametrize(
    ("asked", "address", "objects"),
    [
        (("results", ALL, 2023, 18), "/2023/18/results", "Races"),
        (("driverstandings", ALL, "current"), "/current/driverstandings", "StandingsLists"),
        (("races", ALL, 2023), "/2023", "Races"),
        (("results", 3, 2023, 99), "/2023/99/results", "Races"),
        (("results", 3, "current", "last"), "/current/last/results", "Races"),
    ],
)
def test_it_returns_the_objects_and_the_total_of_the_answer(ask, sample, asked, address, objects):
    answer = sample.get(f"/ergast/f1{address}?limit={asked[1]}").json["MRData"]
    (table,) = (value for value in answer.values() if isinstance(value, dict))
    assert ask(*asked) == table[objects]
    assert ask.content(*asked).total == int(answer["total"])


def test_the_leaders_of_a_season_have_the_first_place_after_each_round(ask, sample):
    def first_after(round):
        address = f"/ergast/f1/2023/{round}/driverstandings/1.json"
        lists = sample.get(address).json["MRData"]["StandingsTable"]["StandingsLists"]
        return [place["Driver"]["driverId"] for each in lists for place in each["DriverStandings"]]

    found = {
        round: [driver["driverId"] for driver in drivers]
        for round, drivers in ask.leaders(2023).items()
    }
    expected = {str(round): first_after(round) for round in range(1, 23)}
    assert found == {round: ids for round, ids in expected.items() if ids} != {}


def test_drivers_with_as_many_points_lead_together(database):
    of_second = "RACE(2023/18) AND DRIVER(perez)"
    changed(database, f"UPDATE driver_standings SET positionText = '1' WHERE {of_second}")
    drivers = asking(database).leaders(2023)["18"]
    assert [driver["driverId"] for driver in drivers] == ["max_verstappen", "perez"]

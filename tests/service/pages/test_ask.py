"""racedata.service.pages.ask: pages get what a client gets."""

import pytest
from support.answers import asking


@pytest.fixture(scope="module")
def ask(sample_database):
    return asking(sample_database)


@pytest.mark.parametrize(
    ("asked", "address", "objects"),
    [
        (("results", 2023, 18), "/2023/18/results", "Races"),
        (("driverstandings", "current"), "/current/driverstandings", "StandingsLists"),
        (("races", 2023), "/2023", "Races"),
        (("results", 2023, 99), "/2023/99/results", "Races"),
        (("results", "current", "last"), "/current/last/results", "Races"),
    ],
)
def test_it_returns_the_objects_and_the_total_of_the_answer(ask, sample, asked, address, objects):
    answer = sample.get(f"/ergast/f1{address}?limit=2000").json["MRData"]
    (table,) = (value for value in answer.values() if isinstance(value, dict))
    assert ask(*asked) == table[objects]
    assert ask.content(asked[0], 0, *asked[1:]).total == int(answer["total"])

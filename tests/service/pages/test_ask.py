"""racedata.service.pages.ask: pages get what a client gets."""

import pytest

from racedata.service.addresses import Grammar
from racedata.service.catalogue import Catalogue
from racedata.service.endpoints import ENDPOINTS, Served
from racedata.service.pages.ask import ALL, Ask
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings


@pytest.fixture(scope="module")
def ask(sample_database):
    data = Snapshot.read(sample_database)
    grammar = Grammar("/ergast/f1", {endpoint.name: endpoint.rules for endpoint in ENDPOINTS})
    return Ask(Served(data, Catalogue(data), Settings()), grammar)


@pytest.mark.parametrize(
    ("address", "table", "objects"),
    [
        ("/2023/18/results", "RaceTable", "Races"),
        ("/current/driverstandings", "StandingsTable", "StandingsLists"),
        ("/2023", "RaceTable", "Races"),
        ("/2023/99/results", "RaceTable", "Races"),
    ],
)
def test_it_returns_the_objects_and_the_total_of_the_answer(ask, sample, address, table, objects):
    answer = sample.get(f"/ergast/f1{address}?limit={ALL}").json["MRData"]
    assert ask(address, ALL) == answer[table][objects]
    assert ask.total(address) == int(answer["total"])


def test_it_returns_no_more_records_than_the_limit(ask):
    (race,) = ask("/2023/18/results", 3)
    assert len(race["Results"]) == 3


def test_a_result_that_is_not_provisional_has_no_provisional_source(ask):
    assert ask.provisional_source({"season": "2023", "round": "18"}) is None

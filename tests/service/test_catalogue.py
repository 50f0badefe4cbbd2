"""racedata.service.catalogue: what an address selects in a database."""

import pytest
from support.loads import changed

from racedata.service.addresses import Grammar
from racedata.service.catalogue import Catalogue, NoLastRound
from racedata.service.endpoints import RULES
from racedata.service.snapshot import Snapshot

GRAMMAR = Grammar("/ergast/f1", RULES)


@pytest.fixture(scope="module")
def catalogue(sample_database):
    return Catalogue(Snapshot.read(sample_database))


@pytest.mark.parametrize("path", ["/1997/last", "/2030/last/results"])
def test_a_season_without_results_has_no_last_round(catalogue, path):
    with pytest.raises(NoLastRound, match=f"Season {path[1:5]} has no last round yet"):
        catalogue.select(GRAMMAR.parse(path))


def test_what_comes_is_in_order_and_begins_after_the_last_race_with_results(catalogue):
    rounds = [
        (catalogue.race_rows[id]["year"], catalogue.race_rows[id]["round"])
        for id in (catalogue.last_race, *catalogue.coming)
    ]
    assert rounds == [(2023, round) for round in (18, 19, 20, 21, 22)]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM races WHERE year = 2023 AND round > 18",  # no later season
        # a race is to come
        "UPDATE races SET year = 2024, round = round - 19 WHERE year = 2023 AND round > 19",
    ],
)
def test_current_is_one_season_if_it_has_a_race_to_come_or_no_later_one_is_known(
    database, statement
):
    sessions = (
        "DELETE FROM sessions WHERE raceId IN (SELECT raceId FROM races WHERE year = "
        "2023 AND round > 18)"
    )
    other = Catalogue(Snapshot.read(changed(database, sessions, statement)))
    assert other.select(GRAMMAR.parse("/current")).season == 2023

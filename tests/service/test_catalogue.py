"""racedata.service.catalogue: what an address selects in a database."""

import pytest
from support.loads import changed

from racedata.service.addresses import Grammar
from racedata.service.catalogue import Catalogue, NoLastRound
from racedata.service.endpoints import ENDPOINTS
from racedata.service.snapshot import Snapshot

GRAMMAR = Grammar("/ergast/f1", {endpoint.name: endpoint.rules for endpoint in ENDPOINTS})


@pytest.fixture(scope="module")
def catalogue(sample_database):
    return Catalogue(Snapshot.read(sample_database))


@pytest.mark.parametrize("path", ["/1997/last", "/2030/last/results"])
def test_a_season_without_results_has_no_last_round(catalogue, path):
    with pytest.raises(NoLastRound, match=f"Season {path[1:5]} has no last round yet"):
        catalogue.select(GRAMMAR.parse(path))


WINTER = "UPDATE races SET year = 2024, round = round - 18 WHERE year = 2023 AND round > 18"
# Seasons and rounds of addresses with `current` while 2023 has races to come, and in the winter
# after its last race.
CURRENT = {
    "": ((2023, None), (2024, None)),
    "/races": ((2023, None), (2024, None)),
    "/circuits/rodriguez/races": ((2023, None), (2024, None)),
    "/drivers/alonso/races": ((2023, None), (2023, None)),
    "/fastest/0/races": ((2023, None), (2023, None)),
    "/drivers": ((2023, None), (2023, None)),
    "/circuits": ((2023, None), (2023, None)),
    "/seasons": ((2023, None), (2023, None)),
    "/results": ((2023, None), (2023, None)),
    "/driverstandings": ((2023, None), (2023, None)),
    "/18/races": ((2023, 18), (2023, 18)),
    "/last": ((2023, 18), (2023, 18)),
    "/last/results": ((2023, 18), (2023, 18)),
    "/next": ((2023, 19), (2024, 1)),
    "/next/circuits": ((2023, 19), (2024, 1)),
}


@pytest.mark.parametrize("path", CURRENT)
def test_in_winter_current_is_the_next_season_in_lists_of_races(catalogue, database, path):
    winter = Catalogue(Snapshot.read(changed(database, WINTER)))
    for each, expected in zip((catalogue, winter), CURRENT[path]):
        selection = each.select(GRAMMAR.parse(f"/current{path}"))
        assert (selection.season, selection.round) == expected


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


def test_ids_are_numbers_and_fastest_0_is_not_a_filter(catalogue):
    filters = catalogue.select(
        GRAMMAR.parse("/2023/18/drivers/LECLERC/grid/0/fastest/0/results/r")
    ).filters
    assert set(filters) == {"race", "drivers", "grid", "results"}
    assert catalogue.drivers[filters["drivers"]]["driverId"] == "leclerc"
    assert (filters["grid"], filters["results"]) == (0, "R")

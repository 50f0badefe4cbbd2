"""racedata.catalogue: what an address selects in a database."""

import pytest

from racedata.addresses import Grammar
from racedata.catalogue import Catalogue, NoLastRound
from racedata.resources import ENDPOINTS
from racedata.snapshot import Snapshot

GRAMMAR = Grammar("/ergast/f1", {endpoint.name: endpoint.rules for endpoint in ENDPOINTS})


@pytest.fixture(scope="module")
def catalogue(sample_database):
    return Catalogue(Snapshot.read(sample_database))


@pytest.mark.parametrize("path", ["/1997/last", "/2030/last/results"])
def test_a_season_without_results_has_no_last_round(catalogue, path):
    with pytest.raises(NoLastRound, match=f"No race of season {path[1:5]} has results yet"):
        catalogue.select(GRAMMAR.parse(path))


def test_ids_are_numbers_and_fastest_0_is_no_filter(catalogue):
    filters = catalogue.select(GRAMMAR.parse("/2023/18/drivers/LECLERC/grid/0/fastest/0/results/r")).filters
    assert set(filters) == {"race", "drivers", "grid", "results"}
    assert catalogue.drivers[filters["drivers"]]["driverId"] == "leclerc"
    assert (filters["grid"], filters["results"]) == (0, "R")

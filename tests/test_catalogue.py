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


@pytest.mark.parametrize(
    ("path", "season", "round"),
    [
        ("", None, None),
        ("/2023", 2023, None),
        ("/2023/99", 2023, 99),
        ("/current", 2023, None),
        ("/current/last", 2023, 18),
        ("/current/next", 2023, 19),
        ("/2023/next", 2023, 19),
        ("/1957/last", 1957, 5),
        ("/1997/next", 1997, 1),
        ("/2030/next", 2031, 1),
        ("/1949/next", 1950, 1),
    ],
)
def test_season_and_round_are_numbers_of_the_database(catalogue, path, season, round):
    selection = catalogue.select(GRAMMAR.parse(path))
    assert (selection.season, selection.round) == (season, round)


@pytest.mark.parametrize("path", ["/1997/last", "/2030/last/results"])
def test_a_season_without_results_has_no_last_round(catalogue, path):
    with pytest.raises(NoLastRound, match=f"No race of season {path[1:5]} has results yet"):
        catalogue.select(GRAMMAR.parse(path))


@pytest.mark.parametrize("path", ["/drivers/nobody/results", "/2023/99/results", "/1949/1", "/circuits/x/races"])
def test_what_does_not_exist_selects_nothing(catalogue, path):
    assert catalogue.select(GRAMMAR.parse(path)).filters is None


def test_ids_are_numbers_and_fastest_0_is_no_filter(catalogue):
    filters = catalogue.select(GRAMMAR.parse("/2023/18/drivers/LECLERC/grid/0/fastest/0/results/r")).filters
    assert set(filters) == {"race", "drivers", "grid", "results"}
    assert catalogue.drivers[filters["drivers"]]["driverId"] == "leclerc"
    assert (filters["grid"], filters["results"]) == (0, "R")

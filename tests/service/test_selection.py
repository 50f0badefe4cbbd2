"""racedata.service.selection: what an address selects in a database."""

import pytest
from support.loads import changed

from racedata.service.addresses import Grammar
from racedata.service.catalogue import Catalogue
from racedata.service.endpoints import RULES
from racedata.service.selection import NoLastRound, Selection, select, wanted_standings
from racedata.service.snapshot import Snapshot

GRAMMAR = Grammar("/ergast/f1", RULES)


@pytest.fixture(scope="module")
def catalogue(sample_database):
    return Catalogue(Snapshot.read(sample_database))


def selected(catalogue, path):
    return select(catalogue, GRAMMAR.parse(path))


def round_of(catalogue, path):
    selection = selected(catalogue, path)
    return selection.season, selection.round


# The sample has results of 2005/1 and 7, 2021/10 and 12, and 2023/9 and 18, and the calendars of
# these seasons.
@pytest.mark.parametrize(
    ("path", "season", "round"),
    [
        ("/current/last", 2023, 18),
        ("/2023/last/results", 2023, 18),
        ("/2021/last", 2021, 12),
        ("/current/next", 2023, 19),
        ("/2023/next/results", 2023, 19),
        ("/2021/next", 2021, 13),  # not the next race of all
    ],
)
def test_last_is_the_latest_race_with_results_and_next_the_one_after_it(
    catalogue, path, season, round
):
    race = catalogue.id_of_round[season, round]
    assert selected(catalogue, path) == Selection(season, round, {"race": race})


@pytest.mark.parametrize("path", ["/1997/last", "/2030/last/results"])
def test_a_season_without_results_has_no_last_round(catalogue, path):
    with pytest.raises(NoLastRound, match=f"Season {path[1:5]} has no last round yet"):
        selected(catalogue, path)


SESSIONS = (
    "DELETE FROM sessions WHERE raceId IN (SELECT raceId FROM races WHERE year = 2023 AND round > "
    "18)"
)


def test_next_leaves_out_a_round_that_was_cancelled(database):
    cancelled = "DELETE FROM races WHERE year = 2023 AND round = 19"
    other = Catalogue(Snapshot.read(changed(database, SESSIONS, cancelled)))
    assert round_of(other, "/current/next") == (2023, 20)


def test_next_is_the_first_round_of_the_next_season_if_the_season_has_no_later_race(database):
    over = "DELETE FROM races WHERE year = 2023 AND round > 18"
    other = Catalogue(Snapshot.read(changed(database, SESSIONS, over)))
    assert selected(other, "/current/next") == Selection(2024, 1, None)  # which is not known
    assert round_of(other, "/2023/next") == (2024, 1)
    assert round_of(other, "/9999/next") == (9999, 1)


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
    other = Catalogue(Snapshot.read(changed(database, SESSIONS, statement)))
    assert selected(other, "/current").season == 2023


def test_in_winter_current_is_the_coming_season_only_where_races_are_listed(database):
    winter = "UPDATE races SET year = 2024, round = round - 18 WHERE year = 2023 AND round > 18"
    other = Catalogue(Snapshot.read(changed(database, winter)))
    assert selected(other, "/current").wanted == {"season": 2024}
    circuit = other.ids["circuits"]["interlagos"]
    of_circuit = selected(other, "/current/circuits/interlagos/races")
    assert of_circuit.wanted == {"season": 2024, "circuits": circuit}
    assert selected(other, "/current/results").wanted == {"season": 2023}
    assert selected(other, "/current.ics").wanted == {"from_season": 2023}
    assert selected(other, "/2024.ics").wanted == {"season": 2024}


def test_ids_of_filters_are_numbers_of_the_database_and_an_unknown_one_selects_nothing(catalogue):
    leclerc = catalogue.ids["drivers"]["leclerc"]
    found = selected(catalogue, "/2023/drivers/Leclerc/results/2")
    assert found == Selection(2023, None, {"season": 2023, "drivers": leclerc, "results": "2"})
    assert selected(catalogue, "/2023/drivers/nobody/results") == Selection(2023, None, None)
    assert selected(catalogue, "/2023/99/results") == Selection(2023, 99, None)
    assert selected(catalogue, "/fastest/0/results").wanted == {}


def test_standings_are_the_latest_of_a_season_those_after_a_round_or_all_final_ones(catalogue):
    latest = catalogue.latest_with["driver_standings"][2023]
    assert wanted_standings(catalogue, "driver_standings", {"season": 2023, "drivers": 1}) == {
        "race": latest,
        "drivers": 1,
    }
    assert wanted_standings(catalogue, "driver_standings", {"race": 3}) == {"race": 3}
    assert wanted_standings(catalogue, "driver_standings", {"drivers": 1}) == {
        "drivers": 1,
        "final": 1,
    }
    assert wanted_standings(catalogue, "driver_standings", {"season": 2030}) is None

"""racedata.loader.compare.differences: differences that follow from how sources order, count
and leave out drivers are explained, and others are not.
"""

from contextlib import closing
from pathlib import Path

import pytest
from support.loads import select
from support.stores import a_calendar, a_delivery, a_race, a_source, put

from racedata.loader.build import build_database
from racedata.loader.corrections import Corrections
from racedata.loader.parts import Part
from racedata.loader.store import Store

RESULT = (
    "driverId",
    "constructorId",
    "number",
    "grid",
    "positionText",
    "positionOrder",
    "laps",
    "statusId",
)
QUALIFYING = ("driverId", "constructorId", "position", "q1", "q2", "q3")


@pytest.fixture
def states(tmp_path):
    """The states of what two sources disagree about in a race, by key and column."""

    def states(one, other, season=2023, name="Grand Prix 1"):
        race = a_race(1, raceId=1, year=season, name=name, date=f"{season}-01-15")
        path = tmp_path / "racedata.db"
        path.unlink(missing_ok=True)
        with closing(Store(Path(":memory:"))) as store:
            put(
                store,
                *(
                    a_delivery(
                        a_source(source),
                        a_calendar(race, season=season),
                        *(Part(season, 1, *part) for part in parts),
                    )
                    for source, parts in (("one", one), ("two", other))
                ),
            )
            build_database(path, store, Corrections([]), lambda text: None)
        found = select(path, "SELECT key, columnName, state FROM discrepancies")
        return {(key.split("/", 2)[2], column): state for key, column, state in found}

    return states


def results(*rows):
    return [("results", RESULT, rows)]


def qualifying(*rows, letter="1"):
    """Qualifying, and the result of a driver."""
    return [*results(started("hill", 9, 0, letter)), ("qualifying", QUALIFYING, rows)]


def started(driver, number, grid, text="1", order=1, laps=50):
    return (driver, "lotus", number, grid, text, order, laps, "Finished")


def test_who_took_over_a_car_has_its_place_on_the_grid_or_none(states):
    moss = started("moss", 1, 3)
    relief = results(moss, started("brooks", 1, 3)), results(moss, started("brooks", 1, 0))
    assert states(*relief) == {("brooks", "grid"): "explained"}
    own = results(moss, started("brooks", 2, 4)), results(moss, started("brooks", 2, 0))
    assert states(*own) == {("brooks", "grid"): "open"}


def test_a_place_on_the_grid_that_stayed_empty_counts_or_not(states):
    def grid(*places):
        return results(
            *(
                started(name, number, place)
                for number, (name, place) in enumerate(zip(("moss", "brooks", "clark"), places))
            )
        )

    both = {("brooks", "grid"), ("clark", "grid")}
    assert states(grid(1, 3, 4), grid(1, 2, 3)) == dict.fromkeys(both, "explained")
    assert states(grid(1, 3, 4), grid(1, 4, 3)) == dict.fromkeys(both, "open")
    assert states(grid(1, 3, 4), grid(1, 1, 4)) == {("brooks", "grid"): "open"}


def test_a_disqualified_driver_has_laps_and_a_place_on_the_grid_or_neither(states):
    moss = started("moss", 1, 1)
    whole, bare, without_laps = (
        results(moss, started("brooks", 2, grid, "D", 2, laps))
        for grid, laps in ((2, 40), (0, None), (2, None))
    )
    assert states(whole, bare) == {
        ("brooks", "grid"): "explained",
        ("brooks", "laps"): "explained",
    }
    assert states(whole, without_laps) == {("brooks", "laps"): "open"}


@pytest.mark.parametrize(("season", "state"), [(1966, "explained"), (1967, "open")])
def test_formula_2_counts_or_not_in_races_that_are_known_for_it(states, season, state):
    moss, clark = started("moss", 1, 1, "1", 1), started("clark", 3, 3, "2", 2)
    second, third = (started("brooks", 2, 2, str(place), place) for place in (2, 3))
    found = states(results(moss, second), results(moss, clark, third), season, "German Grand Prix")
    assert found == {
        ("brooks", "positionOrder"): state,
        ("brooks", "positionText"): state,
        ("clark", "row"): state,
    }


def timed(driver, position, q1, q2=None, q3=None):
    return (driver, "lotus", position, q1, q2, q3)


MOSS = timed("moss", 1, "1:10.000", "1:09.000", "1:08.000")
BROOKS = timed("brooks", 2, "1:11.000", "1:09.500", "1:08.500")
CLARK = timed("clark", 3, "1:12.000", "1:10.000")
IN_ORDER = [MOSS, BROOKS, CLARK]


def at(position, row):
    return (*row[:2], position, *row[3:])


def test_who_was_excluded_from_the_qualifying_is_last_or_has_the_place_of_the_times(states):
    places = {(driver, "position"): "explained" for driver in ("moss", "brooks", "clark")}
    times = {("moss", name): "explained" for name in ("q1", "q2", "q3")}
    others = [at(1, BROOKS), at(2, CLARK)]
    by_time, moved = qualifying(*IN_ORDER), qualifying(*others, at(3, MOSS))
    assert states(by_time, moved) == states(moved, by_time) == places
    assert states(by_time, qualifying(*others, timed("moss", 3, None))) == places | times


def test_a_place_in_the_qualifying_that_the_times_do_not_explain_is_open(states):
    hill, by_time = timed("hill", 4, "1:14.000"), qualifying(*IN_ORDER)
    other_time = qualifying(at(1, BROOKS), at(2, CLARK), timed("moss", 3, "1:13.000"))
    assert states(by_time, other_time)["moss", "position"] == "open"
    exchanged = qualifying(at(1, BROOKS), at(2, MOSS), at(3, hill), at(4, CLARK))
    assert {*states(qualifying(*IN_ORDER, hill), exchanged).values()} == {"open"}
    slowest_first = qualifying(at(1, CLARK), at(2, MOSS), at(3, BROOKS))
    assert {*states(slowest_first, by_time).values()} == {"open"}


def test_places_in_a_qualifying_without_times_that_differ_are_open(states):
    without_times = [timed(name, place, None) for place, name in enumerate(("moss", "hill"), 1)]
    other = [without_times[0], at(3, without_times[1])]
    assert states(qualifying(*without_times), qualifying(*other)) == {("hill", "position"): "open"}


def test_a_time_in_a_qualifying_is_open_if_only_one_source_has_places(states):
    without_places = [at(None, row) for row in (*IN_ORDER[:2], timed("clark", 3, "1:19.700"))]
    one, other = qualifying(*IN_ORDER), qualifying(*without_places)
    assert states(one, other)["clark", "q1"] == states(other, one)["clark", "q1"] == "open"


@pytest.mark.parametrize(
    ("times", "letter", "state"),
    [
        ([None], "1", "explained"),
        (["1:13.000"], "1", "open"),
        (["1:13.000"], "F", "explained"),
        (["1:11.500", "1:09.800"], "1", "explained"),
    ],
    ids=["no time", "slowest", "did not qualify", "behind slower drivers"],
)
def test_who_is_last_in_the_qualifying_is_listed_or_not(states, times, letter, state):
    one = qualifying(*IN_ORDER, letter=letter)
    other = qualifying(*IN_ORDER, timed("hill", 4, *times), letter=letter)
    assert states(one, other) == {("hill", "row"): state}


def test_who_is_not_last_in_the_qualifying_is_missing(states):
    found = states(qualifying(*IN_ORDER), qualifying(MOSS, at(2, CLARK)))
    assert found["brooks", "row"] == "open"

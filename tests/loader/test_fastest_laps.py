"""racedata.loader.fastest_laps: which result gets the fastest lap of a driver with two cars."""

import pytest

from racedata.loader.fastest_laps import fastest_laps_of_results

# by driver: 1 is Hill, who drove the cars 1 and 2 to the places 1 and 2, and 2 is Clark
RESULTS = {
    "driverId": (1, 1, 2),
    "number": (1, 2, 3),
    "positionText": ("1", "2", "3"),
    "positionOrder": (1, 2, 3),
    "laps": (50, 50, 50),
}


def lap(driver=1, number=1, text="1", place=1, lap=40):
    return [driver, number, text, place, lap, 1, "1:20.000", None]


def places_with_laps(fastest, is_same_source=False, **columns):
    """The places of the results that get a fastest lap, with the number of the lap."""
    added = fastest_laps_of_results(RESULTS | columns, fastest, is_same_source)
    return {place: number for place, number in enumerate(added["fastestLap"], 1) if number}


@pytest.mark.parametrize(
    ("laps", "place", "place_of_other"),
    [
        ([lap()], 1, 1),
        ([lap(number=2, text="2", place=2)], 2, 2),
        ([lap(number=2, text="R", place=20)], 2, 2),
        ([lap(number=9, text="2", place=20)], 2, 2),
        ([lap(number=9, text="R", place=20)], 1, 1),
        ([lap(number=1, text="1", place=20), lap(number=2, text="2", place=20)], 1, 1),
        ([lap(number=1, text="1", place=2)], 2, 1),
    ],
    ids=["all", "the second", "number", "place", "neither", "two laps: the first", "own place"],
)
def test_a_driver_of_two_cars_has_the_fastest_lap_in_the_one_that_is_most_alike(
    laps, place, place_of_other
):
    """The place names the car only within one source."""
    assert places_with_laps(laps, is_same_source=True) == {place: 40}
    assert places_with_laps(laps) == {place_of_other: 40}


def test_no_car_has_a_fastest_lap_after_its_last_one_if_the_other_drove_further():
    assert places_with_laps([lap()], laps=(10, 50, 50)) == {2: 40}


@pytest.mark.parametrize("car", [1, 2])
def test_a_car_whose_laps_are_unknown_has_the_fastest_lap_only_if_it_is_the_one_most_alike(car):
    laps = [lap(number=car, text=str(car))]
    assert places_with_laps(laps, laps=(None, 50, 50)) == {car: 40}
    assert places_with_laps(laps, laps=(50, None, 50)) == {car: 40}


def test_the_lap_of_a_driver_without_a_result_is_left_out():
    assert places_with_laps([lap(driver=3)]) == {}

"""racedata.loader.compare.differences: differences that follow from how sources order, count
and leave out drivers are explained, and others are not.

test_check.py has a difference of each group.
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

NAMES = ("driverId", "constructorId", "number", "grid", "positionText", "positionOrder", "laps")
COLUMNS = {
    "results": (*NAMES, "statusId"),
    "qualifying": ("driverId", "constructorId", "position", "q1", "q2", "q3"),
}


def said(source, race, parts):
    """What a source says about a race: the rows of each kind."""
    of_race = [
        Part(race["year"], 1, kind, COLUMNS[kind], rows) for kind, rows in parts.items() if rows
    ]
    return a_delivery(a_source(source), a_calendar(race, season=race["year"]), *of_race)


def states(tmp_path, one, other, season=2023, name="Grand Prix 1"):
    """The states of what two sources disagree about in a race, by driver and column."""
    race = a_race(1, raceId=1, year=season, name=name, date=f"{season}-01-15")
    path = tmp_path / "racedata.db"
    path.unlink(missing_ok=True)
    with closing(Store(Path(":memory:"))) as store:
        put(store, said("one", race, one), said("two", race, other))
        build_database(path, store, Corrections([]), lambda text: None)
    found = select(path, "SELECT key, columnName, state FROM discrepancies")
    return {f"{key.split('/', 2)[2]} {column}": state for key, column, state in found}


def result(driver, number, grid, text="1", order=1, laps=50):
    return (driver, "lotus", number, grid, text, order, laps, "Finished")


def grid(*places):
    return [
        result(name, number, place)
        for number, (name, place) in enumerate(zip(("moss", "brooks", "clark"), places))
    ]


def timed(driver, position, *times):
    return (driver, "lotus", position, *times, *[None] * (3 - len(times)))


def at(position, row):
    return (*row[:2], position, *row[3:])


MOSS_FIRST = result("moss", 1, 1)
DISQUALIFIED, BARE, WITHOUT_LAPS = (
    [MOSS_FIRST, result("brooks", 2, place, "D", 2, laps)]
    for place, laps in ((2, 40), (0, None), (2, None))
)
RESULTS = {
    "the grid of who had a car": (
        [result("moss", 1, 3), result("brooks", 2, 4)],
        [result("moss", 1, 3), result("brooks", 2, 0)],
        {"brooks grid": "open"},
    ),
    "exchanged places on the grid": (
        grid(1, 3, 4),
        grid(1, 4, 3),
        {"brooks grid": "open", "clark grid": "open"},
    ),
    "a shared place on the grid": (grid(1, 3, 4), grid(1, 1, 4), {"brooks grid": "open"}),
    "who was disqualified has nothing": (
        DISQUALIFIED,
        BARE,
        {"brooks grid": "explained", "brooks laps": "explained"},
    ),
    "who was disqualified lacks only laps": (DISQUALIFIED, WITHOUT_LAPS, {"brooks laps": "open"}),
}


@pytest.mark.parametrize(("one", "other", "expected"), RESULTS.values(), ids=RESULTS)
def test_a_result_is_explained_by_how_sources_count(one, other, expected, tmp_path):
    assert states(tmp_path, {"results": one}, {"results": other}) == expected


@pytest.mark.parametrize(("season", "state"), [(1966, "explained"), (1967, "open")])
def test_formula_2_counts_or_not_in_races_that_are_known_for_it(season, state, tmp_path):
    second, third = (result("brooks", 2, 2, str(place), place) for place in (2, 3))
    one, other = [MOSS_FIRST, second], [MOSS_FIRST, result("clark", 3, 3, "2", 2), third]
    found = states(tmp_path, {"results": one}, {"results": other}, season, "German Grand Prix")
    assert found == dict.fromkeys(
        ("brooks positionOrder", "brooks positionText", "clark row"), state
    )


MOSS = timed("moss", 1, "1:10.000", "1:09.000", "1:08.000")
BROOKS = timed("brooks", 2, "1:11.000", "1:09.500", "1:08.500")
CLARK = timed("clark", 3, "1:12.000", "1:10.000")
HILL = timed("hill", 4, "1:14.000")
IN_ORDER = [MOSS, BROOKS, CLARK]
OTHERS = [at(1, BROOKS), at(2, CLARK)]
PLACES = {f"{driver} position": "explained" for driver in ("moss", "brooks", "clark")}
TIMES = {f"moss {name}": "explained" for name in ("q1", "q2", "q3")}
# with the `positionText` of Hill in the race
QUALIFYING = {
    "last, with the times": (IN_ORDER, [*OTHERS, at(3, MOSS)], PLACES),
    "last, without the times": (IN_ORDER, [*OTHERS, timed("moss", 3)], PLACES | TIMES),
    "last, with another time": (
        IN_ORDER,
        [*OTHERS, timed("moss", 3, "1:13.000")],
        {"moss position": "open"},
    ),
    "last, but the time of another differs": (
        IN_ORDER,
        [at(1, BROOKS), timed("clark", 2, "1:12.000", "1:10.100"), at(3, MOSS)],
        dict.fromkeys(PLACES, "open"),
    ),
    "exchanged, and not the last": (
        [*IN_ORDER, HILL],
        [at(1, BROOKS), at(2, MOSS), at(3, HILL), at(4, CLARK)],
        dict.fromkeys((*PLACES, "hill position"), "open"),
    ),
    "first, against the times": (
        [at(1, CLARK), at(2, MOSS), at(3, BROOKS)],
        IN_ORDER,
        dict.fromkeys(PLACES, "open"),
    ),
    "another place without times": (
        [timed("moss", 1), timed("hill", 2)],
        [timed("moss", 1), timed("hill", 3)],
        {"hill position": "open"},
    ),
    "a time, if only one source has places": (
        IN_ORDER,
        [at(None, MOSS), at(None, BROOKS), timed("clark", None, "1:19.700")],
        {"clark q1": "open"},
    ),
    "not listed, the slowest": (IN_ORDER, [*IN_ORDER, HILL], {"hill row": "open"}),
    "not listed, did not qualify": (IN_ORDER, [*IN_ORDER, HILL], {"hill row": "explained"}, "F"),
    "not listed, behind slower drivers": (
        IN_ORDER,
        [*IN_ORDER, timed("hill", 4, "1:11.500", "1:09.800")],
        {"hill row": "explained"},
    ),
    "not listed, not the last": (IN_ORDER, [MOSS, at(2, CLARK)], {"brooks row": "open"}),
}


@pytest.mark.parametrize("swapped", [False, True], ids=["", "swapped"])
@pytest.mark.parametrize("case", QUALIFYING.values(), ids=QUALIFYING)
def test_a_qualifying_is_explained_by_who_is_listed_and_who_is_last(case, swapped, tmp_path):
    one, other, expected, *letter = case
    both = [
        {"results": [result("hill", 9, 0, *letter)], "qualifying": rows} for rows in (one, other)
    ]
    found = states(tmp_path, *(both[::-1] if swapped else both))
    assert {name: found.get(name) for name in expected} == expected
    assert len(found) == len(expected) or "open" in expected.values()

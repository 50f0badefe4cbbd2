"""racedata.loader.fill: which ids the rows of a new database have, and which car a record is about.

What loads of several sources fill in is in test_several_sources.py.
"""

import pytest
from support.stores import (
    API,
    BASE,
    ONE_RACE,
    OTHER,
    TWO_RACES,
    a_calendar,
    a_delivery,
    a_race,
    results,
    row_of,
    stored_calendar,
)

from racedata.loader.parts import Part

# What is in the store, in a database: ids.

RESULTS = """SELECT round, resultId, driverRef FROM results
             JOIN drivers USING (driverId) JOIN races USING (raceId)"""


def test_a_source_with_ids_keeps_them(rows):
    lists = {
        "drivers": [row_of("drivers", 9, "hill"), row_of("drivers", 4, "clark")],
        "status": [row_of("status", 7, "Engine"), row_of("status", 1, "Finished")],
    }
    base = a_delivery(BASE, ONE_RACE, results(1, "hill", "clark", first_id=501), **lists)
    sql = "SELECT raceId, resultId, driverId FROM results"
    assert rows(sql, base) == [(71, 501, 9), (71, 502, 4)]
    statuses = "SELECT status, statusId FROM status ORDER BY statusId"
    assert rows(statuses) == [
        ("Finished", 1),
        ("Engine", 7),
    ]


def test_rows_of_other_sources_get_the_ids_of_those_they_replace_and_then_free_ones(rows):
    both = results(1, "hill", "clark", first_id=501), results(2, "hill", first_id=601)
    base = a_delivery(BASE, TWO_RACES, *both)
    api = a_delivery(API, TWO_RACES, results(1, "amon", "hill", "clark"))
    ids = [(1, 501, "amon"), (1, 502, "hill"), (1, 602, "clark"), (2, 601, "hill")]
    assert rows(RESULTS, base, api) == ids


def test_ids_of_rows_that_are_replaced_by_fewer_stay_free(rows):
    said = [
        a_delivery(BASE, ONE_RACE, results(1, "hill", "clark", first_id=501)),
        a_delivery(OTHER, TWO_RACES, results(2, "hill")),
        a_delivery(API, TWO_RACES, results(1, "hill", "clark"), results(2, "amon", "clark")),
    ]
    assert [id for _, id, _ in rows(RESULTS, *said)] == [501, 502, 503, 504]


def test_rows_of_another_source_with_ids_of_its_own_get_free_ones(rows):
    base = a_delivery(BASE, TWO_RACES, results(1, "hill", "clark", first_id=501))
    other = OTHER._replace(ids="other")
    further = a_delivery(other, TWO_RACES, results(2, "hill", first_id=501))
    assert [id for _, id, _ in rows(RESULTS, base, further)] == [501, 502, 503]


def test_without_ids_rows_are_numbered_in_the_order_of_races(rows):
    both = results(2, "hill"), results(1, "hill", "clark")
    assert [id for _, id, _ in rows(RESULTS, a_delivery(OTHER, TWO_RACES, *both))] == [1, 2, 3]


def test_the_article_about_a_season_is_that_of_the_source_of_its_calendar(rows):
    of_2024 = a_calendar(a_race(1, year=2024, date="2024-01-15"), season=2024)
    for known, expected in (("other", "other"), (None, "base")):
        of_base = [{"year": 2024, "url": "base"}]
        base = a_delivery(BASE, ONE_RACE, results(1, "hill"), seasons=of_base)
        other = a_delivery(OTHER, of_2024, seasons=[{"year": 2024, "url": known}])
        assert rows("SELECT url FROM seasons WHERE year = 2024", base, other) == [(expected,)]


def test_races_keep_the_ids_of_the_base_and_others_get_free_ones(rows):
    renamed = a_calendar(a_race(1, name="Prix", circuitId="circuit_2", date="2023-02-16"))
    said = [
        a_delivery(BASE, TWO_RACES, results(1, "hill", first_id=1)),
        a_delivery(API, a_calendar(*renamed.races, a_race(3)), results(3, "hill")),
    ]
    # that of the race that the calendar lacks stays free
    assert rows("SELECT round, raceId FROM races", *said) == [(1, 72), (3, 73)]


def test_a_race_that_only_the_calendar_that_counts_has_keeps_its_id(store, rows):
    """As after a later calendar that lacks the race, which may still be cancelled."""
    first, second = a_race(1, raceId=71), a_race(2, raceId=72)
    rows(RESULTS, a_delivery(BASE, TWO_RACES, results(1, "hill", first_id=1)))
    both = stored_calendar("base", first, second).races
    store.put_calendar(stored_calendar("base", second, counting=both))
    assert rows("SELECT round, raceId FROM races") == [(1, 71), (2, 72)]


def test_a_race_has_the_id_of_the_first_source_whose_ids_are_kept(rows):
    other = a_delivery(OTHER._replace(ids="base"), a_calendar(a_race(1, raceId=81)))
    base = a_delivery(BASE, TWO_RACES, results(1, "hill", first_id=1))
    assert rows("SELECT raceId FROM races", base, other) == [(71,), (72,)]


# Which car a record is about.


def qualifying(*drivers, constructor):
    names = ("driverId", "constructorId", "position")
    return Part(2023, 1, "qualifying", names, [[each, constructor, 1] for each in drivers])


CARS = "SELECT constructorRef FROM qualifying JOIN constructors USING (constructorId)"


@pytest.mark.parametrize(
    ("drivers", "in_own_results", "in_qualifying", "expected"),
    [
        (["hill"], "lotus-climax", "lotus-climax", "lotus"),
        (["hill"], "lotus-climax", "brm", "brm"),
        (["hill", "hill"], "cooper", "cooper", "cooper"),  # of two cars
    ],
)
def test_a_car_has_the_constructor_of_the_chosen_results_if_its_source_names_one_car(
    rows, drivers, in_own_results, in_qualifying, expected
):
    of_base = results(1, *drivers, first_id=1)
    of_base.rows[-1][2] = "brm" if len(drivers) > 1 else "lotus"
    own = results(1, "hill", constructor=in_own_results)
    others = own, qualifying("hill", constructor=in_qualifying)
    said = [a_delivery(BASE, ONE_RACE, of_base), a_delivery(OTHER, ONE_RACE, *others)]
    assert rows(CARS, *said) == [(expected,)]


def test_entries_of_another_source_are_those_of_drivers_without_a_result(rows):
    columns = ("driverId", "constructorId")
    entries = Part(2023, 1, "entries", columns, [["amon", "brm"], ["hill", "brm"]])
    base = a_delivery(BASE, ONE_RACE, results(1, "clark", first_id=1), entries)
    api = a_delivery(API, ONE_RACE, results(1, "amon"))
    sql = """SELECT driverRef, constructorRef FROM entries
             JOIN drivers USING (driverId) JOIN constructors USING (constructorId) ORDER BY 1"""
    assert rows(sql, base, api) == [("amon", "lotus"), ("hill", "brm")]


def test_sessions_of_another_source_have_an_origin_of_their_own(rows):
    session = {"session": "fp1", "date": "2023-01-13", "time": "11:30:00"}
    theirs = a_calendar(a_race(1, sessions=[session]))
    said = a_delivery(BASE, ONE_RACE, results(1, "hill")), a_delivery(OTHER, theirs)
    sql = "SELECT kind, name FROM origins JOIN sources USING (sourceId) ORDER BY kind"
    assert rows(sql, *said) == [("races", "base"), ("results", "base"), ("sessions", "other")]
    assert rows("SELECT raceId, date FROM sessions") == [(71, "2023-01-13")]

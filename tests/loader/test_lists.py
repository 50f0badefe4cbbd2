"""racedata.loader.lists: what the sources' lists become in a database, and which ids they get.

What further dumps add to the lists is in test_several_sources.py.
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
    a_source,
    an_api,
    put,
    results,
    row_of,
)

from racedata.loader.choose import choose
from racedata.loader.corrections import Corrections
from racedata.loader.errors import LoadError
from racedata.loader.fill import Filling
from racedata.loader.stage import staged

# Statuses: their ids are in addresses.

STATUSES = "SELECT status, statusId FROM status ORDER BY statusId"


def test_a_status_of_another_source_keeps_its_id_if_that_is_free(rows):
    lists = {"status": [row_of("status", 1, "Lapped"), row_of("status", 143, "Illness")]}
    lapped, ill = results(1, "hill", status="Lapped"), results(2, "hill", status="Illness")
    said = [
        a_delivery(OTHER, ONE_RACE, results(1, "hill")),
        a_delivery(a_source("third"), TWO_RACES, lapped, ill, **lists),
        a_delivery(API, TWO_RACES, lapped, results(2, "hill", status="x")),
    ]
    assert rows(STATUSES, *said) == [("Finished", 1), ("Lapped", 2), ("x", 3)]


def test_statuses_keep_their_ids_when_sources_come_and_go(store, rows):
    def put_all(*deliveries):
        put(store, a_delivery(OTHER, TWO_RACES, results(1, "hill")), *deliveries)
        return dict(rows(STATUSES))

    def third(**lists):
        return a_delivery(a_source("third"), TWO_RACES, results(2, "hill", status="Fumes"), **lists)

    api = a_delivery(API, TWO_RACES, results(2, "hill", "clark", status="Lapped"))
    assert put_all(api) == {"Finished": 1, "Lapped": 2}
    assert put_all(api, a_delivery(a_source("third"), TWO_RACES)) == {"Finished": 1, "Lapped": 2}
    store.order(["other", "third"])
    # neither a number that is free now nor that of the source is one that another status had
    assert put_all(third()) == {"Finished": 1, "Fumes": 3}
    assert put_all(third(status=[row_of("status", 2, "Fumes")])) == {"Finished": 1, "Fumes": 3}
    store.order(["api", "other"])
    assert put_all() == {"Finished": 1, "Lapped": 2}


# Drivers.


def lists_of(store, *deliveries):
    """What the lists of sources become, after deliveries."""
    put(store, *deliveries)
    corrections = Corrections([])
    choice = choose(
        store.sources(), store.calendars(), store.parts(), corrections.corrected_calendar
    )
    with staged(lambda text: None) as stage:
        return Filling(stage, store, choice, corrections).lists


def driver(reference, **facts):
    return row_of("drivers", 1, reference) | facts


HILL = {"surname": "HILL", "dob": "1929-02-15"}


def test_drivers_are_matched_by_birth_date_and_surname_and_added_if_a_record_needs_them(rows):
    """Statuses are matched in any letter case."""
    base = a_delivery(
        BASE,
        ONE_RACE,
        drivers=[driver("hill", dob=HILL["dob"])],
        status=[row_of("status", 1, "Engine")],
    )
    theirs = [driver("graham_hill", **HILL), driver("clark"), driver("moss")]
    other = a_delivery(
        OTHER, ONE_RACE, results(1, "graham_hill", "clark", status="ENGINE"), drivers=theirs
    )
    assert rows("SELECT driverRef FROM drivers ORDER BY 1", base, other) == [("clark",), ("hill",)]
    assert rows("SELECT status FROM status") == [("Engine",)]


def test_two_drivers_of_a_source_that_match_the_same_one_are_refused(rows):
    base = a_delivery(BASE, ONE_RACE, drivers=[driver("hill", dob=HILL["dob"])])
    both = [driver("hill"), driver("graham_hill", **HILL)]
    other = a_delivery(OTHER, ONE_RACE, results(1, "hill", "graham_hill"), drivers=both)
    said = "other: drivers 'graham_hill' and 'hill' both match 'hill', by reference or by birth"
    with pytest.raises(LoadError, match=said):
        rows("SELECT 1", base, other)


def test_facts_of_an_api_replace_those_of_a_dump_and_those_of_another_dump_never_do(rows):
    of_base = results(1, "hill", first_id=1), [driver("hill")]
    damon = [driver("hill", code="DHI", forename="Damon")]
    graham = [driver("hill", forename="Graham", code=None)]
    both = results(1, "hill"), results(2, "hill")
    said = [
        a_delivery(BASE, ONE_RACE, of_base[0], drivers=of_base[1]),
        a_delivery(OTHER, TWO_RACES, *both, drivers=damon),
        a_delivery(API, ONE_RACE, results(1, "hill"), drivers=graham),
    ]
    sql = "SELECT forename, surname, code FROM drivers"
    assert rows(sql, *said) == [("Graham", "Hill", None)]


def test_the_source_of_a_fact_is_the_most_trusted_api_that_has_it(store):
    def saying(source, round, forename):
        row = driver("hill", forename=forename)
        return a_delivery(source, TWO_RACES, results(round, "hill"), drivers=[row])

    base = a_delivery(BASE, TWO_RACES, drivers=[driver("hill", forename="Graham")])
    second = saying(an_api("second"), 2, "Graham")
    for forename in ("Graham", "Norman"):
        lists = lists_of(store, base, saying(an_api("first"), 1, forename), second)
        assert lists.merged["drivers"].rows[1]["forename"] == forename
        assert lists.source_of_fact("drivers", "hill", ("forename", forename)) == "first"


def test_of_dumps_the_base_is_the_source_of_a_fact_even_if_another_is_more_trusted(store):
    other = a_delivery(OTHER, ONE_RACE, results(1, "hill"))
    lists = lists_of(store, other, a_delivery(BASE, ONE_RACE, drivers=[driver("hill")]))
    assert lists.source_of_fact("drivers", "hill", ("surname", "Hill")) == "base"


@pytest.mark.parametrize(("round_of_other", "expected"), [(3, 3), (1, 33), (2, 33)])
def test_a_drivers_number_is_that_of_the_most_trusted_source_with_the_newest_result(
    rows, round_of_other, expected
):
    races = a_calendar(*(a_race(n, raceId=70 + n) for n in (1, 2, 3)))
    of_base, of_other = results(2, "max", first_id=1), results(round_of_other, "max")
    said = [
        a_delivery(BASE, races, of_base, drivers=[driver("max", number=33)]),
        a_delivery(OTHER, races, of_other, drivers=[driver("max", number=3)]),
    ]
    assert rows("SELECT number FROM drivers", *said) == [(expected,)]


def test_the_source_with_the_newest_result_gives_the_number_even_if_no_record_of_the_driver_counts(
    rows,
):
    said = [
        a_delivery(BASE, TWO_RACES, results(1, "hill"), drivers=[driver("hill", number=3)]),
        a_delivery(
            OTHER,
            TWO_RACES,
            results(1, "hill"),
            results(2, "clark"),
            drivers=[driver("hill", number=7), driver("clark")],
        ),
    ]
    assert rows("SELECT driverRef, number FROM drivers", *said) == [("hill", 7), ("clark", None)]

"""racedata.loader.update: what news of a source change in the store, and what they may not."""

import shutil
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import SAMPLE
from support.loads import built, csv_rows, edited, rows_of, select
from support.stores import (
    a_calendar,
    a_delivery,
    a_race,
    a_source,
    an_api,
    in_order,
    put,
    results,
)

from racedata.loader.correction_lines import Correction, Line
from racedata.loader.corrections import Corrections
from racedata.loader.errors import LoadError
from racedata.loader.update import check_calendars, keyed, put_news

NOW, EARLIER = "2023-12-24T06:00:00Z", "2023-12-23T06:00:00Z"
DUMP = a_source("dump", ids="dump")
API = an_api("api", read_at=NOW)
RACES = [a_race(1, raceId=1), a_race(2, raceId=2), a_race(3, raceId=3)]
CALENDAR = a_calendar(*RACES)
# the third race has not been run
SAID = [CALENDAR, results(1, "hill", "clark"), results(2, "clark", "hill")]


def news(store, delivery, may_be_shorter=False, now=NOW):
    """Puts news. Returns the lines that say what was not added."""
    said = put_news(store, delivery, Corrections([]), may_be_shorter, datetime.fromisoformat(now))
    in_order(store, delivery.source.name)
    return said


def entrants(store, source="api"):
    """How many entrants each part of a source has."""
    return {
        (part.race[-1], part.kind): part.entrants for part in store.parts() if part.source == source
    }


# Parts.


def of_kind(kind, *drivers):
    return results(1, *drivers)._replace(kind=kind)


BOTH = results(1, "hill", "clark")
LAPS = of_kind("fastest_laps", "hill")


@pytest.mark.parametrize(
    ("parts", "may_be_shorter", "is_put"),
    [
        ([results(1, "hill")], False, False),
        ([results(1, "hill")], True, True),  # the season was named
        ([results(1, "amon", "clark")], False, True),
        ([of_kind("entries", "amon")], False, True),
        ([BOTH, LAPS], False, True),
        ([LAPS], False, False),
        ([of_kind("qualifying", "hill")], False, False),
    ],
    ids=["fewer", "on request", "others", "entries", "laps with results", "laps", "qualifying"],
)
def test_a_part_that_is_shorter_than_before_is_not_put_and_named(
    store, parts, may_be_shorter, is_put
):
    kind = parts[-1].kind
    before = [] if kind == "results" else [of_kind(kind, "hill", "clark")]
    news(store, a_delivery(API, *SAID, *before))
    said = news(store, a_delivery(API, CALENDAR, *parts, results(3, "hill")), may_be_shorter)
    what = "fewer records than this source had before; not used"
    assert said == ([] if is_put else [f"{kind} of 2023/1 Grand Prix 1: {what}"])
    found = entrants(store)
    assert found["1", kind] == (parts[-1].entrants if is_put else 2)
    assert found["3", "results"] == 1 and found["2", "results"] == 2  # news only add


def test_a_part_is_compared_only_with_that_of_the_same_source_and_race(store):
    put(store, a_delivery(DUMP, *SAID))
    assert news(store, a_delivery(API, CALENDAR, results(1, "hill"))) == []
    renamed = a_calendar(RACES[1], RACES[0] | {"round": 4}, RACES[2])
    assert news(store, a_delivery(API, renamed, results(2, "hill"))) == []
    assert len(news(store, a_delivery(API, renamed, results(4)))) == 1


def test_records_of_a_race_that_the_calendar_lacks_are_left_out(store):
    news(store, a_delivery(API, CALENDAR, results(9, "hill")))
    assert entrants(store) == {}


def test_a_load_replaces_all_that_a_source_has_said(store):
    put(store, a_delivery(DUMP, *SAID))
    put(store, a_delivery(DUMP, a_calendar(*RACES[:2]), results(1, "amon")))
    assert entrants(store, "dump") == {("1", "results"): 1}
    assert len(store.calendar("dump", 2023).races) == 2
    assert [row["driverRef"] for row in store.list_rows("dump", "drivers")] == ["amon"]


# What a load said about a source.


@pytest.mark.parametrize("ids", ["dump", None])
def test_news_leave_a_loaded_source_its_place_and_its_address_and_have_their_own_ids(store, ids):
    put(store, a_delivery(DUMP, *SAID), a_delivery(a_source("other"), CALENDAR))
    asked = a_source("dump", address="/elsewhere", is_loaded=False, ids=ids, read_at=NOW)
    news(store, a_delivery(asked, *SAID))
    source = store.sources()[0]
    assert source == DUMP._replace(read_at=NOW, reading=3, ids=ids)


def test_a_source_that_left_the_list_joins_it_again_as_one_that_was_not_loaded(store):
    put(store, a_delivery(DUMP, *SAID))
    put(store, a_delivery(a_source("other", ids="other"), *SAID))
    assert [source.name for source in store.sources()] == ["other"]
    asked = a_source("dump", address="/elsewhere", is_loaded=False, ids="dump", read_at=NOW)
    news(store, a_delivery(asked, *SAID))
    other, source = store.sources()
    assert other.is_loaded
    assert source == asked._replace(place=2, reading=3)


def test_a_source_that_was_the_base_and_is_out_of_reach_leaves_the_ids_to_the_new_base(tmp_path):
    dump = edited(SAMPLE, tmp_path / "dump")
    database = built(dump, tmp_path / "x.db")
    shutil.rmtree(dump)

    def renumbered(row):  # and without the results of one race, which had ids in between
        same_ids = row | {"resultId": str(int(row["resultId"]) + 20)}
        return same_ids if row["raceId"] != "67" else None

    further = edited(SAMPLE, tmp_path / "further", results=renumbered)
    before = rows_of(database)
    built([further, dump], database)
    assert rows_of(database) == before
    ids = [int(row["resultId"]) for row in csv_rows(further, "results")]
    assert {*ids} <= {id for (id,) in select(database, "SELECT resultId FROM results")}


# Calendars.


def lacking(*rounds):
    return a_calendar(*(race for race in RACES if race["round"] not in rounds))


def counting(store, source="api"):
    return [race["round"] for race in store.calendar(source, 2023).counting or ()]


def test_a_calendar_that_lacks_a_race_with_results_never_counts_and_is_named(store):
    news(store, a_delivery(API, *SAID))
    news(store, a_delivery(API, lacking(2)), now=EARLIER)
    said = news(store, a_delivery(API, lacking(2)))
    what = "the database has results of that race; not used"
    assert said == [f"the calendar of 2023, which lacks Grand Prix 2: {what}"]
    assert counting(store) == [1, 2, 3]
    assert [race["round"] for race in store.calendar("api", 2023).races] == [1, 3]
    assert news(store, a_delivery(API, lacking(2)), may_be_shorter=True) == []
    assert counting(store) == [1, 3]


def test_a_calendar_that_lacks_a_race_counts_when_the_race_is_cancelled(store):
    """Unless the race is back."""
    news(store, a_delivery(API, *SAID))
    later = "2023-12-24T17:59:59Z"
    for lacks, now, since in [
        (True, EARLIER, EARLIER),
        (False, NOW, None),
        (True, NOW, NOW),
        (True, later, NOW),
    ]:
        said = news(store, a_delivery(API, lacking(3) if lacks else CALENDAR), now=now)
        begins = "2023 Grand Prix 3: missing from the source's calendar; that calendar"
        assert [line[: len(begins)] for line in said] == [begins] * lacks
        assert counting(store) == [1, 2, 3]
        assert store.calendar("api", 2023).lacks == ({"Grand Prix 3": since} if since else {})
    assert news(store, a_delivery(API, lacking(3)), now="2023-12-24T18:00:00Z") == []
    assert counting(store) == [1, 2]
    assert store.calendar("api", 2023).lacks == {}


def test_a_calendar_that_lacks_two_races_counts_when_both_are_cancelled(store):
    four = a_calendar(*RACES, a_race(4))
    news(store, a_delivery(API, four, *SAID[1:]))
    three = a_calendar(*RACES)
    for calendar, now, races in [
        (three, EARLIER, [1, 2, 3, 4]),
        (lacking(3), NOW, [1, 2, 3, 4]),  # one has been missing for a day
        (lacking(3), "2023-12-24T18:00:00Z", [1, 2]),
    ]:
        news(store, a_delivery(API, calendar), now=now)
        assert counting(store) == races


def test_a_new_source_whose_calendar_lacks_a_race_gives_records_but_no_calendar(store):
    put(store, a_delivery(DUMP, *SAID))
    assert len(news(store, a_delivery(API, lacking(3), results(1, "amon", "hill")))) == 1
    assert store.calendar("api", 2023).counting is None
    assert entrants(store) == {("1", "results"): 2}


def test_a_new_season_or_a_calendar_that_never_counts_lacks_no_race(store):
    put(store, a_delivery(DUMP, *SAID))
    next_year = a_calendar(a_race(1, year=2024, date="2024-03-02"), season=2024)
    assert news(store, a_delivery(API, next_year)) == []
    assert len(store.calendar("api", 2024).counting) == 1
    openf1 = a_source("openf1", is_loaded=False, is_provisional=True)
    assert news(store, a_delivery(openf1, a_calendar(RACES[0], may_count=False))) == []
    assert store.calendar("openf1", 2023).counting is None


def test_a_race_that_is_renamed_or_moved_is_not_missing_and_keeps_its_records(store):
    news(store, a_delivery(API, *SAID))
    changed = a_calendar(
        RACES[0] | {"name": "Prix", "round": 2},
        RACES[1] | {"circuitId": "elsewhere", "date": "2023-09-01", "round": 3},
        RACES[2] | {"round": 1},
    )
    assert news(store, a_delivery(API, changed)) == []
    assert [race["key"] for race in store.calendar("api", 2023).counting] == [
        "Grand Prix 1",
        "Grand Prix 2",
        "Grand Prix 3",
    ]


def test_a_race_with_another_name_and_date_in_another_source_is_not_missing(store):
    put(store, a_delivery(DUMP, *SAID))
    other = [
        race | {"name": f"Prix {race['round']}", "date": f"{race['date'][:8]}16"} for race in RACES
    ]
    assert news(store, a_delivery(API, a_calendar(*other))) == []
    assert counting(store) == [1, 2, 3]


def test_another_race_at_its_circuit_is_not_the_race_that_the_same_source_had_there(store):
    news(store, a_delivery(API, *SAID))
    instead = a_race(4, circuitId="circuit_2")
    (said,) = news(store, a_delivery(API, a_calendar(RACES[0], instead, RACES[2])))
    assert said.startswith("the calendar of 2023, which lacks Grand Prix 2: ")


EARLY = {"date": "2023-01-02"}


def fp1(date):
    return {"sessions": [{"session": "fp1", "date": date, "time": None}]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"date": "2022-12-31"}, "the date of 2023/1 Grand Prix 1 is '2022-12-31'; expected a"),
        (fp1("2024-01-01"), "the date of fp1 of 2023/1 Grand Prix 1 is '2024-01-01'; expected a"),
        (EARLY | fp1("2022-12-31"), ""),  # sessions of an early race may be in December
        (EARLY | fp1("2022-11-30"), "the date of fp1 of 2023/1 Grand Prix 1 is '2022-11-30'; exp"),
        ({"name": "Grand Prix 2"}, "2023/1 and 2023/2 have the same name"),
        (
            {"circuitId": "circuit_2", "date": "2023-02-15"},
            "2023/1 and 2023/2 have the same circuit and date; expected different ones",
        ),
    ],
)
def test_a_wrong_calendar_is_refused_with_its_place(store, changes, said):
    put(store, a_delivery(API, a_calendar(RACES[0] | changes, RACES[1])))
    if not said:
        check_calendars(store, Corrections([]))
        return
    with pytest.raises(LoadError) as error:
        check_calendars(store, Corrections([]))
    assert str(error.value).startswith(f"api: {said}")


def test_a_correction_mends_a_wrong_calendar(store):
    put(store, a_delivery(API, a_calendar(a_race(1, date="2032-01-15"))))
    correction = Correction("races", "2023/1", "date", "2032-01-15", "2023-01-15", "a test")
    check_calendars(store, Corrections([Line("x", correction)]))


# The keys of races.

IMOLA = a_race(1, name="Imola", url="https://example.org/imola", circuitId="imola")
MONACO = a_race(2, name="Monaco", url="https://example.org/monaco", circuitId="monaco")
BEFORE = keyed([IMOLA, MONACO], [])


def test_a_key_stays_when_a_race_is_renamed_and_a_new_race_with_its_former_name_gets_its_own():
    races = BEFORE
    for name in ("Made in Italy", "Monaco 2", "Emilia-Romagna"):
        races = keyed([IMOLA | {"name": name, "round": 5}, MONACO], races)
    assert [race["key"] for race in races] == ["Imola", "Monaco"]
    new = a_race(9, name="Imola")
    races = keyed([IMOLA | {"name": "Emilia-Romagna"}, new, MONACO], races)
    assert [race["key"] for race in races] == ["Imola", "Imola 2", "Monaco"]
    again = keyed([new | {"name": "Other"}, IMOLA | {"name": "Emilia-Romagna"}], races)
    assert [race["key"] for race in again] == ["Imola 2", "Imola"]


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.lists(st.sampled_from("abcdef")))
def test_no_two_races_of_a_calendar_have_the_same_key(names, former):
    def races(names):
        return [a_race(at, name=name) for at, name in enumerate(dict.fromkeys(names), 1)]

    found = [race["key"] for race in keyed(races(names), keyed(races(former), []))]
    assert len({*found}) == len(names)


FP1 = [{"session": "fp1", "date": IMOLA["date"], "time": "12:00:00"}]


NEW = {"sessions": [FP1[0] | {"session": "fp2"}], "time": "14:00:00"}


@pytest.mark.parametrize(
    ("changes", "sessions", "time"),
    [
        ({"date": "2023-01-15"}, FP1, "13:00:00"),
        ({"date": "2023-01-16"}, FP1, None),
        ({"date": "2023-01-17"}, [], None),
        (NEW, NEW["sessions"], "14:00:00"),
    ],
)
def test_sessions_and_the_start_stay_known_unless_there_are_new_ones_or_the_race_has_moved(
    changes, sessions, time
):
    before = keyed([IMOLA | {"sessions": FP1, "time": "13:00:00"}], [])
    (race,) = keyed([IMOLA | changes], before)
    assert (race["sessions"], race["time"]) == (sessions, time)

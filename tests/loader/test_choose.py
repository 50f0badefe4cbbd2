"""racedata.loader.choose: what counts, from what several sources say, without any file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stores import a_race, a_source, an_api, stored_calendar, stored_part

from racedata.loader.choose import choose

FIRST, SECOND = a_source("first", place=1), a_source("second", place=2)
API = an_api(place=1)
DUMP = a_source("dump", place=2)
OPENF1 = a_source("openf1", place=1, is_loaded=False, is_provisional=True)


def chosen(sources, calendars, parts=(), correct=lambda season, races: list(races)):
    before = repr(calendars)
    choice = choose(sources, calendars, parts, correct)
    assert repr(calendars) == before  # nothing that was stored is changed
    return choice


def winners(sources, parts, rounds=(1, 2, 3)):
    """The sources of the parts of round 1, by kind. All sources have the same calendar."""
    calendars = [stored_calendar(each.name, *map(a_race, rounds)) for each in sources]
    race = chosen(sources, calendars, parts).races[0]
    return {kind: part.source for kind, part in race.parts.items()}


# Parts.

# The dump was read in December, after the API, and has the results of a later race.
STALE = stored_part("api", 1, confirmed_at="2023-10-01T06:00:00Z", reading=1)
NEWER = [stored_part("dump", 1, reading=2), stored_part("dump", 3, reading=2)]
LATER_DUMP = DUMP._replace(reading=2)
OLD = stored_part("first", 1, confirmed_at="2020-01-01T00:00:00Z")
OTHER = a_source("other", place=3, reading=3)


def parts_of(kind="results", **entrants):
    """A part of each source of round 1, with so many entrants."""
    return [stored_part(name, 1, kind, entrants=count) for name, count in entrants.items()]


# How many entrants the part of each source has, if it has one, in the order of the list, and whose
# part counts.
CASES = """
first 20, second 20: first
openf1 20, dump 0: openf1
openf1 20, dump 20: dump
api 19, dump 20: dump
api 21, dump 20: api
first 19, second 20: first
api 18, dump 17, other 20: other
api 18, dump 18, other 20: other
api 18, dump 19, other 20: dump
first 17, api 18, other 20: first
api 19, openf1 20: api
"""
NAMED = {source.name: source for source in (FIRST, SECOND, API, DUMP, OPENF1, OTHER)}


@pytest.mark.parametrize("case", CASES.strip().splitlines())
def test_the_part_that_counts_is_that_of_the_first_source_unless_an_api_has_fewer_entrants(case):
    said, winner = case.split(": ")
    entrants = {name: int(count) for name, count in map(str.split, said.split(", "))}
    sources = [NAMED[name]._replace(place=place) for place, name in enumerate(entrants, 1)]
    parts = [part for part in parts_of(dropped=30, **entrants) if part.entrants]
    assert winners(sources, parts) == {"results": winner}


# An API's part that it has not confirmed for 30 days, and a later dump.
OF_API = {
    "old": ([API, LATER_DUMP], [STALE, *NEWER], "dump"),
    "the dump was before": ([API, LATER_DUMP], [STALE._replace(reading=3), *NEWER], "api"),
    "no later race": ([API, LATER_DUMP], [STALE, NEWER[0]], "api"),
    "only refreshed": ([API, LATER_DUMP._replace(is_loaded=False)], [STALE, *NEWER], "api"),
    "no other has it": ([API, LATER_DUMP], [STALE, NEWER[1]], "api"),
    "an old dump": ([FIRST, LATER_DUMP], [OLD, *NEWER], "first"),
    "any newer dump": (
        [API, DUMP, OTHER],
        [STALE, NEWER[0], stored_part("other", 3, reading=3)],
        "dump",
    ),
}


@pytest.mark.parametrize(("sources", "parts", "winner"), OF_API.values(), ids=OF_API)
def test_an_old_part_of_an_api_comes_after_that_of_a_later_dump(sources, parts, winner):
    assert winners(sources, parts)["results"] == winner


@pytest.mark.parametrize(
    ("confirmed_at", "winner"),
    [
        ("2023-10-31T06:00:00Z", "dump"),
        ("2023-11-01T06:00:00Z", "api"),
        ("2023-12-01T06:00:00Z", "api"),
        ("2023-12-01T06:00:01Z", "dump"),  # the clock was ahead
        ("2099-01-01T00:00:00Z", "dump"),
    ],
)
def test_what_an_api_confirmed_within_30_days_before_the_dump_counts(confirmed_at, winner):
    parts = [STALE._replace(confirmed_at=confirmed_at), *NEWER]
    assert winners([API, LATER_DUMP], parts) == {"results": winner}


def test_each_kind_is_chosen_for_itself_and_parts_that_lose_are_kept_in_order():
    sources = [FIRST, SECOND, OTHER]
    parts = [*parts_of(other=20, first=20, second=20), *parts_of("qualifying", second=20)]
    parts += parts_of("entries", second=1)  # of another source than the results
    calendars = [stored_calendar(each.name, a_race(1)) for each in sources]
    (race,) = chosen(sources, calendars, parts).races
    assert [part.source for part in race.others["results"]] == ["second", "other"]
    assert race.parts["qualifying"].source == "second" and "entries" not in race.parts
    assert [part.source for part in race.ranked_parts("entries")] == ["second"]


@pytest.mark.parametrize(
    ("sources", "entrants", "smaller"),
    [
        ([API, DUMP], {"api": 19, "dump": 20}, ["results of 2023/1 Grand Prix 1"]),
        ([FIRST, API._replace(place=2)], {"api": 19, "first": 20}, []),  # it would not count
    ],
)
def test_a_short_part_of_an_api_that_would_count_is_named(sources, entrants, smaller):
    calendars = [stored_calendar(each.name, a_race(1)) for each in sources]
    assert chosen(sources, calendars, parts_of(**entrants)).smaller == smaller


@given(st.permutations(["api", "dump", "openf1"]), st.permutations(["api", "dump", "openf1"]))
def test_the_order_in_which_sources_were_stored_does_not_count(of_calendars, of_parts):
    sources = [API, DUMP, OPENF1._replace(place=3)]
    calendars = [stored_calendar(name, a_race(1)) for name in of_calendars]
    (race,) = chosen(sources, calendars, [stored_part(name, 1) for name in of_parts]).races
    assert race.parts["results"].source == "api" and race.calendar.source == "api"
    assert [part.source for part in race.others["results"]] == ["dump", "openf1"]


@pytest.mark.parametrize(("entrants_of_results", "winner"), [(20, "api"), (18, "dump")])
def test_fewer_fastest_laps_are_short_only_if_the_results_of_the_same_api_do_not_count(
    entrants_of_results, winner
):
    laps = parts_of("fastest_laps", dump=20, api=19)
    results = parts_of(dump=20, api=entrants_of_results)
    assert winners([API, DUMP], laps + results)["fastest_laps"] == winner


@pytest.mark.parametrize(
    ("sources", "with_entries", "expected"),
    [
        ([FIRST, SECOND], ["first", "second"], "first"),
        ([FIRST, SECOND], ["second"], None),  # two dumps are never mixed
        ([API, DUMP], ["dump"], "dump"),  # an API lists none
        ([API, DUMP], ["api", "dump"], "api"),
        ([API, DUMP, OTHER], ["other", "dump"], "dump"),
    ],
)
def test_entries_are_from_the_source_of_the_results_or_complete_an_api(
    sources, with_entries, expected
):
    entries = parts_of("entries", **dict.fromkeys(with_entries, 1))
    results = parts_of(**{sources[0].name: 20})
    assert winners(sources, results + entries).get("entries") == expected
    assert winners(sources, entries) == {}  # without results, there are none


# Calendars.


def test_the_calendar_of_a_season_is_that_of_the_first_source_that_has_one():
    """Its races are in the order of their rounds."""
    calendars = [
        stored_calendar("second", a_race(1), a_race(2)),
        stored_calendar("first", a_race(10), a_race(2), a_race(1, name="Prix 1")),
        stored_calendar("second", a_race(1, year=2022, date="2022-01-15"), season=2022),
    ]
    races = chosen([FIRST, SECOND], calendars).races
    assert [(race.season, race.facts["round"], race.calendar.source) for race in races] == [
        (2022, 1, "second"),
        *((2023, round, "first") for round in (1, 2, 10)),
    ]
    assert races[1].name == "Prix 1"


@pytest.mark.parametrize(("source", "facts"), [(API, {"counting": None}), (OPENF1, {})])
def test_a_calendar_that_may_not_count_only_says_which_race_is_which(source, facts):
    calendars = [
        stored_calendar(source.name, a_race(1), a_race(2), **facts),
        stored_calendar("dump", a_race(1)),
    ]
    choice = chosen([source, DUMP], calendars, [stored_part(source.name, 1)])
    assert [race.label for race in choice.races] == ["2023/1 Grand Prix 1"]
    assert choice.races[0].parts["results"].source == source.name
    assert chosen([source], calendars[:1]).races == []


def test_races_of_the_calendar_that_counts_keep_their_parts_and_sessions_if_a_newer_one_does_not():
    twin = a_race(2, circuitId="circuit_1", sessions=[session("2023-02-14")])
    before = stored_calendar("api", a_race(1), twin)
    now = before._replace(races=before.races[:1])
    races = chosen([API], [now], [stored_part("api", 2)]).races
    assert [(race.name, {*race.parts}, bool(race.sessions)) for race in races] == [
        ("Grand Prix 1", set(), False),
        ("Grand Prix 2", {"results"}, True),
    ]


@pytest.mark.parametrize(
    ("fetched_at", "reading", "winner"),
    [
        ("2023-10-01T06:00:00Z", 1, "dump"),
        ("2023-11-15T06:00:00Z", 1, "api"),
        ("2023-10-01T06:00:00Z", 3, "api"),
        ("2099-01-01T00:00:00Z", 1, "dump"),
    ],
)
def test_an_apis_old_calendar_comes_after_that_of_a_later_dump(fetched_at, reading, winner):
    calendars = [
        stored_calendar("api", a_race(1), fetched_at=fetched_at),
        stored_calendar("dump", a_race(1), a_race(3)),
    ]
    (race, *_) = chosen(
        [API._replace(reading=reading), LATER_DUMP], calendars, [stored_part("dump", 3)]
    ).races
    assert race.calendar.source == winner


# Which race is which.


def test_a_race_with_another_name_and_round_is_the_same_at_its_circuit_and_date():
    calendars = [
        stored_calendar("first", a_race(1)),
        stored_calendar("second", a_race(7, name="Prix", circuitId="circuit_1", date="2023-01-16")),
    ]
    part = stored_part("second", 1, race="Prix")
    choice = chosen([FIRST, SECOND], calendars, [part])
    assert choice.races[0].keys == {"first": "Grand Prix 1", "second": "Prix"}
    assert choice.races[0].parts == {"results": part} and choice.unmatched == []


def test_a_race_with_records_that_matches_none_is_named_once():
    calendars = [stored_calendar("first", a_race(1)), stored_calendar("second", a_race(2))]
    parts = [stored_part("second", 2), stored_part("second", 2, "qualifying")]
    choice = chosen([FIRST, SECOND], calendars, parts)
    assert choice.unmatched == ["2023/2 Grand Prix 2"]
    assert [race.parts for race in choice.races] == [{}]
    assert chosen([FIRST, SECOND], calendars).unmatched == []
    assert chosen([FIRST], calendars, parts).unmatched == []  # not in the list
    assert chosen([FIRST], calendars[1:]).races == []


# Sessions and start times.


def session(date, time=None, name="fp1"):
    return {"session": name, "date": date, "time": time}


def times(*races):
    """The source of the sessions of a race that sources describe differently, and its start."""
    sources = [a_source(f"s{at}", place=at) for at in range(1, len(races) + 1)]
    calendars = [stored_calendar(each.name, race) for each, race in zip(sources, races)]
    (race,) = chosen(sources, calendars).races
    return race.sessions_from and race.sessions_from.source, race.facts["time"]


@pytest.mark.parametrize(
    ("own", "others", "source"),
    [
        ([session("2023-01-13")], [[session("2023-01-14")]], "s1"),
        ([], [[session("2023-01-14")], [session("2023-01-13")]], "s2"),
        ([session(None)], [[session("2023-01-14")]], "s2"),
        ([session(None)], [[session(None)]], "s1"),
        ([], [[session(None, "12:00:00")]], None),
        ([], [[session("2023-01-11")]], "s2"),
        ([], [[session("2023-01-10")]], None),
        ([], [[session("2023-01-10"), session("2023-01-14", name="fp2")]], None),
        ([], [[session("2023-01-10")], [session("2023-01-14")]], "s3"),
        ([], [[session("2023-01-14"), session(None, name="fp2")]], "s2"),
    ],
)
def test_sessions_are_those_of_the_first_source_with_dates_within_four_days(own, others, source):
    races = [a_race(1, sessions=sessions) for sessions in (own, *others)]
    assert times(*races) == (source, None)


@pytest.mark.parametrize(
    ("own", "others", "time"),
    [
        ({"time": "13:00:00"}, [{"time": "14:00:00"}], "13:00:00"),
        ({}, [{}, {"time": "14:00:00"}], "14:00:00"),
        ({}, [{"time": "14:00:00", "date": "2023-01-16"}], None),
        ({}, [{"time": "14:00:00", "date": "2023-01-16"}, {"time": "15:00:00"}], "15:00:00"),
    ],
)
def test_the_start_is_that_of_the_first_source_with_the_same_date(own, others, time):
    assert times(*(a_race(1, **facts) for facts in (own, *others))) == (None, time)


def test_the_start_is_of_the_same_date_after_dates_are_corrected():
    own, other = a_race(1, date="2023-01-14"), a_race(1, date="2023-01-15", time="14:00:00")
    (race,) = chosen(
        [FIRST, SECOND],
        [stored_calendar("first", own), stored_calendar("second", other)],
        correct=lambda season, races: [race | {"date": "2023-01-15"} for race in races],
    ).races
    assert (race.facts["date"], race.facts["time"]) == ("2023-01-14", "14:00:00")

"""racedata.loader.rules: which record wins, decided without a database."""

import pytest

from racedata.loader.rules import (
    LostRaces,
    Part,
    by_preference,
    is_fresher,
    is_too_small,
    lost_races,
    may_replace_calendar,
    only_adds,
    part_of,
)


def loaded(source, as_of="2023-10-22"):
    return Part(source, False, as_of)


def fetched(source, as_of="2023-10-23"):
    return Part(source, True, as_of)


def test_a_part_is_as_of_the_day_it_was_fetched_or_of_the_latest_results_its_source_gave():
    newest = {"base": "2023-10-22", "other": "2023-07-09"}
    assert part_of("api", "2023-10-23T11:00:00Z", newest) == fetched("api")
    assert part_of("other", None, newest) == loaded("other", "2023-07-09")


def test_a_part_of_a_source_without_results_has_the_date_of_the_base():
    assert part_of("sessions only", None, {"base": "2023-10-22", "other": "2023-07-09"}) == loaded(
        "sessions only"
    )
    assert part_of("sessions only", None, {}) == loaded("sessions only", "")


def test_a_further_source_of_a_load_replaces_nothing():
    assert not only_adds(loaded("other", "2024-01-01"), loaded("base"))


@pytest.mark.parametrize(
    ("new", "old", "replaces"),
    [
        (fetched("api", "2023-10-23"), loaded("dump", "2023-10-22"), True),
        (fetched("api", "2023-10-22"), loaded("dump", "2023-10-22"), True),
        (fetched("api", "2023-10-21"), loaded("dump", "2023-10-22"), False),
        (loaded("other", "2023-10-23"), loaded("dump", "2023-10-22"), False),
    ],
)
def test_fetched_records_replace_a_load_without_later_results(new, old, replaces):
    assert is_fresher(new, old) == replaces


@pytest.mark.parametrize(
    ("source", "old", "replaces_others", "replaces"),
    [
        ("f1db", "f1db", False, True),
        ("f1db", "api", True, False),
        ("api", "f1db", False, True),
        ("api", "dump", True, True),
        ("f1db", "dump", False, False),
    ],
)
def test_a_refresh_replaces_records_of_its_source_and_of_less_preferred_ones(
    source, old, replaces_others, replaces
):
    rule = by_preference(["api", "f1db"], source, replaces_others)
    assert rule(fetched(source), loaded(old)) == replaces


def test_a_calendar_replaces_another_only_if_each_of_its_parts_may_replace_each_of_the_others():
    rule = by_preference(["api", "f1db"], "f1db", replaces_others=False)
    new, own, preferred = [fetched("f1db")], fetched("f1db"), fetched("api")
    assert may_replace_calendar(rule, new, [own])
    assert not may_replace_calendar(rule, new, [own, preferred])
    assert may_replace_calendar(rule, new, []), "a missing calendar"
    assert not may_replace_calendar(rule, [], [own]), "no races"


def test_a_calendar_may_lack_only_races_that_are_cancelled():
    assert lost_races([], {"Monaco"}, lambda names: False) is None
    assert lost_races(["Imola"], {"Monaco"}, lambda names: names == ["Imola"]) is None
    assert lost_races(["Imola"], {"Monaco"}, lambda names: False) == LostRaces("", ["Imola"])


def test_a_race_with_results_was_not_cancelled():
    lost = lost_races(["Imola", "Monaco"], {"Monaco"}, lambda names: True)
    assert lost == LostRaces("Monaco", ["Imola", "Monaco"])


@pytest.mark.parametrize(
    ("kind", "new", "with_results", "too_small"),
    [
        ("results", 19, False, True),
        ("results", 20, False, False),
        ("results", 21, False, False),
        ("fastest_laps", 19, False, True),
        ("fastest_laps", 19, True, False),
        ("qualifying", 19, True, True),
    ],
)
def test_a_part_with_fewer_drivers_is_too_small_except_fastest_laps_that_come_with_results(
    kind, new, with_results, too_small
):
    assert is_too_small(kind, new, 20, with_results) == too_small


@pytest.mark.parametrize("order", [["api", "f1db"], ["f1db"], ["f1db", "openf1"]])
def test_provisional_records_give_way_to_every_source_that_is_not_less_preferred(order):
    old = fetched("openf1")._replace(is_provisional=True)
    assert by_preference(order, "f1db", replaces_others=False)(fetched("f1db"), old)
    assert not by_preference(["openf1"], "openf1", replaces_others=False)(old, loaded("f1db"))


def test_a_source_that_is_named_first_keeps_its_provisional_records():
    old = fetched("openf1")._replace(is_provisional=True)
    rule = by_preference(["openf1", "f1db"], "f1db", replaces_others=False)
    assert not rule(fetched("f1db"), old)


def test_provisional_records_never_replace_records_of_a_load():
    new = fetched("openf1", "2023-10-23")
    assert is_fresher(new, loaded("f1db", "2023-10-22"))
    assert not is_fresher(new._replace(is_provisional=True), loaded("f1db", "2023-10-22"))

"""racedata.loader.matching: which race is which."""

import pytest

from racedata.loader.matching import CalendarRace, match_across_sources, match_with_earlier

IMOLA = CalendarRace(1, "Imola Grand Prix", "https://example.org/imola", "imola", "2023-05-21")


@pytest.mark.parametrize(
    ("changes", "matches"),
    [
        ({"url": None, "circuit": "mugello", "date": "2023-06-01"}, True),
        (
            {
                "name": "Grand Prix of Imola",
                "url": "http://example.org/imola",
                "circuit": "mugello",
            },
            True,
        ),
        ({"name": "Grand Prix of Imola", "url": None, "circuit": "Imola"}, True),
        ({"name": "Grand Prix of Imola", "url": None, "date": "2023-05-28"}, False),
        ({"name": "Grand Prix of Imola", "url": None, "circuit": "mugello"}, False),
    ],
    ids=["name", "article", "circuit and date", "another date", "another circuit"],
)
def test_a_race_keeps_its_identity_by_name_or_article_or_circuit_and_date(changes, matches):
    other = IMOLA._replace(id=7, **changes)  # type: ignore[arg-type]
    assert match_with_earlier([IMOLA], [other]) == ({1: 7} if matches else {})


def test_the_same_name_is_a_better_match_than_the_same_day():
    moved, instead = (
        IMOLA._replace(id=7, date="2023-09-01"),
        IMOLA._replace(id=8, name="Another", url=None),
    )
    assert match_with_earlier([IMOLA], [instead, moved]) == {1: 7}


def test_a_race_matches_only_one():
    twin = IMOLA._replace(id=2, name="Twin", url=None)
    assert match_with_earlier([IMOLA, twin], [IMOLA._replace(id=7)]) == {1: 7}


# Of two sources.


@pytest.mark.parametrize(
    ("changes", "matches"),
    [
        ({"date": "2023-05-20"}, True),
        ({"date": "2023-05-22", "circuit": "Imola"}, True),
        ({"date": "2023-09-01"}, True),  # the only race of the season there
        ({"name": "Other"}, True),
        ({}, True),
        ({"circuit": "mugello"}, False),
    ],
    ids=["local date", "letter case", "another date", "name", "same", "another circuit"],
)
def test_the_circuit_and_the_date_or_the_circuit_alone_name_a_race(changes, matches):
    assert match_across_sources([IMOLA], [IMOLA._replace(id=7, **changes)]) == (
        {1: 7} if matches else {}
    )


TWO = [IMOLA, IMOLA._replace(id=2, date="2023-09-01")]  # at one circuit


def test_of_two_races_at_a_circuit_the_date_says_which_one_it_is():
    others = [TWO[1]._replace(id=8, date="2023-09-02"), TWO[0]._replace(id=7)]
    assert match_across_sources(TWO, others) == {1: 7, 2: 8}
    assert match_across_sources(TWO, others[:1]) == {2: 8}
    assert match_across_sources(others[1:], TWO) == {7: 1}


@pytest.mark.parametrize(
    ("dates", "date"),
    [(("2023-05-21", "2023-05-23"), "2023-05-22"), (("2023-05-21", "2023-09-01"), "2023-05-28")],
    ids=["near to both", "another date"],
)
def test_of_two_races_at_a_circuit_one_that_may_be_either_matches_none(dates, date):
    two = [IMOLA._replace(id=id, date=each) for id, each in enumerate(dates, 1)]
    other = IMOLA._replace(id=7, date=date)
    assert match_across_sources(two, [other]) == match_across_sources([other], two) == {}
    assert match_across_sources(two, [other, other._replace(id=8)]) == {}

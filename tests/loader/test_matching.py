"""racedata.loader.matching: which race is which. test_merge.py and test_against.py have the matches
in SQL.
"""

import pytest

from racedata.loader.matching import CalendarRace, match_calendars

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
    assert match_calendars([IMOLA], [other]) == ({1: 7} if matches else {})


def test_the_same_name_is_a_better_match_than_the_same_day():
    moved, instead = (
        IMOLA._replace(id=7, date="2023-09-01"),
        IMOLA._replace(id=8, name="Another", url=None),
    )
    assert match_calendars([IMOLA], [instead, moved]) == {1: 7}


def test_a_race_matches_only_one():
    twin = IMOLA._replace(id=2, name="Twin", url=None)
    assert match_calendars([IMOLA, twin], [IMOLA._replace(id=7)]) == {1: 7}

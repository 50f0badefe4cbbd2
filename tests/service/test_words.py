"""racedata.service.words: what people read instead of names of columns, ids and milliseconds."""

import pytest
from support.answers import client

from racedata.model import KINDS
from racedata.service.catalogue import Catalogue
from racedata.service.snapshot import Snapshot
from racedata.service.words import (
    column_in_words,
    kind_in_words,
    names_of,
    place_in_words,
    value_in_words,
)


@pytest.fixture(scope="module")
def names(sample_database):
    return names_of(Catalogue(Snapshot.read(str(sample_database))))


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("milliseconds", "5721362", "1:35:21.362"),
        ("milliseconds", "unknown", "unknown"),
        ("constructor", "red_bull", "Red Bull"),
        ("constructor", "none", "none"),
        ("grid", "6", "6"),
    ],
)
def test_times_and_constructors_are_written_for_people(names, column, value, words):
    assert value_in_words(column, value, names) == words


def test_a_driver_and_a_constructor_with_one_id_keep_their_names(names):
    both = names._replace(drivers={"mclaren": "Bruce McLaren"})
    assert value_in_words("constructor", "mclaren", both) == "McLaren"


PLACES = "1 2 3 4 11 12 13 21 R ?"


def test_a_place_is_an_ordinal_or_what_its_letter_means():
    words = map(place_in_words, PLACES.split())
    assert " ".join(words) == "1st 2nd 3rd 4th 11th 12th 13th 21st retired ?"


def test_kinds_and_columns_are_in_small_letters():
    assert kind_in_words("driver_standings") == "driver standings"
    assert kind_in_words("drivers") == "drivers"
    assert column_in_words("fastestLapTime") == "fastest lap time"
    assert column_in_words("dob") == "date of birth"
    assert {kind_in_words(kind) for kind in KINDS} == {
        kind.label.lower() for kind in KINDS.values()
    }


def test_a_part_of_qualifying_has_the_name_that_the_page_of_a_race_gives_it(sample_database):
    html = client(sample_database).get("/2023/18").text
    for column in ("q1", "q2", "q3"):
        assert f'<th scope="col" class="lap">{column_in_words(column)}</th>' in html

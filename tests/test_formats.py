"""racedata.formats: how both halves read and write texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from racedata import formats


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("0.000", 0),
        ("23.251", 23251),
        ("1:42.929", 102929),
        ("34:07.731", 2047731),
        ("1:02:03.456", 3723456),
    ],
)
def test_a_time_is_converted_to_milliseconds(time, expected):
    assert formats.milliseconds(time) == expected


@pytest.mark.parametrize(
    ("format_time", "time", "text"),
    [
        (formats.lap_time, 54064, "0:54.064"),
        (formats.lap_time, 73402, "1:13.402"),
        (formats.short_time, 26898, "26.898"),
        (formats.short_time, 207071, "3:27.071"),
        (formats.short_time, 5690616, "1:34:50.616"),
    ],
)
def test_a_time_is_written(format_time, time, text):
    assert format_time(time) == text


@given(st.integers(0, 100 * 3_600_000))
def test_a_time_that_is_written_and_read_is_the_same(time):
    assert formats.milliseconds(formats.lap_time(time)) == time
    assert formats.milliseconds(formats.short_time(time)) == time


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 races"), (1, "1 race"), (2, "2 races"), (1149, "1,149 races")]
)
def test_a_number_of_things_has_the_right_form(count, said):
    assert formats.counted(count, "race") == said


def test_a_long_list_ends_with_how_many_more_there_are():
    names = [f"2023/{round}" for round in range(1, formats.SHOWN + 1)]
    assert formats.abridged(names) == "2023/1, 2023/2, 2023/3, 2023/4, 2023/5"
    assert formats.abridged([*names, *["2024/1"] * 1000]).endswith("2023/5 and 1,000 more")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("São Paulo", "sao paulo"), ("Hülkenberg", "hulkenberg"), ("Raikko\u0308nen", "raikkonen")],
)
def test_names_are_sorted_and_matched_without_accents(name, expected):
    assert formats.without_accents(name) == expected


def test_no_character_of_a_message_breaks_its_line():
    assert formats.printable("a\nb\x1b[31m\u2028c\udcff é") == "a b [31m c  é"


def test_a_path_that_is_not_utf_8_has_question_marks():
    assert formats.in_utf8("caf\udce9/é.db") == "caf?/é.db"


@pytest.mark.parametrize(
    ("name", "shown", "url"),
    [
        ("https://example.org/a?key=1", "https://example.org/a", "https://example.org/a"),
        ("HTTP://example.org/a.zip#key=1", "HTTP://example.org/a.zip", "HTTP://example.org/a.zip"),
        ("/home/somebody/Downloads/data.zip", "data.zip", None),
        ("C:\\Users\\somebody\\dump\\", "dump", None),
    ],
)
def test_the_public_name_of_a_source_has_neither_its_folder_nor_its_key(name, shown, url):
    assert (formats.public_name(name), formats.public_url(name)) == (shown, url)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://example.org/data.zip?key=1", "https://example.org/data.zip"),
        ("https://example.org/data.zip#key=1", "https://example.org/data.zip"),
        ("/home/somebody/what?/#1.zip", "/home/somebody/what?/#1.zip"),
    ],
)
def test_an_error_shows_the_path_of_a_source_but_no_key(address, shown):
    assert formats.without_query(address) == shown

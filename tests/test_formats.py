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

"""racedata.values: what each parser accepts, what it makes of it, and what a message says is
expected.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from racedata import values
from racedata.values import Parser

PARSERS = {name: parser for name, parser in vars(values).items() if isinstance(parser, Parser)}


@given(st.decimals(0, 100, places=2))
def test_points_lose_only_zeros_after_the_point(number):
    text = values.points(str(number))
    assert float(text) == float(number)
    assert "." not in text or text[-1] not in "0."


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("from_one", "1", 1),
        ("round_number", "099", 99),
        ("year", "1950", 1950),
        ("year", "2000", 2000),
        ("points", "25.0", "25"),
        ("points", "-0.50", "-0.5"),
        ("lap_time", "1:02:03.456", "1:02:03.456"),
        ("flag", "t", 1),
        ("flag", "f", 0),
        ("moment", "2023-04-30T01:00:00+04", "2023-04-29 21:00:00"),
        ("degrees", "40.37250001", "40.3725"),
        ("time_with_fraction", "15:30:02.5", "15:30:02"),
        ("clock_duration", "01:02:03.4", 3_723_400),
        ("clock_lap_time", "00:00:59.5", "0:59.500"),
        ("clock_lap_time", "01:02:03.4567", "1:02:03.456"),
        ("utc_time", "13:00:00Z", "13:00:00"),
        ("short_lap_time", "53.904", "0:53.904"),
        ("duration", "23", 23_000),
        ("duration", "23.2", 23_200),
        ("duration", "23.251", 23_251),
        ("duration", "1:04.278", 64_278),
        ("duration", "1:02:03.456", 3_723_456),
        ("status_text", "Did_not_start", "Did not start"),
        ("hour_and_minute", "04:00", "04:00:00"),
    ],
)
def test_a_text_becomes_a_value(name, text, value):
    assert PARSERS[name](text) == value


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("whole_number", ["+1", "-1", "1_0", " 1", "１", "1234567890123456789"]),  # noqa: RUF001
        ("from_one", ["0", "00", "-1"]),
        ("round_number", ["0", "00", "100", "-1", "\u0661"]),
        ("year", ["1949", "0999", "10000", "95"]),
        ("number", ["1e3", ".5", "5.", "nan"]),
        ("day", ["2023-02-30", "13.1.1957", "20230113"]),
        ("time_of_day", ["24:00:00", "1:00:00", "13:00", "13:00:00Z"]),
        ("lap_time", ["90", "1:60.000", "1:07.01", "1:07.012Z"]),
        ("reference", ["a/b", "aé", "a.b"]),
        ("plain_text", ["\x07", "a\x7fb", " a", "\ud800"]),
        ("flag", ["T", "yes", "ft"]),
        ("moment", ["2023-04-30T11:00:00", "0001-01-01T01:00:00+04", "now"]),
        ("degrees", ["north", "1234.5"]),
        ("time_with_fraction", ["25:00:00", "14:19"]),
        ("clock_duration", ["1:32:42.4", "00:01:60"]),
        ("clock_lap_time", ["1:31.531"]),
        ("hyphenated_id", ["max--power", "-x", "x-", "Max", "x" * 101]),
        ("position_or_reason", ["RET", "1st"]),
        ("hour_and_minute", ["24:00", "4:00", "04:00:00"]),
        ("duration", ["x", "-1.000", "1:", ":1", "1.0000", "1:2:3:4", "１"]),  # noqa: RUF001
    ],
)
def test_other_texts_are_refused(name, texts):
    for text in ["", *texts]:
        with pytest.raises(ValueError):
            PARSERS[name](text)


@pytest.mark.parametrize(
    ("name", "longest"),
    [
        ("plain_text", "x" * 1000),
        ("status_text", "x" * 1000),
        ("reference", "x" * 1000),
        ("number", f"{10**17}.{10**17}"),
        ("points", f"{10**17}.{10**17 + 1}"),
    ],
)
def test_texts_and_numbers_have_a_limit(name, longest):
    assert PARSERS[name](longest) == longest
    with pytest.raises(ValueError):
        PARSERS[name](longest + longest[-1])


@given(
    st.sampled_from([*PARSERS.values()]),
    st.one_of(st.text(), st.from_regex(r"[0-9:.\-+ ]{1,12}", fullmatch=True)),
)
def test_a_parser_accepts_a_text_or_raises_value_error(parse, text):
    try:
        assert isinstance(parse(text), int | str)
    except ValueError:
        return
    assert text.isprintable() or parse.fullmatch(text)

"""Parsers: what the text of a field must look like, and how it becomes the value that is stored.

The first ones are for the columns in model.py. The others, each under a comment that says for what,
are for the loader's sources: all forms are in one place.
"""

import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, date, datetime

from racedata.formats import milliseconds

Value = int | str | None


class Parser:
    """A function from a text to its value. For a wrong text, raises a ValueError that says what is
    expected.
    """

    def __init__(
        self, expected: str, pattern: str, convert: Callable[[str], int | str] = str
    ) -> None:
        self.expected = expected  # for messages: `expected …`
        self.pattern, self.fullmatch = pattern, re.compile(pattern, re.ASCII).fullmatch
        self.convert = convert  # turns a text that matches into the value; may raise ValueError too

    def __call__(self, text: str) -> int | str:
        try:
            if self.fullmatch(text):
                return self.convert(text)
        except ValueError:
            pass
        raise ValueError(self.expected)


def without_last_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def existing_day(text: str) -> str:
    date.fromisoformat(text)
    return text


def in_utc(text: str) -> str:
    time = datetime.fromisoformat(text)
    if not time.tzinfo:
        raise ValueError
    try:
        return time.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "seconds")
    except OverflowError:  # in UTC it is before year 1, or after 9999
        raise ValueError from None


def to_lap_time(text: str) -> str:
    """`1:31.500` from `00:01:31.5`."""
    seconds = f"{text[6:8]}.{text[9:12]:0<3}"
    return (
        f"{int(text[3:5])}:{seconds}"
        if text[:2] == "00"
        else f"{int(text[:2])}:{text[3:5]}:{seconds}"
    )


# int() alone accepts signs, spaces and underscores. 18 digits always fit into SQLite's 64 bits.
DIGITS = "[0-9]{1,18}"
NUMBER = rf"-?{DIGITS}(\.{DIGITS})?"
# In an address, whose season and round need not exist. `year` and `round_number` are for data.
SEASON, ROUND = "[1-9][0-9]{3}", "[1-9][0-9]{0,17}"
TIME_OF_DAY = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
LAP_TIME = r"([0-9]{1,3}:)?[0-9]{1,3}:[0-5][0-9]\.[0-9]{3}"
# Trailing zeros of the fraction are omitted.
CLOCK_DURATION = r"[0-9]{2}:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
# Not allowed: control characters, and half a surrogate pair, which JSON can contain. Many answers
# repeat the same text, so its length is limited.
NO_SPACE = r"[^\x00-\x20\x7f\ud800-\udfff]"
PLAIN_TEXT = rf"{NO_SPACE}([^\x00-\x1f\x7f\ud800-\udfff]{{0,998}}{NO_SPACE})?"

whole_number = Parser("a whole number such as 25", DIGITS, int)
from_one = Parser("a whole number, at least 1", f"(?!0+$){DIGITS}", int)
round_number = Parser("a whole number from 1 to 99", "0{0,9}[1-9][0-9]?", int)
# Formula One began in 1950
year = Parser("a year from 1950 to 2999", "19[5-9][0-9]|2[0-9]{3}", int)
number = Parser("a number such as 25 or 8.14", NUMBER)
points = Parser("points such as 25 or 12.5", NUMBER, without_last_zeros)
day = Parser("a date such as 2023-07-02", "[0-9]{4}-[0-9]{2}-[0-9]{2}", existing_day)
time_of_day = Parser("a time of day such as 13:00:00", TIME_OF_DAY)
lap_time = Parser("a time such as 1:07.012", LAP_TIME)
plain_text = Parser("text of at most 1,000 characters, without control characters", PLAIN_TEXT)
# Values that an address can name; see racedata/service/addresses.py.
reference = Parser("an id of letters, digits, _ and -", "[A-Za-z0-9_-]{1,1000}")

# In dumps of a database.
score = points  # SQLite takes a type whose name contains `int` for a number
flag = Parser("t or f", "[tf]", "ft".index)
moment = Parser("a time with an offset such as 2023-07-02 13:00:00+00", ".+", in_utc)
# written as the API of that database writes it
degrees = Parser(
    "degrees such as -22.9", r"-?[0-9]{1,3}(\.[0-9]+)?", lambda text: f"{float(text):.7g}"
)
time_with_fraction = Parser(
    "a time of day such as 14:19:22", rf"{TIME_OF_DAY}(\.[0-9]+)?", lambda text: text[:8]
)
# written as the API of that database writes it
speed = Parser("a number such as 25 or 8.14", NUMBER, lambda text: f"{float(text):.3f}")
clock_duration = Parser("a duration such as 01:31:31.531", CLOCK_DURATION, milliseconds)
clock_lap_time = Parser("a duration such as 00:01:31.531", CLOCK_DURATION, to_lap_time)


def one_of(words: Collection[str]) -> Parser:
    return Parser(f"one of {', '.join(words)}", "|".join(map(re.escape, words)))


# In dumps with readable ids.
hyphenated_id = Parser("an id such as max-verstappen", "(?=.{1,100}$)[a-z0-9]+(-[a-z0-9]+)*")
position_or_reason = Parser(
    "a number, DNF, DNP, DNPQ, DNQ, DNS, DSQ, EX or NC", "[0-9]{1,4}|DNF|DNP|DNPQ|DNQ|DNS|DSQ|EX|NC"
)
true_or_false = one_of(("true", "false"))
hour_and_minute = Parser(
    "a time of day such as 13:00", "([01][0-9]|2[0-3]):[0-5][0-9]", "{}:00".format
)

# In answers of an API.
utc_time = Parser(
    "a time of day such as 13:00:00Z", f"{TIME_OF_DAY}Z?", lambda text: text.removesuffix("Z")
)
duration = Parser(
    "a duration such as 23.251 or 1:04.278",
    r"(([0-9]{1,4}:)?[0-9]{1,4}:)?[0-9]{1,6}(\.[0-9]{1,3})?",
    milliseconds,
)
short_lap_time = Parser(
    "a time such as 1:07.012",
    rf"{LAP_TIME}|[0-5][0-9]\.[0-9]{{3}}",
    lambda text: text if ":" in text else f"0:{text}",
)
# An API may write statuses as its code names them: Did_not_start.
status_text = Parser("a status such as Finished", PLAIN_TEXT, lambda text: text.replace("_", " "))


def text(expected: str) -> Parser:
    """A parser of plain text that a message calls `expected`."""
    return Parser(expected, PLAIN_TEXT)


def key_in(numbers: Mapping[str, int], expected: str) -> Parser:
    """A parser of texts that must be keys of `numbers`: their values are stored."""

    def convert(text: str) -> int:
        if text not in numbers:
            raise ValueError
        return numbers[text]

    return Parser(expected, ".+", convert)


def id_in(ids: Collection[int], expected: str) -> Parser:
    def convert(text: str) -> int:
        number = int(text)
        if number not in ids:
            raise ValueError
        return number

    return Parser(expected, DIGITS, convert)

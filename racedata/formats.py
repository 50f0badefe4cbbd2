"""How texts are read and written, each way once.

Both halves use most of the functions, but only the loader uses `abridged`. A format that only the
service needs is in the module that needs it.
"""

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]  # an object of JSON

HTTP = re.compile("https?://", re.IGNORECASE)
SHOWN = 5  # maximum names in one line


def milliseconds(text: str) -> int:
    """A duration such as `1:02:03.4`, `1:07.012` or `23.251` in milliseconds."""
    *longer, seconds = text.split(":")
    whole, _, fraction = seconds.partition(".")
    minutes = 0
    for part in longer:
        minutes = minutes * 60 + int(part)
    return (minutes * 60 + int(whole)) * 1000 + int(f"{fraction[:3]:0<3}")


def hours_to_thousandths(milliseconds: int) -> tuple[int, int, int, int]:
    seconds, thousandths = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return hours, minutes, seconds, thousandths


def lap_time(milliseconds: int) -> str:
    """M:SS.mmm, as dumps have lap times: `0:54.064`."""
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes}:{rest // 1000:02}.{rest % 1000:03}"


def short_time(milliseconds: int) -> str:
    """S.mmm, M:SS.mmm or H:MM:SS.mmm, without leading parts that are zero: `26.898`."""
    hours, minutes, seconds, thousandths = hours_to_thousandths(milliseconds)
    if hours:
        return f"{hours}:{minutes:02}:{seconds:02}.{thousandths:03}"
    return f"{minutes}:{seconds:02}.{thousandths:03}" if minutes else f"{seconds}.{thousandths:03}"


def timestamp(time: datetime) -> str:
    """A time in UTC as the database and its notes have it, such as `2023-07-02T13:00:00Z`."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def utc_now() -> str:
    return timestamp(datetime.now(UTC))


def plural(noun: str, count: float) -> str:
    """`race` or `races`."""
    return noun if count == 1 else f"{noun}s"


def counted(count: int, noun: str) -> str:
    """`1 race`, `1,149 races`."""
    return f"{count:,} {plural(noun, count)}"


def abridged(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def without_accents(text: str) -> str:
    """A text without accents, in small letters: for sorting and matching names."""
    if text.isascii():
        return text.casefold()
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign)).casefold()


def printable(text: str) -> str:
    """A text that fits into one line of a terminal or a log."""
    return "".join(character if character.isprintable() else " " for character in text)


def in_utf8(path: str) -> str:
    """A path as the database has it: `?` for bytes that are not UTF-8."""
    return path.encode("utf-8", "replace").decode()


def public_url(address: str) -> str | None:
    """A URL without the parts that may contain a key; None if the address is not a URL."""
    return re.split("[?#]", address)[0] if HTTP.match(address) else None


def without_query(address: str) -> str:
    """The address of a source for its operator: a public URL, or a whole path."""
    return public_url(address) or address


def public_name(name: str) -> str:
    """The name of a source for everybody: a public URL, or a path without its private folder."""
    if HTTP.match(name) or HTTP.match(name.partition(":")[2]):  # jolpica:https://…
        return re.split("[?#]", name)[0]
    return re.split(r"[\\/]", name.rstrip("\\/"))[-1]

"""A client of an API in Ergast's format, such as Jolpica-F1 or racedata itself. It obeys the limits
of the API.

Requests, their pace, pages and the check of each page belong here. The meaning of the records does
not.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from racedata.formats import Json, counted
from racedata.loader.errors import LoadError, Progress
from racedata.loader.http import Request, WrongStatus
from racedata.loader.sources.pace import PACE, Pace
from racedata.model import API_ENDPOINTS
from racedata.values import whole_number

JOLPICA_URL = "https://api.jolpi.ca/ergast/f1"
# FastF1 changed its own limit to this in August 2026, "to match changed server side limits".
JOLPICA_LIMITS = (*PACE, (200, 3600))

# For an answer with status 429 or 503.
TRIES = 5

ANSWER_SECONDS = 60
# Limits of one answer: ten times what the laps of a race in OpenF1 have. A value takes up to 150
# bytes of memory, however few bytes it has in the answer.
ANSWER_BYTES = 20_000_000
MAX_VALUES = 500_000
MAX_RECORDS = 100_000
PAGE_LIMIT = 2000  # more records than any race has; an API lowers it to its own maximum

# For an endpoint that it does not have, Jolpica-F1 answers 400 ("Endpoint does not support final
# filter"), and racedata 404.
NOT_SERVED = (400, 404)

# the objects that the record is nested in, and the record: `(race, lap, timing)`
Record = tuple[Json, ...]


class AnswerPage(NamedTuple):
    limit: int  # that the API applied
    total: int  # of all records
    records: list[Record]  # of the page


class NotServed(LoadError):
    """The API does not have the endpoint at an address."""


def answer_of(url: str, progress: Progress, pace: Pace) -> bytes:
    """The body of an API's answer. Raises LoadError for anything but an answer with status 200."""
    request = Request(url, "an answer from an API", ANSWER_SECONDS, ANSWER_BYTES, is_public=True)
    return pace.content(request, progress, TRIES)


class Api:
    """A client of an API in Ergast's format. `limit` is the size of its largest page, once it is
    known.
    """

    limit = PAGE_LIMIT

    def __init__(self, url: str, progress: Progress, pace: Pace) -> None:
        self.url, self.progress, self.pace = url.rstrip("/"), progress, pace

    def records(self, path: str) -> list[Record]:
        """The records of an endpoint, such as `2025/5/laps`: all pages. Raises LoadError."""
        page = self.page(path, 0)
        total, records = page.total, page.records
        while len(records) < total:
            self.progress(f"{path}: {len(records):,} of {total:,} records")
            page = self.page(path, len(records))
            if page.total != total:
                what = (
                    f"a total of {page.total:,}, after {total:,} on the page before; "
                    "expected the same on each page"
                )
                raise LoadError(f"{self.address(path, len(records))}: {what}")
            records += page.records
        return records

    def page(self, path: str, offset: int) -> AnswerPage:
        """One page. Raises LoadError if the answer is not what was requested."""
        url = self.address(path, offset)
        self.progress(f"{path}: {counted(self.pace.requests, 'request')}")
        try:
            body = answer_of(url, self.progress, self.pace)
        except WrongStatus as error:
            if error.status in NOT_SERVED:
                hint = f"; is --from the base address, such as {JOLPICA_URL}?"
                raise NotServed(f"{error}{hint}") from None
            raise
        try:
            page = read_page(path, offset, body)
        except ValueError as error:
            raise LoadError(f"{url}: {error}") from None
        self.limit = page.limit
        return page

    def address(self, path: str, offset: int = 0) -> str:
        return f"{self.url}/{path}.json?limit={PAGE_LIMIT}&offset={offset}"


def read_page(path: str, offset: int, body: bytes) -> AnswerPage:
    """The page that an answer has. Raises ValueError if it is not the page of `path` that begins at
    `offset`.
    """
    answer = parsed_json(body)
    envelope = answer.get("MRData") if isinstance(answer, dict) else None
    if not isinstance(envelope, dict):
        raise ValueError("no object MRData; expected an answer in Ergast's format")
    limit = envelope_number(envelope, "limit", 1, PAGE_LIMIT)
    total = envelope_number(envelope, "total", 0, MAX_RECORDS)
    envelope_number(envelope, "offset", offset, offset)
    *place, endpoint = path.split("/")
    name, *keys = API_ENDPOINTS[endpoint].keys
    table = envelope.get(name)
    if not isinstance(table, dict):
        raise ValueError(f"no object {name} in MRData; expected the answer of {endpoint}")
    for key, value in zip(("season", "round"), place):
        if table.get(key) != value:
            raise ValueError(f"{name}.{key} is {str(table.get(key))[:40]!r}; expected {value!r}")
    records: list[Record] = [(table,)]
    for key in keys:
        records = [(*parents, child) for parents in records for child in children(parents[-1], key)]
    expected = max(0, min(limit, total - offset))
    if len(records) != expected:
        raise ValueError(
            f"{counted(len(records), 'record')}; expected {expected:,}, "
            f"because MRData.total is {total:,}"
        )
    return AnswerPage(limit, total, [parents[1:] for parents in records])


def parsed_json(body: bytes) -> Any:
    """The value in the JSON of an answer. Raises ValueError."""
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise ValueError(f"more than {MAX_VALUES:,} values; expected the answer of an API")
    try:
        return orjson.loads(body)
    except ValueError:
        raise ValueError(f"{body[:40]!r}; expected JSON") from None


def envelope_number(envelope: Json, name: str, least: int, most: int) -> int:
    """The number in a field of MRData, which is a string."""
    text = envelope.get(name)
    if not (isinstance(text, str) and whole_number.fullmatch(text) and least <= int(text) <= most):
        expected = f"{least}" if least == most else f"{least} to {most}"
        raise ValueError(
            f"MRData.{name} is {str(text)[:40]!r}; expected a string with a number, {expected}"
        )
    return int(text)


def children(parent: Json, name: str) -> list[Json]:
    """The objects in a list of `parent`. Raises ValueError if there is no such list, or anything
    else in it.
    """
    objects = parent.get(name)
    if not (isinstance(objects, list) and all(isinstance(child, dict) for child in objects)):
        raise ValueError(f"no list {name} of objects; expected an answer in Ergast's format")
    return objects


def digest_of(records: Sequence[Json]) -> str:
    """A short text that differs if the records do."""
    return hashlib.sha256(json.dumps(records, sort_keys=True).encode()).hexdigest()[:16]

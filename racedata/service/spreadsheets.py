"""Spreadsheets: the records of an answer as lines of CSV (RFC 4180).

The columns follow from openapi.json. Only what each source says has a column for each source of
the database.

Values are those of the JSON, character for character, even if they begin with `+` or `-`, such as
`+1 Lap`. Only the column `millis` of laps and pit stops is not in the JSON.
"""

import csv
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any

from racedata.formats import Json, milliseconds
from racedata.service.catalogue import Catalogue
from racedata.service.endpoints import Endpoint
from racedata.service.schemas import Schema, name_of, properties_of, schema_of

# Objects that many lines repeat. A line has only these properties and those that their schema
# requires, which identify and name them.
SHORTENED: Mapping[str, Collection[str]] = {"Circuit": (), "Constructor": (), "Driver": ("code",)}
# Records whose lines end with the column `millis`: the time under this key, in milliseconds, for
# programs that compute. The JSON has no such key, because it has only Ergast's keys.
MILLIS = {"Lap": "time", "PitStop": "duration"}
# A list of what sources say, and the value of a source that was not compared.
OF_SOURCE, NOT_COMPARED = "SourceValue", "-"

Values = list[str | int | None]  # the values of a line; None if unknown


def joined(key: str, objects: list[Json]) -> Values:
    """The value of a list of objects: the property `key` of each, joined by semicolons."""
    return [";".join(each[key] for each in objects)]


def by_source(sources: Sequence[str], said: list[Json]) -> Values:
    """The values of what sources say."""
    values = {each["source"]: each.get("value") for each in said}
    return [values.get(source, NOT_COMPARED) for source in sources]


class Columns:
    """The columns of an object, by its schema. The names of nested objects are joined by dots."""

    def __init__(
        self, schema: Schema, is_repeated: bool = False, sources: Sequence[str] = ()
    ) -> None:
        self.names: list[str] = []
        # a list in the object that has records, and their columns
        self.records: tuple[str, Columns] | None = None
        # The properties in order, each with the number of its columns; for an object or a list of
        # objects, also with what reads their values.
        self._parts: list[tuple[str, int, Callable[[Any], Values] | None]] = []
        properties, required = properties_of(schema)
        names_in_line = (
            {*required, *SHORTENED.get(name_of(schema) or "", ())}
            if is_repeated
            else properties.keys()
        )
        for name in [name for name in properties if name in names_in_line]:
            items = properties[name].get("items")
            if items and not name_of(items):
                self.records = name, Columns(items)
            elif items and name_of(items) == OF_SOURCE:
                self.add(name, [f"{name}.{each}" for each in sources], partial(by_source, sources))
            elif items:
                key = next(iter(properties_of(items)[0]))
                self.add(name, [name], partial(joined, key))
            elif properties_of(properties[name])[0]:
                nested = Columns(
                    properties[name], is_repeated or name_of(properties[name]) in SHORTENED
                )
                self.add(name, [f"{name}.{each}" for each in nested.names], nested.read)
            else:
                self.add(name, [name])

    def add(self, name: str, names: list[str], read: Callable[[Any], Values] | None = None) -> None:
        self._parts.append((name, len(names), read))
        self.names += names

    def read(self, record: Json) -> Values:
        """The values of an object, in the order of `names`."""
        values: Values = []
        for name, count, read in self._parts:
            value = record.get(name)
            if not read:
                values.append(value)
            else:
                values += read(value) if value else [None] * count
        return values


class Spreadsheet:
    """Writes the answers of an endpoint; `sources` are those that a record may say something of."""

    def __init__(self, endpoint: Endpoint, sources: Sequence[str]) -> None:
        record, key = Columns(schema_of(endpoint.schema), sources=sources), endpoint.records_key
        # the columns of nested objects, and the key under which an object has the next ones
        self.levels: list[tuple[Columns, str]] = []
        if key:
            self.levels.append((Columns(schema_of(endpoint.container), is_repeated=True), key))
        if record.records:
            inner_key, inner = record.records
            self.levels += [(record, inner_key), (inner, "")]
        else:
            self.levels.append((record, ""))
        self.columns = [name for columns, _ in self.levels for name in columns.names]
        self.time_key = MILLIS.get(endpoint.schema)
        if self.time_key:
            self.columns.append("millis")

    def write(self, objects: Sequence[Json]) -> bytes:
        """The objects of a page, as CSV."""
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(self.columns)
        writer.writerows(self.lines(objects))
        return text.getvalue().encode()

    def lines(
        self, objects: Sequence[Json], start: Sequence[str | int | None] = (), level: int = 0
    ) -> list[Values]:
        """The lines of objects; `start` has the values of the objects around them."""
        columns, key = self.levels[level]
        if key:
            nested = (
                self.lines(record[key], [*start, *columns.read(record)], level + 1)
                for record in objects
            )
            return [line for lines in nested for line in lines]
        lines = [[*start, *columns.read(record)] for record in objects]
        if self.time_key:
            for line, record in zip(lines, objects):
                time = record.get(self.time_key)
                line.append(time and milliseconds(time))
        return lines


spreadsheet_of = cache(Spreadsheet)  # its columns take long to find


def write(endpoint: Endpoint, catalogue: Catalogue, objects: Sequence[Json]) -> bytes:
    """The objects of a page of an endpoint, as CSV."""
    says_sources = "Sources" in properties_of(schema_of(endpoint.schema))[0]
    sources = catalogue.sources_compared if says_sources else ()
    return spreadsheet_of(endpoint, sources).write(objects)

"""Spreadsheets: the records of an answer as lines of CSV (RFC 4180).

The columns follow from openapi.json. Only what each source says has a column for each source of
the database.

Values are those of the JSON, character for character, even if they begin with `+` or `-`, such as
`+1 Lap`. Only the column `millis` of laps and pit stops is not in the JSON.
"""

import csv
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache

from racedata.formats import Json, milliseconds
from racedata.service.endpoints import Endpoint
from racedata.service.schemas import Schema, name_of_schema, properties_of, schema_of

# Objects that many lines repeat. A line has only these properties and those that their schema
# requires, which identify and name them.
SHORTENED: Mapping[str, Collection[str]] = {"Circuit": (), "Constructor": (), "Driver": ("code",)}
# Records whose lines end with the column `millis`: the time under this key, in milliseconds, for
# programs that compute. The JSON has no such key, because it has only Ergast's keys.
MILLIS = {"Lap": "time", "PitStop": "duration"}
# The lists that are values, and not records: of objects with an id, and of what sources say.
OF_IDS, OF_SOURCES = {"Constructors": "constructorId"}, "Sources"
NOT_COMPARED = "-"  # the value of a source


def columns_of(schema: Schema, sources: Sequence[str], is_repeated: bool = False) -> Iterator[str]:
    """The columns of an object, by its schema. The names of nested objects are joined by dots."""
    properties, required = properties_of(schema)
    names = (
        {*required, *SHORTENED.get(name_of_schema(schema) or "", ())} if is_repeated else properties
    )
    for name, of_name in properties.items():
        if name not in names:
            continue
        if name == OF_SOURCES:
            yield from (f"{name}.{each}" for each in sources)
        elif "items" in of_name and name not in OF_IDS:
            yield from columns_of(of_name["items"], sources)
        elif properties_of(of_name)[0]:
            is_short = is_repeated or name_of_schema(of_name) in SHORTENED
            yield from (f"{name}.{each}" for each in columns_of(of_name, sources, is_short))
        else:
            yield name


@cache  # they take long to find
def columns_of_endpoint(
    endpoint: Endpoint, sources: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """The columns of the object around a record, such as a race, and those of the record."""
    around = schema_of(endpoint.container) if endpoint.records_key else {}
    millis = ["millis"] if endpoint.schema in MILLIS else []
    record = [*columns_of(schema_of(endpoint.schema), sources), *millis]
    return [*columns_of(around, sources, is_repeated=True)], record


def flat(found: Json, sources: Sequence[str] = ()) -> tuple[Json, list[Json]]:
    """The values of an object by their columns, and the records in it."""
    line: Json = {}
    records: list[Json] = []
    for name, value in found.items():
        if isinstance(value, str):
            line[name] = value
        elif isinstance(value, dict):
            for key, each in flat(value)[0].items():
                line[f"{name}.{key}"] = each
        elif name in OF_IDS:
            line[name] = ";".join(each[OF_IDS[name]] for each in value)
        elif name == OF_SOURCES:
            said = {each["source"]: each.get("value") for each in value}
            line |= {f"{name}.{each}": said.get(each, NOT_COMPARED) for each in sources}
        else:
            records = value
    return line, records


def write(endpoint: Endpoint, sources: Sequence[str], objects: Sequence[Json]) -> bytes:
    """The objects of a page of an endpoint, as CSV. `sources` are those that are compared."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    columns_around, columns = columns_of_endpoint(endpoint, sources)
    writer.writerow([*columns_around, *columns])
    time_key = MILLIS.get(endpoint.schema, "")
    for each in objects:
        around, records = flat(each) if endpoint.records_key else ({}, [each])
        start = [around.get(name) for name in columns_around]
        for record in records:
            line, timings = flat(record, sources)
            for timing in timings or [{}]:
                values = line | timing
                if values.get(time_key):
                    values["millis"] = milliseconds(values[time_key])
                writer.writerow([*start, *map(values.get, columns)])
    return text.getvalue().encode()

"""Tables: the records of an answer as CSV (RFC 4180), a line for each. The columns follow from openapi.json.

Values are those of the JSON, character for character, also those that begin with `+` or `-`, such as `+1 Lap`.
"""

import csv
import io
from collections.abc import Iterator, Sequence

from racedata import schemas
from racedata.schemas import Schema
from racedata.serializers import Json

CONTENT_TYPE = "text/csv; charset=utf-8; header=present"
# Objects that many lines repeat. A line has only what their schema requires, which identifies and names them.
REPEATED = {"Circuit", "Constructor", "Driver"}

Values = list[str | None]  # those of a line; None if unknown


class Columns:
    """The columns of an object, by its schema. The names of nested objects are joined by dots."""

    def __init__(self, schema: Schema, is_repeated: bool = False) -> None:
        self.names: list[str] = []
        self.records: tuple[str, Columns] | None = None  # a list in the object that has records, and their columns
        self._lists: list[tuple[str, str]] = []  # of its values: its name, and what is written of each object
        self._parts: list[tuple[str, Columns | str | None]] = []
        properties, required = schemas.properties_of(schema)
        for name in properties if not is_repeated else [name for name in properties if name in required]:
            items = properties[name].get("items")
            if items and not schemas.name_of(items):
                self.records = name, Columns(items)
                continue
            if items:  # of each, its first property: the id
                self.add(name, next(iter(schemas.properties_of(items)[0])))
                continue
            if not schemas.properties_of(properties[name])[0]:
                self.add(name, None)
                continue
            nested = Columns(properties[name], is_repeated or schemas.name_of(properties[name]) in REPEATED)
            if nested.names:
                self.add(name, nested)

    def add(self, name: str, part: "Columns | str | None") -> None:
        """Adds the columns of a property: of an object, of the ids in a list, or of a value."""
        self._parts.append((name, part))
        self.names += [f"{name}.{each}" for each in part.names] if isinstance(part, Columns) else [name]

    def values(self, found: Json) -> Values:
        """The values of an object, in the order of `names`."""
        values: Values = []
        for name, part in self._parts:
            value = found.get(name)
            if part is None:
                values.append(value)
            elif isinstance(part, str):
                values.append(";".join(each[part] for each in value) if value else None)
            else:
                values += part.values(value) if value else [None] * len(part.names)
        return values


class Table:
    """The table of an endpoint, from the names of the schemas of a record and of the object that has it under `key`."""

    def __init__(self, schema: str, container: str, key: str) -> None:
        record = Columns(schemas.named(schema))
        self.levels = [(Columns(schemas.named(container), is_repeated=True), key)] if key else []
        if record.records:
            inner_key, inner = record.records
            self.levels += [(record, inner_key), (inner, "")]
        else:
            self.levels.append((record, ""))
        self.columns = [name for columns, _ in self.levels for name in columns.names]

    def write(self, objects: Sequence[Json]) -> bytes:
        """The objects of a page, as CSV."""
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(self.columns)
        writer.writerows(self.lines(objects))
        return text.getvalue().encode()

    def lines(self, objects: Sequence[Json], start: Values | None = None, level: int = 0) -> Iterator[Values]:
        """The lines of objects; `start` has the values of what they are in."""
        columns, key = self.levels[level]
        for each in objects:
            line = (start or []) + columns.values(each)
            if key:
                yield from self.lines(each[key], line, level + 1)
            else:
                yield line

"""The schemas of the objects in answers: openapi.json, which is written by hand.

openapi.py completes the document, and spreadsheets.py takes the columns of a CSV from the schemas.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

Schema = Mapping[str, Any]

OPENAPI: dict[str, Any] = json.loads(
    files(__package__).joinpath("openapi.json").read_text(encoding="utf-8")
)


def schema_of(name: str) -> Schema:
    schema: Schema = OPENAPI["components"]["schemas"][name]
    return schema


def name_of(schema: Schema) -> str | None:
    """The name of the schema that this one refers to."""
    place: str | None = schema.get("$ref")
    return place and place.rpartition("/")[2]


def properties_of(schema: Schema) -> tuple[Mapping[str, Schema], set[str]]:
    """The properties of an object's schema in order, and the names of the required ones."""
    name = name_of(schema)
    own = schema_of(name) if name else schema
    return own.get("properties", {}), set(own.get("required", ()))

"""The schemas of the objects in answers: openapi.json, which is written by hand.

Unlike in the document, a response there lists the names of its headers. openapi.py completes the
document, and spreadsheets.py takes the columns of a CSV from the schemas.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

Schema = Mapping[str, Any]


def with_headers(described: dict[str, Any]) -> dict[str, Any]:
    """An object in openapi.json. If it lists headers, these become references to them."""
    if isinstance(names := described.get("headers"), list):
        described["headers"] = {
            name.removesuffix("-of-file"): {"$ref": f"#/components/headers/{name}"}
            for name in names
        }
    return described


OPENAPI: dict[str, Any] = json.loads(
    files(__package__).joinpath("openapi.json").read_text(encoding="utf-8"),
    object_hook=with_headers,
)


def schema_of(name: str) -> Schema:
    schema: Schema = OPENAPI["components"]["schemas"][name]
    return schema


def name_of_schema(schema: Schema) -> str | None:
    """The name of the schema that this one refers to."""
    place: str | None = schema.get("$ref")
    return place and place.rpartition("/")[2]


def properties_of(schema: Schema) -> tuple[Mapping[str, Schema], set[str]]:
    """The properties of an object's schema in order, and the names of the required ones."""
    name = name_of_schema(schema)
    own = schema_of(name) if name else schema
    return own.get("properties", {}), set(own.get("required", ()))

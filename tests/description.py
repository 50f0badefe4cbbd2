"""openapi.json as tests use it: what an answer of the service must be like, by the address it was asked at."""

import re
from functools import lru_cache

import jsonschema_rs

from racedata.documents import OPENAPI


def resolved(item):
    """What a `$ref` of the description stands for; anything else is what it is."""
    while "$ref" in item:
        place = OPENAPI
        for name in item["$ref"].split("/")[1:]:
            place = place[name]
        item = place
    return item


@lru_cache
def validator(schema_name):
    """The validator of a schema under components."""
    schema = {"$ref": f"#/components/schemas/{schema_name}", "components": OPENAPI["components"]}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def response_of(path, status):
    """What the description says of answers with this status at a path such as `/{season}/{round}/laps`."""
    return resolved(OPENAPI["paths"][path]["get"]["responses"][str(status)])


def hold(answer, path):
    """Holds a webtest answer to the description of `path`: its status, type, headers and body."""
    response = response_of(path, answer.status_int)
    for name, header in response.get("headers", {}).items():
        header = resolved(header)
        if name in answer.headers:
            assert re.search(header["schema"].get("pattern", ""), answer.headers[name]), name
            assert answer.headers[name] == header["schema"].get("const", answer.headers[name]), name
        else:
            assert not header.get("required"), name
    described = {name.lower() for name in response.get("headers", {})} | {"content-type", "content-length"}
    assert {name.lower() for name in answer.headers} <= described, sorted(answer.headers)
    if "content" not in response:
        assert answer.body == b""
        return
    schema = response["content"][answer.content_type]["schema"]
    if "$ref" in schema:
        validator(schema["$ref"].rpartition("/")[2]).validate(answer.json)

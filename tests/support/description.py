"""The OpenAPI description as tests use it: what an answer must be like, by the template of its address."""

import json
import re

import jsonschema_rs


class Description:
    """The document at `/openapi.json` of an application."""

    def __init__(self, app):
        self.document = json.loads(app.get("/openapi.json").text)
        self.paths = self.document["paths"]
        self._validators = {}

    def resolved(self, item):
        """The object that a `$ref` names; any other object is returned unchanged."""
        while "$ref" in item:
            place = self.document
            for name in item["$ref"].split("/")[1:]:
                place = place[name]
            item = place
        return item

    def validate(self, schema, value):
        key = json.dumps(schema)
        if key not in self._validators:
            whole = {**schema, "components": self.document["components"]}
            self._validators[key] = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
        self._validators[key].validate(value)

    def response(self, path, status):
        """What the description says of answers with this status at a path such as `/{season}/{round}/laps`."""
        return self.resolved(self.paths[path]["get"]["responses"][str(status)])

    def address(self, path, **values):
        """A path with values for its parameters: `values`, or the examples of the description."""
        for parameter in map(self.resolved, self.paths[path].get("parameters", ())):
            value = values.get(parameter["name"], parameter["example"])
            path = path.replace(f"{{{parameter['name']}}}", str(value))
        return path

    def hold(self, answer, path):
        """Holds a webtest answer to the description of `path`: its status, type, headers and body."""
        response = self.response(path, answer.status_int)
        for name, header in response.get("headers", {}).items():
            header = self.resolved(header)
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
        if answer.content_type != "text/html":
            self.validate(schema, answer.json)

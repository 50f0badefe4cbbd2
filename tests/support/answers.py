"""The application in this process, its answers, and what its OpenAPI document says of them."""

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import jsonschema_rs
import webtest

from racedata.hints import IN_CHECKOUT
from racedata.service.addresses import FILTERS
from racedata.service.app import create_app
from racedata.service.catalogue import Catalogue
from racedata.service.content import Served
from racedata.service.openapi import PARAMETERS
from racedata.service.pages.ask import Ask
from racedata.service.pages.resources import CURRENT, FILES, PAGES
from racedata.service.ratelimit.stores import store_for
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings
from support.loads import changed

Difference = tuple[str, Any, Any]

# The folders of the pages of names that have no route.
NAMES = {"drivers", "constructors", "circuits"} - {page.route.split("/")[1] for page in PAGES}


# By filter, the value of its parameter in openapi.json. test_openapi.py checks that none lacks one.
EXAMPLE_OF_FILTER = {
    name: parameter["example"]
    for name, parameter in PARAMETERS.items()
    if name in FILTERS and "example" in parameter
}


class Counted(Snapshot):
    """A database that counts its queries."""

    queries = 0

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        self.queries += 1
        return super().rows(sql, values)


def settings_of(**texts: object) -> Settings:
    """Settings given as options would give them: `settings_of(burst_limit="off", max_age=5)`."""
    return Settings.read({}, {name: str(text) for name, text in texts.items()})


def client(data: Path | Snapshot, **settings: object) -> webtest.TestApp:
    """The application over a database, or the one at a path. Only if a rate limit is given, it has
    limits.
    """
    given = settings_of(**settings)
    limits = store_for(given) if settings.keys() & {"burst_limit", "sustained_limit"} else None
    database = data if isinstance(data, Snapshot) else Snapshot.read(str(data))
    return webtest.TestApp(create_app(given, database, limits))


def client_after(database: Path, *statements: str) -> webtest.TestApp:
    """The application over a database after statements of SQL, as `changed` takes them."""
    return client(changed(database, *statements))


def asking(database: Path) -> Ask:
    """What the pages ask for their facts."""
    data = Snapshot.read(str(database))
    return Ask(Served(data, Catalogue(data), Settings()))


def bodies(path: Path, addresses: Iterable[str]) -> dict[str, bytes]:
    """The answers of the application over the database at `path` to a client of localhost."""
    app = client(path)
    return {address: app.get(address, headers={"Host": "localhost"}).body for address in addresses}


def routes_of_programs(app: webtest.TestApp) -> set[str]:
    """All routes but those of pages and files that no program needs."""
    of_people = {*(page.route for page in PAGES), *CURRENT, *FILES} - {"/", "/docs", "/llms.txt"}
    routes: set[str] = app.app.routes
    assert routes > of_people
    return routes - of_people


def request(app: webtest.TestApp, **environ: Any) -> webtest.TestResponse:
    """The answer to any request, even one that webtest's own methods would not send."""
    return webtest.TestRequest.blank("/", environ=environ).get_response(app.app)


def compressed_size(database: Path, address: str) -> int:
    """How many bytes of a page over a database a browser gets."""
    answer = request(client(database), PATH_INFO=address, HTTP_ACCEPT_ENCODING="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    return int(answer.headers["Content-Length"])


def words_of(html: str) -> str:
    """The text of a page, with one space between words."""
    text = re.sub("<(style|script)>.*?</\\1>|<[^>]*>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(text).split())


def lines_of(html: str) -> list[str]:
    """The text of each line of a page, with the addresses of links; `NOW` for times of today."""
    html = re.sub('<a [^>]*href="([^"]*)"[^>]*>(.*?)</a>', "\\2 [\\1]", html, flags=re.DOTALL)
    html = re.sub("<(style|script)>.*?</\\1>", "", html, flags=re.DOTALL)
    html = re.sub(r"\w+ \d+ \w+ 20(2[6-9]|[3-9]\d), \d\d:\d\d", "NOW", html)
    html = html.replace(IN_CHECKOUT, "racedata")
    return [words for line in html.splitlines() if (words := words_of(line))]


def links_of(html: str) -> list[str]:
    """The addresses of the links of a page, without those to pages of names that have no route."""
    links = [unescape(link) for link in re.findall('<a href="([^"]*)"', html)]
    return [link for link in links if link.startswith("/") or NAMES.isdisjoint(link.split("/"))]


def differences(recorded: Any, ours: Any, place: str = "") -> Iterator[Difference]:
    """(place, recorded value, our value) wherever two answers differ, even in the order of keys."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        both = [key for key in recorded if key in ours]
        if both != [key for key in ours if key in recorded]:
            yield place, list(recorded), list(ours)
        for key in {**recorded, **ours}:
            yield from differences(recorded.get(key), ours.get(key), f"{place}/{key}")
    elif isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        for number, pair in enumerate(zip(recorded, ours)):
            yield from differences(*pair, f"{place}/{number}")
    elif recorded != ours:
        yield place, recorded, ours


def by_place(found: Iterable[Difference]) -> list[Difference]:
    return sorted(found, key=lambda difference: difference[0])


def closed(schema: Any) -> Any:
    """A schema that allows no properties but those that it describes.

    The description itself allows more, so that clients expect new fields.
    """
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {key: closed(each) for key, each in schema.items()}
    is_object = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    return {"additionalProperties": False, **rest} if is_object else rest


class Description:
    """The document at `/openapi.json`. Its `paths` are templates: `/{season}/{round}/laps`."""

    def __init__(self, app: webtest.TestApp) -> None:
        self.document = json.loads(app.get("/openapi.json").text)
        self.paths = self.document["paths"]
        self._validators: dict[str, jsonschema_rs.Draft202012Validator] = {}

    def resolved(self, item: Any) -> Any:
        """The object that a `$ref` names; any other object is returned unchanged."""
        while "$ref" in item:
            place = self.document
            for name in item["$ref"].split("/")[1:]:
                place = place[name]
            item = place
        return item

    def validate(self, schema: dict[str, Any], value: Any) -> None:
        key = json.dumps(schema)
        if key not in self._validators:
            whole = closed({**schema, "components": self.document["components"]})
            self._validators[key] = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
        self._validators[key].validate(value)

    def response(self, path: str, status: int) -> Any:
        """What the description says of answers with this status at a path."""
        return self.resolved(self.paths[path]["get"]["responses"][str(status)])

    def address(self, path: str, **values: object) -> str:
        """A path with values for its parameters: `values`, or the examples of the description."""
        for parameter in map(self.resolved, self.paths[path].get("parameters", ())):
            value = values.get(parameter["name"], parameter["example"])
            path = path.replace(f"{{{parameter['name']}}}", str(value))
        return path

    def hold(self, answer: webtest.TestResponse, path: str) -> None:
        """Holds an answer to the description of `path`: its status, type, headers and body."""
        response = self.response(path, answer.status_int)
        headers = {
            name: self.resolved(header) for name, header in response.get("headers", {}).items()
        }
        for name, header in headers.items():
            if name in answer.headers:
                assert re.search(header["schema"].get("pattern", ""), answer.headers[name]), name
                assert answer.headers[name] == header["schema"].get(
                    "const", answer.headers[name]
                ), name
            else:
                assert not header.get("required"), name
        described = {name.lower() for name in headers} | {"content-type", "content-length"}
        assert {name.lower() for name in answer.headers} <= described, sorted(answer.headers)
        if "content" not in response:
            assert answer.body == b""
            return
        content = response["content"][answer.content_type]
        if not content:  # any bytes
            return
        is_text = answer.content_type.startswith("text/")
        self.validate(content["schema"], answer.text if is_text else answer.json)


def is_part(part: object, whole: object) -> bool:
    """Whether an answer has the keys and values of a shortened one, in their order."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return [*part] == [key for key in whole if key in part] and all(
            is_part(part[key], whole[key]) for key in part
        )
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(is_part, part, whole))
    return part == whole

"""README.md against the code: its tables are complete, and its example requests are answered with data."""

import os
import re
from dataclasses import fields

import pytest
from falcon.inspect import inspect_routes
from service import ROOT
from webtest import TestApp

from racedata.settings import Settings

README = (ROOT / "README.md").read_text(encoding="utf-8")
BASE = Settings().base_address

# A value that each filter accepts.
VALUES = {
    "circuits": "americas",
    "constructors": "ferrari",
    "drivers": "alonso",
    "grid": "1",
    "fastest": "1",
    "results": "1",
    "status": "1",
    "laps": "1",
    "pitstops": "1",
    "qualifying": "1",
    "sprint": "1",
    "driverstandings": "1",
    "constructorstandings": "1",
}


def table(heading: str) -> list[list[str]]:
    """The rows of the first table with this text in its head, as lists of cells."""
    rows = re.search(rf"^\| *{re.escape(heading)} *\|.*\n\|[-| ]+\|\n((?:\|.*\n)+)", README, re.M)
    assert rows, f"README.md has no table {heading!r}"
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows[1].splitlines()]


def in_code(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall("`([^`]+)`", text)


ENDPOINTS = {in_code(row[0])[0]: row for row in table("Endpoint")}
EXAMPLES = [BASE + address for row in ENDPOINTS.values() for address in in_code(row[2])]
REQUESTS = re.findall(r"curl '?http://127.0.0.1:8000([^\s']+)", README)


def test_the_table_of_endpoints_has_a_row_for_every_route(sample: TestApp) -> None:
    routes = {route.path for route in inspect_routes(sample.app)}
    assert {f"{BASE}/{name}" for name in ENDPOINTS} | {"/", "/healthz", "/openapi.json"} == routes


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_an_endpoint_takes_the_filters_of_its_row_and_refuses_the_others(sample: TestApp, endpoint: str) -> None:
    listed = {*in_code(ENDPOINTS[endpoint][3])}
    addresses = {name: f"{BASE}/2023/18/{name}/{value}/{endpoint}" for name, value in VALUES.items()}
    taken = {name for name, address in addresses.items() if sample.get(address, status=[200, 400]).status_int == 200}
    assert listed == {"season", "round", *taken}


def test_the_table_of_filters_has_every_filter_that_an_endpoint_takes() -> None:
    described = {name for row in table("Filter") for name in in_code(row[0])}
    used = {name for row in ENDPOINTS.values() for name in in_code(row[3])}
    assert described == used - {"season", "round"}


def test_the_table_of_settings_has_every_variable_and_its_default() -> None:
    listed = {row[0].strip("`"): row[1].strip("`") for row in table("Variable")}
    settings = {each.metadata["variable"]: str(each.default) for each in fields(Settings)}
    settings["WEB_CONCURRENCY"] = "one per core, at most 8"
    settings = {variable: default or "(empty)" for variable, default in settings.items()}
    assert listed == settings
    assert Settings().workers == min(os.cpu_count() or 1, 8)


@pytest.mark.parametrize("address", sorted({*EXAMPLES, *REQUESTS}))
def test_a_request_in_the_readme_is_answered_with_data(sample: TestApp, address: str) -> None:
    assert sample.get(address, status=200).json["MRData"]["RaceTable"]["Races"]


def test_the_table_of_files_has_every_file_of_the_package() -> None:
    listed = {name.rstrip("/") for row in table("File in `racedata/`") for name in in_code(row[0])}
    present = {path.name for path in (ROOT / "racedata").iterdir()}
    assert listed == present - {"__init__.py", "__pycache__", "py.typed"}


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "deploy/README.md"])
def test_every_file_that_a_document_names_exists(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = {ROOT / name for name in re.findall(r"`((?:racedata|scripts|data|tests|deploy)/[\w./-]+)`", text)}
    linked = {(ROOT / document).parent / name for name in re.findall(r"\]\(([\w./-]+)\)", text)}
    assert [path for path in named | linked if not path.exists() and path != ROOT / "data/racedata.db"] == []


def test_the_readme_is_short_enough_to_read() -> None:
    assert len(README.splitlines()) <= 200

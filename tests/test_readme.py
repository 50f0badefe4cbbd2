"""README.md and CONTRIBUTING.md against the code: tables are complete, and example requests are answered with data."""

import os
import re
from dataclasses import fields

import pytest
from falcon.inspect import inspect_routes
from support import ROOT
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


def table(heading: str, document: str = README) -> list[list[str]]:
    """The rows of the first table with this text in its head, its head first, as lists of cells."""
    rows = re.search(rf"^\| *{re.escape(heading)} *\|.*\n\|[-| ]+\|\n(?:\|.*\n)+", document, re.M)
    assert rows, f"no table {heading!r}"
    head, _, *others = rows[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, *others)]


def in_code(text: str) -> list[str]:
    """The texts in backticks."""
    return re.findall("`([^`]+)`", text)


def section(heading: str) -> str:
    found = re.search(rf"^## {heading}\n(.*?)^## ", README, re.M | re.S)
    assert found, f"README.md has no section {heading!r}"
    return found[1]


HEAD, *ROWS = table("Endpoint")
ENDPOINTS = {in_code(row[0])[0]: row for row in ROWS}
# Every address that the section gives as an example.
OUTSIDE = {"/", "/healthz", "/openapi.json"}
EXAMPLES = {BASE + text for text in in_code(section("Endpoints")) if text[0] == "/" and text not in {BASE, *OUTSIDE}}
REQUESTS = re.findall(r"curl '?http://127.0.0.1:8000([^\s']+)", README)


def listed(endpoint: str) -> set[str]:
    """The filters that the row of an endpoint has: a mark in their column, or their name in the last one."""
    row = ENDPOINTS[endpoint]
    marked = {name for head, cell in zip(HEAD[3:-1], row[3:-1]) if cell for name in in_code(head)}
    return marked | {*in_code(row[-1])}


def test_the_table_of_endpoints_has_a_row_for_every_route(sample: TestApp) -> None:
    routes = {route.path for route in inspect_routes(sample.app)}
    assert {f"{BASE}/{name}" for name in ENDPOINTS} | OUTSIDE == routes


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_an_endpoint_takes_the_filters_of_its_row_and_refuses_the_others(sample: TestApp, endpoint: str) -> None:
    addresses = {name: f"{BASE}/2023/18/{name}/{value}/{endpoint}" for name, value in VALUES.items()}
    taken = {name for name, address in addresses.items() if sample.get(address, status=[200, 400]).status_int == 200}
    assert listed(endpoint) == {"season", "round", *taken}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_the_table_of_endpoints_says_which_of_them_need_a_season_and_a_round(sample: TestApp, endpoint: str) -> None:
    status = sample.get(f"{BASE}/2023/{endpoint}", status=[200, 400]).status_int
    assert (ENDPOINTS[endpoint][3] == "required") == (status == 400)


@pytest.mark.parametrize("endpoint", [name for name in ENDPOINTS if "circuits" in listed(name)])
def test_filters_with_the_first_footnote_and_no_others_refuse_a_circuit_beside_them(
    sample: TestApp, endpoint: str
) -> None:
    for name in listed(endpoint) - {"season", "round"}:
        address = f"{BASE}/2023/18/{name}/{VALUES[name]}/circuits/americas/{endpoint}"
        status = sample.get(address, status=[200, 400]).status_int
        assert (status == 400) == (f"`{name}`¹" in ENDPOINTS[endpoint][-1])


def test_the_table_of_filters_has_every_filter_that_an_endpoint_takes() -> None:
    described = {name for row in table("Filter")[1:] for name in in_code(row[0])}
    used = {name for endpoint in ENDPOINTS for name in listed(endpoint)}
    assert described == used - {"season", "round"} == {*VALUES}


def test_the_table_of_settings_has_every_variable_and_its_default() -> None:
    documented = {row[0].strip("`"): row[1].strip("`") for row in table("Variable")[1:]}
    settings = {each.metadata["variable"]: str(each.default) for each in fields(Settings)}
    settings["WEB_CONCURRENCY"] = "one per core, at most 8"
    settings = {variable: default or "(empty)" for variable, default in settings.items()}
    assert documented == settings
    assert Settings().workers == min(os.cpu_count() or 1, 8)


@pytest.mark.parametrize("address", sorted({*EXAMPLES, *REQUESTS}))
def test_a_request_in_the_readme_is_answered_with_data(sample: TestApp, address: str) -> None:
    assert sample.get(address, status=200).json["MRData"]["total"] != "0"


def test_every_endpoint_has_an_example_of_its_own(sample: TestApp) -> None:
    for endpoint in ENDPOINTS:
        (example,) = in_code(ENDPOINTS[endpoint][2])
        assert f"/{endpoint}" in example


@pytest.mark.parametrize("folder", ["racedata", "scripts"])
def test_the_table_of_files_has_every_file_of_a_folder(folder: str) -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = table(f"File in `{folder}/`", contributing)[1:]
    documented = {name.rstrip("/") for row in rows for name in in_code(row[0])}
    present = {path.name for path in (ROOT / folder).iterdir()}
    assert documented == present - {"__init__.py", "__pycache__", "py.typed"}


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "deploy/README.md"])
def test_every_file_that_a_document_names_exists(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = {ROOT / name for name in re.findall(r"`((?:racedata|scripts|data|tests|deploy)/[\w./-]+)`", text)}
    linked = {(ROOT / document).parent / name for name in re.findall(r"\]\(([\w./-]+)\)", text)}
    assert [path for path in named | linked if not path.exists() and path != ROOT / "data/racedata.db"] == []


def test_the_readme_is_short_enough_to_read() -> None:
    assert len(README.splitlines()) <= 200

"""README.md against the code: every endpoint and every setting is in its tables, and its requests get answers."""

import os
import re
from dataclasses import fields

import pytest
from conftest import ROOT
from falcon.inspect import inspect_routes

from racedata.settings import Settings

README = (ROOT / "README.md").read_text(encoding="utf-8")


def table(heading):
    """The rows of the first table under a heading, as lists of cells."""
    section = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", section, re.M)]
    return rows[2:]


def test_the_endpoint_table_names_the_addresses_of_the_route_table(sample):
    base = Settings().base_address
    routes = {re.sub(r":\w+}", "}", route.path) for route in inspect_routes(sample.app)}
    named = {address for row in table("Endpoints") for address in re.findall("`(/[^`]*)`", " ".join(row))}
    assert {base + address for address in named} | {"/", "/healthz", "/openapi.json"} == routes


def test_the_settings_table_has_every_variable_and_its_default():
    listed = {row[0].strip("`"): row[1].strip("`") for row in table("Settings")}
    settings = {each.metadata["variable"]: str(each.default) for each in fields(Settings)}
    settings["WEB_CONCURRENCY"] = "one to a core, 8 at most"
    settings = {variable: default or "(empty)" for variable, default in settings.items()}
    assert listed == settings
    assert Settings().workers == min(os.cpu_count(), 8)


@pytest.mark.parametrize("address", sorted(set(re.findall(r"curl '?http://127.0.0.1:8000([^\s']+)", README))))
def test_a_request_of_the_readme_is_answered_with_data(sample, address):
    answer = sample.get(address, status=200).json
    assert not address.startswith("/ergast") or answer["MRData"]["RaceTable"]["Races"]


def test_every_file_it_names_is_there():
    for name in re.findall(r"`((?:racedata|scripts|data|tests|deploy)/[\w./-]+)`", README):
        assert name == "data/racedata.db" or (ROOT / name).exists()

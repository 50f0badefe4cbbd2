"""The page at `/docs`: addresses to try, endpoints, filters, parameters, errors and limits.

Text and addresses are in interface.html. What the code says already, such as filters, comes from
there; no rule of the interface is written a second time.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from racedata.formats import counted
from racedata.service import queries
from racedata.service.addresses import FILTERS
from racedata.service.catalogue import Catalogue
from racedata.service.endpoints import Endpoint
from racedata.service.openapi import PARAMETERS, accepted_filters
from racedata.service.pages.ask import Ask
from racedata.service.request import OWN_PARAMETERS
from racedata.service.selection import season_and_round
from racedata.service.snapshot import Snapshot
from racedata.service.words import full_name
from racedata.settings import WINDOWS


def facts(ask: Ask) -> dict[str, Any]:
    settings, catalogue = ask.settings, ask.catalogue
    values = example_values(ask.data, catalogue)
    current, _ = season_and_round(catalogue, "current", None)
    units = {seconds: unit for unit, seconds in WINDOWS.items()}
    return {
        "current": current,
        "last": "{}/{}".format(*season_and_round(catalogue, "current", "last")),
        "next": "{}/{}".format(*season_and_round(catalogue, "current", "next")),
        "values": values,  # in the examples
        "endpoints": ask.endpoints,
        # the filters that an endpoint accepts, in words
        "filters": {name: accepted_filters(each.rules) for name, each in ask.endpoints.items()},
        # Name, example and description, with code in backticks, by the form of their values.
        "forms": {
            parse.expected: [*filters_of(parse.expected, values)] for parse in FILTERS.values()
        },
        "own_parameters": [*own_parameters(ask.endpoints)],
        "limits": [
            f"{counted(limit.quota, 'request')} per {units[limit.window]}"
            for limit in settings.rate_limits
        ],
    }


def llms(ask: Ask) -> dict[str, Any]:
    """The facts of `/llms.txt`: where AI assistants find what, in plain text."""
    seasons = ask.catalogue.rounds
    return {
        "first": min(seasons),
        "last": max(seasons),
        "example": "{}/{}".format(*queries.example_race(ask.data)),
        "endpoints": [*ask.endpoints.values()],
    }


def own_parameters(endpoints: Mapping[str, Endpoint]) -> Iterator[tuple[str, str, str]]:
    """The parameters that only some endpoints have: name, description, and these endpoints."""
    for name in OWN_PARAMETERS:
        names = [each.name for each in endpoints.values() if name in each.rules.parameters]
        yield name, PARAMETERS[name]["description"], ", ".join(names)


def example_values(data: Snapshot, catalogue: Catalogue) -> dict[str, str]:
    """Values for the examples in the template: the example race, its circuit, its winner."""
    race = catalogue.id_of_round[queries.example_race(data)]
    _, (winner,) = queries.RESULTS.page(data, {"race": race}, 1, 0)
    season, round, circuit = (catalogue.races[race][key] for key in ("season", "round", "Circuit"))
    driver = catalogue.drivers[winner["driverId"]]
    constructor = catalogue.constructors[winner["constructorId"]]
    return {
        "season": season,
        "round": round,
        "circuit": circuit["circuitId"],
        "circuit_name": circuit["circuitName"],
        "driver": driver["driverId"],
        "driver_name": full_name(driver),
        "constructor": constructor["constructorId"],
        "constructor_name": constructor["name"],
    }


def filters_of(form: str, values: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """The filters whose values have this form."""
    ids = {"circuits": "circuit", "constructors": "constructor", "drivers": "driver"}
    for name, parse in FILTERS.items():
        if parse.expected == form:
            parameter = PARAMETERS[name]
            example = values[ids[name]] if name in ids else parameter["example"]
            yield name, example, parameter["description"]

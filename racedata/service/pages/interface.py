"""The page at `/docs`: addresses to try, endpoints, filters, errors and limits.

Fixed text is in interface.html. The rest is generated from the records in endpoints.py; no rule of
the interface is written here a second time.
"""

from collections.abc import Iterator, Mapping
from typing import TypedDict

from racedata.formats import counted
from racedata.service import queries
from racedata.service.addresses import FILTERS, FORMS
from racedata.service.catalogue import Catalogue, full_name
from racedata.service.endpoints import Endpoint
from racedata.service.openapi import PARAMETERS, accepted_filters
from racedata.service.pages.ask import Ask
from racedata.service.snapshot import Snapshot
from racedata.settings import WINDOWS, Settings

# The groups of endpoints on the page. Each endpoint has addresses to try, with a text that
# describes the answer. Names in braces are replaced by `example_values`.
EXAMPLES: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "Seasons and calendar": {
        "seasons": {
            "/seasons": "all seasons",
            "/drivers/{driver}/seasons": "the seasons of {driver_name}",
        },
        "races": {
            "/{season}": "the calendar of {season}",
            "/{season}/{round}": "one race, with its sessions",
            "/circuits/{circuit}/races": "all races at {circuit_name}",
        },
        "circuits": {
            "/{season}/circuits": "the circuits of {season}",
            "/circuits/{circuit}": "one circuit",
        },
    },
    "Drivers and constructors": {
        "drivers": {
            "/drivers/{driver}": "one driver",
            "/{season}/{round}/drivers": "who took part in one race",
            "/constructors/{constructor}/drivers": "who drove for {constructor_name}",
        },
        "constructors": {
            "/{season}/constructors": "the constructors of {season}",
            "/drivers/{driver}/constructors": "the constructors that {driver_name} drove for",
        },
    },
    "Races and their sessions": {
        "results": {
            "/{season}/{round}/results": "one race",
            "/{season}/results/1": "the winners of {season}",
            "/drivers/{driver}/results/1": "the wins of {driver_name}",
            "/drivers/{driver}/circuits/{circuit}/results": "{driver_name} at {circuit_name}",
        },
        "qualifying": {
            "/{season}/{round}/qualifying": "one qualifying session",
            "/{season}/qualifying/1": "the fastest qualifiers of {season}",
        },
        "sprint": {
            "/{season}/{round}/sprint": "one sprint",
            "/{season}/sprint/1": "the sprint winners of {season}",
        },
        "sprintqualifying": {
            "/{season}/{round}/sprintqualifying": "one sprint qualifying session",
            "/{season}/sprintqualifying/1": "the fastest in each session of {season}",
        },
        "practice": {
            "/{season}/{round}/practice": "all practice sessions of one weekend",
            "/{season}/{round}/practice/1": "the first practice of one weekend",
            "/{season}/drivers/{driver}/practice": "{driver_name}'s practice results of {season}",
        },
        "pitstops": {
            "/{season}/{round}/pitstops": "all stops in one race",
            "/{season}/{round}/drivers/{driver}/pitstops": "{driver_name} in one race",
            "/{season}/drivers/{driver}/pitstops": "{driver_name} in all races of {season}",
        },
        "laps": {
            "/{season}/{round}/laps/1": "the first lap of one race",
            "/{season}/{round}/drivers/{driver}/laps": "all laps of {driver_name} in one race",
        },
        "status": {
            "/{season}/status": "how the races of {season} ended",
            "/drivers/{driver}/status": "how {driver_name}'s races ended",
        },
    },
    "Championships": {
        "driverstandings": {
            "/{season}/driverstandings": "the latest standings of {season}",
            "/{season}/{round}/driverstandings": "the standings after one race",
            "/driverstandings/1": "all champions",
        },
        "constructorstandings": {
            "/{season}/constructorstandings": "the latest standings of {season}",
            "/constructorstandings/1": "all champions",
        },
    },
    "Errors in the sources": {
        "corrections": {
            "/corrections": "all values that were corrected",
            "/{season}/corrections": "the corrected values of {season}",
        },
    },
}


class Facts(TypedDict):
    base: str  # a link to the base address
    current: int | None
    last: str  # season and round
    next: str
    examples: Mapping[str, Mapping[str, Mapping[str, str]]]  # EXAMPLES
    values: Mapping[str, str]  # in the examples
    endpoints: Mapping[str, Endpoint]
    filters: Mapping[str, str]  # that an endpoint accepts, in words
    # Name, example and description, with code in backticks, by the form of their values.
    forms: Mapping[str, list[tuple[str, str, str]]]
    default_limit: int
    max_limit: int
    limits: list[str]


def facts(settings: Settings, data: Snapshot, catalogue: Catalogue, ask: Ask) -> Facts:
    """What interface.html shows."""
    values = example_values(data, catalogue)
    current, _ = catalogue.season_and_round("current", None)
    units = {seconds: unit for unit, seconds in WINDOWS.items()}
    return Facts(
        base=settings.base_link,
        current=current,
        last="{}/{}".format(*catalogue.season_and_round("current", "last")),
        next="{}/{}".format(*catalogue.season_and_round("current", "next")),
        examples=EXAMPLES,
        values=values,
        endpoints=ask.endpoints,
        filters={name: accepted_filters(each.rules) for name, each in ask.endpoints.items()},
        forms={form: [*filters_of(form, values)] for form in dict.fromkeys(FORMS.values())},
        default_limit=settings.usual_limit,
        max_limit=settings.max_limit,
        limits=[
            f"{counted(limit.quota, 'request')} per {units[limit.window]}"
            for limit in settings.rate_limits
        ],
    )


def example_values(data: Snapshot, catalogue: Catalogue) -> dict[str, str]:
    """Values for the addresses and texts of EXAMPLES: the example race, its circuit, its winner."""
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
        if FORMS[parse] == form:
            parameter = PARAMETERS[name]
            example = values[ids[name]] if name in ids else parameter["example"]
            yield name, example, parameter["description"]

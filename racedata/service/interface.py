"""The HTML page at `/docs`: addresses to try, endpoints, filters, errors and limits.

Fixed text is in interface.html. The rest is generated from the classes in endpoints.py; no rule of
the interface is written here a second time.
"""

import re
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from string import Template

from racedata.formats import counted
from racedata.service import queries
from racedata.service.addresses import FILTERS, FORMS, Rules
from racedata.service.catalogue import Catalogue, full_name
from racedata.service.endpoint import Endpoint
from racedata.service.html import document
from racedata.service.openapi import PARAMETERS
from racedata.service.snapshot import Snapshot
from racedata.settings import WINDOWS, Settings

# Names that begin with a dollar sign are filled in.
BODY = files(__package__).joinpath("interface.html").read_text(encoding="utf-8")

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


def html(
    settings: Settings, data: Snapshot, catalogue: Catalogue, endpoints: Mapping[str, Endpoint]
) -> str:
    """The page, as HTML."""
    values = example_values(data, catalogue)
    current, _ = catalogue.season_and_round("current", None)
    body = Template(BODY).substitute(
        base=escape(settings.base_link),
        current=current,
        last="{}/{}".format(*catalogue.season_and_round("current", "last")),
        next="{}/{}".format(*catalogue.season_and_round("current", "next")),
        endpoints="\n".join(endpoint_sections(settings, endpoints, values)),
        filters="\n".join(filter_lists(values)),
        default_limit=settings.usual_limit,
        max_limit=settings.max_limit,
        limits=limits_in_words(settings),
    )
    return document("Interface - racedata", body, settings.contact)


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


def endpoint_sections(
    settings: Settings, by_name: Mapping[str, Endpoint], values: Mapping[str, str]
) -> Iterator[str]:
    """The endpoints in their groups, as HTML: name, summary, links, filters."""
    for group, examples in EXAMPLES.items():
        yield f"<h3>{group}</h3>"
        for name, addresses in examples.items():
            endpoint = by_name[name]
            heading = f"<code>{name}</code> <span>{escape(endpoint.summary)}</span>"
            yield f'<section id="{name}"><h4>{heading}</h4><ul>'
            for address, text in addresses.items():
                yield (
                    f"<li>{link(settings, address.format_map(values))} "
                    f"{escape(text.format_map(values))}</li>"
                )
            yield f"</ul><p>{accepted_filters(endpoint.rules)}</p></section>"


def link(settings: Settings, address: str) -> str:
    return (
        f'<a href="{escape(settings.base_link + address)}.json"><code>{escape(address)}</code></a>'
    )


def accepted_filters(rules: Rules) -> str:
    """The filters that an endpoint accepts, as sentences."""
    names = [name for name in FILTERS if name in rules.filters and name not in rules.only_beside]
    text = f"Filters: {', '.join(names)}."
    if rules.needs_season:
        text = f"Needs a season. {text}"
    for name, others in rules.only_beside.items():
        *most, last = sorted(others)
        combined = f"{', '.join(most)} and {last}" if most else last
        text += f" Also {name}, which combines only with {combined}."
    return text


def filter_lists(values: Mapping[str, str]) -> Iterator[str]:
    """The filters, grouped by the form of their values, as HTML."""
    ids = {"circuits": "circuit", "constructors": "constructor", "drivers": "driver"}
    for form in dict.fromkeys(FORMS.values()):
        yield f"<h3>{form[0].upper()}{form[1:]}</h3><dl>"
        for name, parse in FILTERS.items():
            if FORMS[parse] == form:
                parameter = PARAMETERS[name]
                example = values[ids[name]] if name in ids else parameter["example"]
                text = with_code(parameter["description"])
                yield f"<div><dt><code>{name}/{escape(example)}</code></dt><dd>{text}</dd></div>"
        yield "</dl>"


def with_code(text: str) -> str:
    """Converts a text with code in backticks to HTML."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def limits_in_words(settings: Settings) -> str:
    units = {seconds: unit for unit, seconds in WINDOWS.items()}
    named = [
        f"{counted(limit.quota, 'request')} per {units[limit.window]}"
        for limit in settings.rate_limits
    ]
    if not named:
        return "None."
    return (
        f"Each client may send {' and '.join(named)}. Beyond that, the answer is a 429 that says "
        "how many seconds to wait."
    )

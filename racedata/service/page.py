"""The page at `/`: season, endpoints with links, limits, loaded data. And what HTML pages share.

What never changes is in layout.html, for all HTML pages, and in page.html. The season is in
latest.py. The rest is generated from the classes in endpoints.py.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from html import escape
from importlib.resources import files
from itertools import groupby
from string import Template

import falcon

from racedata.kinds import KINDS
from racedata.service import latest, queries
from racedata.service.about import Document
from racedata.service.addresses import FILTERS, FORMS, Rules
from racedata.service.caching import Validators
from racedata.service.catalogue import Catalogue, full_name
from racedata.service.endpoint import Endpoint
from racedata.service.latest import Ask
from racedata.service.openapi import PARAMETERS
from racedata.service.ratelimit.bucket import WINDOWS
from racedata.service.settings import Settings
from racedata.service.snapshot import Snapshot, public_name, public_url

# Names that begin with a dollar sign are filled in. All HTML pages share the layout.
LAYOUT, BODY = (
    files(__package__).joinpath(name).read_text(encoding="utf-8")
    for name in ("layout.html", "page.html")
)
CONTENT_TYPE = "text/html; charset=utf-8"
CHECKED = "<!--checked-->"  # its place on the page; no text has it, because texts are escaped


def source_of(tag: str, html: str) -> str:
    """The hash of the one script or style in a page, as Content-Security-Policy names it."""
    (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# Only on HTML pages: no browser runs or follows anything in an answer of another type.
HEADERS = [
    (
        "content-security-policy",
        f"default-src 'none'; style-src {source_of('style', LAYOUT)}; "
        f"script-src {source_of('script', LAYOUT)}; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    # the address of a service in a private network is nobody's business
    ("referrer-policy", "no-referrer"),
]

# Labels of the tables whose rows are counted.
COUNTED = {
    "races": "Races",
    "circuits": "Circuits",
    "drivers": "Drivers",
    "constructors": "Constructors",
}

# The groups of endpoints on the page. Each endpoint has addresses to try, with a text that
# describes the answer. Names in braces are replaced by `example_values`.
EXAMPLES: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "Seasons and calendar": {
        "seasons": {
            "/seasons": "all seasons",
            "/drivers/{driver}/seasons": "those of {driver_name}",
        },
        "races": {
            "/{season}": "the calendar of {season}",
            "/{season}/{round}": "one race, with its sessions",
            "/circuits/{circuit}/races": "all races at {circuit_name}",
        },
        "circuits": {
            "/{season}/circuits": "where {season} was held",
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
            "/drivers/{driver}/constructors": "those that {driver_name} drove for",
        },
    },
    "Races and their sessions": {
        "results": {
            "/{season}/{round}/results": "one race",
            "/{season}/results/1": "the winners of {season}",
            "/drivers/{driver}/circuits/{circuit}/results": "{driver_name} at {circuit_name}",
        },
        "qualifying": {
            "/{season}/{round}/qualifying": "one qualifying",
            "/{season}/qualifying/1": "first places of {season}",
        },
        "sprint": {
            "/{season}/{round}/sprint": "one sprint",
            "/{season}/sprint/1": "sprint winners of {season}",
        },
        "sprintqualifying": {
            "/{season}/{round}/sprintqualifying": "one sprint qualifying",
            "/{season}/sprintqualifying/1": "first places of {season}",
        },
        "practice": {
            "/{season}/{round}/practice": "all practices of one weekend",
            "/{season}/{round}/practice/1": "the first one",
            "/{season}/drivers/{driver}/practice": "those of {driver_name}",
        },
        "pitstops": {
            "/{season}/{round}/pitstops": "one race",
            "/{season}/{round}/drivers/{driver}/pitstops": "{driver_name} in that race",
            "/{season}/drivers/{driver}/pitstops": "{driver_name} in all races of {season}",
        },
        "laps": {
            "/{season}/{round}/laps/1": "the first lap of one race",
            "/{season}/{round}/drivers/{driver}/laps": "all laps of {driver_name}",
        },
        "status": {
            "/{season}/status": "how races of {season} ended",
            "/drivers/{driver}/status": "for {driver_name}",
        },
    },
    "Championships": {
        "driverstandings": {
            "/{season}/driverstandings": "the latest of {season}",
            "/{season}/{round}/driverstandings": "after one race",
            "/driverstandings/1": "all champions",
        },
        "constructorstandings": {
            "/{season}/constructorstandings": "the latest of {season}",
            "/constructorstandings/1": "all champions",
        },
    },
    "Errors of the sources": {
        "corrections": {
            "/corrections": "all values that were corrected",
            "/{season}/corrections": "those of {season}",
        },
    },
}


class Page:
    """The resource of `/`: made once per database, and again when a refresh has asked a source.

    `validators` makes the Validators for such a time.
    """

    def __init__(self, data: Snapshot, html: str, validators: Callable[[str], Validators]) -> None:
        self.data, self.html, self.validators = data, html, validators
        self.made = self.make("")

    def make(self, checked: str) -> tuple[str, Document]:
        """The page for a time: the time, and a Document."""
        text = ""
        if checked > self.data.build()["builtAt"]:  # else it is clear
            text = f" Sources last checked {in_zone(checked)}."
        html = self.html.replace(CHECKED, text)
        return checked, Document(self.validators(checked), html, CONTENT_TYPE, HEADERS)

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        made_for, document = self.made
        checked = max(
            (noted.get("refreshedAt", "") for noted in self.data.refreshes().values()), default=""
        )
        if checked != made_for:
            _, document = self.made = self.make(checked)
        document.on_get(req, resp)

    on_head = on_get


def document(title: str, body: str) -> str:
    """A whole HTML page; `body` is HTML already."""
    return Template(LAYOUT).substitute(title=escape(title), body=body)


def html(settings: Settings, data: Snapshot, catalogue: Catalogue, ask: Ask) -> str:
    """The page, as HTML. `Page` replaces CHECKED with the time of the last refresh."""
    values = example_values(data, catalogue)
    notice = data.sample_notice()
    current, _ = catalogue.season_and_round("current", None)
    body = Template(BODY).substitute(
        banner=f'<p id="sample">{escape(notice)}</p>' if notice else "",
        data=f"Data updated {in_zone(data.build()['builtAt'])}.{CHECKED}",
        next_race=latest.next_race(ask, settings.season_pages),
        last_race=latest.last_race(ask, settings.base_link, settings.season_pages),
        championships="\n".join(latest.championships(ask, settings.base_link)),
        seasons="\n".join(season_links(catalogue, settings.season_pages)),
        base=escape(settings.base_link),
        facts="\n".join(
            f"<div><dt>{name}</dt><dd>{value}</dd></div>"
            for name, value in loaded_facts(data, settings)
        ),
        coverage="\n".join(coverage_rows(data.coverage())),
        sources="\n".join(source_items(data)),
        endpoints="\n".join(endpoint_sections(settings, ask.endpoints, values)),
        filters="\n".join(filter_lists(values)),
        current=current,
        last="{}/{}".format(*catalogue.season_and_round("current", "last")),
        next="{}/{}".format(*catalogue.season_and_round("current", "next")),
        default_limit=settings.default_limit,
        max_limit=settings.max_limit,
        limits=limits_in_words(settings),
        download=download_block(settings, data),
    )
    return document("racedata: Formula One data", body)


def in_zone(written: str) -> str:
    """A time with its time zone, which the script of the page changes to the reader's."""
    return f'{latest.moment(written)} <span class="zone">UTC</span>'


def season_links(catalogue: Catalogue, pages: str) -> Iterator[str]:
    """Links to the pages of all seasons with races, by decade, the latest first, as HTML."""
    for decade, seasons in groupby(
        sorted({year for year, _ in catalogue.id_of_round}, reverse=True),
        key=lambda season: season // 10 * 10,
    ):
        links = " ".join(f'<a href="{pages}{season}">{season}</a>' for season in seasons)
        yield f"<div><dt>{decade}s</dt><dd>{links}</dd></div>"


def loaded_facts(data: Snapshot, settings: Settings) -> Iterator[tuple[str, str]]:
    """What is loaded: names, and values as HTML."""
    build, counts = data.build(), data.row_counts()
    yield "Seasons", "{}, from {} to {}".format(*queries.seasons_loaded(data))
    for table, name in COUNTED.items():
        yield name, f"{counts[table]:,}"
    corrected, _ = queries.corrections(data, {}, 0, 0)
    if corrected:
        link = f"{settings.base_link}/corrections.json"
        yield (
            "Corrections",
            with_link(f"{counted(corrected, 'value')} corrected", link),
        )
    yield "Built", build["builtAt"].replace("T", " ").replace("Z", " UTC")


def coverage_rows(coverage: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """The rows of the coverage table, as HTML."""
    for kind in KINDS.values():
        if covered := coverage.get(kind.name):
            first, last, races, run = (covered[key] for key in ("first", "last", "races", "run"))
            seasons = f"{first} to {last}" if first < last else str(first)
            of = f" of {run:,}" if races < run and kind.has_every_race else ""
            cells = f"<td>{seasons}</td><td>{'all ' * (races == run)}{races:,}{of}</td>"
        else:
            cells = "<td>none</td><td>none</td>"
        yield f'<tr><th scope="row">{kind.label}</th>{cells}</tr>'


def source_items(data: Snapshot) -> Iterator[str]:
    """The sources with their licences and what they gave, as HTML."""
    for source in data.sources():
        name, url = public_name(source["name"]), public_url(source["address"])
        licence, records = source["licence"] or "not stated", source["gave"] or "none"
        if source["isProvisional"] and source["gave"]:
            records += "; provisional, until another source has them"
        yield f"""<div><dt>{with_link(name, url)}</dt>
<dd><p>Licence: {escape(licence)}.</p><p>Records: {escape(records)}.</p></dd></div>"""


def with_link(text: str, url: str | None) -> str:
    """A text as HTML, as a link if there is a URL."""
    return f'<a href="{escape(url)}">{escape(text)}</a>' if url else escape(text)


def example_values(data: Snapshot, catalogue: Catalogue) -> dict[str, str]:
    """Values for the addresses and texts of EXAMPLES: the example race, its circuit, its winner."""
    race = catalogue.id_of_round[queries.example_race(data)]
    _, (winner,) = queries.RESULTS.page(data, {"race": race}, 1, 0)
    season, round, circuit = (catalogue.races[race][key] for key in ("season", "round", "Circuit"))
    driver, constructor = (
        catalogue.drivers[winner["driverId"]],
        catalogue.constructors[winner["constructorId"]],
    )
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
    """The filters that an endpoint accepts, as a sentence or two."""
    names = [name for name in FILTERS if name in rules.filters and name not in rules.only_beside]
    text = "Needs a season. " * rules.needs_season + f"Filters: {', '.join(names)}."
    if rules.only_beside:
        others = set[str]().union(*rules.only_beside.values()) - {*rules.only_beside}
        text += (
            f" Also {' and '.join(rules.only_beside)}, "
            f"combined only with {' and '.join(sorted(others))}."
        )
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


def counted(number: int, noun: str) -> str:
    """`1 request`, `2,000 requests`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def download_block(settings: Settings, data: Snapshot) -> str:
    """How to download the database, as HTML; nothing if the service does not offer it."""
    if not settings.download:
        return ""
    return (
        f'<p id="download"><a href="racedata.db">racedata.db</a> is the whole database, an SQLite '
        f"file of {data.file.size / 1e6:.1f} MB. What is in it has the licences of its "
        '<a href="#sources">sources</a>. The limits count it as one request for each 256 KB, '
        "and at most as a quarter of the requests that a limit allows.</p>"
    )


def limits_in_words(settings: Settings) -> str:
    """The rate limits in words."""
    units = {seconds: unit for unit, seconds in WINDOWS.items()}
    named = [
        f"{counted(limit.quota, 'request')} per {units[limit.window]}"
        for limit in settings.rate_limits
    ]
    if not named:
        return "None."
    return (
        f"Each client may send {' and '.join(named)}. Beyond that, "
        "the answer is 429 with the seconds to wait."
    )

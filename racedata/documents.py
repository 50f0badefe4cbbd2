"""What the service says of itself: its description in OpenAPI, and the page for people.

Both are made once for a database and its settings, out of openapi.json and home.html. Answers with data are not here.
"""

import json
import re
from copy import deepcopy
from html import escape
from importlib.resources import files
from string import Template

from racedata.resources import DEFAULT_LIMIT

OPENAPI = json.loads(files(__package__).joinpath("openapi.json").read_text(encoding="utf-8"))
HOME = Template(files(__package__).joinpath("home.html").read_text(encoding="utf-8"))

# What a row of each table is called on the page.
RECORDS = {
    "races": "Races",
    "results": "Results",
    "qualifying": "Qualifying results",
    "sprint_results": "Sprint results",
    "lap_times": "Lap timings",
}


def description(settings):
    """The OpenAPI document of a service with these settings, as JSON text."""
    document = deepcopy(OPENAPI)
    document["servers"][0]["url"] = base_of(settings)
    for path in document["paths"].values():
        for server in path.get("servers", ()):
            server["url"] = root_of(settings)
    limit = document["components"]["parameters"]["limit"]
    limit["description"] = limit["description"].replace("2000", str(settings.max_limit))
    limit["schema"]["default"] = default_limit(settings)
    return json.dumps(document, indent=1, ensure_ascii=False)


def home(database, settings):
    """The page, as HTML text: what is loaded, a link to each endpoint, the limits."""
    return HOME.substitute(
        base=escape(base_of(settings)),
        facts="\n".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts(database)),
        endpoints="\n".join(endpoints(database, settings)),
        default_limit=default_limit(settings),
        limits=limits(settings),
    )


def default_limit(settings):
    return min(DEFAULT_LIMIT, settings.max_limit)


def root_of(settings):
    """Where this page and the description are, as far as the settings tell."""
    if settings.base_url.endswith(settings.base_address):
        return settings.base_url.removesuffix(settings.base_address)
    return "/"


def base_of(settings):
    """Where the endpoints are, for whoever has the address of the page."""
    return settings.base_url or settings.base_address


def facts(database):
    """What is loaded: names, and values as HTML."""
    build, counts = database.build(), database.row_counts()
    number, first, last = database.seasons()
    yield "Seasons", f"{number}, from {first} to {last}"
    for table, name in RECORDS.items():
        yield name, f"{counts[table]:,}"
    yield "Source", source(build["source"])
    yield "Built", build["builtAt"].replace("T", " ").replace("Z", " UTC")


def source(text):
    """Where the data is from, as HTML: a URL, or of a file the name alone, because folders are nobody's business."""
    if re.match("https?://", text, re.IGNORECASE):
        url = escape(re.split("[?#]", text)[0])  # what is behind these may be a key
        return f'<a href="{url}">{url}</a>'
    return escape(re.split(r"[\\/]", text.rstrip("\\/"))[-1])


def endpoints(database, settings):
    """The description's addresses as list items, with a link each to the race that there is most to say of."""
    place = dict(database.fullest_race())
    for path, operations in OPENAPI["paths"].items():
        if "{season}" in path:
            link = escape(f"{base_of(settings)}{path.format_map(place)}.json")
            yield f'<li><a href="{link}"><code>{link}</code></a>{escape(operations["get"]["summary"])}</li>'


def limits(settings):
    """The rate limits in words."""
    parts = [limit.split("/") for limit in (settings.burst_limit, settings.sustained_limit) if limit != "off"]
    named = [f"{quota} request{'s' * (quota != '1')} per {window}" for quota, window in parts]
    if not named:
        return "None."
    return f"A client has {' and '.join(named)}. Beyond that the answer is 429, with the seconds to wait."

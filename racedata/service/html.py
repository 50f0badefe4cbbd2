"""HTML that several pages share: the layout, tables, links, times, and parts of a race or season.

The content of each page is in home.py and latest.py, season.py, or interface.py.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from datetime import datetime
from html import escape
from importlib.resources import files
from string import Template

from racedata.formats import Json, public_name
from racedata.service.catalogue import full_name
from racedata.service.serializers import gap_time, sessions_of

# Names that begin with a dollar sign are filled in.
LAYOUT = files(__package__).joinpath("layout.html").read_text(encoding="utf-8")
CONTENT_TYPE = "text/html; charset=utf-8"
# The endpoint of each championship: the key of its rows, and who is in it.
CHAMPIONSHIPS = {
    "driverstandings": ("DriverStandings", "Driver"),
    "constructorstandings": ("ConstructorStandings", "Constructor"),
}
LEADERS = 5  # how many leaders of a championship a page shows before the folded rest


def csp_hash(tag: str, html: str) -> str:
    """The hash of the one script or style in a page, as Content-Security-Policy names it."""
    (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# Only on HTML pages: no browser runs or follows anything in an answer of another type.
HEADERS = [
    (
        "content-security-policy",
        f"default-src 'none'; style-src {csp_hash('style', LAYOUT)}; "
        f"script-src {csp_hash('script', LAYOUT)}; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    # Other sites must not learn the address of a service in a private network.
    ("referrer-policy", "no-referrer"),
]


def document(title: str, body: str, contact: str) -> str:
    """A whole HTML page. `body` is HTML already; `contact` is a text or a URL, and may be empty."""
    url = contact if contact.startswith(("https://", "http://", "mailto:")) else None
    link = with_link(contact.removeprefix("mailto:"), url)
    footer = f"\n<footer><p>Contact: {link}</p></footer>" if contact else ""
    return Template(LAYOUT).substitute(title=escape(title), body=body, footer=footer)


def with_link(text: str, url: str | None) -> str:
    """A text as HTML, as a link if there is a URL."""
    return f'<a href="{escape(url)}">{escape(text)}</a>' if url else escape(text)


def table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table. Its caption and cells are HTML; the first cell of a row is its heading."""
    lines = [
        f"<table>\n<caption>{caption}</caption>",
        "<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>",
    ]
    for first, *others in rows:
        lines.append(
            f'<tr><th scope="row">{first}</th>'
            + "".join(f"<td>{cell}</td>" for cell in others)
            + "</tr>"
        )
    return "\n".join([*lines, "</table>"])


def start_of(session: Json) -> str:
    """The start of a session, in the form that `time_element` takes."""
    return f"{session['date']}T{session['time']}" if "time" in session else str(session["date"])


def time_element(utc: str) -> str:
    """A date, or a date and time in UTC, which the script of the page changes to local time."""
    at = datetime.fromisoformat(utc)
    text = f"{at:%a} {at.day} {at:%b %Y}" + (f", {at:%H:%M}" if "T" in utc else "")
    return f'<time datetime="{utc}">{text}</time>'


def in_zone(utc: str) -> str:
    """A time with its time zone, which the script of the page changes to the reader's."""
    return f'{time_element(utc)} <span class="zone">UTC</span>'


def ago(utc: str) -> str:
    """A past time, which the script of the page changes to how long ago that was."""
    return f'<span class="ago" data-since="{utc}">{in_zone(utc)}</span>'


def sessions_table(race: Json) -> str:
    """The sessions of a race, in the order of their start."""
    in_order = sorted(
        sessions_of(race), key=lambda each: (each[1]["date"], each[1].get("time", "~"))
    )
    rows = ((session.label, time_element(start_of(at))) for session, at in in_order)
    return table('Sessions, in <span id="zone" class="zone">UTC</span>', ("Session", "Start"), rows)


def position(record: Json) -> str:
    return escape(record.get("positionText", ""))


def entrant(record: Json) -> str:
    """The subject of a record: a driver with the constructor, or a constructor."""
    constructor = [record["Constructor"]] if "Constructor" in record else record["Constructors"]
    names = ", ".join(escape(each["name"]) for each in constructor)
    if "Driver" not in record:
        return names
    return f"{escape(full_name(record['Driver']))} <small>{names}</small>"


def time_or_status(result: Json, winner: Json | None) -> str:
    """The winner's time, the gap to it, or the status of a driver who was lapped or did not finish.

    Some sources have total times of these drivers too, but a gap says nothing about them.
    """
    status = result.get("status", "")
    if "Time" not in result or status not in ("Finished", ""):
        return escape(status)
    return gap_time(int(result["Time"]["millis"]), int(winner["millis"]) if winner else None)


def standings_tables(endpoint: str, standings: Json, base: str) -> Iterator[str]:
    """The leaders of a championship, and the others folded. `base` links to the base address."""
    key, name = CHAMPIONSHIPS[endpoint]
    season, round = standings["season"], standings["round"]
    caption = f"{name}s after round {round} {links_to_list(f'{base}/{season}/{round}/{endpoint}')}"
    heads = ("Pos", name, "Points", "Wins")
    rows = [
        (
            position(each),
            entrant(each),
            escape(each.get("points", "")),
            escape(each.get("wins", "")),
        )
        for each in standings[key]
    ]
    yield table(caption, heads, rows[:LEADERS])
    if rest := rows[LEADERS:]:
        yield f"<details><summary>All {len(rows)} {name.lower()}s</summary>"
        yield table(f"{name}s from place {LEADERS + 1}", heads, rest) + "</details>"


def links_to_list(link: str) -> str:
    """Links to a whole list."""
    return f'(all: <a href="{escape(link)}.json">JSON</a>, <a href="{escape(link)}.csv">CSV</a>)'


def provisional_note(source: str | None) -> str:
    """A sentence that names the source of a provisional result; nothing without a source."""
    if source is None:
        return ""
    text = f"result from {public_name(source)}, until another source has it."
    return f"<p><strong>Provisional</strong> {escape(text)}</p>\n"

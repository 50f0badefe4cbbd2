"""The season on the HTML page at `/`: the next race, the last result and both championships.

It asks the endpoints, as a client does. So what is next depends on the data, not on a clock; the
script in layout.html changes the heading if that race is over. season.py uses the same tables.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from html import escape

from racedata.service import queries
from racedata.service.addresses import Grammar
from racedata.service.calendars import sessions_of
from racedata.service.catalogue import full_name, place_of
from racedata.service.endpoint import Endpoint
from racedata.service.request import ParsedRequest
from racedata.service.serializers import Json, gap_time
from racedata.service.snapshot import public_name

PLACES = 10  # of the last result
LEADERS = 5  # of each championship that are not folded
ALL = 1000  # more than any list on a page has


class Ask:
    """Asks an endpoint: `ask("/current/last/results", limit)` returns the objects in its answer."""

    def __init__(self, endpoints: Iterable[Endpoint], grammar: Grammar) -> None:
        self.endpoints, self.grammar = {endpoint.name: endpoint for endpoint in endpoints}, grammar

    def __call__(self, address: str, limit: int) -> list[Json]:
        request = ParsedRequest(self.grammar.parse(address), limit, 0, "")
        endpoint = self.endpoints[request.address.endpoint]
        objects: list[Json] = endpoint.answer(request)["MRData"][endpoint.table][endpoint.objects]
        return objects

    def total(self, address: str) -> int:
        """The number of records that match."""
        request = ParsedRequest(self.grammar.parse(address), 0, 0, "")
        return int(self.endpoints[request.address.endpoint].answer(request)["MRData"]["total"])

    def provisional(self, race: Json) -> str:
        """A sentence as HTML if the result of a race is provisional."""
        endpoint = self.endpoints["results"]
        id = endpoint.catalogue.id_of_round[int(race["season"]), int(race["round"])]
        source = queries.provisional_source(endpoint.data, id)
        if source is None:
            return ""
        text = f"result from {public_name(source)}, until another source has it."
        return f"<p><strong>Provisional</strong> {escape(text)}</p>\n"


def next_race(ask: Ask, pages: str) -> str:
    """The next race, with its sessions. `pages` is the path of the pages of seasons."""
    races = ask("/current/next", 1)
    if not races:
        return "<h2>Next</h2>\n<p>No later race is loaded.</p>"
    (race,) = races
    return f"""{heading(f'<span id="next" data-start="{start_of(race)}">Next:</span>', race, pages)}
<p id="over" hidden>This race is over, but its result is not loaded yet.</p>
{sessions_table(race)}"""


def sessions_table(race: Json) -> str:
    """The sessions of a race in the order of time."""
    in_order = sorted(
        sessions_of(race), key=lambda each: (each[1]["date"], each[1].get("time", "~"))
    )
    rows = ((session.label, time_element(start_of(at))) for session, at in in_order)
    return table('Sessions, in <span id="zone" class="zone">UTC</span>', ("Session", "Start"), rows)


def last_race(ask: Ask, base: str, pages: str) -> str:
    """The last race with results: its first places. `base` is a link to the base address."""
    address = "/current/last/results"
    (race,) = ask(address, PLACES)
    winner = race["Results"][0].get("Time")
    rows = (
        (
            position(each),
            entrant(each),
            time_or_status(each, winner),
            escape(each.get("points", "")),
        )
        for each in race["Results"]
    )
    caption = f"Result, {time_element(race['date'])} {links_to_list(base + address)}"
    heads = ("Pos", "Driver", "Time", "Points")
    result = ask.provisional(race) + table(caption, heads, rows)
    return heading("Last:", race, pages) + result


def championships(ask: Ask, base: str) -> Iterator[str]:
    """Each championship after the last race; if that has no standings yet, after an earlier one."""
    for endpoint, objects, name in (
        ("driverstandings", "DriverStandings", "Driver"),
        ("constructorstandings", "ConstructorStandings", "Constructor"),
    ):
        for standings in ask(f"/current/last/{endpoint}", ALL) or ask(f"/current/{endpoint}", ALL):
            round = standings["round"]
            links = links_to_list(f"{base}/{standings['season']}/{round}/{endpoint}")
            caption = f"{name}s after round {round} {links}"
            yield from standings_tables(caption, name, standings[objects])


def standings_tables(caption: str, name: str, standings: list[Json]) -> Iterator[str]:
    """The leaders of a championship, and the others folded."""
    heads = ("Pos", name, "Points", "Wins")
    rows = [
        (
            position(each),
            entrant(each),
            escape(each.get("points", "")),
            escape(each.get("wins", "")),
        )
        for each in standings
    ]
    yield table(caption, heads, rows[:LEADERS])
    if rest := rows[LEADERS:]:
        yield f"<details><summary>All {len(rows)} {name.lower()}s</summary>"
        yield table(f"{name}s from place {LEADERS + 1}", heads, rest) + "</details>"


def heading(prefix: str, race: Json, pages: str) -> str:
    """The name of a race as a heading that links to its page, its round and its circuit.

    `prefix` is HTML already.
    """
    page = f"{pages}{race['season']}/{race['round']}"
    return f"""<h2>{prefix} <a href="{page}">{escape(race["raceName"])}</a></h2>
<p>Round {race["round"]} of {race["season"]}. {escape(place_of(race["Circuit"]))}.</p>
"""


def links_to_list(link: str) -> str:
    """Links to a whole list."""
    return f'(all: <a href="{escape(link)}.json">JSON</a>, <a href="{escape(link)}.csv">CSV</a>)'


def position(record: Json) -> str:
    return escape(record.get("positionText", ""))


def start_of(session: Json) -> str:
    """When a session starts, as `time_element` takes it."""
    return f"{session['date']}T{session['time']}" if "time" in session else str(session["date"])


def time_element(utc: str) -> str:
    """A date, or a date and time in UTC, which the script of the page changes to local time."""
    at = datetime.fromisoformat(utc)
    text = f"{at:%a} {at.day} {at:%b %Y}" + (f", {at:%H:%M}" if "T" in utc else "")
    return f'<time datetime="{utc}">{text}</time>'


def entrant(record: Json) -> str:
    """Who a record is about: a driver with the constructor, or a constructor."""
    constructor = [record["Constructor"]] if "Constructor" in record else record["Constructors"]
    names = ", ".join(escape(each["name"]) for each in constructor)
    if "Driver" not in record:
        return names
    return f"{escape(full_name(record['Driver']))} <small>{names}</small>"


def time_or_status(result: Json, winner: Json | None) -> str:
    """The winner's time, the gap to it, or why there is none."""
    if "Time" not in result:
        return escape(result.get("status", ""))
    return gap_time(int(result["Time"]["millis"]), int(winner["millis"]) if winner else None)


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

"""What the page at `/` says of the season: the next race, the last result and both championships, as HTML.

It asks the endpoints, as a client does. So what is next depends on the data, not on a clock; the script in page.html
says so if that race is over.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from html import escape

from racedata.calendars import sessions_of
from racedata.catalogue import full_name, place_of
from racedata.serializers import Json, gap_time

# Returns the objects in the answer to an address: `ask("/current/last/results", limit)`.
Ask = Callable[[str, int], list[Json]]

PLACES = 10  # of the last result
LEADERS = 5  # of each championship


def next_race(ask: Ask) -> str:
    """The next race, with its sessions."""
    races = ask("/current/next", 1)
    if not races:
        return "<h2>Next</h2>\n<p>No later race is loaded.</p>"
    (race,) = races
    in_order = sorted(sessions_of(race), key=lambda each: (each[1]["date"], each[1].get("time", "~")))
    rows = ((session.label, moment(at)) for session, at in in_order)
    return f"""{heading("Next", race)}
<p id="over" hidden>This race is over, but its result is not loaded yet.</p>
{table('Sessions, in <span id="zone">UTC</span>', ("Session", "Start"), rows)}"""


def last_race(ask: Ask, base: str) -> str:
    """The last race with results: its first places. `base` is a link to the base address."""
    address = "/current/last/results"
    (race,) = ask(address, PLACES)
    winner = race["Results"][0].get("Time")
    rows = ((position(each), entrant(each), time(each, winner), each.get("points", "")) for each in race["Results"])
    caption = f"Result, {moment({'date': race['date']})} {whole(base + address)}"
    return heading("Last", race) + table(caption, ("Pos", "Driver", "Time", "Points"), rows)


def championships(ask: Ask, base: str) -> Iterator[str]:
    """The leaders of each championship after the last race; if that has no standings yet, after an earlier one."""
    for endpoint, objects, name in (
        ("driverstandings", "DriverStandings", "Driver"),
        ("constructorstandings", "ConstructorStandings", "Constructor"),
    ):
        for standings in ask(f"/current/last/{endpoint}", LEADERS) or ask(f"/current/{endpoint}", LEADERS):
            rows = (
                (position(each), entrant(each), each.get("points", ""), each.get("wins", ""))
                for each in standings[objects]
            )
            season, round = standings["season"], standings["round"]
            caption = f"{name}s after round {round} {whole(f'{base}/{season}/{round}/{endpoint}')}"
            yield table(caption, ("Pos", name, "Points", "Wins"), rows)


def heading(which: str, race: Json) -> str:
    """The name of a race as a heading, with its round and circuit."""
    return f"""<h2>{which}: {escape(race["raceName"])}</h2>
<p>Round {race["round"]} of {race["season"]}. {escape(place_of(race["Circuit"]))}.</p>
"""


def whole(link: str) -> str:
    """Links to a whole list."""
    return f'(all: <a href="{escape(link)}.json">JSON</a>, <a href="{escape(link)}.csv">CSV</a>)'


def position(record: Json) -> str:
    return escape(record.get("positionText", ""))


def moment(session: Json) -> str:
    """When a session starts. If its time is known, the script of the page shows it in the reader's time zone."""
    written = f"{session['date']}T{session['time']}" if "time" in session else session["date"]
    at = datetime.fromisoformat(written)
    text = f"{at:%a} {at.day} {at:%b %Y}" + (f", {at:%H:%M}" if "time" in session else "")
    return f'<time datetime="{written}">{text}</time>'


def entrant(record: Json) -> str:
    """Who a record is about: a driver with the constructor, or a constructor."""
    constructor = [record["Constructor"]] if "Constructor" in record else record["Constructors"]
    names = ", ".join(escape(each["name"]) for each in constructor)
    if "Driver" not in record:
        return names
    return f"{escape(full_name(record['Driver']))} <small>{names}</small>"


def time(result: Json, winner: Json | None) -> str:
    """The winner's time, the gap to it, or why there is none."""
    if "Time" not in result:
        return escape(result.get("status", ""))
    return gap_time(int(result["Time"]["millis"]), int(winner["millis"]) if winner else None)


def table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table. The caption and the cells are HTML already; the first cell of a row is its heading."""
    lines = [
        f"<table>\n<caption>{caption}</caption>",
        "<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>",
    ]
    for first, *others in rows:
        lines.append(f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others) + "</tr>")
    return "\n".join([*lines, "</table>"])

"""The season on the HTML page at `/`: the next race, the last result and both championships.

The facts are answers of the endpoints (ask.py). So the next race depends on the data, not on a
clock; the script in layout.html changes the heading if that race is over.
"""

from collections.abc import Iterator
from html import escape

from racedata.service.ask import ALL, Ask
from racedata.service.catalogue import place_of
from racedata.service.html import (
    CHAMPIONSHIPS,
    entrant,
    links_to_list,
    position,
    provisional_note,
    sessions_table,
    standings_tables,
    start_of,
    table,
    time_element,
    time_or_status,
)
from racedata.service.serializers import Json

PLACES = 10  # how many places of the last result the page shows


def next_race(ask: Ask, pages: str) -> str:
    """The next race, with its sessions. `pages` is the path of the pages of seasons."""
    races = ask("/current/next", 1)
    if not races:
        return "<h2>Next</h2>\n<p>No later race is loaded.</p>"
    (race,) = races
    return f"""{heading(f'<span id="next" data-start="{start_of(race)}">Next:</span>', race, pages)}
<p id="over" hidden>This race is over, but its result is not loaded yet.</p>
{sessions_table(race)}"""


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
    note = provisional_note(ask.provisional_source(race))
    page = f"{pages}{race['season']}/{race['round']}"
    return (
        heading("Last:", race, pages)
        + note
        + table(caption, heads, rows)
        + f'<p><a href="{page}">Full result</a></p>'
    )


def championships(ask: Ask, base: str) -> Iterator[str]:
    """Each championship after the last race; if that has no standings yet, after an earlier one."""
    for endpoint in CHAMPIONSHIPS:
        for standings in ask(f"/current/last/{endpoint}", ALL) or ask(f"/current/{endpoint}", ALL):
            yield from standings_tables(endpoint, standings, base)


def heading(prefix: str, race: Json, pages: str) -> str:
    """A heading with a link to the page of a race, and a line with its round and circuit.

    `prefix` is HTML already.
    """
    page = f"{pages}{race['season']}/{race['round']}"
    return f"""<h2>{prefix} <a href="{page}">{escape(race["raceName"])}</a></h2>
<p>Round {race["round"]} of {race["season"]}. {escape(place_of(race["Circuit"]))}.</p>
"""

"""The season on the HTML page at `/`: the next race, the last result and both championships.

The facts are answers of the endpoints (ask.py). So the next race depends on the data, not on a
clock; the script in layout.html changes the heading if that race is over.
"""

from collections.abc import Iterator
from html import escape

from racedata.formats import Json
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

PLACES = 10  # how many places of a result the page shows
HEADS = ("Pos", "Driver", "Time", "Points")


def next_race(ask: Ask, base: str, pages: str) -> str:
    """The next race: its sessions, and the results of those before the race that are loaded.

    `pages` is the path of the pages of seasons, and `base` a link to the base address.
    """
    races = ask("/current/next", 1)
    if not races:
        return "<h2>Next</h2>\n<p>No later race is loaded.</p>"
    (race,) = races
    return f"""{heading(f'<span id="next" data-start="{start_of(race)}">Next:</span>', race, pages)}
<p id="over" hidden>This race is over, but its result is not loaded yet.</p>
{sessions_table(race)}
{"".join(sessions_before(ask, race, base))}"""


def sessions_before(ask: Ask, race: Json, base: str) -> Iterator[str]:
    """The first places of the sessions before a race, the latest session first."""
    front = f"/{race['season']}/{race['round']}"
    for endpoint, caption, heads, rows_of in (
        ("qualifying", "Qualifying", HEADS[:3], qualified),
        ("sprint", "Sprint", HEADS, first_places),
        ("sprintqualifying", "Sprint qualifying", HEADS[:3], qualified),
    ):
        address = f"{front}/{endpoint}"
        for found in ask(address, PLACES):
            rows = rows_of(found[ask.endpoints[endpoint].key])
            yield table(f"{caption} {links_to_list(base + address)}", heads, rows)


def first_places(results: list[Json]) -> Iterator[tuple[str, ...]]:
    """The rows of a race or sprint: places, drivers, times and points."""
    winner = results[0].get("Time")
    for each in results:
        time = time_or_status(each, winner)
        yield position(each), entrant(each), time, escape(each.get("points", ""))


def qualified(results: list[Json]) -> Iterator[tuple[str, ...]]:
    """The rows of qualifying: places, drivers, and their times in the last part that they set."""
    for each in results:
        time = each.get("Q3") or each.get("Q2") or each.get("Q1", "")
        yield escape(each.get("position", "")), entrant(each), escape(time)


def last_race(ask: Ask, base: str, pages: str) -> str:
    """The last race with results: its first places. `base` is a link to the base address."""
    address = "/current/last/results"
    (race,) = ask(address, PLACES)
    caption = f"Result, {time_element(race['date'])} {links_to_list(base + address)}"
    note = provisional_note(ask.provisional_source(race))
    page = f"{pages}{race['season']}/{race['round']}"
    return (
        heading("Last:", race, pages)
        + note
        + table(caption, HEADS, first_places(race["Results"]))
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

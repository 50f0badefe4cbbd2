"""The page at `/`: the next weekend, the newest session, championships, the last race, changes.

Which weekend is next depends on the data, not on a clock. The page also has the later weekends, for
script.js: it shows the one that is next by the reader's clock, and says how long it is until then.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from racedata.formats import Json
from racedata.model import KIND_BY_GROUP
from racedata.service.health import sample_notice
from racedata.service.pages import differing_values, races
from racedata.service.pages.ask import Ask
from racedata.service.pages.notes import Notes
from racedata.service.snapshot import AskedAt

PLACES = 10  # how many places of a result the page shows
FIRST = 3  # and of the newest session
FEW_NEWS = 6  # races in whose records something changed lately
BEFORE_RACE = ("qualifying", "sprint", "sprintqualifying", "practice")  # groups of sessions


class Newest(NamedTuple):
    """The newest session with results."""

    label: str
    race: Json
    start: str
    anchor: str  # of all its places on the page of the race
    places: list[Json]  # the first
    is_provisional: bool


def facts(ask: Ask, shown_times: AskedAt) -> dict[str, Any]:
    data, settings = ask.data, ask.settings
    built, last_check = data.build()["builtAt"], max(shown_times.values(), default="")
    (last,) = ask("results", "current", "last")
    notes = Notes(ask, int(last["season"]), int(last["round"]))
    last_places = notes.marked(races.places(last["Results"][:PLACES]), "results")
    provisional = ask.provisional_sources(last).get("results")
    coming = [ask.catalogue.calendar[id] for id in ask.catalogue.coming]
    weekends = [weekend_of(ask, race, BEFORE_RACE if race is coming[0] else ()) for race in coming]
    newest = weekends[0]["newest"] if weekends else None
    of_last = Newest(
        "Race", last, races.start(last), "race", last_places[:FIRST], provisional is not None
    )
    return {
        "notice": sample_notice(data, settings.follows),  # that this is only the sample
        # when a refresh last asked a source; empty if the database is newer
        "last_check": last_check if last_check > built else "",
        "weekends": weekends,  # that run or come: the first may have begun
        "newest": newest or of_last,
        "last_race": last,
        "last_places": last_places,
        "has_grid": bool(races.grid(last_places)),
        # the source of the last result, if that is provisional
        "provisional": provisional,
        # If the last race has no standings yet, those after an earlier one.
        "championships": [*races.championships(ask, ("current", "last"), ("current", None))],
        "news": [*differing_values.news(ask, FEW_NEWS)],
    }


def weekend_of(ask: Ask, race: Json, groups: Iterable[str]) -> dict[str, Any]:
    """The weekend of a race without results: its sessions, and the newest of those with results.

    Only sessions of these groups may have results.
    """
    front = int(race["season"]), int(race["round"])
    notes = Notes(ask, *front)
    records = {
        group: ask.records_of_race(KIND_BY_GROUP[group].endpoint, *front) for group in groups
    }
    sessions = races.sessions(race, records, notes)
    provisional = ask.provisional_sources(race)
    newest = None
    for session in sessions:
        if group := session.anchor:
            kind = KIND_BY_GROUP[group].name
            of_session = races.of_session(session.name, group, records)
            rows = (races.places if group == "sprint" else races.timed)(of_session)
            places = notes.marked(rows[:FIRST], kind)
            newest = Newest(session.label, race, session.start, group, places, kind in provisional)
    return {"race": race, "start": races.start(race), "sessions": sessions, "newest": newest}

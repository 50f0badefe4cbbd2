"""The page of a race, such as `/2023/18`: its result, or its sessions if it has none yet."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from racedata.formats import Json
from racedata.model import LETTERS
from racedata.service.pages import races
from racedata.service.pages.ask import ALL, Ask


class Classification(NamedTuple):
    """The result of a race or sprint."""

    places: list[Json]
    # Driver, time and number of the fastest lap. Several drivers may share it, as in 1954.
    fastest_laps: list[tuple[Json, str, str]]
    notes: list[str]  # what letters and grid 0 mean


class Qualifying(NamedTuple):
    """The result of qualifying or sprint qualifying."""

    parts: Mapping[str, str]  # by their heads: `SQ1` for Q1; `Time` if there is only one
    places: list[Json]


def facts(ask: Ask, season: int, round: int) -> dict[str, Any]:
    calendar = {int(race["round"]): race for race in ask("races", ALL, season)}
    before, after = races.neighbours([*calendar], round)
    race = calendar[round]

    def of_race(endpoint: str) -> list[Json]:
        return ask.records(endpoint, ALL, season, round)

    return {
        "season": season,
        "round": round,
        "race": race,
        "start": races.start(race),
        "before": before and calendar[before],  # the race before it
        "after": after and calendar[after],
        # the source of the result, if that is provisional
        "provisional": ask.provisional_source(race),
        "sessions": races.sessions(race),
        "result": classification(of_race("results")),
        "qualifying": qualifying(of_race("qualifying")),
        "sprint": classification(of_race("sprint")),
        "sprint_qualifying": qualifying(of_race("sprintqualifying"), prefix="S"),
        "records": [*races.records(ask, season, round)],
    }


def classification(results: list[Json]) -> Classification | None:
    """The result of a race or sprint, with what explains it; None without results."""
    if not results:
        return None
    positions = {each.get("positionText") for each in results}
    notes = [f"{letter}: {LETTERS[letter]}" for letter in LETTERS if letter in positions]
    if any(each.get("grid") == "0" for each in results):
        notes.append("grid 0: pit lane or no start")
    return Classification(races.places(results), [*fastest_laps(results)], notes)


def fastest_laps(results: list[Json]) -> Iterator[tuple[Json, str, str]]:
    for each in results:
        lap = each.get("FastestLap", {})
        if lap.get("rank") == "1":
            yield each["Driver"], lap.get("Time", {}).get("time", ""), lap.get("lap", "")


def qualifying(results: list[Json], prefix: str = "") -> Qualifying | None:
    """The result of qualifying; None without results.

    `prefix` is `S` for the parts of sprint qualifying: SQ1, SQ2, SQ3.
    """
    if not results:
        return None
    parts = [part for part in ("Q1", "Q2", "Q3") if any(part in each for each in results)]
    heads = {prefix + part if len(parts) > 1 else "Time": part for part in parts}
    return Qualifying(heads, races.qualified(results))

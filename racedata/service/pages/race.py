"""The page of a race, such as `/2023/18`: the results of the race and of the sessions before."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from racedata.formats import Json, public_url
from racedata.model import KIND_BY_GROUP, LETTERS
from racedata.service.pages import races
from racedata.service.pages.ask import Ask
from racedata.service.pages.notes import Notes

OFF_GRID = "\N{EN DASH}"  # the source has 0
PODIUM = {"1": "Winner", "2": "Second", "3": "Third"}


class Classification(NamedTuple):
    """The result of a race or sprint."""

    places: list[Json]
    # Who set the fastest lap. Several drivers may share it, as in 1954.
    fastest_laps: list[Json]
    legend: list[str]  # the meaning of letters and signs in `places`


class TimedSession(NamedTuple):
    """The result of qualifying, sprint qualifying or practice."""

    parts: Mapping[str, str]  # by their heads: `SQ1` for Q1; `Time` if there is only one
    places: list[Json]


def facts(ask: Ask, season: int, round: int) -> dict[str, Any]:
    calendar = {int(race["round"]): race for race in ask("races", season)}
    before, after = races.neighbours([*calendar], round)
    race, notes = calendar[round], Notes(ask, season, round)
    other_years = [
        each
        for each in ask.catalogue.races.values()
        if each["raceName"] == race["raceName"] and each["season"] != race["season"]
    ]
    weekend = {
        group: ask.records_of_race(kind.endpoint, season, round)
        for group, kind in KIND_BY_GROUP.items()
    }
    result = classification(weekend["race"], notes, "results", "fastest_laps")
    places = result.places if result else []
    pit_stops = ask.records_of_race("pitstops", season, round)
    provenance = next(iter(ask.provenances([race])), {})
    return {
        "season": season,
        "round": round,
        "race": race,
        "start": races.start(race),
        "article": public_url(race.get("url", "")),
        "before": before and calendar[before],  # the race before it
        "after": after and calendar[after],
        "other_years": other_years,
        "sessions": races.sessions(race, weekend, notes),
        "result": result,
        "podium": podium(places),
        "fastest_laps": notes.marked(fastest_laps(weekend["race"]), "fastest_laps"),
        "grid": grid(places, notes),
        "stops": notes.marked(stops(pit_stops, places), "pit_stops"),
        "qualifying": timed(weekend, notes, "qualifying"),
        "sprint": classification(weekend["sprint"], notes, "sprint_results"),
        "sprint_qualifying": timed(weekend, notes, "sprintqualifying"),
        "practice": practice(notes.marked(weekend["practice"], "practice")),
        "provenance": provenance,  # of the result
        "provenance_of_laps": provenance.get("FastestLaps", provenance),
        "provisional": ask.provisional_sources(race),
        # what is corrected and what sources disagree about, by kind
        "notes": [*notes.by_kind()],
        "is_disputed": bool(notes.discrepancies),
        "record_counts": races.record_counts(ask, season, round),
    }


def classification(results: Sequence[Json], notes: Notes, *kinds: str) -> Classification | None:
    """The result of a race or sprint, with what explains it; None without results."""
    if not results:
        return None
    positions = {result.get("positionText") for result in results}
    legend = [f"{letter}: {LETTERS[letter]}" for letter in LETTERS if letter in positions]
    if any(result.get("grid") == "0" for result in results):
        legend.append(f"{OFF_GRID}: pit lane or no start")
    places = notes.marked(races.places(results), *kinds)
    in_places = Counter(place for each in places if (place := each["positionText"]).isdigit())
    if max(in_places.values(), default=1) > 1:
        legend.append("a place twice: drivers who shared a car")
    fastest = []
    for result in places:
        is_fastest = result.get("FastestLap", {}).get("rank") == "1"
        if is_fastest:
            fastest.append(lap_of(result))
        gained = races.gained(result)
        result.update(
            start=OFF_GRID if result["grid"] == "0" else result["grid"],
            podium="podium" if result["positionText"] in PODIUM else "",
            best="Fastest lap" if is_fastest else "",
            way="up" if gained > 0 else "down",
            gained=f"{abs(gained)} {'up' if gained > 0 else 'down'}" if gained else "",
            total=races.total_time(result),
        )
    return Classification(places, fastest, legend)


def podium(places: Sequence[Json]) -> list[tuple[str, Json]]:
    """Who was first, second and third: two in a place if they shared a car."""
    cars = Counter(result["positionText"] for result in places)
    return [
        # an asterisk is only in tables
        (
            f"{PODIUM[place]}{', shared car' if cars[place] > 1 else ''}",
            {**result, "asterisk": None},
        )
        for result in places
        if (place := result["positionText"]) in PODIUM
    ]


def grid(places: Iterable[Json], notes: Notes) -> list[tuple[str, list[Json]]]:
    """The starting grid: each place with the drivers of the car, several if they shared it."""
    cars: dict[tuple[str, str], list[Json]] = {}
    for each in races.grid(notes.marked(places, "results", columns=["grid"])):
        # Sources may give a place on the grid to two cars.
        car = each["grid"], each.get("number") or each["Driver"]["driverId"]
        cars.setdefault(car, []).append(each)
    return [(number, of_car) for (number, _), of_car in cars.items()]


def fastest_laps(results: Sequence[Json]) -> list[Json]:
    """The fastest laps of all drivers, the fastest first; empty if none is known."""
    ranked = [each for each in results if "rank" in each.get("FastestLap", {})]
    return sorted(map(lap_of, ranked), key=lambda each: int(each["positionText"]))


def lap_of(result: Json) -> Json:
    """The row of a driver's fastest lap."""
    lap = result["FastestLap"]
    return races.place(
        result,
        positionText=lap["rank"],
        number=lap.get("lap", ""),
        time=races.time_of(lap),
    )


def timed(weekend: races.RecordsByGroup, notes: Notes, group: str) -> TimedSession | None:
    """The result of qualifying, or of sprint qualifying with SQ1, SQ2, SQ3; None without one."""
    results = notes.marked(weekend[group], KIND_BY_GROUP[group].name)
    if not results:
        return None
    parts = [part for part in ("Q1", "Q2", "Q3") if any(part in each for each in results)]
    prefix = "S" if group == "sprintqualifying" else ""
    heads = {prefix + part if len(parts) > 1 else "Time": part for part in parts}
    return TimedSession(heads, races.timed(results))


def practice(results: list[Json]) -> TimedSession | None:
    """The best laps in all practices, a driver in a row, the fastest first; None without any."""
    if not results:
        return None
    numbers = sorted({result["session"] for result in results})
    heads = {head: head for head in (f"FP{number}" for number in numbers)}
    best: dict[str, int] = {}
    rows: dict[str, Json] = {}
    for result in results:
        id = result["Driver"]["driverId"]
        if id not in rows:
            rows[id] = races.place(result, **dict.fromkeys(heads, ""))
        if "Time" in result:
            rows[id][f"FP{result['session']}"] = result["Time"]["time"]
            millis = int(result["Time"]["millis"])
            best[id] = min(best.get(id, millis), millis)
    order = sorted(best, key=best.__getitem__)
    for number, id in enumerate(order, 1):
        rows[id]["positionText"] = str(number)
    without_time = [id for id in rows if id not in best]
    return TimedSession(heads, [rows[id] for id in (*order, *without_time)])


def stops(stops: list[Json], places: Sequence[Json]) -> Iterator[Json]:
    """A row for each driver who stopped, in the order of the result: the laps and durations."""
    of_drivers: dict[str, list[str]] = {}
    for stop in stops:
        of_drivers.setdefault(stop["driverId"], []).append(stop_in_words(stop))
    for each in places:
        made = of_drivers.pop(each["Driver"]["driverId"], None)
        if made:
            yield {**each, "stops": str(len(made)), "made": ", ".join(made)}


def stop_in_words(stop: Json) -> str:
    """`lap 12: 23.456`, on one line; or what of it is known."""
    parts = [f"lap\N{NO-BREAK SPACE}{stop['lap']}"] if "lap" in stop else []
    parts += [stop["duration"]] if "duration" in stop else []
    return ":\N{NO-BREAK SPACE}".join(parts)

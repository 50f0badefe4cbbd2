"""What a difference between two sources can mean: the groups of the report, what fits each, and
what would settle it.
"""

from collections.abc import Callable
from functools import cache
from itertools import permutations
from typing import NamedTuple

from racedata.formats import milliseconds
from racedata.loader.compare.conventions import (
    Case,
    is_counted_without,
    is_not_listed,
    is_of_relief,
    is_put_last,
    is_with_formula_2,
)
from racedata.loader.matching import letters_of
from racedata.model import KINDS, STANDINGS

RESULT_TABLES = ("results", "sprint_results")
QUALIFYING_TABLES = ("qualifying", "sprint_qualifying")
# The words for countries that others have replaced, or that have another word too.
COUNTRIES = {
    "East German": "German",
    "Rhodesian": "Zimbabwean",
    "Hong Kong": "Hongkongese",
}


# What would settle a difference that is usually a convention, if one is not.
SETTLES = "An official classification, or a report of the race, would settle it."


class Group(NamedTuple):
    """Differences of one kind."""

    title: str
    meaning: str  # what a difference can mean
    tables: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    fits: Callable[[Case], bool] = lambda case: True
    fits_unknown: bool = False  # whether a value of one of the rows may be unknown
    settles: str = ""  # what would settle it; nothing need settle a convention


def is_cut(case: Case) -> bool:
    """Whether one of two times is the other one with fewer digits, cut or rounded."""
    times = map(str, case.values)
    first, second = (milliseconds(text) if ":" in text else int(text) for text in times)
    return any(
        abs(first - second) < unit and (first % unit == 0) != (second % unit == 0)
        for unit in (10, 100, 1000)
    )


def are_placed(case: Case) -> bool:
    """Whether both rows have a numeric place, or one does and the other is disqualified."""
    texts = {str(row["positionText"]) for row in case.rows}
    numbers = {text for text in texts if text.isdigit()}
    return bool(numbers) and texts - numbers <= {"D", "E"}


def is_retired(case: Case) -> bool:
    """Whether neither row has a numeric place."""
    return not any(str(row["positionText"]).isdigit() for row in case.rows)


def drove(case: Case) -> bool:
    """Whether neither row is of a driver who did not start."""
    return not any(row["positionText"] in ("E", "F", "W") and not row["laps"] for row in case.rows)


def is_only_disqualified(case: Case) -> bool:
    """Whether one row says of a driver without a place nothing but a disqualification."""
    return is_retired(case) and any(
        row["positionText"] == "D" and row["laps"] is None and not row["grid"] for row in case.rows
    )


def is_other_word(case: Case) -> bool:
    """Whether two nationalities are of one country, or one has the other, and a second one."""
    first, second = (COUNTRIES.get(word, word) for word in map(str, case.values))
    return first == second or any(
        one in other.split("-") for one, other in permutations(map(str, case.values))
    )


def is_another(case: Case) -> bool:
    """Whether two names are of different people or things: neither is a part of the other."""
    first, second = (letters_of(str(name)) for name in case.values)
    return first not in second and second not in first


# The most doubtful first. A difference is in the first group that it fits: CONVENTIONS are tried
# first, then these. A difference that fits none follows from another.
DOUBTS = (
    Group(
        "A driver has a different surname or birth date.",
        "One of the two is wrong, or it is another person.",
        ("drivers",),
        ("surname", "dob"),
        settles="A register of births, or a biography that names its source, would settle it.",
    ),
    Group(
        "A driver, constructor or circuit is from another country.",
        "One of the two is wrong, or has another word for the country.",
        ("drivers", "constructors", "circuits"),
        ("nationality", "country"),
        settles="An entry list with the licences of drivers and teams would settle it.",
    ),
    Group(
        "A circuit is somewhere else.",
        "In degrees. One of the two has the coordinates of the city, or a wrong digit.",
        ("circuits",),
        ("lat", "lng"),
        fits=lambda case: case.distance > 0.02,  # two kilometres
        settles="A map would settle it.",
    ),
    Group(
        "A race or session has a different date or time.",
        "One of the two is wrong. Dates are in UTC. If one is a day off, it may be the local date.",
        ("races", "sessions"),
        ("date", "time"),
        settles="A programme or timetable of the weekend would settle it.",
    ),
    Group(
        "A driver drove in a race, but only one of the two has the result.",
        "A row is missing, or the other source has one too many. Before 1979, it may be of the "
        "driver's second car.",
        RESULT_TABLES,
        ("row",),
        fits=drove,
        settles="An official classification, or a report of the race, would settle it.",
    ),
    Group(
        "A driver has a different place.",
        "One of the two is wrong, "
        "or does not know of a penalty or disqualification after the race.",
        RESULT_TABLES,
        ("positionText", "positionOrder"),
        fits=lambda case: (
            are_placed(case) and case.rows[0]["positionText"] != case.rows[1]["positionText"]
        ),
        settles="An official classification, or the decision of the stewards, would settle it.",
    ),
    Group(
        "A driver has a different constructor.",
        "One of the two is wrong; or they divide constructors differently: by engine, by team, or "
        "by who made the car.",
        (*RESULT_TABLES, *QUALIFYING_TABLES, "practice"),
        ("constructorId",),
        settles="An entry list that names the chassis would settle it.",
    ),
    Group(
        "A driver has different points.",
        "One of the two is wrong.",
        RESULT_TABLES,
        ("points",),
        settles="An official classification, or a table of points, would settle it.",
    ),
    Group(
        "A race time differs by whole minutes.",
        "In milliseconds. A wrong digit, most likely; "
        "or one of the two does not count an interruption of the race.",
        RESULT_TABLES,
        ("milliseconds",),
        fits=lambda case: case.distance % 60_000 == 0,
        settles="The times in an official classification, or in a report, would settle it.",
    ),
    Group(
        "A race time differs by a second or more.",
        "In milliseconds. A wrong digit; or only one of the two includes a time penalty.",
        RESULT_TABLES,
        ("milliseconds",),
        settles="The times in an official classification, or in a report, would settle it.",
    ),
    Group(
        "A driver has a different number of laps.",
        "One of the two is wrong.",
        RESULT_TABLES,
        ("laps",),
        settles="An official classification, or a lap chart, would settle it.",
    ),
    Group(
        "A driver has a different fastest lap.",
        "If the laps of several drivers in a race differ, one of the two has mixed them up.",
        RESULT_TABLES,
        KINDS["fastest_laps"].compared,
        settles="The official list of fastest laps would settle it.",
    ),
    Group(
        "A driver started from the pit lane in only one of the two.",
        "Place 0 on the grid is the pit lane. Some sources write the last place instead.",
        RESULT_TABLES,
        ("grid",),
        fits=lambda case: 0 in case.values and drove(case),
        settles="A report of the start, or the official starting grid, would settle it.",
    ),
    Group(
        "A driver has a different place on the grid.",
        "One of the two is wrong: the one in which two drivers share a place, or a place is empty.",
        RESULT_TABLES,
        ("grid",),
        fits=lambda case: 0 not in case.values,
        settles="The official starting grid, or a plan of the grid in a report, would settle it.",
    ),
    Group(
        "A qualifying time differs.",
        "One of the two is wrong, or does not know that the time was deleted.",
        QUALIFYING_TABLES,
        ("q1", "q2", "q3"),
        settles="The official list of qualifying times would settle it.",
    ),
    Group(
        "A driver has a different place in qualifying.",
        "In one of the two, grid penalties or exclusions have changed the places. The times tell "
        "which one.",
        QUALIFYING_TABLES,
        ("position",),
        settles="The official classification of the qualifying would settle it.",
    ),
    Group(
        "A driver's qualifying or pit stop is in only one of the two.",
        "A row is missing, or the other source has one too many.",
        (*QUALIFYING_TABLES, "pit_stops"),
        ("row",),
        settles="The official list of the session, or of pit stops, would settle it.",
    ),
    Group(
        "A pit stop differs.",
        "One of the two is wrong.",
        ("pit_stops",),
        KINDS["pit_stops"].compared,
        settles="The official list of pit stops would settle it.",
    ),
    Group(
        "A lap differs.",
        "One of the two is wrong.",
        ("lap_times",),
        KINDS["lap_times"].compared,
        settles="The official lap chart or history of laps would settle it.",
    ),
    Group(
        "A practice result differs.",
        "One of the two is wrong.",
        ("practice",),
        ("position", "laps", "milliseconds"),
        settles="The official classification of the session would settle it.",
    ),
    Group(
        "A driver or constructor has different points or wins in the standings.",
        "One of the two is wrong, "
        "or knows of an exclusion or of dropped points that the other does not have.",
        STANDINGS,
        ("points", "wins"),
        settles="A table of points after the race, in a report, would settle it.",
    ),
    Group(
        "A driver or constructor has a different place in the standings, "
        "although no other has the same points.",
        "The place is wrong in one of the two, or follows from other entrants' wrong points.",
        STANDINGS,
        ("position",),
        settles="A table of the championship after the race, in a report, would settle it.",
    ),
    Group(
        "A driver has a different car number.",
        "One of the two is wrong. The driver's other races and sessions tell which.",
        (*RESULT_TABLES, *QUALIFYING_TABLES, "practice"),
        ("number",),
        settles="An entry list, or a photograph of the car, would settle it.",
    ),
)
# Groups for values that only one of the two has, in any table of a race.
LACKED_BY_OURS = Group(
    "The database lacks a value for one driver, but has it for others in the race.",
    "The value is missing, or the other source has one too many.",
    settles="An official classification or list of the session would settle it.",
)
LACKED_BY_THE_RACE = Group(
    "A whole race lacks a value in the database, but other races of the season have it.",
    "The values of that race are missing, or the other source has some that are not real.",
    settles="An official classification or list of the session would settle it.",
)
LACKED_BY_THEIRS = Group(
    "The other source lacks a value for one driver, but has it for others in the race.",
    "The value is missing in the other source, or the database has one too many.",
    settles="An official classification or list of the session would settle it.",
)
CONVENTIONS = (
    Group(
        "A driver who took over another's car has a place on the grid in only one of the two.",
        "One of the two has the place of the car, the other none: another driver started in the "
        "car, which has the same number and place.",
        RESULT_TABLES,
        ("grid",),
        fits=is_of_relief,
    ),
    Group(
        "A disqualified driver has laps or a place on the grid in only one of the two.",
        "One of the two lists a driver who was disqualified, from the race or the championship, "
        "without laps or a place on the grid.",
        RESULT_TABLES,
        ("laps", "grid"),
        fits=is_only_disqualified,
        fits_unknown=True,
    ),
    Group(
        "A place on the grid is counted differently.",
        "Both have the same drivers ahead. They differ in whether they count places that stayed "
        "empty, and drivers whose place the other does not have.",
        RESULT_TABLES,
        ("grid",),
        fits=is_counted_without,
    ),
    Group(
        "A driver in a Formula 2 car is in only one of the two, or counts in its places.",
        "Cars of Formula 2 drove in the same race, with a classification of their own. Sources "
        "differ in whether they list and count them.",
        RESULT_TABLES,
        ("row", "positionText", "positionOrder"),
        fits=is_with_formula_2,
    ),
    Group(
        "A driver is last in the qualifying in only one of the two.",
        "One of the two has the order of the times; the other has put behind all others who was "
        "excluded, or whose times were deleted. Otherwise, their order is the same.",
        QUALIFYING_TABLES,
        ("position", "q1", "q2", "q3"),
        fits=is_put_last,
        fits_unknown=True,
    ),
    Group(
        "A driver at the end of the qualifying is in only one of the two.",
        "Sources differ in whether they list drivers without a time, and those who did not qualify "
        "or were excluded.",
        QUALIFYING_TABLES,
        ("row",),
        fits=is_not_listed,
    ),
    Group(
        "A nationality has another word, or is one of two.",
        "The two have the name of the country at that time and today's; or only one of the two has "
        "a second nationality.",
        ("drivers", "constructors"),
        ("nationality",),
        fits=is_other_word,
    ),
    Group(
        "A time has fewer digits in one of the two.",
        "One of the two has cut or rounded it.",
        (*QUALIFYING_TABLES, *RESULT_TABLES, "practice", "lap_times", "pit_stops"),
        ("q1", "q2", "q3", "fastestLapTime", "milliseconds", "time"),
        fits=is_cut,
    ),
    Group(
        "A race time differs by less than a second.",
        "In milliseconds. "
        "Most likely, one of the two has rounded times, or times from a different clock.",
        RESULT_TABLES,
        ("milliseconds",),
        fits=lambda case: case.distance < 1000,
    ),
    Group(
        "A driver who did not start is in only one of the two.",
        "Sources differ in which of the drivers they list who stayed away, withdrew or did not "
        "qualify.",
        RESULT_TABLES,
        ("row",),
        fits=lambda case: not drove(case),
    ),
    Group(
        "A driver has a place in only one of the two, or the two have different letters.",
        "Sources differ in who is classified, and in who retired, withdrew, "
        "did not start or did not qualify.",
        RESULT_TABLES,
        ("positionText",),
        fits=lambda case: not are_placed(case),
    ),
    Group(
        "A driver who retired has one lap more, or one fewer.",
        "Sources differ on whether the lap on which the driver retired counts.",
        RESULT_TABLES,
        ("laps",),
        fits=lambda case: is_retired(case) and case.distance == 1,
    ),
    Group(
        "The same fastest lap has a different number, up to three laps away.",
        "Some sources count the laps of the leader, even for drivers who are lapped.",
        RESULT_TABLES,
        ("fastestLap",),
        fits=lambda case: (
            case.rows[0]["fastestLapTime"] == case.rows[1]["fastestLapTime"] and case.distance <= 3
        ),
    ),
    Group(
        "A qualifying time differs by more than a minute.",
        "In the first six races of 2005, the times of two laps were added. "
        "Some sources have only the sum.",
        ("qualifying",),
        ("q1",),
        fits=lambda case: case.distance > 60_000,
    ),
    Group(
        "A race has a different name.",
        "Sources differ in which of a race's names they use. Otherwise, it is another race's.",
        ("races",),
        ("name",),
    ),
    Group(
        "A surname or the name of a constructor is longer or shorter, or spelled differently.",
        "One of the two has only part of the name, or no accents.",
        ("drivers", "constructors"),
        ("surname", "name"),
        fits=lambda case: not is_another(case),
    ),
    Group(
        "A driver has a different first name, or a constructor or circuit a different name.",
        "Sources differ in nicknames and in the names of sponsors. Otherwise, one of the two is "
        "wrong.",
        ("drivers", "constructors", "circuits"),
        ("forename", "name"),
    ),
)


# In the order of the report.
GROUPS = (*DOUBTS, LACKED_BY_OURS, LACKED_BY_THE_RACE, *CONVENTIONS, LACKED_BY_THEIRS)


@cache
def groups_of(table: str, column: str) -> list[Group]:
    """The groups for differences in a column, in the order in which they are tried."""
    return [
        group
        for group in (*CONVENTIONS, *DOUBTS)
        if table in group.tables and column in group.columns
    ]

"""What a difference between two sources can mean: the groups of the report, what fits each, and
what would settle it.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from racedata.formats import milliseconds
from racedata.loader.matching import letters_of
from racedata.model import KINDS, STANDINGS
from racedata.values import Value

Row = Mapping[str, Value]

RESULT_TABLES = ("results", "sprint_results")
QUALIFYING_TABLES = ("qualifying", "sprint_qualifying")


class Group(NamedTuple):
    """Differences of one kind."""

    title: str
    meaning: str  # what a difference can mean
    tables: tuple[str, ...]
    columns: tuple[str, ...]
    # whether a difference fits, given the column and the two rows
    fits: Callable[[str, Row, Row], bool] = lambda column, ours, theirs: True
    settles: str = ""  # what would settle it; nothing need settle a convention


def distance(column: str, ours: Row, theirs: Row) -> float:
    """How far apart two numbers or times are; 0 if they are something else."""
    try:
        first, second = (
            milliseconds(text) if ":" in text else float(text)
            for text in (str(ours[column]), str(theirs[column]))
        )
    except ValueError:
        return 0
    return abs(first - second)


def is_cut(column: str, ours: Row, theirs: Row) -> bool:
    """Whether one of two times is the other one with fewer digits, cut or rounded."""
    times = [str(ours[column]), str(theirs[column])]
    first, second = (milliseconds(text) if ":" in text else int(text) for text in times)
    return any(
        abs(first - second) < unit and (first % unit == 0) != (second % unit == 0)
        for unit in (10, 100, 1000)
    )


def are_placed(column: str, ours: Row, theirs: Row) -> bool:
    """Whether both rows have a numeric place, or one does and the other is disqualified."""
    texts = {str(row["positionText"]) for row in (ours, theirs)}
    numbers = {text for text in texts if text.isdigit()}
    return bool(numbers) and texts - numbers <= {"D", "E"}


def is_retired(column: str, ours: Row, theirs: Row) -> bool:
    """Whether neither row has a numeric place."""
    return not any(str(row["positionText"]).isdigit() for row in (ours, theirs))


def drove(column: str, ours: Row, theirs: Row) -> bool:
    """Whether neither row is of a driver who did not start."""
    return not any(
        row["positionText"] in ("E", "F", "W") and not row["laps"] for row in (ours, theirs)
    )


def is_another(column: str, ours: Row, theirs: Row) -> bool:
    """Whether two names are of different people or things: neither is a part of the other."""
    first, second = letters_of(str(ours[column])), letters_of(str(theirs[column]))
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
        fits=lambda *facts: distance(*facts) > 0.02,  # two kilometres
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
        fits=lambda column, ours, theirs: (
            are_placed(column, ours, theirs) and ours["positionText"] != theirs["positionText"]
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
        fits=lambda *facts: distance(*facts) % 60_000 == 0,
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
        fits=lambda column, ours, theirs: (
            0 in (ours["grid"], theirs["grid"]) and drove(column, ours, theirs)
        ),
        settles="A report of the start, or the official starting grid, would settle it.",
    ),
    Group(
        "A driver has a different place on the grid.",
        "One of the two is wrong: the one in which two drivers share a place, or a place is empty.",
        RESULT_TABLES,
        ("grid",),
        fits=lambda column, ours, theirs: 0 not in (ours["grid"], theirs["grid"]),
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
    (),
    (),
    settles="An official classification or list of the session would settle it.",
)
LACKED_BY_THE_RACE = Group(
    "A whole race lacks a value in the database, but other races of the season have it.",
    "The values of that race are missing, or the other source has some that are not real.",
    (),
    (),
    settles="An official classification or list of the session would settle it.",
)
LACKED_BY_THEIRS = Group(
    "The other source lacks a value for one driver, but has it for others in the race.",
    "The value is missing in the other source, or the database has one too many.",
    (),
    (),
    settles="An official classification or list of the session would settle it.",
)
CONVENTIONS = (
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
        fits=lambda *facts: distance(*facts) < 1000,
    ),
    Group(
        "A driver who did not start is in only one of the two.",
        "Sources differ in which of the drivers they list who stayed away, withdrew or did not "
        "qualify.",
        RESULT_TABLES,
        ("row",),
        fits=lambda *facts: not drove(*facts),
    ),
    Group(
        "A driver has a place in only one of the two, or the two have different letters.",
        "Sources differ in who is classified, and in who retired, withdrew, "
        "did not start or did not qualify.",
        RESULT_TABLES,
        ("positionText",),
        fits=lambda *facts: not are_placed(*facts),
    ),
    Group(
        "A driver who retired has one lap more, or one fewer.",
        "Sources differ on whether the lap on which the driver retired counts.",
        RESULT_TABLES,
        ("laps",),
        fits=lambda *facts: is_retired(*facts) and distance(*facts) == 1,
    ),
    Group(
        "The same fastest lap has a different number, up to three laps away.",
        "Some sources count the laps of the leader, even for drivers who are lapped.",
        RESULT_TABLES,
        ("fastestLap",),
        fits=lambda column, ours, theirs: (
            ours["fastestLapTime"] == theirs["fastestLapTime"]
            and distance(column, ours, theirs) <= 3
        ),
    ),
    Group(
        "A qualifying time differs by more than a minute.",
        "In the first six races of 2005, the times of two laps were added. "
        "Some sources have only the sum.",
        ("qualifying",),
        ("q1",),
        fits=lambda *facts: distance(*facts) > 60_000,
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
        fits=lambda *facts: not is_another(*facts),
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

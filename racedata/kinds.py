"""The kinds of records and the sessions of a weekend, each declared once for both halves.

A fact about a kind that is a plain value is here, even if only one module needs it: a new kind
is then one declaration. Anything that takes code or SQL is in the module that runs it: filters,
parsers, how a source finds the records.
"""

from typing import NamedTuple


class Session(NamedTuple):
    """A session of a weekend."""

    name: str  # in the table `sessions`, which lacks the race itself
    # Its key in a race object; empty for the race, whose date and time are the object's own fields.
    key: str
    label: str
    group: str  # the name by which calendars choose it
    minutes: int  # its usual duration


RACE = Session("race", "", "Race", "race", 120)
SPRINT_QUALIFYING = Session("sq", "SprintQualifying", "Sprint Qualifying", "sprintqualifying", 45)
# its name in 2023
SHOOTOUT = SPRINT_QUALIFYING._replace(key="SprintShootout", label="Sprint Shootout")
SESSIONS = (
    Session("fp1", "FirstPractice", "Practice 1", "practice", 60),
    Session("fp2", "SecondPractice", "Practice 2", "practice", 60),
    Session("fp3", "ThirdPractice", "Practice 3", "practice", 60),
    Session("quali", "Qualifying", "Qualifying", "qualifying", 60),
    SHOOTOUT,
    SPRINT_QUALIFYING,
    Session("sprint", "Sprint", "Sprint", "sprint", 60),
    RACE,
)
# the sessions in the table `sessions`
WEEKEND = tuple(session for session in SESSIONS if session not in (SHOOTOUT, RACE))
SESSION_GROUPS = tuple(dict.fromkeys(session.group for session in SESSIONS))


class Kind(NamedTuple):
    """A kind of records. In one race, all records of a kind are from one source."""

    name: str  # in the table `origins`; also the table that has the records
    label: str
    sessions: tuple[str, ...]  # names of the sessions after which sources publish it
    compared: tuple[str, ...]  # columns that `racedata check --against` compares
    # The endpoint of the service, and of an API in Ergast's format; and the keys in MRData down to
    # the records. A kind without an endpoint is columns of another table.
    endpoint: str = ""
    keys: tuple[str, ...] = ()
    table: str = ""  # the table that has the columns
    is_in_every_api: bool = True  # whether Ergast has it, and so every API in its format
    is_fetched_by_season: bool = False  # from an API; otherwise race by race
    is_numbered_by_race: bool = False  # whether the column `record` restarts at 1 in each race
    # whether a race without it lacks something; only some weekends have a sprint
    has_every_race: bool = True

    @property
    def key(self) -> str:
        """The key of the records in an object of an answer, such as a race. Needs an endpoint."""
        return self.keys[2]


# The keys down to the records, and the columns that are compared.
RACE_KEYS = ("RaceTable", "Races")
STANDINGS_KEYS = ("StandingsTable", "StandingsLists")
COMPARED_RESULT = (
    "positionText",
    "positionOrder",
    "points",
    "laps",
    "milliseconds",
    "grid",
    "number",
)
COMPARED_FASTEST_LAP = ("fastestLap", "rank", "fastestLapTime")  # few sources have the speed
COMPARED_QUALIFYING = ("position", "q1", "q2", "q3", "number")
COMPARED_STANDING = ("points", "wins", "position")

# In the order of lists for people.
KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "results",
            "Results",
            ("race",),
            COMPARED_RESULT,
            endpoint="results",
            keys=(*RACE_KEYS, "Results"),
            is_fetched_by_season=True,
        ),
        Kind("fastest_laps", "Fastest laps", ("race",), COMPARED_FASTEST_LAP, table="results"),
        Kind(
            "qualifying",
            "Qualifying",
            ("quali",),
            COMPARED_QUALIFYING,
            endpoint="qualifying",
            keys=(*RACE_KEYS, "QualifyingResults"),
            is_fetched_by_season=True,
        ),
        Kind(
            "practice",
            "Practice",
            ("fp1", "fp2", "fp3"),
            ("position", "laps", "milliseconds", "number"),
            endpoint="practice",
            keys=(*RACE_KEYS, "PracticeResults"),
            is_in_every_api=False,
        ),
        Kind(
            "sprint_results",
            "Sprints",
            ("sprint",),
            (*COMPARED_RESULT, *COMPARED_FASTEST_LAP),
            endpoint="sprint",
            keys=(*RACE_KEYS, "SprintResults"),
            is_fetched_by_season=True,
            has_every_race=False,
        ),
        Kind(
            "sprint_qualifying",
            "Sprint qualifying",
            ("sq",),
            COMPARED_QUALIFYING,
            endpoint="sprintqualifying",
            keys=(*RACE_KEYS, "SprintQualifyingResults"),
            is_in_every_api=False,
            has_every_race=False,
        ),
        Kind(
            "pit_stops",
            "Pit stops",
            ("race",),
            ("lap", "time", "milliseconds"),
            endpoint="pitstops",
            keys=(*RACE_KEYS, "PitStops"),
            is_numbered_by_race=True,
        ),
        Kind(
            "lap_times",
            "Lap timings",
            ("race",),
            ("position", "time"),
            endpoint="laps",
            keys=(*RACE_KEYS, "Laps", "Timings"),
            is_numbered_by_race=True,
        ),
        Kind(
            "driver_standings",
            "Driver standings",
            ("race",),
            COMPARED_STANDING,
            endpoint="driverstandings",
            keys=(*STANDINGS_KEYS, "DriverStandings"),
        ),
        Kind(
            "constructor_standings",
            "Constructor standings",
            ("race",),
            COMPARED_STANDING,
            endpoint="constructorstandings",
            keys=(*STANDINGS_KEYS, "ConstructorStandings"),
        ),
    )
}

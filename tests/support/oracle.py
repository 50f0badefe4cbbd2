"""A second, slow and obvious implementation of the interface: lists and loops over CSV files.

It shares no code with the service. Every rule is written down once more, so one mistake cannot hide
in both.
"""

import csv
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Facts = dict[str, str]  # what filters are compared with

NUMBER = "[0-9]{1,18}"
ID = "[a-z0-9_-]+"
PLACE = f"{NUMBER}|[defnrw]"

# The endpoints about values and sources.
NOTES = ("corrections", "changes", "discrepancies", "discrepancycounts", "ids")
# The form of the value of each filter, and of the endpoints that refuse a value.
FORMS = {
    **dict.fromkeys(["circuits", "constructors", "drivers", "races", "seasons"], ID),
    **dict.fromkeys(NOTES, ID),
    **dict.fromkeys(["results", "sprint"], PLACE),
    **dict.fromkeys(["grid", "fastest", "status", "laps", "pitstops", "qualifying"], NUMBER),
    **dict.fromkeys(["sprintqualifying", "practice"], NUMBER),
    **dict.fromkeys(["driverstandings", "constructorstandings"], NUMBER),
}

# The filters of each endpoint, besides season and round, which all accept:
# ●  accepted
# ○  accepted, also together with a place in the standings
# v  accepted, and also as a value after the endpoint: `/results/1`
# V  both
# S  accepted: a place in the standings
# -  refused
WORDS = """
circuits constructors drivers grid fastest results status laps pitstops qualifying sprint
sprintqualifying practice driverstandings constructorstandings
"""
# A row per endpoint, a column per filter.
MATRIX = """
seasons               ● ○ ○ ● ● ● ● - - - - - - S S
circuits              v ● ● ● ● ● ● - - - - - - - -
races                 ● ● ● ● ● ● ● - - - - - - - -
constructors          ● V ● ● ● ● ● - - - - - - - S
drivers               ● ● V ● ● ● ● - - ● - - - S -
results               ● ● ● ● ● v ● - - - - - - - -
sprint                ● ● ● ● - - ● - - - v - - - -
qualifying            ● ● ● ● ● ● ● - - v - - - - -
sprintqualifying      ● ● ● - - - - - - - - v - - -
practice              ● ● ● - - - - - - - - - v - -
pitstops              ● ● ● ● ● ● ● ● v - - - - - -
laps                  ● ● ● ● ● ● ● v - - - - - - -
driverstandings       - - ○ - - - - - - - - - - V -
constructorstandings  - ○ - - - - - - - - - - - - V
status                ● ● ● ● ● ● v - - - - - - - -
corrections           - ● ● - - - - - - - - - - - -
changes               ● ● ● - - - - - - - - - - - -
discrepancies         ● ● ● - - - - - - - - - - - -
discrepancycounts     ● ● ● - - - - - - - - - - - -
ids                   ● ● ● - - - - - - - - - - - -
"""
LINES = [line.split() for line in MATRIX.strip().splitlines()]
CELLS = {endpoint: dict(zip(WORDS.split(), marks)) for endpoint, *marks in LINES}
ACCEPTED = {
    endpoint: {word for word, mark in marks.items() if mark != "-"}
    for endpoint, marks in CELLS.items()
}
BESIDE_STANDINGS = {
    endpoint: {word for word, mark in marks.items() if mark in "○VS"}
    for endpoint, marks in CELLS.items()
}
STANDINGS = {"driverstandings", "constructorstandings"}

# The filters that are about a row of `results`.
OF_AN_ENTRY = {"constructors", "drivers", "grid", "fastest", "results", "status"}

# The filters of a session that are about the row of `results` of the same race and driver.
OF_THE_RACE = {
    "qualifying": OF_AN_ENTRY - {"drivers", "constructors"},
    "pitstops": OF_AN_ENTRY - {"drivers"},
    "laps": OF_AN_ENTRY - {"drivers"},
}

# Other spellings of a name, or of a name with its value.
OTHER_SPELLINGS = {
    "sprint/qualifying": "sprintqualifying",
    "sprint/shootout": "sprintqualifying",
    "sprintshootout": "sprintqualifying",
    "sprint-qualifying": "sprintqualifying",
    "sprint-shootout": "sprintqualifying",
    **{f"fp{number}": f"practice/{number}" for number in "123"},
}

# The table of each endpoint, the list in it, and the list inside a race or inside standings.
TABLES = {
    "seasons": ("SeasonTable", "Seasons", None),
    "circuits": ("CircuitTable", "Circuits", None),
    "races": ("RaceTable", "Races", None),
    "constructors": ("ConstructorTable", "Constructors", None),
    "drivers": ("DriverTable", "Drivers", None),
    "results": ("RaceTable", "Races", "Results"),
    "sprint": ("RaceTable", "Races", "SprintResults"),
    "qualifying": ("RaceTable", "Races", "QualifyingResults"),
    "sprintqualifying": ("RaceTable", "Races", "SprintQualifyingResults"),
    "practice": ("RaceTable", "Races", "PracticeResults"),
    "pitstops": ("RaceTable", "Races", "PitStops"),
    "laps": ("RaceTable", "Races", "Laps"),
    "driverstandings": ("StandingsTable", "StandingsLists", "DriverStandings"),
    "constructorstandings": ("StandingsTable", "StandingsLists", "ConstructorStandings"),
    "status": ("StatusTable", "Status", None),
    "corrections": ("CorrectionTable", "Corrections", None),
    "changes": ("ChangeTable", "Changes", None),
    "discrepancies": ("DiscrepancyTable", "Discrepancies", None),
    "discrepancycounts": ("DiscrepancyTable", "Counts", None),
    "ids": ("IdTable", "Ids", None),
}

# The file of each endpoint that has rows of a race, the columns that order them, and those that
# filters compare.
RESULTS = "positionOrder resultId"
FILES = {
    "results": ("results", RESULTS, "results=positionText fastest=rank grid status=statusId"),
    "sprint": ("sprint_results", RESULTS, "sprint=positionText grid status=statusId"),
    "qualifying": ("qualifying", "position qualifyId", "qualifying=position"),
    "sprintqualifying": (
        "sprint_qualifying",
        "position sprintQualifyId",
        "sprintqualifying=position",
    ),
    "practice": ("practice", "session position driverRef", "practice=session"),
    "pitstops": ("pit_stops", "time lap stop driverId", "pitstops=stop laps=lap"),
    "laps": ("lap_times", "lap position driverId", "laps=lap"),
    **{
        f"{thing}standings": (
            f"{thing}_standings",
            f"position {thing}StandingsId",
            f"{thing}standings=positionText",
        )
        for thing in ("driver", "constructor")
    },
}

# The names under which a table repeats the filters of the request, in its order: `a=b` is b in the
# answer, and most names are the same.
ECHO = """
season round circuits=circuitId constructors=constructorId
constructorstandings=constructorStandings drivers=driverId driverstandings=driverStandings grid
fastest results=position status pitstops=stop laps=lap
"""

# What an object has, in its order. Here, `a=b` is a in the answer and b in the file. What begins
# with a capital is no column: `self.makers` has it.
RESULT = "number position=positionOrder positionText points Driver Constructor grid laps status"
OBJECTS = {
    "seasons": "season=year url",
    "circuits": "circuitId=circuitRef url circuitName=name Location",
    "races": "season=year round url raceName=name Circuit date time",
    "constructors": "constructorId=constructorRef url name nationality",
    "drivers": "driverId=driverRef permanentNumber=number code url givenName=forename"
    " familyName=surname dateOfBirth=dob nationality",
    "results": f"{RESULT} Time FastestLap",
    "sprint": f"{RESULT} Time=SprintTime FastestLap",
    "qualifying": "number position Driver Constructor Q1=q1 Q2=q2 Q3=q3",
    "sprintqualifying": "number position Driver Constructor Q1=q1 Q2=q2 Q3=q3",
    "practice": "session number position Driver Constructor laps Time=PracticeTime",
    "pitstops": "driverId=driverRef lap stop time duration=Duration",
    "laps": "driverId=driverRef position time",
    "driverstandings": "position positionText points wins Driver Constructors",
    "constructorstandings": "position positionText points wins Constructor",
    "status": "statusId count status",
    "corrections": "season round table key column sourceValue=wrong value=right witnesses=source",
    "ids": "kind id source sourceId",
}
# The sessions before a race, and how the names of their columns begin.
SESSIONS = """
FirstPractice=fp1_ SecondPractice=fp2_ ThirdPractice=fp3_ Qualifying=quali_ Sprint=sprint_
"""

# What the key of a correction has, if that is not a driver in a race.
KEYS = {
    "circuits": "",
    "constructors": "constructors",
    "drivers": "drivers",
    "seasons": "season",
    "races": "season round",
    "sessions": "season round",
    "constructor_standings": "season round constructors",
}


@cache
def names(text: str) -> dict[str, str]:
    """`a=b c` is {"a": "b", "c": "c"}."""
    return {
        name: column or name for name, _, column in (pair.partition("=") for pair in text.split())
    }


class Refused(Exception):
    """The address has no answer; its argument is the status of the error."""


def read(folder: Path, table: str) -> list[Row]:
    """The rows of a file as dicts of the facts that are known; no rows if the file is missing."""
    path = folder / f"{table}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {name: value.strip() for name, value in row.items() if value not in (None, "", r"\N")}
            for row in csv.DictReader(file)
        ]


def parse(path: str) -> tuple[list[str], str | None, str | None, Facts, str]:
    """The segments of an address, and its parts: (segments, season, round, filters, endpoint)."""
    if not path.isascii():
        raise Refused(404)
    path = path.lower()
    path = path.removesuffix(".json") if path.endswith(".json") else path.removesuffix("/")
    segments = path.split("/")[1:]
    rest = list(segments)
    season = rest.pop(0) if rest and re.fullmatch("[1-9][0-9]{3}|current", rest[0]) else None
    round = (
        rest.pop(0)
        if season and rest and re.fullmatch("[1-9][0-9]{0,17}|last|next", rest[0])
        else None
    )
    if not rest:
        return [*segments, "races"], season, round, {}, "races"
    rest = rewritten(rest)
    segments = [*filter(None, (season, round)), *rest]
    endpoint = rest[-1] if len(rest) % 2 else rest[-2]
    filters = {}
    for word, value in list(pairwise(rest))[::2]:
        if word not in FORMS or not re.fullmatch(FORMS[word], value):
            raise Refused(404)
        is_id = FORMS[word] == ID
        filters[word] = value if is_id else str(int(value)) if value.isdigit() else value.upper()
    if endpoint not in CELLS:
        raise Refused(404)
    accepted = BESIDE_STANDINGS if filters.keys() & STANDINGS else ACCEPTED
    if not filters.keys() <= accepted[endpoint] or (
        endpoint in ("laps", "pitstops") and not season
    ):
        raise Refused(400)
    return segments, season, round, filters, endpoint


def rewritten(rest: list[str]) -> list[str]:
    """Names and values in turn, without other spellings of names."""
    for spelling, name in OTHER_SPELLINGS.items():
        count = spelling.count("/") + 1
        if rest[:count] == spelling.split("/"):
            rest = [*name.split("/"), *rest[count:]]
    return [*rest[:2], *rewritten(rest[2:])] if rest else []


def some(**facts: Any) -> dict[str, Any]:
    """An object without the facts that are not known."""
    return {name: value for name, value in facts.items() if value is not None}


def only(wanted: Facts, words: Iterable[str]) -> Facts:
    return {word: value for word, value in wanted.items() if word in words}


def points(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def clock(milliseconds: int) -> str:
    """`23.251`, `1:04.278` or `1:02:03.456`."""
    text = long_clock(milliseconds).removeprefix("0:")
    return text.removeprefix("00:").removeprefix("0")


def long_clock(milliseconds: int, hours: bool = True) -> str:
    """`1:02:03.456` and `0:01:04.278`, or `01:04.278` if the hours are not needed."""
    minutes, rest = divmod(milliseconds, 60000)
    text = f"{minutes // 60}:{minutes % 60:02}:{rest // 1000:02}.{rest % 1000:03}"
    return text if hours else text.removeprefix("0:")


def duration(row: Row) -> str | None:
    return clock(int(row["milliseconds"])) if "milliseconds" in row else None


def practice_time(row: Row) -> dict[str, Any] | None:
    if "milliseconds" not in row:
        return None
    minutes, rest = divmod(int(row["milliseconds"]), 60000)
    time = f"{minutes}:{rest // 1000:02}.{rest % 1000:03}"
    return {"millis": row["milliseconds"], "time": time}


def fastest_lap(row: Row) -> dict[str, Any] | None:
    if not row.keys() & {"fastestLap", "fastestLapTime"} or row.get("rank") == "0":
        return None
    time, speed = row.get("fastestLapTime"), row.get("fastestLapSpeed")
    return pick(row, names("rank lap=fastestLap")) | some(
        Time=time and {"time": time}, AverageSpeed=speed and {"units": "kph", "speed": speed}
    )


def date_of(row: Row, year: str = "year") -> tuple[int, int]:
    return int(row.get(year, 0)), int(row.get("round", 0))


def by_id(row: Row) -> bytes:
    return str(row["id"]).encode()


def by_family_name(row: Row) -> tuple[str, bytes]:
    letters = unicodedata.normalize("NFD", row["surname"])
    return "".join(
        letter for letter in letters if not unicodedata.combining(letter)
    ).casefold(), by_id(row)


def matching(rows: Iterable[Row], wanted: Facts) -> list[Row]:
    return [row for row in rows if wanted.items() <= row["facts"].items()]


def pick(row: Row, columns: dict[str, str]) -> dict[str, Any]:
    """An object of the columns of a row, as far as they are known."""
    return {name: row[column] for name, column in columns.items() if column in row}


class Oracle:
    """What the service must answer over the dump in `folder`. `finish_times`: `total` or `gap`.

    `corrections` is the file of the corrections that have been applied to the dump.
    """

    def __init__(
        self,
        folder: Path,
        base_url: str = "http://localhost/ergast/f1",
        finish_times: str = "total",
        corrections: Path | None = None,
    ) -> None:
        self.corrections = read(corrections.parent, corrections.stem) if corrections else []
        for row in self.corrections:
            about = KEYS.get(row["table"], "season round drivers").split()
            row["facts"] = dict(zip(about, row["key"].split("/")))
            row |= only(row["facts"], ("season", "round"))
        self.name, self.base_url = folder.name, base_url
        self.finish_times = finish_times
        self.circuits, self.constructors, self.drivers = (
            {
                row[f"{thing}Id"]: row | {"id": row[f"{thing}Ref"].lower()}
                for row in read(folder, f"{thing}s")
            }
            for thing in ("circuit", "constructor", "driver")
        )
        self.status = {row["statusId"]: row["status"] for row in read(folder, "status")}
        self.races = {row["raceId"]: row | {"id": row["raceId"]} for row in read(folder, "races")}
        self.calendar = sorted(self.races.values(), key=date_of)
        # `facts` are what the filters of an address are compared with.
        for race in self.calendar:
            race |= {name: f"{time}Z" for name, time in race.items() if name.endswith("time")}
            circuit = self.circuits[race["circuitId"]]["id"]
            race["facts"] = {
                "season": race["year"],
                "round": race["round"],
                "circuits": circuit,
                "race": race["id"],
            }
        years = read(folder, "seasons") or [
            {"year": year} for year in {race["year"] for race in self.calendar}
        ]
        # The lists of things, each with the fact that names its things.
        self.lists = {
            "seasons": ("season", sorted([row | {"id": row["year"]} for row in years], key=by_id)),
            "circuits": ("circuits", sorted(self.circuits.values(), key=by_id)),
            "races": ("race", self.calendar),
            "constructors": ("constructors", sorted(self.constructors.values(), key=by_id)),
            "drivers": ("drivers", sorted(self.drivers.values(), key=by_family_name)),
        }
        self.rows = {endpoint: self.read_rows(folder, *FILES[endpoint]) for endpoint in FILES}
        # only of drivers without a result
        self.rows["entries"] = self.read_rows(folder, "entries", "constructorId", "")
        self.races_with = {
            endpoint: {row["raceId"] for row in rows} for endpoint, rows in self.rows.items()
        }
        self.driven = defaultdict(list)
        self.rows_of = defaultdict(list)
        for row in self.rows["results"] + self.rows["entries"]:
            self.driven[row["facts"]["season"], row["driverId"]].append(row)
        for endpoint, rows in self.rows.items():
            for row in rows:
                for round in (row["facts"]["round"], None):
                    self.rows_of[endpoint, row["facts"]["season"], round].append(row)
        self.qualified = {
            (row["raceId"], row["driverId"], row["facts"].get("qualifying"))
            for row in self.rows["qualifying"]
        }
        self.makers: dict[str, Callable[[Row], Any]] = {
            "Circuit": lambda row: self.record("circuits", self.circuits[row["circuitId"]]),
            "Location": lambda row: pick(row, names("lat long=lng locality=location country")),
            "Driver": lambda row: self.record("drivers", self.drivers[row["driverId"]]),
            "Constructor": self.constructor,
            "Constructors": self.constructors_until,
            "Time": lambda row: self.time(row, "results"),
            "SprintTime": lambda row: self.time(row, "sprint"),
            "PracticeTime": practice_time,
            "FastestLap": fastest_lap,
            "Duration": duration,
        }

    def read_rows(self, folder: Path, table: str, order: str, columns: str) -> list[Row]:
        """The rows of a table, by race and the columns of `order`; what is unknown comes last."""
        rows = read(folder, table)
        for row in rows:
            row["facts"] = self.races[row["raceId"]]["facts"] | pick(row, names(columns))
            if "driverId" in row:
                row["driverRef"] = self.drivers[row["driverId"]]["driverRef"]
                row["facts"]["drivers"] = self.drivers[row["driverId"]]["id"]
            if "constructorId" in row:
                row["facts"]["constructors"] = self.constructors[row["constructorId"]]["id"]
            if "statusId" in row:
                row["status"] = self.status[row["statusId"]]
            if "points" in row:
                row["points"] = points(row["points"])

        def key(row: Row) -> tuple[tuple[int, int], list[tuple[bool, Any]]]:
            texts = [row.get(column, "") for column in order.split()]
            values = [int(text) if text.isdigit() else text for text in texts]
            return date_of(self.races[row["raceId"]]), [(value == "", value) for value in values]

        return sorted(rows, key=key)

    def answer(self, path: str, limit: int = 100, offset: int = 0) -> tuple[int, Any]:
        """(status, MRData) for a path under the base address; MRData is None if it is refused."""
        try:
            # several slashes at the front are one
            segments, season, round, filters, endpoint = parse(re.sub("^/+", "/", path))
            season, round = self.numbers(
                season, round, endpoint == "races" and filters.keys() <= {"circuits"}
            )
        except Refused as refused:
            return refused.args[0], None
        given = some(season=season, round=round) | filters
        wanted = {word: value for word, value in given.items() if (word, value) != ("fastest", "0")}
        limit = min(limit, 2000)
        records = self.records(endpoint, wanted)
        echo = {
            name: given[word]
            for word, name in names(ECHO).items()
            if word in given and not word == endpoint == "laps"
        }
        if endpoint in STANDINGS and season and not round:
            echo |= some(
                round=next((race["round"] for race in self.chosen_races(endpoint, wanted)), None)
            )
        table, name, _ = TABLES[endpoint]
        return 200, {
            "xmlns": "",
            "series": "f1",
            "url": "/".join([self.base_url, *segments]) + ".json",
            "limit": str(limit),
            "offset": str(offset),
            "total": str(len(records)),
            table: {**echo, name: self.objects(endpoint, records[offset : offset + limit])},
        }

    def numbers(self, season: Any, round: Any, of_calendar: bool) -> tuple[Any, Any]:
        """Season and round, with the numbers that `current`, `last` and `next` stand for."""
        if season == "current":
            season = max(self.races[race]["year"] for race in self.races_with["results"])
            final = [race["id"] for race in self.calendar if race["year"] == season][-1]
            later = [race["year"] for race in self.calendar if race["year"] > season]
            if of_calendar and not round and later and final in self.races_with["results"]:
                season = min(later)
        if round not in ("last", "next"):
            return season, round
        races = [race for race in self.calendar if race["year"] == season]
        run = [int(race["round"]) for race in races if race["id"] in self.races_with["results"]]
        if round == "last":
            if not run:
                raise Refused(404)
            return season, str(max(run))
        ahead = [int(race["round"]) for race in races if int(race["round"]) > max(run, default=0)]
        if ahead:
            return season, str(min(ahead))
        return season if season == "9999" else str(int(season) + 1), "1"  # four digits at most

    # Which records an address has.

    def records(self, endpoint: str, wanted: Facts) -> list[Row]:
        if endpoint in self.lists:
            return self.things(*self.lists[endpoint], wanted)
        if endpoint in STANDINGS:
            return self.standings(endpoint, wanted)
        if endpoint == "status":
            rows = matching(self.candidates("results", wanted), wanted)
            counts = Counter(row["statusId"] for row in rows if "statusId" in row)
            statuses = [
                {"statusId": key, "count": str(n), "status": self.status[key]}
                for key, n in counts.items()
            ]
            return sorted(statuses, key=lambda row: (-int(row["count"]), row["status"].encode()))
        if endpoint == "corrections":
            return self.matching_corrections(wanted)
        if endpoint == "ids":
            words = ("circuits", "constructors", "drivers")  # in the order of answers
            return [
                {
                    "kind": word[:-1],
                    "id": row[f"{word[:-1]}Ref"],
                    "source": self.name,
                    "sourceId": row[f"{word[:-1]}Id"],
                }
                for word in [word for word in words if word in wanted] or words
                for row in sorted(
                    self.things(*self.lists[word], wanted), key=itemgetter(f"{word[:-1]}Ref")
                )
            ]
        if endpoint in NOTES:  # a first load of one source has none
            return []
        of_the_race = only(wanted, OF_THE_RACE.get(endpoint, ()))
        rows = matching(
            self.candidates(endpoint, wanted), only(wanted, wanted.keys() - of_the_race.keys())
        )
        if of_the_race:
            entries = matching(self.candidates("results", wanted), of_the_race)
            entered = {(entry["raceId"], entry["driverId"]) for entry in entries}
            rows = [row for row in rows if (row["raceId"], row["driverId"]) in entered]
        return rows

    def matching_corrections(self, wanted: Facts) -> list[Row]:
        """The corrections that match, in the order of answers."""

        def entry(row: Row) -> tuple[str | None, ...]:
            return tuple(map(row["facts"].get, ("season", "round", "drivers")))

        found = matching(self.corrections, only(wanted, ("season", "round", "drivers")))
        if constructor := wanted.get("constructors"):
            rows = self.rows["results"] + self.rows["entries"]
            entered = set(map(entry, matching(rows, {"constructors": constructor})))
            found = [
                row
                for row in found
                if row["facts"].get("constructors") == constructor or entry(row) in entered
            ]
        key = itemgetter("table", "key", "column")
        return sorted(found, key=lambda row: (date_of(row, "season"), key(row)))

    def candidates(self, endpoint: str, wanted: Facts) -> list[Row]:
        """The rows of an endpoint, those of the season or the race alone if one is given."""
        if "season" not in wanted:
            return self.rows[endpoint]
        return self.rows_of[endpoint, wanted["season"], wanted.get("round")]

    def things(self, word: str, table: list[Row], wanted: Facts) -> list[Row]:
        """The rows of a table of things; `word` is their fact in rows of results and races."""
        if wanted.keys() & STANDINGS:
            found = self.in_standings(word, wanted)
        elif not wanted:
            return table
        elif wanted.keys() == {word} and word != "season":
            found = {wanted[word]}  # only its own id; next to other filters, that is one more
        elif wanted.keys() & OF_AN_ENTRY or word in ("drivers", "constructors"):
            entries = matching(
                self.candidates("results", wanted), only(wanted, wanted.keys() - {"qualifying"})
            )
            if place := wanted.get("qualifying"):
                entries = [
                    row
                    for row in entries
                    if (row["raceId"], row["driverId"], place) in self.qualified
                ]
            else:
                # these have no facts of a result
                entries += matching(self.candidates("entries", wanted), wanted)
            found = {row["facts"][word] for row in entries}
        else:
            found = {race["facts"][word] for race in matching(self.calendar, wanted)}
        return [row for row in table if row["id"] in found]

    def in_standings(self, word: str, wanted: Facts) -> set[str]:
        """The ids of the things that stand in the places given, in the lists that are chosen."""
        found = []
        for endpoint, thing in (
            ("driverstandings", "drivers"),
            ("constructorstandings", "constructors"),
        ):
            if wanted.keys() & {endpoint, thing}:
                rows = self.standings(endpoint, only(wanted, {"season", "round", endpoint, thing}))
                found.append({row["facts"][word] for row in rows})
        return set.intersection(*found)

    def standings(self, endpoint: str, wanted: Facts) -> list[Row]:
        chosen = {race["id"] for race in self.chosen_races(endpoint, wanted)}
        return matching(
            [row for row in self.candidates(endpoint, wanted) if row["raceId"] in chosen], wanted
        )

    def chosen_races(self, endpoint: str, wanted: Facts) -> list[Row]:
        """The races after which the chosen lists of standings were made."""
        races = [race for race in self.calendar if race["id"] in self.races_with[endpoint]]
        if "season" in wanted:
            races = matching(races, only(wanted, {"season", "round"}))
            return races if "round" in wanted else races[-1:]
        final = {race["year"]: race["id"] for race in self.calendar}
        return [race for race in races if race["id"] == final[race["year"]]]

    # How records look.

    def objects(self, endpoint: str, page: list[Row]) -> list[dict[str, Any]]:
        """The list in a table: the objects of the page, under their races, laps or lists."""
        if endpoint == "races":
            return [self.record(endpoint, race) | self.sessions(race) for race in page]
        name = TABLES[endpoint][2]
        if not name:
            return [self.record(endpoint, row) for row in page]
        nested = []
        for race_id, rows in groupby(page, key=itemgetter("raceId")):
            head = self.record("races", self.races[race_id])
            if endpoint in STANDINGS:
                head = only(head, ("season", "round"))
            if endpoint == "laps":
                inner = [
                    {"number": lap, "Timings": [self.record(endpoint, row) for row in on_lap]}
                    for lap, on_lap in groupby(rows, key=itemgetter("lap"))
                ]
            else:
                inner = [self.record(endpoint, row) for row in rows]
            nested.append(head | {name: inner})
        return nested

    def record(self, kind: str, row: Row) -> dict[str, Any]:
        """An object of what is known in a row."""
        return some(
            **{
                name: self.makers[column](row) if column in self.makers else row.get(column)
                for name, column in names(OBJECTS[kind]).items()
            }
        )

    def sessions(self, race: Row) -> dict[str, Any]:
        year = int(race["year"])
        sprint = "sprint_date" in race or race["id"] in self.races_with["sprint"]
        columns = dict(names(SESSIONS))
        if sprint and year >= 2023:
            del columns["SecondPractice"]
            columns["SprintShootout" if year == 2023 else "SprintQualifying"] = "fp2_"
        sessions = {
            name: pick(race, {"date": f"{start}date", "time": f"{start}time"})
            for name, start in columns.items()
        }
        return {
            name: session
            for name, session in sessions.items()
            if session or (name == "Sprint" and sprint)
        }

    def constructor(self, row: Row) -> dict[str, Any]:
        return self.record("constructors", self.constructors[row["constructorId"]])

    def constructors_until(self, row: Row) -> list[dict[str, Any]]:
        """Those for which a driver had driven in a season when it had these standings."""

        def order(entry: Row) -> list[int]:
            id = int(entry.get("resultId", "9" * 18))
            return [int(entry["facts"]["round"]), id, int(entry["constructorId"])]

        constructors = {
            entry["constructorId"]: self.constructor(entry)
            for entry in sorted(self.driven[row["facts"]["season"], row["driverId"]], key=order)
            if int(entry["facts"]["round"]) <= int(row["facts"]["round"])
        }
        return list(constructors.values())

    def time(self, row: Row, endpoint: str) -> dict[str, Any] | None:
        if "milliseconds" not in row:
            return None
        own = int(row["milliseconds"])
        time = long_clock(own, hours=endpoint == "results")
        if self.finish_times == "gap":
            first = next(other for other in self.rows[endpoint] if other["raceId"] == row["raceId"])
            gap = own - int(first.get("milliseconds", own))
            time = "+" + clock(gap) if gap > 0 else clock(own)
        return {"millis": row["milliseconds"], "time": time}

"""A second, slow and obvious implementation of the interface, for comparison: lists and loops over the CSV files.

It shares no code with the service. Every rule is written down once more, so one mistake cannot hide in both.
"""

import csv
import re
import unicodedata
from collections import Counter, defaultdict
from itertools import groupby, pairwise

NUMBER = "[0-9]{1,18}"
ID = "[a-z0-9_-]+"
PLACE = f"{NUMBER}|[defnrw]"

# The form of the value of each filter, and of the endpoints that refuse a value.
FORMS = {
    **dict.fromkeys(["circuits", "constructors", "drivers", "races", "seasons"], ID),
    **dict.fromkeys(["results", "sprint"], PLACE),
    **dict.fromkeys(["grid", "fastest", "status", "laps", "pitstops", "qualifying"], NUMBER),
    **dict.fromkeys(["driverstandings", "constructorstandings"], NUMBER),
}

# What a row of `results` is asked for, beside the season, the round and the circuit of its race.
OF_AN_ENTRY = {"constructors", "drivers", "grid", "fastest", "results", "status"}
EVERYTHING = OF_AN_ENTRY | {"circuits"}

# The filters that each endpoint accepts, beside season and round.
ACCEPTED = {
    "seasons": EVERYTHING | {"driverstandings", "constructorstandings"},
    "circuits": EVERYTHING,
    "races": EVERYTHING,
    "constructors": EVERYTHING | {"constructorstandings"},
    "drivers": EVERYTHING | {"driverstandings", "qualifying"},
    "results": EVERYTHING,
    "sprint": {"circuits", "constructors", "drivers", "grid", "status", "sprint"},
    "qualifying": EVERYTHING | {"qualifying"},
    "pitstops": EVERYTHING | {"laps", "pitstops"},
    "laps": EVERYTHING | {"laps"},
    "driverstandings": {"drivers", "driverstandings"},
    "constructorstandings": {"constructors", "constructorstandings"},
    "status": EVERYTHING,
}

# The filters that each endpoint accepts beside a place in the standings, and that place.
BESIDE_STANDINGS = {
    "seasons": {"drivers", "constructors", "driverstandings", "constructorstandings"},
    "drivers": {"drivers", "driverstandings"},
    "constructors": {"constructors", "constructorstandings"},
    "driverstandings": {"drivers", "driverstandings"},
    "constructorstandings": {"constructors", "constructorstandings"},
}

# Filters of a session that speak of the row of `results` of the same race and driver.
OF_THE_RACE = {
    "qualifying": {"grid", "fastest", "results", "status"},
    "pitstops": EVERYTHING - {"drivers"},
    "laps": EVERYTHING - {"drivers"},
}

# The table of each endpoint, and the list in it.
TABLES = {
    "seasons": ("SeasonTable", "Seasons"),
    "circuits": ("CircuitTable", "Circuits"),
    "constructors": ("ConstructorTable", "Constructors"),
    "drivers": ("DriverTable", "Drivers"),
    "status": ("StatusTable", "Status"),
    **dict.fromkeys(["races", "results", "sprint", "qualifying", "pitstops", "laps"], ("RaceTable", "Races")),
    **dict.fromkeys(["driverstandings", "constructorstandings"], ("StandingsTable", "StandingsLists")),
}

# The list inside a race or inside a list of standings.
INNER = {
    "results": "Results",
    "sprint": "SprintResults",
    "qualifying": "QualifyingResults",
    "pitstops": "PitStops",
    "laps": "Laps",
    "driverstandings": "DriverStandings",
    "constructorstandings": "ConstructorStandings",
}

# The names under which a table repeats the filters of the request, in its order.
ECHO = {
    "season": "season",
    "round": "round",
    "circuits": "circuitId",
    "constructors": "constructorId",
    "constructorstandings": "constructorStandings",
    "drivers": "driverId",
    "driverstandings": "driverStandings",
    "grid": "grid",
    "fastest": "fastest",
    "results": "position",
    "status": "status",
    "pitstops": "stop",
    "laps": "lap",
}


class Refused(Exception):
    """The address has no answer; `status` says which error it gets."""

    def __init__(self, status):
        super().__init__(status)
        self.status = status


def read(folder, table):
    """The rows of a file, a dict each, with the facts that are known. No rows if there is no such file."""
    path = folder / f"{table}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {name: value for name, value in row.items() if value not in (None, "", r"\N")}
            for row in csv.DictReader(file)
        ]


def parse(path):
    """The segments of an address, and what it asks for: (segments, season, round, filters, endpoint)."""
    path = path.lower()
    path = (path.removesuffix(".json") if path.endswith(".json") else path.removesuffix("/")).removeprefix("/")
    segments = path.split("/") if path else []
    rest = list(segments)
    season = rest.pop(0) if rest and re.fullmatch("[1-9][0-9]{3}|current", rest[0]) else None
    round = rest.pop(0) if season and rest and re.fullmatch("[1-9][0-9]{0,17}|last|next", rest[0]) else None
    if not rest:
        return [*segments, "races"], season, round, {}, "races"
    endpoint = rest[-1] if len(rest) % 2 else rest[-2]
    filters = {}
    for word, value in list(pairwise(rest))[::2]:
        if word not in FORMS or not re.fullmatch(FORMS[word], value):
            raise Refused(404)
        is_id = FORMS[word] == ID
        filters[word] = value if is_id else str(int(value)) if value.isdigit() else value.upper()
    if endpoint not in ACCEPTED:
        raise Refused(404)
    if not filters.keys() <= ACCEPTED[endpoint]:
        raise Refused(400)
    if (
        filters.keys() & {"driverstandings", "constructorstandings"}
        and not filters.keys() <= BESIDE_STANDINGS[endpoint]
    ):
        raise Refused(400)
    if endpoint in ("laps", "pitstops") and not round:
        raise Refused(400)
    return segments, season, round, filters, endpoint


def some(**facts):
    """An object without the facts that are not known."""
    return {name: value for name, value in facts.items() if value is not None}


def only(wanted, words):
    return {word: value for word, value in wanted.items() if word in words}


def points(text):
    return text.rstrip("0").rstrip(".") if "." in text else text


def clock(milliseconds):
    """`23.251`, `1:04.278` or `1:02:03.456`."""
    hours, minutes = milliseconds // 3600000, milliseconds // 60000 % 60
    seconds = f"{milliseconds // 1000 % 60:02}.{milliseconds % 1000:03}"
    if hours:
        return f"{hours}:{minutes:02}:{seconds}"
    return f"{minutes}:{seconds}" if minutes else seconds.removeprefix("0")


def long_clock(milliseconds, hours=True):
    """`1:02:03.456` and `0:01:04.278`, or `01:04.278` if the hours are not needed."""
    seconds = f"{milliseconds // 1000 % 60:02}.{milliseconds % 1000:03}"
    if hours or milliseconds >= 3600000:
        return f"{milliseconds // 3600000}:{milliseconds // 60000 % 60:02}:{seconds}"
    return f"{milliseconds // 60000:02}:{seconds}"


def without_accents(name):
    letters = unicodedata.normalize("NFD", name)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold()


def date_of(race):
    return int(race["year"]), int(race["round"])


def by_id(row):
    return row["id"].encode()


def by_family_name(row):
    return without_accents(row["surname"]), by_id(row)


def matching(rows, wanted):
    return [row for row in rows if wanted.items() <= row["facts"].items()]


def season_object(row):
    return some(season=row["year"], url=row.get("url"))


def circuit_object(row):
    return some(
        circuitId=row["circuitRef"],
        url=row.get("url"),
        circuitName=row.get("name"),
        Location=some(
            lat=row.get("lat"), long=row.get("lng"), locality=row.get("location"), country=row.get("country")
        ),
    )


def constructor_object(row):
    return some(
        constructorId=row["constructorRef"],
        url=row.get("url"),
        name=row.get("name"),
        nationality=row.get("nationality"),
    )


def driver_object(row):
    return some(
        driverId=row["driverRef"],
        permanentNumber=row.get("number"),
        code=row.get("code"),
        url=row.get("url"),
        givenName=row.get("forename"),
        familyName=row.get("surname"),
        dateOfBirth=row.get("dob"),
        nationality=row.get("nationality"),
    )


class Oracle:
    """What the service has to answer over the dump in `folder`. `finish_times` is `total` or `gap`."""

    def __init__(self, folder, base_url="http://localhost/ergast/f1", finish_times="total"):
        self.base_url = base_url
        self.finish_times = finish_times
        self.circuits = {row["circuitId"]: row | {"id": row["circuitRef"].lower()} for row in read(folder, "circuits")}
        self.constructors = {
            row["constructorId"]: row | {"id": row["constructorRef"].lower()} for row in read(folder, "constructors")
        }
        self.drivers = {row["driverId"]: row | {"id": row["driverRef"].lower()} for row in read(folder, "drivers")}
        self.status = {row["statusId"]: row["status"] for row in read(folder, "status")}
        self.races = {row["raceId"]: row | {"id": row["raceId"]} for row in read(folder, "races")}
        self.calendar = sorted(self.races.values(), key=date_of)
        # `facts` are what the filters of an address are compared with.
        for race in self.calendar:
            circuit = self.circuits[race["circuitId"]]["id"]
            race["facts"] = {"season": race["year"], "round": race["round"], "circuits": circuit, "race": race["id"]}
        years = read(folder, "seasons") or [{"year": year} for year in {race["year"] for race in self.calendar}]
        # The lists of things, each with the fact that names its things.
        self.lists = {
            "seasons": ("season", sorted([row | {"id": row["year"]} for row in years], key=by_id)),
            "circuits": ("circuits", sorted(self.circuits.values(), key=by_id)),
            "races": ("race", self.calendar),
            "constructors": ("constructors", sorted(self.constructors.values(), key=by_id)),
            "drivers": ("drivers", sorted(self.drivers.values(), key=by_family_name)),
        }
        # The rows of a race: the columns that order them, and those that filters are compared with.
        place = {"grid": "grid", "status": "statusId"}
        of_results = {"results": "positionText", "fastest": "rank", **place}
        of_sprint = {"sprint": "positionText", **place}
        stops, laps = {"pitstops": "stop", "laps": "lap"}, {"laps": "lap"}
        drivers, constructors = {"driverstandings": "positionText"}, {"constructorstandings": "positionText"}
        self.rows = {
            "results": self.read_rows(folder, "results", ["positionOrder", "resultId"], of_results),
            "sprint": self.read_rows(folder, "sprint_results", ["positionOrder", "resultId"], of_sprint),
            "qualifying": self.read_rows(folder, "qualifying", ["position", "qualifyId"], {"qualifying": "position"}),
            "pitstops": self.read_rows(folder, "pit_stops", ["time", "lap", "stop", "driverId"], stops),
            "laps": self.read_rows(folder, "lap_times", ["lap", "position"], laps),
            "driverstandings": self.read_rows(folder, "driver_standings", ["position", "driverStandingsId"], drivers),
            "constructorstandings": self.read_rows(
                folder, "constructor_standings", ["position", "constructorStandingsId"], constructors
            ),
        }
        self.races_with = {endpoint: {row["raceId"] for row in rows} for endpoint, rows in self.rows.items()}
        self.entries = defaultdict(list)
        for row in self.rows["results"]:
            self.entries[row["raceId"], row["driverId"]].append(row)
        self.qualified = {(row["raceId"], row["driverId"], row["position"]) for row in self.rows["qualifying"]}

    def read_rows(self, folder, table, order, columns):
        """The rows of a table, by race and then by the columns of `order`; a number that is missing comes last."""

        def key(row):
            values = [row.get(column) or "9" * 18 for column in order]
            return date_of(self.races[row["raceId"]]), [int(text) if text.isdigit() else text for text in values]

        rows = sorted(read(folder, table), key=key)
        for row in rows:
            row["facts"] = self.races[row["raceId"]]["facts"] | {word: row.get(name) for word, name in columns.items()}
            if "driverId" in row:
                row["facts"]["drivers"] = self.drivers[row["driverId"]]["id"]
            if "constructorId" in row:
                row["facts"]["constructors"] = self.constructors[row["constructorId"]]["id"]
        return rows

    def answer(self, path, limit=100, offset=0):
        """(status, MRData) for a path under the base address, such as `/2023/18/results`; None if it is refused."""
        try:
            segments, season, round, filters, endpoint = parse(path)
            season, round = self.numbers(season, round)
        except Refused as refused:
            return refused.status, None
        given = some(season=season, round=round) | filters
        wanted = {word: value for word, value in given.items() if (word, value) != ("fastest", "0")}
        limit = min(limit, 2000)
        records = self.records(endpoint, wanted)
        echo = {name: given[word] for word, name in ECHO.items() if word in given and not word == endpoint == "laps"}
        if "standings" in endpoint and season and not round:
            echo |= some(round=next((race["round"] for race in self.chosen_races(endpoint, wanted)), None))
        table, name = TABLES[endpoint]
        return 200, {
            "xmlns": "",
            "series": "f1",
            "url": "/".join([self.base_url, *segments]) + ".json",
            "limit": str(limit),
            "offset": str(offset),
            "total": str(len(records)),
            table: {**echo, name: self.objects(endpoint, records[offset : offset + limit])},
        }

    def numbers(self, season, round):
        """Season and round, with the numbers that `current`, `last` and `next` stand for."""
        if season == "current":
            season = max(self.races[race]["year"] for race in self.races_with["results"])
        races = [race for race in self.calendar if race["year"] == season]
        run = [int(race["round"]) for race in races if race["id"] in self.races_with["results"]]
        if round == "last":
            if not run:
                raise Refused(404)
            return season, str(max(run))
        if round == "next":
            ahead = [int(race["round"]) for race in races if int(race["round"]) > max(run, default=0)]
            return (season, str(min(ahead))) if ahead else (str(int(season) + 1), "1")
        return season, round

    # Which records an address has.

    def records(self, endpoint, wanted):
        if endpoint in self.lists:
            return self.things(*self.lists[endpoint], wanted)
        if "standings" in endpoint:
            return self.standings(endpoint, wanted)
        if endpoint == "status":
            counts = Counter(row["statusId"] for row in matching(self.rows["results"], wanted))
            statuses = [{"statusId": key, "count": str(n), "status": self.status[key]} for key, n in counts.items()]
            return sorted(statuses, key=lambda row: (-int(row["count"]), row["status"].encode()))
        of_the_race = only(wanted, OF_THE_RACE.get(endpoint, ()))
        rows = matching(self.rows[endpoint], only(wanted, wanted.keys() - of_the_race.keys()))
        if of_the_race:
            rows = [row for row in rows if matching(self.entries[row["raceId"], row["driverId"]], of_the_race)]
        return rows

    def things(self, word, table, wanted):
        """The rows of a table of things; `word` is the fact by which rows of results and races name such a thing."""
        if wanted.keys() & {"driverstandings", "constructorstandings"}:
            found = self.in_standings(word, wanted)
        elif not wanted:
            return table
        elif wanted.keys() == {word} and word != "season":
            found = {wanted[word]}  # nothing but its own id, which is one more condition
        elif wanted.keys() & OF_AN_ENTRY or word in ("drivers", "constructors"):
            entries = matching(self.rows["results"], only(wanted, wanted.keys() - {"qualifying"}))
            if place := wanted.get("qualifying"):
                entries = [row for row in entries if (row["raceId"], row["driverId"], place) in self.qualified]
            found = {row["facts"][word] for row in entries}
        else:
            found = {race["facts"][word] for race in matching(self.calendar, wanted)}
        return [row for row in table if row["id"] in found]

    def in_standings(self, word, wanted):
        """The ids of the things that stand in the places given, in the lists that are chosen."""
        found = []
        for endpoint, thing in (("driverstandings", "drivers"), ("constructorstandings", "constructors")):
            if wanted.keys() & {endpoint, thing}:
                rows = self.standings(endpoint, only(wanted, {"season", "round", endpoint, thing}))
                found.append({row["facts"][word] for row in rows})
        return set.intersection(*found)

    def standings(self, endpoint, wanted):
        chosen = {race["id"] for race in self.chosen_races(endpoint, wanted)}
        return matching([row for row in self.rows[endpoint] if row["raceId"] in chosen], wanted)

    def chosen_races(self, endpoint, wanted):
        """The races after which the chosen lists of standings were made."""
        races = [race for race in self.calendar if race["id"] in self.races_with[endpoint]]
        if "season" in wanted:
            races = matching(races, only(wanted, {"season", "round"}))
            return races if "round" in wanted else races[-1:]
        final = {race["year"]: race["id"] for race in self.calendar}
        return [race for race in races if race["id"] == final[race["year"]]]

    # How records look.

    def objects(self, endpoint, page):
        """The list in a table: the objects of the page, under the races, laps or lists that have one of them."""
        makers = {
            "seasons": season_object,
            "circuits": circuit_object,
            "races": lambda race: self.race_object(race) | self.sessions(race),
            "constructors": constructor_object,
            "drivers": driver_object,
            "status": dict,
            "results": self.result_object,
            "sprint": self.result_object,
            "qualifying": self.qualifying_object,
            "pitstops": self.stop_object,
            "laps": self.timing_object,
            "driverstandings": self.standing_object,
            "constructorstandings": self.standing_object,
        }
        if endpoint not in INNER:
            return [makers[endpoint](row) for row in page]
        nested = []
        for race_id, group in groupby(page, key=lambda row: row["raceId"]):
            race, rows = self.races[race_id], list(group)
            head = self.race_object(race)
            inner = [makers[endpoint](row) for row in rows]
            if "standings" in endpoint:
                head = {"season": race["year"], "round": race["round"]}
            if endpoint == "laps":
                laps = groupby(rows, key=lambda row: row["lap"])
                inner = [
                    {"number": lap, "Timings": [self.timing_object(row) for row in lap_rows]} for lap, lap_rows in laps
                ]
            nested.append(head | {INNER[endpoint]: inner})
        return nested

    def race_object(self, race):
        return some(
            season=race["year"],
            round=race["round"],
            url=race.get("url"),
            raceName=race["name"],
            Circuit=circuit_object(self.circuits[race["circuitId"]]),
            date=race.get("date"),
            time=race["time"] + "Z" if "time" in race else None,
        )

    def sessions(self, race):
        year = int(race["year"])
        sprint = "sprint_date" in race or race["id"] in self.races_with["sprint"]
        columns = {"FirstPractice": "fp1", "SecondPractice": "fp2", "ThirdPractice": "fp3"}
        columns |= {"Qualifying": "quali", "Sprint": "sprint"}
        if sprint and year >= 2023:
            del columns["SecondPractice"]
            columns["SprintShootout" if year == 2023 else "SprintQualifying"] = "fp2"
        sessions = {}
        for name, column in columns.items():
            date, time = race.get(f"{column}_date"), race.get(f"{column}_time")
            if date or (name == "Sprint" and sprint):
                sessions[name] = some(date=date, time=time and f"{time}Z")
        return sessions

    def result_object(self, row):
        fastest = None
        if "fastestLap" in row and row.get("rank") != "0":
            time, speed = row.get("fastestLapTime"), row.get("fastestLapSpeed")
            fastest = some(
                rank=row.get("rank"),
                lap=row["fastestLap"],
                Time={"time": time} if time else None,
                AverageSpeed={"units": "kph", "speed": speed} if speed else None,
            )
        return some(
            number=row.get("number"),
            position=row["positionOrder"],
            positionText=row["positionText"],
            points=points(row["points"]),
            Driver=driver_object(self.drivers[row["driverId"]]),
            Constructor=constructor_object(self.constructors[row["constructorId"]]),
            grid=row.get("grid"),
            laps=row.get("laps"),
            status=self.status[row["statusId"]],
            Time=self.time_object(row) if "milliseconds" in row else None,
            FastestLap=fastest,
        )

    def time_object(self, row):
        own = int(row["milliseconds"])
        endpoint = "sprint" if "sprint" in row["facts"] else "results"
        time = long_clock(own, hours=endpoint == "results")
        if self.finish_times == "gap":
            first = next(other for other in self.rows[endpoint] if other["raceId"] == row["raceId"])
            gap = own - int(first["milliseconds"])
            time = "+" + clock(gap) if gap > 0 else clock(own)
        return {"millis": row["milliseconds"], "time": time}

    def qualifying_object(self, row):
        return some(
            number=row.get("number"),
            position=row["position"],
            Driver=driver_object(self.drivers[row["driverId"]]),
            Constructor=constructor_object(self.constructors[row["constructorId"]]),
            Q1=row.get("q1"),
            Q2=row.get("q2"),
            Q3=row.get("q3"),
        )

    def stop_object(self, row):
        return some(
            driverId=self.drivers[row["driverId"]]["driverRef"],
            lap=row["lap"],
            stop=row["stop"],
            time=row.get("time"),
            duration=clock(int(row["milliseconds"])) if "milliseconds" in row else None,
        )

    def timing_object(self, row):
        driver = self.drivers[row["driverId"]]["driverRef"]
        return some(driverId=driver, position=row.get("position"), time=row.get("time"))

    def standing_object(self, row):
        standing = some(
            position=row.get("position"),
            positionText=row["positionText"],
            points=points(row["points"]),
            wins=row["wins"],
        )
        if "constructorId" in row:
            return standing | {"Constructor": constructor_object(self.constructors[row["constructorId"]])}
        teams = []
        for race in self.calendar:
            if race["year"] == row["facts"]["season"] and int(race["round"]) <= int(row["facts"]["round"]):
                entries = self.entries.get((race["id"], row["driverId"]), [])
                teams += [entry["constructorId"] for entry in sorted(entries, key=lambda entry: int(entry["resultId"]))]
        return standing | {
            "Driver": driver_object(self.drivers[row["driverId"]]),
            "Constructors": [constructor_object(self.constructors[team]) for team in dict.fromkeys(teams)],
        }

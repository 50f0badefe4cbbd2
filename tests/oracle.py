"""A second, slow and obvious implementation of the interface, for comparison: lists, dicts and loops over the CSV files.

It shares no code with the service. Every rule is written down once more, so one mistake cannot hide in both.
"""

import csv
import re
import unicodedata
from collections import defaultdict
from itertools import groupby, pairwise

NUMBER = "[0-9]{1,18}"
ID = "[a-z0-9_-]+"
PLACE = f"{NUMBER}|[defnrw]"

# The form of the value of each filter.
FORMS = {
    **dict.fromkeys(["circuits", "constructors", "drivers"], ID),
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

# The only filters that may stand beside a place in the standings, in a list of things.
BESIDE_STANDINGS = {
    "seasons": {"drivers", "constructors", "driverstandings", "constructorstandings"},
    "drivers": {"drivers", "driverstandings"},
    "constructors": {"constructors", "constructorstandings"},
}

TABLES = {
    "seasons": ("SeasonTable", "Seasons"),
    "circuits": ("CircuitTable", "Circuits"),
    "constructors": ("ConstructorTable", "Constructors"),
    "drivers": ("DriverTable", "Drivers"),
    "status": ("StatusTable", "Status"),
    "driverstandings": ("StandingsTable", "StandingsLists"),
    "constructorstandings": ("StandingsTable", "StandingsLists"),
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
    path = path.removesuffix(".json") if path.endswith(".json") else path.removesuffix("/")
    segments = path.removeprefix("/").split("/") if path.removeprefix("/") else []
    rest = list(segments)
    season = rest.pop(0) if rest and re.fullmatch("[1-9][0-9]{3}|current", rest[0]) else None
    round = rest.pop(0) if season and rest and re.fullmatch("[1-9][0-9]{0,17}|last|next", rest[0]) else None
    if not rest:
        return [*segments, "races"], season, round, {}, "races"
    endpoint = rest[-1] if len(rest) % 2 else rest[-2]
    filters = {}
    refused = False
    for word, value in list(pairwise(rest))[::2]:
        if word in ("races", "seasons"):
            refused = True
        elif word not in FORMS or not re.fullmatch(FORMS[word], value):
            raise Refused(404)
        elif FORMS[word] == ID:
            filters[word] = value
        else:
            filters[word] = str(int(value)) if value.isdigit() else value.upper()
    if endpoint not in ACCEPTED:
        raise Refused(404)
    if refused or not filters.keys() <= ACCEPTED[endpoint]:
        raise Refused(400)
    if {"driverstandings", "constructorstandings"} & filters.keys() and endpoint in BESIDE_STANDINGS:
        if not filters.keys() <= BESIDE_STANDINGS[endpoint]:
            raise Refused(400)
    if endpoint in ("laps", "pitstops") and not (season and round):
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


def without_accents(name):
    letters = unicodedata.normalize("NFD", name)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold()


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
        self.circuits = {row["circuitId"]: row for row in read(folder, "circuits")}
        self.constructors = {row["constructorId"]: row for row in read(folder, "constructors")}
        self.drivers = {row["driverId"]: row for row in read(folder, "drivers")}
        self.status = {row["statusId"]: row["status"] for row in read(folder, "status")}
        self.races = {row["raceId"]: row for row in read(folder, "races")}
        self.calendar = sorted(self.races.values(), key=self.date_of)
        years = sorted({race["year"] for race in self.calendar})
        self.seasons = sorted(read(folder, "seasons"), key=lambda row: row["year"]) or [{"year": y} for y in years]
        for race in self.calendar:
            circuit = self.circuits[race["circuitId"]]["circuitRef"].lower()
            race["facts"] = {
                "season": race["year"],
                "round": race["round"],
                "circuits": circuit,
                "race": race["raceId"],
            }

        # The rows that belong to a race: all tables in the order of their records.
        self.results = self.rows(folder, "results", "positionOrder", "resultId")
        self.sprints = self.rows(folder, "sprint_results", "positionOrder", "resultId")
        self.qualifying = self.rows(folder, "qualifying", "position", "qualifyId")
        self.stops = self.rows(folder, "pit_stops", "time", "lap", "stop", "driverId")
        self.timings = self.rows(folder, "lap_times", "lap", "position")
        self.standings = {
            "driverstandings": self.rows(folder, "driver_standings", "position", "driverStandingsId"),
            "constructorstandings": self.rows(folder, "constructor_standings", "position", "constructorStandingsId"),
        }

        # `facts` are what the filters of an address are compared with.
        for row in self.results:
            row["facts"] |= some(grid=row["grid"], results=row["positionText"], status=row["statusId"])
            row["facts"] |= some(fastest=row.get("rank"))
        for row in self.sprints:
            row["facts"] |= some(grid=row["grid"], sprint=row["positionText"], status=row["statusId"])
        for row in self.qualifying:
            row["facts"] |= some(qualifying=row["position"])
        for row in self.stops:
            row["facts"] |= some(pitstops=row["stop"], laps=row["lap"])
        for row in self.timings:
            row["facts"] |= some(laps=row["lap"])
        for table, rows in self.standings.items():
            for row in rows:
                row["facts"][table] = row["positionText"]

        # Indexes: the rows of `results` of a driver in a race and in a season, and what a race has.
        self.entries, self.seasons_of, self.winning_time = defaultdict(list), defaultdict(list), {}
        for row in self.results:
            self.entries[row["raceId"], row["driverId"]].append(row)
            self.seasons_of[row["facts"]["season"], row["driverId"]].append(row)
        for rows in (self.sprints, self.results):
            for row in rows:
                self.winning_time.setdefault((row["raceId"], "sprint" in row["facts"]), row.get("milliseconds"))
        self.run = {row["raceId"] for row in self.results}
        self.with_sprint = {row["raceId"] for row in self.sprints}
        self.qualified = {(row["raceId"], row["driverId"], row["position"]) for row in self.qualifying}
        self.with_standings = {table: {row["raceId"] for row in rows} for table, rows in self.standings.items()}

    def rows(self, folder, table, *order):
        """The rows of a table, by race and then by the columns of `order`; a number that is missing comes last."""

        def key(row):
            values = [row.get(column) or "9" * 18 for column in order]
            return (*self.date_of(self.races[row["raceId"]]), *(int(v) if v.isdigit() else v for v in values))

        rows = sorted(read(folder, table), key=key)
        for row in rows:
            row["facts"] = dict(self.races[row["raceId"]]["facts"])
            if "driverId" in row:
                row["facts"]["drivers"] = self.drivers[row["driverId"]]["driverRef"].lower()
            if "constructorId" in row:
                row["facts"]["constructors"] = self.constructors[row["constructorId"]]["constructorRef"].lower()
        return rows

    def date_of(self, race):
        return int(race["year"]), int(race["round"])

    def answer(self, path, limit=100, offset=0):
        """(status, MRData) for a path under the base address, such as `/2023/18/results`; None if it is refused."""
        try:
            segments, season, round, filters, endpoint = parse(path)
            season, round = self.numbers(season, round)
        except Refused as refused:
            return refused.status, None
        asked = some(season=season, round=round) | filters
        wanted = {word: value for word, value in asked.items() if (word, value) != ("fastest", "0")}
        limit = min(limit, 2000)

        records = self.records(endpoint, wanted)
        page = records[offset : offset + limit]
        table, name = TABLES.get(endpoint, ("RaceTable", "Races"))
        echo = {ECHO[word]: asked[word] for word in ECHO if word in asked and (word, endpoint) != ("laps", "laps")}
        if endpoint in self.standings and season and not round:
            echo |= {"round": race["round"] for race in self.chosen_races(endpoint, wanted)}
        return 200, {
            "xmlns": "",
            "series": "f1",
            "url": "/".join([self.base_url, *segments]) + ".json",
            "limit": str(limit),
            "offset": str(offset),
            "total": str(len(records)),
            table: {**echo, name: self.objects(endpoint, page)},
        }

    def numbers(self, season, round):
        """Season and round, with the numbers that `current`, `last` and `next` stand for."""
        if season == "current":
            season = max(self.races[race]["year"] for race in self.run)
        rounds = [race for race in self.calendar if race["year"] == season]
        run = [int(race["round"]) for race in rounds if race["raceId"] in self.run]
        if round == "last":
            if not run:
                raise Refused(404)
            return season, str(max(run))
        if round == "next":
            ahead = [int(race["round"]) for race in rounds if int(race["round"]) > max(run, default=0)]
            return (season, str(min(ahead))) if ahead else (str(int(season) + 1), "1")
        return season, round

    # Which records an address has.

    def records(self, endpoint, wanted):
        match endpoint:
            case "seasons":
                return self.things(self.seasons, "season", lambda row: row["year"], wanted)
            case "races":
                return self.things(self.calendar, "race", lambda row: row["raceId"], wanted)
            case "circuits":
                circuits = sorted(self.circuits.values(), key=lambda row: row["circuitRef"].lower())
                return self.things(circuits, "circuits", lambda row: row["circuitRef"].lower(), wanted)
            case "constructors":
                constructors = sorted(self.constructors.values(), key=lambda row: row["constructorRef"].lower())
                return self.things(constructors, "constructors", lambda row: row["constructorRef"].lower(), wanted)
            case "drivers":
                drivers = sorted(
                    self.drivers.values(), key=lambda row: (without_accents(row["surname"]), row["driverRef"].lower())
                )
                return self.things(drivers, "drivers", lambda row: row["driverRef"].lower(), wanted)
            case "status":
                counts = defaultdict(int)
                for row in self.matching(self.results, wanted):
                    counts[row["statusId"]] += 1
                statuses = [{"statusId": s, "count": str(n), "status": self.status[s]} for s, n in counts.items()]
                return sorted(statuses, key=lambda row: (-int(row["count"]), row["status"].encode()))
            case "results":
                return self.matching(self.results, wanted)
            case "sprint":
                return self.matching(self.sprints, wanted)
            case "qualifying":
                return self.beside_an_entry(self.qualifying, wanted, {"grid", "fastest", "results", "status"})
            case "pitstops":
                return self.beside_an_entry(self.stops, wanted, EVERYTHING - {"drivers"})
            case "laps":
                return self.beside_an_entry(self.timings, wanted, EVERYTHING - {"drivers"})
            case "driverstandings" | "constructorstandings":
                return self.standings_rows(endpoint, wanted)

    def matching(self, rows, wanted):
        return [row for row in rows if wanted.items() <= row["facts"].items()]

    def beside_an_entry(self, rows, wanted, words):
        """The rows of a session; what is asked in `words` holds of one row of `results` of the same race and driver."""
        of_entry = only(wanted, words)
        rows = self.matching(rows, only(wanted, wanted.keys() - words))
        if not of_entry:
            return rows
        return [row for row in rows if self.matching(self.entries[row["raceId"], row["driverId"]], of_entry)]

    def things(self, table, word, id_of, wanted):
        """The rows of a table of things; `word` is the fact by which rows of results and races name such a thing."""
        if wanted.keys() & self.standings.keys():
            found = self.in_standings(word, wanted)
        elif not wanted.keys() - ({word} - {"season"}):
            # Without a filter: the whole table, or the one thing whose id is given.
            found = {wanted.get(word, id_of(row)) for row in table}
        elif wanted.keys() & OF_AN_ENTRY or word in ("drivers", "constructors"):
            entries = self.matching(self.results, only(wanted, wanted.keys() - {"qualifying"}))
            if place := wanted.get("qualifying"):
                entries = [row for row in entries if (row["raceId"], row["driverId"], place) in self.qualified]
            found = {row["facts"][word] for row in entries}
        else:
            found = {race["facts"][word] for race in self.matching(self.calendar, wanted)}
        return [row for row in table if id_of(row) in found]

    def in_standings(self, word, wanted):
        """The ids of the seasons, drivers or constructors that stand in the place, in the lists that are chosen."""
        found = []
        for table, thing in (("driverstandings", "drivers"), ("constructorstandings", "constructors")):
            if wanted.keys() & {table, thing}:
                rows = self.standings_rows(table, only(wanted, {"season", "round", table, thing}))
                found.append({row["facts"][word] for row in rows})
        return set.intersection(*found)

    def chosen_races(self, table, wanted):
        """The races after which the chosen lists of standings were made."""
        races = [race for race in self.calendar if race["raceId"] in self.with_standings[table]]
        if "round" in wanted:
            return self.matching(races, only(wanted, {"season", "round"}))
        if "season" in wanted:
            return self.matching(races, only(wanted, {"season"}))[-1:]
        final = {race["year"]: race["raceId"] for race in self.calendar}
        return [race for race in races if race["raceId"] == final[race["year"]]]

    def standings_rows(self, table, wanted):
        chosen = {race["raceId"] for race in self.chosen_races(table, wanted)}
        return self.matching([row for row in self.standings[table] if row["raceId"] in chosen], wanted)

    # How records look.

    def objects(self, endpoint, page):
        """The list in a table: the objects of the page, under the races, laps or lists that have one of them."""
        match endpoint:
            case "seasons":
                return [season_object(row) for row in page]
            case "circuits":
                return [circuit_object(row) for row in page]
            case "races":
                return [self.race_object(race) | self.sessions(race) for race in page]
            case "constructors":
                return [constructor_object(row) for row in page]
            case "drivers":
                return [driver_object(row) for row in page]
            case "status":
                return page
        nested = []
        for race_id, group in groupby(page, key=lambda row: row["raceId"]):
            race, rows = self.races[race_id], list(group)
            match endpoint:
                case "results":
                    nested.append(self.race_object(race) | {"Results": [self.result_object(row) for row in rows]})
                case "sprint":
                    nested.append(self.race_object(race) | {"SprintResults": [self.result_object(row) for row in rows]})
                case "qualifying":
                    qualified = [self.qualifying_object(row) for row in rows]
                    nested.append(self.race_object(race) | {"QualifyingResults": qualified})
                case "pitstops":
                    nested.append(self.race_object(race) | {"PitStops": [self.stop_object(row) for row in rows]})
                case "laps":
                    laps = [
                        {"number": lap, "Timings": [self.timing_object(row) for row in timings]}
                        for lap, timings in groupby(rows, key=lambda row: row["lap"])
                    ]
                    nested.append(self.race_object(race) | {"Laps": laps})
                case _:
                    name = "DriverStandings" if endpoint == "driverstandings" else "ConstructorStandings"
                    standings = [self.standing_object(row) for row in rows]
                    nested.append({"season": race["year"], "round": race["round"], name: standings})
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
        sprint = "sprint_date" in race or race["raceId"] in self.with_sprint
        second = "SecondPractice"
        if sprint and year >= 2023:
            second = "SprintShootout" if year == 2023 else "SprintQualifying"
        names = {
            "FirstPractice": "fp1",
            second: "fp2",
            "ThirdPractice": "fp3",
            "Qualifying": "quali",
            "Sprint": "sprint",
        }
        order = ["FirstPractice", "SecondPractice", "ThirdPractice", "Qualifying", "Sprint"]
        sessions = {}
        for name in [*order, "SprintShootout", "SprintQualifying"]:
            date, time = (race.get(f"{names.get(name)}_{part}") for part in ("date", "time"))
            if date or (name == "Sprint" and sprint):
                sessions[name] = some(date=date, time=time and f"{time}Z")
        return sessions

    def result_object(self, row):
        of_sprint = "sprint" in row["facts"]
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
            Time=self.time_object(row, of_sprint) if "milliseconds" in row else None,
            FastestLap=fastest,
        )

    def time_object(self, row, of_sprint):
        own, winner = int(row["milliseconds"]), int(self.winning_time[row["raceId"], of_sprint])
        if self.finish_times == "gap":
            time = "+" + clock(own - winner) if own > winner else clock(own)
        elif of_sprint and own < 3600000:
            time = f"{own // 60000:02}:{own // 1000 % 60:02}.{own % 1000:03}"
        else:
            time = f"{own // 3600000}:{own // 60000 % 60:02}:{own // 1000 % 60:02}.{own % 1000:03}"
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
        until = int(self.races[row["raceId"]]["round"])
        driven = [
            entry
            for entry in self.seasons_of[row["facts"]["season"], row["driverId"]]
            if int(self.races[entry["raceId"]]["round"]) <= until
        ]
        driven.sort(key=lambda entry: (int(self.races[entry["raceId"]]["round"]), int(entry["resultId"])))
        teams = list(dict.fromkeys(entry["constructorId"] for entry in driven))
        return standing | {
            "Driver": driver_object(self.drivers[row["driverId"]]),
            "Constructors": [constructor_object(self.constructors[team]) for team in teams],
        }

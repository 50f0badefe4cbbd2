"""The whole service over a full dump: every value of it comes back, and recorded answers of the ancestors match."""

import csv
import json
from collections import Counter, defaultdict

import pytest
from conftest import client
from oracle import Oracle


def rows_of(dump, table):
    """The rows of a file of the dump, a dict each; what is missing is None."""
    with (dump / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        return [
            {name: None if value in ("", r"\N", None) else value for name, value in row.items()}
            for row in csv.DictReader(file)
        ]


class Facts:
    """The dump as the wire should have it, put together from its rows alone and the slow way."""

    def __init__(self, dump):
        self.drivers, self.constructors, self.circuits, self.status = (
            {row[key]: row for row in rows_of(dump, table)}
            for table, key in [
                ("drivers", "driverId"),
                ("constructors", "constructorId"),
                ("circuits", "circuitId"),
                ("status", "statusId"),
            ]
        )
        self.races = rows_of(dump, "races")
        self.tables = {}
        for table in ("results", "qualifying", "sprint_results", "lap_times"):
            self.tables[table] = defaultdict(list)
            for row in rows_of(dump, table):
                self.tables[table][row["raceId"]].append(row)

    def race(self, race):
        circuit = self.circuits[race["circuitId"]]
        return some(
            season=race["year"],
            round=race["round"],
            url=race["url"],
            raceName=race["name"],
            Circuit=some(
                circuitId=circuit["circuitRef"],
                url=circuit["url"],
                circuitName=circuit["name"],
                Location=some(
                    lat=circuit["lat"], long=circuit["lng"], locality=circuit["location"], country=circuit["country"]
                ),
            ),
            date=race["date"],
            time=race["time"] and race["time"] + "Z",
        )

    def scheduled_race(self, race):
        def session(name):
            return some(date=race[f"{name}_date"], time=race[f"{name}_time"] and race[f"{name}_time"] + "Z") or None

        sprint = bool(race["sprint_date"] or self.tables["sprint_results"][race["raceId"]])
        second = "SecondPractice"
        if sprint and int(race["year"]) >= 2023:
            second = "SprintShootout" if race["year"] == "2023" else "SprintQualifying"
        sessions = {
            "FirstPractice": session("fp1"),
            second: session("fp2"),
            "ThirdPractice": session("fp3"),
            "Qualifying": session("quali"),
            "Sprint": (session("sprint") or {}) if sprint else None,
        }
        return {**self.race(race), **some(**sessions)}

    def entrant(self, row):
        driver, constructor = self.drivers[row["driverId"]], self.constructors[row["constructorId"]]
        return {
            "Driver": some(
                driverId=driver["driverRef"],
                permanentNumber=driver["number"],
                code=driver["code"],
                url=driver["url"],
                givenName=driver["forename"],
                familyName=driver["surname"],
                dateOfBirth=driver["dob"],
                nationality=driver["nationality"],
            ),
            "Constructor": some(
                constructorId=constructor["constructorRef"],
                url=constructor["url"],
                name=constructor["name"],
                nationality=constructor["nationality"],
            ),
        }

    def results(self, table, race_id):
        for row in in_order(self.tables[table][race_id], "positionOrder", "resultId"):
            lap = None
            if row["fastestLap"] and row["rank"] != "0":
                speed = row.get("fastestLapSpeed")
                lap = some(
                    rank=row["rank"],
                    lap=row["fastestLap"],
                    Time={"time": row["fastestLapTime"]},
                    AverageSpeed=speed and {"units": "kph", "speed": speed},
                )
            yield some(
                number=row["number"],
                position=row["positionOrder"],
                positionText=row["positionText"],
                points=row["points"],
                grid=row["grid"],
                laps=row["laps"],
                status=self.status[row["statusId"]]["status"],
                FastestLap=lap,
                **self.entrant(row),
                Time=row["milliseconds"]
                and {
                    "millis": row["milliseconds"],
                    "time": clock(row["milliseconds"], hours=table == "results"),
                },
            )

    def qualifying(self, race_id):
        for row in in_order(self.tables["qualifying"][race_id], "position", "qualifyId"):
            yield some(
                number=row["number"],
                position=row["position"],
                Q1=row["q1"],
                Q2=row["q2"],
                Q3=row["q3"],
                **self.entrant(row),
            )

    def timings(self, race_id):
        for row in in_order(self.tables["lap_times"][race_id], "lap", "position"):
            yield (
                row["lap"],
                some(driverId=self.drivers[row["driverId"]]["driverRef"], position=row["position"], time=row["time"]),
            )


def in_order(rows, *columns):
    return sorted(rows, key=lambda row: [int(row[column]) for column in columns])


def some(**facts):
    return {name: fact for name, fact in facts.items() if fact is not None}


def clock(milliseconds, hours):
    rest = int(milliseconds)
    thousandths, rest = rest % 1000, rest // 1000
    seconds, rest = rest % 60, rest // 60
    text = f"{rest % 60:02}:{seconds:02}.{thousandths:03}"
    return f"{rest // 60}:{text}" if hours or rest >= 60 else text


def leaves(value):
    if isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each)
    else:
        yield value


def test_a_walk_over_all_seasons_and_rounds_gives_the_whole_dump_back(dump, dump_database):
    facts = Facts(dump)
    app = client(dump_database)

    def ask(address):
        answer = app.get(f"/ergast/f1/{address}", status=200).json["MRData"]
        assert {type(leaf) for leaf in leaves(answer)} == {str}
        return int(answer["total"]), answer["RaceTable"]["Races"]

    counted = Counter()
    seasons = defaultdict(list)
    for race in in_order(facts.races, "year", "round"):
        seasons[race["year"]].append(race)
    for year, races in seasons.items():
        assert ask(f"{year}/races/") == (len(races), [facts.scheduled_race(race) for race in races])
        counted["seasons"] += 1
        for race in races:
            place, race_id, above = f"{year}/{race['round']}", race["raceId"], facts.race(race)
            assert ask(f"{place}.json") == (1, [facts.scheduled_race(race)])
            counted["races"] += 1
            for endpoint, key, records in [
                ("results", "Results", list(facts.results("results", race_id))),
                ("qualifying", "QualifyingResults", list(facts.qualifying(race_id))),
                ("sprint", "SprintResults", list(facts.results("sprint_results", race_id))),
            ]:
                expected = [{**above, key: records}] if records else []
                assert ask(f"{place}/{endpoint}.json") == (len(records), expected)
                counted[endpoint] += len(records)
            timings, total, offset = [], 1, 0
            while offset < total:
                total, pages = ask(f"{place}/laps.json?limit=100&offset={offset}")
                for page in pages:
                    laps = page.pop("Laps")
                    assert page == above
                    timings += [(lap["number"], timing) for lap in laps for timing in lap["Timings"]]
                offset += 100
            assert timings == list(facts.timings(race_id))
            counted["timings"] += len(timings)
    assert counted["seasons"] == 76
    assert counted["races"] == 1_149
    assert counted["results"] == 27_178
    assert counted["qualifying"] == 10_913
    assert counted["sprint"] == 460
    assert counted["timings"] == 5_634


# The rows of each table of the dump.
ROWS = {
    "seasons": 76,
    "circuits": 77,
    "races": 1_149,
    "constructors": 212,
    "drivers": 864,
    "results": 27_178,
    "qualifying": 10_913,
    "sprint": 460,
    "pitstops": 12_101,
    "laps": 5_634,
    "driverstandings": 35_298,
    "constructorstandings": 13_601,
}
OF_ROUNDS = ("pitstops", "laps", "driverstandings", "constructorstandings")  # without a round: not all, or refused


def test_every_row_of_every_table_comes_out_again_by_pages_whole_by_season_and_by_round(dump, dump_database):
    oracle, app = Oracle(dump), client(dump_database)

    def walk(path):
        """The total of an address, after all of its pages were compared with the second implementation."""
        total, offset = 1, 0
        while offset < total:
            answer = app.get(f"/ergast/f1{path}?limit=1000&offset={offset}", headers={"Host": "localhost"}).json
            assert json.dumps(answer["MRData"]) == json.dumps(oracle.answer(path, 1000, offset)[1])
            total, offset = int(answer["MRData"]["total"]), offset + 1000
        return total

    for endpoint in ROWS.keys() - OF_ROUNDS:
        assert walk(f"/{endpoint}") == ROWS[endpoint]
    assert walk("/status") == len({row["statusId"] for row in rows_of(dump, "results")})
    places = sorted((int(race["year"]), int(race["round"])) for race in rows_of(dump, "races"))
    seasons = sorted({season for season, _ in places})
    for endpoint in ("races", "results", "qualifying", "sprint"):
        assert sum(walk(f"/{season}/{endpoint}") for season in seasons) == ROWS[endpoint]
    for endpoint in ("circuits", "constructors", "drivers", "status", "driverstandings", "constructorstandings"):
        assert all(
            walk(f"/{season}/{endpoint}") or (endpoint, season < 1958) == ("constructorstandings", True)
            for season in seasons
        )
    for endpoint in OF_ROUNDS:
        assert sum(walk(f"/{season}/{round}/{endpoint}") for season, round in places) == ROWS[endpoint]


def differences(recorded, ours, place=""):
    """[(place, what was recorded, what we say)] wherever two answers differ, the order of keys included."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        both = [key for key in recorded if key in ours]
        if both != [key for key in ours if key in recorded]:
            yield place, list(recorded), list(ours)
        for key in {**recorded, **ours}:
            yield from differences(recorded.get(key), ours.get(key), f"{place}/{key}")
    elif isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        for number, pair in enumerate(zip(recorded, ours)):
            yield from differences(*pair, f"{place}/{number}")
    elif recorded != ours:
        yield place, recorded, ours


RACE = "/MRData/RaceTable/Races/0"


def ergast(address):
    """Ergast named a schema in its envelope and had an address of its own."""
    return [
        ("/MRData/xmlns", "http://ergast.com/mrd/1.5", ""),
        ("/MRData/url", f"http://ergast.com/api/f1/{address}", f"http://testserver/ergast/f1/{address}"),
    ]


def article(place, name):
    """The later service links to the circuits' articles by https, the dump by http."""
    return [(f"{place}/Circuit/url", f"https://en.wikipedia.org/wiki/{name}", f"http://en.wikipedia.org/wiki/{name}")]


def lapped(position, millis, gap):
    """The later service calls a lapped car so, and gives it a time of its own."""
    place = f"{RACE}/Results/{position - 1}"
    return [(f"{place}/status", "Lapped", "+1 Lap"), (f"{place}/Time", {"millis": millis, "time": gap}, None)]


# Every difference there is between what was recorded and what the dump says, with the address asked.
RECORDED = {
    "2023-7-races": ("2023/7/races.json?limit=30", ergast("2023/7/races.json")),
    "2023-18-laps-limit-30-offset-45": ("2023/18/laps.json?limit=30&offset=45", ergast("2023/18/laps.json")),
    "2023-99-results": ("2023/99/results.json?limit=30", ergast("2023/99/results.json")),
    "2023-13-qualifying": ("2023/13/qualifying.json?limit=30", article(RACE, "Circuit_Zandvoort")),
    "2023-9-results": (
        "2023/9/results.json?limit=30",
        [
            *article(RACE, "Red_Bull_Ring"),
            # zeros at the end of a speed
            (f"{RACE}/Results/0/FastestLap/AverageSpeed/speed", "231.970", "231.97"),
            (f"{RACE}/Results/18/FastestLap/AverageSpeed/speed", "223.280", "223.28"),
            *lapped(12, "5158240", "+24.633"),
            *lapped(13, "5164991", "+31.384"),
            *lapped(14, "5175747", "+42.140"),
            *lapped(15, "5176384", "+42.777"),
            *lapped(16, "5180176", "+46.569"),
            *lapped(17, "5183310", "+49.703"),
            *lapped(18, "5190260", "+56.653"),
            *lapped(19, "5193480", "+59.873"),
            # who started from the pit lane
            (f"{RACE}/Results/16/grid", "20", "0"),
            (f"{RACE}/Results/17/grid", "19", "0"),
            # a status without its reason
            (f"{RACE}/Results/19/status", "Retired", "Power loss"),
        ],
    ),
}
SPRINTS = {
    "4": [
        *article("", "Baku_City_Circuit"),
        ("/SprintResults/19/positionText", "R", "W"),
    ],
    "9": [
        *article("", "Red_Bull_Ring"),
        # ranks that the dump has not
        *(
            (f"/SprintResults/{place}/FastestLap/rank", rank, None)
            for place, rank in enumerate(["12", "15", "14", "17", "13", "1", "16", "3", "18", "6"])
        ),
    ],
}


@pytest.fixture(scope="module")
def gaps(dump_database):
    """The application as the ancestors had it: gaps for times, and their host."""
    return client(dump_database, finish_times="gap")


def by_place(found):
    return sorted(found, key=lambda difference: difference[0])


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_answer_is_given_again_but_for_the_differences_named(gaps, recorded, name):
    address, named = RECORDED[name]
    answer = gaps.get(f"/ergast/f1/{address}", headers={"Host": "testserver"}).json
    expected = json.loads((recorded / f"{name}.json").read_text(encoding="utf-8"))
    assert by_place(differences(expected, answer)) == by_place(named)


def test_recorded_sprints_are_given_again_but_for_the_differences_named(gaps, recorded):
    recording = json.loads((recorded / "2023-sprint-first-30-rows.json").read_text(encoding="utf-8"))
    races = recording["MRData"]["RaceTable"]["Races"]
    assert [race["round"] for race in races] == list(SPRINTS)
    for expected in races:
        address = f"/ergast/f1/2023/{expected['round']}/sprint.json?limit={len(expected['SprintResults'])}"
        (race,) = gaps.get(address).json["MRData"]["RaceTable"]["Races"]
        assert by_place(differences(expected, race)) == by_place(SPRINTS[race["round"]])

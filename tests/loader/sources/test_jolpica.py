"""racedata.loader.sources.jolpica and statuses: a dump in Jolpica's own layout is loaded, and
answers what Jolpica answers.
"""

import csv
import json
import random
import re
import sqlite3
from contextlib import closing

import pytest
from support import EXPECTED
from support.answers import by_place, client, differences
from support.dumps import ChangedDump
from support.loads import built, select

from racedata.loader.errors import LoadError

# A dump in which each kind of row occurs once or twice. Names are facts; ids, times and places are
# mostly made up.
TABLES = (EXPECTED / "jolpica-dump.txt").read_text(encoding="utf-8").split("[")[1:]


class Dump(ChangedDump):
    def change(self, name, id, /, **fields):
        """Changes fields of the row with an id."""
        super().change(name, self.line(name, id=str(id)), **fields)


@pytest.fixture
def source(tmp_path):
    """The dump above, to change."""
    files = {table.partition("]")[0]: list(csv.reader(table.splitlines()[1:])) for table in TABLES}
    return Dump(tmp_path, files, "formula_one_")


def test_the_date_and_time_of_a_race_and_of_its_sessions_are_in_utc(source):
    assert source.stored("SELECT year, round, name, date, time FROM races ORDER BY year") == [
        (1997, 1, "Old Grand Prix", "1997-03-09", None),
        (2023, 4, "Azerbaijan Grand Prix", "2023-04-30", "11:00:00"),
        (2025, 22, "Las Vegas Grand Prix", "2025-11-23", "04:00:00"),
    ]
    sql = """SELECT session, sessions.date, sessions.time
             FROM sessions JOIN races USING (raceId) ORDER BY year, session"""
    assert source.stored(sql) == [
        ("fp1", "2023-04-28", "09:30:00"),
        ("quali", "2023-04-28", "13:00:00"),
        ("sprint", "2023-04-29", "13:30:00"),
        ("sq", "2023-04-29", "08:30:00"),
        ("fp1", "2025-11-20", None),
    ]


def test_records_that_no_address_can_name_are_left_out_and_counted(source):
    assert [line for line in source.load() if line.startswith("left out")] == [
        "left out: drivers without a reference, with all their records: 1",
        "left out: teams without a reference, with all their records: 1",
        "left out: rounds that are cancelled, have no number, or have no race date: 3",
        "left out: race and sprint results that have no position, or belong to skipped rows: 3",
    ]
    assert select(source.database, "SELECT driverRef FROM drivers WHERE driverId = 44") == []
    assert (
        select(source.database, "SELECT constructorRef FROM constructors WHERE constructorId = 32")
        == []
    )


def test_circuits_constructors_and_drivers_are_stored_with_their_facts(source):
    assert source.stored("SELECT circuitRef, location, lat, lng, alt FROM circuits") == [
        ("baku", "Baku", "40.3725", "49.8533", "-7"),
        ("vegas", "Las Vegas", None, None, "610"),
    ]
    assert select(
        source.database, "SELECT number, code, forename, surname, dob FROM drivers LIMIT 1"
    ) == [(16, "LEC", "Charles", "Leclerc", "1997-10-16")]
    assert select(source.database, "SELECT name, nationality FROM constructors") == [
        ("Ferrari", "Italian"),
        ("Williams", "British"),
    ]
    assert [year for (year,) in select(source.database, "SELECT year FROM seasons")] == [
        1997,
        2023,
        2025,
    ]


def test_results_have_their_status_their_fastest_lap_and_a_time_if_they_are_classified(source):
    sql = """SELECT driverRef, results.number, grid, positionText, positionOrder, points, laps,
                 milliseconds, fastestLap, rank, fastestLapTime, fastestLapSpeed, status
             FROM results JOIN drivers USING (driverId) LEFT JOIN status USING (statusId)
             WHERE raceId = 50"""
    assert source.stored(sql) == [
        ("leclerc", 16, 1, "1", 1, "26", 51, 5562430, 2, 1, "1:45.200", "203.400", "Finished"),
        ("sainz", 55, 2, "2", 2, "12.5", 50, None, None, None, None, None, "Lapped"),
        ("albon", 23, None, "R", 3, "0", 7, None, 6, 2, "1:47.900", "201.100", "Engine"),
        ("sargeant", 2, None, "W", 4, None, None, None, None, None, None, None, "Did not start"),
    ]


@pytest.mark.parametrize(
    ("is_classified", "status", "text"),
    [
        ("t", "20", "3"),
        ("f", "20", "D"),
        ("f", "30", "W"),
        ("f", "40", "F"),
        ("f", "41", "F"),
        ("f", "10", "R"),
        ("f", "999", "R"),
        ("f", "", "R"),
        ("", "20", "D"),
        ("", "", None),
    ],
)
def test_the_text_of_a_position_follows_from_the_status(source, is_classified, status, text):
    source.change("sessionentry", 211, is_classified=is_classified, status=status)
    assert source.stored(
        "SELECT positionText FROM results WHERE raceId = 50 AND positionOrder = 3"
    ) == [(text,)]


@pytest.mark.parametrize(
    ("status", "detail", "id", "text"),
    [
        ("0", "", 1, "Finished"),
        ("20", "", 2, "Disqualified"),
        ("10", "", 3, "Accident"),
        ("11", "", 31, "Retired"),
        ("40", "", 81, "Did not qualify"),
        ("41", "", 97, "Did not prequalify"),
        ("30", "", 142, "Did not start"),
        ("1", "", 143, "Lapped"),
        ("11", "+1 Lap", 11, "+1 Lap"),
        ("11", "Oil pressure", 51, "Oil pressure"),
        ("11", "+13 Laps", 53, "+13 Laps"),
        ("11", "Cooling system", 141, "Cooling system"),
        ("999", "", None, None),
    ],
)
def test_a_status_has_the_id_that_clients_know(source, status, detail, id, text):
    source.change("sessionentry", 211, status=status, detail=detail)
    sql = """SELECT statusId, status FROM results LEFT JOIN status USING (statusId)
             WHERE raceId = 50 AND positionOrder = 3"""
    assert source.stored(sql) == [(id, text)]


def test_texts_of_new_statuses_get_the_next_ids_in_the_order_of_their_entries(source):
    source.change("sessionentry", 209, detail="Zebra")
    source.change("sessionentry", 211, detail="Aardvark")
    source.change("sessionentry", 214, detail="Zebra")
    assert source.stored("SELECT statusId, status FROM status WHERE statusId > 142") == [
        (143, "Lapped"),
        (144, "Handbrake"),
        (145, "Zebra"),
        (146, "Aardvark"),
    ]


def test_a_sprint_has_results_of_its_own(source):
    sql = """SELECT positionText, points, laps, milliseconds, fastestLap, rank, fastestLapTime,
                 status
             FROM sprint_results JOIN status USING (statusId)"""
    assert source.stored(sql) == [
        ("1", "8", 17, 1997667, 10, None, "0:59.500", "Finished"),
        ("W", "0", 1, None, None, None, None, "Handbrake"),
    ]


def test_qualifying_has_the_times_of_each_part_and_the_position_of_the_last(source):
    sql = """SELECT year, driverRef, constructorRef, qualifying.number, position, q1, q2, q3
             FROM qualifying JOIN races USING (raceId) JOIN drivers USING (driverId)
                 JOIN constructors USING (constructorId) ORDER BY record"""
    assert source.stored(sql) == [
        # Two sessions of an older kind: one without a number is the last.
        (1997, "villeneuve", "williams", 3, 1, "1:30.100", "1:29.100", None),
        (2023, "leclerc", "ferrari", 16, 1, "1:41.269", "1:40.445", "1:40.203"),
        # No position in the third part.
        (2023, "sainz", "ferrari", 55, 1, "1:41.000", "1:40.203", None),
        # A deleted lap.
        (2023, "albon", "williams", 23, 3, None, None, None),
    ]


def test_sprint_qualifying_has_the_same_facts_of_its_own_sessions(source):
    sql = """SELECT driverId, constructorId, list.number, position, q1, q2, q3
             FROM {} AS list JOIN races USING (raceId) WHERE year = 2023 ORDER BY record"""
    qualifying = source.stored(sql.format("qualifying"))
    for id, type in [(61, "SQ1"), (62, "SQ2"), (63, "SQ3"), (64, "Q1")]:
        source.change("session", id, type=type)
    assert source.stored(sql.format("sprint_qualifying")) == qualifying != []
    assert select(source.database, sql.format("qualifying")) == []


def test_of_two_fastest_laps_the_faster_one_that_is_not_deleted_counts(source):
    source.change("lap", 305, is_entry_fastest_lap="t", is_deleted="t")
    sql = "SELECT q3 FROM qualifying WHERE raceId = 50 AND driverId = 40"
    assert source.stored(sql) == [("1:40.203",)]
    source.change("lap", 305, is_deleted="f")
    assert source.stored(sql) == [("1:39.000",)]


def test_lap_times_belong_to_the_race_and_single_fastest_laps_are_left_out(source):
    sql = """SELECT driverRef, lap, position, lap_times.time
             FROM lap_times JOIN drivers USING (driverId) ORDER BY record"""
    assert source.stored(sql) == [
        ("leclerc", 1, 1, "1:02:03.400"),
        ("sainz", 1, 2, "1:55.123"),
        ("leclerc", 2, 1, "1:45.200"),
        ("sainz", 2, None, None),
    ]


def test_a_race_with_one_lap_of_each_driver_has_no_lap_times_unless_that_is_lap_1(source):
    for first_lap in (308, 310):
        source.change("lap", first_lap, number="")
    assert "left out: laps from races with only one lap per driver: 2" in source.load()
    assert select(source.database, "SELECT count(*) FROM lap_times") == [(0,)]
    assert select(source.database, "SELECT count(*) FROM origins WHERE kind = 'lap_times'") == [
        (0,)
    ]
    for only_lap in (309, 311):
        source.change("lap", only_lap, number="1")
    assert source.stored("SELECT count(*) FROM lap_times") == [(2,)]


def test_pit_stops_belong_to_the_race(source):
    sql = """SELECT driverRef, stop, lap, pit_stops.time, milliseconds
             FROM pit_stops JOIN drivers USING (driverId) ORDER BY record"""
    assert source.stored(sql) == [
        ("sainz", 1, 1, "15:20:01", 24289),
        ("sainz", 2, 2, "15:30:02", 1104900),
        ("leclerc", 1, None, None, None),
    ]


def test_standings_are_those_after_a_race(source):
    assert source.stored(
        "SELECT driverId, points, position, positionText, wins FROM driver_standings"
    ) == [
        (40, "34", 1, "1", 1),
        (41, "12.5", 2, "2", 0),
        (43, "3", 3, "D", None),
        (42, "0", None, "-", 0),
    ]
    assert select(
        source.database,
        "SELECT constructorId, points, position, positionText FROM constructor_standings",
    ) == [
        (30, "46.5", 1, "1"),
        (31, "0", None, "E"),
    ]


def test_an_entry_without_a_result_counts_for_filters_that_are_not_about_a_result(
    source,
):
    source.load()
    app = client(source.database)
    totals = {
        **{
            "2023/4/drivers": 5,
            "2023/drivers": 5,
            "constructors/ferrari/drivers": 4,
            "drivers/villeneuve/races": 2,
        },
        **{
            "drivers/villeneuve/seasons": 2,
            "2023/drivers/villeneuve/circuits": 1,
            "drivers/villeneuve/constructors": 2,
        },
        # About a result, or of a race without results, or of another list.
        **{
            "2023/4/results": 4,
            "2023/drivers/villeneuve/status": 0,
            "results/1/constructors/ferrari/drivers": 1,
        },
        **{
            "qualifying/3/constructors/ferrari/drivers": 0,
            "2025/drivers": 0,
            "2023/drivers/villeneuve/qualifying": 0,
        },
    }
    served = {
        path: int(app.get(f"/ergast/f1/{path}?limit=0").json["MRData"]["total"]) for path in totals
    }
    assert served == totals
    names = """SELECT constructorRef FROM constructors
               WHERE instr(constructors, constructorId) ORDER BY constructorId DESC"""
    of_albon = (
        f"SELECT (SELECT group_concat(constructorRef, ' ') FROM ({names})) FROM driver_standings"
    )
    assert select(source.database, f"{of_albon} WHERE driverId = 42") == [("williams ferrari",)]


@pytest.mark.parametrize(
    ("name", "column", "said"),
    [
        ("session", "timestamp", "races"),
        ("round", "number", "races"),
        ("sessionentry", "position", "results"),
        ("driver", "reference", "drivers"),
        ("team", "reference", "constructors"),
    ],
)
def test_a_dump_in_which_nothing_can_be_served_is_refused(source, name, column, said):
    header, *records = source.files[name]
    source.files[name] = [
        [f"old_{field}" if field == column else field for field in header],
        *records,
    ]
    with pytest.raises(LoadError, match=f"no {said} that can be served"):
        source.load()


def test_laps_pit_stops_and_standings_may_be_absent(source):
    del source.files["lap"], source.files["driverchampionship"], source.files["teamchampionship"]
    absent = [line.split()[0] for line in source.load() if "no file" in line]
    assert absent == ["practice", "lap_times", "driver_standings", "constructor_standings"]
    assert select(source.database, "SELECT stop, lap FROM pit_stops") == [
        (1, None),
        (2, None),
        (1, None),
    ]
    del source.files["pitstop"]
    assert "pit_stops                  no file            0" in source.load()


def test_sessions_of_an_unknown_type_are_left_out_and_counted(source):
    for id, type in [(64, "SQ0"), (65, "PQ"), (71, "PQ")]:
        source.change("session", id, type=type)
    assert "left out: sessions of unknown types: PQ (2), SQ0 (1)" in source.load()


def test_a_round_with_entries_but_without_a_race_is_refused(source):
    source.change("session", 66, type="GP")
    source.change("session", 70, type="GP")  # in 2025/22, no session has entries
    said = (
        "formula_one_session.csv: 2023/4 has sessions with entries, but none of type R; "
        "expected a race"
    )
    with pytest.raises(LoadError, match=re.escape(said)):
        source.load()


# A file, the id of a row, a column, the value that it gets, and what is said.
WRONG_VALUES = (EXPECTED / "wrong-values-jolpica.txt").read_text().splitlines()


@pytest.mark.parametrize("line", WRONG_VALUES)
def test_a_value_that_would_make_an_answer_wrong_is_refused_with_its_file_line_and_column(
    source, line
):
    name, id, column, value, said = re.fullmatch(
        r"(\w+) (\d+) (\w+) = (.*?): (line .*)", line
    ).groups()
    source.change(name, id, **{column: value})
    with pytest.raises(LoadError, match=re.escape(f"formula_one_{name}.csv, {said}")):
        source.load()


@pytest.mark.parametrize(
    ("name", "id", "change", "said"),
    [
        ("roundentry", 102, {"team_driver_id": "80"}, r"qualifying\.raceId, qualifying\.driverId"),
        ("lap", 311, {"number": "1"}, r"lap_times\.raceId, lap_times\.driverId, lap_times\.lap"),
        ("lap", 312, {"id": "303"}, r"lap\.id"),
    ],
)
def test_a_driver_who_is_twice_in_a_session_or_lap_is_refused(source, name, id, change, said):
    source.change(name, id, **change)
    with pytest.raises(LoadError, match=f"source: two rows have the same {said}; expected diff"):
        source.load()


def test_the_licence_of_jolpicas_data_is_stored(source):
    facts = ("jolpica", str(source.folder), "CC BY-NC-SA 4.0")
    assert source.stored("SELECT name, address, licence FROM sources") == [facts]


# What follows needs a dump of Jolpica's, and its own answers over it.


@pytest.fixture(scope="session")
def jolpica_database(jolpica, tmp_path_factory):
    return built(jolpica, tmp_path_factory.mktemp("jolpica") / "racedata.db")


def order(place, jolpica, ours):
    """The difference between two orders of the same keys."""
    return (place, jolpica.split(), ours.split())


def timing(lap, number):
    place = f"/MRData/RaceTable/Races/0/Laps/{lap}/Timings/{number}"
    return order(place, "driverId time position", "driverId position time")


# Every difference between Jolpica's answers and ours, with the decision behind it.
DIFFERENCES = {
    # A table echoes the filters in one order, whatever the order in the address.
    "2009/driverstandings/1.json": [
        order(
            "/MRData/StandingsTable",
            "driverStandings season round StandingsLists",
            "season driverStandings round StandingsLists",
        )
    ],
    "2009/results/1.json?limit=2": [
        order("/MRData/RaceTable", "position season Races", "season position Races")
    ],
    "2023/18/pitstops/2.json?limit=2": [
        order("/MRData/RaceTable", "stop season round Races", "season round stop Races")
    ],
    # The keys of a timing have the order that Ergast's have.
    "2023/18/laps/1.json?limit=3": [timing(0, 0), timing(0, 1), timing(0, 2)],
    "2023/18/drivers/leclerc/laps.json?limit=2": [timing(0, 0), timing(1, 0)],
    # The dump has 2:19:46.3, which is 8386300 ms. Jolpica's own `time`, +12.600,
    # agrees.
    "1958/1/results.json?limit=20": [
        ("/MRData/RaceTable/Races/0/Results/2/Time/millis", "8386299", "8386300")
    ],
    # A correction: he drove 31 laps, like the winner.
    "2009/drivers/alonso/results.json?limit=2": [
        ("/MRData/RaceTable/Races/1/Results/0/status", "+1 Lap", "Finished")
    ],
    "drivers/alonso/status.json?limit=3": [
        ("/MRData/StatusTable/Status/0/count", "61", "62"),
        ("/MRData/StatusTable/Status/1/count", "4", "3"),
    ],
    # A correction: there were no codes when he drove, and MAG is Kevin Magnussen's.
    "1997/driverstandings.json?limit=30": [
        ("/MRData/StandingsTable/StandingsLists/0/DriverStandings/20/Driver/code", "MAG", None),
    ],
}
# Lists depend on entries to a race, which the dump has for nine seasons only. Jolpica's depend on
# entries to a season, which the dump has for all: `{path: (list, id, what we have of it)}`.
BY_RACE = {
    "drivers/alonso/constructors.json": (
        "ConstructorTable",
        "Constructors",
        "constructorId",
        ["aston_martin", "mclaren", "renault"],
    ),
    "drivers/alonso/constructors/renault/seasons.json": (
        "SeasonTable",
        "Seasons",
        "season",
        ["2008", "2009"],
    ),
}
# Answered here: standings of all finished seasons, and pit stops of a season.
REFUSED_THERE = ("driverstandings.json", "2009/pitstops.json")


def test_jolpicas_own_answers_are_repeated_except_for_the_listed_differences(
    jolpica, jolpica_database
):
    app = client(jolpica_database, finish_times="gap")

    def ours(path):
        address = path if "limit=" in path else f"{path}?limit=30"
        headers, https = {"Host": "api.example.org"}, {"wsgi.url_scheme": "https"}
        return app.get(
            f"/ergast/f1/{address}", headers=headers, extra_environ=https, expect_errors=True
        )

    answers = [
        json.loads(file.read_text(encoding="utf-8"))
        for file in sorted((jolpica / "answers").iterdir())
    ]
    expected = {answer["path"]: answer for answer in answers}
    assert {*DIFFERENCES, *BY_RACE, *REFUSED_THERE} <= expected.keys()

    for path in REFUSED_THERE:
        assert (expected.pop(path)["status"], ours(path).status_int) == (400, 200)
    for path, (table, key, id, ids) in BY_RACE.items():
        theirs = expected.pop(path)["body"]["MRData"][table][key]
        assert ours(path).json["MRData"][table][key] == [
            thing for thing in theirs if thing[id] in ids
        ]
    for path, answer in expected.items():
        response = ours(path)
        assert response.status_int == answer["status"], path
        # Errors are problem+json; only their status is compared.
        found = differences(answer["body"], response.json) if answer["status"] == 200 else []
        assert by_place(found) == by_place(DIFFERENCES.get(path, [])), path


def test_statuses_of_jolpicas_dump_all_have_an_id_that_clients_know(jolpica_database):
    assert select(jolpica_database, "SELECT count(*), max(statusId) FROM status") == [(141, 143)]


@pytest.fixture(scope="module")
def files(jolpica):
    """The files of the dump as tables of texts, but for most laps."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.row_factory = sqlite3.Row
        for path in jolpica.glob("formula_one_*.csv"):
            with path.open(newline="", encoding="utf-8") as file:
                header, *rows = csv.reader(file)
            name = path.stem.removeprefix("formula_one_")
            db.execute(f"CREATE TABLE {name} ({', '.join(header)})")
            kept = [row for row in rows if name != "lap" or "t" in row]
            db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(header))})", kept)
        yield db


ENTRIES = """roundentry JOIN round ON round.id = roundentry.round_id
    JOIN season ON season.id = round.season_id JOIN circuit ON circuit.id = round.circuit_id
    JOIN teamdriver ON teamdriver.id = team_driver_id
    JOIN driver ON driver.id = driver_id JOIN team ON team.id = team_id"""


def test_the_drivers_who_entered_races_are_served_as_the_entries_of_the_dump_say(
    files, jolpica_database
):
    in_races = "sessionentry JOIN session ON session.id = session_id WHERE type = 'R'"
    entered = files.execute(
        f"""SELECT year, round.number, circuit.reference AS circuits, driver.reference AS drivers,
                team.reference AS constructors,
                roundentry.id IN (SELECT round_entry_id FROM {in_races}) AS has_result
            FROM {ENTRIES} WHERE round.id IN (SELECT round_id FROM {in_races})"""
    ).fetchall()
    app = client(jolpica_database)

    def served(path, name):
        """The ids in the list that an address has."""
        answer = app.get(f"/ergast/f1/{path}/{name}?limit=2000").json["MRData"]
        (found,) = [each for each in answer.values() if isinstance(each, dict)]
        id = {"races": "round", "seasons": "season"}.get(name, f"{name[:-1]}Id")
        return [row[id] for row in found[name.capitalize()]]

    without_result = [row for row in entered if not row["has_result"]]
    assert len(without_result) == 106
    for row in [*without_result, *random.sample(entered, 50)]:
        names = random.sample(["circuits", "drivers", "constructors"], 2)
        path = "/".join([row["year"], *(f"{name}/{row[name]}" for name in names)])
        same = [each for each in entered if all(each[n] == row[n] for n in ("year", *names))]
        for name in ("circuits", "drivers", "constructors"):
            assert sorted(served(path, name)) == sorted({each[name] for each in same}), path
    counts = {
        ("1980/13", "drivers"): 28,
        ("1979", "constructors"): 19,
        ("1980/drivers/desire_wilson", "races"): 1,
    }
    assert {address: len(served(*address)) for address in counts} == counts
    for year in {row["year"] for row in without_result}:
        answer = app.get(f"/ergast/f1/{year}/driverstandings?limit=2000").json["MRData"]
        for row in answer["StandingsTable"]["StandingsLists"][0]["DriverStandings"]:
            driver = row["Driver"]["driverId"]
            expected = {
                each["constructors"]
                for each in entered
                if each["year"] == year
                if each["drivers"] == driver
            }
            assert {each["constructorId"] for each in row["Constructors"]} == expected, driver


def test_sprint_qualifying_is_served_as_the_sessions_of_the_dump_say(files, jolpica_database):
    rows = files.execute(
        f"""SELECT year, round.number, driver.reference, team.reference, car_number, type,
                sessionentry.position, lap.time
            FROM {ENTRIES} JOIN sessionentry ON round_entry_id = roundentry.id
            JOIN session ON session.id = session_id
            LEFT JOIN lap ON session_entry_id = sessionentry.id AND is_entry_fastest_lap = 't'
                AND is_deleted <> 't'
            WHERE type IN ('SQ1', 'SQ2', 'SQ3') ORDER BY type"""
    )
    expected = {}
    for *key, team, car, type, position, time in rows:
        row = expected.setdefault(tuple(key), {"number": car, "constructor": team})
        row["position"] = position
        if time:  # 00:01:41.5 is 1:41.500
            row[type[1:]] = f"{time if '.' in time else f'{time}.':0<12}".removeprefix("00:0")
    answer = client(jolpica_database).get("/ergast/f1/sprintqualifying?limit=2000").json["MRData"]
    served = {
        (race["season"], race["round"], row.pop("Driver")["driverId"]): row
        | {"constructor": row.pop("Constructor")["constructorId"]}
        for race in answer["RaceTable"]["Races"]
        for row in race["SprintQualifyingResults"]
    }
    assert served == expected
    assert answer["total"] == str(len(served)) == "120"

"""racedata.loader.sources.statuses: a dump in Jolpica's own layout, by jolpica.sql, is loaded, and
answers what Jolpica answers.
"""

import csv
import json
import re

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


def test_circuits_constructors_and_drivers_are_stored_with_their_facts(source):
    """No address can name a driver or constructor without a reference."""
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
    years = [(1997,), (2023,), (2025,)]
    assert select(source.database, "SELECT year FROM seasons") == years
    facts = [("jolpica", str(source.folder), "CC BY-NC-SA 4.0")]
    assert select(source.database, "SELECT name, address, licence FROM sources") == facts


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
    ("is_classified", "status", "detail", "expected"),
    [
        ("t", "0", "", ("3", 1, "Finished")),
        ("f", "20", "", ("D", 2, "Disqualified")),
        ("f", "10", "", ("R", 3, "Accident")),
        ("f", "40", "", ("F", 81, "Did not qualify")),
        ("f", "41", "", ("F", 97, "Did not prequalify")),
        ("f", "30", "", ("W", 142, "Did not start")),
        ("f", "999", "", ("R", None, None)),
        ("t", "1", "", ("3", 143, "Lapped")),
        ("f", "11", "Oil pressure", ("R", 51, "Oil pressure")),
        ("", "", "", (None, None, None)),
    ],
)
def test_the_text_of_a_position_and_the_status_have_the_words_that_clients_know(
    source, is_classified, status, detail, expected
):
    source.change("sessionentry", 211, is_classified=is_classified, status=status, detail=detail)
    sql = """SELECT positionText, statusId, status FROM results LEFT JOIN status USING (statusId)
             WHERE raceId = 50 AND positionOrder = 3"""
    assert source.stored(sql) == [expected]


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


LAPS = """SELECT driverRef, lap, position, lap_times.time
          FROM lap_times JOIN drivers USING (driverId) ORDER BY record"""


def test_lap_times_belong_to_the_race(source):
    """A fastest lap without a position is not from a list of all laps."""
    assert source.stored(LAPS) == [
        ("leclerc", 1, 1, "1:02:03.400"),
        ("sainz", 1, 2, "1:55.123"),
        ("leclerc", 2, 1, "1:45.200"),
        ("sainz", 2, None, None),
    ]


def test_a_race_with_one_lap_of_each_driver_has_no_lap_times_unless_that_is_lap_1(source):
    for first_lap in (308, 310):
        source.change("lap", first_lap, number="")
    assert source.stored(LAPS) == []
    for only_lap in (309, 311):
        source.change("lap", only_lap, number="1")
    assert [lap for _, lap, *_ in source.stored(LAPS)] == [1, 1]


def test_drivers_without_a_result_are_entries(source):
    sql = """SELECT year, driverRef, constructorRef FROM entries JOIN races USING (raceId)
             JOIN drivers USING (driverId) JOIN constructors USING (constructorId)
             WHERE (raceId, driverId, constructorId) NOT IN (
                 SELECT raceId, driverId, constructorId FROM results) ORDER BY driverRef"""
    assert source.stored(sql) == [(2023, "albon", "ferrari"), (2023, "villeneuve", "ferrari")]
    names = """SELECT constructorRef FROM constructors
               WHERE instr(constructors, constructorId) ORDER BY constructorId DESC"""
    of_albon = (
        f"SELECT (SELECT group_concat(constructorRef, ' ') FROM ({names})) FROM driver_standings"
    )
    assert select(source.database, f"{of_albon} WHERE driverId = 42") == [("williams ferrari",)]


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


def test_a_driver_who_is_twice_in_a_qualifying_is_refused(source):
    source.change("roundentry", 102, team_driver_id="80")
    said = r"source: two rows have the same qualifying\.raceId, qualifying\.driverId; expected diff"
    with pytest.raises(LoadError, match=said):
        source.load()


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

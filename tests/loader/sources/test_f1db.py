"""racedata.loader.sources.f1db: a release of f1db is loaded with Ergast's references, and agrees
with a dump of it.
"""

import csv
import random
import re
import sqlite3
import zipfile
from collections import Counter
from contextlib import closing

import pytest
from support import EXPECTED
from support.answers import client
from support.dumps import ChangedDump
from support.loads import built, rows_of, select

from racedata.loader.errors import LoadError
from racedata.loader.sources import f1db

# Some rows and columns of a release; licence.txt there says which.
CUT = EXPECTED / "f1db"
NAMES = sorted(path.stem for path in CUT.glob("*.csv"))
RESULTS = "f1db-races-race-results"


@pytest.fixture
def release(tmp_path):
    """The files above, to change."""
    files = {
        name: list(csv.reader((CUT / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
        for name in NAMES
    }
    return ChangedDump(tmp_path, files)


@pytest.fixture(scope="session")
def cut_database(tmp_path_factory):
    """A database built from the cut."""
    return built(CUT, tmp_path_factory.mktemp("cut") / "racedata.db")


def rows(table, columns, where):
    """The SQL for rows of a table, with the references that they have."""
    joins = {
        "driverRef": "drivers USING (driverId)",
        "constructorRef": "constructors USING (constructorId)",
    }
    joins["status.status"] = "status USING (statusId)"
    joined = " ".join(
        f"LEFT JOIN {join}" for column, join in joins.items() if column in columns.split(", ")
    )
    return f"""SELECT {columns} FROM {table} AS list JOIN races USING (raceId) {joined}
               WHERE {where} ORDER BY list.record"""


# Every difference between the two sources about 2023 rounds 9 and 18: the row and the fact, f1db's
# and the sample's.
RESULT = (
    "list.number",
    "grid",
    "positionText",
    "positionOrder",
    "points",
    "laps",
    "milliseconds",
    "status.status",
)
DIFFERENCES = {
    ("results", *RESULT, "rank", "fastestLap", "fastestLapTime"): {
        (9, "bottas", "grid"): (0, 14),  # from the pit lane
        (9, "hulkenberg", "status.status"): ("Engine", "Power loss"),
        (18, "piastri", "status.status"): ("Collision damage", "Radiator"),
    },
    ("sprint_results", *RESULT): {},
    ("qualifying", "list.number", "position", "q1", "q2", "q3"): {},
}


@pytest.mark.parametrize("kind", DIFFERENCES)
def test_f1db_and_ergast_agree_except_for_the_listed_differences(
    cut_database, sample_database, kind
):
    table, *facts = kind
    columns = ["round", "driverRef", "constructorRef", *facts]
    sql = rows(table, ", ".join(columns), "year = 2023")
    ours, theirs = (select(database, sql) for database in (cut_database, sample_database))
    assert len(ours) == len(theirs) == 40
    assert {
        (*mine[:2], column): (value, other)
        for mine, row in zip(ours, theirs)
        for column, value, other in zip(columns, mine, row)
        if value != other
    } == DIFFERENCES[kind]


def test_races_and_sessions_have_their_dates_and_since_2024_their_times_in_utc(cut_database):
    sql = """SELECT year, round, races.name, circuitRef, date, time
             FROM races JOIN circuits USING (circuitId) ORDER BY date"""
    assert select(cut_database, sql) == [
        (1957, 2, "Monaco Grand Prix", "monaco", "1957-05-19", None),
        (1957, 5, "British Grand Prix", "aintree", "1957-07-20", None),
        (2023, 9, "Austrian Grand Prix", "red_bull_ring", "2023-07-02", None),
        (2023, 18, "United States Grand Prix", "americas", "2023-10-22", None),
        (2025, 20, "Mexico City Grand Prix", "rodriguez", "2025-10-26", "20:00:00"),
        (2025, 22, "Las Vegas Grand Prix", "vegas", "2025-11-23", "04:00:00"),
    ]
    sql = """SELECT session, sessions.date, sessions.time
             FROM sessions JOIN races USING (raceId) WHERE round = 22"""
    assert select(cut_database, sql) == [
        ("fp1", "2025-11-21", "00:30:00"),
        ("fp2", "2025-11-21", "04:00:00"),
        ("fp3", "2025-11-22", "00:30:00"),
        ("quali", "2025-11-22", "04:00:00"),
    ]


def test_circuits_constructors_and_drivers_have_the_names_of_countries_that_ergast_uses(
    cut_database,
):
    sql = "SELECT circuitRef, name, location, country, lat, lng, url FROM circuits"
    aintree, austin, _ = select(cut_database, f"{sql} WHERE country IN ('UK', 'USA')")
    name = "Aintree Motor Racing Circuit"
    assert aintree == ("aintree", name, "Aintree", "UK", "53.476944", "-2.940556", None)
    assert austin[:4] == ("americas", "Circuit of the Americas", "Austin", "USA")
    sql = """SELECT number, code, forename, surname, dob, nationality
             FROM drivers WHERE driverRef = 'leclerc'"""
    assert select(cut_database, sql) == [
        (16, "LEC", "Charles", "Leclerc", "1997-10-16", "Monegasque")
    ]
    sql = "SELECT name, nationality FROM constructors WHERE constructorRef IN ('alfa', 'red_bull')"
    assert select(cut_database, sql) == [("Alfa Romeo", "Italian"), ("Red Bull", "Austrian")]


def test_drivers_of_a_shared_car_both_have_its_laps_and_a_driver_of_two_cars_one_fastest_lap(
    cut_database,
):
    columns = (
        "list.number, driverRef, positionText, laps, points, status.status, rank, fastestLapTime"
    )
    assert select(
        cut_database,
        rows("results", columns, "year = 1957 AND round = 5 AND list.number IN (18, 20)"),
    ) == [
        (20, "brooks", "1", 90, "4", "Finished", None, None),
        (20, "moss", "1", 90, "5", "Finished", 1, "1:59.200"),
        (18, "moss", "R", 51, "0", "Engine", None, None),
        (18, "brooks", "R", 51, "0", "Engine", None, None),
    ]


def test_a_driver_has_the_usual_first_name(release):
    line = release.line("f1db-drivers", id="alexander-albon")
    release.change("f1db-drivers", line, name="Alex Albon")
    line = release.line("f1db-drivers", id="charles-leclerc")
    release.change("f1db-drivers", line, name="The Leclerc of Monaco")
    sql = """SELECT forename, surname FROM drivers WHERE driverRef IN ('albon', 'leclerc')
             ORDER BY driverRef"""
    assert release.stored(sql) == [("Alex", "Albon"), ("Charles", "Leclerc")]


FASTEST_OF_MOSS = """
    SELECT number, positionText FROM results JOIN drivers USING (driverId) JOIN races USING (raceId)
    WHERE year = 1957 AND round = 5 AND driverRef = 'moss' AND fastestLapTime NOT NULL"""


def test_only_drivers_who_drove_since_there_are_codes_have_one(cut_database):
    codes = "SELECT driverRef, code FROM drivers WHERE driverRef IN ('moss', 'norris') ORDER BY 1"
    assert select(cut_database, codes) == [("moss", None), ("norris", "NOR")]


def test_the_fastest_lap_of_a_driver_of_two_cars_belongs_to_the_named_car(release):
    release.change("f1db-races-fastest-laps", 3, driverNumber="18")
    assert release.stored(FASTEST_OF_MOSS.replace("number", "results.number")) == [(18, "R")]


def test_a_car_has_the_constructor_that_its_own_row_names(release):
    """Which one a merge takes is in test_fill.py, and which car a fastest lap belongs to."""
    brabham = {"driverId": "jack-brabham"}
    qualifying = "f1db-races-qualifying-results"
    release.add("f1db-constructors", id="matra", name="Matra", countryId="france")
    for name in (RESULTS, qualifying):
        release.change(name, release.line(name, raceId="61", **brabham), constructorId="matra")
    lent = release.line(qualifying, raceId="58", **brabham)
    release.change(qualifying, lent, constructorId="matra")
    sql = """SELECT round, constructorRef FROM qualifying JOIN races USING (raceId)
             JOIN drivers USING (driverId) JOIN constructors USING (constructorId)
             WHERE driverRef = 'jack_brabham' AND year = 1957 ORDER BY round"""
    assert release.stored(sql) == [(2, "matra"), (5, "matra")]


def test_a_driver_without_a_lap_is_not_the_fastest(release):
    release.change("f1db-races-fastest-laps", 2, time="")
    found = release.stored(
        "SELECT driverRef FROM results JOIN drivers USING (driverId) WHERE rank = 1 AND raceId = 58"
    )
    assert found == []


def test_a_driver_who_starts_in_the_pit_lane_or_not_at_all_has_grid_0(cut_database):
    assert select(
        cut_database, rows("results", "driverRef", "year = 2023 AND round = 18 AND grid = 0")
    ) == [("stroll",), ("hulkenberg",), ("kevin_magnussen",), ("alonso",)]


def test_the_place_on_the_grid_comes_from_the_starting_grid(release):
    grid = "f1db-races-starting-grid-positions"
    line = release.line(grid, raceId="1097", driverId="lando-norris")
    release.change(grid, line, positionNumber="14")
    line = release.line(grid, raceId="1097", driverId="carlos-sainz-jr")
    release.change(grid, line, positionNumber="")  # the pit lane
    sql = """SELECT driverRef, grid FROM results JOIN drivers USING (driverId)
             WHERE raceId = 1097 AND driverRef IN ('norris', 'sainz', 'stroll') ORDER BY 1"""
    assert release.stored(sql) == [("norris", 14), ("sainz", 0), ("stroll", 0)]


def test_the_time_of_a_qualifying_before_2006_is_q1(cut_database):
    columns = "driverRef, constructorRef, list.number, position, q1, q2"
    found = select(cut_database, rows("qualifying", columns, "year = 1957 AND round = 2"))
    assert found[0] == ("fangio", "maserati", 32, 1, "1:42.700", None)


def test_the_session_that_sets_the_grid_of_a_sprint_and_practices_have_results(cut_database):
    columns = "round, driverRef, constructorRef, list.number, position"
    found = select(cut_database, rows("sprint_qualifying", f"{columns}, q1, q2, q3", "TRUE"))
    assert found[0] == (9, "max_verstappen", "red_bull", 1, 1, "1:06.236", "1:05.371", "1:04.440")
    found = select(
        cut_database, rows("practice", f"{columns}, session, laps, milliseconds", "year = 2025")
    )
    assert found[0] == (20, "leclerc", "ferrari", 16, 1, 1, 29, 78380)


def test_pit_stops_have_no_time_of_day(cut_database):
    columns = "driverRef, stop, lap, list.time, milliseconds"
    found = select(
        cut_database, rows("pit_stops", columns, "round = 18 AND driverRef = 'ricciardo'")
    )
    assert found[0] == ("ricciardo", 1, 22, None, 24364)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("20", 1, "Finished")),
        ({"gapLaps": "1"}, ("20", 11, "+1 Lap")),
        ({"gapLaps": "13", "reasonRetired": "Engine"}, ("20", 53, "+13 Laps")),
        ({"reasonRetired": "Power unit"}, ("20", 131, "Power Unit")),
        ({"reasonRetired": "Falling leaves"}, ("20", 144, "Falling leaves")),
        ({"positionText": "DNF", "reasonRetired": "Engine"}, ("R", 5, "Engine")),
        ({"positionText": "DNF"}, ("R", 31, "Retired")),
        ({"positionText": "NC", "gapLaps": "19"}, ("N", 62, "Not classified")),
        ({"positionText": "DSQ", "reasonRetired": "Illegal fuel"}, ("D", 2, "Disqualified")),
        ({"positionText": "EX"}, ("E", 96, "Excluded")),
        ({"positionText": "DNS"}, ("W", 142, "Did not start")),
        ({"positionText": "DNS", "reasonRetired": "Injury"}, ("W", 82, "Injury")),
        ({"positionText": "DNQ"}, ("F", 81, "Did not qualify")),
        ({"positionText": "DNPQ"}, ("F", 97, "Did not prequalify")),
        ({"positionText": "DNP"}, ("F", 54, "Withdrew")),
    ],
)
def test_the_text_of_a_position_and_the_status_follow_from_the_row(release, fields, expected):
    number = "" if "positionText" in fields else "20"
    fields = {
        "positionNumber": number,
        "positionText": "20",
        "gapLaps": "",
        "reasonRetired": "",
        **fields,
    }
    release.change(RESULTS, release.last(RESULTS), positionDisplayOrder="99", **fields)
    sql = rows("results", "positionText, statusId, status.status", "positionOrder = 99")
    assert release.stored(sql) == [expected]


@pytest.mark.parametrize(("text", "laps"), [("DNS", 0), ("DNQ", 0), ("DNF", None), ("DSQ", None)])
def test_a_driver_who_did_not_take_part_drove_no_laps(release, text, laps):
    fields = {"positionNumber": "", "positionText": text, "laps": "", "points": ""}
    release.change(RESULTS, release.last(RESULTS), positionDisplayOrder="99", **fields)
    assert release.stored(rows("results", "laps, points", "positionOrder = 99")) == [(laps, "0")]


def test_standings_have_the_wins_so_far_and_list_drivers_without_points_too(cut_database):
    """They share the next place if they were classified in a race; else they have none."""
    columns = "driverRef, points, position, positionText, wins"
    found = select(cut_database, rows("driver_standings", columns, "year = 1957 AND round = 5"))
    assert found[:3] == [
        ("fangio", "25", 1, "1", 1),
        ("musso", "13", 2, "2", 0),
        ("brooks", "10", 3, "3", 1),
    ]
    assert {row for row in found if row[1] == "0"} == {
        *((driver, "0", 19, "19", 0) for driver in ("gerard", "bueb", "jack_brabham", "trips")),
        *(
            (driver, "0", None, "-", 0)
            for driver in ("simon", "scarlatti", "herrmann", "gould", "fairman")
        ),
        *((driver, "0", None, "-", 0) for driver in ("bonnier", "leston", "piotti", "flockhart")),
    }


def test_standings_do_not_have_the_wins_of_later_races(cut_database):
    columns, where = "driverRef, round, wins", "year = 2023 AND driverRef = 'max_verstappen'"
    found = select(cut_database, rows("driver_standings", columns, where))
    assert [wins for *_, wins in found] == [1, 2]
    columns, where = "constructorRef, round, wins", "year = 2023 AND constructorRef = 'red_bull'"
    found = select(cut_database, rows("constructor_standings", columns, where))
    assert [wins for *_, wins in found] == [1, 2]


def test_constructors_with_several_engines_are_one_in_standings_at_the_place_of_their_points(
    release,
):
    name = "f1db-races-constructor-standings"
    release.add(
        name,
        positionDisplayOrder="11",
        positionNumber="11",
        engineManufacturerId="ford",
        points="2.5",
    )
    columns = "constructorRef, points, position, positionText, wins"
    *_, first, last = release.stored(rows("constructor_standings", columns, "round = 18"))
    assert (first, last) == (("alphatauri", "12.5", 9, "9", 0), ("haas", "12", 10, "10", 0))


def test_drivers_have_the_references_of_ergast_or_their_full_name(cut_database):
    """One of the list, one known to Ergast, and one who only took part in a practice."""
    sql = """SELECT driverRef FROM drivers
             WHERE surname IN ('Verstappen', 'Norris', 'Lindblad') ORDER BY driverRef"""
    references = [("arvid_lindblad",), ("max_verstappen",), ("norris",)]
    assert select(cut_database, sql) == references


def test_of_two_drivers_with_one_last_name_the_one_with_more_results_has_it_as_reference(release):
    release.add("f1db-drivers", id="john-norris")
    release.add(RESULTS, driverId="john-norris")
    found = release.stored(
        "SELECT driverRef FROM drivers WHERE driverRef LIKE '%norris' ORDER BY driverId"
    )
    assert found == [("norris",), ("john_norris",)]


def test_ids_newer_than_the_list_of_ids_are_named(release):
    for line in (4, 5, 7):  # the races of 2023, and the last
        release.change("f1db-races", line, year="2026", date="2026-07-05")
    sessions = {f"{name}Date": "" for name in f1db.SESSIONS}
    release.change("f1db-races", release.last("f1db-races"), **sessions, circuitId="nowhere-ring")
    release.add("f1db-circuits", id="nowhere-ring")
    new = ", with ids made from f1db's own"
    teams = "alphatauri, alpine, aston_martin, haas, mclaren, mercedes, red_bull"
    report = [line for line in release.load() if new in line]
    assert report == [
        f"new circuits{new}: nowhere_ring",
        f"new constructors{new}: {teams}",
        report[2],
    ]
    assert report[2].startswith(f"new drivers{new}: daniel_ricciardo, george_russell, ")


def test_two_ids_that_would_have_the_same_reference_are_refused(release):
    release.add("f1db-circuits", id="red-bull-ring")
    with pytest.raises(LoadError, match=r"two rows have the same circuits\.circuitRef; expected"):
        release.load()


def test_the_order_of_columns_and_other_columns_and_files_do_not_matter(release):
    release.load()
    before = rows_of(release.database)
    for name, (header, *body) in release.files.items():
        table = [[*header, "new"], *([*row, "\x07"] for row in body)]
        order = random.sample(range(len(table[0])), len(table[0]))
        release.files[name] = [[row[index] for index in order] for row in table]
    release.files["f1db-new"] = [["id", "id"], ["?"]]
    release.load()
    assert rows_of(release.database) == before


@pytest.mark.parametrize(
    ("name", "column"), [(RESULTS, "points"), ("f1db-races", "sprintQualifyingTime")]
)
def test_a_column_that_is_absent_was_renamed_and_is_refused(release, name, column):
    header = release.files[name][0]
    header[header.index(column)] = "other"
    with pytest.raises(
        LoadError, match=f"{name}.csv, line 1, column {column}: not in the header, which has "
    ):
        release.load()


def test_a_release_that_lacks_a_file_or_has_an_empty_list_is_refused(release):
    drivers = release.files["f1db-drivers"]
    release.files["f1db-drivers"] = drivers[:1]
    with pytest.raises(LoadError, match=r"f1db-drivers\.csv: no rows; expected at least one"):
        release.load()
    del release.files["f1db-drivers"]
    with pytest.raises(
        LoadError, match=r"source: no f1db-drivers\.csv in it; expected f1db-countries\.csv, "
    ):
        release.load()


WRONG_VALUES = (EXPECTED / "wrong-values-f1db.txt").read_text().splitlines()


@pytest.mark.parametrize("line", WRONG_VALUES)
def test_a_value_that_would_make_an_answer_wrong_is_refused_with_its_file_line_and_column(
    release, line
):
    form = r"([\w-]+) (\d+) (\w+) = (.*?): ('.*)"
    name, number, column, value, said = re.fullmatch(form, line).groups()
    release.change(f"f1db-{name}", int(number), **{column: value})
    place = rf"f1db-{name}\.csv, line {number}, columns? [\w, ]*{column}: "
    with pytest.raises(LoadError, match=place + re.escape(said)):
        release.load()


def test_a_driver_has_one_result_per_car_and_one_place_in_qualifying_even_if_disqualified(
    release,
):
    name = "f1db-races-qualifying-results"
    before = release.stored("SELECT count(*) FROM qualifying")
    release.add(name, positionDisplayOrder="99", positionNumber="", positionText="DSQ")
    assert release.stored("SELECT count(*) FROM qualifying") == before
    line = release.last(RESULTS) + 1
    release.add(RESULTS, positionDisplayOrder="99")
    with pytest.raises(
        LoadError, match=rf"{RESULTS}\.csv, line {line}, columns raceId, driverId, driverNumber: "
    ):
        release.load()


def test_the_licence_is_stored(release):
    assert release.stored("SELECT name, licence FROM sources") == [("f1db", "CC BY 4.0")]


# What follows needs a whole release and a dump of Ergast's.

# A race of the two sources: the same circuit, on the same day or the next.
SAME_RACES = """
    CREATE TEMP TABLE same AS
    SELECT ours.raceId AS ours, theirs.raceId AS theirs, theirs.year, theirs.round, ours.date
    FROM main.races AS ours JOIN main.circuits AS here USING (circuitId),
        ergast.races AS theirs JOIN ergast.circuits AS there ON there.circuitId = theirs.circuitId
    WHERE ours.year = theirs.year AND here.circuitRef = there.circuitRef
        AND abs(julianday(ours.date) - julianday(theirs.date)) <= 1"""


def test_a_driver_who_took_part_only_in_practice_is_a_driver_but_has_no_season_with_results(
    cut_database,
):
    app = client(cut_database)
    totals = {
        path: app.get(f"/ergast/f1{path}").json["MRData"]["total"]
        for path in (
            *("/drivers/arvid_lindblad", "/drivers/arvid_lindblad/practice"),
            *("/2025/drivers", "/2025/drivers/arvid_lindblad"),
        )
    }
    assert list(totals.values()) == ["1", "1", "0", "0"]
    assert "Lindblad" in app.get("/ergast/f1/drivers?limit=2000").text


@pytest.fixture(scope="session")
def f1db_database(f1db, tmp_path_factory):
    """A database built from the release."""
    return built(f1db, tmp_path_factory.mktemp("f1db") / "racedata.db", None)


# The rows of the file of each address, in the whole release.
SESSIONS = {
    "sprintqualifying": ("sprint-qualifying", 340),
    **{
        f"practice/{n}": (f"free-practice-{n}", rows)
        for n, rows in {1: 15776, 2: 15316, 3: 8630, 4: 706}.items()
    },
}


@pytest.mark.parametrize("address", SESSIONS)
def test_every_row_of_a_session_is_served_as_its_file_has_it(f1db, f1db_database, address):
    name, total = SESSIONS[address]

    def rows(name):
        with zipfile.ZipFile(f1db) as release:
            lines = release.read(f"f1db-{name}.csv").decode().splitlines()
        return [
            {column: value or None for column, value in row.items()}
            for row in csv.DictReader(lines)
        ]

    def minutes(time):
        return time and (time if ":" in time else f"0:{time}")

    drivers = {row["id"]: row["name"] for row in rows("drivers")}
    expected = Counter(
        (
            row["year"],
            row["round"],
            row["positionNumber"],
            row["driverNumber"],
            drivers[row["driverId"]],
        )
        + (
            (row["laps"], row["timeMillis"], minutes(row["time"]))
            if "practice" in address
            else tuple(minutes(row[part]) for part in ("q1", "q2", "q3"))
        )
        for row in rows(f"races-{name}-results")
    )
    app, served = client(f1db_database, burst_limit="off", sustained_limit="off"), Counter()
    for offset in range(0, total, 2000):
        page = app.get(f"/ergast/f1/{address}?limit=2000&offset={offset}").json["MRData"]
        for race in page["RaceTable"]["Races"]:
            for row in race.get("PracticeResults") or race["SprintQualifyingResults"]:
                assert row.get("session") in (None, address[-1])
                driver, time = (
                    "{givenName} {familyName}".format_map(row["Driver"]),
                    row.get("Time", {}),
                )
                facts = (row.get("position"), row.get("number"), driver)
                if "practice" in address:
                    facts += (row.get("laps"), time.get("millis"), time.get("time"))
                else:
                    facts += (row.get("Q1"), row.get("Q2"), row.get("Q3"))
                served[race["season"], race["round"], *facts] += 1
    assert served == expected
    assert served.total() == int(page["total"]) == total


@pytest.fixture(scope="session")
def both(f1db_database, dump_database):
    """A connection to a database built from the release, with that of the dump as `ergast`."""
    with closing(sqlite3.connect(f1db_database)) as db:
        db.execute("ATTACH ? AS ergast", (str(dump_database),))
        db.execute(SAME_RACES)
        yield db


def test_each_race_but_one_is_found_in_the_dump(both):
    """The Turkish Grand Prix of 2021 was on 10 October; f1db has the 3rd."""
    lacking = "SELECT year, round, name FROM races WHERE raceId NOT IN (SELECT ours FROM same)"
    assert both.execute(lacking).fetchall() == [(2021, 16, "Turkish Grand Prix")]
    assert both.execute("SELECT count(*), count(DISTINCT theirs) FROM same").fetchone() == (
        1148,
        1148,
    )


def test_drivers_have_the_references_of_the_dump(both):
    """One with the reference of another would have another name and another birth date."""
    assert both.execute(
        "SELECT count(*), count(DISTINCT lower(driverRef)) FROM drivers"
    ).fetchone() == (914, 914)
    joined = "FROM drivers AS ours JOIN ergast.drivers AS theirs USING (driverRef)"
    assert both.execute(f"SELECT count(*), sum(ours.dob <> theirs.dob) {joined}").fetchone() == (
        851,
        13,
    )
    wrong = (
        f"SELECT driverRef {joined} WHERE ours.dob <> theirs.dob AND ours.surname <> theirs.surname"
    )
    assert both.execute(wrong).fetchall() == []
    ours = "SELECT driverRef FROM results JOIN drivers USING (driverId)"
    lacking = both.execute(f"{ours} EXCEPT SELECT driverRef FROM ergast.drivers").fetchall()
    assert " ".join(reference for (reference,) in lacking) == (
        "ferguson glockler krakau kuwashima ludwig_fischer merkel perrot rudaz"
    )


# How many drivers in a race have another constructor in the dump, by season, and one of them. Until
# 1991 they are errors of the dump, or its name for a car; it lacks two second cars. In 2015 it has
# one constructor for a team in qualifyings, and another in races.
OTHER_CONSTRUCTORS = {
    "results": (45, (1967, 10, "beltoise"), {"matra"}),
    "sprint_results": (0, None, None),
    "qualifying": (10, (2015, 11, "merhi"), {"manor"}),
}


@pytest.mark.parametrize(
    ("table", "compared"), [("results", 26_978), ("sprint_results", 460), ("qualifying", 10_880)]
)
def test_the_constructor_of_each_row_agrees_with_the_dump_except_for_some_cars(
    both, table, compared
):
    def constructors(schema, race):
        found = {}
        sql = f"""SELECT year, round, lower(driverRef), lower(constructorRef)
                  FROM same JOIN {schema}.{table} AS list ON list.raceId = {race}
                  JOIN {schema}.drivers USING (driverId)
                  JOIN {schema}.constructors USING (constructorId)"""
        for *key, constructor in both.execute(sql):
            found.setdefault(tuple(key), set()).add(constructor)
        return found

    ours, theirs = constructors("main", "ours"), constructors("ergast", "theirs")
    common = ours.keys() & theirs.keys()
    assert len(common) == compared
    other = {key: ours[key] - theirs[key] for key in common if ours[key] - theirs[key]}
    number, one, constructors_of_one = OTHER_CONSTRUCTORS[table]
    assert (len(other), other.get(one)) == (number, constructors_of_one)


def test_records_that_are_added_to_the_dump_have_its_constructors(full_database):
    """But for drivers who were lent for a session, or had two cars."""
    sql = """SELECT count(*), sum(NOT EXISTS (
                 SELECT 1 FROM results WHERE results.raceId = qualifying.raceId
                     AND results.driverId = qualifying.driverId
                     AND results.constructorId = qualifying.constructorId))
             FROM qualifying JOIN races USING (raceId)
             WHERE year < 1994 AND (raceId, driverId) IN (SELECT raceId, driverId FROM results)"""
    assert select(full_database, sql) == [(13_795, 0)]


def test_a_driver_in_practice_has_the_constructor_of_the_race_except_one_who_was_lent_on_friday(
    both,
):
    for table, compared, lent in (
        ("practice", 39_465, [("de_vries", "aston_martin")]),
        ("sprint_qualifying", 340, []),
    ):
        rows = f"""FROM main.{table} AS list JOIN main.results AS raced USING (raceId, driverId)
                   JOIN main.drivers USING (driverId)
                   JOIN main.constructors AS own USING (constructorId)"""
        assert both.execute(f"SELECT count(*) {rows}").fetchone() == (compared,)
        others = f"""SELECT driverRef, constructorRef {rows}
                     WHERE list.constructorId <> raced.constructorId"""
        assert both.execute(others).fetchall() == lent


# How often f1db and the dump say the same, how often something else, and how often only the dump or
# only f1db says anything: by season, table and column. Drivers with several rows in a race do not
# count.
TO_2023, SINCE_2024 = ("2010-01-01", "2024-01-01"), ("2024-01-01", "2025-10-18")
AGREEMENT = {
    (TO_2023, "results"): {
        "positionOrder": (5913, 22, 0, 0),
        "positionText": (5893, 42, 0, 0),  # of those who retired late, or on the way to the start
        # 52 in the pit lane or not at the start; 27 after penalties in 2018
        "grid": (5843, 92, 0, 0),
        "points": (5935, 0, 0, 0),
        "laps": (5921, 14, 0, 0),  # of those who retired
        "milliseconds": (2992, 28, 0, 0),  # the dump is hours short: 9 of 2020/15, 18 of 2022/18
        "rank": (5583, 97, 4, 6),
        "fastestLap": (5593, 87, 4, 6),
        # shifted by a driver in the dump: 2014/1, 2018/14, 2018/18, 2022/19, …
        "fastestLapTime": (5580, 100, 4, 6),
        "status": (5497, 438, 0, 0),  # f1db has other reasons, and more words
    },
    (TO_2023, "sprint_results"): {
        "positionText": (235, 5, 0, 0),
        "grid": (235, 5, 0, 0),  # pit lane
        "points": (240, 0, 0, 0),
        "milliseconds": (221, 3, 0, 0),  # penalties of 2023/4 and 2023/17
    },
    (TO_2023, "qualifying"): {
        # after penalties in the dump, such as all of 2012/5, 2012/18 and 2021/19
        "position": (5777, 127, 0, 0),
        "q1": (5844, 10, 1, 5),  # two digits swapped, and the like
        "q2": (4289, 9, 0, 2),
        "q3": (2693, 3, 1, 2),
    },
    (TO_2023, "pit_stops"): {"lap": (10_524, 1, 0, 0), "milliseconds": (10_524, 1, 0, 0)},
    (TO_2023, "driver_standings"): {
        "points": (6208, 0, 0, 0),
        "wins": (6208, 0, 0, 0),
        # without points, by other rules; and not classified so far: none
        "position": (6014, 32, 162, 0),
    },
    (TO_2023, "constructor_standings"): {
        "points": (2971, 0, 0, 0),
        "wins": (2971, 0, 0, 0),
        "position": (2954, 1, 16, 0),
    },
    (SINCE_2024, "results"): {
        "positionOrder": (838, 0, 0, 0),
        "positionText": (838, 0, 0, 0),
        "grid": (811, 27, 0, 0),  # 26 in the pit lane or not at the start; 2024/21
        "points": (838, 0, 0, 0),
        "laps": (833, 3, 2, 0),  # of those who were disqualified: 0 in the dump
        "milliseconds": (532, 0, 0, 0),
        "rank": (783, 6, 0, 18),
        "fastestLap": (731, 58, 0, 18),  # one or two laps apart, or 1 in the dump
        "fastestLapTime": (787, 2, 0, 18),  # 2024/2: two drivers swapped in f1db
        "status": (806, 32, 0, 0),
    },
    (SINCE_2024, "sprint_results"): {
        "positionText": (176, 4, 0, 0),  # classified in the dump, though they retired
        "grid": (177, 3, 0, 0),
        "points": (180, 0, 0, 0),
        "milliseconds": (172, 0, 0, 0),
    },
    (SINCE_2024, "qualifying"): {
        "position": (827, 11, 0, 0),  # after penalties in the dump: 2024/8 and 2025/18
        "q1": (827, 1, 1, 0),
        "q2": (619, 1, 1, 0),
        "q3": (410, 0, 0, 1),
    },
    (SINCE_2024, "pit_stops"): {"lap": (1416, 1, 0, 0), "milliseconds": (1417, 0, 0, 0)},
    (SINCE_2024, "driver_standings"): {
        "points": (891, 0, 0, 0),
        "wins": (891, 0, 0, 0),
        "position": (882, 2, 0, 0),
        "positionText": (889, 2, 0, 0),  # `-` in both
    },
    (SINCE_2024, "constructor_standings"): {
        "points": (420, 0, 0, 0),
        "wins": (420, 0, 0, 0),
        "position": (420, 0, 0, 0),
    },
}


@pytest.mark.parametrize(("dates", "table"), AGREEMENT)
def test_f1db_agrees_with_the_dump_except_for_known_differences(both, dates, table):
    columns = AGREEMENT[dates, table]
    entrant = "constructor" if table == "constructor_standings" else "driver"
    key = ["race", "entrant", *(["stop"] if table == "pit_stops" else [])]

    def facts(schema, race):
        names = [
            f"lower({'status' if column == 'status' else f'list.{column}'}) AS {column}"
            for column in columns
        ]
        joins = [f"{schema}.{entrant}s USING ({entrant}Id)"]
        joins += [f"{schema}.status USING (statusId)"] if "status" in columns else []
        return f"""
            SELECT theirs AS race, lower({entrant}Ref) AS entrant, {", ".join([*key[2:], *names])}
            FROM same JOIN {schema}.{table} AS list ON list.raceId = {race}
            LEFT JOIN {" LEFT JOIN ".join(joins)}
            WHERE date BETWEEN ? AND ? GROUP BY {", ".join(key)} HAVING count(*) = 1"""

    sums = [
        f"sum(ours.{column} = theirs.{column}), sum(ours.{column} <> theirs.{column}), "
        f"sum(ours.{column} IS NULL AND theirs.{column} NOT NULL), "
        f"sum(ours.{column} NOT NULL AND theirs.{column} IS NULL)"
        for column in columns
    ]
    sql = f"""
        SELECT {", ".join(sums)}
        FROM ({facts("main", "ours")}) AS ours
        JOIN ({facts("ergast", "theirs")}) AS theirs USING ({", ".join(key)})"""
    found = both.execute(sql, [*dates, *dates]).fetchone()
    assert {
        column: found[index * 4 : index * 4 + 4] for index, column in enumerate(columns)
    } == columns


def test_races_have_the_names_of_the_dump_except_mexico_city(both):
    names = """SELECT theirs.name, ours.name, count(*)
               FROM same JOIN races AS ours ON ours.raceId = ours
               JOIN ergast.races AS theirs ON theirs.raceId = theirs
               WHERE ours.name <> theirs.name GROUP BY 1, 2"""
    assert both.execute(names).fetchall() == [("Mexico City Grand Prix", "Mexican Grand Prix", 5)]

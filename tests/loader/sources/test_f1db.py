"""racedata.loader.sources.sections: a release of f1db, by f1db.sql, is loaded with Ergast's
references, and agrees with a dump of it.
"""

import csv
import re
import sqlite3
from contextlib import closing

import pytest
from support import EXPECTED
from support.dumps import ChangedDump, cases_in
from support.loads import built, select

from racedata.loader.errors import LoadError

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


@pytest.mark.parametrize("case", cases_in(EXPECTED / "stored-f1db.txt"))
def test_the_loader_stores_of_a_release(release, case):
    case.check(release)


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


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("20", 1, "Finished", None)),
        ({"gapLaps": "1"}, ("20", 11, "+1 Lap", None)),
        ({"gapLaps": "13", "reasonRetired": "Engine"}, ("20", 53, "+13 Laps", None)),
        ({"reasonRetired": "Power unit"}, ("20", 131, "Power Unit", None)),
        ({"reasonRetired": "Falling leaves"}, ("20", 144, "Falling leaves", None)),
        ({"positionText": "DNF", "reasonRetired": "Engine"}, ("R", 5, "Engine", None)),
        ({"positionText": "DNF"}, ("R", 31, "Retired", None)),
        ({"positionText": "NC", "gapLaps": "19"}, ("N", 62, "Not classified", None)),
        ({"positionText": "DSQ", "reasonRetired": "Fuel"}, ("D", 2, "Disqualified", None)),
        ({"positionText": "EX"}, ("E", 96, "Excluded", 0)),
        ({"positionText": "DNS"}, ("W", 142, "Did not start", 0)),
        ({"positionText": "DNQ"}, ("F", 81, "Did not qualify", 0)),
        ({"positionText": "DNPQ"}, ("F", 97, "Did not prequalify", 0)),
        ({"positionText": "DNP"}, ("F", 54, "Withdrew", 0)),
    ],
)
def test_the_text_of_a_position_the_status_and_unknown_laps_follow_from_the_row(
    release, fields, expected
):
    """A driver who did not take part drove no laps."""
    number = "" if "positionText" in fields else "20"
    usual = {"positionText": "20", "laps": "", "points": "", "gapLaps": "", "reasonRetired": ""}
    fields = {"positionNumber": number, **usual, **fields}
    release.change(RESULTS, release.last(RESULTS), positionDisplayOrder="99", **fields)
    columns = "positionText, statusId, status.status, laps, points"
    assert release.stored(rows("results", columns, "positionOrder = 99")) == [(*expected, "0")]


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
    found = "SELECT raceId, driverId, position FROM qualifying ORDER BY raceId, driverId"
    before = release.stored(found)
    release.add(name, positionDisplayOrder="99", positionNumber="", positionText="DSQ")
    release.files[name].insert(1, release.files[name].pop())  # before the driver's own row
    assert release.stored(found) == before
    line = release.last(RESULTS) + 1
    release.add(RESULTS, positionDisplayOrder="99")
    with pytest.raises(
        LoadError, match=rf"{RESULTS}\.csv, line {line}, columns raceId, driverId, driverNumber: "
    ):
        release.load()


# What follows needs a whole release and a dump of Ergast's.

# A race of the two sources: the same circuit, on the same day or the next.
SAME_RACES = """
    CREATE TEMP TABLE same AS
    SELECT ours.raceId AS ours, theirs.raceId AS theirs, theirs.year, theirs.round, ours.date
    FROM main.races AS ours JOIN main.circuits AS here USING (circuitId),
        ergast.races AS theirs JOIN ergast.circuits AS there ON there.circuitId = theirs.circuitId
    WHERE ours.year = theirs.year AND here.circuitRef = there.circuitRef
        AND abs(julianday(ours.date) - julianday(theirs.date)) <= 1"""


@pytest.fixture(scope="session")
def f1db_database(f1db, tmp_path_factory):
    """A database built from the release."""
    return built(f1db, tmp_path_factory.mktemp("f1db") / "racedata.db", None)


@pytest.fixture(scope="session")
def both(f1db_database, dump_database):
    """A connection to a database built from the release, with that of the dump as `ergast`."""
    with closing(sqlite3.connect(f1db_database)) as db:
        db.execute("ATTACH ? AS ergast", (str(dump_database),))
        db.execute(SAME_RACES)
        yield db


@pytest.mark.parametrize("case", cases_in(EXPECTED / "f1db-and-dump.txt"))
def test_f1db_and_the_dump_agree(both, case):
    assert both.execute(case.sql).fetchall() == case.rows


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


# How often f1db and the dump say the same, how often something else, and how often only the dump or
# only f1db says anything, from 2010 to October 2025: by table and column. Drivers with several rows
# in a race do not count.
AGREEMENT = {
    "results": {
        "positionOrder": (6751, 22, 0, 0),
        "positionText": (6731, 42, 0, 0),  # of those who retired late, or on the way to the start
        "grid": (
            6654,
            119,
            0,
            0,
        ),  # pit lane, no start; 27 after penalties in 2018
        "points": (6773, 0, 0, 0),
        "laps": (6754, 17, 2, 0),
        "milliseconds": (3524, 28, 0, 0),  # the dump is hours short: 9 of 2020/15, 18 of 2022/18
        "rank": (6366, 103, 4, 24),
        "fastestLap": (6324, 145, 4, 24),
        "fastestLapTime": (
            6367,
            102,
            4,
            24,
        ),  # shifted by a driver in the dump: 2014/1
        "status": (6303, 470, 0, 0),  # f1db has other reasons, and more words
    },
    "sprint_results": {
        "positionText": (411, 9, 0, 0),
        "grid": (412, 8, 0, 0),  # pit lane
        "points": (420, 0, 0, 0),
        "milliseconds": (393, 3, 0, 0),
    },
    "qualifying": {
        "position": (6604, 138, 0, 0),  # after penalties in the dump, such as all of 2012/5
        "q1": (6671, 11, 2, 5),
        "q2": (4908, 10, 1, 2),
        "q3": (3103, 3, 1, 3),
    },
    "pit_stops": {
        "lap": (11940, 2, 0, 0),
        "milliseconds": (11941, 1, 0, 0),
    },
    "driver_standings": {
        "points": (7099, 0, 0, 0),
        "wins": (7099, 0, 0, 0),
        "position": (6896, 34, 162, 0),  # without points, by other rules
    },
    "constructor_standings": {
        "points": (3391, 0, 0, 0),
        "wins": (3391, 0, 0, 0),
        "position": (3374, 1, 16, 0),
    },
}


@pytest.mark.parametrize("table", AGREEMENT)
def test_f1db_agrees_with_the_dump_except_for_known_differences(both, table):
    columns = AGREEMENT[table]
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
            WHERE date BETWEEN '2010' AND '2025-10-18'
            GROUP BY {", ".join(key)} HAVING count(*) = 1"""

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
    found = both.execute(sql).fetchone()
    assert {
        column: found[index * 4 : index * 4 + 4] for index, column in enumerate(columns)
    } == columns

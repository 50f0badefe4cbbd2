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
from support.loads import built

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


@pytest.mark.parametrize("case", cases_in(EXPECTED / "stored-f1db.txt"))
def test_the_loader_stores_of_a_release(release, case):
    case.check(release)


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
    sql = """SELECT positionText, statusId, status, laps, points
             FROM results LEFT JOIN status USING (statusId) WHERE positionOrder = 99"""
    assert release.stored(sql) == [(*expected, "0")]


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

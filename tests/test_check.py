"""racedata.loader.check: a fault planted in a database is reported, with race, driver and both values."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import spoiling
from support.loads import changed

from racedata.loader.check import CHECKS, ROWS_SHOWN, report

CHECK = [sys.executable, "-m", "racedata", "check"]


def findings(path):
    """What a report says of a database: the rows of each check by its title, with single spaces."""
    *paragraphs, _ = "\n".join(report(path, None)).split("\n\n")
    found = {}
    for paragraph in paragraphs:
        headline, *lines = paragraph.splitlines()
        count, title = headline.split(": ", 1)
        found[title] = [" ".join(line.split()) for line in lines[-int(count.replace(",", "")) :]]
    return found


def run(*arguments):
    return subprocess.run([*CHECK, "--database", *arguments], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="session")
def clean(sample_database):
    return findings(sample_database)


@pytest.fixture
def faulty(sample_database, tmp_path):
    """Returns the path of a copy of the sample in which some statements of SQL have planted a fault."""

    def faulty(*statements):
        return changed(Path(shutil.copy(sample_database, tmp_path / "faulty.db")), *map(sql, statements))

    return faulty


def sql(statement):
    """A statement in which RACE(2023/18), DRIVER(alonso) and CONSTRUCTOR(alpine) are conditions or assignments."""
    race = r"raceId = (SELECT raceId FROM races WHERE year = \1 AND round = \2)"
    statement = re.sub(r"RACE\((\d+)/(\d+)\)", race, statement)
    statement = re.sub(
        r"DRIVER\((\w+)\)", r"driverId = (SELECT driverId FROM drivers WHERE driverRef = '\1')", statement
    )
    constructor = r"constructorId = (SELECT constructorId FROM constructors WHERE constructorRef = '\1')"
    return re.sub(r"CONSTRUCTOR\((\w+)\)", constructor, statement)


# The beginning of a check's title, SQL that plants a fault, and the row that reports it.
FAULTS = """
A driver's permanent number
    UPDATE drivers SET number = 41 WHERE driverRef = 'alonso'
    alonso 41 14 2 2
A race or sprint was run, but nobody won it.
    UPDATE results SET positionText = 'D' WHERE RACE(2023/18) AND positionOrder = 1
    2023/18 United States Grand Prix race 20 2
A race or sprint was run, but nobody won it.
    UPDATE sprint_results SET positionText = NULL WHERE RACE(2021/10)
    2021/10 British Grand Prix sprint 20 -
Two cars have the same place.
    UPDATE results SET positionText = '1' WHERE RACE(2023/18) AND DRIVER(norris)
    2023/18 United States Grand Prix race 1 max_verstappen (1), norris (4)
A place of a classification is empty.
    UPDATE results SET positionText = 'R' WHERE RACE(2023/18) AND DRIVER(norris)
    2023/18 United States Grand Prix race 3 1
Two drivers of one car have different results.
    UPDATE results SET number = 4 WHERE RACE(2023/18) AND DRIVER(sainz)
    2023/18 United States Grand Prix 4 norris 2 (56 laps), sainz 3 (56 laps)
A driver has two results in one session after 1978.
    UPDATE qualifying SET DRIVER(norris) WHERE RACE(2023/18) AND DRIVER(sainz)
    2023/18 United States Grand Prix qualifying norris 2
A driver is classified ahead of one
    UPDATE results SET milliseconds = 5721361 WHERE RACE(2023/18) AND DRIVER(norris)
    2023/18 United States Grand Prix race 1 max_verstappen 56 5721362 norris 56 5721361
A driver is classified ahead of one
    UPDATE results SET laps = 55 WHERE RACE(2023/18) AND DRIVER(max_verstappen)
    2023/18 United States Grand Prix race 1 max_verstappen 55 5721362 norris 56 5732092
A status says how many laps
    UPDATE results SET laps = 54 WHERE RACE(2023/18) AND DRIVER(zhou)
    2023/18 United States Grand Prix race zhou +1 Lap 54 56
A status says how many laps
    UPDATE results SET laps = 55 WHERE RACE(2023/18) AND DRIVER(bottas)
    2023/18 United States Grand Prix race bottas Finished 55 56
A driver has other laps than lap timings.
    DELETE FROM lap_times WHERE RACE(2023/18) AND DRIVER(norris) AND lap = 20
    2023/18 United States Grand Prix norris 56 55 56
A driver has other laps than lap timings.
    DELETE FROM lap_times WHERE RACE(2023/18) AND DRIVER(norris)
    2023/18 United States Grand Prix norris 56 - -
The sum of a driver's lap timings
    UPDATE results SET milliseconds = milliseconds + 11 WHERE RACE(2023/18) AND DRIVER(norris)
    2023/18 United States Grand Prix norris 5732103 5732092 11
The sum of a driver's lap timings
    UPDATE results SET milliseconds = milliseconds - 5000 WHERE RACE(2023/18) AND DRIVER(norris)
    2023/18 United States Grand Prix norris 5727092 5732092 -5000
The race time is longer than the sum
    UPDATE results SET milliseconds = milliseconds + 5000 WHERE RACE(2023/18) AND DRIVER(norris)
    2023/18 United States Grand Prix norris 5737092 5732092 5000
Two cars have the same place on the grid.
    UPDATE results SET grid = 2 WHERE RACE(2023/18) AND DRIVER(sainz)
    2023/18 United States Grand Prix race 2 4 norris (qualified 2), sainz (qualified 4)
A driver starts further ahead than
    UPDATE results SET grid = 2 WHERE RACE(2023/18) AND DRIVER(sainz)
    2023/18 United States Grand Prix sainz 4 2 1
A driver with a faster time in Q3
    UPDATE qualifying SET q3 = '1:33.000' WHERE RACE(2023/18) AND DRIVER(sainz)
    2023/18 United States Grand Prix sainz 4 1:33.000 1 1:34.723
A driver has another car number or constructor
    UPDATE qualifying SET number = 41 WHERE RACE(2023/18) AND DRIVER(alonso)
    2023/18 United States Grand Prix alonso qualifying 41 14 aston_martin aston_martin
A driver has another car number or constructor
    UPDATE sprint_results SET CONSTRUCTOR(alpine) WHERE RACE(2023/9) AND DRIVER(alonso)
    2023/9 Austrian Grand Prix alonso sprint 14 14 alpine aston_martin
A driver's points in the standings
    UPDATE driver_standings SET points = '6.5' WHERE RACE(2005/1) AND DRIVER(alonso)
    2005/1 Australian Grand Prix alonso 1 6.5 6 0.5
A constructor's points in the standings
    UPDATE constructor_standings SET points = '15' WHERE RACE(2005/1) AND CONSTRUCTOR(renault)
    2005/1 Australian Grand Prix renault 1 15.0 16 -1.0
A driver's wins in the standings
    UPDATE driver_standings SET wins = 1 WHERE RACE(2005/1) AND DRIVER(alonso)
    2005/1 Australian Grand Prix alonso 1 0
A constructor's wins in the standings
    UPDATE constructor_standings SET wins = 0 WHERE RACE(2005/1) AND CONSTRUCTOR(renault)
    2005/1 Australian Grand Prix renault 0 1
A race was run, but there are no driver standings
    DELETE FROM driver_standings WHERE RACE(1957/5)
    1957/5 British Grand Prix 22
A race was run, but there are no constructor standings
    DELETE FROM constructor_standings WHERE RACE(2023/9)
    2023/9 Austrian Grand Prix 20
A session is not before its race.
    UPDATE sessions SET date = '2023-10-22', time = '19:00:00' WHERE session = 'sq' AND RACE(2023/18)
    2023/18 United States Grand Prix sprint qualifying 2023-10-22 19:00:00 2023-10-22 19:00:00
A session is not before its race.
    UPDATE sessions SET date = '2023-10-23', time = NULL WHERE session = 'quali' AND RACE(2023/18)
    2023/18 United States Grand Prix qualifying 2023-10-23 2023-10-22 19:00:00
A race is not after the one before it
    UPDATE races SET date = '2023-10-29' WHERE RACE(2023/18)
    2023/19 Mexico City Grand Prix 2023-10-29 2023-10-29
A race is not after the one before it
    UPDATE races SET date = '2024-11-26' WHERE year = 2023 AND round = 22
    2023/22 Abu Dhabi Grand Prix 2024-11-26 2023-11-19
A driver has a pit stop or a fastest lap after
    UPDATE pit_stops SET lap = 57 WHERE RACE(2023/18) AND DRIVER(norris) AND stop = 2
    2023/18 United States Grand Prix norris 2 56 57
A driver has a pit stop or a fastest lap after
    UPDATE results SET fastestLap = 11 WHERE RACE(2023/18) AND DRIVER(piastri)
    2023/18 United States Grand Prix piastri R 10 11
A driver's pit stops are not numbered
    DELETE FROM pit_stops WHERE RACE(2023/18) AND DRIVER(norris) AND stop = 1
    2023/18 United States Grand Prix norris 1 2
A driver has a result, but is not in the driver standings
    DELETE FROM driver_standings WHERE RACE(2023/18) AND DRIVER(norris)
    2023/18 United States Grand Prix 1 18 norris
A driver has a qualifying result, but none in the race.
    DELETE FROM results WHERE RACE(2023/18) AND DRIVER(alonso)
    2023/18 United States Grand Prix alonso 17
Drivers share a place.
    UPDATE results SET number = 4, positionText = '2' WHERE RACE(2023/18) AND DRIVER(sainz)
    2023/18 United States Grand Prix 2 4 norris, sainz
"""
FAULTS = list(zip(*[iter(map(str.strip, FAULTS.strip().splitlines()))] * 3))


@pytest.mark.parametrize(("title", "statement", "row"), FAULTS)
def test_a_planted_fault_is_reported_and_the_clean_database_has_no_such_row(title, statement, row, faulty, clean):
    [title] = [check.title for check in CHECKS if check.title.startswith(title)]
    assert row not in clean.get(title, [])
    assert row in findings(faulty(statement)).get(title, [])


def test_each_check_has_a_fault_that_it_finds():
    assert all(any(check.title.startswith(title) for title, _, _ in FAULTS) for check in CHECKS)


def test_of_the_sample_only_what_is_known_is_reported(clean):
    assert clean == {
        "A status says how many laps the driver is behind the winner, and the laps say otherwise.": [
            "2005/1 Australian Grand Prix race friesacher +4 Laps 55 57"
        ],
        "The race time is longer than the sum of the lap timings, by a multiple of five seconds.": [
            "2021/12 Belgian Grand Prix stroll 251179 241179 10000",
            "2023/18 United States Grand Prix albon 5808076 5803076 5000",
        ],
        "Drivers share a place.": [
            "1957/5 British Grand Prix 1 20 brooks, moss",
            "1957/5 British Grand Prix 4 16 trintignant, collins",
        ],
    }


def test_what_is_unknown_is_no_doubt(faulty, clean):
    unknown = ["grid = NULL", "points = NULL", "laps = NULL", "statusId = NULL", "milliseconds = NULL", "number = NULL"]
    path = faulty(
        f"UPDATE results SET {', '.join(unknown)} WHERE RACE(2023/18)",
        "UPDATE pit_stops SET lap = NULL, time = NULL WHERE RACE(2023/18)",
        "UPDATE driver_standings SET points = NULL, wins = NULL WHERE RACE(2005/1)",
    )
    found = findings(path)
    assert found.keys() <= clean.keys()
    assert all(set(rows) <= set(clean[title]) for title, rows in found.items())


def test_the_champions_number_and_seasons_before_permanent_numbers_are_no_doubt(faulty):
    assert not any("permanent number" in title for title in findings(faulty("DELETE FROM results WHERE RACE(2023/9)")))
    path = faulty("DELETE FROM results WHERE raceId IN (SELECT raceId FROM races WHERE year > 2005)")
    assert not any("permanent number" in title for title in findings(path))


def test_a_difference_that_lasts_is_one_line_with_the_first_race(faulty):
    results = """
        INSERT INTO results (record, resultId, raceId, driverId, constructorId, positionOrder)
        SELECT 1000 + round, 1000 + round, raceId, 1, 1, 1 FROM races WHERE year = 2005 AND round BETWEEN 2 AND 10
    """
    standings = """
        INSERT INTO constructor_standings
        SELECT 1000 + there.round, there.raceId, constructorId, 15, position, positionText, wins, 0
        FROM constructor_standings AS here JOIN races AS there ON year = 2005 AND round IN (2, 10)
        WHERE here.RACE(2005/1) AND position = 1
    """
    path = faulty("DELETE FROM results WHERE RACE(2005/7)", results, standings)
    rows = findings(path)["A constructor's points in the standings are not the sum of the results."]
    assert "2005/2 Malaysian Grand Prix renault 2 15.0 16 -1.0" in rows


@pytest.fixture
def many(faulty):
    """A database with twenty doubts of one kind."""
    return faulty("UPDATE results SET fastestLap = 99 WHERE RACE(2023/18)")


def test_the_report_names_the_check_what_it_means_and_how_many_doubts_it_found(sample_database):
    finished = run(sample_database)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.startswith(
        "1: A status says how many laps the driver is behind the winner, and the laps say otherwise.\n"
        "  The laps or the status is wrong.\n"
        "  race                          session  driver      status   laps  winner's laps\n"
        "  2005/1 Australian Grand Prix  race     friesacher  +4 Laps  55    57\n\n"
    )
    assert finished.stdout.endswith(f"\n5 doubts by 3 of {len(CHECKS)} checks; the others found nothing\n")


def test_a_check_shows_ten_doubts_and_all_on_request(many):
    finished, everything = run(many), run(many, "--all")
    assert "20: A driver has a pit stop" in finished.stdout
    assert f"  and {20 - ROWS_SHOWN} more; --all shows them\n" in finished.stdout
    assert (finished.returncode, finished.stdout.count(" 99\n")) == (0, 10)
    assert everything.stdout.count(" 99\n") == 20
    assert "more; --all" not in everything.stdout


def test_the_database_is_not_changed(many):
    before = many.read_bytes()
    run(many)
    assert many.read_bytes() == before
    assert os.listdir(many.parent) == [many.name]


@pytest.mark.parametrize("fault", [spoiling.missing, spoiling.fifo, spoiling.zeros, spoiling.truncated])
def test_a_file_that_is_no_database_is_one_line_and_exit_status_1(sample_database, tmp_path, fault):
    path = Path(shutil.copy(sample_database, tmp_path / "x.db"))
    fault(path)
    finished = run(path)
    assert (finished.returncode, finished.stdout, finished.stderr.count("\n")) == (1, "", 1)
    assert finished.stderr.startswith(f"racedata check: {path} ")
    assert finished.stderr.endswith(f"; to build it, run: racedata load SOURCE --database {path}\n")


def test_a_reader_that_ends_early_is_no_error(many):
    read, write = os.pipe()
    os.close(read)
    finished = subprocess.run([*CHECK, "--database", many], stdout=write, stderr=subprocess.PIPE, timeout=60)
    os.close(write)
    assert (finished.returncode, finished.stderr) == (0, b"")


def test_a_report_that_cannot_be_written_is_one_line_and_exit_status_1(sample_database):
    with open("/dev/full", "w") as full:
        finished = subprocess.run([*CHECK, "--database", sample_database], stdout=full, stderr=subprocess.PIPE)
    assert finished.returncode == 1
    assert finished.stderr == b"racedata check: the report cannot be written: [Errno 28] No space left on device\n"


def test_the_doubts_about_a_full_dump_are_known_by_number(dump_database):
    found = findings(dump_database)
    assert [len(found.get(check.title, [])) for check in CHECKS] == [
        *(2, 0, 0, 2, 4, 0, 9, 21),  # to laps behind the winner
        *(0, 0, 75, 1, 2, 63),  # to car numbers in the qualifying
        *(0, 3, 0, 1, 0, 0),  # the standings
        *(0, 0, 16, 2, 128, 1, 4, 70),
    ]

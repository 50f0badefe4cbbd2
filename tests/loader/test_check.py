"""racedata.loader.check: a fault planted in a database is reported, with race, driver and both
values.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import spoiling
from support.loads import changed, planted

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
    return subprocess.run(
        [*CHECK, "--database", *arguments], capture_output=True, text=True, timeout=60
    )


@pytest.fixture(scope="session")
def clean(sample_database):
    return findings(sample_database)


@pytest.fixture
def faulty(sample_database, tmp_path):
    """Returns the path of a copy of the sample in which some statements of SQL have planted a
    fault.
    """

    def faulty(*statements):
        return changed(Path(shutil.copy(sample_database, tmp_path / "faulty.db")), *statements)

    return faulty


FAULTS = planted("doubts.txt")


@pytest.mark.parametrize(("title", "statement", "row"), FAULTS)
def test_a_planted_fault_is_reported_and_the_clean_database_has_no_such_row(
    title, statement, row, faulty, clean
):
    [title] = [check.title for check in CHECKS if check.title.startswith(title)]
    assert row not in clean.get(title, [])
    assert row in findings(faulty(statement)).get(title, [])


def test_each_check_has_a_fault_that_it_finds():
    assert all(any(check.title.startswith(title) for title, _, _ in FAULTS) for check in CHECKS)


def test_of_the_sample_only_what_is_known_is_reported(clean):
    assert clean == {
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
    unknown = [
        "grid = NULL",
        "points = NULL",
        "laps = NULL",
        "statusId = NULL",
        "milliseconds = NULL",
        "number = NULL",
    ]
    path = faulty(
        f"UPDATE results SET {', '.join(unknown)} WHERE RACE(2023/18)",
        "UPDATE pit_stops SET lap = NULL, time = NULL WHERE RACE(2023/18)",
        "UPDATE driver_standings SET points = NULL, wins = NULL WHERE RACE(2005/1)",
    )
    found = findings(path)
    assert found.keys() <= clean.keys()
    assert all(set(rows) <= set(clean[title]) for title, rows in found.items())


def test_the_champions_number_and_seasons_before_permanent_numbers_are_no_doubt(faulty):
    assert not any(
        "permanent number" in title
        for title in findings(faulty("DELETE FROM results WHERE RACE(2023/9)"))
    )
    path = faulty(
        "DELETE FROM results WHERE raceId IN (SELECT raceId FROM races WHERE year > 2005)"
    )
    assert not any("permanent number" in title for title in findings(path))


def test_a_sprint_that_made_the_grid_in_2022_is_no_doubt_either(faulty):
    other_order = "UPDATE qualifying SET position = 100 - position WHERE RACE(2021/10)"
    path = faulty(other_order, "UPDATE races SET year = 2022 WHERE year = 2021")
    assert not any(title.startswith("A driver starts further ahead") for title in findings(path))


def test_a_difference_that_lasts_is_one_line_with_the_first_race(faulty):
    results = """
        INSERT INTO results (record, resultId, raceId, driverId, constructorId, positionOrder)
        SELECT 1000 + round, 1000 + round, raceId, 1, 1, 1
        FROM races WHERE year = 2005 AND round BETWEEN 2 AND 10
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
        "2: The race time is longer than the sum of the lap timings, "
        "by a multiple of five seconds.\n"
        "  In milliseconds. History, most likely: a time penalty after the race.\n"
        "  race                              driver  race time  sum of laps  difference\n"
        "  2021/12 Belgian Grand Prix        stroll  251179     241179       10000\n"
        "  2023/18 United States Grand Prix  albon   5808076    5803076      5000\n\n"
    )
    assert finished.stdout.endswith(
        f"\n4 doubts from 2 of {len(CHECKS)} checks; the others found nothing\n"
    )


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


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        (spoiling.missing, "racedata load SOURCE --database {}"),
        (spoiling.fifo, "remove it, or name another file"),
        (spoiling.zeros, "remove it, or name another file"),
        (spoiling.truncated, "racedata load SOURCE --replace --database {}"),
    ],
)
def test_a_file_that_is_no_database_is_one_line_and_exit_status_1(
    sample_database, tmp_path, fault, hint
):
    path = Path(shutil.copy(sample_database, tmp_path / "x.db"))
    fault(path)
    finished = run(path)
    assert (finished.returncode, finished.stdout, finished.stderr.count("\n")) == (1, "", 1)
    assert finished.stderr.startswith(f"racedata check: {path} ")
    assert finished.stderr.endswith(f"{hint.format(path)}\n")


def test_a_reader_that_ends_early_is_no_error(many):
    read, write = os.pipe()
    os.close(read)
    finished = subprocess.run(
        [*CHECK, "--database", many], stdout=write, stderr=subprocess.PIPE, timeout=60
    )
    os.close(write)
    assert (finished.returncode, finished.stderr) == (0, b"")


def test_a_report_is_written_in_any_encoding(many, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    finished = run(changed(many, "UPDATE races SET name = 'São Paulo Grand Prix'"))
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "S\\xe3o Paulo Grand Prix" in finished.stdout


def test_a_report_that_cannot_be_written_is_one_line_and_exit_status_1(sample_database):
    with open("/dev/full", "w") as full:
        finished = subprocess.run(
            [*CHECK, "--database", sample_database], stdout=full, stderr=subprocess.PIPE
        )
    assert finished.returncode == 1
    assert finished.stderr == b"racedata check: stdout: No space left on device\n"


def test_the_doubts_about_a_full_dump_are_known_by_number(dump_database):
    found = findings(dump_database)
    assert [len(found.get(check.title, [])) for check in CHECKS] == [
        *(2, 0, 0, 2, 4, 0, 9, 21),  # to laps behind the winner
        *(0, 0, 75, 1, 2, 63),  # to car numbers in the qualifying
        *(0, 3, 0, 1, 0, 0),  # the standings
        *(0, 0, 16, 2, 128, 1, 4, 70),
    ]

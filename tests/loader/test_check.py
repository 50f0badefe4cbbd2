"""racedata.loader.check: a fault planted in a database is reported, with race, driver and both
values; with `--against`, a difference from another source.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path

import pytest
from support import EXPECTED, PACKAGE, spoiling
from support.loads import (
    changed,
    edit,
    file_of_corrections,
    loader_settings,
    planted,
    racedata,
    select,
)

from racedata.loader.check import ROWS_SHOWN, compare, report
from racedata.loader.checks import ALL, FILES, PARAGRAPHS, check_in
from racedata.loader.compare.differences import GROUPS
from racedata.loader.corrections import HEADER, corrections_at
from racedata.loader.load import load

CHECK = [sys.executable, "-m", "racedata", "check"]


def findings(path):
    """What a report says of a database: the rows of each check by its title, with single spaces."""
    *paragraphs, _nothing, _sum = "\n".join(report(path, None)).split("\n\n")
    found = {}
    for paragraph in paragraphs:
        headline, *lines = paragraph.splitlines()
        counts, title = headline.split(": ", 1)
        number = int(counts.split()[0].replace(",", ""))
        found[title] = [" ".join(line.split()) for line in lines[-number:]]
    return found


def run(database, *arguments, **options):
    return racedata("check", "--database", database, *arguments, **options)


# Facts of the sample that are wrong unless they are corrected.
RIGHT = (
    "UPDATE sessions SET date = date(races.date, '-1 day') FROM races "
    "WHERE sessions.RACE(2023/21) AND sessions.raceId = races.raceId AND session = 'quali'",
    "UPDATE results SET fastestLap = 38, fastestLapTime = '1:41.025', rank = 13 "
    "WHERE RACE(2023/18) AND DRIVER(leclerc)",
    "UPDATE pit_stops SET lap = 22, time = '14:41:51', milliseconds = 24364 "
    "WHERE RACE(2023/18) AND DRIVER(ricciardo) AND stop = 1",
)


@pytest.fixture(scope="session")
def sample(sample_database, tmp_path_factory):
    path = tmp_path_factory.mktemp("sample") / "sample.db"
    return changed(Path(shutil.copy(sample_database, path)), *RIGHT)


@pytest.fixture(scope="session")
def clean(sample):
    return findings(sample)


@pytest.fixture
def faulty(sample, tmp_path):
    """Returns the path of a copy of the sample in which some SQL statements have planted a
    fault.
    """

    def faulty(*statements):
        return changed(Path(shutil.copy(sample, tmp_path / "faulty.db")), *statements)

    return faulty


FAULTS = planted("doubts.txt")


@pytest.mark.parametrize("faults", FAULTS)
def test_planted_faults_are_reported_and_the_clean_database_has_no_such_rows(faults, faulty, clean):
    found = findings(faulty(*(statement for _, statement, _ in faults)))
    for title, _, row in faults:
        [title] = [check.title for check in ALL if check.title.startswith(title)]
        assert row not in clean.get(title, [])
        assert row in found.get(title, [])


def test_each_check_has_a_fault_that_it_finds():
    titles = [title for title, _, _ in chain(*FAULTS)]
    assert all(any(check.title.startswith(title) for title in titles) for check in ALL)


def test_each_file_and_paragraph_of_sql_is_a_check_or_makes_what_checks_read():
    assert {f"{name}.sql" for name in FILES} == {
        path.name for path in (PACKAGE / "loader" / "checks").glob("*.sql")
    }
    for paragraph in PARAGRAPHS:
        sql = re.sub(r"^--.*\n?", "", paragraph, flags=re.MULTILINE)
        assert check_in(paragraph) or sql == "" or sql.startswith("CREATE TEMP ")


def test_only_the_known_doubts_about_the_sample_are_reported(clean):
    assert clean == {
        "A driver's fastest lap is not the fastest of the lap timings.": [
            "2023/18 United States Grand Prix albon 40 1:41.371 48 1:41.318"  # deleted
        ],
        "The winner's time is more than one and a half times what the laps would take at the pace "
        "of the fastest lap.": [
            "2021/10 British Grand Prix hamilton 52 7103284 4608084"
        ],  # a red flag
        "The race time is longer than the sum of the lap timings, by a multiple of five seconds.": [
            "2021/12 Belgian Grand Prix stroll 251179 241179 10000",
            "2023/18 United States Grand Prix albon 5808076 5803076 5000",
        ],
        "Drivers share a place.": [
            "1957/5 British Grand Prix 1 20 brooks, moss",
            "1957/5 British Grand Prix 4 16 trintignant, collins",
        ],
    }


def test_unknown_values_are_not_reported(faulty, clean):
    names = ("grid", "points", "laps", "statusId", "milliseconds", "number")
    path = faulty(
        f"UPDATE results SET {', '.join(f'{name} = NULL' for name in names)} WHERE RACE(2023/18)",
        "UPDATE pit_stops SET lap = NULL, time = NULL WHERE RACE(2023/18)",
        "UPDATE driver_standings SET points = NULL, wins = NULL WHERE RACE(2005/1)",
    )
    found = findings(path)
    assert found.keys() <= clean.keys()
    assert all(set(rows) <= set(clean[title]) for title, rows in found.items())


@pytest.mark.parametrize(
    ("title", "statements"),
    [
        ("permanent number", ["DELETE FROM results WHERE RACE(2023/9)"]),  # the champion's
        (
            "permanent number",
            ["DELETE FROM results WHERE raceId IN (SELECT raceId FROM races WHERE year > 2005)"],
        ),
        (
            "A driver starts further ahead",  # a sprint made the grid
            [
                "UPDATE qualifying SET position = 100 - position WHERE RACE(2021/10)",
                "UPDATE races SET year = 2022 WHERE year = 2021",
            ],
        ),
    ],
)
def test_what_the_rules_of_a_season_explain_is_not_a_doubt(faulty, title, statements):
    assert not any(title in found for found in findings(faulty(*statements)))


def test_a_difference_that_lasts_is_one_line_with_the_first_race(faulty):
    results = """
        INSERT INTO results (record, resultId, raceId, driverId, constructorId, positionOrder)
        SELECT 1000 + round, 1000 + round, raceId, 1, 1, 1
        FROM races WHERE year = 2005 AND round BETWEEN 2 AND 10
    """
    standings = """
        INSERT INTO constructor_standings
        SELECT 1000 + there.round, 1000 + there.round, there.raceId, constructorId, 15,
            position, positionText, wins, 0
        FROM constructor_standings AS here JOIN races AS there ON year = 2005 AND round IN (2, 10)
        WHERE here.RACE(2005/1) AND position = 1
    """
    path = faulty("DELETE FROM results WHERE RACE(2005/7)", results, standings)
    title = "A constructor's points in the standings are not the sum of the results that count."
    rows = findings(path)[title]
    assert "2005/2 Malaysian Grand Prix renault 2 15.0 16.0 -1.0" in rows


@pytest.fixture
def many(faulty):
    """A database with twenty doubts of one kind."""
    return faulty("UPDATE results SET fastestLap = 99 WHERE RACE(2023/18)")


def test_the_report_names_the_check_what_it_means_and_how_many_doubts_it_found(sample):
    """A check that finds nothing says how many rows it looked at."""
    finished = run(sample)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert (
        "\n\n2 found in 34 rows: The race time is longer than the sum of the lap timings, "
        "by a multiple of five seconds.\n"
        "  In milliseconds. Probably not an error, but a time penalty after the race.\n"
        "  race                              driver  race time  sum of laps  difference\n"
        "  2021/12 Belgian Grand Prix        stroll  251179     241179       10000\n"
        "  2023/18 United States Grand Prix  albon   5808076    5803076      5000\n\n"
    ) in finished.stdout
    assert finished.stdout.endswith(f"\n\n4 of {len(ALL)} checks reported 6 doubtful facts\n")
    _, nothing = finished.stdout.split("These checks found nothing:\n")
    assert "\n        182 rows: Two cars have the same place.\n" in nothing
    assert nothing.count(" rows: ") == len(ALL) - 4


def test_checks_whose_doubts_are_history_come_last(faulty):
    wrong = "UPDATE results SET positionText = '1' WHERE RACE(2023/18) AND DRIVER(norris)"
    titles = list(findings(faulty(wrong)))
    places = titles.index("Two cars have the same place.")
    assert places < titles.index("Drivers share a place.")


def test_a_check_shows_ten_doubts_and_all_on_request(many):
    before = many.read_bytes()
    finished, everything = run(many), run(many, "--all")
    assert "20 found in 165 rows: A driver has a pit stop" in finished.stdout
    assert f"  and {20 - ROWS_SHOWN} more; --all shows them\n" in finished.stdout
    assert (finished.returncode, finished.stdout.count(" 99\n")) == (0, 10)
    assert everything.stdout.count(" 99\n") == 20
    assert "more; --all" not in everything.stdout
    assert many.read_bytes() == before
    assert os.listdir(many.parent) == [many.name]


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        (spoiling.missing, "racedata load SOURCE --database {}"),
        (spoiling.fifo, "move it away, or name another file"),
        (spoiling.zeros, "move it away, or name another file"),
        (spoiling.truncated, "racedata load SOURCE --replace --database {}"),
    ],
)
def test_a_file_that_is_not_a_database_is_one_line_and_exit_status_1(database, fault, hint):
    fault(database)
    finished = run(database)
    assert (finished.returncode, finished.stdout, finished.stderr.count("\n")) == (1, "", 1)
    assert finished.stderr.startswith(f"racedata check: {database} ")
    assert finished.stderr.endswith(f"{hint.format(database)}\n")


def test_a_reader_that_ends_early_is_not_an_error(many):
    read, write = os.pipe()
    os.close(read)
    finished = subprocess.run([*CHECK, "--database", many], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (finished.returncode, finished.stderr) == (0, b"")


def test_a_report_is_written_in_any_encoding(many):
    changed(many, "UPDATE races SET name = 'São Paulo Grand Prix'")
    finished = run(many, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "S\\xe3o Paulo Grand Prix" in finished.stdout


def test_a_report_that_cannot_be_written_is_one_line_and_exit_status_1(sample_database):
    with open("/dev/full", "w") as full:
        finished = subprocess.run(
            [*CHECK, "--database", sample_database], stdout=full, stderr=subprocess.PIPE
        )
    assert finished.returncode == 1
    assert finished.stderr == b"racedata check: stdout: No space left on device\n"


# The doubts about a full dump, in the order of the report: how a title begins, and how many rows.
FULL_DUMP = (
    ("A driver's permanent number differs from the car's", 2),
    ("A driver has a code, but drove only before", 2),
    ("A name contains an HTML entity.", 1),
    ("A driver's reference and surname have nothing in common.", 4),
    ("Only one driver or constructor has this nationality", 1),
    ("A place in a classification is empty.", 2),
    ("Two drivers of one car have different results.", 4),
    ("A driver is classified ahead of another who drove", 9),
    ("A status says how many laps the driver is behind the", 21),
    ("A driver is classified with less than 90% of the", 56),
    ("A driver drove laps, but did not start, as", 7),
    ("Cars of two constructors have the same number.", 19),
    ("A driver has a different car number or constructor in", 63),
    ("A driver who was lapped has a race time.", 3),
    ("The winner's time has only tenths of a second,", 22),
    ("A driver has a pit stop or a fastest lap after the", 16),
    ("A driver's fastest lap is not the fastest of the lap", 4),
    ("A driver has lap timings, but no fastest lap, and others", 1),
    ("The fastest laps of two drivers have the same rank,", 4),
    ("The speed and the time of a fastest lap give a different", 3),
    ("A driver's pit stops are not numbered 1, 2, 3, …", 2),
    ("Two drivers entered the pit lane in the same second", 2),
    ("Most drivers have a pit stop on a lap and on the next", 15),
    ("Two cars have the same place on the grid.", 75),
    ("Drivers who retired on the same lap have each other's", 2),
    ("A driver starts further ahead than qualifying allows.", 1),
    ("Two drivers have the same place in qualifying.", 2),
    ("A driver went on to the next part of qualifying", 7),
    ("A driver has a time in a part of qualifying, but", 2),
    ("A driver who went on to the next part is not placed", 8),
    ("A driver with a faster time in Q3 is further behind", 2),
    ("A driver's points in the standings are not the sum ", 1),
    ("A constructor's points in the standings are not the s", 13),
    ("A driver or constructor is ahead of another with as many", 21),
    ("A constructor's number of wins in the standings differs", 1),
    ("Qualifying on a weekend without a sprint is more", 1),
    ("A race starts before noon or after 22:00, by the clock", 12),
    ("A race starts an hour or more earlier or later than", 53),
    ("The first pit stop is before the start, or more than", 8),
    ("A column is empty for a whole race, but filled for the", 4),
    ("Drivers share a place.", 70),
    ("The race time is longer than the sum of the lap timings,", 4),
    ("The winner's time is more than one and a half times what", 13),
    ("A driver has a qualifying result, but none in the race.", 1),
    ("A driver has a result, but is not in the driver standings", 128),
)


def test_the_doubts_about_a_full_dump_are_known_by_number(dump_database):
    found = findings(dump_database)
    assert [
        (title[: len(known)], len(rows))
        for (title, rows), (known, _) in zip(found.items(), FULL_DUMP, strict=True)
    ] == list(FULL_DUMP)


# Against another source.


def compared(database, source):
    """The rows by the title of their group, and the last lines of the report."""
    found, remarks = compare(database, str(source), lambda text: None)
    return {group.title: [" ".join(row) for row in rows] for group, rows in found}, remarks


@pytest.fixture
def copy(merged, tmp_path):
    """Returns a copy of that database, as if from other sources, after some SQL statements."""

    def copy(*statements):
        path = Path(shutil.copy(merged, tmp_path / "copy.db"))
        return changed(path, "UPDATE sources SET name = 'another ' || name", *statements)

    return copy


PLANTED = planted("differences.txt")


@pytest.mark.parametrize("differences", PLANTED)
def test_planted_differences_are_the_only_ones_and_ready_for_corrections_csv(
    differences, copy, merged
):
    expected = {}
    for title, _, row in differences:
        [title] = [group.title for group in GROUPS if group.title.startswith(title)]
        expected.setdefault(title, set()).add(row)
    found, _ = compared(copy(*(statement for _, statement, _ in differences)), merged)
    assert sum(map(len, found.values())) == len(differences)
    assert {title: {*rows} for title, rows in found.items()} == expected


def test_each_group_has_a_difference_that_it_reports():
    # test_conventions.py has two, whose differences are never alone.
    titles = [title for title, _, _ in chain(*PLANTED)]
    titles += ["A disqualified driver has laps", "A driver in a Formula 2 car"]
    assert all(any(group.title.startswith(title) for title in titles) for group in GROUPS)


def test_a_line_for_corrections_csv_says_what_it_was_made_from(copy, merged, tmp_path):
    wrong = 'The "Ant, Hill"'
    (merged_name,) = select(merged, "SELECT surname FROM drivers WHERE driverRef = 'gasly'")[0]
    path = copy(f"UPDATE drivers SET surname = '{wrong}' WHERE driverRef = 'gasly'")
    ((_, rows),), _ = compare(path, str(merged), lambda text: None)
    file = file_of_corrections(tmp_path, *(f"{line}two witnesses" for _, line in rows))
    line, *_ = corrections_at(file)
    assert (line.correction.wrong, line.correction.right) == (wrong, merged_name)


def test_an_unknown_or_ambiguous_value_is_not_a_difference(copy, merged):
    path = copy(
        """UPDATE results SET grid = NULL, points = NULL, rank = NULL, milliseconds = NULL
           WHERE raceId IN (SELECT raceId FROM races WHERE year = 2023)""",
        "UPDATE results SET laps = 9 WHERE RACE(1957/5) AND DRIVER(moss)",  # has two results
        # the second of two results, with the number of another car
        "UPDATE results SET number = 99 WHERE RACE(1957/5) AND DRIVER(moss) AND number = 18",
        "UPDATE results SET positionOrder = 20 WHERE RACE(2023/18) AND DRIVER(piastri)",  # retired
        # of several drivers
        "UPDATE driver_standings SET position = 22 WHERE RACE(2023/18) AND points = '0'",
        "UPDATE results SET statusId = 1 WHERE RACE(2023/18)",
        "UPDATE circuits SET lat = '30.1528' WHERE circuitRef = 'americas'",  # 0.02 degrees
    )
    assert compared(path, merged)[0] == {}


def test_records_from_the_same_source_are_not_compared(copy, merged):
    other_points = "UPDATE results SET points = '99' WHERE RACE(2023/18)"
    of_source = (
        "UPDATE sources SET name = substr(name, 9) WHERE name LIKE 'another %' AND sourceId = 1"
    )
    found, remarks = compared(copy(other_points, of_source), merged)
    assert found == {}
    assert [line.partition(":")[0] for line in remarks] == [
        "compared with sample",
        "compared with f1db",
    ]
    assert "results" not in remarks[0]  # which are only in the other database's own store


def test_a_dump_with_other_ids_and_dates_is_compared(sample_database):
    """f1db has its own ids, and here only some races: wins counted from them are fewer."""
    found, remarks = compared(sample_database, EXPECTED / "f1db")
    wins = found.pop("A driver or constructor has different points or wins in the standings.")
    assert wins[0].endswith(" constructor_standings,2023/18/red_bull,wins,17,2,") and all(
        "wins" in row for row in wins
    )
    birth_dates = found.pop("A driver has a different surname or birth date.")
    assert birth_dates == ["- drivers,gould,dob,1918-09-20,1921-09-20,"]
    countries = found.pop("A driver, constructor or circuit is from another country.")
    assert "- constructors,alfa,nationality,Swiss,Italian," in countries
    spellings = found.pop(
        "A surname or the name of a constructor is longer or shorter, or spelled differently."
    )
    assert "- drivers,menditeguy,surname,Menditeguy,Menditéguy," in spellings
    other_names = found.pop(
        "A driver has a different first name, or a constructor or circuit a different name."
    )
    assert "- drivers,fangio,forename,Juan,Juan Manuel," in other_names
    # Leclerc's fastest lap, unless it is corrected
    found.pop("The database lacks a value for one driver, but has it for others in the race.", None)
    assert found == {
        "A driver started from the pit lane in only one of the two.": [
            "2023/9 Austrian Grand Prix results,2023/9/bottas,grid,14,0,"
        ],
        "A driver has a place in only one of the two, or the two have different letters.": [
            "1957/2 Monaco Grand Prix results,1957/2/trips,positionText,R,7,"
        ],
    }
    assert remarks[-1].startswith(
        "compared with f1db: 4 races, results of 4 races, fastest laps of 2 races, "
    )


def test_drivers_are_matched_by_birth_date_and_name_and_races_by_their_circuit(
    sample_database, source
):
    edit(source / "drivers.csv", ",norris,", ",lando_norris,")
    edit(source / "races.csv", ",2023-10-22,", ",2023-10-12,")
    found, remarks = compared(sample_database, source)
    [title] = found
    assert found[title] == [
        "2023/18 United States Grand Prix races,2023/18,date,2023-10-22,2023-10-12,"
    ]
    assert "results of 8 races" in remarks[0] and "148 drivers" in remarks[0]


def test_a_known_error_of_the_source_is_not_a_difference(sample_database, source):
    edit(
        source / "results.csv", "39,9,17,14,20,16,17,17,17,0,53,", "39,9,17,14,20,16,17,17,17,0,55,"
    )
    assert compared(sample_database, source)[0] == {}


def test_the_report_has_a_table_per_group_and_ten_rows_unless_all_are_asked_for(copy, merged):
    path = copy("UPDATE results SET points = '99' WHERE RACE(2023/18)")
    finished, everything = (run(path, "--against", merged, *more) for more in ([], ["--all"]))
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.startswith(
        "Each row ends with a line for corrections.csv. Add it if another independent source "
        "confirms the value.\n\n"
        "20: A driver has different points.\n"
        "  One of the two is wrong. An official classification, or a table of points, would settle "
        "it.\n"
        f"  race                              {HEADER}\n"
        "  2023/18 United States Grand Prix  results,2023/18/"
    )
    assert "  and 10 more; --all shows them\n\ncompared with " in finished.stdout
    assert finished.stdout.endswith("\n20 differences of 1 kind\n")
    assert everything.stdout.count(",points,99,") == 20


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("/none", "/none: not found; expected a folder of CSV files, a zip of them, the URL of"),
        ("", "--against '': expected one source"),
        ("jolpica f1db", "--against 'jolpica f1db': expected one source"),
        (os.devnull, f"{os.devnull}: neither a file nor a folder; expected "),
    ],
)
def test_a_source_that_cannot_be_read_is_one_line_and_exit_status_1(
    sample_database, tmp_path, monkeypatch, source, said
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    finished = run(sample_database, "--against", source)
    assert (finished.returncode, finished.stdout, finished.stderr.count("\n")) == (1, "", 1)
    assert finished.stderr.startswith(f"racedata check: {said}")
    assert list(tmp_path.iterdir()) == []


# The differences between full dumps: how the title of a group begins, and how many rows.
FULL_DUMPS = {
    "A driver has a different surname or birth date.": 15,
    "A driver, constructor or circuit is from another country.": 12,
    "A circuit is somewhere else.": 4,
    "A race or session has a different date or time.": 13,
    "A driver drove in a race, but only one of the two has": 11,
    "A driver has a different place.": 64,
    "A driver has a different constructor.": 53,
    "A driver has different points.": 2,
    "A race time differs by whole minutes.": 48,
    "A race time differs by a second or more.": 52,
    "A driver has a different number of laps.": 101,
    "A driver has a different fastest lap.": 306,
    "A driver started from the pit lane in only one of the": 167,
    "A driver has a different place on the grid.": 258,
    "A qualifying time differs.": 56,
    "A driver has a different place in qualifying.": 99,
    "A driver's qualifying or pit stop is in only one of": 64,
    "A pit stop differs.": 3,
    "A driver or constructor has different points or wins": 115,
    "A driver or constructor has a different place in the": 35,
    "A driver has a different car number.": 80,
    "The database lacks a value for one driver, but has": 47,
    "A whole race lacks a value in the database, but other": 24,
    "A driver who took over another's car has a place on": 31,
    "A disqualified driver has laps or a place on the grid": 49,
    "A place on the grid is counted differently.": 210,
    "A driver in a Formula 2 car is in only one of the two,": 29,
    "A driver is last in the qualifying in only one of the": 181,
    "A driver at the end of the qualifying is in only one": 65,
    "A nationality has another word, or is one of two.": 10,
    "A time has fewer digits in one of the two.": 59,
    "A race time differs by less than a second.": 209,
    "A driver who did not start is in only one of the two.": 203,
    "A driver has a place in only one of the two, or the": 290,
    "A driver who retired has one lap more, or one fewer.": 182,
    "The same fastest lap has a different number, up to": 49,
    "A qualifying time differs by more than a minute.": 107,
    "A race has a different name.": 5,
    "A surname or the name of a constructor is longer or": 28,
    "A driver has a different first name, or a constructor": 45,
    "The other source lacks a value for one driver, but": 26,
}


def test_the_differences_of_full_dumps_are_known_by_number(dump_database, f1db):
    found, _ = compared(dump_database, f1db)
    begins = {title: [known for known in FULL_DUMPS if title.startswith(known)] for title in found}
    assert {tuple(begins[title]): len(rows) for title, rows in found.items()} == {
        (known,): number for known, number in FULL_DUMPS.items()
    }


def test_each_line_for_corrections_loads_once_its_source_is_filled_in(
    dump, dump_database, f1db, tmp_path
):
    found, _ = compare(dump_database, str(f1db), lambda text: None)
    # one correction for each fact: a value that differs in several ways is in several groups
    lines = {tuple(line.split(",")[:3]): line for _, rows in found for _, line in rows}
    file = tmp_path / "corrections.csv"
    file.write_text("\n".join([HEADER, *(f"{line}a test" for line in lines.values())]))
    settings = loader_settings(tmp_path / "x.db", file)
    report = load([str(dump)], settings, lambda text: None)
    (corrected,) = (line for line in report if line.startswith("corrected: "))
    _, values, _, _, rows, *_ = corrected.replace(",", "").split()
    assert int(values) + int(rows) > 0.9 * len(lines) > 1000

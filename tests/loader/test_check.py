"""racedata.loader.check: a fault planted in a database is reported, with race, driver and both
values; with `--against`, a difference from another source.
"""

import os
import re
import shutil
import tempfile
from itertools import chain
from pathlib import Path

import pytest
from support import EXPECTED, spoiling
from support.loads import (
    changed,
    edit,
    expected_lines,
    file_of_corrections,
    loader_settings,
    planted,
    racedata,
    select,
)

from racedata.loader.check import ROWS_SHOWN, compare, report
from racedata.loader.checks import ALL, PARAGRAPHS, check_in
from racedata.loader.compare.differences import GROUPS
from racedata.loader.corrections import HEADER, corrections_at
from racedata.loader.load import load


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


def test_each_paragraph_of_sql_is_a_check_or_makes_what_checks_read():
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


def test_a_file_that_is_not_a_database_is_one_line_and_exit_status_1(database):
    spoiling.truncated(database)
    finished = run(database)
    assert (finished.returncode, finished.stdout, finished.stderr.count("\n")) == (1, "", 1)
    assert finished.stderr.startswith(f"racedata check: {database} ")
    assert finished.stderr.endswith(f"racedata load SOURCE --replace --database {database}\n")


def test_the_doubts_about_a_full_dump_are_known_by_number(dump_database):
    found = findings(dump_database)
    assert (len(found), sum(map(len, found.values()))) == (45, 692)


# Against another source.


def compared(database, source):
    """The rows by the title of their group."""
    found, _ = compare(database, str(source), lambda text: None)
    return {group.title: [" ".join(row) for row in rows] for group, rows in found}


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
    found = compared(copy(*(statement for _, statement, _ in differences)), merged)
    assert sum(map(len, found.values())) == len(differences)
    assert {title: {*rows} for title, rows in found.items()} == expected


def test_each_group_has_a_difference_that_it_reports():
    # test_differences.py has two, whose differences are never alone.
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
    assert compared(path, merged) == {}


# Every difference between the two cuts. f1db's has fewer races, so that wins counted from them are
# fewer.
OF_F1DB = """
circuits,aintree,name,Aintree,Aintree Motor Racing Circuit
constructors,alfa,nationality,Swiss,Italian
constructors,sauber,name,Sauber,Kick Sauber
drivers,fangio,forename,Juan,Juan Manuel
drivers,gould,dob,1918-09-20,1921-09-20
drivers,menditeguy,surname,Menditeguy,Menditéguy
drivers,sainz,surname,Sainz,Sainz Jr.
results,1957/2/trips,positionText,R,7
results,2023/9/bottas,grid,14,0
"""


def test_a_dump_with_other_ids_and_dates_is_compared(sample_database):
    found, _ = compare(sample_database, str(EXPECTED / "f1db"), lambda text: None)
    lines = {line.removesuffix(",") for _, rows in found for _, line in rows}
    fewer = {line for line in lines if ",wins," in line}
    assert len(fewer) == 10 and sorted(lines - fewer) == OF_F1DB.split("\n")[1:-1]


def test_a_known_error_of_the_source_is_not_a_difference(sample_database, source):
    edit(
        source / "results.csv", "39,9,17,14,20,16,17,17,17,0,53,", "39,9,17,14,20,16,17,17,17,0,55,"
    )
    assert compared(sample_database, source) == {}


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
    assert finished.stdout.endswith("  and 10 more; --all shows them\n\n20 differences of 1 kind\n")
    assert everything.stdout.count(",points,99,") == 20


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("/none", "/none: not found; expected a folder of CSV files, a zip of them, the URL of"),
        ("jolpica f1db", "--against 'jolpica f1db': expected one source"),
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


def test_each_line_for_corrections_loads_once_its_source_is_filled_in(
    dump, dump_database, f1db, tmp_path
):
    found, _ = compare(dump_database, str(f1db), lambda text: None)
    counts = [f"{group.title} {len(rows)}" for group, rows in found]
    assert counts == expected_lines("f1db-differences.txt")
    # one correction for each fact: a value that differs in several ways is in several groups
    lines = {tuple(line.split(",")[:3]): line for _, rows in found for _, line in rows}
    file = file_of_corrections(tmp_path, *(f"{line}a test" for line in lines.values()))
    settings = loader_settings(tmp_path / "x.db", file)
    report = load([str(dump)], settings, lambda text: None)
    (corrected,) = (line for line in report if line.startswith("corrected: "))
    _, values, _, _, rows, *_ = corrected.replace(",", "").split()
    assert int(values) + int(rows) > 0.9 * len(lines) > 1000

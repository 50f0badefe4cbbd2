"""racedata.loader.against: facts that differ between a database and a source are found, as lines
for corrections.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import EXPECTED, SAMPLE
from support.loads import changed, edit, planted

from racedata.loader.check import compare
from racedata.loader.corrections import CORRECTIONS, HEADER
from racedata.loader.differences import (
    CONVENTIONS,
    DOUBTS,
    GROUPS,
    LACKED_BY_OURS,
    LACKED_BY_THE_RACE,
    LACKED_BY_THEIRS,
)
from racedata.loader.load import load

F1DB = EXPECTED / "f1db"


def compared(database, source):
    """The rows by the title of their group, and the last lines of the report."""
    found, remarks = compare(database, str(source), lambda text: None)
    return {group.title: [" ".join(row) for row in rows] for group, rows in found}, remarks


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    """A database with all kinds of records: the sample and what f1db adds."""
    path = tmp_path_factory.mktemp("merged") / "merged.db"
    load([str(SAMPLE), str(F1DB)], str(path), CORRECTIONS, lambda text: None)
    return path


@pytest.fixture
def copy(merged, tmp_path):
    """Returns a copy of that database, as if from other sources, after some SQL statements."""

    def copy(*statements):
        path = Path(shutil.copy(merged, tmp_path / "copy.db"))
        return changed(path, "UPDATE sources SET name = 'another ' || name", *statements)

    return copy


PLANTED = planted("differences.txt")


@pytest.mark.parametrize(("title", "statement", "row"), PLANTED)
def test_a_planted_difference_is_the_only_one_and_ready_for_corrections_csv(
    title, statement, row, copy, merged
):
    [title] = [group.title for group in GROUPS if group.title.startswith(title)]
    assert compared(copy(statement), merged)[0] == {title: [row]}


def test_each_group_has_a_difference_that_it_reports():
    assert all(any(group.title.startswith(title) for title, _, _ in PLANTED) for group in GROUPS)


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE results SET grid = NULL, points = NULL, rank = NULL, milliseconds = NULL
           WHERE raceId IN (SELECT raceId FROM races WHERE year = 2023)""",
        "UPDATE results SET laps = 9 WHERE RACE(1957/5) AND DRIVER(moss)",  # has two results
        # the second of two results, with the number of another car
        "UPDATE results SET number = 99 WHERE RACE(1957/5) AND DRIVER(moss) AND number = 18",
        "UPDATE results SET positionOrder = 20 WHERE RACE(2023/18) AND DRIVER(piastri)",  # retired
        # of several drivers
        "UPDATE driver_standings SET position = 22 WHERE RACE(2023/18) AND points = '0'",
        "UPDATE results SET statusId = 1 WHERE RACE(2023/18)",
    ],
)
def test_an_unknown_or_ambiguous_value_is_not_a_difference(statement, copy, merged):
    assert compared(copy(statement), merged)[0] == {}


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
    found, remarks = compared(sample_database, F1DB)
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


def run(*arguments, **options):
    command = [sys.executable, "-m", "racedata", "check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def test_the_report_has_a_table_per_group_and_ten_rows_unless_all_are_asked_for(copy, merged):
    path = copy("UPDATE results SET points = '99' WHERE RACE(2023/18)")
    finished, everything = (
        run("--database", path, "--against", merged, *more) for more in ([], ["--all"])
    )
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
        (
            "/none",
            "/none: not found; expected a folder of CSV files, a zip of them, "
            "the URL of such a zip, or a name",
        ),
        ("", "--against '': expected one source"),
        ("jolpica f1db", "--against 'jolpica f1db': expected one source"),
        (os.devnull, f"{os.devnull}: neither a file nor a folder; expected "),
    ],
)
def test_a_source_that_cannot_be_read_is_one_line_and_exit_status_1(
    sample_database, tmp_path, source, said
):
    finished = run(
        "--database",
        sample_database,
        "--against",
        source,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert (finished.returncode, finished.stdout, finished.stderr.count("\n")) == (1, "", 1)
    assert finished.stderr.startswith(f"racedata check: {said}")
    assert list(tmp_path.iterdir()) == []


def test_the_differences_of_full_dumps_are_known_by_number(dump_database, f1db):
    found, _ = compared(dump_database, f1db)
    assert [len(found.get(group.title, [])) for group in DOUBTS] == [
        *(15, 22, 0),  # of the lists
        *(11, 28, 70, 53, 2, 48, 52),  # to race times
        *(101, 306, 219, 468, 57, 272),  # to places in qualifying
        *(129, 2, 0, 0, 116, 36, 80),
    ]
    assert [len(found.get(group.title, [])) for group in CONVENTIONS] == [
        *(267, 209, 280, 181, 49, 107),
        *(0, 22, 42),  # of names
    ]
    lacking = (LACKED_BY_OURS, LACKED_BY_THE_RACE, LACKED_BY_THEIRS)
    assert [len(found[group.title]) for group in lacking] == [49, 24, 60]

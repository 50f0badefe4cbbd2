"""racedata.loader.corrections and correction_lines: known errors of a dump are corrected, and
nothing else changes.
"""

import csv
import os
import re
from collections import Counter

import pytest
from support import PACKAGE, SAMPLE
from support.answers import client
from support.apis import answers_of, hurried, served
from support.loads import (
    built,
    edit,
    edited,
    expected_lines,
    file_of_corrections,
    loader_settings,
    racedata,
    run_loader,
    select,
)

from racedata.loader.correction_lines import Correction, Line
from racedata.loader.corrections import CORRECTIONS, HEADER, corrections_at
from racedata.loader.errors import LoadError
from racedata.loader.refresh import Refresh

# What a sentence in corrections.csv may name as a witness.
# "The dump" is the one with the error: a witness if it contradicts itself.
NAMES = """the dump|Ergast|f1db|Jolpica-F1|OpenF1|Autosport|autosportworld.info|BBC Sport|Crash.net
enjoyf1.com|ESPN|f1-gate.com|formula1.com|formule1.kmedia.fr|forumula1.com|GPblog|GPFans
gptoday.net|grandprix.com|jacky-ickx-fan.com|L'Équipe|La Presse|laberezina.com|Motor Sport,
motorsport-magazin.com|Motorsport.com|motorsportm8.com|newsonf1.net|OldRacingCars|PlanetF1
RaceFans|racingchronicles.com|Radio Times|research-racing.business.t-online.de
setbyspeed.blogspot.com|Speedweek|Sports Car Digest|The National|The Telegraph|Wikipedia"""
WITNESSES = NAMES.replace("\n", "|").split("|")
# Rows of the season after the dumps.
LATER = ("2026/19", "cadillac", "madring")


VERSTAPPEN = "results,2023/18/max_verstappen"
RULE = 'rule,local-times,,,,"The dump has local times, a test"'
RULED = [f"races,2023/{n},time,19:00:00,18:00:00,rule local-times" for n in (18, 9)]
RACE = "JOIN races USING (raceId) WHERE year = 2023 AND round = 18"


def test_a_file_of_ones_own_is_added_to_the_projects_and_comes_first(tmp_path):
    project = corrections_at(CORRECTIONS)
    first = next(line.correction for line in project if line.correction.column == "grid")
    mine = file_of_corrections(
        tmp_path,
        f"{first.table},{first.key.upper()},grid,{first.wrong},77,me",
        "results,2023/18/alonso,laps,49,50,me",
    )
    own, other, *others = corrections_at(mine)
    assert (own.correction.right, other.correction.right) == ("77", "50")
    assert len(others) == len(project) - 1
    assert {line.correction for line in others} < {line.correction for line in project}


def test_the_projects_own_file_is_known_at_a_relative_path(monkeypatch):
    monkeypatch.chdir(CORRECTIONS.parent.parent)
    relative = CORRECTIONS.relative_to(CORRECTIONS.parent.parent)
    assert not any(line.is_own for line in corrections_at(relative))


@pytest.mark.parametrize("case", expected_lines("wrong-corrections.txt"))
def test_a_line_that_makes_no_sense_is_refused(tmp_path, case):
    """A case has the line without its last column, and then what is said about it."""
    line, said = re.fullmatch(r"((?:[^,]*,){4}[^,:]*)(.*)", case).groups()
    with pytest.raises(LoadError) as error:
        corrections_at(file_of_corrections(tmp_path, f"{line},a test"))
    assert str(error.value).startswith(f"corrections.csv{said}") and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "races,2023/18,round,18,17,a test",
            ": races 2023/18 round: '17'; expected no two rows with the same key",
        ),
        (
            r"results,2023/18/alonso,constructor,aston_martin,\N,a test",
            r": results 2023/18/alonso constructor: '\\N'; expected a known value",
        ),
    ],
)
def test_a_line_that_is_not_a_correction_fails_the_load(tmp_path, line, said):
    file = file_of_corrections(tmp_path, line)
    run = run_loader(SAMPLE, tmp_path / "x.db", "--corrections", file)
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert run.stderr.startswith(f"racedata load: corrections.csv{said}")
    assert not (tmp_path / "x.db").exists()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            [RULE, "", *RULED, "drivers,alonso,number,14,41,rule other"],
            "line 6, column source: 'rule other'; expected a sentence, or a rule that a line gives",
        ),
        ([*RULED, RULE, RULE], "line 5, columns table, key, column: 'rule, local-times, "),
        (
            ["drivers,alonso,code,ALO,ALX,a test", "drivers,Alonso,code,ALX,ALZ,a test"],
            "line 3, columns table, key, column: 'drivers, Alonso, code' appears twice; expected",
        ),
    ],
)
def test_an_unknown_rule_or_two_lines_about_the_same_are_refused_with_their_line(
    tmp_path, lines, said
):
    with pytest.raises(LoadError, match=f"^corrections.csv, {said}"):
        corrections_at(file_of_corrections(tmp_path, *lines))


@pytest.mark.parametrize(("corrections", "number"), [(CORRECTIONS, 87), (None, 38)])
def test_none_switches_corrections_off(source, tmp_path, corrections, number):
    for old, new in ((",14,ALO,", ",38,ALO,"), (",alonso,", ",bearman,")):
        edit(source / "drivers.csv", old, new)
    sql = "SELECT number FROM drivers WHERE driverRef = 'bearman'"
    assert select(built(source, tmp_path / "x.db", corrections), sql) == [(number,)]


def test_the_errors_of_a_further_source_are_corrected_before_its_races_are_matched(
    source, tmp_path
):
    edit(source / "races.csv", ",2023-10-22,", ",2023-10-12,")
    base = edited(SAMPLE, tmp_path / "base", qualifying=lambda row: None)
    file = file_of_corrections(tmp_path, "races,2023/18,date,2023-10-12,2023-10-22,a test")
    run = run_loader(source, tmp_path / "x.db", "--corrections", file, base)
    assert (run.returncode, run.stderr) == (0, "") and "no matching race" not in run.stdout
    assert select(tmp_path / "x.db", f"SELECT count(*) FROM qualifying {RACE}") == [(20,)]


def test_no_command_accepts_or_remembers_corrections_that_make_a_calendar_wrong(database, tmp_path):
    line = "races,2023/18,date,2023-10-22,2032-10-22,a test"
    said = "the date of 2023/18 United States Grand Prix is '2032-10-"
    file = file_of_corrections(tmp_path, line)
    before = database.read_bytes()
    for words in (["build"], ["load", SAMPLE], ["refresh", "--from", SAMPLE]):
        run = racedata(*words, "--database", database, "--corrections", file)
        assert run.returncode == 1 and run.stderr.count("\n") == 1
        assert run.stderr.startswith(f"racedata {words[0]}: {file.name}: {said}")
        assert database.read_bytes() == before
    assert racedata("build", "--database", database).stdout.endswith(": nothing new\n")


def test_a_list_that_is_not_a_file_fails_the_load(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("none.csv", "folder", "pipe"):
        run = run_loader(SAMPLE, tmp_path / "x.db", "--corrections", tmp_path / name)
        what = "no such file" if name == "none.csv" else "not a regular file"
        assert run.stderr == (
            f"racedata load: {tmp_path / name}: {what}; "
            "expected a file of corrections, or default or none; nothing was changed\n"
        )


def said(database, command, *arguments):
    """What a command says."""
    run = racedata(command, *arguments, "--database", database)
    return run.stdout + run.stderr


def test_a_file_is_used_by_later_commands_until_another_is_named(tmp_path, monkeypatch):
    """A relative name names the same file from another folder, too. Another sentence is new."""
    database, file = (
        tmp_path / "x.db",
        file_of_corrections(tmp_path, f"{VERSTAPPEN},grid,6,7,a test"),
    )
    monkeypatch.chdir(tmp_path)
    said(database, "load", SAMPLE, "--corrections", "corrections.csv")
    monkeypatch.chdir("/")
    for command, *arguments in (
        *(["build"], ["build", "--corrections="], ["load"], ["sources", "--remove", "openf1"]),
    ):
        said(database, command, *arguments)
        assert [row[-2] for row in told(database)] == ["7"], command
    refresh_from(SAMPLE, database)
    assert [row[-2] for row in told(database)] == ["7"]
    file_of_corrections(tmp_path, f"{VERSTAPPEN},grid,6,7,a better test")
    assert "corrections" in said(database, "build")
    assert [row[-1] for row in told(database)] == ["a better test"]
    for word in ("none", "default"):
        assert "changed" in said(database, "build", "--corrections", word)
        assert "nothing new" in said(database, "build")
        assert select(database, f"SELECT grid FROM results {RACE} AND number = 1") == [(6,)]
        said(database, "build", "--corrections", file)


def test_a_remembered_file_that_is_gone_is_an_error_that_says_what_to_do(tmp_path):
    """It is remembered even if the database stays the same."""
    database = built(SAMPLE, tmp_path / "x.db", None)
    file = file_of_corrections(tmp_path, f"{VERSTAPPEN},grid,1,7,never applied")
    assert "nothing new" in said(database, "build", "--corrections", file)
    file.unlink()
    error = (
        f"{file}: no such file, but corrections were read from it before; name another: "
        "--corrections FILE, default (the project's own) or none; nothing was changed\n"
    )
    for command in ("load", "build"):
        assert said(database, command) == f"racedata {command}: {error}"
    assert "nothing new" in said(database, "build", "--corrections", "default")
    assert "nothing new" in said(database, "build")


@pytest.fixture(scope="module")
def corrections():
    """The lines of the project's file, each with the sentence of its rule, if it has one."""
    lines = corrections_at(CORRECTIONS)
    return [
        {
            name: r"\N" if value is None else value
            for name, value in zip(HEADER.split(","), line.correction)
        }
        for line in lines
    ]


@pytest.mark.parametrize("source", ["dump", "f1db", "jolpica"])
def test_every_correction_of_the_project_is_applied_to_the_dump_that_has_the_error(
    source, corrections, request, tmp_path
):
    """A sentence about an error of f1db or Jolpica-F1 begins with its name; others: Ergast."""
    path = request.getfixturevalue(source)
    begins = {"f1db": ("f1db has",), "jolpica": ("Jolpica-F1 has",)}
    own = begins.get(source, ("f1db has", "Jolpica-F1 has"))
    expected = {
        (row["table"], row["key"], row["column"])
        for row in corrections
        if row["source"].startswith(own) == (source in begins) and row["key"] not in LATER
    }
    run = run_loader(path, tmp_path / "x.db")
    assert "obsolete" not in run.stdout and "corrected: " in run.stdout
    applied = {*select(tmp_path / "x.db", "SELECT tableName, key, columnName FROM corrections")}
    assert expected - applied == set()


def test_no_two_rows_get_the_same_place(corrections):
    places = Counter(
        (row["table"], *row["key"].split("/")[:2], row["column"], row["right"])
        for row in corrections
        if row["column"] in ("grid", "position", "positionOrder")
        # The pit lane, and places in the standings that are shared.
        and row["right"] != "0"
        and "standings" not in row["table"]
    )
    assert [place for place, n in places.items() if n > 1] == []


def test_each_value_that_is_not_corrected_is_named_once_with_a_reason(corrections):
    with (PACKAGE / "loader" / "not_corrected.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        here, there = (None if row[name] == r"\N" else row[name] for name in ("here", "there"))
        # raises LoadError for a line that makes no sense
        line = Correction(row["table"], row["key"], row["column"], here, there, row["reason"])
        Line("not_corrected.csv", line)
        assert row["reason"] and row["state"] in ("open", "explained")
        assert (here, there) != (None, None)
    keys = [(row["table"], row["key"], row["column"]) for row in rows]
    assert len({*keys}) == len(keys)
    assert not {*keys} & {(row["table"], row["key"], row["column"]) for row in corrections}


def test_every_correction_names_two_witnesses(corrections):
    def witnesses(sentence):
        return [name for name in WITNESSES if name.lower() in sentence.lower()]

    named = {row["source"]: witnesses(row["source"]) for row in corrections}
    assert [sentence for sentence, names in named.items() if len(names) < 2] == []
    assert {name for names in named.values() for name in names} == {*WITNESSES}


# The table `corrections`.

TOLD = "SELECT tableName, key, columnName, sourceValue, value, witnesses FROM corrections"


def told(database):
    """The table `corrections`, without its ids."""
    return select(database, TOLD)


GRID = f"{VERSTAPPEN},grid,16,6,a test"
TOLD_GRID = ("results", "2023/18/max_verstappen", "grid", "16", "6", "a test")


def erring(tmp_path, name="erring", **values):
    """A copy of the sample in which Verstappen has other values in the results of 2023/18."""

    def edit(row):
        is_it = (row["raceId"], row["driverId"]) == ("67", "36")
        return row | values if is_it else row

    return edited(SAMPLE, tmp_path / name, results=edit)


def test_the_table_has_only_corrections_of_records_that_a_merge_used(tmp_path):
    def gone(row):
        return None if row["raceId"] == "67" else row

    def q1(row):
        is_it = (row["raceId"], row["driverId"]) == ("67", "36")
        return row | {"q1": "1:00.000"} if is_it else row

    base = edited(erring(tmp_path, grid="16"), tmp_path / "base", qualifying=gone)
    further = edited(erring(tmp_path, "other", laps="6"), tmp_path / "further", qualifying=q1)
    qualifying = "qualifying,2023/18/max_verstappen,q1,1:00.000,1:35.346,a test"
    lines = [GRID, qualifying, "results,2023/18/max_verstappen,laps,6,56,a test"]
    database = built([base, further], tmp_path / "x.db", file_of_corrections(tmp_path, *lines))
    told_q1 = ("qualifying", "2023/18/max_verstappen", "q1", "1:00.000", "1:35.346", "a test")
    assert told(database) == [told_q1, TOLD_GRID]


def refresh_from(source, database):
    """Refreshes a database from an API that has the data of a dump."""
    api, said = built(source, database.parent / "api.db", None), []
    with served(answers_of(client(api))) as server:
        settings = loader_settings(database, "")
        Refresh(settings, [server.url], 2023, lambda text: None, hurried).run(said.append)
    assert said[-1].startswith(f"{database}: nothing new after ")

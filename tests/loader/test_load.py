"""racedata.loader.load and reading: what they accept, what they refuse without a change, and what
they build.
"""

import csv
import io
import os
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from collections import Counter, defaultdict
from contextlib import closing

import pytest
from support import SAMPLE
from support.loads import (
    LOAD,
    assert_refused,
    built,
    csv_rows,
    edit,
    expected_lines,
    refused,
    rows_of,
    run_loader,
)

from racedata.database import SCHEMA, SCHEMA_VERSION
from racedata.loader.errors import LoadError
from racedata.loader.files.archives import Dump
from racedata.loader.load import load
from racedata.loader.sources import PUBLISHED, dump
from racedata.loader.stage import Stage
from racedata.model import BY_NAME, TABLES

REQUIRED = [table.name for table in TABLES if table.required]


# What is said, and what is changed in the file that it names. `\\n` is the end of a line.
LINES = expected_lines("wrong-values.txt")
LONG = '\n2,"' + "x" * 200_000
CHANGES = [
    *zip(LINES[::2], LINES[1::2]),
    ("status.csv, line 3: broken CSV (field larger than", f"\n2, -> {LONG}"),
]


@pytest.mark.parametrize(("said", "change"), CHANGES)
def test_a_wrong_value_is_refused_with_file_line_column_value_and_what_was_expected(
    source, database, said, change
):
    old, new = change.replace(r"\n", "\n").replace(r"\t", "\t").split(" -> ")
    edit(source / said.partition(",")[0], old, new)
    assert_refused(source, database, f"{source}: {said}")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("1957-01-13", "1958-01-01", "1957/1 Argentine Grand Prix is '1958-01-01'"),
        ("2023-03-03,11", "2022-11-30,11", "fp1 of 2023/1 Bahrain Grand Prix is '2022-11-30'"),
    ],
)
def test_a_date_outside_of_its_season_is_refused(source, database, old, new, said):
    edit(source / "races.csv", old, new)
    assert_refused(source, database, f"{source}: the date of {said}; expected a date in its season")


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("drivers.csv", "Räikkönen", b"R\xe4ikk\xf6nen", "line 50, column surname: b'\\xe4'"),
        ("status.csv", "\n2,", b"\n\xe9,", "line 3, column statusId: b'\\xe9'"),
        ("drivers.csv", "driverId,", "driverId,".encode("utf-16"), "line 1: b'\\xff'"),
    ],
)
def test_a_file_that_is_not_utf8_is_refused_with_its_place(source, database, file, old, new, said):
    path = source / file
    path.write_bytes(path.read_bytes().replace(old.encode(), new))
    assert_refused(source, database, f"{file}, {said}; expected UTF-8")


@pytest.mark.parametrize("table", REQUIRED)
def test_a_required_table_that_is_absent_or_empty_is_refused(source, database, table):
    path = source / f"{table}.csv"
    path.write_text(path.read_text(encoding="utf-8").partition("\n")[0] + "\n", encoding="utf-8")
    run = run_loader(source, database)
    # If a later table refers to it, that is refused first, so only part of the message is compared.
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert f"{table}.csv: no rows; expected at least one" in run.stderr
    path.write_bytes(b"")
    said = f"{table}.csv, line 1, column {BY_NAME[table].names[0]}: not in the header, which has no"
    assert_refused(source, database, said)
    path.unlink()
    said = f"{source}: no {table}.csv in it; expected circuits.csv, constructors.csv, "
    assert_refused(source, database, said)


def test_a_source_that_does_not_exist_is_refused(tmp_path, database):
    said = "expected a folder of CSV files, a zip of them, the URL of such a zip, or a name"
    assert_refused(
        tmp_path / "none",
        database,
        f"{tmp_path / 'none'}: not found; {said}: {', '.join(PUBLISHED)}",
    )


def test_values_that_a_reader_must_not_store_are_refused_with_the_reason(tmp_path, monkeypatch):
    def read(opened, stage):
        stage.insert("circuits", ["circuitId", "circuitRef"], [[1], ["monza"]])

    monkeypatch.setattr(dump, "LAYOUTS", [dump.Layout("", read)])
    said = f"{tmp_path}: NOT NULL constraint failed: circuits.name"
    with (
        closing(sqlite3.connect(":memory:", isolation_level=None)) as db,
        pytest.raises(LoadError, match=said),
    ):
        db.executescript(SCHEMA)
        dump.read_dump(Dump(str(tmp_path), tmp_path, None), Stage(db, lambda text: None))


def test_a_special_file_is_refused_as_a_source(source, database, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero"):
        assert_refused(
            path, database, f"{path}: neither a file nor a folder; expected a folder of CSV files"
        )


def zip_of(path, status):
    """A zip of the sample, whose status.csv has these blocks of bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in SAMPLE.iterdir():
            with archive.open(file.name, "w") as member:
                for block in status if file.stem == "status" else [file.read_bytes()]:
                    member.write(block)
    return path


# Runs a command, prints the most memory it took in KB, and exits with its status.
MEASURED = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


def test_a_line_of_60_mb_is_refused_in_150_mb_of_memory(database, tmp_path):
    source = zip_of(tmp_path / "data.zip", [b"statusId,status\n", *[b"," * 10**6] * 60])
    with refused(database):
        # A small process between this one and the loader: a child begins with the memory of its
        # parent.
        command = [sys.executable, "-c", MEASURED, *LOAD, source, "--database", database]
        process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert int(process.stdout) * 1024 < 150_000_000
    assert process.returncode == 1
    said = "status.csv, line 2: longer than 1,000,000 characters; expected a row"
    assert said in process.stderr and process.stderr.count("\n") == 1


def test_without_a_source_the_database_is_built_from_the_same_source_again(
    source, database, tmp_path
):
    # the path is not relative to the folder
    run_loader(source.name, database, cwd=source.parent).check_returncode()
    edit(source / "circuits.csv", "Spielberg", "Zeltweg")
    again = run_loader("", database)
    assert again.stdout.rstrip().endswith(f" from {source}")
    assert "Zeltweg" in str(rows_of(database)["circuits"])
    source.rename(tmp_path / "gone")
    assert_refused("", database, f"{source}: not found; expected a folder of CSV files")
    new = run_loader("", tmp_path / "new.db")
    assert new.stdout.rstrip().endswith(f" from {SAMPLE}")
    database.write_bytes(database.read_bytes()[:4000])
    assert_refused(
        "",
        database,
        f"{database} is damaged (its size has changed since it was built); to build a new one (",
    )


def test_the_report_says_which_tables_are_absent(source, tmp_path):
    names = {path.stem for path in source.glob("*.csv")} - {*REQUIRED}
    for name in names:
        (source / f"{name}.csv").unlink()
    lines = load([str(source)], str(tmp_path / "x.db"), None, lambda text: None)
    rows = rows_of(tmp_path / "x.db")
    assert rows["seasons"] == [(year, None) for year in sorted({row[1] for row in rows["races"]})]
    for name in names - {"seasons"}:
        assert f"{name:<22}{'no file':>12}{0:>13}" in lines
        assert rows[name] == []


def as_csv(rows, **options):
    text = io.StringIO()
    csv.writer(text, **{"lineterminator": "\n", **options}).writerows(rows)
    return text.getvalue().encode()


def without_missing_end(row):
    while row and row[-1] == r"\N":
        row = row[:-1]
    return row


def rows_without_missing_ends(rows):
    return as_csv([without_missing_end(row) for row in rows])


STYLES = {
    "BOM, short rows in another order": lambda rows: (
        b"\xef\xbb\xbf" + rows_without_missing_ends([rows[0], *rows[:0:-1]])
    ),
    "CRLF, partly quoted": lambda rows: as_csv(
        rows, lineterminator="\r\n", quoting=csv.QUOTE_NONNUMERIC
    ),
    "quoted, unknown columns": lambda rows: as_csv(
        [[*row, f"unknown{i}"] for i, row in enumerate(rows)], quoting=csv.QUOTE_ALL
    ),
    "columns in another order, empty for missing": lambda rows: as_csv(
        [["" if value == r"\N" else value for value in row[::-1]] for row in rows]
    ),
    # as published dumps have `Argentinian `
    "blanks": lambda rows: as_csv(
        [rows[0], *([f" {value} " for value in row] for row in rows[1:])]
    ),
    "blank lines": lambda rows: as_csv(rows).replace(b"\n", b"\n\n"),
}


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_a_dump_written_in_another_style_gives_the_same_database(
    source, sample_database, tmp_path, style
):
    for path in source.glob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        path.write_bytes(style(rows))
    assert rows_of(built(source, tmp_path / "x.db")) == rows_of(sample_database)


def test_the_database_says_what_it_is(sample_database):
    with closing(sqlite3.connect(sample_database)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT isSample FROM build").fetchone() == (1,)
        (built_at,) = db.execute("SELECT builtAt FROM build").fetchone()
        ((*source, read_at, is_loaded, gave, is_provisional),) = db.execute(
            "SELECT * FROM sources"
        ).fetchall()
        counts = dict(db.execute("SELECT * FROM row_counts"))
        assert counts == {
            name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in counts
        }
        strict = {
            row[1]: row[5]
            for row in db.execute("PRAGMA table_list")
            if row[2] == "table" and not row[1].startswith("sqlite_")
        }
    files = [SAMPLE / f"{table.name}.csv" for table in TABLES]
    checksum = Dump("", SAMPLE, None).checksum(file for file in files if file.exists())
    assert source == [1, "sample", "sample", "CC BY-NC-SA 3.0 and 4.0", checksum]
    assert gave.startswith(
        "results of 8 races (1957 to 2023), fastest laps of 5 races (2005 to 2023), "
        "qualifying of 6 races (2005 to "
    )
    assert (is_loaded, is_provisional, read_at <= built_at) == (1, 0, True)
    assert len(built_at) == len("2023-07-02T13:00:00Z")
    assert set(counts) == {table.name for table in TABLES}
    assert set(strict.values()) == {1}


def test_the_report_lists_tables_rows_and_seasons(tmp_path):
    run = run_loader(SAMPLE, tmp_path / "x.db")
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    assert lines[0].split() == ["table", "in", "the", "base", "stored"]
    assert ["lap_times", "1,034", "1,034"] in [line.split() for line in lines]
    assert lines[18:] == [
        "licence of the whole: CC BY-NC-SA 4.0; name sample, and say that it was changed",
        f"{tmp_path / 'x.db'}: 1957 to 2023 (5 seasons, 88 races) from {SAMPLE}",
    ]


def ordered_rows(path, table):
    """The rows of a table in the order of `record`, each with the year and round of its race."""
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        return db.execute(
            f"""SELECT t.*, year, round FROM {table} AS t JOIN races USING (raceId)
                ORDER BY year, round, record"""
        ).fetchall()


def csv_rows_of(folder, table):
    """The rows of a table of a dump: a dict each, numbers as numbers, with the year and round of
    the race.
    """

    def read(name):
        rows = csv_rows(folder, name)
        return [
            {key: int(value) if str(value).isdigit() else value for key, value in row.items()}
            for row in rows
        ]

    races = {
        race["raceId"]: {"year": race["year"], "round": race["round"]} for race in read("races")
    }
    return [row | races[row["raceId"]] for row in read(table)]


def place(row):
    """A sort key: positions in order, then rows without a position."""
    return (row["position"] == "\\N", row["position"])


ORDERS = {
    "results": lambda row: (row["positionOrder"], row["resultId"]),
    "sprint_results": lambda row: (row["positionOrder"], row["resultId"]),
    "qualifying": lambda row: (place(row), row["qualifyId"]),
    "lap_times": lambda row: (row["lap"], place(row), row["driverId"]),
    "pit_stops": lambda row: (row["time"], row["lap"], row["stop"], row["driverId"]),
    "driver_standings": lambda row: (place(row), row["driverStandingsId"]),
    "constructor_standings": lambda row: (place(row), row["constructorStandingsId"]),
}


def source_and_database(request, name):
    """The folder of a dump, and the path of the database built from it."""
    folder = SAMPLE if name == "sample" else request.getfixturevalue(name)
    return folder, request.getfixturevalue(f"{name}_database")


@pytest.mark.parametrize("name", ["sample", "dump"])
@pytest.mark.parametrize("table", ORDERS)
def test_record_numbers_the_rows_from_1_in_the_order_they_are_served(request, name, table):
    folder, path = source_and_database(request, name)
    entrant = "constructorId" if table == "constructor_standings" else "driverId"
    expected = sorted(
        csv_rows_of(folder, table), key=lambda row: (row["year"], row["round"], ORDERS[table](row))
    )
    rows = ordered_rows(path, table)
    names = ("raceId", entrant, *["resultId"] * (table == "results"))
    assert [[row[name] for name in names] for row in rows] == [
        [row[name] for name in names] for row in expected
    ]
    counts = Counter()
    for row in rows:
        group = row["raceId"] if table in ("lap_times", "pit_stops") else None
        counts[group] += 1
        assert row["record"] == counts[group]


def test_a_qualifying_row_without_a_position_is_the_last_of_its_race(source, tmp_path):
    """A season that is only in races is added without a URL."""
    edit(source / "qualifying.csv", "\n1,9,16,16,6,1,", "\n1,9,16,16,6,\\N,")
    (source / "seasons.csv").write_text(
        "year,url\n2005,https://example.org/2005\n2031,https://example.org/2031\n"
    )
    rows = rows_of(built(source, tmp_path / "x.db"))
    qualifying = ordered_rows(tmp_path / "x.db", "qualifying")
    drivers = [row["driverId"] for row in qualifying if row["raceId"] == 9]
    assert (drivers[0], drivers[-1]) == (60, 16)
    years = {row[1] for row in rows["races"]}
    urls = {year: f"https://example.org/{year}" for year in (2005, 2031)}
    assert dict(rows["seasons"]) == dict.fromkeys(years) | urls


def test_standings_are_final_after_the_last_scheduled_round_of_a_season(
    source, sample_database, tmp_path
):
    """Without its last round, which is race 71 here, a season has no final standings."""
    tables = ("driver_standings", "constructor_standings")
    for table in tables:
        path = source / f"{table}.csv"
        rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(row for row in rows if row.split(",")[1] != "71"), encoding="utf-8")
    built(source, tmp_path / "x.db")
    for table in tables:
        final = ordered_rows(sample_database, table)
        rounds = {(row["year"], row["round"]) for row in final if row["final"] == 1}
        of_1957 = {(1957, 8)} if table == "driver_standings" else set()
        assert rounds == of_1957 | {(1997, 17), (2005, 19), (2021, 22), (2023, 22)}
        running = [row for row in ordered_rows(tmp_path / "x.db", table) if row["year"] == 2023]
        assert {row["round"] for row in running} == {9, 18}
        assert not any(row["final"] for row in running)


@pytest.mark.parametrize(("name", "least"), [("sample", 8), ("dump", 1000)])
def test_a_driver_in_the_standings_has_the_constructors_of_the_season_so_far(request, name, least):
    folder, path = source_and_database(request, name)
    results = defaultdict(list)
    for row in sorted(
        csv_rows_of(folder, "results"), key=lambda row: (row["year"], row["round"], row["resultId"])
    ):
        results[row["year"], row["driverId"]].append((row["round"], str(row["constructorId"])))
    several = 0
    for row in ordered_rows(path, "driver_standings"):
        constructors = [
            name for round, name in results[row["year"], row["driverId"]] if round <= row["round"]
        ]
        assert row["constructors"] == " ".join(dict.fromkeys(constructors))
        several += " " in row["constructors"]
    assert several >= least


def test_a_constructor_that_only_entered_a_driver_comes_after_the_one_in_the_result(
    source, tmp_path
):
    result = next(
        row
        for row in csv_rows_of(source, "results")
        if (row["year"], row["round"]) == (2023, 9) and row["constructorId"] > 1
    )
    race, driver, constructor = (result[id] for id in ("raceId", "driverId", "constructorId"))
    text = f"raceId,driverId,constructorId\n{race},{driver},1\n"
    (source / "entries.csv").write_text(text, encoding="utf-8")
    standings = ordered_rows(built(source, tmp_path / "x.db"), "driver_standings")
    (found,) = (
        row["constructors"]
        for row in standings
        if (row["year"], row["round"], row["driverId"]) == (2023, 9, driver)
    )
    assert found == f"{constructor} 1"


def test_the_remarks_of_every_source_are_reported(source, tmp_path):
    def without_codes(name):
        dump = shutil.copytree(source, tmp_path / name)
        path = dump / "drivers.csv"
        path.write_text(path.read_text().replace(",code,", ",kode,", 1))
        return str(dump)

    said = load([without_codes("a"), without_codes("b")], str(tmp_path / "x.db"), None, print)
    remark = "drivers.csv: no column code, so it is unknown in all rows"
    assert said.count(remark) == 2

"""racedata.loader.load, load_command, reading, files.csvfile and report: what a load accepts,
what it refuses without a change, and what it reports.
"""

import csv
import io
import os
import shutil
import sqlite3
from contextlib import closing

import pytest
from support import SAMPLE
from support.loads import (
    assert_refused,
    built,
    edit,
    expected_lines,
    loader_settings,
    racedata,
    rows_of,
    run_loader,
)

from racedata.database import SCHEMA
from racedata.loader.errors import LoadError
from racedata.loader.files.archives import Dump
from racedata.loader.load import load
from racedata.loader.sources import PUBLISHED, dump
from racedata.loader.stage import Stage
from racedata.model import TABLE_BY_NAME, TABLES

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


def test_a_date_outside_of_its_season_is_refused(source, database):
    edit(source / "races.csv", "1957-01-13", "1958-01-01")
    said = "the date of 1957/1 Argentine Grand Prix is '1958-01-01'; expected a date in its season"
    assert_refused(source, database, f"{source}: {said}")


@pytest.mark.parametrize(
    ("words", "address", "said"),
    [
        (["load"], "https://[::1/x.zip", "https://[::1/x.zip: not the "),
        (["load"], "/dumps/\udcff", "/dumps/?: not in UTF-8; expected a path or URL that is"),
        (["check", "--against"], "http://[x]/x.zip", "http://[x]/x.zip"),
        (["refresh", "--from"], "http://exa\u2100mple/", "expected an http(s) URL with a host"),
    ],
)
def test_an_address_that_no_source_can_have_is_one_line(database, words, address, said):
    run = racedata(*words, address, "--database", database)
    assert run.returncode == 1 and run.stderr.count("\n") == 1 and said in run.stderr


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("drivers.csv", "Räikkönen", b"R\xe4ikk\xf6nen", "line 50, column surname: b'\\xe4'"),
        ("drivers.csv", "driverId,", "driverId,".encode("utf-16"), "line 1: b'\\xff'"),
    ],
)
def test_a_file_that_is_not_utf8_is_refused_with_its_place(source, database, file, old, new, said):
    path = source / file
    path.write_bytes(path.read_bytes().replace(old.encode(), new))
    assert_refused(source, database, f"{file}, {said}; expected UTF-8")


@pytest.mark.parametrize("table", REQUIRED)
def test_a_required_table_without_rows_or_a_header_is_refused(source, database, table):
    path = source / f"{table}.csv"
    path.write_text(path.read_text(encoding="utf-8").partition("\n")[0] + "\n", encoding="utf-8")
    with pytest.raises(LoadError):  # its message may be about a table that refers to it
        load([str(source)], loader_settings(database), lambda text: None)
    path.write_bytes(b"")
    first = TABLE_BY_NAME[table].names[0]
    said = f"{table}.csv, line 1, column {first}: not in the header, which has no"
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
        stage.insert_rows("circuits", ["circuitId", "circuitRef"], [[1, "monza"]])

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
    assert new.stdout.rstrip().endswith(" from sample")
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
    lines = load([str(source)], loader_settings(tmp_path / "x.db"), lambda text: None)
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


def test_the_report_lists_tables_rows_and_seasons(tmp_path):
    run = run_loader(SAMPLE, tmp_path / "x.db")
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    assert lines[0].split() == ["table", "first", "source", "database"]
    assert ["lap_times", "1,034", "1,034"] in [line.split() for line in lines]
    assert lines[18:] == [
        "licence of the whole: CC BY-NC-SA 4.0; name sample, and say that it was changed",
        f"{tmp_path / 'x.db'}: 1957 to 2023 (5 seasons, 88 races) from sample",
    ]


def test_the_remarks_of_every_source_are_reported(source, tmp_path):
    def without_codes(name):
        dump = shutil.copytree(source, tmp_path / name)
        path = dump / "drivers.csv"
        path.write_text(path.read_text().replace(",code,", ",kode,", 1))
        return str(dump)

    said = load([without_codes("a"), without_codes("b")], loader_settings(tmp_path / "x.db"), print)
    remark = "drivers.csv: no column code, so it is unknown in all rows"
    assert said.count(remark) == 2

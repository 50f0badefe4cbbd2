"""racedata.database: which files are rejected, and with which message."""

import lzma
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import PACKAGE, ROOT, SAMPLE, spoiling
from support.loads import select

from racedata.database import COMMAND, DatabaseError, read


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (spoiling.missing, "is missing"),
        (spoiling.folder, "is not a file"),
        (spoiling.fifo, "is not a file"),
        (spoiling.device, "is not a file"),
        (spoiling.loop, "cannot be read (Too many levels of symbolic links)"),
        (spoiling.unreadable, "cannot be read ("),
        (spoiling.emptied, "is not an SQLite database; to build it"),
        (spoiling.text, "is not an SQLite database; remove it"),
        (spoiling.endless, "is not an SQLite database; remove it"),
        (spoiling.overwritten, "is not an SQLite database; remove it"),
        (spoiling.foreign, "is an SQLite database, but not one of racedata; remove it"),
        (spoiling.version(3), "has schema version 3, older than this program's, 7; to build it"),
        (
            spoiling.version(0),
            "has schema version 0, older than this program's, 7; to build a new one",
        ),
        (
            spoiling.version(9),
            "has schema version 9, newer than this program's, 7; to build a new one",
        ),
        (spoiling.truncated, "is damaged"),
        (spoiling.header_only, "is damaged"),
        (spoiling.grown, "is damaged"),
    ],
)
def test_a_file_that_cannot_be_served_is_rejected_with_its_fault_and_what_to_run(
    database, spoil, fault
):
    spoil(database)
    with pytest.raises(DatabaseError) as rejected:
        read(database)
    message = str(rejected.value)
    assert message.startswith(f"{database} {fault}")
    assert "\n" not in message
    assert ("; " in message) == ("cannot be read" not in fault)


@pytest.mark.parametrize(
    "spoil",
    [
        spoiling.missing,
        spoiling.emptied,
        spoiling.truncated,
        spoiling.grown,
        spoiling.version(9),
        lambda path: path.write_bytes(
            lzma.decompress((ROOT / "tests" / "expected" / "schema-3.db.xz").read_bytes())
        ),
    ],
)
def test_the_command_that_the_message_names_works(database, spoil):
    spoil(database)
    with pytest.raises(DatabaseError) as rejected:
        read(database)
    command = str(rejected.value).partition(f"run: {COMMAND} ")[2].replace("SOURCE", str(SAMPLE))
    run = [sys.executable, "-m", "racedata", *shlex.split(command)]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL, timeout=60)
    read(database)


@pytest.mark.parametrize("command", [".venv/bin/racedata", "racedata"])
def test_the_command_to_run_is_that_of_the_checkout_if_make_has_installed_it_there(
    command: str, tmp_path: Path
) -> None:
    shutil.copytree(
        PACKAGE, tmp_path / "racedata", ignore=shutil.ignore_patterns("loader", "sample")
    )
    if "/" in command:
        (tmp_path / command).parent.mkdir(parents=True)
        (tmp_path / command).touch()
    code = "from racedata.database import BUILD, DatabaseError; print(DatabaseError('a.db', 'is missing', BUILD))"
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    ).stdout
    assert said == f"a.db is missing; to build it, run: {command} load SOURCE --database a.db\n"


def test_the_schema_in_the_file_describes_each_column_or_names_the_table_it_refers_to(
    sample_database,
):
    undescribed = []
    for table, sql in select(
        sample_database, "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
    ):
        before = ""
        for line in sql.splitlines():
            if re.match(r" +\w+ +(INTEGER|TEXT)", line) and not re.search(
                "-- |REFERENCES", before + line
            ):
                undescribed.append(f"{table}:{line}")
            before = line if line.lstrip().startswith("--") else ""
    assert undescribed == []


def test_one_changed_bit_is_found_wherever_it_is(database):
    good = database.read_bytes()
    for _ in range(100):
        spoiling.flipped(database)
        with pytest.raises(DatabaseError):
            read(database)
        database.write_bytes(good)
    read(database)


def test_reading_does_not_make_a_file(tmp_path):
    with pytest.raises(DatabaseError):
        read(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []

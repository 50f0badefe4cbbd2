"""Loads: the loader as a process, changes to a dump, the databases that it builds or keeps."""

import csv
import hashlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, cast

from racedata import cli
from racedata.database import CHECKSUM_BYTES, SCHEMA_VERSION, store_path, write_checksum
from racedata.loader import load
from racedata.loader.build import build_database
from racedata.loader.correct import apply_corrections
from racedata.loader.corrections import CORRECTIONS, HEADER, Corrections, corrections_at
from racedata.loader.reading import all_read, put_all_read
from racedata.loader.signals import END_SIGNALS
from racedata.loader.sources import addresses_in
from racedata.loader.store import Store
from racedata.model import RECORDS
from racedata.settings import LoaderSettings
from support import EXPECTED, PACKAGE, ROOT, SAMPLE

LOAD = [sys.executable, "-m", "racedata", "load"]

Row = dict[str, str]
Edit = Callable[[Row], Row | None]


def racedata(*words: Path | str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """`racedata`, finished: as a process of its own if that has options.

    Otherwise it runs in this process, which is faster.
    """
    if options:
        command = [sys.executable, "-m", "racedata", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, **options)
    code: object = 0
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as errors, signals_kept():
        try:
            cli.main([*map(str, words)])
        except SystemExit as ended:
            code = ended.code
    if isinstance(code, str):  # Python prints it
        print(code, file=errors)
        code = 1
    return subprocess.CompletedProcess(
        words, cast(int, code or 0), out.getvalue(), errors.getvalue()
    )


def run_loader(
    source: Path | str, database: Path, *arguments: Path | str, **options: Any
) -> "subprocess.CompletedProcess[str]":
    sources = [source] if source else []
    return racedata("load", *arguments, *sources, "--database", database, **options)


def built(
    source: Path | str | Sequence[Path], database: Path, corrections: Path | None = CORRECTIONS
) -> Path:
    """The path of a database built from one source or several: in this process, which is faster."""
    sources = [source] if isinstance(source, Path | str) else source
    addresses = [address for each in sources for address in addresses_in(str(each))]
    load.load(addresses, loader_settings(database, corrections), lambda text: None)
    return database


def loader_settings(database: Path, corrections: Path | str | None = None) -> LoaderSettings:
    """The settings of the loader for a database, with a file of corrections or none."""
    words: dict[Path | str | None, str] = {None: "none", CORRECTIONS: "default"}
    named = words.get(corrections, str(corrections))
    return LoaderSettings(database=str(database), corrections=named)


def file_of_corrections(folder: Path, *lines: str) -> Path:
    """The path of a file with lines of corrections."""
    path = folder / "corrections.csv"
    path.write_text("\n".join([HEADER, *lines, ""]), encoding="utf-8")
    return path


def next_version(folder: Path) -> Path:
    """A folder from which Python runs the next version of racedata.

    Its circuits have a further column.
    """
    shutil.copytree(PACKAGE, folder / "racedata")
    schema = folder / "racedata" / "schema.sql"
    version = "PRAGMA user_version = {};".format
    edit(schema, version(SCHEMA_VERSION), version(SCHEMA_VERSION + 1))
    edit(schema, "    circuitRef TEXT", "    nickname TEXT,\n    circuitRef TEXT")
    return folder


def rows_as_before(database: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of a database that the next version has built again, without its further column."""
    assert {nickname for (nickname,) in select(database, "SELECT nickname FROM circuits")} == {None}
    changed(database, "ALTER TABLE circuits DROP COLUMN nickname")
    return rows_of(database)


def built_with_corrections(database: Path) -> Path:
    """The path of a database built from the sample. First, the lines of expected/corrections.csv
    are applied to that backwards, so that they have something to correct.
    """
    header, *lines = (EXPECTED / "corrections.csv").read_text(encoding="utf-8").splitlines()
    backwards = database.with_name("backwards.csv")
    # its columns are named, so their order does not count
    swapped = header.replace("wrong,right", "right,wrong")
    backwards.write_text("\n".join([swapped, *lines, ""]), encoding="utf-8")
    with (
        all_read(["sample"], lambda text: None) as (stage,),
        closing(Store(store_path(database))) as store,
    ):
        for file in (backwards, EXPECTED / "corrections.csv"):
            stage.db.execute("DELETE FROM stage.corrections")
            apply_corrections(stage, corrections_at(file))
        put_all_read(store, [stage], lambda text: None)
        corrections = Corrections(corrections_at(CORRECTIONS))
        build_database(database, store, corrections, lambda text: None)
    backwards.unlink()
    return database


def copied_alone(database: Path, folder: Path) -> Path:
    """A copy of a database, alone in a new folder."""
    folder.mkdir()
    return Path(shutil.copy(database, folder / "racedata.db"))


def select(database: Path, sql: str) -> list[tuple[Any, ...]]:
    """The rows that a query finds in a database."""
    with closing(sqlite3.connect(database)) as db:
        return db.execute(sql).fetchall()


# The tables about sources, and about what they say and have said.
ABOUT_SOURCES = {"build", "sources", "origins", "corrections", "changes", "coverage", "ids"}
ABOUT_SOURCES |= {"discrepancies", "discrepancy_values"}
# The dump's ids of rows, which only number them.
ROW_IDS = ("resultId", "qualifyId", "driverStandingsId", "constructorStandingsId")


def columns_of_facts(database: Path) -> dict[str, list[str]]:
    """The names of columns by table."""
    columns: dict[str, list[str]] = {}
    for table, name in select(
        database,
        """SELECT tables.name, columns.name
           FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
           WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%'""",
    ):
        if table not in ABOUT_SOURCES and name not in ROW_IDS:
            columns.setdefault(table, []).append(name)
    return columns


def rows_of(database: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of each table except those about sources, without ROW_IDS.

    New rows have the next free ones.
    """
    return {
        table: select(database, f"SELECT {', '.join(names)} FROM {table}")
        for table, names in columns_of_facts(database).items()
    }


REFERENCES = {
    "raceId": "SELECT year || '/' || round FROM races",
    "circuitId": "SELECT circuitRef FROM circuits",
    "constructorId": "SELECT constructorRef FROM constructors",
    "driverId": "SELECT driverRef FROM drivers",
    "statusId": "SELECT status FROM status",
}


def facts_of(database: Path) -> dict[str, list[tuple[object, ...]]]:
    """The same rows, in any order, with references instead of ids.

    The ids differ by loader.
    """
    facts = {}
    for table, names in columns_of_facts(database).items():
        if table == "row_counts":
            continue
        columns = [
            f"({REFERENCES[name]} WHERE {name} = of_table.{name})" if name in REFERENCES else name
            for name in names
            if name not in ("record", "constructors")  # `constructors` has ids too
        ]
        rows = select(database, f"SELECT {', '.join(columns)} FROM {table} AS of_table")
        facts[table] = sorted(rows, key=repr)
    return facts


def is_whole(path: Path) -> bool:
    """Whether the checksum that the loader appends (schema.sql) is that of the file before it."""
    content = path.read_bytes()
    return hashlib.sha256(content[:-32]).digest() == content[-32:]


def changed(database: Path, *statements: str) -> Path:
    """The path of a database, after statements of SQL that leave it undamaged.

    In them, RACE(2023/18), DRIVER(alonso) and CONSTRUCTOR(alpine) are conditions or assignments.
    """
    database.write_bytes(database.read_bytes()[:-CHECKSUM_BYTES])
    with closing(sqlite3.connect(database)) as db, db:
        for statement in statements:
            # 0: no row is as the test expects
            assert db.execute(with_ids(statement)).rowcount, statement
    write_checksum(database)
    return database


def expected_lines(name: str) -> list[str]:
    """The lines of a file in tests/expected/."""
    path = ROOT / "tests" / "expected" / name
    return [*map(str.strip, path.read_text(encoding="utf-8").splitlines())]


def planted(name: str) -> list[list[tuple[str, str, str]]]:
    """From a file in tests/expected/: the faults of each database, which an empty line ends. Of
    each fault: the beginning of a title, SQL that plants it, its report.
    """
    databases = "\n".join(expected_lines(name)).split("\n\n")
    return [list(zip(*[iter(lines.splitlines())] * 3)) for lines in databases]


def with_ids(statement: str) -> str:
    for name, key, condition in (
        ("RACE", "raceId", r"races WHERE year || '/' || round = '\1'"),
        ("DRIVER", "driverId", r"drivers WHERE driverRef = '\1'"),
        ("CONSTRUCTOR", "constructorId", r"constructors WHERE constructorRef = '\1'"),
    ):
        found = f"{key} = (SELECT {key} FROM {condition})"
        statement = re.sub(rf"\b{name}\(([\w/]+)\)", found, statement)
    return statement


def edit(path: Path, old: str, new: str) -> None:
    """Replaces a text that is in the file once."""
    content = path.read_text(encoding="utf-8")
    assert content.count(old) == 1
    path.write_text(content.replace(old, new), encoding="utf-8")


@contextmanager
def refused(database: Path) -> Iterator[None]:
    """The block leaves the database unchanged, byte for byte, and no new file next to it."""
    before, files = database.read_bytes(), sorted(database.parent.iterdir())
    yield
    assert database.read_bytes() == before
    assert sorted(database.parent.iterdir()) == files


@contextmanager
def signals_kept() -> Iterator[None]:
    """A block in which the loader may handle signals as in a process of its own."""
    handlers = {number: signal.getsignal(number) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def assert_refused(source: Path | str, database: Path, *said: str, **options: Any) -> None:
    """Asserts that the loader refuses a source in one line with these words, changing nothing."""
    with refused(database):
        run = run_loader(source, database, **options)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (1, "", 1)
    assert run.stderr.startswith("racedata load: ")
    assert run.stderr.endswith("; nothing was changed\n")
    for words in said:
        assert words in run.stderr


def csv_rows(folder: Path, table: str) -> list[Row]:
    """The rows of a file of a dump."""
    with (folder / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def edited(source: Path, folder: Path, **edits: Edit) -> Path:
    """A copy of a dump. The edit of a table changes each row, or returns None to leave it out."""
    folder.mkdir(parents=True)
    for file in source.iterdir():
        if file.stem not in edits:
            (folder / file.name).write_bytes(file.read_bytes())
            continue
        rows = csv_rows(source, file.stem)
        with (folder / file.name).open("w", newline="", encoding="utf-8") as new:
            writer = csv.DictWriter(new, list(rows[0]))
            writer.writeheader()
            writer.writerows(filter(None, map(edits[file.stem], rows)))
    return folder


def race_ids(source: Path, year: int) -> dict[int, str]:
    """The raceId of each round of a season in a dump."""
    return {
        int(row["round"]): row["raceId"]
        for row in csv_rows(source, "races")
        if row["year"] == str(year)
    }


# The lists of a dump, and the columns that name their rows.
LISTS = dict(drivers="driverId", constructors="constructorId", circuits="circuitId")
LISTS |= dict(seasons="year", status="statusId")


def of_races(source: Path, folder: Path, is_wanted: Callable[[Row], bool]) -> Path:
    """A copy of a dump with some of its races, and only with what these name."""
    kept = {row["raceId"] for row in csv_rows(source, "races") if is_wanted(row)}
    tables = [path.stem for path in source.glob("*.csv")]
    named = {
        (name, row[name])
        for table in tables
        for row in csv_rows(source, table)
        if row.get("raceId") in kept
        for name in row.keys() & {"raceId", *LISTS.values()}
    }

    def edit_of(name: str) -> Edit:
        return lambda row: row if (name, row[name]) in named else None

    return edited(
        source, folder, **{table: edit_of(LISTS.get(table, "raceId")) for table in tables}
    )


def without(source: Path, folder: Path, year: int, *rounds: int, **edits: Edit) -> Path:
    """A copy of a dump without the records of some rounds, with edits as above."""
    gone = {id for round, id in race_ids(source, year).items() if round in rounds}

    def keep(table: str) -> Edit:
        edit = edits.get(table, dict)
        return lambda row: None if row["raceId"] in gone else edit(row)

    return edited(source, folder, **{**edits, **{table: keep(table) for table in RECORDS}})


def finished_sample(folder: Path) -> Path:
    """A dump like the sample, whose seasons before 2023 have only the races that were run."""
    with_results = {row["raceId"] for row in csv_rows(SAMPLE, "results")}
    kept = with_results | {*race_ids(SAMPLE, 2023).values()}

    def keep(row: Row) -> Row | None:
        return row if row["raceId"] in kept else None

    edits: dict[str, Edit] = dict.fromkeys(("races", *RECORDS), keep)
    return edited(
        SAMPLE, folder, **edits, seasons=lambda row: row if row["year"] != "1997" else None
    )


def with_many_lap_times(source: Path) -> Path:
    """Adds lap times to the source, so that loading it takes most of a second. Returns it."""
    path = source / "lap_times.csv"
    header, *rows = path.read_text().splitlines()
    rows = [row.removeprefix("67,") for row in rows if row.startswith("67,")]
    path.write_text(
        "\n".join([header, *(f"{race},{row}" for race in range(1, 89) for row in rows)])
    )
    return source


def add_laps(folder: Path, races: Collection[str], laps: int) -> Path:
    """Adds laps of each driver in these races of a dump."""
    rows = [row for row in csv_rows(folder, "results") if row["raceId"] in races]
    with (folder / "lap_times.csv").open("r+", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, next(csv.reader(file)), restval=r"\N")
        file.seek(0, os.SEEK_END)
        for number, row in enumerate(rows):
            known: dict[str, object] = {name: row[name] for name in ("raceId", "driverId")}
            for lap in range(1, laps + 1):
                time = f"1:{20 + number % 20}.{lap:03}"
                writer.writerow({**known, "lap": lap, "position": 1 + number % 20, "time": time})
    return folder


def is_in_step(database: Path) -> bool:
    """Whether a database was built from what its store has."""
    with closing(Store(store_path(database))) as store:
        return [store.state] == select(database, "SELECT storeId, revision FROM build")


def remembered(database: Path) -> dict[str, dict[str, Any]]:
    """What refreshes remember of each source, in the store."""
    with closing(Store(store_path(database))) as store:
        return {name: store.recalled(name) for name in store.remembered_sources()}


def remember(database: Path, facts: Mapping[str, Mapping[str, object]]) -> None:
    """Makes the store remember facts about sources."""
    with closing(Store(store_path(database))) as store:
        for name, of_source in facts.items():
            store.remember(name, of_source)

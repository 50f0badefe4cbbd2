"""An export, loaded by the sqlite3 shell, DuckDB, MariaDB and PostgreSQL, each into the tables of
Ergast's documentation. And what DuckDB makes of the views.
"""

import csv
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import pytest
from duckdb_extensions import import_extension
from support import ROOT
from support.loads import racedata, select
from support.processes import until

sys.path.insert(0, str(ROOT / "scripts"))

import release

# The columns that Ergast declares as other than text, and those that must be known.
INTEGERS = re.compile(
    ".*Id|year|round|alt|number|position(Order)?|grid|laps?|stop|wins|rank|milliseconds|fastestLap"
)
FLOATS = ("lat", "lng", "points")
REQUIRED = {
    "circuits": "circuitRef name url",
    "constructors": "constructorRef name url",
    "drivers": "driverRef forename surname url",
    "status": "status",
    "races": "year round circuitId name date",
    "constructor_results": "raceId constructorId",
    "constructor_standings": "raceId constructorId points wins",
    "driver_standings": "raceId driverId points wins",
    "lap_times": "raceId driverId lap",
    "pit_stops": "raceId driverId stop lap time",
    "qualifying": "raceId driverId constructorId number",
    "results": "raceId driverId constructorId grid positionText positionOrder points laps statusId",
    "seasons": "url",
    "sprint_results": "raceId driverId constructorId number grid positionText positionOrder points "
    "laps statusId",
}
KEYS = {"lap_times": "raceId driverId lap", "pit_stops": "raceId driverId stop", "seasons": "year"}
UNIQUE = {"circuits": "url", "constructors": "name", "drivers": "url", "races": "url"}
PARENTS = dict(circuitId="circuits", constructorId="constructors", driverId="drivers")
PARENTS |= dict(statusId="status", raceId="races")

WINS = """SELECT surname, count(*) FROM results JOIN drivers ON drivers.{id} = results.{id}
    WHERE {positionOrder} = 1 GROUP BY surname ORDER BY count(*) DESC, surname LIMIT 5"""


def create(name, header, quote):
    """Ergast's table for a file of a dump, with foreign keys."""

    def type_of(column):
        if INTEGERS.fullmatch(column):
            return "int"
        if column in FLOATS:
            return "float"
        if column == "dob" or column.endswith("date"):
            return "date"
        is_clock = column.endswith("_time") or (column == "time" and name in ("races", "pit_stops"))
        return "time" if is_clock else "varchar(3)" if column == "code" else "varchar(255)"

    def names(columns):
        return ", ".join(map(quote, columns.split()))

    key = KEYS.get(name, header[0])
    known = {*REQUIRED[name].split(), *key.split()}
    lines = [
        f"{quote(column)} {type_of(column)}{' NOT NULL' * (column in known)}" for column in header
    ]
    lines.append(f"PRIMARY KEY ({names(key)})")
    if name in UNIQUE:
        lines.append(f"UNIQUE ({names(UNIQUE[name])})")
    lines += [
        f"FOREIGN KEY ({names(column)}) REFERENCES {parent} ({names(column)})"
        for column, parent in PARENTS.items()
        if column in header and parent != name
    ]
    return f"CREATE TABLE {name} ({', '.join(lines)});"


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


# For each program: what runs SQL, the sign around a name, and what loads a file into a table.


def needs(program, package):
    if not shutil.which(program):
        pytest.skip(f"apt install {package}")


@contextmanager
def sqlite(folder):
    needs("sqlite3", "sqlite3")
    # It would say that a row has more or fewer fields than the table, or twice the same key. To it,
    # \N is a text.
    command = ["sqlite3", "-bail", "-separator", "\t", folder / "x.db"]
    yield (
        lambda sql: output(*command, input=sql),
        '"',
        '.import --csv --skip 1 "{path}" {name}',
    )


@contextmanager
def duck(folder):
    with closing(duckdb.connect()) as db:
        # by the order of columns; a value that is not of the column's type is an error
        yield (
            lambda sql: "".join(
                "\t".join(map(str, row)) + "\n" for row in db.execute(sql).fetchall()
            ),
            '"',
            "COPY {name} FROM '{path}' (HEADER, NULLSTR '\\N')",
        )


@contextmanager
def mariadb(folder):
    needs("mariadbd", "mariadb-server")
    data, socket = f"--datadir={folder / 'data'}", f"--socket={folder / 'socket'}"
    own = ("--no-defaults", "--user=root")
    client = ["mariadb", *own, socket, "-N", "-B", "--default-character-set=utf8mb4"]
    with open(folder / "log", "wb") as log:
        subprocess.run(["mariadb-install-db", *own, data], check=True, stdout=log, stderr=log)
        strict = ("--character-set-server=utf8mb4", "--sql-mode=TRADITIONAL")
        command = ["mariadbd", *own, data, socket, "--skip-networking", *strict]
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        ping = ["mariadb-admin", *own, socket, "--silent", "ping"]
        until(lambda: subprocess.run(ping, capture_output=True).returncode == 0)
        output(*client, input="CREATE DATABASE racedata")
        # not LOCAL, which turns errors into warnings
        load = (
            "LOAD DATA INFILE '{path}' INTO TABLE {name} CHARACTER SET utf8mb4 "
            "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' IGNORE 1 LINES"
        )
        yield lambda sql: output(*client, "racedata", input=sql), "`", load
    finally:
        server.terminate()
        server.wait(60)


@contextmanager
def postgresql(folder):
    needs("pg_ctlcluster", "postgresql")  # the others are not in the PATH
    *_, initdb = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    shutil.chown(folder, "postgres")  # its programs refuse to run as root

    def program(name, *arguments, **options):
        command = ["runuser", "-u", "postgres", "--", initdb.with_name(name), *arguments]
        return output(*command, cwd="/", **options)

    data = ("-D", folder / "data")
    program("initdb", *data, "--encoding=UTF8", "--locale=C", "--auth=trust")
    options = f"-k {folder} -c listen_addresses="
    program("pg_ctl", *data, "-w", "-l", folder / "log", "-o", options, "start")
    psql = f"-h {folder} -d postgres -X -q -A -t -v ON_ERROR_STOP=1 -F".split()
    try:
        yield (
            lambda sql: program("psql", *psql, "\t", input=sql),
            '"',
            "COPY {name} FROM '{path}' (FORMAT csv, HEADER, NULL '\\N');",
        )
    finally:
        program("pg_ctl", *data, "-w", "-m", "fast", "stop")


@pytest.fixture
def all_data(request):
    """A database of a full dump with f1db, if the environment names them, or the sample's."""
    try:
        return request.getfixturevalue("full_database")
    except pytest.skip.Exception:
        return request.getfixturevalue("sample_database")


@pytest.mark.parametrize("program", [sqlite, duck, mariadb, postgresql])
def test_a_program_loads_an_export_into_ergasts_tables_and_counts_wins(program, request):
    """The servers load all data."""
    # other users must read it
    with tempfile.TemporaryDirectory(prefix="racedata-export-") as place:
        folder = Path(place)
        folder.chmod(0o755)
        (folder / "program").mkdir()
        with program(folder / "program") as (run, sign, load):
            is_server = program in (mariadb, postgresql)
            database = request.getfixturevalue("all_data" if is_server else "sample_database")
            racedata("export", folder / "dump.zip", "--database", database).check_returncode()
            with zipfile.ZipFile(folder / "dump.zip") as archive:
                archive.extractall(folder)

            def quote(name):
                return f"{sign}{name}{sign}"

            for name in REQUIRED:
                path = folder / f"{name}.csv"
                with path.open(encoding="utf-8", newline="") as file:
                    header, *rows = csv.reader(file)
                run(create(name, header, quote))
                run(load.format(name=name, path=path))
                assert run(f"SELECT count(*) FROM {name}") == f"{len(rows)}\n"
            names = ("id", "driverId"), ("positionOrder", "positionOrder")
            wins = run(WINS.format(**{key: quote(name) for key, name in names}))
        ours = select(database, WINS.format(**dict(names)))
        assert wins == "".join(f"{name}\t{count}\n" for name, count in ours)


def test_duckdb_reads_every_view_as_sqlite_does_and_a_release_has_it_as_parquet(
    sample_database, tmp_path
):
    """The files have the same bytes each time."""
    views = select(sample_database, "SELECT name FROM sqlite_schema WHERE type = 'view'")
    contents = []
    for name in ("x", "y"):
        folder = tmp_path / name
        folder.mkdir()
        release.write_parquet(sample_database, folder)
        contents.append({path.stem: path.read_bytes() for path in folder.iterdir()})
    assert contents[0] == contents[1]
    assert sorted(contents[0]) == sorted(view for (view,) in views) != []
    import_extension("sqlite_scanner")
    with closing(duckdb.connect()) as db:
        db.execute(f"ATTACH '{sample_database}' AS racedata (TYPE sqlite, READ_ONLY)")
        for (view,) in views:
            expected = sorted(map(repr, select(sample_database, f"SELECT * FROM {view}")))
            for place in (f"racedata.{view}", f"'{tmp_path}/x/{view}.parquet'"):
                assert (
                    sorted(map(repr, db.execute(f"SELECT * FROM {place}").fetchall())) == expected
                )

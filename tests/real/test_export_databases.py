"""racedata export: MariaDB and PostgreSQL with Ergast's tables, in strict modes, and DuckDB."""

import csv
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pytest
from support.ergast_tables import FILES, FLOATS, INTEGERS, create
from support.loads import racedata, select

WINS = """SELECT surname, count(*) FROM results JOIN drivers ON drivers.{id} = results.{id}
    WHERE {positionOrder} = 1 GROUP BY surname ORDER BY count(*) DESC, surname LIMIT 5"""


@pytest.fixture(scope="module")
def files(request, tmp_path_factory):
    """The files of an export: of a full dump with f1db, if the environment names them."""
    try:
        database = request.getfixturevalue("full_database")
    except pytest.skip.Exception:
        database = request.getfixturevalue("sample_database")
    # MariaDB's server may read it
    folder = Path(tempfile.mkdtemp(prefix="racedata-export-"))
    folder.chmod(0o755)
    target = folder / "dump.zip"
    racedata("export", target, "--database", database).check_returncode()
    with zipfile.ZipFile(target) as archive:
        archive.extractall(folder)
    yield folder, database
    shutil.rmtree(folder)


def rows_in(path):
    with path.open(encoding="utf-8", newline="") as file:
        return sum(1 for _ in csv.reader(file)) - 1


def check(files, run, quote):
    """Asserts that a database has all rows, and that a query of Ergast's users answers."""
    folder, database = files
    for name in FILES:
        assert run(f"SELECT count(*) FROM {name}") == [[str(rows_in(folder / f"{name}.csv"))]]
    wins = WINS.format(id=quote("driverId"), positionOrder=quote("positionOrder"))
    ours = select(database, WINS.format(id="driverId", positionOrder="positionOrder"))
    assert run(wins) == [[name, str(count)] for name, count in ours]


@pytest.mark.skipif(
    not shutil.which("mariadbd"), reason="needs MariaDB: apt install mariadb-server"
)
def test_mariadb_loads_an_export_into_ergasts_tables_in_strict_mode(files):
    folder, _ = files
    place = Path(tempfile.mkdtemp(prefix="racedata-mariadb-"))
    socket = place / "socket"
    with open(place / "log", "wb") as log:
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={place / 'data'}"],
            check=True, stdout=log, stderr=log,
        )  # fmt: skip
        server = subprocess.Popen(
            ["mariadbd", "--no-defaults", "--user=root", f"--datadir={place / 'data'}",
             f"--socket={socket}", f"--pid-file={place / 'pid'}", "--skip-networking",
             "--character-set-server=utf8mb4", "--sql-mode=TRADITIONAL"],
            stdout=log, stderr=log,
        )  # fmt: skip

    def run(sql, database="racedata"):
        command = ["mariadb", "--no-defaults", f"--socket={socket}", "--user=root", "-N", "-B"]
        command += [
            "--local-infile",
            "--default-character-set=utf8mb4",
            *([database] if database else []),
        ]
        done = subprocess.run(command, input=sql, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def quote(name):
        return f"`{name}`"

    try:
        subprocess.run(
            ["mariadb-admin", "--no-defaults", f"--socket={socket}", "--user=root", "--wait=60",
             "--silent", "ping"],
            check=True,
        )  # fmt: skip
        run("CREATE DATABASE racedata", "")
        for name in FILES:
            # not LOCAL, which turns errors into warnings
            run(
                f"""{create(name, folder, quote)}
                    LOAD DATA INFILE '{folder / name}.csv' INTO TABLE {name} CHARACTER SET utf8mb4
                    FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' IGNORE 1 LINES"""
            )
        check(files, run, quote)
    finally:
        server.terminate()
        server.wait(60)
        shutil.rmtree(place)


def postgres_folder():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@pytest.mark.skipif(not postgres_folder(), reason="needs PostgreSQL: apt install postgresql")
def test_postgresql_loads_an_export_into_ergasts_tables(files):
    folder, _ = files
    place = Path(tempfile.mkdtemp(prefix="racedata-postgres-"))
    programs = postgres_folder()
    shutil.chown(place, "postgres")  # its programs refuse to run as root

    def program(name, *arguments, **options):
        command = ["runuser", "-u", "postgres", "--", programs / name, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(sql):
        out = program(
            "psql", "-h", place, "-d", "postgres", "-X", "-q", "-A", "-t", "-F", "\t",
            "-v", "ON_ERROR_STOP=1", input=sql,
        )  # fmt: skip
        return [line.split("\t") for line in out.splitlines()]

    def quote(name):
        return f'"{name}"'

    program("initdb", "-D", place / "data", "--encoding=UTF8", "--locale=C")
    options = f"-k {place} -c listen_addresses="
    command = ["runuser", "-u", "postgres", "--", programs / "pg_ctl", "-D", place / "data", "-w"]
    start = [*command, "-l", place / "log", "-o", options, "start"]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL, cwd="/")
    try:
        for name in FILES:
            run(
                f"""{create(name, folder, quote)}
                    COPY {name} FROM '{folder / name}.csv' (FORMAT csv, HEADER, NULL '\\N');"""
            )
        check(files, run, quote)
    finally:
        program("pg_ctl", "-D", place / "data", "-w", "-m", "fast", "stop")
        shutil.rmtree(place)


def test_duckdb_finds_the_types_of_ergasts_columns_in_an_export(files):
    duckdb = pytest.importorskip("duckdb")
    folder, _ = files
    db = duckdb.connect()

    def run(sql):
        return [[str(value) for value in row] for row in db.execute(sql).fetchall()]

    for name in FILES:
        path = folder / f"{name}.csv"
        db.execute(f"CREATE TABLE {name} AS FROM read_csv('{path}', nullstr = '\\N')")
        types = db.execute(f"SELECT column_name, column_type FROM (DESCRIBE {name})").fetchall()
        for column, type in types:
            if run(f"SELECT count({column}) FROM {name}") == [["0"]]:
                continue  # the sample has no altitudes
            if column in INTEGERS:
                assert type == "BIGINT", (name, column)
            elif column in FLOATS:
                assert type in ("BIGINT", "DOUBLE"), (name, column)
    check(files, run, str)

"""scripts/load_data.py: what it takes, what it refuses, and that a refused load leaves everything as it was."""

import csv
import fcntl
import functools
import hashlib
import http.server
import io
import os
import pty
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import zipfile
from collections import Counter, defaultdict
from contextlib import closing, contextmanager

import dump
import load_data
import pytest
from conftest import LOADER, SAMPLE, built, run_loader
from hypothesis import given
from hypothesis import strategies as st


def tables(path):
    """Everything in the database but where and when it was built."""
    with closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in names if name != "build"}


def is_whole(path):
    """Whether the checksum that the loader appends (schema.sql) is that of the file before it."""
    content = path.read_bytes()
    return hashlib.sha256(content[:-32]).digest() == content[-32:]


@pytest.fixture
def source(tmp_path):
    """A copy of the sample, to spoil."""
    return shutil.copytree(SAMPLE, tmp_path / "source")


@pytest.fixture
def database(sample_database, tmp_path):
    """A database that is there already, alone in its folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    return shutil.copy(sample_database, folder / "racedata.db")


def edit(path, old, new):
    content = path.read_text(encoding="utf-8")
    assert content.count(old) == 1
    path.write_text(content.replace(old, new), encoding="utf-8")


@contextmanager
def refused(database):
    """What happens inside leaves the database as it was, byte for byte, and nothing beside it."""
    before = database.read_bytes()
    yield
    assert database.read_bytes() == before
    assert list(database.parent.iterdir()) == [database]


def assert_refused(source, database, *said, **options):
    with refused(database):
        run = run_loader(source, database, **options)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.startswith("load_data: ")
    assert run.stderr.endswith("; nothing was changed\n")
    assert run.stderr.count("\n") == 1
    for words in said:
        assert words in run.stderr


FIRST_RESULT = "1,5,8,19,20,3,1,1,1,4,90,3:06:37.8,11197800,"


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "results.csv",
            FIRST_RESULT,
            "1,5,999,19,20,3,1,1,1,4,90,3:06:37.8,11197800,",
            "results.csv, line 2, column driverId: '999'; expected a driverId of drivers.csv",
        ),
        (
            "races.csv",
            "\n2,1957,2,20,",
            "\n2,1957,2,99,",
            "races.csv, line 3, column circuitId: '99'; expected a circuitId of circuits.csv",
        ),
        (
            "races.csv",
            "\n2,1957,2,20,",
            "\n1,1957,2,20,",
            "races.csv, line 3, column raceId: 1; expected no two rows with the same",
        ),
        (
            "races.csv",
            "\n2,1957,2,20,",
            "\n2,1957,1,20,",
            "races.csv, line 3, column year, round: 1957, 1; expected no two rows with the same",
        ),
        ("drivers.csv", "\n2,", "\n1,", "drivers.csv, line 3, column driverId: 1; expected no two rows with the same"),
        (
            "lap_times.csv",
            "\n39,52,1,2,",
            "\n39,36,1,2,",
            "lap_times.csv, line 3, column raceId, driverId, lap: 39, 36, 1; expected no two rows with the same",
        ),
        (
            "results.csv",
            "\n2,5,43,19,20,",
            "\n1,5,43,19,20,",
            "results.csv, line 3, column resultId: 1; expected no two rows with the same",
        ),
        (
            "qualifying.csv",
            "\n2,9,60,18,16,",
            "\n1,9,60,18,16,",
            "qualifying.csv, line 3, column qualifyId: 1; expected no two rows with the same",
        ),
        (
            "results.csv",
            FIRST_RESULT,
            "1,5,8,19,20,3,1,1,1,4,ninety,3:06:37.8,11197800,",
            "results.csv, line 2, column laps: 'ninety'; expected a whole number such as 25",
        ),
        (
            "results.csv",
            FIRST_RESULT,
            "1,5,8,19,20,3,1,1,1,four,90,3:06:37.8,11197800,",
            "results.csv, line 2, column points: 'four'; expected points such as 25 or 12.5",
        ),
        (
            "results.csv",
            FIRST_RESULT,
            r"1,5,8,19,20,3,1,1,\N,4,90,3:06:37.8,11197800,",
            r"results.csv, line 2, column positionOrder: '\\N'; expected a whole number such as 25",
        ),
        (
            "races.csv",
            "1957-01-13",
            "1957-02-30",
            "races.csv, line 2, column date: '1957-02-30'; expected a date such as",
        ),
        (
            "races.csv",
            "1957-01-13",
            "13.1.1957",
            "races.csv, line 2, column date: '13.1.1957'; expected a date such as",
        ),
        (
            "races.csv",
            "\n2,1957,2,20,",
            "\n2,57,2,20,",
            "races.csv, line 3, column year: '57'; expected a year of four",
        ),
        (
            "races.csv",
            "raceId,",
            "id,",
            "races.csv, line 1, column raceId: not in the header, which has id, year, round, ",
        ),
        (
            "races.csv",
            "quali_time",
            "round",
            "races.csv, line 1, column round: twice in the header; expected once",
        ),
        ("status.csv", "\n2,", "\n2,x,", "status.csv, line 3: 3 fields; expected 2, as in the header"),
        ("status.csv", "\n2,", '\n2,"x"y', "status.csv, line 3: broken CSV"),
        ("status.csv", "\n2,", '\n2,"', "status.csv, line "),
        (
            "status.csv",
            "\n2,",
            '\n2,"' + "x" * 200_000,
            "status.csv, line 3: broken CSV (field larger than field limit",
        ),
        (
            "status.csv",
            "\n2,+19 Laps",
            "\n2,+19\tLaps",
            "status.csv, line 3, column status: '+19\\tLaps'; expected text without control characters",
        ),
        (
            "races.csv",
            "\n2,1957,2,20,",
            "\n2,1957,0,20,",
            "races.csv, line 3, column round: '0'; expected a whole number from 1",
        ),
        (
            "status.csv",
            "\n2,",
            "\n99999999999999999999,",
            "status.csv, line 3, column statusId: '99999999999999999999';",
        ),
        ("qualifying.csv", "1:35.467", "a lap", "column q3: 'a lap'; expected a time such as 1:07.012"),
    ],
)
def test_what_is_wrong_stops_it_with_file_line_column_value_and_what_was_expected(
    source, database, file, old, new, said
):
    edit(source / file, old, new)
    assert_refused(source, database, said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Hülkenberg", "drivers.csv, line 26, column surname: b'\\xfc'; expected UTF-8"),
        ("Räikkönen", "drivers.csv, line 50, column surname: b'\\xe4'; expected UTF-8"),
    ],
)
def test_a_file_that_is_not_utf8_is_refused_with_its_place(source, database, name, said):
    path = source / "drivers.csv"
    path.write_bytes(path.read_bytes().replace(name.encode("utf-8"), name.encode("latin-1")))
    assert_refused(source, database, said)


def test_a_line_that_begins_with_what_is_not_utf8_is_refused_with_its_first_column(source, database):
    edit(source / "status.csv", "\n2,", "\n\u00e9,")
    path = source / "status.csv"
    path.write_bytes(path.read_bytes().replace("\u00e9".encode(), b"\xe9"))
    assert_refused(source, database, "status.csv, line 3, column statusId: b'\\xe9'; expected UTF-8")


def test_a_file_in_utf16_is_refused(source, database):
    path = source / "drivers.csv"
    path.write_text(path.read_text(encoding="utf-8"), encoding="utf-16")
    assert_refused(source, database, "drivers.csv, line 1: b'\\xff'; expected UTF-8")


@pytest.mark.parametrize("table", load_data.REQUIRED)
def test_a_table_that_is_needed_and_absent_is_refused(source, database, table):
    (source / f"{table}.csv").unlink()
    assert_refused(source, database, f"{source}: no {table}.csv in it; expected circuits.csv, constructors.csv, ")


def test_an_empty_file_is_refused(source, database):
    (source / "races.csv").write_bytes(b"")
    assert_refused(source, database, "races.csv, line 1, column raceId: not in the header, which has nothing;")


@pytest.mark.parametrize("table", load_data.REQUIRED)
def test_a_table_that_is_needed_and_has_no_rows_is_refused(source, database, table):
    path = source / f"{table}.csv"
    path.write_text(path.read_text(encoding="utf-8").split("\n")[0] + "\n")
    run = run_loader(source, database)
    # Where a later table refers to it, that is found first.
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert f"{table}.csv: no rows; expected at least one" in run.stderr


def test_a_source_that_is_not_there_is_refused(tmp_path, database):
    assert_refused(tmp_path / "none", database, f"{tmp_path / 'none'}: not found; expected a folder of CSV files")


def zipped(folder, path, inside=""):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, inside + file.name)
    return path


def test_a_zip_that_is_none_or_broken_or_of_something_else_is_refused(source, database, tmp_path):
    path = tmp_path / "data.zip"
    path.write_text("not a zip")
    assert_refused(path, database, f"{path}: broken zip (File is not a zip file); expected a folder of CSV files or")
    whole = zipped(source, path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert_refused(path, database, f"{path}: broken zip (File is not a zip file)")
    path.write_bytes(whole[:3000] + bytes(500) + whole[3500:])
    assert_refused(path, database, f"{path}: broken zip (")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "holiday pictures")
    assert_refused(path, database, f"{path}: no circuits.csv in it; expected circuits.csv, ")


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("//races.csv", {}, "the zip has a file without a proper name"),
        ("races.csv", {"compress_type": zipfile.ZIP_BZIP2}, "the zip uses an unusual compression"),
    ],
)
def test_a_zip_that_nobody_would_make_is_refused(database, tmp_path, name, options, said):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, "raceId", **options)
    assert_refused(path, database, f"{path}: {said}")


def test_a_zip_that_unpacks_to_far_too_much_is_refused(database, tmp_path, monkeypatch):
    path = zipped(SAMPLE, tmp_path / "data.zip")
    monkeypatch.setattr(dump, "UNPACKED_BYTES", 50_000)
    with pytest.raises(dump.LoadError, match="unpacks to more than 50,000 bytes"), dump.dump_folder(str(path), print):
        pass


@pytest.mark.parametrize("inside", ["", "RaceData-main/"])
def test_a_zip_may_have_the_files_at_its_root_or_one_folder_down(sample_database, source, tmp_path, inside):
    run = run_loader(zipped(source, tmp_path / "data.zip", inside), tmp_path / "zip.db")
    assert (run.returncode, run.stderr) == (0, "")
    assert tables(tmp_path / "zip.db") == tables(sample_database)


@pytest.fixture
def server(tmp_path):
    """A web server over a folder of its own; yields (folder, its address)."""
    folder = tmp_path / "www"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_GET(self):
            if self.path == "/short":
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b"PK")
                self.close_connection = True
            elif self.path == "/endless":
                self.send_response(302)
                self.send_header("Location", "/data.zip")
                self.end_headers()
                try:
                    while True:
                        self.wfile.write(bytes(1 << 16))
                except OSError:
                    pass
            elif self.path == "/babble":
                self.wfile.write(b"\0\1\2\x1b[31m not HTTP\r\n\r\n")
                self.close_connection = True
            elif self.path == "/silent":
                stopped.wait(20)
                self.close_connection = True
            else:
                super().do_GET()

    stopped = threading.Event()
    handler = functools.partial(Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, args=(0.01,)).start()
        yield folder, f"http://127.0.0.1:{httpd.server_port}"
        stopped.set()
        httpd.shutdown()


def test_a_url_is_downloaded(sample_database, source, tmp_path, server):
    folder, address = server
    zipped(source, folder / "data.zip")
    run = run_loader(f"{address}/data.zip", tmp_path / "url.db")
    assert (run.returncode, run.stderr) == (0, "")
    assert tables(tmp_path / "url.db") == tables(sample_database)


def test_a_url_that_gives_no_zip_is_refused(database, server):
    folder, address = server
    (folder / "page.html").write_text("<html>")
    assert_refused(f"{address}/none.zip", database, f"{address}/none.zip: ", "expected the zip of a dump")
    assert_refused(f"{address}/short", database, f"{address}/short: the connection ended 998 bytes before the file did")
    assert_refused(f"{address}/babble", database, f"{address}/babble: ", "expected the zip of a dump")
    assert_refused(f"{address}/page.html", database, f"{address}/page.html: broken zip (File is not a zip file)")
    assert_refused("http://127.0.0.1:1/data.zip", database, "Connection refused")


def test_a_redirect_without_end_is_followed_at_once(source, tmp_path, server):
    folder, address = server
    zipped(source, folder / "data.zip")
    file = io.BytesIO()
    dump.download(f"{address}/endless", file, lambda text: None)
    assert file.getvalue() == (folder / "data.zip").read_bytes()


def test_a_download_has_a_limit_of_size_and_of_time(server):
    folder, address = server
    (folder / "large").write_bytes(bytes(100_000))
    with pytest.raises(dump.LoadError, match="more than 99,999 bytes"):
        dump.download(f"{address}/large", io.BytesIO(), lambda text: None, size=99_999)
    with pytest.raises(dump.LoadError, match=r"not complete in 0\.2 seconds, or no data for 30; got 0 bytes"):
        dump.download(f"{address}/silent", io.BytesIO(), lambda text: None, seconds=0.2)
    file = io.BytesIO()
    shown = []
    dump.download(f"{address}/large", file, shown.append)
    assert file.getvalue() == bytes(100_000)
    assert shown[-1] == "downloading: 100,000 bytes"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")
def test_a_full_disk_leaves_the_database_as_it_was(source, sample_database, tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    size = sample_database.stat().st_size + 50_000
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"mount: {mounted.stderr.decode().strip()}")
    try:
        database = shutil.copy(sample_database, folder / "racedata.db")
        assert_refused(source, database, f"{database}: database or disk is full")
    finally:
        subprocess.run(["umount", folder], check=True)


@contextmanager
def waiting_loader(source, database):
    """A loader that has begun, and waits in the middle for a file that does not come."""
    pipe = source / "lap_times.csv"
    pipe.unlink()
    os.mkfifo(pipe)
    command = [sys.executable, LOADER, source, database]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            # Opening a pipe waits for its other end.
            with pipe.open("w"):
                yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_the_database_as_it_was(source, database, number):
    with refused(database), waiting_loader(source, database) as process:
        process.send_signal(number)
        assert process.communicate(timeout=20) == ("", "load_data: interrupted; nothing was changed\n")
        assert process.returncode == 1


@pytest.mark.parametrize("size", ["source", "dump"])
def test_killed_at_any_moment_it_leaves_the_old_database_or_a_whole_new_one(request, database, tmp_path, size):
    source = shutil.copytree(request.getfixturevalue(size), tmp_path / "killed")
    old = database.read_bytes()
    edit(source / "circuits.csv", "Spielberg", "Zeltweg")
    began = time.monotonic()
    run_loader(source, database).check_returncode()
    seconds = time.monotonic() - began
    new = tables(database)
    kills = 0
    while kills < 50:
        database.write_bytes(old)
        process = subprocess.Popen([sys.executable, LOADER, source, database], stdout=subprocess.DEVNULL)
        try:
            process.wait(timeout=random.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
        assert database.read_bytes() == old or (is_whole(database) and tables(database) == new)
        assert set(database.parent.iterdir()) <= {database, database.with_name(".racedata.db.loading")}
    # What is left of the last one that was killed, the next load removes.
    run_loader(source, database).check_returncode()
    assert tables(database) == new
    assert list(database.parent.iterdir()) == [database]


def test_a_second_load_at_the_same_time_is_refused(source, database):
    other = shutil.copytree(SAMPLE, source.parent / "other")
    before = database.read_bytes()
    with waiting_loader(source, database) as process:
        second = run_loader(other, database)
        assert second.returncode == 1
        assert "another load is running in this folder" in second.stderr
        assert database.read_bytes() == before
        process.kill()
        process.wait()
    # Killed, the first could not clean up; the next load does, and is in nobody's way.
    assert database.with_name(".racedata.db.loading").exists()
    assert run_loader(other, database).returncode == 0
    assert list(database.parent.iterdir()) == [database]


def test_whoever_has_the_old_file_open_goes_on_reading_it(source, database):
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as db:
        rows = "SELECT count(*) FROM lap_times"
        assert db.execute(rows).fetchone() == (1034,)
        (source / "lap_times.csv").unlink()
        run_loader(source, database).check_returncode()
        assert db.execute(rows).fetchone() == (1034,)
    assert tables(database)["lap_times"] == []


def test_the_new_file_may_be_read_by_whom_the_old_one_could(source, database):
    database.chmod(0o640)
    run_loader(source, database).check_returncode()
    assert database.stat().st_mode & 0o777 == 0o640


def test_without_a_source_it_is_built_again_from_what_it_was_built_from(source, database, tmp_path):
    run_loader(source, database).check_returncode()
    edit(source / "circuits.csv", "Spielberg", "Zeltweg")
    again = run_loader("", database)
    assert again.stdout.rstrip().endswith(f" from {source}")
    assert "Zeltweg" in str(tables(database)["circuits"])
    new = run_loader("", tmp_path / "new.db")
    assert new.stdout.rstrip().endswith(f" from {SAMPLE}")
    database.write_bytes(database.read_bytes()[:4000])
    assert_refused("", database, f"{database}: does not say what it was built from; name a source")


def test_a_link_to_the_database_stays_one(source, database):
    link = database.with_name("current.db")
    link.symlink_to(database)
    database.write_bytes(b"")
    run_loader(source, link).check_returncode()
    assert link.is_symlink()
    assert len(tables(database)["races"]) == 88


def a_folder(path):
    path.mkdir()


def a_pipe(path):
    os.mkfifo(path)


def somebodys_text(path):
    path.write_text("Dear diary")


def somebodys_database(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE diary (entry)")


@pytest.mark.parametrize("make", [a_folder, a_pipe, somebodys_text, somebodys_database])
def test_what_no_load_has_built_is_not_replaced(source, tmp_path, make):
    path = tmp_path / "racedata.db"
    make(path)
    before = path.lstat()
    run = run_loader(source, path)
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert f"{path}: exists and is not a racedata database; remove it, or name another file" in run.stderr
    assert path.lstat() == before


def test_a_damaged_database_is_replaced(source, database):
    database.write_bytes(database.read_bytes()[:10_000])
    run_loader(source, database).check_returncode()
    assert len(tables(database)["races"]) == 88


def test_a_database_in_a_folder_that_is_not_there_is_refused(source, tmp_path):
    run = run_loader(source, tmp_path / "none" / "racedata.db")
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert "No such file or directory" in run.stderr


@pytest.mark.parametrize("table", [table for table in load_data.OPTIONAL if table != "seasons"])
def test_a_table_that_may_be_absent_is_said_to_be(source, tmp_path, table):
    (source / f"{table}.csv").unlink()
    run = run_loader(source, tmp_path / "x.db")
    assert run.returncode == 0
    assert f"{table:<22}{'no file':>12}{0:>13}\n" in run.stdout
    assert tables(tmp_path / "x.db")[table] == []


def rewritten(change):
    """A change to every file of the dump: `change` makes its bytes out of its rows, the header first."""

    def rewrite(source):
        for path in source.iterdir():
            with path.open(newline="", encoding="utf-8") as file:
                rows = list(csv.reader(file))
            path.write_bytes(change(rows))

    return rewrite


def as_csv(rows, **options):
    text = io.StringIO()
    csv.writer(text, **{"lineterminator": "\n", **options}).writerows(rows)
    return text.getvalue().encode()


def without_missing_end(row):
    while row and row[-1] == r"\N":
        row = row[:-1]
    return row


@pytest.mark.parametrize(
    "rewrite",
    [
        rewritten(lambda rows: b"\xef\xbb\xbf" + as_csv(rows)),
        rewritten(lambda rows: as_csv(rows, lineterminator="\r\n")),
        rewritten(lambda rows: as_csv(rows, quoting=csv.QUOTE_ALL)),
        rewritten(lambda rows: as_csv(rows, quoting=csv.QUOTE_NONNUMERIC)),
        rewritten(lambda rows: as_csv([row[::-1] for row in rows])),
        rewritten(lambda rows: as_csv([[*row, f"unknown{i}"] for i, row in enumerate(rows)])),
        rewritten(lambda rows: as_csv([["" if value == r"\N" else value for value in row] for row in rows])),
        rewritten(lambda rows: as_csv([without_missing_end(row) for row in rows])),
        rewritten(lambda rows: as_csv(rows).replace(b"\n", b"\n\n")),
        rewritten(lambda rows: as_csv([rows[0], *rows[:0:-1]])),
    ],
    ids=[
        "BOM",
        "CRLF",
        "quoted",
        "partly quoted",
        "columns in another order",
        "unknown columns",
        "empty for missing",
        "short rows",
        "blank lines",
        "rows in another order",
    ],
)
def test_a_dump_in_another_manner_gives_the_same_database(source, sample_database, tmp_path, rewrite):
    rewrite(source)
    run = run_loader(source, tmp_path / "x.db")
    assert (run.returncode, run.stderr) == (0, "")
    assert tables(tmp_path / "x.db") == tables(sample_database)


def test_the_database_says_what_it_is(sample_database):
    with closing(sqlite3.connect(sample_database)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        source, checksum, built_at = db.execute("SELECT * FROM build").fetchone()
        counts = dict(db.execute("SELECT * FROM row_counts"))
        assert counts == {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in counts}
        strict = {row[1]: row[5] for row in db.execute("PRAGMA table_list") if not row[1].startswith("sqlite_")}
    assert source == str(SAMPLE)
    assert checksum == load_data.checksum(SAMPLE / f"{name}.csv" for name in load_data.REQUIRED + load_data.OPTIONAL)
    assert len(built_at) == len("2023-07-02T13:00:00Z")
    assert set(counts) == set(load_data.REQUIRED + load_data.OPTIONAL)
    assert set(strict.values()) == {1}


def test_at_the_end_it_lists_tables_rows_and_seasons(source, tmp_path):
    run = run_loader(source, tmp_path / "x.db")
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    assert lines[0].split() == ["table", "rows", "read", "rows", "stored"]
    assert lines[10].split() == ["lap_times", "1,034", "1,034"]
    assert lines[14:] == [
        "sprint_results.csv has no column rank",
        f"{tmp_path / 'x.db'}: 1957 to 2023 (5 seasons, 88 races) from {source}",
    ]


def test_on_a_terminal_it_shows_progress(source, tmp_path):
    path = source / "lap_times.csv"
    header, *rows = path.read_text().splitlines()
    more = [row.replace("67,", f"{race},", 1) for race in range(1, 11) for row in rows if row.startswith("67,")]
    path.write_text("\n".join([header, *rows, *more]))
    terminal, end = pty.openpty()
    command = [sys.executable, LOADER, source, tmp_path / "x.db"]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=end, check=True, timeout=60)
    os.close(end)
    shown = b""
    try:
        while block := os.read(terminal, 1 << 16):
            shown += block
    except OSError:  # how Linux says that nobody has the other end any more
        pass
    os.close(terminal)
    assert b"lap_times.csv: 10,000 rows" in shown


def rows_of(path, table):
    """The rows of a table in the order of `record`, each with the year and round of its race."""
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        return db.execute(
            f"SELECT t.*, year, round FROM {table} AS t JOIN races USING (raceId) ORDER BY year, round, record"
        ).fetchall()


def place(row):
    """A position, and after all positions the lack of one."""
    return (row["position"] is None, row["position"] or 0)


ORDERS = {
    "results": lambda row: (row["positionOrder"], row["resultId"]),
    "sprint_results": lambda row: (row["positionOrder"], row["resultId"]),
    "qualifying": lambda row: (place(row), row["qualifyId"]),
    "lap_times": lambda row: (row["lap"], place(row), row["driverId"]),
    "pit_stops": lambda row: (row["time"], row["lap"], row["stop"], row["driverId"]),
    "driver_standings": lambda row: (place(row), row["driverStandingsId"]),
    "constructor_standings": lambda row: (place(row), row["constructorStandingsId"]),
}


@pytest.mark.parametrize("database", ["sample_database", "dump_database"])
@pytest.mark.parametrize("table", load_data.NUMBERED)
def test_record_numbers_the_rows_from_1_in_the_order_they_are_served(request, database, table):
    rows = rows_of(request.getfixturevalue(database), table)
    assert rows == sorted(rows, key=lambda row: (row["year"], row["round"], *ORDERS[table](row)))
    counts = Counter()
    for row in rows:
        group = row["raceId"] if table in ("lap_times", "pit_stops") else None
        counts[group] += 1
        assert row["record"] == counts[group]


def test_a_qualifying_row_without_a_position_is_the_last_of_its_race(source, tmp_path):
    edit(source / "qualifying.csv", "\n1,9,16,16,6,1,", "\n1,9,16,16,6,\\N,")
    run_loader(source, tmp_path / "x.db").check_returncode()
    ids = [row["qualifyId"] for row in rows_of(tmp_path / "x.db", "qualifying") if row["raceId"] == 9]
    assert ids[0] == 2
    assert ids[-1] == 1


def test_a_season_that_only_its_races_name_is_added_without_a_url(source, tmp_path):
    (source / "seasons.csv").write_text("year,url\n2005,https://example.org/2005\n2031,https://example.org/2031\n")
    run_loader(source, tmp_path / "x.db").check_returncode()
    seasons = dict(tables(tmp_path / "x.db")["seasons"])
    years = {row[1] for row in tables(tmp_path / "x.db")["races"]}
    assert set(seasons) == years | {2031}
    assert {year: url for year, url in seasons.items() if url} == {
        2005: "https://example.org/2005",
        2031: "https://example.org/2031",
    }
    (source / "seasons.csv").unlink()
    run_loader(source, tmp_path / "x.db").check_returncode()
    assert tables(tmp_path / "x.db")["seasons"] == [(year, None) for year in sorted(years)]


def test_standings_are_final_after_the_last_scheduled_round_of_a_season(source, tmp_path):
    for table in ("driver_standings", "constructor_standings"):
        path = source / f"{table}.csv"
        final = rows_of(built(source, tmp_path / "x.db"), table)
        rounds = {(row["year"], row["round"]) for row in final if row["final"] == 1}
        assert rounds == {(1957, 8), (1997, 17), (2005, 19), (2021, 22), (2023, 22)} - (
            set() if table == "driver_standings" else {(1957, 8)}
        )
        # Without its last round, which is race 71 here, a season has no final standings.
        rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(row for row in rows if row.split(",")[1] != "71"), encoding="utf-8")
        running = rows_of(built(source, tmp_path / "x.db"), table)
        assert {row["round"] for row in running if row["year"] == 2023} == {9, 18}
        assert not any(row["final"] for row in running if row["year"] == 2023)


@pytest.mark.parametrize(("database", "least"), [("sample_database", 8), ("dump_database", 1000)])
def test_a_driver_in_the_standings_has_the_constructors_of_the_season_so_far(request, database, least):
    path = request.getfixturevalue(database)
    results = defaultdict(list)
    for row in sorted(rows_of(path, "results"), key=lambda row: (row["year"], row["round"], row["resultId"])):
        results[row["year"], row["driverId"]].append((row["round"], str(row["constructorId"])))
    several = 0
    for row in rows_of(path, "driver_standings"):
        constructors = [name for round, name in results[row["year"], row["driverId"]] if round <= row["round"]]
        assert row["constructors"] == " ".join(dict.fromkeys(constructors))
        several += " " in row["constructors"]
    assert several >= least


@given(st.integers(0, 10**18 - 1))
def test_whole_numbers_are_read_exactly(number):
    assert load_data.whole_number(str(number)) == number


@given(st.decimals(0, 100, places=2))
def test_points_lose_no_more_than_the_zeros_that_say_nothing(number):
    text = load_data.points(str(number))
    assert float(text) == float(number)
    assert "." not in text or text[-1] not in "0."


PARSERS = [
    load_data.whole_number,
    load_data.from_one,
    load_data.year,
    load_data.number,
    load_data.points,
    load_data.day,
    load_data.time_of_day,
    load_data.lap_time,
]


@given(st.sampled_from(PARSERS), st.one_of(st.text(), st.from_regex(r"[0-9:.\-+ ]{1,12}", fullmatch=True)))
def test_a_parser_takes_a_text_or_refuses_it(parse, text):
    assert parse.__doc__.startswith(("a ", "points "))
    try:
        value = parse(text)
    except ValueError:
        return
    assert text.isascii() and text[0] in "-0123456789" and text[-1].isdigit()
    assert isinstance(value, int) or set(value) <= set(text)


def test_the_folder_is_not_locked_any_more_when_all_is_done(source, database):
    run_loader(source, database).check_returncode()
    folder = os.open(database.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(folder)

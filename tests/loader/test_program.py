"""racedata.loader.program and errors: a fault is one line, which says what was changed."""

import errno
import os
import pty
import sqlite3
import subprocess
import tempfile
from contextlib import closing, suppress

import pytest
from support.loads import LOAD, edit, rows_of, run_loader, signals_kept, with_many_lap_times
from support.processes import small_disk

from racedata.loader import program
from racedata.loader.errors import LoadError


def test_a_full_stdout_does_not_hide_that_the_database_is_in_place(source, database):
    edit(source / "circuits.csv", "Spielberg", "Zeltweg")
    command = [*LOAD, source, "--database", database]
    with open("/dev/full", "w") as full:
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    said = f"racedata load: stdout: No space left on device; {database} was written\n"
    assert (run.returncode, run.stderr) == (1, said)
    assert "Zeltweg" in str(rows_of(database)["circuits"])


def test_a_link_or_another_mode_is_not_a_new_database(database, tmp_path):
    def work(progress):
        os.link(database, tmp_path / "link")
        database.chmod(0o600)
        raise LoadError("a fault")

    with signals_kept(), pytest.raises(SystemExit, match="a fault; nothing was changed"):
        program.run("load", str(database), work)


def test_the_full_disk_is_that_of_temporary_files_if_it_has_less_space(
    database, tmp_path, monkeypatch
):
    def work(progress):
        with closing(sqlite3.connect(":memory:")) as db:
            db.execute("PRAGMA max_page_count = 1")
            db.execute("CREATE TABLE a (b)")

    def run():
        with signals_kept(), pytest.raises(SystemExit) as ended:
            program.run("check", str(database), work, replaces=False)
        return str(ended.value)

    with small_disk(tmp_path / "small", 100_000) as folder:
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        said = "no space left for temporary files; set TMPDIR to another folder"
        assert run() == f"racedata check: {folder}: {said}"
    monkeypatch.setattr(tempfile, "tempdir", str(database.parent))
    said = f"{database}: database or disk is full; free some space in {database.parent}"
    assert run() == f"racedata check: {said}"


def test_a_path_is_reported_in_any_encoding(source, tmp_path):
    source = source.rename(tmp_path / "dümp")
    run = run_loader(source, tmp_path / "x.db", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.endswith(f" from {tmp_path}/d\\xfcmp\n")


def test_progress_is_shown_on_a_terminal(source, tmp_path):
    terminal, end = pty.openpty()
    command = [*LOAD, with_many_lap_times(source), "--database", tmp_path / "x.db"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=end):
        os.close(end)
        shown = b""
        with suppress(OSError):  # Linux reports that the other end is closed
            while block := os.read(terminal, 1 << 16):
                shown += block
    os.close(terminal)
    assert b"lap_times.csv: 10,000 rows" in shown


def test_a_file_that_may_not_be_read_or_made_is_named_with_a_folder_that_exists(
    tmp_path, monkeypatch
):
    database = tmp_path / "racedata" / "racedata.db"
    refused = PermissionError(errno.EACCES, "Permission denied", str(database.parent))
    said = f"{database.parent}: Permission denied; let user {os.geteuid()} write to {tmp_path}"
    assert program.fault_text(refused, str(database)) == said
    database.parent.mkdir()
    database.touch()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read any file
    refused = PermissionError(errno.EACCES, "Permission denied", str(database))
    said = f"{database}: Permission denied; let user {os.geteuid()} read {database}"
    assert program.fault_text(refused, str(database)) == said
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    said = f"{database}: Permission denied; let user {os.geteuid()} write to {database}"
    assert program.fault_text(refused, str(database)) == said

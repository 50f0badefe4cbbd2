"""racedata.loader.replacement and racedata.locks: a load ends with the old database or a complete
new one, and a line says with which.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import partial

import pytest
from support import ROOT, SAMPLE, spoiling
from support.loads import (
    LOAD,
    assert_refused,
    built,
    changed,
    edit,
    is_whole,
    racedata,
    refused,
    rows_of,
    run_loader,
    with_many_lap_times,
)
from support.processes import small_disk, until

from racedata.database import SCHEMA_VERSION, store_path
from racedata.hints import REPLACE


def test_a_full_disk_leaves_the_database_as_it_was(source, sample_database, database, tmp_path):
    with small_disk(tmp_path / "small", sample_database.stat().st_size + 50_000) as folder:
        small = shutil.copy(sample_database, folder / "racedata.db")
        said = f"{small}: database or disk is full; free some space in {folder}"
        assert_refused(source, small, said)
        said = f"{small}: No space left on device; free some space in {folder}"
        assert_refused(built(source, tmp_path / "large.db"), small, said)
    # SQLite deletes what it has written, so that the disk does not look full afterwards
    with small_disk(tmp_path / "medium", 3_000_000) as folder:
        medium = shutil.copy(sample_database, folder / "racedata.db")
        said = f"{medium}: database or disk is full; free some space in {folder}"
        assert_refused(with_many_lap_times(source), medium, said)
    with small_disk(tmp_path / "temporary", 100_000) as folder:
        said = f"{folder}: no space left for temporary files; set TMPDIR to another folder"
        environ = {**os.environ, "TMPDIR": str(folder)}
        assert_refused(f"{source} {SAMPLE}", database, said, env=environ)
        # this dump has more laps than SQLite keeps in memory
        refresh = racedata("refresh", "--from", source, "--database", database, env=environ)
        assert refresh.stderr == f"racedata refresh: {said}; nothing was changed\n"


# For loaders that get signals: coverage.py has a lock, and hangs if a signal interrupts it there.
UNMEASURED = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}


# How `make load-data` runs the loader: the shell ignores Ctrl-C until Python handles it.
SCRIPT = [
    *("sh", "-c", "trap '' INT; exec \"$@\"", "sh"),
    *(sys.executable, str(ROOT / "scripts" / "load_data.py")),
]


@contextmanager
def stopped_loader(source, database, command=LOAD):
    """A loader that has been stopped in the middle of its work."""
    command = [*command, with_many_lap_times(source), "--database", database]
    new = database.with_name(f".{database.name}.loading")
    with subprocess.Popen(
        command, env=UNMEASURED, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            until(new.exists)
            process.send_signal(signal.SIGSTOP)
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("command", "number"), [(LOAD, signal.SIGTERM), (SCRIPT, signal.SIGINT)])
def test_a_signal_to_end_leaves_the_database_as_it_was(source, database, command, number):
    with refused(database), stopped_loader(source, database, command) as process:
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        assert process.communicate(timeout=20) == (
            "",
            "racedata load: interrupted; nothing was changed\n",
        )
        assert process.returncode == 1


def cpu_seconds(run):
    """The CPU time of a function's child processes."""
    before, _ = resource.getrusage(resource.RUSAGE_CHILDREN), run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.long
def test_a_kill_at_any_moment_leaves_the_old_database_or_a_complete_new_one(source, database):
    """The kills are spread over the CPU time of a load, which other processes hardly change."""
    old, kills = database.read_bytes(), 20
    edit(source / "circuits.csv", "Spielberg", "Zeltweg")
    seconds = cpu_seconds(lambda: run_loader(source, database, env=UNMEASURED).check_returncode())
    new = rows_of(database)
    for kill in range(1, kills + 1):
        database.write_bytes(old)
        timer = partial(signal.setitimer, signal.ITIMER_PROF, seconds * kill / kills)
        ended = run_loader(source, database, env=UNMEASURED, preexec_fn=timer)
        # the last ones may come too late, if a load needs less CPU time than the first
        assert ended.returncode == -signal.SIGPROF or (ended.returncode, kill > 1) == (0, True)
        assert database.read_bytes() == old or (is_whole(database) and rows_of(database) == new)
        assert set(database.parent.iterdir()) <= {
            database,
            store_path(database),
            store_path(database).with_name("racedata.sources.db-journal"),
            database.with_name(".racedata.db.loading"),
        }
    # The next load removes what the last killed one left.
    built(source, database)
    assert rows_of(database) == new
    assert sorted(database.parent.iterdir()) == [database, store_path(database)]


def test_a_second_load_at_the_same_time_is_refused(source, database):
    other = shutil.copytree(SAMPLE, source.parent / "other")
    before = database.read_bytes()
    with stopped_loader(source, database) as process:
        second = run_loader(other, database)
        assert second.returncode == 1
        assert "another load or refresh is running in this folder" in second.stderr
        assert database.read_bytes() == before
        process.kill()
        process.wait()
    # The first was killed and could not clean up. The next load does.
    assert database.with_name(".racedata.db.loading").exists()
    assert run_loader(other, database).returncode == 0
    assert sorted(database.parent.iterdir()) == [database, store_path(database)]


def test_the_new_file_has_the_mode_and_the_owner_of_the_old_one(source, database):
    if os.geteuid() == 0:  # only root may give a file away
        os.chown(database, 12345, 23456)
    database.chmod(0o640)
    before = database.stat()
    built(source, database)
    after = database.stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, 0o100640)


def test_a_link_to_the_database_stays_a_link(source, database):
    link = database.with_name("current.db")
    link.symlink_to(database)
    database.write_bytes(b"")
    built(source, link)
    assert link.is_symlink()
    assert len(rows_of(database)["races"]) == 88


@pytest.mark.parametrize(
    "make", [os.mkdir, os.mkfifo, spoiling.loop, spoiling.text, spoiling.foreign]
)
def test_a_file_that_no_load_has_built_is_not_replaced(source, tmp_path, make):
    path = tmp_path / "racedata.db"
    if make is spoiling.foreign:
        path.touch()
    make(path)
    before = path.lstat()
    run = run_loader(source, path)
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    said = f"{path}: exists and is not a racedata database; move it away, or name another file"
    assert said in run.stderr
    after = path.lstat()
    names = ("st_ino", "st_mode", "st_mtime_ns")
    assert [getattr(after, name) for name in names] == [getattr(before, name) for name in names]


VERSION = "has schema version {}, which is {} than this program's ({})"


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (spoiling.truncated, "is damaged (its size has changed since it was built)"),
        (spoiling.version(0), VERSION.format(0, "older", SCHEMA_VERSION)),
        (spoiling.version(12), VERSION.format(12, "newer", SCHEMA_VERSION)),
        (lambda path: changed(path, "DROP TABLE origins"), ""),
    ],
)
def test_a_database_that_cannot_be_read_is_replaced_only_on_request(source, database, spoil, fault):
    spoil(database)
    what_to_do = REPLACE.replace("FILE", str(database))
    said = f"{database} {fault}; {what_to_do}; nothing was changed"
    said = said if fault else "no such table: origins"
    assert_refused(source, database, said)
    assert_refused("", database, said)
    if fault:  # without a source, there is nothing to build it from
        with refused(database):
            said = "racedata load: error: --replace: expected a SOURCE too\n"
            assert run_loader("", database, "--replace").stderr.endswith(said)
    assert run_loader(source, database, "--replace").returncode == 0
    assert len(rows_of(database)["races"]) == 88

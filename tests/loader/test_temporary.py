"""racedata.loader.temporary: what killed programs have left is removed, and nothing else."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from support import ROOT, SAMPLE
from support.loads import built, run_loader
from support.processes import until

from racedata.loader.temporary import temporary_folder

# A program in the middle of its work: it says so, and waits.
WORKING = """
import sys, time
from pathlib import Path
from racedata.loader.temporary import temporary_folder
with temporary_folder(Path(sys.argv[1])) as folder:
    (folder / "racedata.db").touch()
    print(folder, flush=True)
    time.sleep(600)
"""


@contextmanager
def working(folder):
    """Such a program, and its temporary folder."""
    command = [sys.executable, "-c", WORKING, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_the_folder_of_a_killed_program_is_removed_and_the_folder_of_a_running_one_stays(tmp_path):
    with working(tmp_path) as (_, running), working(tmp_path) as (process, killed):
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (killed / "racedata.db").exists()
        with temporary_folder(tmp_path) as own:
            assert {*tmp_path.iterdir()} == {running, own}
        assert [*tmp_path.iterdir()] == [running]
        assert (running / "racedata.db").exists()


def test_a_folder_of_another_name_or_user_and_links_and_files_stay(tmp_path):
    for name in (".racedata-data", "racedata-12345678", "elsewhere"):
        (tmp_path / name / "diary").mkdir(parents=True)
    (tmp_path / ".racedata-abcdefgh").symlink_to(tmp_path / "elsewhere")
    (tmp_path / ".racedata-file0000").touch()
    if os.geteuid() == 0:  # only root may give a folder away
        (tmp_path / ".racedata-00000000").mkdir()
        os.chown(tmp_path / ".racedata-00000000", 12345, 12345)
    before = {*tmp_path.rglob("*")}
    with temporary_folder(tmp_path):
        pass
    assert {*tmp_path.rglob("*")} == before


def test_many_programs_at_the_same_time_keep_their_folders(tmp_path):
    code = """
import sys
from pathlib import Path
from racedata.loader.temporary import temporary_folder
for _ in range(200):
    with temporary_folder(Path(sys.argv[1])) as folder:
        (folder / "racedata.db").write_text("x")
        assert (folder / "racedata.db").read_text() == "x"
"""
    programs = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path], cwd=ROOT) for _ in range(4)
    ]
    assert [program.wait() for program in programs] == [0, 0, 0, 0]
    assert [*tmp_path.iterdir()] == []


def test_a_load_removes_the_files_of_a_killed_conversion(tmp_path):
    database = tmp_path / "racedata.db"
    old = built(SAMPLE, database).read_bytes()
    convert = "import sys; from racedata.loader.provide import provide; provide(sys.argv[1])"

    def left():
        return [*tmp_path.glob(".racedata-*")]

    # It is killed as soon as its folder exists. A very fast one has ended by then, and is started
    # again.
    while not left():
        with subprocess.Popen([sys.executable, "-c", convert, database], cwd=ROOT) as process:
            until(lambda process=process: bool(left()) or process.poll() is not None)
            process.kill()
        if not left():
            database.write_bytes(old)
    assert run_loader(SAMPLE, database).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "racedata.db",
        "racedata.sources.db",
    ]

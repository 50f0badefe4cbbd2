"""racedata.loader.temporary: what killed programs have left is removed, and nothing else."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from support import ROOT, SAMPLE
from support.loads import LOAD, built, run_loader
from support.processes import until

from racedata.loader.temporary import temporary_folder

# A program in the middle of its work: it says so, and waits.
WORKING = """
import sys, time
from pathlib import Path
from racedata.loader.temporary import temporary_folder
with temporary_folder("racedata-", "stage.db", Path(sys.argv[1])) as folder:
    (folder / "stage.db").touch()
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
        assert (killed / "stage.db").exists()
        with temporary_folder("racedata-", "stage.db", tmp_path) as own:
            assert {*tmp_path.iterdir()} == {running, own}
        assert [*tmp_path.iterdir()] == [running]
        assert (running / "stage.db").exists()


def test_a_folder_of_another_name_or_user_or_with_other_files_stays(tmp_path):
    for name in ("racedata-data", "racedata-12345678", "racedata-87654321/stage.db", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "racedata-12345678" / "diary.txt").touch()
    (tmp_path / "racedata-abcdefgh").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "racedata-file0000").touch()
    if os.geteuid() == 0:  # only root may give a folder away
        (tmp_path / "racedata-00000000").mkdir()
        os.chown(tmp_path / "racedata-00000000", 12345, 12345)
    before = {*tmp_path.rglob("*")}
    with temporary_folder("racedata-", "stage.db", tmp_path):
        pass
    assert {*tmp_path.rglob("*")} == before


def test_many_programs_at_the_same_time_keep_their_folders(tmp_path):
    code = """
import sys
from pathlib import Path
from racedata.loader.temporary import temporary_folder
for _ in range(200):
    with temporary_folder("racedata-", "stage.db", Path(sys.argv[1])) as folder:
        (folder / "stage.db").write_text("x")
        assert (folder / "stage.db").read_text() == "x"
"""
    programs = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path], cwd=ROOT) for _ in range(4)
    ]
    assert [program.wait() for program in programs] == [0, 0, 0, 0]
    assert [*tmp_path.iterdir()] == []


def test_a_load_removes_the_files_of_killed_loads_and_conversions(tmp_path):
    temporary, data = tmp_path / "tmp", tmp_path / "data"
    temporary.mkdir()
    data.mkdir()
    database, environ = data / "racedata.db", {**os.environ, "TMPDIR": str(temporary)}
    old = built(SAMPLE, database).read_bytes()
    convert = "import sys; from racedata.loader.provide import provide; provide(sys.argv[1])"
    for command, left in (
        (
            [*LOAD, SAMPLE, SAMPLE, "--database", data / "other.db"],
            lambda: [*temporary.glob("racedata-*/stage.db")],
        ),
        ([sys.executable, "-c", convert, database], lambda: [*data.glob(".racedata.db.????????")]),
    ):
        # It is killed as soon as its folder exists. A very fast one has ended by then, and is
        # started again.
        while not left():
            with subprocess.Popen(
                command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL
            ) as process:
                until(lambda process=process, left=left: bool(left()) or process.poll() is not None)
                process.kill()
            if not left():
                database.write_bytes(old)
    (data / ".other.db.loading").unlink(missing_ok=True)
    assert run_loader(SAMPLE, database, SAMPLE, env=environ).returncode == 0
    assert [*temporary.iterdir()] == []
    names = [path.name for path in data.iterdir() if not path.name.startswith("other.")]
    assert sorted(names) == ["racedata.db", "racedata.sources.db"]

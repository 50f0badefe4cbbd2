"""The wheel, and the source distribution: what is in them, and that they work where there is no
checkout.
"""

import email
import json
import os
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from contextlib import contextmanager

import pytest
from support import ROOT, SAMPLE
from support.loads import rows_of, without
from support.processes import free_port, started, until

from racedata import __version__

pytestmark = pytest.mark.long(45)  # all together

INFO = f"racedata_f1-{__version__}.dist-info"
PACKAGE = {
    str(path.relative_to(ROOT))
    for path in (ROOT / "racedata").rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
}
BUILD_PACKAGES = """import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import release
release.build_packages(release.ROOT, Path(sys.argv[2]), release.time_of(release.ROOT))"""
SETTINGS = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}


def run(*command, folder, **environ):
    """What a command prints. Its environment has only PATH, and HOME: the folder."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), **environ}
    return subprocess.run(
        command, cwd=folder, env=environ, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """A folder with the wheel, the source distribution, and an environment `venv` that has the
    wheel.
    """
    folder = tmp_path_factory.mktemp("dist")
    run("make", "-C", ROOT, "dist", f"PYTHON={sys.executable}", folder=folder, **SETTINGS)
    for path in (ROOT / "dist").iterdir():
        shutil.copy(path, folder)
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", folder=folder)
    options = ["--python", folder / "venv/bin/python", "--disable-pip-version-check", "--quiet"]
    run(sys.executable, "-m", "pip", *options, "install", wheel, folder=folder, **SETTINGS)
    return folder


def test_the_packages_have_what_they_need_and_nothing_else(dist):
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = {*archive.namelist()}
        metadata = email.message_from_bytes(archive.read(f"{INFO}/METADATA"))
    about = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt", "licenses/LICENSE")
    licences = ("racedata/sample/licence.txt", "racedata/service/outlines-licence.txt")
    assert names == PACKAGE | {
        f"{INFO}/{name}" for name in (*about, *(f"licenses/{name}" for name in licences))
    }
    assert {"racedata/py.typed", "racedata/loader/corrections.csv", *licences} <= names
    assert (metadata["Name"], metadata["Version"]) == ("racedata-f1", __version__)
    assert metadata["License-Expression"].startswith("MIT AND CC-BY-NC-SA-3.0 AND ")
    assert "pipx run racedata-f1 serve" in metadata.get_payload()
    with tarfile.open(source) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    # setuptools adds tests that are directly in tests/.
    assert {
        name for name in names if not name.startswith(("racedata_f1.egg-info/", "tests/test_"))
    } == PACKAGE | {*("LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg")}


def test_the_packages_of_a_release_have_the_same_bytes_each_time(dist, tmp_path):
    command = [sys.executable, "-c", BUILD_PACKAGES, ROOT / "scripts"]
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        run(*command, tmp_path / name, folder=ROOT)
    x, y = ({path.name: path.read_bytes() for path in (tmp_path / n).iterdir()} for n in "xy")
    assert x == y
    assert sorted(x) == sorted(
        path.name for path in dist.iterdir() if path.suffix in (".whl", ".gz")
    )


@contextmanager
def serving(command, folder, *options, **environ):
    """The address of `racedata serve` on a free port, which runs during the block."""
    port = free_port()
    arguments = f"serve --port {port} --workers 1 --burst-limit off".split()
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **environ}
    command = [command, *arguments, *options]
    with started(command, ("127.0.0.1", port), cwd=folder, env=environ):
        yield f"http://127.0.0.1:{port}"


def total(address):
    with urllib.request.urlopen(address) as answer:
        return str(json.load(answer)["MRData"]["total"])


def test_the_wheel_serves_the_sample_and_loads_refreshes_and_checks_data(
    dist, tmp_path, sample_database
):
    command, data = dist / "venv" / "bin" / "racedata", tmp_path / "share"
    database = data / "racedata" / "racedata.db"
    dump = without(SAMPLE, tmp_path / "dump", 2023, 18)
    empty = tmp_path / "empty"
    empty.mkdir()

    def racedata(*arguments):
        return run(command, *arguments, folder=empty, XDG_DATA_HOME=str(data))

    with serving(command, empty, XDG_DATA_HOME=str(data)) as address:
        assert total(f"{address}/ergast/f1/2023/18/results.json") == "20"
        assert rows_of(database) == rows_of(sample_database)
        assert racedata("healthcheck", "--url", f"{address}/healthz").startswith("ok: sample")
        assert f"{database}: " in racedata("load", dump)
        until(lambda: total(f"{address}/ergast/f1/2023/18/results.json") == "0")
        with serving(command, empty, "--database", str(sample_database)) as other:
            assert f"{database}: new data after " in racedata(
                "refresh", "--from", f"{other}/ergast/f1"
            )
        until(lambda: total(f"{address}/ergast/f1/2023/18/results.json") == "20")
    assert "checks reported" in racedata("check")
    assert list(empty.iterdir()) == []  # not even a cache


def test_both_names_of_the_command_and_the_module_print_the_version(dist, tmp_path):
    commands = dist / "venv" / "bin"
    module = [commands / "python", "-m", "racedata"]
    for command in ([commands / "racedata"], [commands / "racedata-f1"], module):
        assert run(*command, "--version", folder=tmp_path) == f"racedata {__version__}\n"

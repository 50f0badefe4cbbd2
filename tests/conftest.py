"""What several test modules need: databases built by the loader itself, and the application over one of them."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest
import webtest
from support.service import ROOT

from racedata.app import create_app
from racedata.settings import Settings
from racedata.snapshot import Snapshot

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("racedata", deadline=None)
hypothesis.settings.load_profile("racedata")

# As in test modules, a failed assertion shows its values.
pytest.register_assert_rewrite("support.description", "support.floods", "support.loads")

# Tests that run make would else behave as a make inside of `make check`.
for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(name, None)

SAMPLE = ROOT / "racedata" / "sample"
LOAD = [sys.executable, "-m", "racedata", "load"]


def run_loader(source, database, *arguments, **options):
    """The loader as a process of its own, finished."""
    command = [*LOAD, *arguments, source, "--database", database]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def built(source, database, *arguments):
    """The path of a database that the loader has built from `source`."""
    run_loader(source, database, *arguments).check_returncode()
    return database


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now=0):
        self.now = now

    def __call__(self):
        return self.now


def client(path, **settings):
    """The application over the database at `path`."""
    return webtest.TestApp(create_app(Settings(**settings), Snapshot.read(path)))


def bodies(path, addresses):
    """What the application over the database at `path` answers at each of the addresses, to a client of localhost."""
    app = client(path)
    return {address: app.get(address, headers={"Host": "localhost"}).body for address in addresses}


def request(app, **environ):
    """The answer to a request of any kind: webtest's own methods send no more than a decent client would."""
    return webtest.TestRequest.blank("/", environ=environ).get_response(app.app)


@pytest.fixture(autouse=True)
def seed():
    """Seeds `random` and prints the seed, which pytest shows if the test fails. TEST_SEED repeats it."""
    number = int(os.environ.get("TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TEST_SEED={number}")
    random.seed(number)


@pytest.fixture(scope="session")
def sample_database(tmp_path_factory):
    """The path of a database built from data/sample."""
    return built(SAMPLE, tmp_path_factory.mktemp("sample") / "racedata.db")


@pytest.fixture
def source(tmp_path):
    """A copy of the sample, to change."""
    return shutil.copytree(SAMPLE, tmp_path / "source")


@pytest.fixture
def database(sample_database, tmp_path):
    """An existing database, alone in its folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    return shutil.copy(sample_database, folder / "racedata.db")


@pytest.fixture(scope="session")
def other_database(tmp_path_factory):
    """The path of a database like the sample's, with another name for one town and for one driver."""
    folder = tmp_path_factory.mktemp("other")
    source = shutil.copytree(SAMPLE, folder / "source")
    for file, old, new in [("circuits", "Spielberg", "Zeltweg"), ("drivers", "Leclerc", "Leclercq")]:
        path = source / f"{file}.csv"
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    return built(source, folder / "other.db")


@pytest.fixture(scope="session")
def sample(sample_database):
    """The application over the sample, with default settings."""
    return client(sample_database)


@pytest.fixture(scope="session")
def dump():
    """The folder of a full dump."""
    return folder_named_by("ERGAST_DUMP", "a full dump")


@pytest.fixture(scope="session")
def recorded():
    """The folder of recorded answers of Ergast and Jolpica."""
    return folder_named_by("ERGAST_RECORDED", "recorded answers")


@pytest.fixture(scope="session")
def dump_database(dump, tmp_path_factory):
    """The path of a database built from a full dump, as it is."""
    return built(dump, tmp_path_factory.mktemp("dump") / "racedata.db", "--corrections", "none")


def folder_named_by(variable, what):
    if variable not in os.environ:
        pytest.skip(f"{variable} does not name a folder with {what}")
    return Path(os.environ[variable])

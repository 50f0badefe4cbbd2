"""Fixtures that several test modules need: databases built by the loader itself, and the
application over one.
"""

import fcntl
import os
import random
import shutil
from pathlib import Path

import coverage
import hypothesis
import pytest
from support import SAMPLE

# Makes failed assertions show their values, as in test modules. Must come before these are
# imported.
pytest.register_assert_rewrite("support.answers", "support.loads", "support.traffic")

from support.answers import client  # noqa: E402
from support.loads import (  # noqa: E402
    built,
    built_with_corrections,
    changed,
    copied_alone,
    edit,
    of_races,
)

from racedata.service.process_memory import return_large_blocks  # noqa: E402

return_large_blocks()  # as the service does at its start: a test counts on it

# How long an example takes depends on what else the machine is doing.
hypothesis.settings.register_profile("racedata", deadline=None)
hypothesis.settings.load_profile("racedata")

# Otherwise, tests that run make would behave like a make inside `make check`.
for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(name, None)


# The fixtures that have a full dump, or answers about one.
DUMPS = {"dump", "jolpica", "f1db", "recorded", "openf1_recorded", "full_database"}


def pytest_addoption(parser):
    help = "write the expected words of pages again, to be read with git diff"
    parser.addoption("--write-pages", action="store_true", help=help)


def pytest_collection_modifyitems(items):
    """Marks the tests with a full dump, and puts the longest tests first. Otherwise, one of them
    would run alone at the end.
    """
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if DUMPS & {*item.fixturenames, *map(str, parameters)}:
            item.add_marker("dump")

    def seconds(item):
        marker = item.get_closest_marker("long")
        return 0 if marker is None else int((*marker.args, 10)[0])

    items.sort(key=seconds, reverse=True)


@pytest.fixture(autouse=True)
def unmeasured(request):
    """Does not measure the coverage of tests with a full dump: they would take twice the time."""
    measured = coverage.Coverage.current() if request.node.get_closest_marker("dump") else None
    if measured:
        measured.stop()
    yield
    if measured:
        measured.start()


@pytest.fixture(autouse=True)
def seed():
    """Seeds `random` and prints the seed, which pytest shows if the test fails. TEST_SEED repeats
    it.
    """
    number = int(os.environ.get("TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TEST_SEED={number}")
    random.seed(number)


@pytest.fixture(scope="session")
def built_once(tmp_path_factory, worker_id, testrun_uid):
    """Lets a function build a database only in the first of the parallel processes that asks for
    its name. Returns the path of a copy for this process.
    """

    def built_once(name, build):
        own = tmp_path_factory.getbasetemp()
        shared = (own if worker_id == "master" else own.parent) / f"{name}-{testrun_uid}"
        shared.mkdir(exist_ok=True)
        complete, unfinished = shared / "complete", shared / "unfinished"
        with (shared / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not complete.exists():
                unfinished.mkdir()
                build(unfinished / "racedata.db")
                unfinished.rename(complete)
        return shutil.copytree(complete, tmp_path_factory.mktemp(name) / "data") / "racedata.db"

    return built_once


@pytest.fixture(scope="session")
def sample_database(built_once):
    """A database built from the sample, after the errors in expected/corrections.csv were
    corrected.
    """
    return built_once("sample", built_with_corrections)


@pytest.fixture(scope="session")
def small_dump(tmp_path_factory):
    """A dump of one race, in Austria in 2023, of which the service has few addresses."""
    folder = tmp_path_factory.mktemp("small") / "dump"
    return of_races(SAMPLE, folder, lambda race: (race["year"], race["round"]) == ("2023", "9"))


@pytest.fixture
def source(tmp_path):
    """A copy of the sample, to change."""
    return shutil.copytree(SAMPLE, tmp_path / "source")


@pytest.fixture
def database(sample_database, tmp_path):
    """An existing database, alone in its folder."""
    return copied_alone(sample_database, tmp_path / "data")


@pytest.fixture
def several_sources(database):
    """A database with a dump and an API besides its base."""
    return changed(
        database,
        """INSERT INTO sources (name, address, licence, readAt, isLoaded, gave) VALUES
           ('f1db', 'https://example.org/f1db.zip?key=1', 'CC BY 4.0', '2026-11-22T06:00:00Z', 1,
            'practice of 2 races'),
           ('https://example.org/f1?key=1', 'https://example.org/f1?key=1', NULL,
            '2026-11-22T06:00:00Z', 0, '')""",
    )


@pytest.fixture(scope="session")
def other_database(tmp_path_factory):
    """A database like the sample's, with another name for one town and for one driver."""
    folder = tmp_path_factory.mktemp("other")
    source = shutil.copytree(SAMPLE, folder / "source")
    edit(source / "circuits.csv", "Spielberg", "Zeltweg")
    edit(source / "drivers.csv", ",Leclerc,", ",Leclercq,")
    return built(source, folder / "other.db")


@pytest.fixture(scope="session")
def sample(sample_database):
    """The application over the sample, with default settings."""
    return client(sample_database)


def named_by(variable):
    """A fixture that returns the path in a variable of the environment (CONTRIBUTING.md)."""

    @pytest.fixture(scope="session")
    def path():
        if variable not in os.environ:
            pytest.skip(f"{variable} is not set")
        return Path(os.environ[variable])

    return path


dump = named_by("ERGAST_DUMP")
recorded = named_by("ERGAST_RECORDED")
openf1_recorded = named_by("OPENF1_RECORDED")  # a folder for each season
jolpica = named_by("JOLPICA_DUMP")  # with a folder `answers` of what Jolpica answers over it
f1db = named_by("F1DB_DUMP")


@pytest.fixture(scope="session")
def dump_database(dump, built_once):
    """A database built from the full dump, as it is."""
    return built_once("dump", lambda path: built(dump, path, None))


@pytest.fixture(scope="session")
def full_database(dump, f1db, built_once):
    """A database built from the full dump, with what a release of f1db adds."""
    return built_once("full", lambda path: built([dump, f1db], path))


@pytest.fixture(params=["sample_database", "full_database"])
def any_database(request):
    """The sample's, and a full one."""
    return request.getfixturevalue(request.param)

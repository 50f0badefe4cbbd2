"""Fixtures of builds and refreshes: a store in memory, databases that are behind, and servers that
have what they lack.
"""

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from support import EXPECTED, SAMPLE
from support.answers import client
from support.apis import answers_of, served
from support.loads import (
    built,
    finished_sample,
    loader_settings,
    next_version,
    select,
    without,
)
from support.refreshes import F1DB
from support.releases import answers_of_release, released
from support.stores import put

from racedata.loader.build import build_database
from racedata.loader.corrections import CORRECTIONS, Corrections
from racedata.loader.load import load
from racedata.loader.store import Store


@pytest.fixture
def store():
    """A store in memory."""
    with closing(Store(Path(":memory:"))) as store:
        yield store


@pytest.fixture
def rows(store, tmp_path):
    """Builds a database from the store, after deliveries. Returns the rows that a query finds."""

    def rows(sql, *deliveries):
        if deliveries:
            put(store, *deliveries)
        path = tmp_path / "rows.db"
        path.unlink(missing_ok=True)
        build_database(path, store, Corrections([]), lambda text: None)
        return select(path, sql)

    return rows


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A dump of the sample without what seasons before 2023 lack."""
    return finished_sample(tmp_path_factory.mktemp("finished") / "dump")


@pytest.fixture(scope="session")
def complete(finished, tmp_path_factory):
    """A database with all of it."""
    return built(finished, tmp_path_factory.mktemp("complete") / "racedata.db")


@pytest.fixture(scope="module")
def api_server(complete):
    with served(answers_of(client(complete))) as server:
        yield server


@pytest.fixture
def api(api_server):
    """An API with all rounds of the sample."""
    api_server.paths.clear()
    api_server.faults.clear()
    return api_server


@pytest.fixture(scope="session")
def behind_file(tmp_path_factory, finished):
    """A database like the sample's, without the latest round that was run."""
    folder = tmp_path_factory.mktemp("behind")
    return built(without(finished, folder / "dump", 2023, 18), folder / "racedata.db")


def copy_of(name):
    """A fixture that returns a copy of another one's database, without its store."""

    @pytest.fixture
    def copied(request, tmp_path):
        return shutil.copy(request.getfixturevalue(name), tmp_path / "racedata.db")

    return copied


behind, current = copy_of("behind_file"), copy_of("complete")


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """A folder from which Python runs the next version of racedata."""
    return next_version(tmp_path_factory.mktemp("next"))


@pytest.fixture(scope="session")
def old_files(tmp_path_factory):
    """A database of this version and its store, whose source is gone."""
    folder = tmp_path_factory.mktemp("old")
    source = shutil.copytree(SAMPLE, folder / "dump")
    (folder / "data").mkdir()
    built(source, folder / "data" / "racedata.db")
    shutil.rmtree(source)
    return folder / "data"


@pytest.fixture
def old(old_files, tmp_path):
    """A copy of that database."""
    return shutil.copytree(old_files, tmp_path / "old") / "racedata.db"


@pytest.fixture
def release():
    """A small release of f1db, as GitHub publishes it."""
    with released(answers_of_release(F1DB)) as found:
        yield found


@pytest.fixture(scope="session")
def merged(tmp_path_factory):
    """A database with all kinds of records: the sample and what f1db adds."""
    path = tmp_path_factory.mktemp("merged") / "merged.db"
    sources = [str(SAMPLE), str(EXPECTED / "f1db")]
    load(sources, loader_settings(path, CORRECTIONS), lambda text: None)
    return path

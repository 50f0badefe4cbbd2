"""Fixtures of refreshes: databases that are behind, and servers that have what they lack."""

import pytest
from support.answers import client
from support.apis import answers_of, served
from support.loads import built, finished_sample, without
from support.refreshes import F1DB
from support.releases import answers_of_release, released


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


@pytest.fixture
def behind(behind_file, tmp_path):
    """A copy of that database."""
    database = tmp_path / "racedata.db"
    database.write_bytes(behind_file.read_bytes())
    return database


@pytest.fixture
def current(complete, tmp_path):
    """A copy of the sample's database."""
    database = tmp_path / "racedata.db"
    database.write_bytes(complete.read_bytes())
    return database


@pytest.fixture
def release():
    """A small release of f1db, as GitHub publishes it."""
    with released(answers_of_release(F1DB)) as found:
        yield found

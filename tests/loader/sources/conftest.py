"""Fixtures: a changed sample; for OpenF1, a server with two weekends, databases without them or
filled from it.
"""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from support.apis import served
from support.loads import built, copied_alone, edited
from support.openf1 import RECORDS, OpenF1Server, excerpt, refresh, without_records


@pytest.fixture
def made(finished, tmp_path):
    """Makes a database from the finished sample, with edits of its files."""

    def made(name, **edits):
        return built(edited(finished, tmp_path / name, **edits), tmp_path / f"{name}.db")

    return made


@pytest.fixture(scope="module")
def lacking_file(sample_database, tmp_path_factory):
    """The sample without the records of the two weekends."""
    path = tmp_path_factory.mktemp("lacking") / "racedata.db"
    return without_records(shutil.copy(sample_database, path), *RECORDS)


@pytest.fixture
def lacking(lacking_file, tmp_path):
    """A copy of it, alone in its folder."""
    return copied_alone(lacking_file, tmp_path / "lacking")


@pytest.fixture
def rows():
    return excerpt()


@pytest.fixture
def openf1(rows):
    """A server that has `rows`, which a test may change."""
    with served(OpenF1Server(rows).answer) as server:
        yield server


class Filled(NamedTuple):
    """What a refresh has filled in."""

    database: Path
    said: list[str]
    requests: list[str]


@pytest.fixture(scope="module")
def filled(lacking_file, tmp_path_factory):
    """The two weekends from OpenF1."""
    database = shutil.copy(lacking_file, tmp_path_factory.mktemp("filled") / "racedata.db")
    with served(OpenF1Server(excerpt()).answer) as server:
        said = refresh(database, server)
        return Filled(database, said, server.paths)


@pytest.fixture
def copied(filled, tmp_path):
    """A copy of the database that OpenF1 has filled in."""
    return shutil.copy(filled.database, tmp_path / "racedata.db")

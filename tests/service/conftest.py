"""Fixtures of several tests of the service."""

import shutil

import pytest
from support import SAMPLE
from support.loads import built, edited, race_ids, without
from support.refreshes import F1DB


def decided(source, folder):
    """A copy of a dump in which the third of 2023/18 is seventh: as after a penalty."""
    race = race_ids(source, 2023)[18]

    def edit(row):
        order = int(row["positionOrder"])
        if row["raceId"] != race or not 3 <= order <= 7:
            return row
        place = str(7 if order == 3 else order - 1)
        return {**row, "position": place, "positionText": place, "positionOrder": place}

    return edited(source, folder, results=edit)


@pytest.fixture(scope="session")
def altered(tmp_path_factory):
    """A database that first lacked the race 2023/18, then had its results, then other ones."""
    folder = tmp_path_factory.mktemp("altered")
    dump, database = folder / "dump", folder / "racedata.db"
    versions = [without(SAMPLE, folder / "before", 2023, 18), SAMPLE, decided(SAMPLE, folder / "c")]
    for version in versions:
        shutil.copytree(version, dump, dirs_exist_ok=True)
        built(dump, database)
    return database


@pytest.fixture
def changing(altered, tmp_path):
    """A copy of that database, to change."""
    return shutil.copy(altered, tmp_path / "racedata.db")


@pytest.fixture(scope="session")
def two_sources(tmp_path_factory):
    """A database of the sample and of what f1db says about two of its races."""
    return built([SAMPLE, F1DB], tmp_path_factory.mktemp("two") / "racedata.db")

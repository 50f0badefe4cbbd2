"""racedata.loader.configured: RACEDATA_SOURCE is loaded if the database is not built from it."""

import re
import shutil

import pytest
from support import SAMPLE
from support.loads import (
    built,
    changed,
    rows_of,
    select,
    without,
)
from support.processes import following
from support.refreshes import (
    F1DB,
    assert_ends_at_once,
)

from racedata.loader.configured import ConfiguredSources
from racedata.loader.corrections import CORRECTIONS
from racedata.loader.errors import LoadError


def configured(database, *sources):
    return ConfiguredSources(str(database), [*map(str, sources)], CORRECTIONS, ["f1db"])


def test_the_configured_sources_are_loaded_if_no_other_sources_are(tmp_path, sample_database):
    database = tmp_path / "x.db"
    sources = configured(database, F1DB)
    assert not sources.are_optional()
    loaded = f"{database}: 1957 to 2025 (3 seasons, 6 races) from {F1DB}"
    assert sources.load() == loaded
    assert sources.load() == ""
    # While it runs:
    database.unlink()
    assert sources.load() == loaded
    shutil.copy(sample_database, database)
    assert not sources.are_optional()
    assert sources.load() == loaded
    built(without(SAMPLE, tmp_path / "dump", 2023, 18), database)
    assert sources.load() == ""
    assert sources.are_optional()


def test_at_the_start_the_configured_sources_are_loaded_if_they_have_changed(database):
    dump = select(database, "SELECT address FROM sources")[0][0]
    changed(database, "UPDATE build SET isSample = 0")
    assert configured(database, dump).load() == ""
    line = configured(database, F1DB, dump).load()
    assert line.endswith(
        f" from {F1DB} and {dump}; RACEDATA_SOURCE has changed: until now, the data came from "
        f"{dump}"
    )
    assert configured(database, F1DB, dump).load() == ""
    assert configured(database).load() == ""


@pytest.mark.parametrize(
    "content", [b"", b"?", None], ids=["empty", "no database", "a newer version"]
)
def test_a_file_that_cannot_be_understood_is_never_replaced(database, content):
    if content is None:
        changed(database, "PRAGMA user_version = 10")
    else:
        database.write_bytes(content)
    before = database.read_bytes(), database.stat().st_ino
    sources = configured(database, F1DB)
    for _ in range(2):
        with pytest.raises(
            LoadError, match=r"is not an SQLite database|has schema version 10, which is newer"
        ):
            sources.load()
    assert (database.read_bytes(), database.stat().st_ino) == before
    assert [*database.parent.iterdir()] == [database]


@pytest.mark.parametrize("is_sample", [False, True], ids=["no database", "only the sample"])
def test_follow_first_loads_the_configured_sources_if_it_has_no_database_of_its_own(
    api, behind_file, complete, sample_database, tmp_path, is_sample
):
    database = tmp_path / "racedata.db"
    if is_sample:
        shutil.copy(sample_database, database)
    dump = str(behind_file.parent / "dump")
    with following(database, "--from", api.url, RACEDATA_SOURCE=dump) as follow:
        assert (
            follow.stdout.readline()
            == f"{database}: 1957 to 2023 (4 seasons, 28 races) from {dump}\n"
        )
        assert f"{database}: new data" in follow.stdout.readline()
        assert rows_of(database) == rows_of(complete)
        assert_ends_at_once(follow)


def test_follow_keeps_its_data_if_a_change_of_the_configured_sources_cannot_be_loaded(
    api, behind, complete
):
    with following(
        behind, "--from", api.url, RACEDATA_SOURCE="http://127.0.0.1:1/dump.zip"
    ) as follow:
        assert re.search(
            r"dump.zip: .*Connection refused; .*next try at ", follow.stderr.readline()
        )
        assert "new data" in follow.stdout.readline()
        assert_ends_at_once(follow)
    assert rows_of(behind) == rows_of(complete)

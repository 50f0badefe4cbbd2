"""racedata.loader.sources.f1db_release: a release is downloaded once, if it is new, and checked."""

import shutil

import pytest
from support import SAMPLE
from support.apis import FAULTS, refreshed
from support.loads import built, select
from support.refreshes import F1DB, HOUR, NOW, origins_of, state
from support.releases import EXPIRED, answers_of_release

from racedata.loader.errors import LoadError


def test_a_hostile_calendar_in_a_release_is_one_line_and_changes_nothing(release, tmp_path):
    """test_update.py has all reasons to refuse a calendar."""
    (tmp_path / "data").mkdir()
    database = built(F1DB, tmp_path / "data" / "racedata.db")
    before = state(database.parent)
    hostile = shutil.copytree(F1DB, tmp_path / "hostile")
    races = hostile / "f1db-races.csv"
    races.write_text(races.read_text().replace("2025-11-23", "9999-12-31"))
    release.answer = answers_of_release(hostile)
    address = f"{release.url}/f1db-csv.zip"
    said = "the date of 2025/22 Las Vegas Grand Prix is '9999-12-31'; expected [^\n]+"
    with pytest.raises(LoadError, match=f"^f1db: {said}$"):
        refreshed(database, address)
    assert state(database.parent) == before


def test_a_release_that_lacks_a_race_is_read_again_after_a_day_and_then_the_race_is_gone(
    release, tmp_path
):
    """A release does not change, so it is not downloaded again without a reason."""
    database, url = built(F1DB, tmp_path / "x.db"), f"{release.url}/f1db-csv.zip"
    without_one = shutil.copytree(F1DB, tmp_path / "cancelled")
    for path in without_one.glob("f1db-races*.csv"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text(
            "".join(line for line in lines if not line.startswith("1147,")), encoding="utf-8"
        )
    release.answer = answers_of_release(without_one)
    for hours, races, downloads in ((0, 2, 1), (11, 2, 0), (24, 1, 1), (25, 1, 0)):
        release.paths.clear()
        refreshed(database, url, now=NOW + hours * HOUR)
        assert select(database, "SELECT count(*) FROM races WHERE year = 2025") == [(races,)]
        assert release.paths.count("f1db-csv.zip") == downloads


def test_a_release_is_downloaded_once_and_refused_if_its_checksum_is_wrong(api, release, behind):
    url = f"{release.url}/f1db-csv.zip"
    for expected in (
        ["checksums_sha256.txt", "checksums_sha256.txt", "f1db-csv.zip"],
        ["checksums_sha256.txt"],
    ):
        release.paths.clear()
        refreshed(behind, url)
        assert release.paths == expected
        refreshed(behind, api.url)  # what another source changes is no reason to download it again
    release.faults = dict.fromkeys((0, 1), lambda body: (200, {}, b"0" * 64 + b"  f1db-csv.zip"))
    release.paths.clear()
    before = state(behind.parent)
    with pytest.raises(
        LoadError, match=f"f1db-csv.zip: its SHA-256 is [0-9a-f]{{64}}; expected {'0' * 64}, as "
    ):
        refreshed(behind, url)
    assert state(behind.parent) == before


@pytest.mark.parametrize("fault", [FAULTS["broken off"], lambda body: EXPIRED])
def test_a_fault_at_any_download_changes_nothing_and_the_next_refresh_works(release, behind, fault):
    url = f"{release.url}/f1db-csv.zip"
    for number in range(3):  # the checksums, twice, and the release
        release.paths.clear()
        release.faults = {number: fault}
        before = state(behind.parent)
        with pytest.raises(LoadError, match=rf"^{release.url}/[^\n]+$") as error:
            refreshed(behind, url)
        assert "sig" not in str(error.value)  # of the expired address
        assert len(release.paths) == number + 1
        assert state(behind.parent) == before
    release.faults = {}
    refreshed(behind, url)
    assert origins_of(behind, 18)["results"] == "f1db"


def test_a_release_that_a_load_has_read_is_no_news(release, tmp_path):
    address = f"{release.url}/f1db-csv.zip"
    database = built([SAMPLE, address], tmp_path / "racedata.db")
    asked = len(release.paths)
    assert "no later release" in refreshed(database, address)[0][-1]
    assert release.paths[asked:] == ["checksums_sha256.txt"]

"""racedata.loader.sources.f1db_release: a release is downloaded once, if it is new, and checked."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest
from support import SAMPLE
from support.apis import FAULTS, refreshed
from support.loads import (
    built,
    select,
)
from support.processes import following
from support.refreshes import (
    F1DB,
    HOUR,
    NOW,
    origins_of,
    state,
)
from support.releases import EXPIRED, answers_of_release, file_of_release, released, zip_of
from support.season import SimulatedTime, follow_source

from racedata.loader.errors import LoadError

LAS_VEGAS = '1147,2025,22,"2025-11-23","04:00","las-vegas","las-vegas"'


# The message, and the line that replaces the last race of f1db's calendar. test_update.py has all
# reasons to refuse a calendar.
HOSTILE = {
    "the date of 2025/22 Las Vegas Grand Prix is '9999-12-31'; expected": LAS_VEGAS.replace(
        "2025-11-23", "9999-12-31"
    ),
    "column grandPrixId: 'a\\x00b'; expected an id": LAS_VEGAS.replace(
        '"las-vegas","', '"a\x00b","'
    ),
    "2025/20 and 2025/22 have the same circuit and date; expected": LAS_VEGAS.replace(
        '"2025-11-23","04:00","las-vegas","las-vegas"', '"2025-10-26",,"las-vegas","mexico-city"'
    ),
}


def test_a_hostile_calendar_in_a_release_is_one_line_and_changes_nothing(release, tmp_path):
    """The follower prints that line and the time of its next try."""
    (tmp_path / "data").mkdir()
    database = built(F1DB, tmp_path / "data" / "racedata.db")
    before = state(database.parent)
    hostile = shutil.copytree(F1DB, tmp_path / "hostile")
    text = (F1DB / "f1db-races.csv").read_text(encoding="utf-8")
    address = f"{release.url}/f1db-csv.zip"
    for said, line in HOSTILE.items():
        (hostile / "f1db-races.csv").write_text(text.replace(LAS_VEGAS, line), encoding="utf-8")
        release.answer = answers_of_release(hostile)
        with pytest.raises(LoadError) as caught:
            refreshed(database, address)
        complaint = str(caught.value)
        assert complaint.startswith(f"{address}: ") and said in complaint, complaint
        assert len(complaint) < 400 and "\n" not in complaint
        assert state(database.parent) == before
    with following(database, "--from", address) as follow:
        line = follow.stderr.readline()
        follow.terminate()
        assert follow.communicate(timeout=20) == ("", "")
    assert line.startswith(f"racedata refresh: {complaint}; next try at "), line
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
    for hours, races, downloads in (
        (0, 2, 1),
        (1, 2, 0),
        (11, 2, 0),
        (24, 1, 1),
        (25, 1, 0),
        (72, 1, 0),
    ):
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


def test_an_expired_address_of_a_file_is_one_line_without_the_signature(release, behind):
    for number, file in enumerate(["checksums_sha256.txt", "checksums_sha256.txt", "f1db-csv.zip"]):
        release.paths.clear()
        release.faults = {number: lambda body: EXPIRED}
        with pytest.raises(
            LoadError, match=rf"^{release.url}/{file}: status 403 Forbidden; expected"
        ) as error:
            refreshed(behind, f"{release.url}/f1db-csv.zip")
        assert "sig" not in str(error.value)


def test_a_release_that_cannot_be_used_is_downloaded_a_few_times_a_day_and_a_later_one_at_once(
    behind,
):
    """The checksum is wrong until a later release, 40 minutes after the second day has begun."""
    time = SimulatedTime(
        datetime(2023, 10, 22, 20, 30, tzinfo=UTC), datetime(2023, 10, 24, tzinfo=UTC)
    )
    later = datetime(2023, 10, 23, 21, 10, tzinfo=UTC)
    content, downloads = zip_of(F1DB), []

    def answer(file):
        if file == "f1db-csv.zip":
            downloads.append(time.now)
        elif time.now < later:
            return 200, {}, b"0" * 64 + b"  f1db-csv.zip\n"
        return file_of_release(content, file)

    with released(answer) as server:
        complaints = follow_source(behind, f"{server.url}/f1db-csv.zip", time)
    assert "its SHA-256 is" in complaints[0]
    assert complaints[1].endswith(
        "f1db-csv.zip: this release could not be used; next download in 55 minutes; "
        "expected a newer release"
    )
    assert len([each for each in downloads if each < later]) == 6
    assert timedelta() < downloads[6] - later < timedelta(minutes=61)
    assert len(downloads) == 7
    assert origins_of(behind, 18)["results"] == "f1db"


@pytest.mark.parametrize(
    "fault", [FAULTS[name] for name in ("html", "broken off", "an error", "nothing")]
)
def test_a_fault_at_any_download_changes_nothing_and_the_next_refresh_works(release, behind, fault):
    url = f"{release.url}/f1db-csv.zip"
    for number in range(3):  # the checksums, twice, and the release
        release.paths.clear()
        release.faults = {number: fault}
        before = state(behind.parent)
        with pytest.raises(LoadError, match=r"^http://127\.0\.0\.1:[^\n]+$"):
            refreshed(behind, url)
        assert len(release.paths) == number + 1
        assert state(behind.parent) == before
    release.faults = {}
    refreshed(behind, url)
    assert origins_of(behind, 18)["results"] == "f1db"


def test_a_release_under_another_name_is_the_same_source(api, behind, tmp_path):
    renamed = shutil.make_archive(str(tmp_path / "renamed"), "zip", F1DB)
    refreshed(behind, renamed, api.url)
    said, _ = refreshed(behind, renamed, api.url)
    assert [line.partition(" after ")[0] for line in said if "nothing new" in line] == [
        f"{behind}: nothing new"
    ] * 2


def test_a_season_that_the_first_source_of_a_load_lacks_comes_from_the_next(release, tmp_path):
    """The sample ends in 2023."""
    address = f"{release.url}/f1db-csv.zip"
    database = built([SAMPLE, address], tmp_path / "racedata.db")
    races = "SELECT round FROM races WHERE year = 2025 ORDER BY round"
    assert select(database, races) == [(20,), (22,)]
    assert origins_of(database, 9)["races"] == "sample"


def test_a_season_that_only_the_next_source_has_stays_if_that_source_fails(release, tmp_path):
    address = f"{release.url}/f1db-csv.zip"
    database = built([SAMPLE, address], tmp_path / "racedata.db")
    origins = """SELECT round, kind, sourceId FROM races JOIN origins USING (raceId)
        WHERE year = 2025 ORDER BY round, kind"""
    before = select(database, origins)
    assert {round for round, *_ in before} == {20, 22}
    release.answer = lambda path: (500, {}, b"")
    built([SAMPLE, address], database)
    assert select(database, origins) == before


def test_a_release_that_a_load_has_read_is_no_news(release, tmp_path):
    address = f"{release.url}/f1db-csv.zip"
    database = built([SAMPLE, address], tmp_path / "racedata.db")
    asked = len(release.paths)
    assert "no later release" in refreshed(database, address)[0][-1]
    assert release.paths[asked:] == ["checksums_sha256.txt"]

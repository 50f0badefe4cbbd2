"""racedata.service.feed: the feed of changes, as a reader of feeds sees it."""

import re
import shutil
import time

import feedparser
import pytest
from support import SAMPLE
from support.answers import client
from support.loads import built, changed, edited, race_ids, select, without

BASE = "/ergast/f1"


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


@pytest.fixture(scope="module")
def altered(tmp_path_factory):
    """A database that first lacked the race 2023/18, then had its results, then other ones."""
    folder = tmp_path_factory.mktemp("altered")
    dump, database = folder / "dump", folder / "racedata.db"
    versions = [without(SAMPLE, folder / "before", 2023, 18), SAMPLE, decided(SAMPLE, folder / "c")]
    for version in versions:
        shutil.copytree(version, dump, dirs_exist_ok=True)
        built(dump, database)
    return database


def entries(database, address="changes"):
    """The entries of a feed, as a reader has them."""
    answer = client(database).get(f"{BASE}/{address}.atom")
    assert answer.content_type == "application/atom+xml"
    feed = feedparser.parse(answer.body)
    assert not feed.bozo and feed.version == "atom10"
    assert all(feed.feed.get(name) for name in ("id", "title", "updated", "author"))
    return feed.entries


def test_an_entry_for_each_race_and_database_says_what_changed(altered):
    found = entries(altered)
    titles = [re.sub(r" \(\w+, \d+ \w+\)$", "", entry.title) for entry in found]
    assert titles[0] == (
        "United States Grand Prix 2023: Sainz 3rd → 7th, Pérez 4th → 3rd, Russell 5th → 4th, "
        "Gasly 6th → 5th, 1 other place"
    )
    assert "United States Grand Prix 2023: results are in" in titles
    assert "results, Sainz, positionText: 3 → 7; dump has changed it" in found[0].summary


def test_the_ids_of_entries_are_distinct_and_stay_with_later_changes(altered, tmp_path):
    before = entries(altered)
    assert len({entry.id for entry in before}) == len(before)
    copy = tmp_path / "racedata.db"
    shutil.copy(altered, copy)
    assert [entry.id for entry in entries(copy)] == [entry.id for entry in before]
    changed(copy, "UPDATE changes SET revision = 9, reason = 'x' WHERE record = 1")
    after = entries(copy)
    assert {entry.id for entry in before} < {entry.id for entry in after}


def test_a_feed_has_what_its_address_selects(altered):
    (entry,) = entries(altered, "2023/18/drivers/sainz/changes")
    assert entry.title.startswith("United States Grand Prix 2023: Sainz 3rd → 7th (")
    assert entries(altered, "2022/changes") == []
    assert all("2023" in entry.title for entry in entries(altered, "2023/changes"))


def test_a_time_of_an_entry_is_that_of_the_build(altered):
    ((changed_at,),) = select(altered, "SELECT changedAt FROM changes WHERE record = 1")
    updated = entries(altered)[0].updated_parsed
    assert time.strftime("%Y-%m-%dT%H:%M:%SZ", updated) == changed_at


def test_a_place_that_is_a_letter_is_a_word(altered, tmp_path):
    copy = tmp_path / "racedata.db"
    shutil.copy(altered, copy)
    seventh = "columnName = 'positionText' AND value = '7'"
    changed(copy, f"UPDATE changes SET value = 'D' WHERE {seventh}")
    assert "Sainz 3rd → disqualified" in entries(copy)[0].title


def test_changes_of_a_calendar_and_of_names_have_entries_of_their_own(altered, tmp_path):
    def renamed(row):
        return {**row, "code": "SAI2"} if row["driverRef"] == "sainz" else row

    database, names = tmp_path / "racedata.db", tmp_path / "names"
    dump = shutil.copytree(SAMPLE, tmp_path / "dump")
    built(without(dump, tmp_path / "a", 2023, 22, races=last_away(dump)), database)
    built(dump, database)
    built(edited(dump, names, drivers=renamed), database)
    titles = [entry.title.rpartition(" (")[0] for entry in entries(database)]
    assert titles[0] == "Names: 1 value of drivers"
    assert "Calendar 2023: 1 value of races" in titles


def last_away(dump):
    race = race_ids(dump, 2023)[22]
    return lambda row: None if row["raceId"] == race else row


def test_json_and_csv_have_the_same_values_and_since_selects_later_ones(altered):
    app = client(altered)
    table = app.get(f"{BASE}/2023/18/changes.json?limit=2000").json["MRData"]["ChangeTable"]
    assert (table["season"], table["round"]) == ("2023", "18")
    first = table["Changes"][0]
    assert first | {"time": "", "reason": ""} == {
        "revision": "3",
        "time": "",
        "season": "2023",
        "round": "18",
        "raceName": "United States Grand Prix",
        "kind": "results",
        "key": "2023/18/sainz",
        "driverId": "sainz",
        "circuitId": "americas",
        "column": "positionText",
        "oldValue": "3",
        "value": "7",
        "oldSource": "dump",
        "source": "dump",
        "reason": "",
    }
    lines = app.get(f"{BASE}/2023/18/changes.csv?limit=2000").text.splitlines()
    assert len(lines) == len(table["Changes"]) + 1
    later = app.get(f"{BASE}/changes.json?since=2999-01-01").json["MRData"]
    assert later["total"] == "0"
    assert app.get(f"{BASE}/changes?since={first['time']}").json["MRData"]["total"] != "0"
    error = app.get(f"{BASE}/changes?since=yesterday", status=400).json["detail"]
    assert error == (
        "since is 'yesterday'; expected a day or a time in UTC, such as 2026-09-01 or "
        "2026-09-01T12:00:00Z."
    )

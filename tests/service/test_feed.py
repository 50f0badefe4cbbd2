"""racedata.service.feed, news: the feed of changes, as a reader of feeds sees it."""

import re
import shutil
import time

import feedparser
import pytest
from support import SAMPLE
from support.answers import client
from support.loads import built, changed, edited, race_ids, select, without

from racedata.service.news import by_subject

BASE = "/ergast/f1"
HOST = "http://localhost:80"


def entries(database, address="changes", **settings):
    """The entries of a feed, as a reader has them."""
    answer = client(database, **settings).get(f"{BASE}/{address}.atom")
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
    assert "results, Sainz, place: 3 → 7; dump has changed it" in found[0].summary
    assert found[0].link == f"{HOST}/2023/18"


@pytest.mark.parametrize(
    ("base_url", "root"),
    [
        ("https://f1.example.org/ergast/f1", "https://f1.example.org"),
        ("https://f1.example.org/x/ergast/f1", "https://f1.example.org/x"),
        ("https://f1.example.org/api", "https://f1.example.org"),
    ],
)
def test_entries_link_to_the_pages_of_their_races_below_the_base_url(altered, base_url, root):
    links = [entry.link for entry in entries(altered)]
    assert f"{HOST}/2023/18" in links
    found = [entry.link for entry in entries(altered, base_url=base_url)]
    assert found == [link.replace(HOST, root) for link in links]


def test_the_ids_of_entries_are_distinct_and_stay_with_later_changes(altered, changing):
    before = entries(altered)
    assert len({entry.id for entry in before}) == len(before)
    assert [entry.id for entry in entries(changing)] == [entry.id for entry in before]
    after = entries(
        changed(changing, "UPDATE changes SET revision = 9, reason = 'x' WHERE record = 1")
    )
    assert {entry.id for entry in before} < {entry.id for entry in after}


def test_a_feed_has_what_its_address_selects(altered):
    (entry,) = entries(altered, "2023/18/drivers/sainz/changes")
    assert entry.title.startswith("United States Grand Prix 2023: Sainz 3rd → 7th (")
    # a reader such as Home Assistant never asks again for an empty feed
    assert [entry.title for entry in entries(altered, "2022/changes")] == ["No changes yet"]
    assert all("2023" in entry.title for entry in entries(altered, "2023/changes"))


def test_a_time_of_an_entry_is_that_of_the_build(altered):
    ((changed_at,),) = select(altered, "SELECT changedAt FROM changes WHERE record = 1")
    updated = entries(altered)[0].updated_parsed
    assert time.strftime("%Y-%m-%dT%H:%M:%SZ", updated) == changed_at


SEVENTH = "WHERE columnName = 'positionText' AND value = '7'"


def test_a_place_that_is_a_letter_is_a_word(changing):
    changed(changing, f"UPDATE changes SET value = 'D' {SEVENTH}")
    assert "Sainz 3rd → disqualified" in entries(changing)[0].title


def test_in_a_build_the_race_that_was_decided_is_before_those_whose_standings_follow():
    def change(revision, race, kind):
        facts = {"revision": revision, "season": "2026", "raceName": race}
        return {**facts, "kind": kind, "column": "points"}

    changes = [
        change("9", "Austrian Grand Prix", "driver_standings"),
        change("9", "Monaco Grand Prix", "driver_standings"),
        change("9", "Monaco Grand Prix", "results"),
        change("8", "British Grand Prix", "results"),
    ]
    found = [[each["raceName"] for each in of_subject] for of_subject in by_subject(changes)]
    monaco, austria = "Monaco Grand Prix", "Austrian Grand Prix"
    assert found == [[monaco, monaco], [austria], ["British Grand Prix"]]


def test_milliseconds_are_shown_as_a_time(changing):
    values = "columnName = 'milliseconds', oldValue = '26012', value = '5721362'"
    changed(changing, f"UPDATE changes SET {values} {SEVENTH}")
    said = " ".join(entry.summary for entry in entries(changing))
    assert "results, Sainz, time: 26.012 → 1:35:21.362; dump has changed it" in said


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


def test_records_that_are_gone_are_no_value_that_has_changed(altered, tmp_path):
    """As after the removal of a source."""
    database, dump = tmp_path / "racedata.db", shutil.copytree(SAMPLE, tmp_path / "dump")
    built(dump, database)
    built(without(dump, tmp_path / "less", 2023, 18), database)
    found = {entry.title.rpartition(" (")[0]: entry for entry in entries(database)}
    gone = found.get("United States Grand Prix 2023: results are gone")
    assert gone and "results, all: 20 records → none; no source has it any more" in gone.summary

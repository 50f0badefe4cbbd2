"""racedata.service.feed, news, words: the feed of changes, as a reader of feeds sees it."""

import re
import time

import feedparser
import pytest
from support.answers import client
from support.loads import changed, select

from racedata.service.words import place_in_words

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


def test_a_place_is_an_ordinal_or_what_its_letter_means():
    words = map(place_in_words, ["1", "2", "3", "4", "11", "12", "13", "21", "R", "?"])
    assert " ".join(words) == "1st 2nd 3rd 4th 11th 12th 13th 21st retired ?"

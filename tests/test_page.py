"""racedata.page: the page at `/`, and that every link on it works."""

import re
import shutil
from html import unescape

import pytest
from support import SAMPLE
from support.answers import client, words_of
from support.loads import built, changed

from racedata import page
from racedata.addresses import FILTERS
from racedata.loader import tables as loader
from racedata.resources import ENDPOINTS
from racedata.settings import Settings
from racedata.snapshot import Snapshot, public_name, public_url

BASE = Settings().base_address


def test_the_page_says_what_is_loaded_and_when_it_was_built(sample, sample_database):
    text = words_of(sample.get("/").text)
    data = Snapshot.read(sample_database)
    counts, build = data.row_counts(), data.build()
    assert "Seasons 5, from 1957 to 2023" in text
    for table, name in page.COUNTED.items():
        assert f"{name} {counts[table]:,}" in text
    assert f"Built {build['builtAt'][:10]} {build['builtAt'][11:19]} UTC" in text


def test_the_page_says_in_which_seasons_and_races_there_are_records_of_each_kind(sample):
    text = words_of(sample.get("/").text)
    for row in (
        "Results 1957 to 2023 all 8 ",
        "Pit stops 2021 to 2023 3 of 4 ",
        "Practice 2021 to 2023 3 of 4 ",
        "Sprints 2021 to 2023 3 Sprint",  # of 4 races, but one of these had no sprint
        "Driver standings 1957 to 2023 all 13 Constructor",  # also of races without results here
    ):
        assert row in text


def test_the_page_says_none_of_a_kind_without_records(database):
    text = words_of(client(changed(database, "DELETE FROM coverage WHERE kind = 'practice'")).get("/").text)
    assert "Practice none none " in text


def test_the_page_names_every_kind_of_records():
    assert {*page.KINDS} == {*loader.KINDS[1:]}


def test_the_page_has_each_source_with_its_own_licence_and_what_is_from_it(several_sources):
    html = client(several_sources).get("/").text
    text = words_of(html)
    assert "sample Licence: CC BY-NC-SA 4.0. Records: " in text
    assert "f1db Licence: CC BY 4.0. Records: practice of 2 races." in text
    assert "https://example.org/f1 Licence: not stated. Records: none." in text
    assert {"https://example.org/f1db.zip", "https://example.org/f1"} <= {*links_of(html)}
    assert "key=1" not in html


@pytest.mark.parametrize(("most", "default"), [(2000, 100), (50, 50)])
def test_the_page_says_the_default_and_the_largest_limit(sample_database, most, default):
    html = client(sample_database, max_limit=most).get("/").text
    assert f"({default} records by default, at most {most})" in words_of(html)


def links_of(html):
    return [unescape(link) for link in re.findall('<a href="([^"]*)"', html)]


@pytest.mark.parametrize("base", ["/ergast/f1", "/racing"])
def test_every_link_of_the_page_works_and_those_of_endpoints_have_data(sample_database, base):
    settings = {} if base == "/ergast/f1" else {"base_path": "", "series": "racing"}
    app = client(sample_database, **settings)
    links = links_of(app.get("/").text)
    assert {"openapi.json", "healthz", f"{base}/current.json", f"{base}/seasons.json"} <= {*links}
    for link in links:
        answer = app.get(link if link.startswith(("/", "#")) else f"/{link}", status=200)
        if link.startswith(base) and link.endswith(".json"):
            assert answer.json["MRData"]["total"] != "0"


def test_every_link_of_the_page_has_data_in_a_full_dump(dump_database):
    app = client(dump_database)
    for link in links_of(app.get("/").text):
        # After a season's last race there is no next. The dump has no practice and no sprint qualifying.
        if link.startswith(BASE) and not re.search("csv$|ics$|/next|practice|sprintqualifying", link):
            assert app.get(link, status=200).json["MRData"]["total"] != "0", link


def test_the_page_shows_every_endpoint_once_in_its_group_with_its_filters(sample):
    names = [name for group in page.EXAMPLES.values() for name in group]
    assert sorted(names) == sorted(endpoint.name for endpoint in ENDPOINTS)
    html = sample.get("/").text
    for endpoint in ENDPOINTS:
        (section,) = re.findall(f'<section id="{endpoint.name}">(.*?)</section>', html, re.S)
        tables = [{*sample.get(link).json["MRData"]} for link in links_of(section)]
        assert len(tables) >= 2
        assert all(endpoint.table in table for table in tables)
        filters = re.search(r"Filters: ([^.]*)\.(?: Also ([^,]*),)?", section)
        listed = {*filters[1].split(", "), *(filters[2] or "").split(" and ")} - {""}
        assert listed == endpoint.rules.filters
        assert ("Needs a season." in section) == endpoint.rules.needs_season


def test_the_page_describes_every_filter_with_an_example_of_its_value(sample):
    html = sample.get("/").text
    described = re.findall(r"<dt><code>(\w+)/(\w+)</code></dt>", html)
    assert sorted(name for name, _ in described) == sorted(FILTERS)
    for name, value in described:
        assert FILTERS[name](value) is not None


def test_the_page_says_what_current_last_and_next_are_now(sample):
    text = words_of(sample.get("/").text)
    for sentence in ("has results: 2023.", "of a season that has results: 2023/18.", "The race after it: 2023/19."):
        assert sentence in text


def test_the_links_of_the_page_are_to_the_race_that_has_most_and_to_its_winner(sample):
    links = links_of(sample.get("/").text)
    assert f"{BASE}/2023/18/drivers/max_verstappen/pitstops.json" in links
    assert f"{BASE}/drivers/max_verstappen/circuits/americas/results.json" in links


def test_the_links_of_the_page_are_to_a_race_with_results_even_if_another_has_only_its_qualifying(tmp_path):
    source = shutil.copytree(SAMPLE, tmp_path / "source")
    for optional in ("sprint_results", "lap_times", "pit_stops", "driver_standings", "constructor_standings"):
        (source / f"{optional}.csv").unlink()
    head, *rows = (source / "results.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    of_1957 = [row for row in rows if row.split(",")[1] == "5"]
    (source / "results.csv").write_text("".join([head, *of_1957]), encoding="utf-8")
    app = client(built(source, tmp_path / "racedata.db"))
    assert f"{BASE}/1957/5/results.json" in links_of(app.get("/").text)


def test_the_page_loads_nothing(sample):
    html = sample.get("/").text
    assert not re.search(r"<script |<link (?!rel=\"icon\" href=\"data:)|<img|src=|url\(|@import", html)
    assert "default-src 'none'" in html


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({}, "4 requests per second and 500 requests per hour"),
        ({"burst_limit": "off"}, "Each client may send 500 requests per hour."),
        ({"burst_limit": "1/second", "sustained_limit": "off"}, "Each client may send 1 request per second."),
        ({"burst_limit": "off", "sustained_limit": "off"}, "None."),
    ],
)
def test_the_page_says_the_limits(sample_database, limits, text):
    assert text in words_of(client(sample_database, **limits).get("/").text)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("https://example.org/<b>?key=1", '<a href="https://example.org/&lt;b&gt;">https://example.org/&lt;b&gt;</a>'),
        ("HTTP://example.org/data.zip#key=1", '<a href="HTTP://example.org/data.zip">HTTP://example.org/data.zip</a>'),
        ("/home/somebody/Downloads/data.zip", "data.zip"),
        ("C:\\Users\\somebody\\dump\\", "dump"),
        ("data/<b>&/", "&lt;b&gt;&amp;"),
    ],
)
def test_the_page_does_not_show_the_folder_or_the_key_of_a_source(name, shown):
    assert page.with_link(public_name(name), public_url(name)) == shown

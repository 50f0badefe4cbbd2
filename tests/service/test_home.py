"""racedata.service.home: the page at `/`, and that every link on it works."""

import re
from datetime import datetime
from posixpath import join, normpath

import pytest
import webtest
from support import SAMPLE
from support.answers import Counted, client, links_of, words_of
from support.loads import built, changed, remember

from racedata.database import store_path
from racedata.model import KINDS
from racedata.service import home
from racedata.service.app import create_app
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings, parse_arguments

BASE = Settings().base_address


def test_the_page_says_what_is_loaded_and_when_it_was_built(sample, sample_database):
    text = words_of(sample.get("/").text)
    data = Snapshot.read(sample_database)
    counts, build = data.row_counts(), data.build()
    assert "Seasons 5, from 1957 to 2023" in text
    for table, name in home.TABLE_LABELS.items():
        assert f"{name} {counts[table]:,}" in text
    built = datetime.fromisoformat(build["builtAt"])
    assert f"Built {built:%a} {built.day} {built:%b %Y, %H:%M} UTC" in text


def test_the_page_says_which_seasons_and_races_have_records_of_each_kind(sample):
    text = words_of(sample.get("/").text)
    for row in (
        "Results 1957 to 2023 all 8 ",
        "Pit stops 2021 to 2023 3 of 4 ",
        "Practice 2021 to 2023 3 of 4 ",
        "Sprints 2021 to 2023 3 Sprint",  # of 4 races, but one of these had no sprint
        "Driver standings 1957 to 2023 all 13 Constructor",  # also of races without results here
    ):
        assert row in text


def test_the_page_says_none_for_a_kind_without_records(database):
    text = words_of(
        client(changed(database, "DELETE FROM coverage WHERE kind = 'practice'")).get("/").text
    )
    assert "Practice none none " in text


def test_the_page_names_every_kind_of_records():
    labels = re.findall(r'<th scope="row">([^<]*)</th><td>', "".join(home.coverage_rows({})))
    assert labels == [kind.label for kind in KINDS.values()]


def test_the_page_has_each_source_with_its_own_licence_and_its_records(several_sources):
    html = client(several_sources).get("/").text
    text = words_of(html)
    assert "sample Results up to the United States Grand Prix , Sun 22 Oct 2023 . Read " in text
    assert "UTC . Licence: CC BY-NC-SA 3.0 and 4.0. Records: " in text
    read = "Read Sun 22 Nov 2026, 06:00 UTC ."
    assert f"f1db {read} Licence: CC BY 4.0. Records: practice of 2 races." in text
    assert f"https://example.org/f1 {read} Licence: not stated. Records: none." in text
    assert {"https://example.org/f1db.zip", "https://example.org/f1"} <= {*links_of(html)}
    assert "key=1" not in html


@pytest.mark.parametrize("address", ["/", "/docs"])
@pytest.mark.parametrize("base", ["/ergast/f1", "/racing"])
def test_every_link_of_a_page_works_and_links_to_endpoints_have_data(
    sample_database, base, address
):
    settings = {} if base == "/ergast/f1" else {"base_path": "", "series": "racing"}
    app = client(sample_database, **settings)
    links = links_of(app.get(address).text)
    assert {"openapi.json", "healthz", f"{base}/corrections.json"} <= {*links}
    assert "docs" in links or {"./", f"{base}/current.json", f"{base}/seasons.json"} <= {*links}
    for link in links:
        answer = app.get(normpath(join("/", link)) if link[0] != "#" else link, status=200)
        if link.startswith(base) and link.endswith(".json"):
            assert answer.json["MRData"]["total"] != "0"


def test_the_second_calendar_of_the_page_has_every_session_but_practice(sample):
    whole, other = re.findall(r'href="([^"]*\.ics[^"]*)"', sample.get("/").text)
    names = [re.findall("SUMMARY:.*", sample.get(link).text) for link in (whole, other)]
    assert names[1] == [name for name in names[0] if "Practice" not in name] != names[0]
    assert any("Sprint Shootout" in name for name in names[1])


def test_every_link_of_the_pages_has_data_in_a_full_dump(dump_database):
    app = client(dump_database)
    for link in links_of(app.get("/").text + app.get("/docs").text):
        # After a season's last race there is no next. The dump has no practice and no sprint
        # qualifying, and is not corrected.
        if link.startswith(BASE) and not re.search(
            "csv$|ics$|/next|practice|sprintqualifying|corrections", link
        ):
            assert app.get(link, status=200).json["MRData"]["total"] != "0", link


@pytest.mark.parametrize("address", ["/", "/docs", "/2023", "/2023/18"])
def test_a_browser_asks_for_a_page_again_and_downloads_it_only_if_it_has_changed(sample, address):
    headers = sample.get(address).headers
    assert headers["Cache-Control"] == "no-cache"
    sample.get(address, headers={"If-None-Match": headers["ETag"]}, status=304)
    sample.get(address, headers={"If-Modified-Since": headers["Last-Modified"]}, status=304)


def test_the_page_says_when_a_refresh_last_asked_a_source_and_is_made_again_only_then(database):
    data = Counted.read(str(database))
    app = webtest.TestApp(create_app(Settings(), data))
    before = app.get("/")
    assert "last checked" not in before.text

    def note(**times):
        remember(database, {name: {"refreshedAt": at} for name, at in times.items()})

    (source,) = data.sources()
    note(**{source["name"]: "2001-01-01T00:00:00Z"})  # the data is newer
    assert words_of(app.get("/").text) == words_of(before.text)
    note(sample="2101-01-01T00:00:00Z", f1db="2101-01-02T05:06:07Z")
    after = app.get("/", headers={"If-None-Match": before.headers["ETag"]}, status=200)
    assert "programs. Sources last checked Sun 2 Jan 2101, 05:06 UTC . Seasons" in words_of(
        after.text
    )
    assert after.headers["Last-Modified"] == "Sun, 02 Jan 2101 05:06:07 GMT"
    app.get("/", headers={"If-Modified-Since": before.headers["Last-Modified"]}, status=200)
    data.queries = 0
    assert app.get("/").text == after.text
    app.get("/", headers={"If-None-Match": after.headers["ETag"]}, status=304)
    assert data.queries == 0
    store_path(database).unlink()
    assert app.get("/").text == before.text


def test_the_page_says_when_a_refresh_last_asked_each_source(several_sources):
    refreshes = {
        "f1db": "2101-01-02T05:06:07Z",
        "https://example.org/f1?key=1": "2026-11-22T05:59:59Z",  # before it was read
        "https://example.org/later?key=1": "2101-01-03T00:00:00Z",
    }
    remember(several_sources, {name: {"refreshedAt": at} for name, at in refreshes.items()})
    html = client(several_sources).get("/").text
    text = words_of(html)
    assert "f1db Checked for new data Sun 2 Jan 2101, 05:06 UTC . Licence: CC BY 4.0." in text
    assert "https://example.org/f1 Read Sun 22 Nov 2026, 06:00 UTC . Licence" in text
    later = (
        "https://example.org/later Checked for new data Mon 3 Jan 2101, 00:00 UTC . Records: none."
    )
    assert later in text
    assert "key=1" not in html


def test_the_page_and_healthz_do_not_show_the_address_of_a_database_that_is_copied(database):
    noted = {"http://10.0.0.5/racedata.db?key=1": {"refreshedAt": "2101-01-02T05:06:07Z"}}
    remember(database, noted)
    app = client(database)
    text = words_of(app.get("/").text)
    asked = "the database of another racedata Checked for new data Sun 2 Jan 2101, 05:06 UTC . Rec"
    assert asked in text
    assert "Records: none" not in text
    assert app.get("/healthz").json["sources"][1:] == [
        {"name": "the database of another racedata", "refreshedAt": "2101-01-02T05:06:07Z"}
    ]
    assert "10.0.0.5" not in app.get("/").text


@pytest.mark.parametrize("follows", [False, True])
def test_nobody_is_told_to_load_what_the_service_is_loading(sample_database, follows):
    settings = parse_arguments(["--follow"] if follows else []).settings
    app = webtest.TestApp(create_app(settings, Snapshot.read(str(sample_database))))
    notice = app.get("/healthz").json["sample"]
    assert notice in words_of(app.get("/").text)
    assert ("This service is loading its sources" in notice) == follows
    assert (" load tracinginsights f1db" in notice) != follows
    tags = {app.get("/").headers["ETag"], client(sample_database).get("/").headers["ETag"]}
    assert len(tags) == 1 + follows


def test_the_page_and_healthz_say_the_licence_of_the_whole(several_sources):
    for statement, licence in [
        # at first, the other sources have no records
        ("SELECT 1", "CC BY-NC-SA 4.0; name sample, and say that it was changed"),
        (
            "UPDATE origins SET sourceId = 3 WHERE RACE(2023/18)",
            "not stated, because of https://example.org/f1",
        ),
    ]:
        app = client(changed(several_sources, statement))
        assert f"Licence of the whole: {licence}. Each" in words_of(app.get("/").text)
        assert app.get("/healthz").json["licence"] == licence


def test_the_page_changes_when_a_source_is_asked_even_if_another_was_asked_later(several_sources):
    app = client(several_sources)
    noted = {"f1db": {"refreshedAt": "2101-01-02T00:00:00Z"}}
    remember(several_sources, noted)
    before = app.get("/")
    noted["sample"] = {"refreshedAt": "2101-01-01T00:00:00Z"}
    remember(several_sources, noted)
    after = app.get("/", headers={"If-None-Match": before.headers["ETag"]}, status=200)
    assert "Checked for new data Sat 1 Jan 2101, 00:00 UTC" in words_of(after.text)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "UPDATE origins SET sourceId = 2 WHERE kind = 'practice' AND RACE(2023/18)",
            "f1db Practice up to the United States Grand Prix , Sun 22 Oct 2023 . Read",
        ),
        (  # a result counts, even if newer races have other records
            "UPDATE origins SET sourceId = 2 WHERE kind = 'results' AND RACE(2021/10) "
            "OR kind = 'driver_standings' AND RACE(2023/22)",
            "f1db Results up to the British Grand Prix , Sun 18 Jul 2021 . Read",
        ),
        (
            "UPDATE origins SET sourceId = 2 WHERE kind = 'races' AND RACE(2023/18)",
            "f1db Read",
        ),
        (
            "UPDATE sources SET isProvisional = 1, gave = 'results of 1 race (2023)' "
            "WHERE name = 'f1db'",
            "Records: results of 1 race (2023); provisional, until another source has them.",
        ),
    ],
)
def test_the_page_says_how_far_the_records_of_a_source_go(several_sources, statement, said):
    assert said in words_of(client(changed(several_sources, statement)).get("/").text)


def test_the_page_has_a_link_to_each_season_by_decade(sample):
    text = sample.get("/").text
    assert "2020s 2023 2021 2000s 2005 1990s 1997 1950s 1957" in words_of(text)


def test_the_page_says_how_many_values_were_corrected_and_links_to_them(sample, tmp_path):
    html = sample.get("/").text
    link = (
        "<dt>Corrections</dt>"
        '<dd><a href="/ergast/f1/corrections.json">11 values corrected (JSON)</a></dd>'
    )
    assert link in html
    database = tmp_path / "racedata.db"
    corrections = tmp_path / "corrections.csv"
    for lines, said in [
        ([], None),
        (["drivers,alonso,number,14,41,a test"], ">1 value corrected (JSON)<"),
    ]:
        header = "table,key,column,wrong,right,source"
        corrections.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
        html = client(built(SAMPLE, database, corrections)).get("/").text
        assert said in html if said else "<dt>Corrections</dt>" not in html

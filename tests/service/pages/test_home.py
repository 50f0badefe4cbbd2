"""racedata.service.pages.home: the page at `/`, and that every link on it works."""

import re
from posixpath import join, normpath

import pytest
import webtest
from support import EMPTY, SAMPLE
from support.answers import client, links_of, words_of
from support.loads import built, changed, remember

from racedata.service.app import create_app
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings, parse_arguments

BASE = Settings().base_address


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
        if link.startswith(base) and not re.search("|".join(["csv$|ics$", *EMPTY]), link):
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
            "|".join(["csv$|ics$|/next|practice|sprintqualifying|corrections", *EMPTY]), link
        ):
            assert app.get(link, status=200).json["MRData"]["total"] != "0", link


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


def test_the_page_says_how_many_values_were_corrected(tmp_path):
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


def page_of(path, *statements):
    return client(changed(path, *statements) if statements else path).get("/").text


@pytest.mark.parametrize(
    ("time", "start"),
    [("'20:00:00'", "2023-10-29T20:00:00Z"), ("NULL", "2023-10-29")],
    ids=["time", "date"],
)
def test_the_heading_of_the_next_race_has_its_start_so_that_the_script_can_change_it(
    database, time, start
):
    html = page_of(database, f"UPDATE races SET time = {time} WHERE RACE(2023/19)")
    assert f'<h2><span id="next" data-start="{start}">Next:</span> <a href="2023/19">Mexico' in html


NEXT, LAST = "RACE(2023/19)", "RACE(2023/18)"
NORRIS = f"WHERE {LAST} AND DRIVER(norris)"
WINTER = "UPDATE races SET year = 2024, round = round - 18 WHERE year = 2023 AND round > 18"
SPRINT = f"""UPDATE sessions SET session = iif(session = 'fp2', 'sq', 'sprint')
             WHERE {NEXT} AND session IN ('fp2', 'fp3')"""
ORIGIN = "UPDATE origins SET sourceId = 2 WHERE kind"
# Changes of the database, and what the page then says.
SAID = [
    # of the next race
    (
        f"UPDATE sessions SET time = NULL WHERE {NEXT} AND session = 'fp1'",
        "Practice 1 Fri 27 Oct 2023 Pr",
    ),
    (f"UPDATE sessions SET date = NULL WHERE {NEXT} AND session = 'fp1'", "Start Practice 2 Fri"),
    (f"UPDATE races SET time = NULL WHERE {NEXT}", "Race Sun 29 Oct 2023 Subscribe"),
    (f"UPDATE results SET RACE(2023/22) WHERE {LAST}", "Next No later race is loaded."),
    (f"UPDATE races SET name = '<b>&' WHERE {NEXT}", "Next: <b>& Round 19"),
    (WINTER, "Next: Mexico City Grand Prix Round 1 of 2024."),
    (WINTER, "Last: United States Grand Prix Round 18 of 2023."),
    (SPRINT, "Sprint Shootout Fri 27 Oct 2023, 22:00 Sprint Sat 28 Oct 2023, 17:30 Quali"),
    # of a result
    (f"UPDATE results SET milliseconds = NULL {NORRIS}", "2 Lando Norris McLaren Finished 18 3"),
    (
        f"UPDATE results SET milliseconds = NULL, statusId = NULL, points = NULL {NORRIS}",
        "2 Lando Norris McLaren 3",
    ),
    (
        f"""UPDATE results SET statusId = (SELECT statusId FROM status WHERE status = '+1 Lap')
            {NORRIS}""",
        "McLaren +1 Lap 18 3",
    ),
    (
        f"UPDATE results SET positionText = NULL {NORRIS}",
        "25 Lando Norris McLaren +10.730 18 3",
    ),
    (f"UPDATE results SET positionText = '<b>' {NORRIS}", "25 <b> Lando Norris McLaren"),
    # of standings: if the last race has none yet, the latest
    (f"DELETE FROM driver_standings WHERE {LAST}", "Drivers after round 22"),
    (f"DELETE FROM driver_standings WHERE {LAST}", "Constructors after round 18"),
    # of what is loaded
    ("DELETE FROM coverage WHERE kind = 'practice'", "Practice none none "),
    (
        f"{ORIGIN} = 'practice' AND {LAST}",
        "f1db Practice up to the United States Grand Prix , Sun 22 Oct 2023 . Read",
    ),
    (  # a result counts, even if newer races have other records
        f"{ORIGIN} = 'results' AND RACE(2021/10) OR kind = 'driver_standings' AND RACE(2023/22)",
        "f1db Results up to the British Grand Prix , Sun 18 Jul 2021 . Read",
    ),
    (f"{ORIGIN} = 'races' AND {LAST}", "f1db Read"),
    (
        "UPDATE sources SET isProvisional = 1, gave = 'results of 1 race (2023)' "
        "WHERE name = 'f1db'",
        "Records: results of 1 race (2023); provisional, until another source has them.",
    ),
]


@pytest.mark.parametrize(("statement", "said"), SAID)
def test_the_page_says_what_is_known(several_sources, statement, said):
    assert said in words_of(page_of(several_sources, statement))


def test_a_championship_without_standings_is_not_shown(database):
    assert "Constructors after" not in page_of(database, "DELETE FROM constructor_standings")

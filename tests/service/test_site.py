"""racedata.service.site: which files a static copy has, and that each has the service's bytes."""

import re
import shutil
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

import pytest
import webtest
from support import SAMPLE
from support.answers import client, links_of, settings_of, words_of
from support.loads import add_laps, built, changed, csv_rows, race_ids, racedata
from support.processes import run_racedata

from racedata.service import site
from racedata.service.app import create_app
from racedata.service.endpoints import ENDPOINTS
from racedata.service.pages.resources import PAGES
from racedata.service.site import HEADERS, NOT_FOUND, README
from racedata.service.site_folder import MANIFEST
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings

AUSTRIA = race_ids(SAMPLE, 2023)[9]
URL = "https://f1.example.org/ergast/f1"
OWN = {README, HEADERS, NOT_FOUND, MANIFEST}
# The settings of a service that answers as a copy does.
LIKE_A_COPY = {"burst_limit": "off", "sustained_limit": "off", "default_limit": 2000}


def export(database, folder, *options, **environ):
    """The report of an export, which must succeed."""
    ended = run_racedata("export", "site", folder, "--database", database, *options, **environ)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_the_files_of_an_id_have_its_capitals_as_answers_have(database):
    changed(database, "UPDATE drivers SET driverRef = 'Alonso' WHERE driverRef = 'alonso'")
    (driver,) = (
        client(database)
        .get("/ergast/f1/drivers/alonso.json")
        .json["MRData"]["DriverTable"]["Drivers"]
    )
    copy = site.Site(Settings(base_path="/Ergast"), Snapshot.read(str(database)))
    lists = {*copy.lists()}
    assert (address := f"/Ergast/f1/drivers/{driver['driverId']}/results.json") in lists
    assert "/Ergast/f1/drivers/hamilton/results.json" in lists
    # `MRData.url` and `og:url` have it in small letters
    assert copy.files(address, is_page=False) == [
        "Ergast/f1/drivers/Alonso/results.json",
        "Ergast/f1/drivers/alonso/results.json",
    ]
    assert "drivers/alonso.html" in copy.files("/drivers/Alonso", is_page=True)


def files_of(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def address_of(file):
    """Where the service has what is in a file."""
    return "/" + file.removesuffix("index.html").removesuffix(".html")


def assert_equal_to_the_service(folder, database, files, base_url, base_path="/ergast"):
    # without a URL, a copy has the paths of one
    given = settings_of(**LIKE_A_COPY, base_path=base_path)
    settings = replace(given, is_static=True, base_url=base_url)
    app = webtest.TestApp(create_app(settings, Snapshot.read(str(database))))
    for file in files:
        answer = app.get(f"{address_of(file)}?limit=2000", headers={"Accept": "text/html"})
        content = (folder / file).read_bytes()
        if answer.status_int == 302:
            assert f'url={answer.headers["Location"]}">'.encode() in content
        else:
            assert answer.body == content, file


@pytest.fixture(scope="module")
def copied(sample_database, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "copy"
    export(sample_database, folder, "--base-url", URL)
    return folder


@pytest.fixture(scope="module")
def files(copied):
    return files_of(copied)


@pytest.mark.long(6)
def test_each_file_has_the_bytes_of_the_services_answer(copied, sample_database, files):
    assert len(files) > 2_000 and files > OWN
    assert_equal_to_the_service(copied, sample_database, sorted(files - OWN), URL)


def test_each_endpoint_has_files_for_each_season_and_race_even_if_they_have_no_records(
    copied, files
):
    races = {(row["year"], row["round"]) for row in csv_rows(SAMPLE, "races")}
    seasons = {"", "/current", *(f"/{year}" for year, _ in races)}
    races = {"/current/last", "/current/next", *(f"/{year}/{round}" for year, round in races)}
    for endpoint in ENDPOINTS:
        for front in seasons:
            if front or not endpoint.rules.needs_season:
                for ending in endpoint.rules.endings:
                    assert f"ergast/f1{front}/{endpoint.name}{ending}" in files
        for front in races:
            is_in = f"ergast/f1{front}/{endpoint.name}.json" in files
            assert is_in or not endpoint.is_asked_by_race
    of_a_race = {"results.csv", "corrections.json", "changes.atom", "races.ics"}
    assert not {f"ergast/f1/2021/10/{name}" for name in of_a_race} & files
    for front in seasons | races:
        assert f"ergast/f1{front}.json" in files
    assert '"total":"0"' in (copied / "ergast/f1/1957/1/laps.json").read_text()
    assert (copied / "ergast/f1/1957/pitstops.csv").read_text().count("\n") == 1


def test_each_driver_constructor_and_circuit_has_its_files(files):
    others = {"drivers": "/results", "constructors": "", "circuits": "/races"}
    for kind, other in others.items():
        for row in csv_rows(SAMPLE, kind):
            address = f"ergast/f1/{kind}/{row[f'{kind[:-1]}Ref'].lower()}"
            assert {f"{address}.json", f"{address}{other}.json"} <= files


def test_names_that_clients_write_with_a_capital_have_files(copied):
    for kind in ("driver", "constructor"):
        names = f"{kind}standings.json", f"{kind}Standings.json"
        written, other = ((copied / "ergast/f1/2023" / name).read_bytes() for name in names)
        assert written == other


def test_each_route_of_the_pages_has_files(files):
    # The sample has no discrepancies, so nothing links to those of a season.
    for page in (page for page in PAGES if "}/discrepancies" not in page.route):
        pattern = re.sub("{[^}]*}", "[^/]+", page.route).strip("/") or "index"
        assert [file for file in files if re.fullmatch(f"{pattern}.html", file)]
    assert {"current.html", "current/last.html", "openapi.json", "healthz"} <= files


def test_each_link_of_a_page_leads_to_a_file(copied, files):
    found = 0
    for file in sorted(files - OWN):
        if file.endswith(".html"):
            at = "https://f1.example.org" + address_of(file)
            for link in links_of((copied / file).read_text(encoding="utf-8")):
                url = urlsplit(urljoin(at, link))
                if url.netloc == "f1.example.org":
                    assert not url.query, (at, link)  # a web server ignores it
                    path = url.path.strip("/")
                    assert {path, f"{path or 'index'}.html"} & files, (at, link)
                    found += 1
    assert found > 700


def test_pages_offer_no_calendar_and_no_search_that_a_web_server_cannot_answer(copied):
    for name in ("index", "2023", "2023/19"):
        calendar = words_of((copied / f"{name}.html").read_text(encoding="utf-8"))
        assert "In a calendar app: all sessions , or as a file ." in calendar
        assert "all but practice" not in calendar
    find = words_of((copied / "find.html").read_text(encoding="utf-8"))
    assert "This is a static copy of the site, which cannot search." in find


def test_a_list_of_more_than_2000_records_has_no_file_and_is_named(small_dump, tmp_path):
    source = add_laps(shutil.copytree(small_dump, tmp_path / "dump"), [AUSTRIA], 110)
    report = export(built(source, tmp_path / "x.db"), tmp_path / "copy")
    files = files_of(tmp_path / "copy")
    readme = (tmp_path / "copy" / README).read_text(encoding="utf-8")
    left_out = re.findall("    (/ergast/f1/.*)", readme)
    assert left_out and report.splitlines()[-1].startswith(f"{len(left_out)} lists have more")
    season = (tmp_path / "copy" / "2023.html").read_text(encoding="utf-8")
    assert "Lap timings 2,200 too many for a file" in words_of(season)
    assert not {f"{address}.json" for address in left_out} & {*links_of(season)}
    for address in left_out:
        assert not {address.strip("/") + ending for ending in (".json", ".csv")} & files
    app = client(tmp_path / "x.db")
    for address in left_out:
        assert int(app.get(f"{address}.json?limit=1").json["MRData"]["total"]) > 2000


def test_a_copy_has_its_licence_headers_for_hosts_and_a_page_for_what_is_missing(copied):
    readme, headers, missing = (
        (copied / name).read_text(encoding="utf-8") for name in (README, HEADERS, NOT_FOUND)
    )
    licence = "CC BY-NC-SA 4.0; name sample, and say that it was changed"
    assert f"Licence of the data: {licence}" in readme
    assert readme.endswith("no file:\n    none\n")
    assert "/ergast/f1/*.ics\n  Content-Type: text/calendar; charset=utf-8\n" in headers
    assert "There is nothing at this address" in missing


@pytest.mark.long(8)
def test_a_second_export_writes_nothing_and_another_database_only_what_differs(
    copied, sample_database, other_database, tmp_path
):
    folder, fresh = tmp_path / "copy", tmp_path / "fresh"
    export(sample_database, folder, "--base-url", URL)

    def states():
        found = {file: (folder / file).stat() for file in files_of(folder) - {MANIFEST}}
        return {file: (each.st_ino, each.st_mtime_ns) for file, each in found.items()}

    before = states()
    assert "; 0 written, 0 deleted " in export(sample_database, folder, "--base-url", URL)
    assert states() == before
    export(other_database, folder, "--base-url", URL)
    export(other_database, fresh, "--base-url", URL)
    assert files_of(folder) == files_of(fresh)
    for file in files_of(folder):
        assert (folder / file).read_bytes() == (fresh / file).read_bytes()
    # most lists name neither the driver nor the town
    assert len(states().items() & before.items()) > 2_000


@pytest.mark.parametrize(
    ("series", "options", "said"),
    [
        ("f1", "--base-url=f1.example.org", "--base-url='f1.example.org': expected nothing, or"),
        ("f/1", "--base-url=", "RACEDATA_SERIES='f/1': expected letters"),
        ("f1", "--database=none.db", "none.db"),
    ],
)
def test_a_wrong_setting_or_database_is_one_line_and_no_folder(
    tmp_path, series, options, said, monkeypatch
):
    folder = tmp_path / "copy"
    monkeypatch.setenv("RACEDATA_SERIES", series)
    ended = racedata("export", "site", folder, options)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("racedata export site: ") and said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not folder.exists()


@pytest.mark.parametrize(
    ("base", "base_url", "environ"),
    [
        ("Ergast/f1", "", {"RACEDATA_BASE_PATH": "/Ergast"}),
        ("f1", URL, {"RACEDATA_BASE_PATH": ""}),
    ],
)
def test_the_settings_of_the_service_say_the_base_address(
    small_dump, tmp_path, base, base_url, environ
):
    """Without a base URL, the answers have paths."""
    database, folder = built(small_dump, tmp_path / "x.db"), tmp_path / "copy"
    export(database, folder, RACEDATA_BASE_URL=base_url, **environ)
    files = files_of(folder)
    assert {f"{base}/2023/9/results.json", f"{base}.json", "2023/9.html"} <= files
    text = (folder / f"{base}/2023/9.json").read_text(encoding="utf-8")
    url, path = base_url or f"/{base}", environ["RACEDATA_BASE_PATH"]
    assert f'"url":"{url}/2023/9/races.json"' in text
    assert not {f"{base}/results", "ergast/f1/results", "racedata.db"} & files
    assert_equal_to_the_service(folder, database, sorted(files - OWN), url, path)

"""racedata.app: addresses and their forms, methods, browsers, and what goes wrong in between."""

import hashlib
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
import webtest
from conftest import Clock, client
from hypothesis import given, settings
from hypothesis import strategies as st
from service import open_files
from test_database import missing

from racedata.app import Service
from racedata.database import SCHEMA, Database, Replaced
from racedata.settings import Settings


def ask(sample, **environ):
    """The answer to a request of any kind: webtest itself sends no more than a decent client would."""
    return webtest.TestRequest.blank("/", environ=environ).get_response(sample.app)


ADDRESSES = {
    "2023/races": ["2023/races.json", "2023/races/", "2023", "2023.json", "2023/", "2023/RACES.JSON"],
    "2023/18": ["2023/18.json", "2023/18/", "2023/18/races", "2023/18/races.json", "2023/18/races/", "2023/18/Races"],
    "2023/18/results": ["2023/18/results.json", "2023/18/results/", "2023/18/Results.JSON"],
    "2023/18/qualifying": ["2023/18/qualifying.json", "2023/18/qualifying/", "2023/18/QUALIFYING"],
    "2023/18/sprint": ["2023/18/sprint.json", "2023/18/sprint/", "2023/18/spRint/"],
    "2023/18/laps": ["2023/18/laps.json", "2023/18/laps/", "2023/18/Laps.json"],
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_form_of_an_address_gets_the_same_body_at_once(sample, address):
    answer = sample.get(f"/ergast/f1/{address}", status=200)
    assert answer.content_type == "application/json"
    assert answer.json["MRData"]["total"] != "0"
    for form in ADDRESSES[address]:
        assert sample.get(f"/ergast/f1/{form}", status=200).body == answer.body
        assert sample.get(f"/Ergast/F1/{form}", status=200).body == answer.body


@pytest.mark.parametrize(
    "address",
    [
        "/index.html",
        "/2023",
        "/ergast/f1",
        "/ergast/f1/",
        "/ergast/f1/.json",
        "/ergast/f2/2023",
        "/ergast/f1//2023",
        "/ergast/f1/23",
        "/ergast/f1/0957",
        "/ergast/f1/20233",
        "/ergast/f1/+202",
        "/ergast/f1/2_23",
        "/ergast/f1/current",
        "/ergast/f1/2023/0",
        "/ergast/f1/2023/01",
        "/ergast/f1/2023/-1",
        "/ergast/f1/2023/1.5",
        "/ergast/f1/2023/last",
        "/ergast/f1/2023/" + "9" * 19,
        "/ergast/f1/2023/" + "9" * 5000,
        "/ergast/f1/2023/18/pitstops",
        "/ergast/f1/2023/18/results/1",
        "/ergast/f1/2023/18/results.xml",
        "/ergast/f1/2023/18/results.json/",
        "/ergast/f1/2023/18/results//",
        "/ergast/f1/2023/results",
        "/ergast/f1/2023/18/../18",
        "/healthz/",
        "/Healthz",
    ],
)
def test_an_address_of_no_endpoint_is_404_and_says_what_is_accepted(sample, address):
    problem = sample.get(address, status=404)
    assert problem.content_type == "application/problem+json"
    assert "four digits" in problem.json["detail"]


@pytest.mark.parametrize("path", ["//ergast/f1/2023", "///ergast/f1/2023/18/laps", "//", "//healthz"])
def test_slashes_before_an_address_make_it_another_one_that_is_not_there(sample, path):
    answer = ask(sample, PATH_INFO=path)
    assert answer.status_int == 404
    assert "All are under /ergast/f1: " in answer.json["detail"]


def test_a_season_in_the_digits_of_another_script_is_404(sample):
    assert ask(sample, PATH_INFO=as_wsgi("/ergast/f1/٢٠٢٣")).status_int == 404


@pytest.mark.parametrize("round", ["99", "999999999999999999"])
def test_a_round_that_was_never_driven_is_an_empty_answer(sample, round):
    answer = sample.get(f"/ergast/f1/2023/{round}/results.json", status=200).json["MRData"]
    assert (answer["total"], answer["RaceTable"]) == ("0", {"season": "2023", "round": round, "Races": []})


@pytest.mark.parametrize("address", ["/ergast/f1/2023/18/results.json", "/healthz"])
def test_head_is_get_without_the_body(sample, address):
    get, head = sample.get(address), sample.head(address)
    assert head.body == b""
    assert dict(head.headers) == dict(get.headers)
    assert int(head.headers["Content-Length"]) == len(get.body)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "BREW"])
@pytest.mark.parametrize("address", ["/ergast/f1/2023", "/ergast/f1/2023/18/laps.json", "/healthz"])
def test_any_other_method_is_405_with_allow(sample, method, address):
    answer = ask(sample, PATH_INFO=address, REQUEST_METHOD=method)
    assert answer.status_int == 405
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert answer.json["detail"] == "Accepted are GET, HEAD, OPTIONS."


def test_a_browsers_preflight_is_allowed(sample):
    asked = {
        "Origin": "https://example.org",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "X-Anything",
    }
    answer = sample.options("/ergast/f1/2023", headers=asked, status=200)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"
    assert answer.headers["Access-Control-Allow-Headers"] == "*"
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert answer.body == b""


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/ergast/f1/2023", 200),
        ("/healthz", 200),
        ("/ergast/f1/2023?limit=x", 400),
        ("/nothing", 404),
    ],
)
def test_a_page_of_any_origin_may_read_every_answer_and_its_headers(sample, address, status):
    browsers = sample.get(address, headers={"Origin": "https://example.org"}, status=status)
    assert browsers.headers["Access-Control-Allow-Origin"] == "*"
    assert browsers.headers["Access-Control-Expose-Headers"] == "*"
    # Without an Origin too: a shared cache may give this answer to a request that has one.
    assert sample.get(address, status=status).headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("address", ["/", "/openapi.json", "/healthz", "/ergast/f1/2023.json", "/none"])
def test_an_answer_says_that_it_is_what_its_type_says_and_sets_no_cookie(sample, address):
    headers = sample.get(address, status="*").headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Set-Cookie" not in headers


def test_base_path_and_series_are_settings(sample_database):
    app = client(sample_database, base_path="/API", series="F2")
    answer = app.get("/api/f2/2023/18.json").json["MRData"]
    assert (answer["series"], answer["url"]) == ("F2", "http://localhost:80/API/F2/2023/18/races.json")
    app.get("/ergast/f1/2023", status=404)
    assert client(sample_database, base_path="").get("/f1/2023/18").json["MRData"]["total"] == "1"


@pytest.fixture
def path(sample_database, tmp_path):
    """The path of a database that may be replaced."""
    return shutil.copy(sample_database, tmp_path / "racedata.db")


@pytest.fixture
def service(path):
    """A service over `path` on a clock that stands still, `service.clock`."""
    clock = Clock()
    made = webtest.TestApp(Service(Settings(database=str(path)), None, clock))
    made.clock = clock
    yield made
    made.app.database.close()


def replace(path, other):
    """Puts a copy of `other` in the place of `path` as the loader does: at once."""
    os.replace(shutil.copy(other, path.with_name("new")), path)


def town(service, **options):
    answer = service.get("/ergast/f1/2023/9.json", **options)
    return answer.json["MRData"]["RaceTable"]["Races"][0]["Circuit"]["Location"]["locality"], answer.headers["ETag"]


def test_a_new_file_is_served_within_half_a_second_with_another_etag(service, path, other_database, caplog):
    before = town(service)
    replace(path, other_database)
    assert town(service) == before
    service.clock.now += Service.INTERVAL
    after = town(service)
    assert (before[0], after[0]) == ("Spielberg", "Zeltweg")
    assert after[1] != before[1]
    assert [record.message for record in caplog.records] == [f"{path} has changed, and is served as it is now"]


def opened(path):
    """Whether this process has open what is at `path`, and what was there before."""
    names = open_files("self")
    return str(path) in names, f"{path} (deleted)" in names


def test_nothing_of_the_old_file_is_kept_open(service, path, other_database):
    town(service)
    assert opened(path) == (True, False)
    replace(path, other_database)
    service.clock.now += Service.INTERVAL
    assert town(service)[0] == "Zeltweg"
    assert opened(path) == (True, False)


def test_a_request_that_is_at_work_on_the_old_file_is_answered_from_the_new_one(service, path, other_database):
    town(service)
    replace(path, other_database)
    service.app.database.close()  # as a thread does that takes up the new file meanwhile
    answer = service.get("/ergast/f1/2023/9/results.json")
    assert "Leclercq" in answer.text and "Zeltweg" in answer.text


def test_a_forked_process_opens_the_file_at_once_and_shares_no_connection(path):
    code = """
import os, webtest
from racedata.app import get_app
from test_app import opened
app, path = get_app(), os.environ["RACEDATA_DATABASE"]
assert opened(path) == (False, False)
if os.fork() == 0:
    os.unlink(path)
    print(webtest.TestApp(app).get("/ergast/f1/2023.json").status)
else:
    os.wait()
"""
    environ = {"RACEDATA_DATABASE": str(path), "PYTHONPATH": os.path.dirname(__file__)}
    run = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "200 OK\n")
    assert "; what was served before still is" in run.stderr and run.stderr.count("\n") == 1


def garbage(path):
    path.with_name("new").write_bytes(bytes(5000))
    os.replace(path.with_name("new"), path)


def flipped(path):
    content = bytearray(path.read_bytes())
    content[-5000] ^= 1
    path.with_name("new").write_bytes(content)
    os.replace(path.with_name("new"), path)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (missing, "is missing"),
        (garbage, "is not an SQLite database"),
        (flipped, "is damaged"),
    ],
)
def test_a_new_file_that_cannot_be_served_is_refused_and_the_old_one_goes_on(
    service, path, other_database, caplog, spoil, fault
):
    before = town(service)
    spoil(path)
    for _ in range(5):
        service.clock.now += Service.INTERVAL
        assert town(service) == before
    health = service.get("/healthz", status=200).json
    assert health["refused"].startswith(f"What is at the database's path now {fault}")
    assert str(path) not in health["refused"]
    assert len(caplog.records) == 1
    assert caplog.records[0].message.startswith(f"{path} {fault}")
    replace(path, other_database)
    service.clock.now += Service.INTERVAL
    assert town(service)[0] == "Zeltweg"
    assert "refused" not in service.get("/healthz").json


def test_the_old_file_itself_may_come_back(service, path):
    before = town(service)
    path.rename(path.with_name("away"))
    service.clock.now += Service.INTERVAL
    assert town(service) == before
    assert "refused" in service.get("/healthz").json
    path.with_name("away").rename(path)
    service.clock.now += Service.INTERVAL
    assert town(service) == before
    assert "refused" not in service.get("/healthz").json


def test_without_the_old_file_and_without_a_good_new_one_it_is_503_without_details(service, path, caplog):
    service.app.database.close()
    missing(path)
    for address in ("/ergast/f1/2023", "/ergast/f1/2023/18/laps", "/healthz"):
        problem = service.get(address, status=503)
        assert problem.json["detail"] == "The database cannot be read at the moment."
        assert problem.headers["Retry-After"] == "10"


def overwrite(path, content):
    """Writes into the file that is at `path`, as nobody should."""
    with open(path, "r+b") as file:
        file.write(content)
        file.truncate()
        written = os.fstat(file.fileno()).st_mtime_ns + 1_000_000
    os.utime(path, ns=(written, written))  # tests are faster than the clock of some file systems


RESULTS = "/ergast/f1/2023/9/results.json"


def test_another_database_written_over_the_file_is_never_mixed_with_it(service, path, other_database):
    assert town(service)[0] == "Spielberg"
    overwrite(path, other_database.read_bytes())
    answer = service.get(RESULTS)
    assert "Leclercq" in answer.text and "Zeltweg" in answer.text
    assert town(service)[0] == "Zeltweg"


def test_a_file_damaged_in_any_place_is_503_until_there_is_a_good_one(service, path, sample_database):
    good = sample_database.read_bytes()
    kept = town(service)
    first = service.get("/ergast/f1/2021/10.json").body
    for number in range(100):
        spoilt = bytearray(good)
        spoilt[random.randrange(len(spoilt))] ^= 1 << random.randrange(8)
        overwrite(path, spoilt)
        service.clock.now += Service.INTERVAL
        assert town(service) == kept
        address = f"/ergast/f1/2023/9/results.json?limit=19&offset={number}"
        assert service.get(address, status=503).json["detail"] == "The database cannot be read at the moment."
        service.get("/healthz", status=503)
    overwrite(path, good)
    service.clock.now += Service.INTERVAL
    assert service.get("/ergast/f1/2021/10.json").body == first
    assert service.get(address).json["MRData"]["total"] == "20"
    assert "refused" not in service.get("/healthz").json


def test_what_was_read_of_bytes_that_were_there_for_a_while_is_forgotten(
    service, path, sample_database, other_database
):
    good, written = sample_database.read_bytes(), os.stat(path).st_mtime_ns
    town(service)
    overwrite(path, other_database.read_bytes()[:-1])
    service.get(RESULTS, status=503)
    overwrite(path, good)
    os.utime(path, ns=(written, written))  # as `cp -p` does
    service.get(RESULTS, status=503)
    service.clock.now += Service.INTERVAL
    assert "Zeltweg" not in service.get(RESULTS, status=200).text


def test_a_file_that_is_moved_away_and_written_into_is_not_read_any_more(service, path, other_database):
    kept = town(service)
    away = path.rename(path.with_name("away"))
    overwrite(away, other_database.read_bytes())
    service.get(RESULTS, status=503)
    assert town(service) == kept
    away.rename(path)
    service.clock.now += Service.INTERVAL
    assert town(service)[0] == "Zeltweg"


def test_a_link_may_be_switched_to_a_bad_file_and_back(sample_database, tmp_path):
    (tmp_path / "bad.db").write_bytes(bytes(5000))
    link = tmp_path / "racedata.db"
    link.symlink_to(sample_database)
    clock = Clock()
    service = webtest.TestApp(Service(Settings(database=str(link)), None, clock))
    for target, refused in [(tmp_path / "bad.db", True), (sample_database, False)]:
        link.unlink()
        link.symlink_to(target)
        clock.now += Service.INTERVAL
        assert ("refused" in service.get("/healthz").json) is refused
    service.app.database.close()


def test_a_file_that_cannot_be_read_for_a_moment_is_served_when_it_can(service, path, other_database, caplog):
    before = town(service)
    replace(path, other_database)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # nothing can be opened now
    try:
        for _ in range(3):
            service.clock.now += Service.INTERVAL
            assert town(service) == before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(caplog.records) == 1 and "cannot be read (Too many open files)" in caplog.text
    missing(path)
    service.clock.now += Service.INTERVAL
    assert service.get("/healthz").json["refused"].endswith(" is missing.")
    replace(path, other_database)
    service.clock.now += Service.INTERVAL
    assert town(service)[0] == "Zeltweg"


def test_a_file_that_is_being_written_is_looked_at_once_in_half_a_second(service, path, caplog):
    overwrite(path, bytes(5000))
    for _ in range(20):
        service.get(RESULTS, status=503)
    assert len(caplog.records) == 1 and "is not an SQLite database" in caplog.text


def test_a_file_that_is_written_into_while_the_application_is_made_is_not_served(service, path, sample_database):
    before = town(service)
    new = Database(shutil.copy(sample_database, path.with_name("new")))
    overwrite(path.with_name("new"), bytes(5000))
    with pytest.raises(Replaced):
        service.app._serve(new)
    assert town(service) == before


def test_a_database_without_its_tables_is_refused_whatever_its_checksum_says(service, path):
    new = path.with_name("new")
    with closing(sqlite3.connect(new)) as db:
        db.executescript(SCHEMA + "DROP TABLE lap_times; DROP TABLE status")
    content = new.read_bytes()
    new.write_bytes(content + hashlib.sha256(content).digest())
    before = town(service)
    os.replace(new, path)
    service.clock.now += Service.INTERVAL
    assert town(service) == before
    assert "lacks what is needed" in service.get("/healthz").json["refused"]


@pytest.mark.parametrize("left", [0, 1, 16, 100, 5000, -5000, -33, -32, -1])
def test_a_file_cut_off_anywhere_is_503_until_there_is_a_good_one(service, path, sample_database, left):
    good = sample_database.read_bytes()
    overwrite(path, good[:left])
    service.get(RESULTS, status=503)
    overwrite(path, good)
    service.clock.now += Service.INTERVAL
    assert service.get(RESULTS).json["MRData"]["total"] == "20"


def test_an_error_of_sqlite_is_503_without_details(service, caplog):
    service.app.database._open().close()  # behind its back; a disk that fails cannot be had
    problem = service.get("/ergast/f1/2021/12/laps.json", status=503)
    assert problem.json["detail"] == "The database cannot be read at the moment."
    assert "the database cannot be read: " in caplog.text


def test_a_fault_of_ours_is_500_without_details(sample_database, caplog):
    app = client(sample_database, finish_times="neither")  # which no reader of settings lets through
    problem = app.get("/ergast/f1/2023/18/results?limit=2", status=500)
    assert problem.json["detail"] == "The service failed to answer this request."
    assert "GET /ergast/f1/2023/18/results?limit=2 failed" in caplog.text
    assert "KeyError: 'neither'" in caplog.text


def get_app(**environ):
    code = "from racedata.app import get_app; get_app()"
    return subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)


def test_get_app_takes_the_environment(sample_database):
    assert get_app(RACEDATA_DATABASE=str(sample_database)).returncode == 0


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("RACEDATA_DATABASE", "/none/such.db", "/none/such.db is missing; to build it, run: make load-data "),
        ("RACEDATA_MAX_LIMIT", "many", "RACEDATA_MAX_LIMIT='many': expected a whole number from 1 to 100000\n"),
    ],
)
def test_get_app_ends_with_one_line_where_it_cannot_start(variable, value, said):
    run = get_app(**{variable: value})
    assert run.returncode == 3
    assert run.stderr.startswith(f"racedata: {said}")
    assert run.stderr.count("\n") == 1


SEGMENTS = st.one_of(
    st.sampled_from(["ergast", "f1", "2023", "1957", "18", "races", "results", "laps", "sprint", "..", ""]),
    st.from_regex("[0-9]{1,20}", fullmatch=True),
    st.text(max_size=12),
)
PATHS = st.one_of(
    st.lists(SEGMENTS, max_size=6).map(lambda segments: "/" + "/".join(segments)),
    st.lists(SEGMENTS, max_size=4).map(lambda segments: "/ergast/f1/" + "/".join(segments)),
)
QUERIES = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.tuples(
            st.sampled_from(["limit", "offset", "Limit", "x"]),
            st.one_of(st.integers().map(str), st.text(max_size=8), st.just("9" * 400)),
        ),
        max_size=4,
    ).map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)),
)
HOSTS = st.one_of(st.just("example.org"), st.sampled_from(["[::1]:80", "a:b", "a b"]), st.text(max_size=20))


def as_wsgi(text):
    """Text as a server puts it into PATH_INFO and QUERY_STRING: its bytes, each as one character."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


@settings(max_examples=3000)
@given(PATHS, QUERIES, st.sampled_from(["GET", "HEAD", "OPTIONS", "POST", "BREW"]), HOSTS)
def test_a_request_that_is_wrong_in_any_way_is_4xx_and_never_5xx(sample, path, query, method, host):
    answer = ask(
        sample,
        REQUEST_METHOD=method,
        PATH_INFO=as_wsgi(path),
        QUERY_STRING=as_wsgi(query),
        HTTP_HOST=as_wsgi(host) or "localhost",
    )
    assert answer.status_int in (200, 400, 404, 405)
    if answer.status_int != 200 and method != "HEAD":
        assert answer.content_type == "application/problem+json"
        assert set(answer.json) == {"type", "title", "status", "detail"}
        assert answer.json["status"] == answer.status_int

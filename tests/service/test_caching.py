"""racedata.service.caching, answers: a cached answer equals a new one, its compression, and what
HTTP says about its age.
"""

import subprocess
import sys
import zlib
from functools import lru_cache

import pytest
import webtest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ROOT
from support.answers import Counted, client, request, settings_of

from racedata.service.app import create_app
from racedata.service.caching import (
    GZIP,
    Body,
    Cache,
    size_of,
)
from racedata.service.environment import IS_BUSY
from racedata.service.snapshot import Snapshot

ADDRESS = "/ergast/f1/2023/18/results.json"


@pytest.fixture
def data(sample_database):
    return Counted.read(sample_database)


def client_over(data, **settings):
    app = client(data, **settings)
    data.queries = 0  # without those at start
    return app


HOSTS = st.sampled_from(["a.example", "b.example", "a.example:8080", "bad host"])
SCHEMES = st.sampled_from(["http", "https"])
PATHS = """
/2023 /2023/races.json /2023/18 /2023/18/laps /2023/18/Laps.json /2023/18/x /2021/12/sprint
/2023/18/results/
/drivers/leclerc/results /results/drivers/leclerc/results /current/last/laps /2023/18/laps/1/laps
"""
METHODS = st.sampled_from(["GET", "HEAD", "POST"])
CODINGS = st.sampled_from(["", "gzip", "gzip, br", "identity", "gzip;q=0"])
ASKED = "limit=2 limit=3 limit=2&offset=1 offset=1&limit=2 limit=x offset=99 limit=02 other=1"
QUERIES = st.sampled_from(["", *ASKED.split()])
REQUESTS = st.tuples(SCHEMES, HOSTS, st.sampled_from(PATHS.split()), QUERIES, CODINGS, METHODS)


@settings(max_examples=40)
@given(st.lists(REQUESTS, min_size=10, max_size=25))
def test_no_request_gets_the_answer_of_another(sample_database, requests):
    apps = [
        without_cache(sample_database),
        create_app(settings_of(cache_size=32), shared_database(sample_database)),
    ]
    for scheme, host, path, query, coding, method in requests:
        environ = {
            "wsgi.url_scheme": scheme,
            "HTTP_HOST": host,
            "PATH_INFO": f"/ergast/f1{path}",
            "QUERY_STRING": query,
            "HTTP_ACCEPT_ENCODING": coding,
            "REQUEST_METHOD": method,
        }
        # The last is cached, if it is a 200.
        made, *others = [request(webtest.TestApp(app), **environ) for app in (*apps, apps[-1])]
        for other in others:
            assert (other.status, other.body, dict(other.headers)) == (
                made.status,
                made.body,
                dict(made.headers),
            )


shared_database = lru_cache(Snapshot.read)


@lru_cache
def without_cache(path):
    return create_app(settings_of(cache_size=0), shared_database(path))


def etags(database, **settings):
    """The ETags of an answer, of the page and of the description."""
    app, base = client(database, **settings), settings_of(**settings).base_address
    return [app.get(each).headers["ETag"] for each in (f"{base}/2023/18", "/", "/openapi.json")]


SHAPING = [
    *({"base_path": "/api"}, {"series": "f2"}, {"base_url": "https://example.org/f1"}),
    *({"finish_times": "gap"}, {"max_limit": 50}, {"default_limit": 30}),
]
ON_THE_PAGE = [{"burst_limit": "off"}, {"sustained_limit": "off"}, {"contact": "me"}]
OFFERED = {"download": "on"}
OTHERS = [{"max_age": 5}, {"cache_size": 0}, {"port": 80}]


@pytest.mark.parametrize("change", [*SHAPING, *ON_THE_PAGE, OFFERED, *OTHERS])
def test_an_etag_changes_with_each_setting_that_affects_the_answer_and_no_other(
    sample_database, change
):
    database = shared_database(sample_database)
    changed = [tag != default for tag, default in zip(etags(database, **change), etags(database))]
    described = [*SHAPING, OFFERED]
    assert changed == [change in each for each in (SHAPING, [*described, *ON_THE_PAGE], described)]


KNOWN = ["{}", "W/{}", '"other", {}', "*", ' "x" ,W/{}']
OTHER = ['"other"', "nonsense", "", "W/", '"', '"*"', 'W/"*"']


@pytest.mark.parametrize("form", [*KNOWN, *OTHER])
def test_a_client_with_the_answer_gets_304_without_a_query_and_any_other_the_answer(data, form):
    app = client_over(data)
    answer = app.get(ADDRESS)
    data.queries = 0
    known = {"If-None-Match": form.format(answer.headers["ETag"])}
    known["If-Modified-Since"] = answer.headers["Last-Modified"]  # which does not count
    for method in (app.get, app.head):
        again = method(ADDRESS, headers=known, status=304 if form in KNOWN else 200)
        assert again.body == (b"" if form in KNOWN or method == app.head else answer.body)
        for name in ("ETag", "Last-Modified", "Cache-Control", "Vary"):
            assert again.headers[name] == answer.headers[name]
    assert data.queries == 0


@pytest.mark.parametrize(
    "address",
    ["/ergast/f1/nothing", "/ergast/f1/1997/last/results", f"{ADDRESS}?limit=x", "/nothing"],
)
def test_errors_are_not_cached_and_match_nothing(sample, address):
    tag = sample.get(ADDRESS).headers["ETag"]
    for headers in ({}, {"If-None-Match": tag}, {"If-None-Match": "*"}):
        answer = sample.get(address, headers=headers, status=400 if "limit" in address else 404)
        assert not {"ETag", "Last-Modified", "Cache-Control"} & set(answer.headers)


FORMS = """
/ergast/f1/2023/18.json /ergast/f1/2023/18/ /ergast/f1/2023/18/races /Ergast/F1/2023/18/RACES.json
/ergast/f1/2023/18?a=b /ergast/f1/2023/18?limit=100&offset=0
"""


def test_all_forms_of_an_address_share_one_cached_answer(data):
    app = client_over(data)
    first = app.get("/ergast/f1/2023/18")
    data.queries = 0
    for form in FORMS.split():
        assert app.get(form).body == first.body
    assert data.queries == 0


LAPS = "/ergast/f1/2023/18/laps?limit=1000"


def raw(app, address, coding, **environ):
    """The answer as it is sent: webtest's own methods decompress it."""
    path, _, query = address.partition("?")
    return request(app, PATH_INFO=path, QUERY_STRING=query, HTTP_ACCEPT_ENCODING=coding, **environ)


ACCEPTED = ["gzip", "GZip;q=0.01", "deflate, gzip, br", "br;q=1.0, GZIP;q=0.8, *;q=0.1"]
REFUSED = ["", "gzip;q=0", "br, gzip ; q=0.000, identity", "br", "identity"]


@pytest.mark.parametrize("address", [LAPS, "/", "/openapi.json"])
@pytest.mark.parametrize("cache_size", [0, 32])
def test_a_client_that_accepts_gzip_gets_the_same_answer_compressed(
    sample_database, address, cache_size
):
    app = client(shared_database(sample_database), cache_size=cache_size)
    for _ in range(2):
        plain = raw(app, address, "identity")
        for coding in ACCEPTED:
            sent = raw(app, address, coding)
            assert sent.headers["Content-Encoding"] == "gzip"
            assert int(sent.headers["Content-Length"]) == len(sent.body) < len(plain.body) / 3
            assert zlib.decompress(sent.body, GZIP) == plain.body
        for coding in REFUSED:
            sent = raw(app, address, coding)
            assert (sent.body, dict(sent.headers)) == (plain.body, dict(plain.headers))


GROWTH = """
import sys
import webtest
from support.processes import own_memory
from racedata.service.app import create_app
from racedata.service.snapshot import Snapshot
from racedata.service.request import ParsedRequest
from racedata.settings import Settings

_, database, query, requests, megabytes, *codings = sys.argv
app = create_app(Settings(cache_size=int(megabytes)), Snapshot.read(database))

def ask(host, coding):
    environ = {
        "PATH_INFO": "/ergast/f1/2023/18/laps",
        "QUERY_STRING": query,
        "HTTP_HOST": host,
        "HTTP_ACCEPT_ENCODING": coding,
    }
    return len(webtest.TestRequest.blank("/", environ=environ).get_response(app).body)

for coding in codings:
    ask("first", coding)
before = own_memory("self")
size = sum(ask(f"host{number}", coding) for number in range(int(requests)) for coding in codings)
print(size, own_memory("self") - before)
"""


@pytest.mark.long(4)
@pytest.mark.parametrize(
    ("query", "requests", "megabytes", "codings"),
    [
        ("limit=1", 40_000, 24, ["identity"]),
        ("limit=2000", 1_200, 8, ["gzip"]),
    ],
)
def test_the_cache_takes_no_more_memory_than_the_setting_says(
    sample_database, query, requests, megabytes, codings
):
    environ = {"PYTHONPATH": f"{ROOT}:{ROOT}/tests"}
    arguments = [sample_database, query, str(requests), str(megabytes), *codings]
    command = [sys.executable, "-c", GROWTH, *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    size, grown = map(float, done.stdout.split())
    assert size / 1e6 > megabytes  # without a bound it would take more
    assert grown < 1.3 * megabytes


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0, 800, 6000])), max_size=100))
def test_a_full_cache_evicts_the_least_recently_used_and_nothing_for_what_it_has_no_room_for(uses):
    cache, held = Cache(5000), []

    def size(key):
        return size_of(key, Body(bytes(key[1])))

    for key in uses:
        assert (cache.find(key) is not None) == (key in held)
        cache.put(key, Body(bytes(key[1])))
        if size(key) <= cache.capacity:
            held = [*(other for other in held if other != key), key]
        while sum(map(size, held)) > cache.capacity:
            del held[0]
        assert cache.size == sum(map(size, held))


LAPS = "/ergast/f1/2023/18/laps"
SLOW = f"""
{LAPS}?limit=101 {LAPS}.csv?limit={"9" * 4000} /ergast/f1/results?limit=101 /circuits /find?q=alonso
/ergast/f1/current.ics /ergast/f1/2023.IC%53?sessions=race /ergast/f1/2023.ics?limit=50
/ergast/f1/changes.atom /ergast/f1/2023/CHANGES.Atom?offset=1
"""
FAST = f"""
{LAPS} {LAPS}?offset=2000 {LAPS}?limit=100 {LAPS}?LIMIT=999 {LAPS}.csv
/ergast/f1/changes.atom?limit=100 /healthz /openapi.json
"""


@pytest.mark.parametrize(
    ("address", "default", "status"),
    [
        *((address, 100, 503) for address in SLOW.split()),
        *((address, 100, 200) for address in FAST.split()),
        (LAPS, 2000, 503),
    ],
)
def test_while_too_many_slow_answers_wait_another_one_is_refused(
    sample_database, address, default, status
):
    app = client(shared_database(sample_database), default_limit=default)  # whose cache is empty
    answer = app.get(address, extra_environ={IS_BUSY: True}, status=status)
    assert answer.headers.get("Retry-After") == ("10" if status == 503 else None)

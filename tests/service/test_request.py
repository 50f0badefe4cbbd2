"""racedata.service.request, middleware: the forms of an address, the page and the host of a
request, and what is refused.
"""

import re
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.answers import client, request


@pytest.mark.parametrize(
    ("address", "same"),
    [
        ("/ergast/f1//2023.json", "/ergast/f1/2023.json"),
        ("//ergast/f1///2023/18/laps", "/ergast/f1/2023/18/laps"),
        ("///Ergast/F1//", "/ergast/f1/"),
        ("//healthz", "/healthz"),
    ],
)
def test_several_slashes_at_the_front_or_after_the_base_address_are_one(sample, address, same):
    answer = request(sample, PATH_INFO=address)
    assert (answer.status_int, answer.body) == (200, request(sample, PATH_INFO=same).body)


@pytest.mark.parametrize(
    ("host", "scheme", "url"),
    [
        ("example.org", "http", "http://example.org/ergast/f1/2023/18/races.json"),
        ("example.org:8080", "https", "https://example.org:8080/ergast/f1/2023/18/races.json"),
        ("[::1]:8000", "http", "http://[::1]:8000/ergast/f1/2023/18/races.json"),
    ],
)
def test_the_url_is_made_from_the_request_without_its_query(sample, host, scheme, url):
    environ = {"HTTP_HOST": host, "wsgi.url_scheme": scheme}
    assert (
        sample.get("/ergast/f1/2023/18?limit=1", extra_environ=environ).json["MRData"]["url"] == url
    )


@pytest.mark.parametrize(
    "host", ["a b", "a/b", "a:b", "a:80:80", "ü", 'a"', "[::1", "<script>", "a@b", "a,b"]
)
def test_a_host_that_cannot_be_one_is_400(sample, host):
    environ = {"HTTP_HOST": host.encode().decode("latin-1")}
    assert "Host" in sample.get("/ergast/f1/2023", extra_environ=environ, status=400).json["detail"]


def test_an_http_1_0_request_needs_no_host(sample_database):
    app = client(sample_database)
    environ = {"HTTP_HOST": "", "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "8000"}
    request = app.RequestClass.blank("/ergast/f1/2023/18", environ=environ)
    del request.environ["HTTP_HOST"]
    url = request.get_response(app.app).json["MRData"]["url"]
    assert url == "http://127.0.0.1:8000/ergast/f1/2023/18/races.json"


@pytest.mark.parametrize("path", ["/ergast/f1/2023/18", "/", "/healthz", "/openapi.json", "/none"])
def test_an_http_1_1_request_without_a_host_is_400(sample, path):
    answer = request(sample, PATH_INFO=path, SERVER_PROTOCOL="HTTP/1.1", HTTP_HOST="")
    assert answer.status_int == 400
    assert "Host" in answer.json["detail"]


NO_NUMBERS = ["-1", "x", "", "1.0", "1e3", "%20 1", "+5", "1_0", "٣", "0x10", "1,2", "9" * 5000]


@pytest.mark.parametrize("parameter", ["limit", "offset"])
@pytest.mark.parametrize("value", NO_NUMBERS)
def test_a_limit_or_offset_that_is_not_a_number_is_400_with_its_name_value_and_what_is_expected(
    sample, parameter, value
):
    problem = sample.get("/ergast/f1/2023/18/laps", {parameter: value}, status=400)
    said = f"{parameter} is {value[:50]!r}; expected a whole number, 0 or more, such as "
    assert problem.json["detail"].startswith(said)


DAYS = "yesterday , 2026-99-99 , 2026-02-30 , 2026-1-1 , 20260901 , 2026-W01-1 , , "
TIMES = "2026-09-01T24:00:00Z , 2026-09-01T12:00:00 , 2026-09-01T12:00Z , 2026-09-01 12:00:00Z"
TIME = "a day or a time in UTC, such as 2026-09-01 or 2026-09-01T12:00:00Z"
STATES = "open, explained or resolved"
MINUTES = "a whole number of minutes, 0 to 10080, such as alarm=30"
GROUPS = "one or more of practice, qualifying, sprintqualifying, sprint, race, separated by commas"
# Addresses, values of their last parameter, and what is expected instead.
WRONG = [
    ("changes?since", DAYS + TIMES, TIME),
    ("discrepancies?state", "x", STATES),
    ("discrepancycounts?state", "OPEN", STATES),
    ("2023/18/results?provenance", "0", "1"),
    ("2023.ics?alarm", " , -1 , 10081 , 123456", MINUTES),
    ("2023.ics?sessions", " , race,fp1 , race, , race,,sprint", GROUPS),
]


@pytest.mark.parametrize(
    ("address", "value", "expected"),
    [(address, value, said) for address, all, said in WRONG for value in all.split(" , ")],
)
def test_a_wrong_parameter_is_refused_with_what_is_expected(sample, address, value, expected):
    name = address.partition("?")[2]
    problem = sample.get(f"/ergast/f1/{address}={value}", status=400)
    assert problem.json["detail"] == f"{name} is {value!r}; expected {expected}."
    twice = sample.get(f"/ergast/f1/{address}={value}&{name}={value}", status=400)
    assert twice.json["detail"] == f"{name} is given 2 times; expected once."


@pytest.mark.parametrize(
    ("address", "accepted"),
    [
        ("2023.csv?callback", "limit, offset"),
        ("2023.csv?sessions", "limit, offset"),
        ("ids.csv?alarm", "limit, offset"),
        ("changes.csv?alarm", "limit, offset, since"),
        ("changes.atom?callback", "limit, offset, since"),
        ("2023.ics?callback", "limit, offset, sessions, alarm"),
    ],
)
def test_a_parameter_of_another_format_is_refused(sample, address, accepted):
    said = sample.get(f"/ergast/f1/{address}=1", status=400).json["detail"]
    ending, name = re.search(r"(\.\w+)\?(\w+)", address).groups()
    assert said == f"{ending} does not accept {name}; expected only {accepted}."


@pytest.mark.parametrize("address", ["results?since=x", "results.csv?provenance=x", "ids?state=x"])
def test_a_parameter_that_only_others_have_is_ignored(sample, address):
    path, _, _ = address.partition("?")
    answer, without = (sample.get(f"/ergast/f1/2023/18/{each}") for each in (address, path))
    assert answer.body == without.body


@pytest.mark.parametrize("ending", ["", ".csv", ".atom"])
def test_since_selects_changes_from_this_day_or_time_on(altered, ending):
    app = client(altered)

    def answer(query):
        return app.get(f"/ergast/f1/changes{ending}", {"limit": 2000, **query}).body

    newest = app.get("/ergast/f1/changes").json["MRData"]["ChangeTable"]["Changes"][0]["time"]
    everything, nothing = answer({}), answer({"since": "2999-01-01"})
    assert everything != nothing
    assert answer({"since": "2999-01-01T00:00:00Z"}) == nothing
    assert answer({"since": newest[:10]}) == everything
    assert answer({"since": newest}) != nothing


@pytest.mark.parametrize("change", [{"QUERY_STRING": "x" * 8000}, {"HTTP_HOST": "x" * 8000}])
def test_parsing_long_requests_takes_no_memory(sample_database, change):
    app = client(sample_database, cache_size=0)

    def ask(number):
        environ = {"PATH_INFO": "/ergast/f1/2023/99/results", **change}
        environ |= {name: f"{text}{number}" for name, text in change.items()}
        assert request(app, **environ).status_int == 200

    ask(0)
    tracemalloc.start()
    for number in range(1, 300):
        ask(number)
    growth, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert growth < 1_000_000  # the requests have 2.4 MB


WORDS = st.sampled_from(
    ["ergast", "f1", "2023", "1957", "18", "races", "results", "laps", "sprint", "..", ""]
)
ENDINGS = st.sampled_from(["", "", ".json", ".csv", ".ics", ".atom", ".CSV", ".xml", "."])
SEGMENTS = st.one_of(WORDS, st.from_regex("[0-9]{1,20}", fullmatch=True), st.text(max_size=12))
STARTS = st.sampled_from(["/", "/ergast/f1/"])
PATHS = st.tuples(STARTS, st.lists(SEGMENTS, max_size=6).map("/".join), ENDINGS).map("".join)
VALUES = st.one_of(
    st.integers().map(str), st.text(max_size=8), st.just("9" * 400), st.just("race,sprint")
)
PARAMETERS = st.tuples(
    st.sampled_from(["limit", "offset", "sessions", "alarm", "callback", "x"]), VALUES
).map("=".join)
QUERIES = st.one_of(st.text(max_size=40), st.lists(PARAMETERS, max_size=4).map("&".join))
HOSTS = st.one_of(
    st.just("example.org"), st.sampled_from(["[::1]:80", "a:b", "a b"]), st.text(max_size=20)
)


def as_wsgi(text):
    """Text as a server puts it into PATH_INFO and QUERY_STRING: a character for each byte."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


@pytest.mark.long
@settings(max_examples=800)
@given(PATHS, QUERIES, st.sampled_from(["GET", "HEAD", "OPTIONS", "POST", "BREW"]), HOSTS)
def test_a_request_that_is_wrong_in_any_way_is_4xx_and_never_5xx(sample, path, query, method, host):
    answer = request(
        sample,
        REQUEST_METHOD=method,
        PATH_INFO=as_wsgi(path),
        QUERY_STRING=as_wsgi(query),
        HTTP_HOST=as_wsgi(host) or "localhost",
    )
    assert answer.status_int in (200, 301, 400, 404, 405)
    if answer.status_int >= 400 and method != "HEAD":
        assert answer.content_type == "application/problem+json"
        assert set(answer.json) == {"type", "title", "status", "detail"}
        assert answer.json["status"] == answer.status_int

"""racedata.resources: the whole answer of each endpoint, pages of it, and what is not there.

tests/expected has one answer to each endpoint, as the sample gives it, laid out to be read.
"""

import json
from pathlib import Path

import pytest
from conftest import client
from hypothesis import given
from hypothesis import strategies as st

EXPECTED = Path(__file__).parent / "expected"

GOLDEN = {
    "calendar": "/ergast/f1/1957/races/",
    "race": "/ergast/f1/2023/18.json",
    "results": "/ergast/f1/2021/12/results.json?limit=3",
    "qualifying": "/ergast/f1/2023/18/qualifying.json?limit=2&offset=9",
    "sprint": "/ergast/f1/2023/18/sprint.json?limit=2",
    "laps": "/ergast/f1/2023/18/laps.json?limit=4&offset=17",
}


def races(answer):
    return answer.json["MRData"]["RaceTable"]["Races"]


@pytest.mark.parametrize("name", GOLDEN)
def test_the_answer_is_the_expected_one_in_every_key_its_order_and_its_value(sample, name):
    answer = sample.get(GOLDEN[name], headers={"Host": "example.org"}, status=200)
    expected = json.loads((EXPECTED / f"{name}.json").read_text(encoding="utf-8"))
    assert json.dumps(answer.json, indent=1) == json.dumps(expected, indent=1)


def test_the_answer_is_utf8_and_not_escaped(sample):
    assert "São Paulo".encode() in sample.get("/ergast/f1/2023").body


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
    assert sample.get("/ergast/f1/2023/18?limit=1", extra_environ=environ).json["MRData"]["url"] == url


def test_the_url_begins_with_the_setting_where_there_is_one(sample_database):
    app = client(sample_database, base_url="https://api.example.org/f1")
    assert app.get("/ergast/f1/2023").json["MRData"]["url"] == "https://api.example.org/f1/2023/races.json"


@pytest.mark.parametrize("host", ["a b", "a/b", "a:b", "a:80:80", "ü", 'a"', "[::1", "<script>", "a@b", "a,b"])
def test_a_host_that_is_none_is_400(sample, host):
    environ = {"HTTP_HOST": host.encode().decode("latin-1")}
    assert "Host" in sample.get("/ergast/f1/2023", extra_environ=environ, status=400).json["detail"]


def test_an_http_1_0_request_needs_no_host(sample_database):
    app = client(sample_database)
    environ = {"HTTP_HOST": "", "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "8000"}
    request = app.RequestClass.blank("/ergast/f1/2023/18", environ=environ)
    del request.environ["HTTP_HOST"]
    url = request.get_response(app.app).json["MRData"]["url"]
    assert url == "http://127.0.0.1:8000/ergast/f1/2023/18/races.json"


@pytest.mark.parametrize("address", ["2023/races", "2023/18", "2023/18/results", "2023/18/sprint", "2023/18/laps"])
@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("limit", "-1"),
        ("limit", "x"),
        ("limit", ""),
        ("limit", "1.0"),
        ("limit", "1e3"),
        ("limit", "%20 1"),
        ("limit", "1_0"),
        ("limit", "٣"),
        ("limit", "0x10"),
        ("limit", "null"),
        ("limit", "1,2"),
        ("limit", "9" * 5000),
        ("offset", "-1"),
        ("offset", "ten"),
        ("offset", ""),
        ("offset", "+5"),
        ("offset", "1;DROP TABLE races"),
    ],
)
def test_a_page_that_is_no_number_is_400_and_names_parameter_value_and_what_is_accepted(
    sample, address, parameter, value
):
    problem = sample.get(f"/ergast/f1/{address}", {parameter: value}, status=400)
    said = f"{parameter} is {value[:50]!r}; accepted is a whole number from 0, such as "
    assert problem.json["detail"].startswith(said)


def test_a_parameter_given_twice_is_400(sample):
    problem = sample.get("/ergast/f1/2023?limit=1&limit=2", status=400)
    assert problem.json["detail"] == "limit is given 2 times; it is accepted once."


def test_parameters_the_service_does_not_know_are_let_be(sample):
    assert sample.get("/ergast/f1/2023?callback=x&limit=1").json == sample.get("/ergast/f1/2023?limit=1").json


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        (None, "100"),
        ("0", "0"),
        ("1", "1"),
        ("007", "7"),
        ("2000", "2000"),
        ("2001", "2000"),
        ("9" * 4000, "2000"),
    ],
)
def test_the_envelope_shows_the_limit_that_was_used(sample, asked, used):
    answer = sample.get("/ergast/f1/2023/18/laps.json", {} if asked is None else {"limit": asked})
    assert answer.json["MRData"]["limit"] == used


def test_a_maximum_below_the_default_lowers_the_default(sample_database):
    app = client(sample_database, max_limit=30)
    answer = app.get("/ergast/f1/2023/18/laps.json").json["MRData"]
    assert (answer["limit"], sum(len(lap["Timings"]) for lap in answer["RaceTable"]["Races"][0]["Laps"])) == ("30", 30)


RECORDS = {
    "2023/races": (22, lambda found: found),
    "2023/18": (1, lambda found: found),
    "2023/18/results": (20, lambda found: found[0]["Results"]),
    "2023/18/qualifying": (20, lambda found: found[0]["QualifyingResults"]),
    "2023/18/sprint": (20, lambda found: found[0]["SprintResults"]),
    "2023/18/laps": (
        1014,
        lambda found: [{**timing, "lap": lap["number"]} for lap in found[0]["Laps"] for timing in lap["Timings"]],
    ),
}


@given(address=st.sampled_from(sorted(RECORDS)), limit=st.integers(0, 1100), offset=st.integers(0, 1100))
def test_a_page_is_that_part_of_the_whole(sample, address, limit, offset):
    total, records = RECORDS[address]
    whole = records(races(sample.get(f"/ergast/f1/{address}?limit=2000")))
    answer = sample.get(f"/ergast/f1/{address}?limit={limit}&offset={offset}")
    found = races(answer)
    assert len(whole) == total == int(answer.json["MRData"]["total"])
    assert (records(found) if found else []) == whole[offset : offset + limit]
    assert bool(found) == bool(whole[offset : offset + limit])


def test_an_offset_of_any_size_is_an_empty_page(sample):
    answer = sample.get(f"/ergast/f1/2023/18/laps.json?offset={'9' * 4000}").json["MRData"]
    assert (answer["offset"], answer["total"], answer["RaceTable"]["Races"]) == ("9" * 4000, "1014", [])


@pytest.mark.parametrize(
    "address",
    [
        "1949",
        "1949/1",
        "1949/1/results",
        "2023/99",
        "2023/99/qualifying",
        "2023/99/laps",
        "2021/12/sprint",  # a weekend without one
        "1957/5/qualifying",
        "1957/5/laps",  # before there are any
        "2023/1/results",  # not in the sample
    ],
)
def test_what_is_not_there_is_200_with_no_races(sample, address):
    answer = sample.get(f"/ergast/f1/{address}.json", status=200).json["MRData"]
    assert answer["total"] == "0"
    season, *round = address.split("/")[:2]
    named = {"season": season, "round": round[0]} if round else {"season": season}
    assert answer["RaceTable"] == {**named, "Races": []}


def test_half_points_are_as_the_source_has_them(sample):
    results = races(sample.get("/ergast/f1/2021/12/results"))[0]["Results"]
    assert [row["points"] for row in results[:4]] == ["12.5", "9", "7.5", "6"]


def test_a_shared_car_stands_twice(sample):
    results = races(sample.get("/ergast/f1/1957/5/results"))[0]["Results"]
    assert [(row["Driver"]["driverId"], row["position"], row["Time"]["time"]) for row in results[:2]] == [
        ("brooks", "1", "3:06:37.800"),
        ("moss", "1", "3:06:37.800"),
    ]


def test_single_and_two_part_qualifying_have_the_times_they_had(sample):
    parts = {}
    for round in (1, 7):
        row = races(sample.get(f"/ergast/f1/2005/{round}/qualifying"))[0]["QualifyingResults"][0]
        parts[round] = [part for part in ("Q1", "Q2", "Q3") if part in row]
    assert parts == {1: ["Q1", "Q2"], 7: ["Q1"]}


def test_finish_times_are_totals_or_gaps(sample, sample_database):
    def times(app, address):
        key = "SprintResults" if "sprint" in address else "Results"
        return [row["Time"]["time"] for row in races(app.get(f"/ergast/f1/{address}"))[0][key][:2]]

    gaps = client(sample_database, finish_times="gap")
    assert times(sample, "2023/9/results") == ["1:25:33.607", "1:25:38.762"]
    assert times(gaps, "2023/9/results") == ["1:25:33.607", "+5.155"]
    assert times(gaps, "2023/9/results?offset=1") == ["+5.155", "+17.188"]
    assert times(sample, "2021/12/results") == ["0:03:27.071", "0:03:29.066"]
    assert times(gaps, "2021/12/results") == ["3:27.071", "+1.995"]
    assert times(sample, "2021/10/sprint") == ["25:38.426", "25:39.856"]
    assert times(gaps, "2021/10/sprint") == ["25:38.426", "+1.430"]


def test_a_sprint_weekend_shows_in_its_race_and_no_other_does(sample):
    for season, rounds in {
        "1957": [],
        "2005": [],
        "2021": ["10", "14", "19"],
        "2023": ["4", "9", "12", "17", "18", "20"],
    }.items():
        assert [race["round"] for race in races(sample.get(f"/ergast/f1/{season}")) if "Sprint" in race] == rounds


def test_healthz_says_what_is_served(sample):
    answer = sample.get("/healthz", status=200).json
    assert (answer["status"], answer["schemaVersion"]) == ("ok", 1)
    assert len(answer["sourceChecksum"]) == 64
    assert answer["builtAt"].endswith("Z")
    assert answer["rows"] == {
        "circuits": 37,
        "constructors": 20,
        "drivers": 65,
        "lap_times": 1034,
        "qualifying": 120,
        "races": 71,
        "results": 142,
        "sprint_results": 60,
        "status": 25,
    }

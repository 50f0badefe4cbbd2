"""racedata.service.endpoints, content: the whole answer of each endpoint, pages of it, and what is
missing.

tests/expected has answers of every endpoint over the sample, laid out to be read and compared with
the CSV files.
"""

import json

import pytest
from support import EXPECTED
from support.answers import Counted, client, client_after, request

from racedata.service.addresses import ATOM, JSON
from racedata.service.caching import SMALL, decompressed
from racedata.service.endpoints import ENDPOINTS

GOLDEN = {
    "races": "/ergast/f1/1957/races/",
    "races-one": "/ergast/f1/2023/18.json",
    "results": "/ergast/f1/2021/12/results.json?limit=3",
    "qualifying": "/ergast/f1/2023/18/qualifying.json?limit=2&offset=9",
    "sprint": "/ergast/f1/2023/18/sprint.json?limit=2",
    "sprintqualifying": "/ergast/f1/2023/9/Sprint/Shootout.json?limit=2&offset=14",
    "practice": "/ergast/f1/drivers/leclerc/practice.json?limit=2&offset=2",
    "laps": "/ergast/f1/2023/18/laps.json?limit=4&offset=17",
    "pitstops": "/ergast/f1/2021/10/pitstops.json?limit=3",
    "seasons": "/ergast/f1/drivers/alonso/seasons.json",
    "circuits": "/ergast/f1/drivers/alonso/circuits.json?limit=2&offset=1",
    "constructors": "/ergast/f1/1957/drivers/bueb/constructors/",
    "drivers": "/ergast/f1/2023/18/constructors/ferrari/drivers.json",
    "driverstandings": "/ergast/f1/1957/drivers/bueb/driverStandings.json",
    "driverstandings-champions": "/ergast/f1/driverStandings/1.json?limit=2&offset=1",
    "driverstandings-disqualified": "/ergast/f1/1997/driverStandings.json?limit=1&offset=25",
    "constructorstandings": "/ergast/f1/current/last/constructorStandings.json?limit=2",
    "status": "/ergast/f1/2023/18/status.json",
    "corrections": "/ergast/f1/2023/corrections.json?limit=3&offset=3",
    "discrepancies": "/ergast/f1/2023/discrepancies.json?state=open",
    "discrepancycounts": "/ergast/f1/discrepancycounts.json",
    "ids": "/ergast/f1/2023/18/drivers/alonso/ids.json",
    "changes": "/ergast/f1/2023/18/changes.json?since=2023-10-22",
}


def races(answer):
    return answer.json["MRData"]["RaceTable"]["Races"]


@pytest.mark.parametrize("name", GOLDEN)
def test_the_answer_is_the_expected_one_in_every_key_its_order_and_its_value(sample, name):
    answer = sample.get(GOLDEN[name], headers={"Host": "example.org"}, status=200)
    expected = json.loads((EXPECTED / f"{name}.json").read_text(encoding="utf-8"))
    assert json.dumps(answer.json, indent=1) == json.dumps(expected, indent=1)


def test_every_endpoint_has_an_expected_answer_and_every_file_is_used():
    assert {endpoint.name for endpoint in ENDPOINTS} <= {*GOLDEN}
    assert {path.stem for path in EXPECTED.glob("*.json")} == {*GOLDEN}


FORMATS = [(endpoint, ending) for endpoint in ENDPOINTS for ending in endpoint.rules.endings]
# Parameters that every format refuses, with what the message says.
WRONG = {
    "limit=abc": "limit is 'abc'; expected a whole number, 0 or more, such as limit=100.",
    "offset=1&offset=1": "offset is given 2 times; expected once.",
}


@pytest.mark.parametrize(("endpoint", "ending"), FORMATS)
def test_an_answer_of_any_format_is_compressed_cached_counted_and_refused_like_the_others(
    sample_database, endpoint, ending
):
    data = Counted.read(sample_database)
    app = client(data, burst_limit="off", sustained_limit="99/day")
    address, sent = f"/ergast/f1/2023/18/{endpoint.name}{ending}", 0

    def ask(query="", **environ):
        nonlocal sent
        sent += 1
        answer = request(
            app, PATH_INFO=address, QUERY_STRING=query, HTTP_ACCEPT="text/html", **environ
        )
        assert answer.headers["RateLimit"].startswith(f'"sustained";r={99 - sent};')
        headers = {name.lower(): value for name, value in answer.headers.items()}
        del headers["ratelimit"]  # which changes with each request
        return answer, headers

    plain, headers = ask()
    assert headers["cache-control"] == "public, max-age=300"
    assert ("x-total-count" in headers) == (ending != JSON)
    data.queries = 0
    # which the others do not repeat
    host = {} if ending in (JSON, ATOM) else {"HTTP_HOST": "other.example.org"}
    for coding in ("gzip", "identity"):
        answer, of_answer = ask(HTTP_ACCEPT_ENCODING=coding, **host)
        assert decompressed(answer.body) == plain.body
        form = {"content-encoding": "gzip"} if coding == "gzip" and len(plain.body) >= SMALL else {}
        assert of_answer == {**headers, **form, "content-length": str(len(answer.body))}
        head, of_head = ask(HTTP_ACCEPT_ENCODING=coding, REQUEST_METHOD="HEAD")
        assert (head.body, of_head) == (b"", of_answer)
        assert (
            ask(HTTP_IF_NONE_MATCH=headers["etag"], HTTP_ACCEPT_ENCODING=coding)[0].status_int
            == 304
        )
    assert data.queries == 0
    for query, message in WRONG.items():
        problem, _ = ask(query)
        assert (problem.status_int, problem.content_type) == (400, "application/problem+json")
        assert problem.json["detail"] == message


def test_a_fact_about_which_sources_disagree_has_what_each_says_and_what_we_say(two_sources):
    app = client(two_sources)

    def found(address):
        return app.get(f"/ergast/f1/{address}").json["MRData"]["DiscrepancyTable"]

    (gould,) = found("drivers/gould/discrepancies")["Discrepancies"]
    assert gould.pop("explanation").startswith("One of the two is wrong, or it is another person.")
    assert gould == {
        "kind": "drivers",
        "key": "gould",
        "driverId": "gould",
        "column": "dob",
        "value": "1918-09-20",
        "state": "open",
        "Sources": [
            {"source": "sample", "value": "1918-09-20"},
            {"source": "f1db", "value": "1921-09-20"},
        ],
    }
    by_state = {
        state: found(f"discrepancies?limit=2000&state={state}")["Discrepancies"]
        for state in ("open", "explained", "resolved")
    }
    assert all({each["state"] for each in rows} == {state} for state, rows in by_state.items())
    counts = found("discrepancycounts")["Counts"]
    assert {state: len(rows) for state, rows in by_state.items()} == {
        state: sum(int(each["count"]) for each in counts if each["state"] == state)
        for state in by_state
    }
    head, line = app.get("/ergast/f1/drivers/gould/discrepancies.csv").text.splitlines()
    assert head.endswith(",Sources.sample,Sources.f1db")
    assert line.endswith(",1918-09-20,1921-09-20")


def test_the_ids_of_sources_are_those_of_what_an_address_selects(two_sources):
    app = client(two_sources)
    ids = app.get("/ergast/f1/drivers/alonso/ids").json["MRData"]["IdTable"]["Ids"]
    assert [(each["source"], each["sourceId"]) for each in ids] == [
        ("f1db", "fernando-alonso"),
        ("sample", "3"),
    ]
    lines = app.get("/ergast/f1/2023/18/ids.csv").text.splitlines()[1:]
    assert {line.split(",")[0] for line in lines} == {"circuit", "constructor", "driver"}


def test_provenance_is_the_source_of_each_race_or_list_of_standings(two_sources):
    app = client(two_sources)

    def provenance(address):
        table = app.get(f"/ergast/f1/{address}").json["MRData"]
        (objects,) = [value for name, value in table.items() if name.endswith("Table")]
        (found,) = [value for value in objects.values() if isinstance(value, list)]
        return [each.get("Provenance") for each in found]

    assert provenance("2023/18/results") == [None]
    (of_results,) = provenance("2023/18/results?provenance=1")
    assert of_results.pop("readAt").endswith("Z")
    of_laps = of_results.pop("FastestLaps")
    assert of_results == {"source": "sample", "corrected": "0", "disputed": "0"}
    assert of_laps.pop("readAt").endswith("Z")
    assert of_laps == {"source": "sample", "corrected": "0", "disputed": "0"}
    (of_1957,) = provenance("1957/2/results?provenance=1")
    assert (of_1957["source"], of_1957["FastestLaps"]["source"]) == ("sample", "f1db")
    assert "FastestLaps" not in provenance("1957/2/qualifying?provenance=1")[0]
    (of_standings,) = provenance("2023/18/constructorstandings?provenance=1")
    assert (of_standings["source"], of_standings["disputed"]) == ("sample", "2")
    assert len(provenance("driverstandings/1?provenance=1")) > 1
    assert provenance("2023/18/results.json?provenance=1&limit=0") == []
    plain = app.get("/ergast/f1/2023/18/results.csv").body
    assert app.get("/ergast/f1/2023/18/results.csv?provenance=1").body == plain


@pytest.mark.parametrize(
    ("endpoint", "table", "corrected", "of_laps"),
    [("results", "results", "2", "1"), ("sprint", "sprint_results", "1", None)],
)
def test_the_corrected_values_of_fastest_laps_are_counted_apart_but_for_those_of_a_sprint(
    database, endpoint, table, corrected, of_laps
):
    app = client_after(
        database,
        f"""UPDATE corrections SET tableName = '{table}', columnName = 'fastestLap'
            WHERE key = '2023/18/ocon'""",
    )
    (race,) = races(app.get(f"/ergast/f1/2023/18/{endpoint}?provenance=1"))
    found = race["Provenance"]
    assert (found["corrected"], found.get("FastestLaps", {}).get("corrected")) == (
        corrected,
        of_laps,
    )

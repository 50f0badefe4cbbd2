"""racedata.service.endpoints: the whole answer of each endpoint, pages of it, and what is missing.

tests/expected has answers of every endpoint over the sample, laid out to be read and compared with
the CSV files.
"""

import csv
import json

import pytest
import webtest
from support import EXPECTED, SAMPLE
from support.answers import Counted, client, request, settings_of
from support.loads import built, remember
from support.refreshes import F1DB

from racedata import __version__
from racedata.database import SCHEMA_VERSION, store_path
from racedata.service.addresses import ATOM, CSV, ICS, JSON
from racedata.service.answers import SMALL, decompressed
from racedata.service.app import create_app
from racedata.service.endpoints import ENDPOINTS
from racedata.service.ratelimit.stores import store_for
from racedata.service.snapshot import Snapshot

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


def test_an_offset_of_any_size_is_an_empty_page(sample):
    answer = sample.get(f"/ergast/f1/2023/18/laps.json?offset={'9' * 4000}").json["MRData"]
    assert (answer["offset"], answer["total"], answer["RaceTable"]["Races"]) == (
        "9" * 4000,
        "1014",
        [],
    )


def test_thirty_fastest_laps_of_f1db_have_a_time_but_no_number(full_database):
    app = client(full_database, burst_limit="off", sustained_limit="off")
    laps = [
        (int(race["season"]), result["FastestLap"])
        for offset in range(0, 28_000, 2000)
        for race in races(app.get(f"/ergast/f1/results?limit=2000&offset={offset}"))
        for result in race["Results"]
        if "lap" not in result.get("FastestLap", {"lap": ""})
    ]
    assert len(laps) == 30
    assert {tuple(lap) for _, lap in laps} == {("rank", "Time")}
    assert {season for season, _ in laps} <= set(range(1950, 1980))


def test_healthz_says_what_is_served(sample):
    answer = sample.get("/healthz", status=200).json
    assert answer["version"] == __version__
    assert (answer["status"], answer["schemaVersion"]) == ("ok", SCHEMA_VERSION)
    assert answer["builtAt"].endswith("Z")
    rows = {}
    for file in SAMPLE.glob("*.csv"):
        with file.open(newline="", encoding="utf-8") as lines:
            rows[file.stem] = sum(1 for _ in csv.DictReader(lines))
    assert answer["rows"] == rows | {"sessions": 176, "entries": 160}


AT = "2026-11-22T06:00:00Z"


def test_healthz_has_each_source_with_its_own_licence_and_no_folder_or_key_of_it(several_sources):
    base, *others = client(several_sources).get("/healthz").json["sources"]
    assert (base["name"], base["address"], base["licence"]) == (
        "sample",
        None,
        "CC BY-NC-SA 3.0 and 4.0",
    )
    assert len(base["checksum"]) == 64
    assert "results of 8 races (1957 to 2023), " in base["gave"]
    release, api = "https://example.org/f1db.zip", "https://example.org/f1"
    facts = {"checksum": None, "readAt": AT}
    assert others == [
        {
            "name": "f1db",
            "address": release,
            "licence": "CC BY 4.0",
            **facts,
            "gave": "practice of 2 races",
        },
        {"name": api, "address": api, "licence": None, **facts, "gave": ""},
    ]


def test_healthz_says_of_each_source_when_it_was_asked_and_since_when_it_has_been_followed(
    several_sources,
):
    app = client(several_sources)
    f1db = {"refreshedAt": AT, "followedSince": AT, "release": "0"}
    noted = {
        "f1db": f1db,
        "/home/somebody/?": {"refreshedAt": AT},
        "later": {"followedSince": AT},
    }
    remember(several_sources, noted)
    sample, f1db, api, other, later = app.get("/healthz").json["sources"]
    assert (sample.get("refreshedAt"), f1db["refreshedAt"], api.get("refreshedAt")) == (
        None,
        AT,
        None,
    )
    assert (sample.get("followedSince"), f1db["followedSince"], api.get("followedSince")) == (
        None,
        AT,
        None,
    )
    assert (other, later) == (
        {"name": "?", "refreshedAt": AT},
        {"name": "later", "followedSince": AT},
    )


@pytest.mark.parametrize("content", [b"", b"SQLite format 3"])
def test_healthz_answers_even_if_the_store_is_damaged(several_sources, content):
    store_path(several_sources).write_bytes(content)
    answer = client(several_sources).get("/healthz", status=200).json
    assert [source.get("refreshedAt") for source in answer["sources"]] == [None, None, None]


def test_healthz_says_what_has_changed_since_the_database_was_read(several_sources):
    data = Snapshot.read(str(several_sources))
    app = webtest.TestApp(create_app(settings_of(), data))
    first = app.get("/healthz").json
    remember(several_sources, {"f1db": {"refreshedAt": AT}})
    assert app.get("/healthz").json["sources"][1]["refreshedAt"] == AT
    data.rejection = "is not a database"
    assert app.get("/healthz").json["refused"] == "The database file is not a database."
    data.rejection = None
    store_path(several_sources).unlink()
    assert app.get("/healthz").json == first


FORMATS = [(endpoint, ending) for endpoint in ENDPOINTS for ending in endpoint.rules.endings]
# Parameters that an ending refuses, with what the message says.
WRONG = {
    "limit=abc": "limit is 'abc'; expected a whole number, 0 or more, such as limit=100.",
    "offset=1&offset=1": "offset is given 2 times; expected once.",
}
WRONG_BY_ENDING = {
    JSON: {},
    CSV: {
        "callback=x": ".csv does not accept callback; expected only limit, offset{own}.",
        "sessions=race": ".csv does not accept sessions; expected only limit, offset{own}.",
        "alarm=30": ".csv does not accept alarm; expected only limit, offset{own}.",
    },
    ATOM: {"callback=x": ".atom does not accept callback; expected only limit, offset{own}."},
    ICS: {
        "callback=": ".ics does not accept callback; expected only limit, offset, sessions, alarm.",
        "alarm=": "alarm is ''; expected a whole number of minutes, 0 to 10080, such as alarm=30.",
        "alarm=-1": "alarm is '-1'; expected a whole number of minutes, ",
        "alarm=10081": "alarm is '10081'; expected a whole number of minutes, ",
        "alarm=123456": "alarm is '123456'; expected a whole number of minutes, ",
        "alarm=5&alarm=5": "alarm is given 2 times; expected once, as in alarm=30.",
        "sessions=": "sessions has ''; expected one or more of practice, qualifying, "
        "sprintqualifying, sprint, race, separated by commas.",
        "sessions=race,fp1": "sessions has 'fp1'; expected one or more of practice, ",
        "sessions=race&sessions=race": "sessions is given 2 times; expected once, as in ",
    },
}
# The parameters of an endpoint that such a message names after the others.
OWN = {"changes": ", since", "discrepancies": ", state", "discrepancycounts": ", state"}


@pytest.mark.parametrize(("endpoint", "ending"), FORMATS)
def test_an_answer_of_any_format_is_compressed_cached_counted_and_refused_like_the_others(
    sample_database, endpoint, ending
):
    data, settings = (
        Counted.read(sample_database),
        settings_of(burst_limit="off", sustained_limit="99/day"),
    )
    app = webtest.TestApp(create_app(settings, data, store_for(settings)))
    address, sent = f"/ergast/f1/2023/18/{endpoint.name}{ending}", 0

    def ask(query="", **environ):
        nonlocal sent
        sent += 1
        answer = request(
            app, PATH_INFO=address, QUERY_STRING=query, HTTP_ACCEPT="text/html", **environ
        )
        assert answer.headers["RateLimit"].startswith(f'"sustained";r={99 - sent};')
        assert (
            answer.headers["Access-Control-Allow-Origin"]
            == answer.headers["Access-Control-Expose-Headers"]
            == "*"
        )
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
    for query, message in {**WRONG, **WRONG_BY_ENDING[ending]}.items():
        problem, _ = ask(query)
        assert (problem.status_int, problem.content_type) == (400, "application/problem+json")
        expected = message.replace("{own}", OWN.get(endpoint.name, ""))
        assert problem.json["detail"].startswith(expected)


def test_changes_as_json_and_as_csv_have_the_same_values(altered):
    app = client(altered)
    table = app.get("/ergast/f1/2023/18/changes.json?limit=2000").json["MRData"]["ChangeTable"]
    assert (table["season"], table["round"]) == ("2023", "18")
    first = table["Changes"][0]
    assert first | {"time": "", "reason": ""} == {
        "revision": "3",
        "time": "",
        "season": "2023",
        "round": "18",
        "raceName": "United States Grand Prix",
        "kind": "results",
        "key": "2023/18/sainz",
        "driverId": "sainz",
        "circuitId": "americas",
        "column": "positionText",
        "oldValue": "3",
        "value": "7",
        "oldSource": "dump",
        "source": "dump",
        "reason": "",
    }
    lines = app.get("/ergast/f1/2023/18/changes.csv?limit=2000").text.splitlines()
    assert len(lines) == len(table["Changes"]) + 1


@pytest.fixture(scope="module")
def two_sources(tmp_path_factory):
    """The sample and what f1db says about two of its races."""
    return built([SAMPLE, F1DB], tmp_path_factory.mktemp("two") / "racedata.db")


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
    line = app.get("/ergast/f1/drivers/gould/discrepancies.csv").text.splitlines()[1]
    assert line.endswith(",sample: 1918-09-20;f1db: 1921-09-20")


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
    assert of_results == {"source": "sample", "corrected": "0", "disputed": "0"}
    (of_standings,) = provenance("2023/18/constructorstandings?provenance=1")
    assert (of_standings["source"], of_standings["disputed"]) == ("sample", "2")
    assert len(provenance("driverstandings/1?provenance=1")) > 1
    assert provenance("2023/18/results.json?provenance=1&limit=0") == []
    plain = app.get("/ergast/f1/2023/18/results.csv").body
    assert app.get("/ergast/f1/2023/18/results.csv?provenance=1").body == plain

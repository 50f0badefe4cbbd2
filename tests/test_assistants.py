"""racedata.assistants: what the tools answer, what they say of it, and how it is shortened."""

import json
import re
import shutil

import pytest
from support.loads import changed

from racedata import assistants
from racedata.assistants import RESOURCES, SIZE, TEXTS, Assistant
from racedata.database import SCHEMA
from racedata.statements import views

SOURCE = """INSERT INTO sources
    (name, address, licence, readAt, isLoaded, gave, isProvisional) VALUES
    ('openf1', 'https://example.org/v1?key=1', NULL, '2026-11-22T06:00:00Z', 0, '', 1)"""
GIVE = """UPDATE origins SET sourceId = (SELECT sourceId FROM sources WHERE name = 'openf1')
    WHERE kind = 'results'"""
CHANGE = """INSERT INTO changes (revision, changedAt, kind, key, columnName, oldValue, value,
        oldSource, source, reason, year, round, raceName)
    VALUES (2, '2026-11-21T10:00:00Z', 'results', '2023/18/norris', 'grid', '3', '2',
        'https://example.org/f1', 'dump', 'it was corrected', 2023, 18, 'USA')"""


DISPUTE = """INSERT INTO discrepancies (kind, key, columnName, year, raceId, driverId,
        circuitId, state, explanation, doubt)
    SELECT '{kind}', '2023/18/{driver}', '{column}', 2023, raceId, driverId,
        circuitId, '{state}', '', 1
    FROM races, drivers WHERE RACE(2023/18) AND driverRef = '{driver}'"""
DISPUTES = [
    DISPUTE.format(kind=kind, driver=driver, column=column, state=state)
    for kind, driver, column, state in [
        ("results", "norris", "grid", "open"),
        ("results", "hamilton", "grid", "open"),
        ("results", "norris", "laps", "open"),
        ("results", "norris", "points", "resolved"),
        ("results", "norris", "number", "explained"),
        ("fastest_laps", "alonso", "rank", "open"),
        ("qualifying", "alonso", "q1", "open"),
        ("driver_standings", "norris", "wins", "open"),
    ]
]
OF_LISTS = """INSERT INTO discrepancies (kind, key, columnName, {id}, state, explanation, doubt)
    SELECT '{list}', {ref}, '{column}', {id}, 'open', '', 1 FROM {list} WHERE {ref} = '{name}'"""
DISPUTES += [
    OF_LISTS.format(list=name, ref=f"{name[:-1]}Ref", id=f"{name[:-1]}Id", name=of, column=column)
    for name, of, column in [
        ("drivers", "norris", "dob"),
        ("constructors", "mclaren", "nationality"),
        ("circuits", "americas", "lat"),
    ]
]
DISPUTES += ["INSERT INTO discrepancy_values SELECT record, 1, 'sample', 'x' FROM discrepancies"]


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """No statement of a test is stopped because the machine is busy."""
    monkeypatch.setattr(assistants, "BOUNDS", assistants.BOUNDS._replace(seconds=60))


@pytest.fixture(scope="module")
def assistant(sample_database):
    return Assistant(str(sample_database))


def ask(assistant, address):
    return json.loads(assistant.ask(address))


def test_an_answer_names_its_sources_and_the_build(assistant):
    answer = ask(assistant, "/2023/18/results")
    assert answer["sources"] == [{"name": "sample", "licence": "CC BY-NC-SA 3.0 and 4.0"}]
    assert answer["builtAt"].endswith("Z")
    assert "provisional" not in answer and "note" not in answer


@pytest.mark.parametrize(
    ("address", "values"),
    [("/2023/18/results", 3), ("/2023/9/results", 0), ("/2023/18/constructorstandings", 1)],
)
def test_an_answer_says_how_many_values_of_its_races_are_corrected(assistant, address, values):
    said = ask(assistant, address).get("corrected", "0 values")
    assert said.startswith(f"{values} values")


def test_an_answer_says_which_of_its_races_are_provisional(database):
    statement = f"{GIVE} AND raceId = (SELECT raceId FROM races WHERE year = 2023 AND round = 18)"
    assistant = Assistant(str(changed(database, SOURCE, statement)))
    said = ["2023/18 United States Grand Prix: results from openf1"]
    assert ask(assistant, "/2023/18/results")["provisional"] == said
    assert (
        json.loads(assistant.sql("SELECT driver FROM race_results LIMIT 1"))["provisional"] == said
    )
    assert json.loads(assistant.coverage())["provisional"] == said
    for address in ("/2023/9/results", "/2023/18/qualifying", "/drivers"):
        assert "provisional" not in ask(assistant, address)


@pytest.mark.parametrize("address", ["/2023/18/results?limit=0", "/2023/99/results"])
def test_an_answer_without_records_says_nothing_of_the_records_of_other_races(database, address):
    assistant = Assistant(str(changed(database, SOURCE, GIVE, *DISPUTES)))
    assert {"corrected", "provisional", "disputed"} <= ask(assistant, "/2023/18/results").keys()
    answer = ask(assistant, address)
    assert not {"corrected", "provisional", "disputed"} & answer.keys()
    assert answer["sources"]


DISAGREE = "sources disagree about these values: "


@pytest.mark.parametrize(
    ("address", "values", "where"),
    [
        ("/2023/18/results", "grid 2, laps 1, rank 1", "/2023/18"),
        ("/2023/18/results?limit=2", "grid 1, laps 1", "/2023/18"),
        ("/current/last/drivers/norris/results", "grid 1, laps 1", "/2023/18/drivers/norris"),
        ("/2023/drivers/norris/results/2", "grid 1, laps 1", "/2023/drivers/norris"),
        ("/2023/18/qualifying", "q1 1", "/2023/18"),
        ("/current/18/qualifying", "q1 1", "/2023/18"),
        ("/2023/18/driverstandings", "wins 1", "/2023/18"),  # which name no circuit
        ("/drivers/norris", "dob 1", "/drivers/norris"),
        ("/2023/drivers", "dob 1", ""),
        ("/constructors/mclaren", "nationality 1", "/constructors/mclaren"),
        ("/circuits?limit=100", "lat 1", ""),
    ],
)
def test_an_answer_says_which_values_on_its_page_are_disputed_and_where_to_read_more(
    database, address, values, where
):
    assistant = Assistant(str(changed(database, *DISPUTES)))
    asked = f"{where}/discrepancies?state=open"
    assert ask(assistant, address)["disputed"] == f"{DISAGREE}{values}; what each says: ask {asked}"
    found = ask(assistant, asked)["MRData"]["DiscrepancyTable"]["Discrepancies"]
    assert {each["state"] for each in found} == {"open"}
    assert {pair.split()[0] for pair in values.split(", ")} <= {each["column"] for each in found}


def test_sql_and_coverage_say_which_values_are_disputed_in_all_seasons(database):
    assistant = Assistant(str(changed(database, *DISPUTES)))
    said = json.loads(assistant.sql("SELECT driver FROM race_results LIMIT 1"))["disputed"]
    where = "; what each says: ask /discrepancies?state=open"
    assert said == f"in all seasons, {DISAGREE}grid 2, laps 1, rank 1{where}"
    said = json.loads(assistant.coverage())["disputed"]
    assert said == f"in all seasons, {DISAGREE}grid 2, laps 1, q1 1, rank 1, wins 1{where}"
    assert "disputed" not in json.loads(assistant.sql("SELECT year FROM races LIMIT 1"))


def test_parameters_of_an_endpoint_count_even_on_the_next_page(database):
    assistant = Assistant(str(changed(database, *DISPUTES)))
    answer = ask(assistant, "/discrepancies?state=open&limit=4")
    assert answer["note"].endswith("/discrepancies?state=open&limit=4&offset=4")
    assert answer["MRData"]["total"] == "9"
    (race,) = ask(assistant, "/2023/18/results?provenance=1")["MRData"]["RaceTable"]["Races"]
    assert race["Provenance"]["disputed"] == "3"


def test_only_the_latest_provisional_races_are_named(database):
    assistant = Assistant(str(changed(database, SOURCE, GIVE)))
    *named, more = json.loads(assistant.coverage())["provisional"]
    assert len(named) == 5 and named[0].startswith("2023/18 ")
    assert more == "and 3 more"


@pytest.mark.parametrize("address", ["/2023/18/laps", "/2023/laps", "/results", "/drivers"])
def test_a_large_answer_is_shortened_and_its_note_leads_to_all_of_it(assistant, address):
    records, following = 0, f"{address}?limit=2000"
    while following:
        text = assistant.ask(following)
        assert len(text) < SIZE * 1.1
        answer = json.loads(text)
        limit, offset, total = (int(answer["MRData"][key]) for key in ("limit", "offset", "total"))
        assert offset == records
        records += min(limit, total - offset)
        note = re.search("; the next ones: (.*)", answer.get("note", ""))
        following = note[1] if note else ""
    assert records == total > 100


def test_one_record_is_never_shortened(assistant, monkeypatch):
    monkeypatch.setattr(assistants, "SIZE", 10)
    answer = ask(assistant, "/2023/18/results")
    assert answer["MRData"]["limit"] == "1"
    assert answer["note"] == (
        "Records 1 to 1 of 20; the next ones: /2023/18/results?limit=1&offset=1"
    )


def test_an_address_may_be_written_as_a_url(assistant):
    url = " http://127.0.0.1:8000/ergast/f1/2023/18/results.json "
    assert ask(assistant, url)["MRData"] == ask(assistant, "/2023/18/results")["MRData"]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/a" * 4096, "the address has more than 8,190 characters; expected fewer"),
        ("/2023?limit=many", "limit is 'many'; expected a whole number"),
        ("/discrepancies?sate=open", "does not accept sate; expected only limit, offset, state"),
        ("/1949/last", "Season 1949 has no last round yet"),
    ],
)
def test_a_wrong_address_is_refused_with_what_was_expected(assistant, address, said):
    with pytest.raises((ValueError, LookupError)) as refused:
        assistant.ask(address)
    assert said in str(refused.value)


NONE, HAS = "No records match.", "No records match. The database has"


@pytest.mark.parametrize(
    ("address", "note"),
    [
        ("/1957/2/laps", f"{HAS} lap times of 2 of 4 races from 2021 to 2023."),
        (
            "/1957/sprint",
            f"{HAS} sprint results of 3 of 4 races from 2021 to 2023, of which not all had one.",
        ),
        ("/drivers/nobody", f"{NONE[:-1]}; coverage() says what is loaded."),
        ("/1957/2/discrepancies?state=open", NONE),
        ("/2023/18/results?offset=20", "Of 20 records, none is behind the offset."),
        ("/2023/18/results?limit=0", None),
        ("/current/next", "This race was on 2023-10-29. Its results are not loaded."),
        ("/current/last", None),
        ("/changes", "Changes are noted since the first build; there are none."),
    ],
)
def test_a_note_says_why_an_answer_has_no_records_or_no_results(assistant, address, note):
    assert ask(assistant, address).get("note") == note


def test_a_result_without_rows_says_what_is_covered(assistant):
    note = json.loads(assistant.sql("SELECT lap FROM laps WHERE year = 1957"))["note"]
    assert note.startswith(f"{HAS} lap times of 2 of 4 races from 2021 to 2023, results of 8 of 8 ")
    assert json.loads(assistant.sql("SELECT 1 AS a WHERE 0"))["note"] == "No row matches."


def test_a_new_file_is_noticed_at_the_next_question_and_no_statement_reads_one_that_was_refused(
    database, other_database
):
    assistant = Assistant(str(database))
    name = "SELECT surname FROM drivers WHERE driverRef = 'leclerc'"
    assert json.loads(assistant.sql(name))["rows"] == [{"surname": "Leclerc"}]
    shutil.copy(other_database, new := database.with_name("new.db"))
    (refused := database.with_name("refused.db")).write_bytes(b"no database")
    new.rename(database)
    assert json.loads(assistant.sql(name))["rows"] == [{"surname": "Leclercq"}]
    assert "Leclercq" in assistant.ask("/drivers/leclerc")
    refused.rename(database)
    assert "Leclercq" in assistant.ask("/drivers/leclerc")
    said = "The database file is not an SQLite database."
    assert json.loads(assistant.coverage())["refused"] == said
    with pytest.raises(ValueError, match="has been replaced since it was read; ask again"):
        assistant.sql(name)
    shutil.copy(other_database, new)
    new.rename(database)
    assert json.loads(assistant.sql(name))["rows"] == [{"surname": "Leclercq"}]


def test_further_rows_are_left_out_with_a_note(assistant):
    answer = json.loads(assistant.sql("SELECT driver, lap FROM laps"))
    assert len(answer["rows"]) == 200
    assert answer["note"].startswith("Only the first 200 rows; ")


@pytest.mark.parametrize(
    "select",
    [
        f'SELECT 1 AS "{"x" * 45_000}" FROM results LIMIT 200',
        "SELECT zeroblob(3000) AS a FROM results LIMIT 30",
        "SELECT replace(hex(zeroblob(15000)), '0', char(1)) AS a FROM drivers LIMIT 3",
    ],
    ids=["long name", "blobs", "control characters"],
)
def test_a_result_that_is_too_large_as_it_is_written_is_refused(assistant, select):
    with pytest.raises(ValueError, match="the result has more than 100,000 characters"):
        assistant.sql(select)


def test_a_blob_is_written_as_hexadecimal(assistant):
    assert json.loads(assistant.sql("SELECT x'00ff' AS a"))["rows"] == [{"a": "00ff"}]


def test_the_tables_of_a_statement_decide_which_sources_are_named(several_sources):
    assistant = Assistant(str(several_sources))
    names = [each["name"] for each in json.loads(assistant.sql("SELECT 1 AS a"))["sources"]]
    assert names == ["sample"]


def test_coverage_says_what_the_database_does_not_have(database):
    assistant = Assistant(str(changed(database, "DELETE FROM coverage WHERE kind = 'practice'")))
    answer = json.loads(assistant.coverage())
    assert answer["notHere"].endswith("kinds of records without a line in coverage: practice")
    assert "telemetry" in answer["notHere"]
    assert answer["seasons"] == {"first": 1957, "last": 2023, "count": 5}


def test_coverage_names_the_races_up_to_today_that_have_no_results(database):
    answer = json.loads(Assistant(str(database)).coverage())
    assert answer["sinceThenWithoutResults"][0] == "2023-10-29: 2023/19 Mexico City Grand Prix"
    assert answer["nextRace"] == "no later race is loaded"
    changed(database, "UPDATE races SET date = '2999-11-26' WHERE RACE(2023/22)")
    answer = json.loads(Assistant(str(database)).coverage())
    assert answer["nextRace"] == "2999-11-26: 2023/22 Abu Dhabi Grand Prix"


def test_changes_are_the_answer_of_their_endpoint_with_the_first_time(database):
    assistant = Assistant(str(changed(database, CHANGE)))
    for since in ("2026-11-21T10:00:00Z", "2026-11-22"):
        answer = json.loads(assistant.changes(since))
        assert answer["note"] == "Changes are noted since 2026-11-21T10:00:00Z."
        assert answer["MRData"] == assistant.current().ask("/changes", since=since)["MRData"]


def test_the_words_name_only_what_the_schema_has():
    names = {*re.findall(r"\w+", SCHEMA)}
    for text in re.findall("`([^`]+)`", TEXTS["words"]):
        for word in re.findall(r"(?<!')\b[a-z]\w+\b(?!')", re.sub(r"'[^']*'", "", text)):
            assert word in names or word in {"count", "date"}, word


def test_the_resources_have_every_table_and_view():
    tables, views_text = RESOURCES["racedata://tables"][1], RESOURCES["racedata://views"][1]
    assert re.findall(r"^CREATE (\w+)", tables, re.M).count("VIEW") == 0
    assert re.findall(r"^CREATE (TABLE|VIEW) (\w+)", tables + views_text, re.M) == re.findall(
        r"^CREATE (TABLE|VIEW) (\w+)", SCHEMA, re.M
    )
    assert {each.partition("(")[0] for each in views()} == {
        *re.findall(r"^CREATE VIEW (\w+)", views_text, re.M)
    }

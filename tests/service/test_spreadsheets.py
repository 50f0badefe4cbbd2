"""racedata.service.spreadsheets: every table, read by pandas, has the facts of the JSON; its
columns and values.
"""

import csv
import io
import random
import warnings
from decimal import Decimal

import pytest
from support.answers import client, client_after
from support.loads import changed

from racedata.service.endpoints import BY_NAME, ENDPOINTS
from racedata.service.spreadsheets import write

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its own dependencies
    import pandas

# The times of which tables have the milliseconds too.
TIMES = {"laps": "time", "pitstops": "duration"}
# Of objects that many lines repeat, what identifies and names them; of a list of them, the ids.
KEPT = {
    "Circuit": ("circuitId", "circuitName"),
    "Constructor": ("constructorId", "name"),
    "Driver": ("driverId", "code", "givenName", "familyName"),
    "Races": ("season", "round", "raceName", "Circuit", "date"),
}


def lines(found, kept=None):
    """The facts of each record in objects of an answer, by the names of their columns."""
    facts, inner = {}, None
    for name, value in found.items():
        if kept and name not in kept and not isinstance(value, list):
            continue
        if name == "Constructors":
            facts |= {name: ";".join(each["constructorId"] for each in value)} if value else {}
        elif isinstance(value, list):
            inner = [line for each in value for line in lines(each)]
        elif isinstance(value, dict):
            (line,) = lines(value, KEPT.get(name))
            facts |= {f"{name}.{key}": text for key, text in line.items()}
        else:
            facts[name] = value
    return [facts] if inner is None else [{**facts, **line} for line in inner]


def facts_of(answer):
    """The facts of all records in a JSON answer."""
    (table,) = (value for value in answer["MRData"].values() if isinstance(value, dict))
    ((name, objects),) = ((name, value) for name, value in table.items() if isinstance(value, list))
    nested = any(
        isinstance(value, list)
        for each in objects
        for key, value in each.items()
        if key != "Constructors"
    )
    return [line for each in objects for line in lines(each, KEPT.get(name) if nested else None)]


def assert_same_facts(app, path, query=""):
    """Holds the table at an address to its JSON. Returns the columns of the table."""
    json = app.get(f"/ergast/f1{path}{query}", status=[200, 400, 404])
    csv = app.get(f"/ergast/f1{path}.csv{query}", status=json.status_int)
    if json.status_int != 200:
        assert csv.body == json.body
        return None
    assert csv.headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
    assert csv.headers["X-Total-Count"] == json.json["MRData"]["total"]
    assert csv.body.count(b"\r\n") == csv.body.count(b"\n")
    table = pandas.read_csv(io.BytesIO(csv.body), dtype=str, keep_default_na=False)
    read = [
        {name: text for name, text in line.items() if text} for line in table.to_dict("records")
    ]
    facts = facts_of(json.json)
    if key := TIMES.get(path.split("/")[-1]):
        assert table.columns[-1] == "millis"
        facts = [
            line | ({"millis": str(milliseconds(line[key]))} if key in line else {})
            for line in facts
        ]
    assert read == facts, path
    return list(table.columns)


def milliseconds(text):
    """The milliseconds of a time such as `1:02:03.456`."""
    return int(
        1000
        * sum(Decimal(part) * 60**place for place, part in enumerate(reversed(text.split(":"))))
    )


def assert_same_facts_everywhere(app, queries):
    """Holds the tables of every endpoint, and of 200 filtered addresses, to their JSON."""
    races = app.get("/ergast/f1/results?limit=2000").json["MRData"]["RaceTable"]["Races"]
    columns, found = {}, 0
    for number in range(len(ENDPOINTS) * 2 + 200):
        endpoint = ENDPOINTS[number % len(ENDPOINTS)]
        race = random.choice(races)
        row = random.choice(race["Results"])
        values = {
            "circuits": race["Circuit"]["circuitId"],
            "constructors": row["Constructor"]["constructorId"],
            "drivers": row["Driver"]["driverId"],
            "grid": row["grid"],
            "results": row["positionText"].lower(),
        }
        path = random.choice([f"/{race['season']}/{race['round']}", f"/{race['season']}", ""])
        if endpoint.rules.needs_season:
            path = random.choice(["/2023", "/2023/18"])
        if number >= len(ENDPOINTS) * 2:
            for name in random.sample(sorted(endpoint.rules.filters), random.choice([1, 1, 2])):
                path += f"/{name}/{values.get(name, '1')}"
        names = assert_same_facts(app, f"{path}/{endpoint.name}", random.choice(queries))
        if names:
            found += 1
            assert columns.setdefault(endpoint, names) == names
    assert found > 150


def test_the_table_of_every_address_has_the_facts_of_its_json_and_the_columns_of_its_endpoint(
    sample,
):
    assert_same_facts_everywhere(sample, ["", "?limit=7&offset=13", "?limit=2000", "?limit=0"])


def test_the_tables_of_a_full_dump_have_the_facts_of_the_json(dump_database):
    app = client(dump_database)
    for endpoint in ENDPOINTS:
        assert_same_facts(app, f"/2023/18/{endpoint.name}", "?limit=2000")
        whole = f"/2023/{endpoint.name}" if endpoint.rules.needs_season else f"/{endpoint.name}"
        assert_same_facts(app, whole, f"?limit=2000&offset={random.randrange(2000)}")
    assert_same_facts_everywhere(app, ["?limit=2000", "?limit=30&offset=25"])


def test_a_line_is_a_record_with_its_race(sample):
    lines = sample.get("/ergast/f1/2023/18/laps.csv?limit=1&offset=45").text.splitlines()
    assert lines == [
        "season,round,raceName,Circuit.circuitId,Circuit.circuitName,date,number,driverId,position,time,millis",
        "2023,18,United States Grand Prix,americas,Circuit of the "
        "Americas,2023-10-22,3,piastri,6,1:42.929,102929",
    ]


def test_pandas_reads_numbers_even_if_the_time_of_a_lap_or_stop_is_unknown(database):
    changed(database, "UPDATE lap_times SET time = NULL WHERE RACE(2023/18) AND record = 1")
    app = client_after(
        database, "UPDATE pit_stops SET milliseconds = NULL WHERE RACE(2023/18) AND record = 1"
    )
    for endpoint in TIMES:
        table = pandas.read_csv(io.BytesIO(app.get(f"/ergast/f1/2023/18/{endpoint}.csv").body))
        assert pandas.api.types.is_numeric_dtype(table["millis"])
        assert list(table["millis"].isna()) == [True] + [False] * (len(table) - 1)


@pytest.mark.parametrize(
    "name",
    ['Leclerc, "Charles"', "=1+1", "+1 Lap", "-", "@x", "'", "a;b", "Å 日本", "NaN", "a | b "],
)
def test_a_value_is_equal_to_the_value_in_the_json_character_for_character(database, name):
    text = name.replace("'", "''")
    app = client_after(database, f"UPDATE drivers SET surname = '{text}' WHERE DRIVER(leclerc)")
    assert_same_facts(app, "/2023/18/results")
    assert (
        app.get("/ergast/f1/drivers/leclerc.json").json["MRData"]["DriverTable"]["Drivers"][0][
            "familyName"
        ]
        == name
    )


def test_what_each_source_says_has_a_column_of_its_own_whatever_the_values_are():
    fact = {"kind": "results", "key": "2023/18/norris", "column": "row", "state": "open"}
    said = [{"source": "dump", "value": "number=4; grid=2"}, {"source": "https://example.org/f1"}]
    sources = "dump", "f1db", "https://example.org/f1"
    objects = [{**fact, "explanation": "x", "Sources": said}]
    table = write(BY_NAME["discrepancies"], sources, objects)
    (line,) = csv.DictReader(table.decode().splitlines())
    assert {name: value for name, value in line.items() if name.startswith("Sources")} == {
        "Sources.dump": "number=4; grid=2",
        "Sources.f1db": "-",
        "Sources.https://example.org/f1": "",
    }

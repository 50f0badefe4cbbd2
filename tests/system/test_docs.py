"""The examples for analysts and for developers of clients, run as a reader runs them."""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import jinja2
import pytest
import requests
import yaml
from duckdb_extensions import import_extension
from support import ROOT
from support.loads import changed, select
from support.processes import OFF, service

ANALYSTS, CLIENTS = (
    (ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("analysts", "clients")
)
HOST = "http://127.0.0.1:8000"


# In this order: the packages are installed before the network is gone.
pytestmark = pytest.mark.usefixtures("npm_packages", "only_this_machine")

# What the documents install without a version.
VERSIONS = {"openapi-fetch": "0.17.0", "openapi-typescript": "7.13.0", "typescript": "5.9.3"}


def code(document, language):
    return re.findall(rf"^```{language}\n(.*?)^```", document, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def npm_packages(tmp_path_factory):
    """A folder with the npm packages that the page for developers installs, in the versions that
    are tested.
    """
    folder = tmp_path_factory.mktemp("npm")
    (command,) = re.findall("^    npm install (.*)$", CLIENTS, re.MULTILINE)
    if shutil.which("npm"):
        names = [f"{name}@{VERSIONS[name]}" for name in command.split()]
        run("npm", "install", *names, folder=folder)
    return folder


@pytest.fixture(scope="module")
def base(sample_database, attempts, tmp_path_factory):
    with service(sample_database, tmp_path_factory.mktemp("docs") / "log", **OFF) as running:
        yield "http://{}:{}".format(*running.address)


def run(*command, folder=None, **settings):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("sql", code(ANALYSTS, "sql"), ids=lambda sql: sql.split("\n")[0])
def test_the_sql_for_analysts_finds_rows(sample_database, sql):
    assert select(sample_database, sql.rstrip("; \n"))
    with closing(duckdb.connect()) as db:
        import_extension("sqlite_scanner")
        db.execute(f"ATTACH '{sample_database}' AS racedata (TYPE sqlite, READ_ONLY)")
        db.execute("USE racedata")
        assert db.execute(sql).fetchall()


def test_the_python_for_analysts_finds_what_the_service_answers(sample_database, base, tmp_path):
    (tmp_path / "data").mkdir()
    shutil.copy(sample_database, tmp_path / "data" / "racedata.db")
    lines = "\n".join(code(ANALYSTS, "python")).replace(HOST, base)
    # DuckDB downloads its extension for SQLite. The test takes it from a package.
    extension = (
        "from duckdb_extensions import import_extension\nimport_extension('sqlite_scanner')\n"
    )
    shown = """
import json
counts = dict(zip(wins.driverRef, map(int, wins.wins)))
direct = [answer["total"], len(verstappen), len(firsts)]
print(json.dumps([len(races), counts, points["alonso"][9], len(laps), len(results), direct]))
"""
    races, wins, points, laps, results, direct = json.loads(
        run(sys.executable, "-c", extension + lines + shown, folder=tmp_path)
    )

    def answer(address):
        return requests.get(f"{base}/ergast/f1/{address}").json()["MRData"]

    assert str(races) == answer("races?limit=0")["total"]
    addresses = ("2023/18/results", "2023/drivers/max_verstappen/results", "2023/results/1")
    assert [*map(str, direct)] == [answer(address)["total"] for address in addresses]
    assert str(laps) == answer("2023/18/laps?limit=0")["total"]
    assert str(results) == answer("results?limit=0")["total"]
    for driver, count in wins.items():
        assert str(count) == answer(f"drivers/{driver}/results/1?limit=0")["total"]
    (standings,) = answer("2023/9/drivers/alonso/driverstandings")["StandingsTable"][
        "StandingsLists"
    ]
    assert points == float(standings["DriverStandings"][0]["points"])


def test_the_loop_for_analysts_reads_all_pages_and_waits_if_it_gets_a_429(
    sample_database, base, tmp_path
):
    *_, loop = code(ANALYSTS, "python")
    # In place of `time.sleep`: what says how long it would wait, and then waits.
    counted = """
import json, time
import pandas as pd
waits, sleep = [], time.sleep
time.sleep = lambda seconds: (waits.append(seconds), sleep(seconds))
"""
    shown = "print(json.dumps([len(results), len(results.drop_duplicates()), waits]))"
    settings = {**OFF, "RACEDATA_BURST_LIMIT": "4/minute", "RACEDATA_MAX_LIMIT": "35"}
    with service(sample_database, tmp_path / "log", **settings) as limited:
        loop = loop.replace(HOST, "http://{}:{}".format(*limited.address))
        read, different, waits = json.loads(run(sys.executable, "-c", counted + loop + shown))
    total = requests.get(f"{base}/ergast/f1/results?limit=0").json()["MRData"]["total"]
    assert str(read) == str(different) == total
    assert waits


def sensors_for_home_assistant(base):
    """What each of the sensors shows, by its name."""
    text = code(CLIENTS, "yaml")[0]
    shown = {}
    for rest in yaml.safe_load(text.replace("http://racedata.lan:8000", base))["rest"]:
        answer = requests.get(rest["resource"]).json()
        for sensor in rest["sensor"]:
            template = jinja2.Template(sensor["value_template"], undefined=jinja2.StrictUndefined)
            shown[sensor["name"]] = template.render(value_json=answer).strip()
    return shown


def test_the_sensors_for_home_assistant_show_the_next_race_and_the_leader_if_there_are_some(
    base, database, attempts, tmp_path
):
    assert sensors_for_home_assistant(base) == {
        "Next Grand Prix": "Mexico City Grand Prix",
        "Next Grand Prix start": "2023-10-29T20:00:00Z",
        "Championship leader": "Verstappen, 575 points",
    }
    last = "UPDATE results SET RACE(2023/22) WHERE RACE(2023/18)"
    changed(database, last, "DELETE FROM driver_standings")
    with service(database, tmp_path / "log", **OFF) as running:
        assert sensors_for_home_assistant("http://{}:{}".format(*running.address)) == {
            "Next Grand Prix": "no later race",
            "Next Grand Prix start": "",
            "Championship leader": "no standings",
        }


def test_the_script_for_developers_reads_all_pages_and_never_gets_a_second_429(
    sample_database, base, tmp_path
):
    (script,) = code(CLIENTS, "js")
    counted = """
const statuses = [], plain = fetch
globalThis.fetch = async (...args) => {
  const response = await plain(...args)
  statuses.push(response.status)
  return response
}
"""
    shown = "console.log(JSON.stringify([[...(await laps(2023, 18))], statuses]))"
    settings = {**OFF, "RACEDATA_BURST_LIMIT": "4/minute", "RACEDATA_MAX_LIMIT": "203"}
    with service(sample_database, tmp_path / "log", **settings) as limited:
        script = script.replace(HOST, "http://{}:{}".format(*limited.address))
        read, statuses = json.loads(
            run("node", "--input-type=module", "--eval", counted + script + shown)
        )
    answer = requests.get(f"{base}/ergast/f1/2023/18/laps?limit=2000").json()["MRData"]
    assert read == [
        [lap["number"], lap["Timings"]] for lap in answer["RaceTable"]["Races"][0]["Laps"]
    ]
    assert statuses == [200] * 4 + [429, 200]


@pytest.mark.parametrize(
    ("curl", "status", "text"), [("nobody", 200, '"total":"0"'), ("many", 400, "whole number")]
)
def test_missing_records_and_wrong_requests_get_the_answers_that_the_page_describes(
    base, curl, status, text
):
    (address,) = re.findall(f"curl '?(.*{curl}[^'\n]*)", CLIENTS)
    answer = requests.get(address.replace(HOST, base))
    assert answer.status_code == status and text in answer.text


def races(base, address):
    return requests.get(f"{base}/ergast/f1/{address}").json()["MRData"]["RaceTable"]["Races"]


def test_the_lines_for_fastf1_make_schedules_from_the_answers_of_the_service(base, tmp_path):
    lines, _ = code(CLIENTS, "python")
    shown = "print([*old.EventName], [*schedule.EventName])"
    environ = {**os.environ, "FASTF1_CACHE": str(tmp_path)}
    printed = run(sys.executable, "-c", lines.replace(HOST, base) + shown, env=environ)
    names = [[race["raceName"] for race in races(base, season)] for season in (1957, 2023)]
    assert printed == "{} {}\n".format(*names)


def results_of_alonso(base):
    """What both generated clients print: a line for each race."""
    found = races(base, "2023/drivers/alonso/results")
    return "".join(f"{race['raceName']} {race['Results'][0]['positionText']}\n" for race in found)


def test_the_generated_client_for_python_finds_the_results_of_a_driver(base, tmp_path):
    (command,) = re.findall(r"^    (openapi-python-client .*\n.*)$", CLIENTS, re.MULTILINE)
    _, script = code(CLIENTS, "python")
    # As in an activated virtual environment: the generator also runs ruff.
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    run(
        "sh", "-c", f"{command.replace(HOST, base)} --fail-on-warning", folder=tmp_path, env=environ
    )
    assert run(
        sys.executable, "-c", script.replace(HOST, base), folder=tmp_path
    ) == results_of_alonso(base)


@pytest.mark.skipif(not shutil.which("npm"), reason="needs npm")
def test_the_generated_client_for_typescript_finds_the_results_of_a_driver(base, npm_packages):
    (script,) = code(CLIENTS, "ts")
    (npm_packages / "client.ts").write_text(script.replace(HOST, base), encoding="utf-8")
    (npm_packages / "package.json").write_text('{"type": "module"}')
    *preparations, last = re.findall("^    ((?:npx|node) .*)$", CLIENTS, re.MULTILINE)
    for command in preparations:
        run(*command.replace(HOST, base).split(), folder=npm_packages)
    assert run(*last.split(), folder=npm_packages) == results_of_alonso(base)

"""racedata.direct: the answers of the service without HTTP, in frames and in SQL."""

import os
import shutil
import subprocess
import sys

import pandas
import pytest
from support.loads import changed

from racedata import open_database

PAGE = ("limit", "offset")
HOST = {"Host": "127.0.0.1:8000"}
ADDRESSES = [
    "/2023/18/results",
    "/2023/18/laps?limit=50&offset=30",
    "/current/last/qualifying",
    "/drivers/alonso/results?limit=2",
    "/2023/driverstandings/1",
    "/circuits",
    "/seasons?limit=0",
    "/2023/18/results?provenance=1",
    "/discrepancies?state=open",
    "/changes?since=2020-01-01&limit=5",
    "",
]


@pytest.fixture
def db(sample_database):
    with open_database(sample_database) as db:
        yield db


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_answer_is_that_of_the_service_but_for_the_host(db, sample, address):
    path, _, query = address.partition("?")
    page = dict(part.split("=") for part in query.split("&") if part)
    ours = db.ask(path, **{name: int(page[name]) if name in PAGE else page[name] for name in page})
    theirs = sample.get(f"/ergast/f1{address}", headers=HOST).json
    theirs["MRData"]["url"] = theirs["MRData"]["url"].removeprefix("http://127.0.0.1:8000")
    assert ours == theirs


def test_an_answer_belongs_to_the_caller(db):
    before = db.ask("/drivers/alonso")
    db.ask("/drivers/alonso")["MRData"]["DriverTable"]["Drivers"][0]["code"] = "XXX"
    assert db.ask("/drivers/alonso") == before


@pytest.mark.parametrize(
    ("address", "page", "said"),
    [
        ("/2023/18/result", {}, "did you mean results?"),
        ("/laps", {}, "laps needs a season"),
        ("/2023/races.csv", {}, "is not JSON"),
        ("/races", {"state": "open"}, "races does not accept state; expected only limit, offset"),
    ],
)
def test_an_address_that_the_service_refuses_is_a_value_error(db, address, page, said):
    with pytest.raises(ValueError, match=said.replace("?", r"\?")):
        db.ask(address, **page)


@pytest.mark.parametrize(
    ("address", "name", "value"),
    [
        *(
            ("/2023/races", name, value)
            for name in ("limit", "offset")
            for value in (-1, "x", 1.5, "")
        ),
        ("/2023/races", "offset", None),
        ("/changes", "since", "2023"),
        ("/2023/results", "provenance", 2),
        ("/discrepancies", "state", None),
    ],
)
def test_a_wrong_value_is_a_value_error_with_the_message_of_the_service(
    db, sample, address, name, value
):
    problem = sample.get(f"/ergast/f1{address}", {name: str(value)}, status=400)
    with pytest.raises(ValueError, match=f"^{name} is '{value}'; expected ") as refused:
        db.ask(address, **{name: value})
    assert str(refused.value) == problem.json["detail"]


def test_a_frame_has_all_records_and_the_columns_of_the_csv(db, sample):
    frame = db.frame("laps", season=2023, round=18)
    total = int(db.ask("/2023/18/laps")["MRData"]["total"])
    assert len(frame) == total > 100
    first, *_ = sample.get("/ergast/f1/2023/18/laps.csv?limit=1").text.splitlines()
    assert ",".join(frame.columns) == first


def test_a_frame_takes_filters_even_of_its_own_name(db):
    won = db.frame("results", season=2023, results=1)
    assert set(won.position) == {1} and set(won.season) == {2023}
    assert set(won.positionText) == {"1"}  # a text in each frame: others have R
    of_alonso = db.frame("results", drivers="alonso")
    assert set(of_alonso["Driver.driverId"]) == {"alonso"}
    assert len(db.frame("results", drivers=None)) == len(db.frame("results"))


PLACES = (
    """INSERT INTO discrepancies (kind, key, columnName, year, value, state, explanation, doubt)
    VALUES ('results', '2023/18/alonso', 'position', 2023, '3', 'open', '', 1)""",
    "INSERT INTO discrepancy_values SELECT record, 1, 'sample', '4' FROM discrepancies",
    """INSERT INTO corrections (tableName, key, columnName, sourceValue, value, witnesses, year)
    VALUES ('results', '2023/18/alonso', 'position', '4', '3', '', 2023)""",
    """INSERT INTO changes (revision, changedAt, kind, key, columnName, oldValue, value, reason)
    VALUES (2, '2023-10-23T00:00:00Z', 'results', '2023/18/alonso', 'position', '4', '3', '')""",
)


def test_values_of_many_kinds_are_texts_in_a_frame_even_if_all_are_numbers(database):
    with open_database(changed(database, "DELETE FROM corrections", *PLACES)) as db:
        disputed, corrected, altered = (
            db.frame(each) for each in ("discrepancies", "corrections", "changes")
        )
    assert disputed[["value", "Sources.sample"]].values.tolist() == [["3", "4"]]
    assert corrected[["sourceValue", "value"]].values.tolist() == [["4", "3"]]
    assert altered[["oldValue", "value"]].values.tolist() == [["4", "3"]]


@pytest.mark.parametrize(
    ("endpoint", "given", "said"),
    [
        ("results", {"season": 2023, "limit": 1}, "'limit' is not a filter"),
        ("results", {"season": 1.5}, "'1.5' is not an endpoint"),
        ("results", {"round": 2023}, "round=2023: expected a season too"),
        ("results", {"drivers": "alonso/grid/1"}, "drivers='alonso/grid/1': expected one value, "),
        ("resluts", {}, "'resluts' is not an endpoint"),
        (None, {}, "'none' is not an endpoint"),
        ("laps", {}, "laps needs a season"),
    ],
)
def test_a_frame_of_what_the_service_refuses_is_a_value_error(db, endpoint, given, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        db.frame(endpoint, **given)


def test_sql_has_rows_as_dicts_and_takes_values(db):
    sql = "SELECT driverRef, grid FROM race_results WHERE year = ? AND round = ? AND isWinner"
    assert db.sql(sql, 2023, 18) == [{"driverRef": "max_verstappen", "grid": 6}]
    assert pandas.DataFrame(db.sql(sql, 2023, 18)).grid[0] == 6


def test_a_database_is_as_it_was_when_it_was_opened(database, other_database):
    with open_database(database) as db:
        shutil.move(shutil.copy(other_database, f"{database}.new"), database)
        name = "SELECT surname FROM drivers WHERE driverRef = 'leclerc'"
        assert db.sql(name) == [{"surname": "Leclerc"}]
        assert "Leclercq" not in str(db.ask("/drivers/leclerc"))
    with open_database(database) as db:
        assert db.sql(name) == [{"surname": "Leclercq"}]
        assert "Leclercq" in str(db.ask("/drivers/leclerc"))


def test_the_default_is_the_database_of_the_command(monkeypatch, sample_database):
    monkeypatch.setenv("RACEDATA_DATABASE", str(sample_database))
    monkeypatch.setenv("PORT", "not a number, which does not matter here")
    with open_database() as db:
        assert db.ask("/2023/18")["MRData"]["total"] == "1"


def python(code, *arguments, **environ):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
    )


def test_without_pandas_only_frames_are_missing(sample_database):
    code = """
import sys
sys.modules["pandas"] = None
from racedata import open_database
db = open_database(sys.argv[1])
print(db.ask("/2023/18")["MRData"]["total"])
try:
    db.frame("results")
except ImportError as error:
    print(error)
"""
    said = python(code, sample_database).stdout
    assert said == "1\nframe needs pandas; run: pip install pandas\n"


# What Linux has, and other systems may lack: modules, and names in other modules.
ONLY_LINUX = ["fcntl", "resource", "gunicorn", "pwd", "grp", "termios"]
NAMES = {
    "os": ["O_NONBLOCK", "O_CLOEXEC", "pread", "pidfd_open", "register_at_fork", "fork", "statvfs"],
    "signal": ["SIGHUP", "SIGALRM", "setitimer", "pidfd_send_signal", "pthread_sigmask"],
}
WITHOUT = f"""
import sys, os, signal
import urllib.request  # which looks for proxies as the real system has them
sys.modules.update(dict.fromkeys({ONLY_LINUX}))
for module, names in {NAMES}.items():
    for name in names:
        delattr(sys.modules[module], name)
del signal.Signals._member_map_["SIGHUP"]
signal.Signals._member_names_.remove("SIGHUP")
sys.platform = "darwin"
"""


def test_nothing_but_the_service_imports_what_only_linux_has(sample_database):
    code = """
import racedata.cli
import racedata.loader.load_command, racedata.loader.refresh_command, racedata.loader.export
import racedata.loader.store_commands, racedata.loader.check
from racedata import mcp_server
from racedata.assistants import Assistant
db = racedata.open_database(sys.argv[1])
print(db.ask("/2023/18")["MRData"]["total"], len(db.frame("results", 2023, 18)))
mcp_server.server_of(assistant := Assistant(sys.argv[1]))
print(assistant.sql("SELECT count(*) AS n FROM race_results WHERE year = 2023 AND round = 18")[:18])
"""
    # it needs fcntl, except on Windows
    run = python(f"import mcp.server.stdio{WITHOUT}{code}", sample_database)
    assert (run.stderr, run.stdout) == ("", '1 20\n{"rows":[{"n":20}]\n')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve"], "racedata serve: needs Linux; elsewhere, use `racedata mcp`, or "),
        (["load", "--database"], "this system cannot lock a folder; expected Linux, or "),
        (["export"], "this system cannot lock a folder; expected Linux, or "),
        (["export", "site"], "racedata export site: needs Linux, as the service does"),
    ],
)
def test_a_command_that_needs_more_says_so_in_one_line(sample_database, tmp_path, arguments, said):
    if arguments != ["serve"]:
        arguments = [*arguments, str(tmp_path / "new.zip")]
    if arguments[0] == "export" and arguments[1] != "site":
        arguments += ["--database", str(sample_database)]
    code = WITHOUT.partition("for module")[0] + 'sys.platform = "darwin"\n'
    code += f"from racedata.cli import main\nmain({arguments})"
    run = python(code)
    assert run.returncode == 1
    assert said in run.stderr and run.stderr.count("\n") == 1

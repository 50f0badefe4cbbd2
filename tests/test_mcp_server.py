"""racedata.mcp_server: the real client of the SDK over both transports; ten questions of people;
and clients that mean harm.
"""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from support import SAMPLE
from support.loads import built, changed, edited
from support.processes import children_of, free_port, own_memory, run_racedata, started, until

from racedata import __version__
from racedata.assistants import RESOURCES
from racedata.mcp_server import RUNNING, WAITING, security_of
from racedata.service.endpoints import ENDPOINTS
from racedata.service.request import OWN_PARAMETERS

DISPUTE = [
    """INSERT INTO discrepancies (kind, key, columnName, year, raceId, driverId, value, state,
            explanation, doubt)
        SELECT 'results', '2023/18/norris', 'grid', 2023, raceId, driverId, '2', 'open', 'x', 1
        FROM races, drivers WHERE RACE(2023/18) AND driverRef = 'norris'""",
    "INSERT INTO discrepancy_values VALUES (1, 1, 'sample', '2'), (1, 2, 'f1db', NULL)",
]


@pytest.fixture(scope="module")
def changed_database(tmp_path_factory):
    """The sample, after a build in which Hamilton had not been disqualified yet. One value is
    disputed.
    """
    folder = tmp_path_factory.mktemp("changed")
    source = edited(SAMPLE, folder / "sample", results=before_the_stewards)
    database = built(source, folder / "racedata.db")
    shutil.rmtree(source)
    shutil.copytree(SAMPLE, source)
    return changed(built(source, database), *DISPUTE)


def before_the_stewards(row):
    if row["resultId"] != "141":
        return row
    return {**row, "positionText": "2", "position": "2", "points": "18"}


@pytest.fixture(scope="module")
def server(changed_database):
    with over_http(changed_database, command=patient) as running:
        yield running


@pytest.fixture(scope="module")
def url(server):
    return server.url


@pytest.fixture(scope="module")
def described(url):
    """The descriptions of tools by name, and the texts of resources by address."""
    (descriptions,) = talked(url, describing)
    return descriptions


def command(database, *options):
    return ["-m", "racedata", "mcp", "--database", str(database), *options]


def patient(database, *options):
    """The command, with so much time for a statement that a busy machine stops none."""
    longer = "assistants.BOUNDS = assistants.BOUNDS._replace(seconds=60)"
    code = f"from racedata import assistants, cli; {longer}; cli.main()"
    return ["-c", code, *command(database, *options)[2:]]


class Running(NamedTuple):
    """A running `racedata mcp --http`."""

    url: str
    port: int
    process: int


@contextmanager
def over_http(database, command=command):
    """`racedata mcp --http` as a process of its own, until the end of the block."""
    port = free_port()
    words = [sys.executable, *command(database, "--http", "--port", str(port))]
    with started(words, ("127.0.0.1", port), stderr=subprocess.DEVNULL) as process:
        yield Running(f"http://127.0.0.1:{port}/mcp", port, process.pid)


def talked(server, *parts):
    """The results of the parts of a conversation over one connection. `server` is a URL, or what
    starts a server that talks over stdio.
    """

    async def talk():
        async with Client(server) as client:
            return [await part(client) for part in parts]

    return anyio.run(talk)


def calling(*calls):
    """A part of a conversation, which calls tools. It returns whether each answer is an error, and
    its text.
    """

    async def call(client):
        results = [await client.call_tool(*each) for each in calls]
        return [(each.is_error, each.content[0].text) for each in results]

    return call


async def describing(client):
    """The descriptions of tools by name, and the texts of resources by address."""
    tools = {tool.name: tool.description for tool in (await client.list_tools()).tools}
    texts = {}
    for resource in (await client.list_resources()).resources:
        (content,) = (await client.read_resource(resource.uri)).contents
        texts[str(resource.uri)] = content.text
    return tools, texts


def asked(server, tool, **arguments):
    """The answer of a tool."""
    (((is_error, text),),) = talked(server, calling((tool, arguments)))
    assert not is_error, text
    return json.loads(text)


def refusal(server, tool, **arguments):
    """Why a tool refuses."""
    (((is_error, text),),) = talked(server, calling((tool, arguments)))
    assert is_error, text
    return text.removeprefix(f"Error executing tool {tool}: ")


# Questions that people ask, and the statement with which an assistant would answer each.
COUNTED = {
    "who won most often at a circuit": (
        """SELECT driver, count(DISTINCT date) AS wins FROM race_results
        WHERE isWinner AND circuitRef = 'americas' GROUP BY driverRef ORDER BY wins DESC LIMIT 5""",
        [["Max Verstappen", 1]],
    ),
    "how many poles a driver had in a season": (
        """SELECT count(DISTINCT date) AS poles FROM poles
        WHERE driverRef = 'max_verstappen' AND year = 2023""",
        [[1]],
    ),
    "and how often he was the fastest in qualifying": (
        """SELECT count(*) AS fastest FROM qualifying_results
        WHERE driverRef = 'max_verstappen' AND year = 2023 AND position = 1""",
        [[1]],
    ),
    "which weekends of a season have a sprint": (
        """SELECT group_concat(round, ' ') AS rounds FROM sessions JOIN races USING (raceId)
        WHERE year = 2023 AND session = 'sprint'""",
        [["4 9 12 17 18 20"]],
    ),
    "how often a driver was ahead of his team mate": (
        """SELECT sum(a.positionOrder < b.positionOrder) AS ahead, count(*) AS races
        FROM race_results AS a JOIN race_results AS b USING (year, round, constructorRef)
        WHERE year = 2023 AND a.driverRef = 'max_verstappen' AND b.driverRef = 'perez'""",
        [[2, 2]],
    ),
    "the fastest pit stop": (
        """SELECT driver, year, race, seconds FROM stops
        WHERE seconds < 120 ORDER BY seconds LIMIT 1""",
        [["Yuki Tsunoda", 2023, "Austrian Grand Prix", 16.246]],
    ),
    "the youngest winner": (
        """SELECT driver, date, dob, CAST((julianday(date) - julianday(dob)) / 365.25 AS INT) AS age
        FROM race_results JOIN drivers USING (driverRef) WHERE isWinner ORDER BY age LIMIT 1""",
        [["Fernando Alonso", "2005-05-29", "1981-07-29", 23]],
    ),
}


@pytest.mark.parametrize("question", COUNTED)
def test_a_question_that_people_ask_is_answered_by_a_statement(url, question):
    select, rows = COUNTED[question]
    answer = asked(url, "sql", select=select)
    assert [[*row.values()] for row in answer["rows"]] == rows
    assert [source["name"] for source in answer["sources"]] == ["sample"]
    assert "builtAt" in answer


def test_was_there_a_penalty_after_a_race_and_what_changed(url):
    found = asked(url, "changes", since="2020-01-01")["MRData"]["ChangeTable"]["Changes"]
    about = {
        each["column"]: (each["oldValue"], each["value"])
        for each in found
        if each["key"].startswith("2023/18/hamilton")
    }
    assert (about["positionText"], about["points"]) == (("2", "D"), ("18", "0"))
    result = asked(url, "ask", address="/2023/18/drivers/hamilton/results")
    (race,) = result["MRData"]["RaceTable"]["Races"]
    assert race["Results"][0]["status"] == "Disqualified"


def test_the_grid_of_the_last_race(url):
    last = asked(url, "coverage")["lastRaceWithResults"]
    assert last == "2023-10-22: 2023/18 United States Grand Prix"
    (race,) = asked(url, "ask", address="/current/last/results")["MRData"]["RaceTable"]["Races"]
    grid = sorted((int(each["grid"]), each["Driver"]["code"]) for each in race["Results"])
    assert [code for place, code in grid if place][:3] == ["LEC", "NOR", "HAM"]


def test_does_it_have_lap_times_before_1996_and_how_fresh_is_it(url):
    coverage = asked(url, "coverage")
    assert coverage["coverage"]["lap_times"]["first"] == 2021
    answer = asked(url, "ask", address="/1957/2/laps")
    assert answer["note"].endswith(" has lap times of 2 of 4 races from 2021 to 2023.")
    (source,) = coverage["sources"]
    assert coverage["now"] >= coverage["builtAt"] >= source["readAt"]
    waiting, *_ = coverage["sinceThenWithoutResults"]
    assert waiting == "2023-10-29: 2023/19 Mexico City Grand Prix"


CALLS = [
    ("ask", {"address": "/2023/18/results"}),
    ("ask", {"address": "nothing"}),
    ("sql", {"select": "SELECT year, count(*) AS races FROM races GROUP BY year"}),
    ("sql", {"select": "DELETE FROM races"}),
    ("changes", {"since": "2020-01-01"}),
    ("ask", {"address": "/2023/18/drivers/norris/results"}),
]


async def version(client):
    return client.server_info.name, client.server_info.version


def test_both_transports_give_the_same_answers_tools_and_resources(url, changed_database):
    both = []
    over_stdio = StdioServerParameters(
        command=sys.executable, args=patient(changed_database), env={**os.environ}
    )
    for server in (url, stdio_client(over_stdio)):
        both.append(talked(server, calling(*CALLS), describing))
    assert both[0] == both[1]
    answers, _ = both[0]
    assert [is_error for is_error, _ in answers] == [False, True, False, True, False, False]
    assert "disputed" in json.loads(answers[-1][1])
    assert talked(url, version) == [("racedata", __version__)]


def test_there_are_four_tools_and_the_resources_that_they_name(described):
    tools, texts = described
    assert [*tools] == ["ask", "sql", "coverage", "changes"]
    assert texts == {uri: text for uri, (_, text) in RESOURCES.items()}
    assert "race_results(year, round, date, race, " in tools["sql"]
    assert sum(map(len, tools.values())) < 4000  # each conversation pays for them
    words = re.findall(r"\w+", tools["ask"])
    assert {endpoint.name for endpoint in ENDPOINTS} | {*OWN_PARAMETERS} <= {*words}


NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
ENDLESS = f"{NUMBERS} SELECT count(*) AS n FROM n"
STOPPED = "stopped after 2 seconds; expected a statement that reads less"
# Harmful statements, and what a client is told. test_statements.py has more.
HARM = {
    "DELETE FROM races": "only a SELECT that reads is allowed",
    ENDLESS: STOPPED,
    f"{NUMBERS} SELECT hex(randomblob(49999)) AS a, i FROM n": "the result has more than 100,000 ",
}


def goes_on(url):
    """Whether the next statement is answered: on a busy machine, even that may take too long."""
    (((is_error, text),),) = talked(url, calling(("sql", {"select": "SELECT 1 AS one"})))
    return not is_error and json.loads(text)["rows"] == [{"one": 1}]


def test_a_client_that_means_harm_gets_one_line_and_the_server_goes_on(server, sample_database):
    with over_http(sample_database) as impatient:
        for sql, said in HARM.items():
            running = impatient if said == STOPPED else server
            before = own_memory(running.process)
            text = refusal(running.url, "sql", select=sql)
            assert text.startswith(said) and "\n" not in text
            until(lambda running=running: goes_on(running.url))
            assert own_memory(running.process) - before < 20


def test_a_question_from_before_a_signal_is_answered(sample_database):
    with over_http(sample_database) as running, ThreadPoolExecutor() as pool:
        answer = pool.submit(refusal, running.url, "sql", select=ENDLESS)
        until(lambda: statements_of(running.process))
        os.kill(running.process, signal.SIGTERM)
        assert answer.result() == STOPPED


def post(port, body=b"{}", **headers):
    """The status of a request to the server."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest("POST", "/mcp", skip_host="Host" in headers)
    sent = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Content-Length": str(len(body)),
        **headers,
    }
    for name, value in sent.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def message(method, params=None, **id):
    return json.dumps({"jsonrpc": "2.0", **id, "method": method, "params": params or {}})


CLIENT = {"name": "test", "version": "1"}
FIRST = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
HELLO = message("initialize", FIRST, id=1).encode()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:{port}"}, 200),
        ({"Host": "[::1]:{port}"}, 200),
        ({"Origin": "http://localhost:{port}"}, 200),
        ({"Host": "attacker.example:{port}"}, 421),
        ({"Host": "127.0.0.1.attacker.example:{port}"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "http://attacker.example"}, 403),
        ({"Origin": "http://localhost.attacker.example:{port}"}, 403),
        ({"Origin": "http://localhost:80"}, 403),
        ({"Origin": "null"}, 403),
    ],
    ids=str,
)
def test_only_names_of_this_machine_are_accepted_as_host_and_origin(server, headers, status):
    sent = {name: value.format(port=server.port) for name, value in headers.items()}
    assert post(server.port, HELLO, **sent) == status


def test_at_port_80_clients_may_leave_it_out():
    security = security_of(["localhost"], 80)
    assert security.allowed_hosts == ["localhost:80", "localhost"]
    assert security.allowed_origins == ["http://localhost:80", "http://localhost"]


def statements_of(process):
    """The processes for statements of a server."""
    found = []
    for id in children_of(process):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            if b"spawn_main" in Path(f"/proc/{id}/cmdline").read_bytes():
                found.append(id)
    return found


def end_statements_of(process):
    for statement in statements_of(process):
        with suppress(ProcessLookupError):
            os.kill(statement, signal.SIGKILL)


def test_other_questions_do_not_wait_for_statements_of_which_too_many_are_refused(sample_database):
    command = [sys.executable, *patient(sample_database)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    endless = {"name": "sql", "arguments": {"select": ENDLESS}}
    with subprocess.Popen(command, **pipes, text=True) as process:
        lines = [message("initialize", FIRST, id=1), message("notifications/initialized")]
        lines += [message("tools/call", endless, id=10 + n) for n in range(RUNNING + WAITING + 1)]
        lines += [message("tools/call", {"name": "coverage"}, id=2)]
        process.stdin.write("".join(f"{line}\n" for line in lines))
        process.stdin.flush()
        answers = {}
        for _ in range(3):
            answer = json.loads(process.stdout.readline())
            answers[answer["id"]] = str(answer["result"])
        assert answers.keys() == {1, 2, 10 + RUNNING + WAITING}
        refused = answers[10 + RUNNING + WAITING]
        assert "8 statements wait already; ask again in some seconds" in refused
        process.stdin.close()
        until(lambda: process.poll() is not None or end_statements_of(process.pid))
        assert process.returncode == 0
        assert process.stderr.read() == ""


def test_a_large_request_is_refused(server):
    assert post(server.port, b" " * (1 << 20)) == 413


def test_it_says_where_it_listens_has_the_given_names_and_ends_with_a_signal(sample_database):
    port = str(free_port())
    options = ["mcp", "--http", "--port", port, "--database", str(sample_database)]
    command = [sys.executable, "-m", "racedata", *options, "--name", "racedata.lan"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        first = process.stderr.readline()
        named = f"racedata.lan:{port}"
        assert post(port, HELLO, Host=named, Origin=f"http://{named}") == 200
        taken = run_racedata(*options)
        process.terminate()
        assert process.communicate(timeout=20) == (None, "")
    assert (process.returncode, first) == (0, f"racedata mcp: http://127.0.0.1:{port}/mcp\n")
    said = f"racedata mcp: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    assert (taken.returncode, taken.stderr) == (1, said)


def test_a_missing_database_is_one_line():
    ended = run_racedata("mcp", "--database", "/none.db")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert ended.stderr.startswith("racedata mcp: /none.db is missing; to build it, run: ")


def test_without_the_package_it_says_how_to_install_it(sample_database):
    code = (
        "import sys; sys.modules['mcp'] = None; from racedata.cli import main; "
        f"main(['mcp', '--database', {str(sample_database)!r}])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr == (
        "racedata mcp: the package mcp is not installed: "
        f"run {sys.executable} -m pip install 'racedata-f1[mcp]'\n"
    )

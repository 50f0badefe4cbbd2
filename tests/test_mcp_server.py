"""racedata.mcp_server: the real client of the SDK over both transports, questions of people, and
clients that mean harm.
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from support.assistants import (
    asked,
    calling,
    describing,
    over_http,
    over_stdio,
    patient,
    refusal,
    talked,
    text_of,
)
from support.processes import children_of, free_port, run_racedata, until

from racedata.assistants import RESOURCES
from racedata.mcp_server import RUNNING, WAITING, security_of
from racedata.service.endpoints import ENDPOINTS
from racedata.service.request import OWN_PARAMETERS


@pytest.fixture(scope="module")
def server(sample_database):
    with over_http(sample_database, command=patient) as running:
        yield running


@pytest.fixture(scope="module")
def url(server):
    return server.url


@pytest.fixture(scope="module")
def described(url):
    """The descriptions of tools by name, and the texts of resources by address."""
    (descriptions,) = talked(url, describing)
    return descriptions


# What people ask, as an assistant would ask it, and the rows of the answer.
QUESTIONS = {
    "who won most at a circuit": (
        """SELECT driver, count(DISTINCT date) AS wins FROM race_results
           WHERE isWinner AND circuitRef = 'americas' GROUP BY driverRef ORDER BY wins DESC""",
        [("Max Verstappen", 1)],
    ),
    "head to head of team mates": (
        """SELECT sum(a.positionOrder < b.positionOrder) AS ahead, count(*) AS races
           FROM race_results AS a JOIN race_results AS b USING (year, round, constructorRef)
           WHERE year = 2023 AND a.driverRef = 'max_verstappen' AND b.driverRef = 'perez'""",
        [(2, 2)],
    ),
    "sprint weekends of a season": (
        """SELECT round FROM sessions JOIN races USING (raceId)
           WHERE year = 2023 AND session = 'sprint' ORDER BY round""",
        [(4,), (9,), (12,), (17,), (18,), (20,)],
    ),
    "the fastest pit stop": (
        """SELECT driver, year, race, seconds FROM stops
           WHERE seconds < 120 ORDER BY seconds LIMIT 1""",
        [("Yuki Tsunoda", 2023, "Austrian Grand Prix", 16.246)],
    ),
    "the youngest winner": (
        """SELECT driver, date, dob FROM race_results JOIN drivers USING (driverRef)
           WHERE isWinner ORDER BY julianday(date) - julianday(dob) LIMIT 1""",
        [("Fernando Alonso", "2005-05-29", "1981-07-29")],
    ),
}


def test_sql_answers_questions_that_people_ask(url):
    calls = [("sql", {"select": select}) for select, _ in QUESTIONS.values()]
    (results,) = talked(url, calling(*calls))
    answers = [json.loads(text_of(result))["rows"] for result in results]
    found = [[tuple(row.values()) for row in rows] for rows in answers]
    assert found == [rows for _, rows in QUESTIONS.values()]


CALLS = [
    ("ask", {"address": "/2023/18/results"}),
    ("ask", {"address": "nothing"}),
    ("sql", {"select": "SELECT year, count(*) AS races FROM races GROUP BY year"}),
    ("sql", {"select": "DELETE FROM races"}),
    ("changes", {"since": "2020-01-01"}),
]


def test_both_transports_give_the_same_answers_tools_and_resources(url, sample_database):
    both = []
    for server in (url, over_stdio(sample_database)):
        results, descriptions = talked(server, calling(*CALLS), describing)
        both.append(([(each.is_error, text_of(each)) for each in results], descriptions))
    assert both[0] == both[1]
    answers, _ = both[0]
    assert [is_error for is_error, _ in answers] == [False, True, False, True, False]


def test_the_tool_for_addresses_names_every_endpoint_and_parameter(described):
    tools, _ = described
    words = re.findall(r"\w+", tools["ask"])
    assert {endpoint.name for endpoint in ENDPOINTS} <= {*words}
    assert {*OWN_PARAMETERS} <= {*words}


def test_there_are_four_tools_and_the_resources_that_they_name(described):
    tools, texts = described
    assert [*tools] == ["ask", "sql", "coverage", "changes"]
    assert texts == {uri: text for uri, (_, text) in RESOURCES.items()}
    assert "race_results(year, round, date, race, " in tools["sql"]
    assert sum(map(len, tools.values())) < 4000  # each conversation pays for them


ENDLESS = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    SELECT count(*) AS n FROM n"""


def test_a_statement_ends_after_two_seconds(sample_database):
    with over_http(sample_database) as impatient:
        said = refusal(impatient.url, "sql", select=ENDLESS)
    assert said == "stopped after 2 seconds; expected a statement that reads less"


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
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "http://attacker.example"}, 403),
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


def start_statement(port):
    """A connection on which an endless statement was sent."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    call = message("tools/call", {"name": "sql", "arguments": {"select": ENDLESS}}, id=1)
    accepted = "application/json, text/event-stream"
    headers = {"Content-Type": "application/json", "Accept": accepted}
    connection.request("POST", "/mcp", call, {**headers, "MCP-Protocol-Version": "2025-06-18"})
    return connection


def test_a_signal_ends_statements_that_run_or_wait_with_an_answer(sample_database):
    with over_http(sample_database, command=patient) as running, ExitStack() as stack:
        connections = [
            stack.enter_context(closing(start_statement(running.port))) for _ in range(RUNNING + 3)
        ]
        until(lambda: len(statements_of(running.process)) == RUNNING)
        asked(running.url, "coverage")  # so all requests that were sent before have arrived
        os.kill(running.process, signal.SIGTERM)
        for connection in connections:
            assert b"the server is stopping; ask again" in connection.getresponse().read()


def test_the_statement_of_a_client_that_has_left_makes_room_for_another_one(sample_database):
    with over_http(sample_database, command=patient) as running:
        first = [start_statement(running.port) for _ in range(RUNNING)]
        until(lambda: len(statements_of(running.process)) == RUNNING)
        before = {*statements_of(running.process)}
        for connection in first:
            connection.close()
        until(lambda: not before.intersection(statements_of(running.process)))
        second = start_statement(running.port)
        until(lambda: len(statements_of(running.process)) > 0)
        second.close()


def test_too_many_statements_are_refused_and_the_others_end_with_stdin(sample_database):
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
        assert process.wait() == 0
        assert process.stderr.read() == ""


def test_a_large_request_is_refused(server):
    assert post(server.port, b" " * (1 << 20)) == 413


def test_other_names_of_this_machine_may_be_given(sample_database):
    with over_http(sample_database, "--name", "racedata.lan") as running:
        named = f"racedata.lan:{running.port}"
        assert post(running.port, HELLO, Host=named, Origin=f"http://{named}") == 200
        assert post(running.port, HELLO, Host=f"other.lan:{running.port}") == 421


def test_it_says_on_stderr_where_it_listens_and_ends_with_a_signal(sample_database):
    port = str(free_port())
    command = [sys.executable, "-m", "racedata", "mcp", "--http", "--port", port]
    options = ["--database", sample_database]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        first = process.stderr.readline()
        taken = run_racedata("mcp", "--http", "--port", port, "--database", str(sample_database))
        process.terminate()
        assert process.communicate(timeout=20) == (None, "")
    assert (process.returncode, first) == (0, f"racedata mcp: http://127.0.0.1:{port}/mcp\n")
    said = f"racedata mcp: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    assert (taken.returncode, taken.stderr) == (1, said)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/none.db", "/none.db is missing; to build it, run: "),
        ("", "RACEDATA_DATABASE='': expected the path of a file\n"),
    ],
)
def test_a_wrong_start_is_one_line(path, said):
    ended = run_racedata("mcp", RACEDATA_DATABASE=path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"racedata mcp: {said}")


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

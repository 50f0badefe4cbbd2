"""racedata.cli and follower: every command as a process, its help, its options and its one-line
errors.
"""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from socket import AF_UNIX
from typing import NamedTuple

import pytest
from support import PACKAGE, SAMPLE
from support.loads import built, changed, edit, racedata
from support.processes import free_port, run_racedata, wait_for_start
from support.traffic import get

from racedata import __version__
from racedata.cli import COMMANDS
from racedata.database import OLDEST_VERSION, SCHEMA_VERSION, default_path, store_path
from racedata.hints import COMMAND
from racedata.settings import Settings, option, settings_in, variable_of

# as installed: with it, Python imports nothing from this folder
RACEDATA = Path(sys.executable).with_name("racedata")


def test_help_lists_every_command():
    shown = run_racedata("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    for name, (_, text) in COMMANDS.items():
        assert f"\n  {name:<13}{text}\n" in shown.stdout


@pytest.mark.parametrize("command", [*COMMANDS, "export site"])
def test_each_command_has_help_and_refuses_an_unknown_option(command):
    words = command.split()
    # wide: a line may end at a hyphen in the path
    shown = run_racedata(*words, "--help", COLUMNS="1000")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"usage: racedata {command}")
    database = f"the database file (RACEDATA_DATABASE; default: {default_path({})})"
    assert (database in shown.stdout) == (command not in ("serve", "healthcheck"))
    needed = {"export": ["x.zip"], "export site": ["x"], "parts": ["2023/18", "results"]}
    refused = racedata(*words, *needed.get(command, []), "--none")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.endswith(f"\nracedata {command}: error: unrecognized arguments: --none\n")


@pytest.mark.parametrize("arguments", [[], ["sevre"]])
def test_a_missing_or_unknown_command_is_an_error(arguments):
    ended = run_racedata(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "COMMAND" in ended.stderr.splitlines()[-1]


def test_the_help_of_serve_has_each_setting_with_its_variable_and_default():
    shown = " ".join(run_racedata("serve", "--help").stdout.split())
    for each in settings_in(Settings):
        known = each.metadata
        default = known["default"] or "empty"
        expected = (
            f"{option(each.name)} VALUE {known['help']} ({variable_of(each)}; default: {default})"
        )
        assert expected in shown


def test_options_of_serve_win_over_the_environment_and_gunicorn_gets_the_options_after_two_dashes(
    sample_database, tmp_path
):
    path = tmp_path / "a.sock"
    options = ["--max-age=0", "--database", str(sample_database), "--base-path="]
    environ = {"PATH": os.environ["PATH"], "RACEDATA_SERIES": "f2", "RACEDATA_MAX_AGE": "many"}
    command = [RACEDATA, "serve", *options, "--", "--bind", f"unix:{path}"]
    with (
        subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL) as process,
        socket.socket(AF_UNIX) as client,
    ):
        try:
            wait_for_start(process, str(path))
            client.settimeout(20)
            client.connect(str(path))
            client.sendall(b"GET /f2/2023/18 HTTP/1.0\r\nHost: a\r\n\r\n")
            answer = client.makefile("rb").read()
        finally:
            process.terminate()
    assert b"\r\ncache-control: no-cache\r\n" in answer
    assert b'"series":"f2"' in answer


REPLACING = ["args", "--config=x.py", "--worker-class=gthread"]
# what the worker lacks
LACKED = ["--proxy-protocol=v1", "--reuse-port", "--certfile=x", "--max-requests=9", "--daemon"]


@pytest.mark.parametrize("option", [*REPLACING, *LACKED])
def test_serve_refuses_options_of_gunicorn_that_it_does_not_support(option, sample_database):
    ended = run_racedata("serve", "--database", str(sample_database), "--", option)
    name = option.strip("-").partition("=")[0].replace("-", "_")
    line = f"racedata: option of gunicorn: {name}: not supported by racedata serve\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", line)


@pytest.mark.parametrize(
    ("options", "environ", "said"),
    [
        (["--timeout", "-5"], {"WEB_CONCURRENCY": ""}, "Value must be positive: -5"),
        (["--chdir", "/none"], {"WEB_CONCURRENCY": "many"}, "can't chdir to '/none'"),
        ([], {"GUNICORN_CMD_ARGS": "'"}, "No closing quotation"),
    ],
)
def test_a_wrong_option_of_gunicorn_is_one_line_whatever_gunicorn_reads_itself(
    sample_database, options, environ, said
):
    words = ["--workers", "1", "--database", str(sample_database), "--", *options]
    ended = run_racedata("serve", *words, **environ)
    line = f"racedata: option of gunicorn: {said}\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", line)


@pytest.mark.parametrize(
    ("arguments", "environ", "line"),
    [
        (["--port", "http"], {}, "--port='http': expected a whole number from 1 to 65535"),
        (["--finish-times="], {}, "--finish-times='': expected total or gap"),
        (
            [],
            {"WEB_CONCURRENCY": "many"},
            "WEB_CONCURRENCY='many': expected a whole number from 1 to 512",
        ),
        (["--database="], {}, "--database='': expected the path of a file"),
        (
            ["--database", "/none/it's.db"],
            {},
            "/none/it's.db is missing; to build it, run: "
            f"{COMMAND} load SOURCE --database '/none/it'\"'\"'s.db'",
        ),
        (
            [],
            {"RACEDATA_DATABASE": "/none.db"},
            f"/none.db is missing; to build it, run: {COMMAND} load SOURCE --database /none.db",
        ),
    ],
)
def test_serve_ends_with_one_line_if_it_cannot_start(arguments, environ, line):
    ended = run_racedata("serve", *arguments, **environ)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", f"racedata: {line}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_gunicorn_is_imported_ends_serve_without_a_traceback(number, tmp_path):
    (tmp_path / "gunicorn.py").write_text(f"import os\nos.kill(os.getpid(), {number})")
    ended = run_racedata("serve", PYTHONPATH=str(tmp_path), RACEDATA_DATABASE="/none.db")
    # Without a handler, a signal would not end the first process of a container.
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, "", "")


class Starting(NamedTuple):
    """`racedata serve` with a `package` of its own, and its default database."""

    package: Path
    database: Path
    port: int

    @contextmanager
    def process(self):
        paths = {
            "PYTHONPATH": str(self.package.parent),
            "XDG_DATA_HOME": str(self.database.parent.parent),
        }
        command = [RACEDATA, "serve", "--workers", "1", "--port", str(self.port)]
        environ = {"PATH": os.environ["PATH"], **paths}
        with (
            open("/dev/full", "w") as full,
            subprocess.Popen(
                command, env=environ, stdout=full, stderr=subprocess.PIPE, text=True
            ) as process,
        ):
            try:
                yield process
            finally:
                process.terminate()

    def lines(self):
        """The exit status of a process that ends, and the lines that it writes."""
        with self.process() as process:
            said = process.communicate()[1].splitlines()
        return process.returncode, said


@pytest.fixture
def starting(tmp_path):
    package = shutil.copytree(PACKAGE, tmp_path / "site" / "racedata")
    return Starting(package, tmp_path / "racedata" / "racedata.db", free_port())


@pytest.mark.parametrize("is_older", [False, True], ids=["no database", "an older one"])
def test_serve_starts_with_the_existing_database_while_a_load_is_running(
    starting, is_older, tmp_path
):
    starting.database.parent.mkdir()
    if is_older:
        built(shutil.copytree(SAMPLE, tmp_path / "dump"), starting.database)
        version = f"PRAGMA user_version = {SCHEMA_VERSION}"
        edit(starting.package / "schema.sql", f"{version};", f"{version}1;")
    folder = os.open(starting.database.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with starting.process() as process:
        wait_for_start(process, ("127.0.0.1", starting.port))
        _, health = get(("127.0.0.1", starting.port), "/healthz")
        assert json.loads(health)["sources"][0]["name"] == ("dump" if is_older else "sample")
    os.close(folder)
    store = [store_path(starting.database)] if is_older else []
    assert sorted(starting.database.parent.iterdir()) == [starting.database, *store]


def test_serve_refuses_a_database_from_before_the_oldest_version_in_one_line(
    starting, sample_database
):
    starting.database.parent.mkdir()
    shutil.copy(sample_database, starting.database)
    changed(starting.database, f"PRAGMA user_version = {OLDEST_VERSION - 1}")
    status, (line,) = starting.lines()
    assert f"{starting.database} has schema version {OLDEST_VERSION - 1}, which is older" in line
    assert f"load SOURCE --replace --database {starting.database}" in line
    assert status == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_serve_even_before_it_has_a_database(starting, number):
    with (starting.package / "loader" / "reading.py").open("a") as code:
        ends = f"    import os\n    os.kill(os.getpid(), {number})\n"
        code.write(f"\ndef source_at(*arguments):\n{ends}")
    status, (_, *said) = starting.lines()  # the first is what it does
    assert (status, said) == (3, ["racedata serve: interrupted"])
    assert [*starting.database.parent.iterdir()] == []


def test_serve_that_cannot_write_says_who_must_be_allowed_to(starting):
    starting.database.parent.symlink_to("/sys/kernel")  # where not even root may write
    status, (_, line) = starting.lines()
    assert line.startswith("racedata serve: /sys/kernel/.racedata-")
    assert line.endswith(f": Operation not permitted; let user {os.geteuid()} write to /sys/kernel")
    assert status == 3


def test_version_and_help_are_printed_in_any_encoding():
    assert run_racedata("--version").stdout == f"racedata {__version__}\n"
    shown = run_racedata("--help", PYTHONIOENCODING="ascii").stdout
    assert shown.startswith("usage: racedata COMMAND \\u2026\n")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["serve", "--help"]])
def test_a_full_stdout_is_one_line(arguments):
    with open("/dev/full", "w") as full:
        ended = run_racedata(*arguments, stdout=full)
    assert (ended.returncode, ended.stderr) == (1, "racedata: stdout: No space left on device\n")


A_SOURCE = "expected the name, the path or the URL of a source"
RACE = "a season and a round, such as 2023/18"
UNCHANGED = "other.db: a database is copied unchanged; expected "
A_FILE = "argument --database: '': expected the path of a file"
# Empty arguments, and options that would be ignored.
REFUSED = [
    ("load", ["--database="], A_FILE),
    ("refresh", ["--database="], A_FILE),
    ("check", ["--database="], A_FILE),
    ("build", ["--database=/"], A_FILE.replace("''", "'/'")),
    ("load", [""], f"argument SOURCE: '': {A_SOURCE}"),
    ("load", [" "], f"argument SOURCE: ' ': {A_SOURCE}"),
    ("refresh", ["--from="], f"argument --from: '': {A_SOURCE}"),
    ("refresh", ["--season="], "argument --season: '': expected a year from 1950 to 2999"),
    ("sources", ["--remove="], "--remove '': not in the list; expected one of "),
    ("parts", ["", "results"], f"'': expected {RACE}"),
    ("parts", ["2023/18", ""], "'': expected one of results, "),
    ("check", ["--against="], "--against '': expected one source"),
    ("export", [""], "argument FILE: '': expected the path of a file"),
    ("export", ["x.zip", "--more="], "argument --more: '': expected the path of a file"),
    ("export", ["site", ""], "argument FOLDER: '': expected the path of a folder"),
    ("mcp", ["--database="], A_FILE),
    ("mcp", ["--host="], "argument --host: '': expected a host name or an IP address"),
    ("mcp", ["--port="], "argument --port: '': expected a whole number from 1 to 65535"),
    ("mcp", ["--name="], "argument --name: '': expected a host name or an IP address"),
    (
        "healthcheck",
        ["--url="],
        ": not a health report; expected the address of racedata's /healthz",
    ),
    ("healthcheck", ["--stale-after="], "argument --stale-after: '': expected a whole number from"),
    ("load", ["--only"], "--only: expected a SOURCE too"),
    ("load", ["--replace"], "--replace: expected a SOURCE too"),
    ("load", ["other.db", "--only"], f"{UNCHANGED}no --only"),
    ("load", ["other.db", "--corrections=none"], f"{UNCHANGED}no --corrections"),
    ("refresh", ["--from=other.db", "--corrections=none"], f"{UNCHANGED}no --corrections"),
    ("refresh", ["--from=other.db", "--season=2023"], "copied whole; expected no --season"),
    ("refresh", ["--follow", "--season=2023"], "--follow and --season: expected only one of them"),
    ("mcp", ["--host=0.0.0.0"], "--host: expected --http too"),
    ("mcp", ["--port=8002"], "--port: expected --http too"),
    ("mcp", ["--name=racedata.lan"], "--name: expected --http too"),
]


@pytest.mark.parametrize(("command", "words", "said"), REFUSED)
def test_an_argument_that_is_empty_or_would_be_ignored_is_refused_with_what_is_expected(
    command, words, said, database, other_database, monkeypatch
):
    monkeypatch.setenv("RACEDATA_DATABASE", str(database))
    shutil.copy(other_database, database.with_name("other.db"))
    before = database.read_bytes()
    ended = racedata(command, *words, cwd=database.parent)
    assert ended.returncode in (1, 2) and ended.stdout == ""
    assert said in ended.stderr.splitlines()[-1]
    assert database.read_bytes() == before


@pytest.mark.parametrize("command", ["load", "mcp"])
def test_an_empty_path_in_the_environment_is_refused(command, monkeypatch):
    monkeypatch.setenv("RACEDATA_DATABASE", "")
    ended = racedata(command)
    assert ended.returncode == 1
    said = "RACEDATA_DATABASE='': expected the path of a file"
    assert ended.stderr == f"racedata {command}: {said}\n"

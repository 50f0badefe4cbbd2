"""racedata.statements: what a statement may do, and what ends one that takes too much."""

import json
import os
import resource
import subprocess
import sys

import pytest
from support.processes import children_of, has_ended, limited, until

from racedata.database import DatabaseError, file_state
from racedata.statements import (
    LONGEST_ERROR,
    MAX_HEAP,
    Bounds,
    StatementError,
    Statements,
    run_apart,
)

BOUNDS = Bounds(rows=200, size=100_000, seconds=60)


@pytest.fixture(scope="module")
def statements(sample_database):
    opened = Statements(str(sample_database), file_state(sample_database), BOUNDS)
    yield opened
    opened.close()


WRITES = [
    "DELETE FROM results",
    "INSERT INTO seasons VALUES (2099, NULL) RETURNING year",
    "CREATE TEMP TABLE mine (a)",
    "DROP VIEW laps",
    "ATTACH '/etc/passwd' AS other",
    "PRAGMA query_only = OFF",
    "SELECT * FROM pragma_table_info('races')",
    "PRAGMA hard_heap_limit = 0",
    "VACUUM INTO '/tmp/copy'",
    "BEGIN",
    "SELECT load_extension('x')",
    "EXPLAIN DELETE FROM races",
]


@pytest.mark.parametrize("sql", WRITES)
def test_anything_but_reading_is_refused_in_one_line(statements, sample_database, sql):
    before = sample_database.read_bytes()
    with pytest.raises(StatementError) as refused:
        statements.run(sql)
    assert str(refused.value) == "only a SELECT that reads is allowed"
    assert sample_database.read_bytes() == before


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "the statement is empty; expected one SELECT"),
        ("-- only a comment", "the statement is empty; expected one SELECT"),
        ("SELECT 1; DELETE FROM races", "You can only execute one statement at a time."),
        ("SELECT unknown FROM races", "no such column: unknown"),
        ("SELECT authorized FROM races", "no such column: authorized"),
        ("SELECT * FROM unknown", "no such table: unknown"),
        ("SELEKT", 'near "SELEKT": syntax error'),
        ("SELECT 1 AS a, 2 AS a", "two columns have the same name; "),
        ("SELECT ?", "Incorrect number of bindings supplied. "),
        ("SELECT CAST(x'ff' AS TEXT)", "Could not decode to UTF-8 "),
        ("SELECT 1 \0 2", "the query contains a null character"),
        ("SELECT '\ud800'", "'utf-8' codec can't encode character "),
    ],
)
def test_a_wrong_statement_is_refused_in_one_line(statements, sql, said):
    with pytest.raises(StatementError) as refused:
        statements.run(sql)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_an_error_is_short_even_if_a_name_is_not(statements):
    with pytest.raises(StatementError) as refused:
        statements.run(f"SELECT {'x' * 90_000} FROM races")
    assert len(str(refused.value)) == LONGEST_ERROR


@pytest.mark.parametrize("value", [2**63, "\ud800", []])
def test_a_value_that_sqlite_cannot_have_is_refused(statements, value):
    with pytest.raises(StatementError):
        statements.run("SELECT ?", [value])


NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


def test_further_rows_are_left_out(statements):
    found = statements.run(f"{NUMBERS} SELECT i FROM n")
    assert [row["i"] for row in found.rows] == [*range(1, BOUNDS.rows + 1)]
    assert not found.is_all
    assert statements.run(f"{NUMBERS} SELECT i FROM n LIMIT {BOUNDS.rows}").is_all


def test_the_tables_that_a_view_reads_are_known(statements):
    tables = statements.run("SELECT driver FROM qualifying_results LIMIT 1").tables
    assert {"qualifying", "drivers"} <= tables
    assert statements.run("SELECT 1 AS one").tables == set()


def test_a_statement_without_bounds_may_have_many_rows(sample_database):
    statements = Statements(str(sample_database), file_state(sample_database))
    assert len(statements.run(f"{NUMBERS} SELECT i FROM n LIMIT 1000").rows) == 1000
    with pytest.raises(StatementError, match="only a SELECT that reads is allowed"):
        statements.run("PRAGMA query_only = OFF")
    statements.close()


def test_a_file_in_another_state_is_not_read(database):
    state = file_state(database)
    os.utime(database, (0, 0))  # so that no clock has to tick meanwhile
    with pytest.raises(DatabaseError, match="has been replaced since it was read; ask again") as no:
        Statements(str(database), state)
    assert no.value.transient


ENDLESS = f"{NUMBERS} SELECT count(*) FROM n"
STOPPED, LARGE, BIG = (
    "stopped after 0.2 seconds; ",
    "the result has more than ",
    "string or blob too big",
)
MEMORY = "the statement needs too much memory; expected one that joins less"
DOUBLED = "WITH RECURSIVE n(t) AS (SELECT 'x' UNION ALL SELECT t || t FROM n)"
PAIRS = "FROM lap_times AS a, lap_times AS b"
# A short statement that names a view two to the power of 16 times.
DOUBLED_VIEWS = ", ".join(
    f"a{n} AS (SELECT x.* FROM a{n - 1} AS x JOIN a{n - 1} AS y)" for n in range(1, 17)
)
HUGE = {
    ENDLESS: STOPPED,
    f"{NUMBERS} SELECT group_concat(printf('%.100c', 'x')) FROM n": STOPPED,
    f"{DOUBLED} SELECT max(length(t)) FROM n": BIG,
    f"SELECT a.record {PAIRS}, lap_times AS c ORDER BY a.time || b.time || c.time": STOPPED,
    "SELECT randomblob(1000000000)": BIG,
    f"SELECT {', '.join(f'zeroblob(99999) AS a{n}' for n in range(150))}": LARGE,
    f"{NUMBERS} SELECT hex(zeroblob(49999)) AS a, i FROM n": LARGE,
    f"SELECT {', '.join(f'{n} AS a{n}' for n in range(300))}": "too many columns",
    f"SELECT {'(' * 2000}1{')' * 2000}": "parser stack overflow",
    f"SELECT '{'x' * 100_000}'": "query string is too large",
    # In a function, SQLite looks at no clock.
    "SELECT length(printf('%.*c', 2000000000, 'x'))": STOPPED,
    "SELECT printf('%.90000c', 'a') LIKE '%' || printf('%.40000c', 'a') || 'b'": STOPPED,
    f"WITH a0 AS (SELECT * FROM race_results), {DOUBLED_VIEWS} SELECT count(*) FROM a16": MEMORY,
}
RUN = """
import json, resource, sys
from racedata.database import file_state
from racedata.statements import Bounds, StatementError, run_apart
path, sql, seconds = json.load(sys.stdin)
try:
    run_apart(path, file_state(path), sql, Bounds(200, 100_000, seconds))
except StatementError as error:
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps([str(error), memory / 1024]))
"""


@pytest.mark.parametrize("sql", HUGE, ids=lambda sql: f"{sql[:60]}… {len(sql)}")
def test_a_huge_statement_ends_with_one_line_and_little_memory(sample_database, sql):
    seconds = 0.2 if HUGE[sql] == STOPPED else 60
    asked = json.dumps([str(sample_database), sql, seconds])
    ended = subprocess.run(
        [sys.executable, "-c", RUN], input=asked, capture_output=True, text=True, check=True
    )
    said, memory = json.loads(ended.stdout)
    assert said.startswith(HUGE[sql]) and "\n" not in said
    assert memory < 40 + (MAX_HEAP >> 20)  # of Python, and of SQLite
    assert ended.stderr == ""


def test_a_statement_may_be_run_in_a_process_that_ends_with_it(sample_database):
    state = file_state(sample_database)
    found = run_apart(str(sample_database), state, "SELECT count(*) AS n FROM races", BOUNDS)
    assert found == ([{"n": 88}], True, {"races"})


def test_a_database_that_cannot_be_opened_is_named(tmp_path, capfd):
    path = str(tmp_path / "none.db")
    with pytest.raises(StatementError) as refused:
        run_apart(path, file_state(path), "SELECT 1 AS one", BOUNDS)
    assert str(refused.value) == f"{path} cannot be read (unable to open database file)"
    assert capfd.readouterr() == ("", "")


def test_a_process_that_cannot_start_is_named(sample_database, monkeypatch, tmp_path):
    state = file_state(sample_database)
    with limited(resource.RLIMIT_NOFILE, 3), pytest.raises(StatementError) as refused:
        run_apart(str(sample_database), state, "SELECT 1 AS one", BOUNDS)
    assert str(refused.value) == (
        "no process for statements can start (Too many open files); ask again later"
    )
    (tmp_path / "sqlite3.py").write_text("raise SystemExit(1)")  # such as after an update
    monkeypatch.syspath_prepend(tmp_path)  # which the process gets
    with pytest.raises(StatementError, match="has ended; ask again, or start racedata mcp again"):
        run_apart(str(sample_database), state, "SELECT 1 AS one", BOUNDS)


def test_a_statement_ends_in_time_even_if_the_process_that_asked_is_killed(sample_database):
    asked = json.dumps([str(sample_database), ENDLESS, 3])
    with subprocess.Popen([sys.executable, "-c", RUN], stdin=subprocess.PIPE, text=True) as process:
        process.stdin.write(asked)
        process.stdin.close()
        until(lambda: len(children_of(process.pid)) == 2)  # one of multiprocessing's own
        children = children_of(process.pid)
        process.kill()
    until(lambda: all(map(has_ended, children)))

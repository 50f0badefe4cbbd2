"""racedata.statements: what a statement may do, and what ends one that takes too much."""

import resource
import time

import pytest
from support.processes import memory

from racedata.statements import Bounds, StatementError, Statements

BOUNDS = Bounds(seconds=0.3, rows=200, size=100_000)


@pytest.fixture(scope="module")
def statements(sample_database):
    opened = Statements(str(sample_database), BOUNDS)
    yield opened
    opened.close()


WRITES = [
    "DELETE FROM results",
    "UPDATE races SET name = 'x'",
    "INSERT INTO seasons VALUES (2099, NULL) RETURNING year",
    "CREATE TEMP TABLE mine (a)",
    "CREATE TABLE mine AS SELECT * FROM races",
    "DROP VIEW laps",
    "ALTER TABLE races RENAME TO x",
    "ATTACH '/etc/passwd' AS other",
    "ATTACH ':memory:' AS other",
    "DETACH main",
    "PRAGMA writable_schema = ON",
    "PRAGMA query_only = OFF",
    "PRAGMA table_info(races)",
    "SELECT * FROM pragma_table_info('races')",
    "PRAGMA hard_heap_limit = 0",
    "VACUUM INTO '/tmp/copy'",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT a",
    "SELECT load_extension('x')",
    "SELECT * FROM json_each('[1]')",
    "WITH a AS (SELECT 1) DELETE FROM races",
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
        ("SELECT * FROM unknown", "no such table: unknown"),
        ("SELEKT", 'near "SELEKT": syntax error'),
        ("SELECT 1 AS a, 2 AS a", "two columns have the same name; "),
        ("SELECT ?", "Incorrect number of bindings supplied. "),
        ("SELECT CAST(x'ff' AS TEXT)", "Could not decode to UTF-8 "),
        ("SELECT 1 \0 2", "the query contains a null character"),
    ],
)
def test_a_wrong_statement_is_refused_in_one_line(statements, sql, said):
    with pytest.raises(StatementError) as refused:
        statements.run(sql)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
STOPPED, LARGE, BIG = "stopped after 0.3 seconds; ", "the result has more than ", "blob too big"
DOUBLED = "WITH RECURSIVE n(t) AS (SELECT 'x' UNION ALL SELECT t || t FROM n)"
PAIRS = "FROM lap_times AS a, lap_times AS b"
HUGE = {
    f"{NUMBERS} SELECT count(*) FROM n": STOPPED,
    f"{NUMBERS} SELECT i FROM n ORDER BY -i LIMIT 1": STOPPED,
    f"{NUMBERS} SELECT group_concat(printf('%.100c', 'x')) FROM n": STOPPED,
    f"{DOUBLED} SELECT max(length(t)) FROM n": BIG,
    "SELECT count(*) FROM laps AS a, laps AS b, laps AS c": STOPPED,
    f"SELECT a.record {PAIRS}, lap_times AS c ORDER BY a.time || b.time || c.time": STOPPED,
    f"SELECT count(DISTINCT a.time || b.time || c.time) {PAIRS}, lap_times AS c": STOPPED,
    f"SELECT a.time, json_group_array(b.time) {PAIRS} GROUP BY 1": f"{LARGE}|{BIG}|{STOPPED}",
    "SELECT randomblob(1000000000)": BIG,
    "SELECT zeroblob(1000000000)": BIG,
    "SELECT replace(printf('%.90000c', 'x'), 'x', 'yyyyyyyy')": BIG,
    f"SELECT {', '.join(f'zeroblob(99999) AS a{n}' for n in range(150))}": LARGE,
    f"{NUMBERS} SELECT hex(zeroblob(49999)) AS a, i FROM n": LARGE,
    f"SELECT {', '.join(f'{n} AS a{n}' for n in range(300))}": "too many columns",
    f"SELECT {' UNION SELECT '.join(map(str, range(2000)))}": "too many terms in compound SELECT",
    f"SELECT {'(' * 2000}1{')' * 2000}": "parser stack overflow",
    f"SELECT '{'x' * 100_000}'": "query string is too large",
}


@pytest.mark.parametrize("sql", HUGE, ids=lambda sql: f"{sql[:60]}… {len(sql)}")
def test_a_huge_statement_ends_soon_with_one_line_and_little_memory(statements, sql):
    before, start = memory("self"), time.process_time()
    with pytest.raises(StatementError, match=HUGE[sql]) as refused:
        statements.run(sql)
    seconds, more = time.process_time() - start, memory("self") - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{seconds:.2f} s, {more:+.0f} MB, {peak} MB in all: {refused.value}")
    assert "\n" not in str(refused.value)
    assert statements.run("SELECT count(*) AS n FROM races").rows[0]["n"] > 0


def test_a_text_that_would_be_too_long_is_short(statements):
    (row,) = statements.run("SELECT length(printf('%.*c', 1000000000, 'x')) AS n").rows
    assert row["n"] is None or row["n"] <= BOUNDS.size


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
    statements = Statements(str(sample_database))
    assert len(statements.run(f"{NUMBERS} SELECT i FROM n LIMIT 1000").rows) == 1000
    with pytest.raises(StatementError, match="only a SELECT that reads is allowed"):
        statements.run("PRAGMA query_only = OFF")
    statements.close()

"""racedata.statements: what a statement may do; what ends one is in test_statement_process.py."""

import os

import pytest

from racedata.database import DatabaseError, file_state
from racedata.statements import LONGEST_ERROR, Bounds, StatementError, Statements

BOUNDS = Bounds(rows=200, size=100_000)


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

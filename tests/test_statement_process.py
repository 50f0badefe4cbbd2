"""racedata.statement_process: a statement that takes too much ends, and the next is answered."""

import resource
import subprocess
import sys
from contextlib import suppress

import pytest
from support.processes import has_ended, limited, own_memory, until

from racedata.database import file_state
from racedata.statement_process import MAX_HEAP, StatementProcess
from racedata.statements import Bounds, StatementError

BOUNDS = Bounds(rows=200, size=100_000)


@pytest.fixture(scope="module")
def statements(sample_database):
    return StatementProcess(str(sample_database), BOUNDS, seconds=60)


@pytest.fixture(scope="module")
def impatient(sample_database):
    return StatementProcess(str(sample_database), BOUNDS, seconds=0.2)


def run(statements, sql, **check):
    return statements.run(sql, file_state(statements.path), **check)


def races(statements):
    return run(statements, "SELECT count(*) AS n FROM races").rows


def goes_on(statements):
    """Whether the next statement is answered: on a busy machine, even that may take too long."""
    with suppress(StatementError):
        return races(statements) == [{"n": 88}]
    return False


NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
ENDLESS = f"{NUMBERS} SELECT count(*) FROM n"
STOPPED, LARGE, BIG = "stopped after 0.2 seconds; ", "the result has more than ", "blob too big"
DOUBLED = "WITH RECURSIVE n(t) AS (SELECT 'x' UNION ALL SELECT t || t FROM n)"
PAIRS = "FROM lap_times AS a, lap_times AS b"
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
}


@pytest.mark.parametrize("sql", HUGE, ids=lambda sql: f"{sql[:60]}… {len(sql)}")
def test_a_huge_statement_ends_with_one_line_and_little_memory(statements, impatient, sql):
    asked = impatient if STOPPED in HUGE[sql] else statements
    with pytest.raises(StatementError, match=HUGE[sql]) as refused:
        run(asked, sql)
    assert "\n" not in str(refused.value)
    until(lambda: goes_on(asked))
    assert own_memory(asked.process.pid) < 30 + (MAX_HEAP >> 20)


# A short statement that names a view two to the power of 16 times.
DOUBLED_VIEWS = ", ".join(
    f"a{n} AS (SELECT x.* FROM a{n - 1} AS x JOIN a{n - 1} AS y)" for n in range(1, 17)
)


def test_a_statement_that_needs_too_much_memory_ends_with_one_line(sample_database):
    statements = StatementProcess(str(sample_database), BOUNDS, seconds=60)
    first = "a0 AS (SELECT * FROM race_results)"
    with pytest.raises(StatementError, match=r"^the statement needs too much memory; "):
        run(statements, f"WITH {first}, {DOUBLED_VIEWS} SELECT count(*) FROM a16")
    assert races(statements) == [{"n": 88}]


def test_a_statement_that_was_stopped_leaves_no_process(impatient):
    until(lambda: goes_on(impatient))
    before = impatient.process.pid
    with pytest.raises(StatementError, match="stopped"):
        run(impatient, ENDLESS)
    assert has_ended(before)
    until(lambda: goes_on(impatient))
    assert impatient.process.pid != before


def test_a_process_that_was_killed_is_replaced(statements):
    races(statements)
    statements.process.kill()
    statements.process.join()
    assert races(statements) == [{"n": 88}]


def test_a_statement_whose_process_is_killed_is_refused(statements):
    with pytest.raises(StatementError, match="has ended; ask again"):
        run(statements, ENDLESS, check=lambda: statements.process.kill())
    assert races(statements) == [{"n": 88}]


def test_an_error_of_the_check_ends_the_statement(statements):
    with pytest.raises(ZeroDivisionError):
        run(statements, ENDLESS, check=lambda: 1 / 0)
    assert has_ended(statements.process.pid)
    assert races(statements) == [{"n": 88}]


def test_the_process_ends_with_its_object(sample_database):
    statements = StatementProcess(str(sample_database), BOUNDS, seconds=60)
    races(statements)
    pid = statements.process.pid
    del statements
    until(lambda: has_ended(pid))


@pytest.mark.parametrize(
    ("name", "said"), [("none.db", "is missing; to build it, run: "), ("", "cannot be read")]
)
def test_a_database_that_cannot_be_opened_is_named(tmp_path, name, said, capfd):
    path = tmp_path / name
    statements = StatementProcess(str(path), BOUNDS, seconds=60)
    for _ in range(2):
        with pytest.raises(StatementError) as refused:
            races(statements)
        assert str(refused.value).startswith(f"{path} {said}")
    assert capfd.readouterr() == ("", "")


def test_a_process_that_cannot_start_is_named(sample_database, monkeypatch, tmp_path):
    (tmp_path / "sqlite3.py").write_text("raise SystemExit(1)")
    monkeypatch.syspath_prepend(tmp_path)  # which the process gets
    statements = StatementProcess(str(sample_database), BOUNDS, seconds=60)
    for _ in range(2):
        with pytest.raises(StatementError, match="does not start; start racedata mcp again"):
            races(statements)


def test_the_process_ends_with_the_one_that_started_it(sample_database):
    code = f"""
from racedata.database import file_state
from racedata.statement_process import StatementProcess
from racedata.statements import Bounds
if __name__ == "__main__":
    process = StatementProcess({str(sample_database)!r}, Bounds(200, 1000), 60)
    state = file_state(process.path)
    print(process.run("SELECT 1 AS one", state).rows, process.process.pid, flush=True)
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    rows, pid = ended.stdout.rsplit(maxsplit=1)
    assert rows == "[{'one': 1}]"
    until(lambda: has_ended(int(pid)))


def test_a_process_that_cannot_start_is_one_line_and_the_next_question_is_answered(
    sample_database,
):
    statements = StatementProcess(str(sample_database), BOUNDS, seconds=60)
    with limited(resource.RLIMIT_NOFILE, 3), pytest.raises(StatementError) as refused:
        races(statements)
    assert str(refused.value) == (
        "no process for statements can start (Too many open files); ask again later"
    )
    assert races(statements) == [{"n": 88}]

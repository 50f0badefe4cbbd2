"""racedata.loader.copies: a whole database of this version is accepted, and nothing else."""

import re
import sqlite3
from contextlib import closing

import pytest
from support.loads import changed

from racedata.database import CHECKSUM_BYTES, read, write_checksum
from racedata.loader.copies import Refused, check_copied, tokens

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"


def assert_refused(database, fault):
    with pytest.raises(Refused) as raised:
        check_copied(database, "https://example.org/racedata.db")
    said = str(raised.value)
    assert re.fullmatch(
        f"https://example.org/racedata.db:? {fault}; expected an unmodified racedata database .*",
        said,
    )
    assert said.isprintable()


def rewritten(database, edit):
    """A database after an edit of its bytes, with the right checksum."""
    content = bytearray(database.read_bytes()[:-CHECKSUM_BYTES])
    edit(content)
    database.write_bytes(content)
    write_checksum(database)
    return database


def with_schema(database, table, change, *statements):
    """A database whose table was made without a rule that its schema states."""
    database.write_bytes(database.read_bytes()[:-CHECKSUM_BYTES])
    with closing(sqlite3.connect(database)) as db, db:
        (sql,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
        rows = db.execute(f"SELECT * FROM {table}").fetchall()
        db.execute("PRAGMA writable_schema = ON")
        set_sql = "UPDATE sqlite_schema SET sql = ? WHERE name = ? AND type = 'table'"
        db.execute(set_sql, (sql.replace(*change), table))
        assert rows and change[0] in sql
    for work in (statements, [(set_sql, (sql, table))]):
        with closing(sqlite3.connect(database)) as db, db:
            db.execute("PRAGMA writable_schema = ON")
            for statement in work:
                db.execute(*([statement] if isinstance(statement, str) else statement))
    write_checksum(database)
    return database


def test_a_database_that_racedata_has_built_is_accepted(sample_database):
    check_copied(sample_database, "")


def test_statements_with_the_same_words_are_the_same_whatever_the_comments_and_spaces():
    assert tokens("  a,b -- c\n d") == tokens("a , b d")
    assert tokens("'--\n' x") != tokens("'' x")


def test_a_file_that_the_service_would_refuse_is_refused(database):
    """test_database.py has all reasons."""
    whole = database.read_bytes()
    database.write_bytes(whole[:9000] + b"?" + whole[9001:])
    assert_refused(database, r"is damaged \(.*checksum.*")
    database.write_bytes(whole)
    older = changed(database, "PRAGMA user_version = 10")
    assert_refused(older, r"has schema version 10, .* older than this program's \(11\)")


def test_a_file_with_a_write_ahead_log_is_refused_because_no_service_can_read_it(database):
    def with_log(content):
        content[18:20] = b"\2\2"

    rewritten(database, with_log)
    with (
        closing(read(database).connect()) as db,
        pytest.raises(sqlite3.Error, match="unable to open database file"),
    ):
        db.execute("SELECT builtAt FROM build")
    assert_refused(database, "has a write-ahead log")


@pytest.mark.parametrize(
    ("statements", "fault"),
    [
        (
            ["CREATE TRIGGER t AFTER INSERT ON build BEGIN DELETE FROM races; END"],
            "has an extra trigger 't' on 'build'",
        ),
        # what never ends when it is read
        (
            ["DROP VIEW laps", f"CREATE VIEW laps AS {ENDLESS} max(x) AS year FROM n"],
            "view 'laps' is missing or different",
        ),
        (["CREATE VIRTUAL TABLE x USING fts5(y)"], "has an extra table 'x'"),
        (["DROP INDEX races_circuitId"], "index 'races_circuitId' is missing or different"),
        (
            ["ALTER TABLE drivers ADD COLUMN x TEXT AS (hex(zeroblob(1000000000)))"],
            "table 'drivers' is",
        ),
    ],
)
def test_tables_views_indexes_and_triggers_of_its_own_are_refused(database, statements, fault):
    assert_refused(changed(database, *statements), f"{fault}.*")


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (
            lambda path: with_schema(
                path,
                "races",
                ("name      TEXT NOT NULL", "name      TEXT"),
                "UPDATE races SET name = NULL WHERE year = 2023",
            ),
            "NULL value in races.name",
        ),
        (
            lambda path: with_schema(
                path,
                "seasons",
                (") STRICT", ")"),
                "UPDATE seasons SET url = x'00' WHERE year = 2023",
            ),
            "non-TEXT value in seasons.url",
        ),
        (
            lambda path: rewritten(
                path, lambda content: content.__setitem__(slice(8192, 8300), bytes(108))
            ),
            ".*",
        ),
        (
            lambda path: changed(path, "UPDATE races SET circuitId = 999"),
            "a row of races refers .*",
        ),
    ],
    ids=["NULL", "type", "page", "reference"],
)
def test_rows_that_break_a_rule_of_the_schema_are_refused(database, make, fault):
    assert_refused(make(database), fault)


def test_a_full_database_is_accepted(full_database):
    check_copied(full_database, "")

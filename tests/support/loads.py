"""What tests of a load need: a change to its source, what it has built, and that it has changed nothing."""

import hashlib
import sqlite3
from contextlib import closing, contextmanager

from conftest import run_loader


def tables(path):
    """All rows of the database, except where and when it was built."""
    with closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in names if name != "build"}


def is_whole(path):
    """Whether the checksum that the loader appends (schema.sql) is that of the file before it."""
    content = path.read_bytes()
    return hashlib.sha256(content[:-32]).digest() == content[-32:]


def edit(path, old, new):
    content = path.read_text(encoding="utf-8")
    assert content.count(old) == 1
    path.write_text(content.replace(old, new), encoding="utf-8")


@contextmanager
def refused(database):
    """The block leaves the database as it was, byte for byte, and no file beside it."""
    before = database.read_bytes()
    yield
    assert database.read_bytes() == before
    assert list(database.parent.iterdir()) == [database]


def assert_refused(source, database, *said, **options):
    with refused(database):
        run = run_loader(source, database, **options)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.startswith("racedata load: ")
    assert run.stderr.endswith("; nothing was changed\n")
    assert run.stderr.count("\n") == 1
    for words in said:
        assert words in run.stderr

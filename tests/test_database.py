"""racedata.database: which files are rejected, and with which message."""

import pytest
from support import spoiling

from racedata import database
from racedata.database import DatabaseError


@pytest.fixture
def copy(sample_database, tmp_path):
    """The path of a copy of the sample database, to spoil."""
    path = tmp_path / "racedata.db"
    path.write_bytes(sample_database.read_bytes())
    return path


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (spoiling.missing, "is missing"),
        (spoiling.folder, "is not a file"),
        (spoiling.fifo, "is not a file"),
        (spoiling.device, "is not a file"),
        (spoiling.loop, "cannot be read (Too many levels of symbolic links)"),
        (spoiling.unreadable, "cannot be read ("),
        (spoiling.emptied, "is not an SQLite database"),
        (spoiling.text, "is not an SQLite database"),
        (spoiling.foreign, "is an SQLite database, but not one of racedata"),
        (spoiling.version(0), "has schema version 0, older than this program's, 4"),
        (spoiling.version(9), "has schema version 9, newer than this program's, 4"),
        (spoiling.truncated, "is damaged"),
        (spoiling.header_only, "is damaged"),
        (spoiling.grown, "is damaged"),
    ],
)
def test_a_file_that_cannot_be_served_is_rejected_with_its_fault_and_what_to_run(copy, spoil, fault):
    spoil(copy)
    with pytest.raises(DatabaseError) as rejected:
        database.read(copy)
    message = str(rejected.value)
    source = "" if "older" in fault else "SOURCE "
    assert message.startswith(f"{copy} {fault}")
    assert message.endswith(f"run: racedata load {source}--database {copy}")
    assert "\n" not in message


def test_one_changed_bit_is_found_wherever_it_is(copy):
    good = copy.read_bytes()
    for _ in range(100):
        spoiling.flipped(copy)
        with pytest.raises(DatabaseError):
            database.read(copy)
        copy.write_bytes(good)
    database.read(copy)


def test_reading_does_not_make_a_file(tmp_path):
    with pytest.raises(DatabaseError):
        database.read(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []

"""racedata.loader.compare.tables: what differs although all tables have the same rows."""

import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from support.loads import changed

from racedata.loader.compare.tables import differences
from racedata.loader.existing import open_read_only, read_only_uri

# What changes in the new database alone, and what the command then says of the same rows.
SAME_ROWS = [
    (
        "UPDATE sources SET isProvisional = 1",
        "UPDATE sources SET isProvisional = 0",
        r"no longer provisional: [0-9]+ sets of race records",
    ),
    (
        "UPDATE origins SET fetchedAt = NULL WHERE kind = 'races'",
        "UPDATE origins SET fetchedAt = '2026-01-01T00:00:00Z' WHERE kind = 'races'",
        "a season is now as complete as in its source",
    ),
]


@pytest.mark.parametrize(("before", "change", "said"), SAME_ROWS)
def test_databases_with_the_same_rows_may_differ_in_what_is_known_of_them(
    database, tmp_path, before, change, said
):
    changed(database, before)
    new = Path(shutil.copy(database, tmp_path / "new.db"))

    def found():
        with closing(open_read_only(database)) as old, closing(open_read_only(new)) as db:
            db.execute("ATTACH ? AS old", (read_only_uri(database),))
            return differences(old, db, lambda text: None)

    assert found() == []
    changed(new, change)
    (line,) = found()
    assert re.fullmatch(said, line)

"""In which tables a database differs from the one that is to replace it: `refresh` and `build`
replace it only then.

Even other ids, or another order of records, make a difference here, unlike in changes.py.
"""

import sqlite3

from racedata.formats import counted, plural
from racedata.loader.errors import Progress
from racedata.loader.existing import PROVISIONAL, unfinished_in
from racedata.loader.sql import unless_in
from racedata.model import TABLES

# The tables that a build fills from what sources say.
FROM_SOURCES = ("discrepancies", "discrepancy_values", "ids")


def differences(
    old: sqlite3.Connection, new: sqlite3.Connection, progress: Progress, *others: str
) -> list[str]:
    """A line for each table that has other rows in the new database, to which the old one is
    attached as `old`.

    The tables are those that sources fill, with or without an effect, and these others.
    """
    lines = []
    for name in (*(table.name for table in TABLES), *FROM_SOURCES, *others):
        progress(f"comparing {name}")
        if line := difference(new, name):
            lines.append(line)
    before, now = (len(db.execute(PROVISIONAL).fetchall()) for db in (old, new))
    if not lines and now < before:
        sets = counted(before - now, "set")
        lines.append(f"no longer provisional: {sets} of race records")
    if not lines and unfinished_in(new) < unfinished_in(old):
        lines.append("a season is now as complete as in its source")
    return lines


def difference(db: sqlite3.Connection, table: str) -> str:
    """The line for a table, if it has other rows in the database that is attached as `old`."""
    before, now = (
        db.execute(f"SELECT count(*) FROM {schema}.{table}").fetchone()[0]
        for schema in ("old", "main")
    )
    if now != before:
        return f"{table:<22}{now:>12,} {plural('row', now)} ({now - before:+,})"
    is_new = unless_in(db, "old", table)
    (changed,) = db.execute(f"SELECT count(*) FROM main.{table} WHERE {is_new}").fetchone()
    return f"{table:<22}{now:>12,} {plural('row', now)}, {changed:,} changed" if changed else ""

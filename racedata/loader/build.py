"""Builds a database from the store: chooses what counts, corrects it, numbers and describes it.

choose.py chooses, fill.py puts what was chosen into a Stage, and replacement.py puts the new file
in place.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from racedata.colours import newest_colour
from racedata.database import SCHEMA, write_checksum
from racedata.formats import abridged, counted
from racedata.loader.allowed import check_licence
from racedata.loader.choose import Choice, choose
from racedata.loader.compare.changes import ChangeFinder, fill_changes, put_found_changes
from racedata.loader.compare.discrepancies import fill_discrepancies
from racedata.loader.compare.ids import fill_ids
from racedata.loader.compare.sides import Said
from racedata.loader.correct import Applied, apply_corrections, fill_corrections, note_corrections
from racedata.loader.correction_lines import NOTED, Correction, Line
from racedata.loader.corrections import Corrections
from racedata.loader.errors import LoadError, Progress
from racedata.loader.existing import ExistingDatabase, read_only_uri
from racedata.loader.fill import Filling
from racedata.loader.report import contribution, contributions, licence, seasons_of
from racedata.loader.same_bytes import SAMPLE_TIME, build_time, is_only_sample
from racedata.loader.sql import column_names, insert
from racedata.loader.stage import Stage
from racedata.loader.store import Store, StoredSource
from racedata.model import COMPUTED, RECORDS, TABLES, Table

INDEXES = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql NOT NULL"
# One row per season, driver and constructor: the driver's first entry for it, and all constructors
# up to that entry. In a race, entries without a result come last. (The bare column `round` comes
# from the row with min(number).)
CONSTRUCTORS_SO_FAR = (
    """CREATE TEMP TABLE constructors_so_far AS
           SELECT year, driverId, round, number, group_concat(constructorId, ' ')
               OVER (PARTITION BY year, driverId ORDER BY number) AS constructors
           FROM (SELECT year, driverId, constructorId, min(number) AS number, round
                 FROM (SELECT *, row_number() OVER (
                               ORDER BY round, resultId NULLS LAST, constructorId) AS number
                       FROM (SELECT raceId, driverId, constructorId, resultId FROM stage.results
                             UNION ALL
                             SELECT raceId, driverId, constructorId, NULL FROM stage.entries)
                           JOIN stage.races USING (raceId))
                 GROUP BY year, driverId, constructorId)""",
    "CREATE INDEX constructors_so_far_order ON constructors_so_far (year, driverId, number)",
)


class Report(NamedTuple):
    rows: Mapping[str, int]  # how many each table has
    lines: list[str]  # about all sources, with the misfits
    misfits: list[str]  # corrections that do not fit
    remarks: list[str]  # what does not count
    seasons: str  # `1950 to 2025 (76 seasons, 1,149 races)`
    differences: Sequence[str] = ()  # what differs from the database before, if that was compared


def build_database(
    path: Path,
    store: Store,
    corrections: Corrections,
    progress: Progress,
    old: ExistingDatabase | None = None,
    only_open: bool = False,
) -> Report:
    """Builds the database at `path` from what counts in the store, with corrections. Raises
    sqlite3.Error, OSError or LoadError, for example if a source is not open but must be.

    The new database will replace `old`. The store gets what differs between the two, and the ids of
    statuses. It loses all changes if the database must not show them: see `put_what_changed`.
    """
    progress("choosing")
    choice = choose(
        store.sources(), store.calendars(), store.parts(), corrections.corrected_calendar
    )
    with closing(sqlite3.connect(path.as_uri(), isolation_level=None, uri=True)) as db:
        indexes = create_tables(db)
        stage = Stage(db, progress)
        if old:
            db.execute("ATTACH ? AS old", (read_only_uri(old.path),))
        db.execute("BEGIN")  # only now: no database can be attached in a transaction
        filling = Filling(stage, store, choice, corrections)
        for source in store.sources():
            check_licence(source.address, source.licence, only_open)
        applied = fill_and_correct(filling)
        copy_tables(stage)
        for sql in indexes:
            db.execute(sql)
        describe(db, store, filling.base.is_sample)  # changes name the sources that it puts there
        put_what_changed(filling, old, only_open)
        fill_comparisons(filling)
        check_required(db)
        report = report_of(db, choice, applied)
        progress("writing the database")
        db.execute("COMMIT")
        db.execute("DETACH stage")
        if old:
            db.execute("DETACH old")
        db.execute("ANALYZE")  # statistics for the query planner
    write_checksum(path)
    return report


def names_others(
    store: Store, sources: Sequence[StoredSource], old: ExistingDatabase | None
) -> bool:
    """Whether the changes would have values of sources other than these, perhaps not open ones."""
    named = {*store.db.execute("SELECT oldSource FROM changes UNION SELECT source FROM changes")}
    if old:
        named |= {*old.db.execute("SELECT name FROM sources")}
    return not named <= {(None,), *((source.name,) for source in sources)}


def create_tables(db: sqlite3.Connection) -> list[str]:
    """Creates the tables of a new database without their indexes. Returns the SQL of these, for
    when the rows are there: an index of many rows at once is faster to make, and its pages are
    full.
    """
    # An unfinished file is deleted, so it needs no journal.
    db.executescript(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE"
    )
    db.executescript(SCHEMA)
    indexes = db.execute(INDEXES).fetchall()
    for name, _ in indexes:
        db.execute(f"DROP INDEX {name}")
    return [sql for _, sql in indexes]


def fill_and_correct(filling: Filling) -> list[Applied]:
    """Fills the stage with what was chosen, and corrects it. Returns what was corrected."""
    stage, store, lines = filling.stage, filling.store, filling.corrections.lines
    # In any order. All of it comes before the corrections, which find rows by lists and races.
    filling.fill_sources()
    filling.fill_lists()
    store.put_statuses(filling.lists.merged["status"].rows.values())
    filling.fill_races()
    filling.fill_origins()
    filling.fill_kind("results")
    stage.index("results")  # by which corrections find rows
    of_results = [line for line in lines if line.table.name == "results"]
    applied = [apply_corrections(stage, of_results)]
    # only now: from the corrected results, other records of a car have its driver and constructor
    filling.fill_others()
    stage.index(*(kind for kind in RECORDS if kind != "results"))
    others = [line for line in lines if line.table.name != "results"]
    applied.append(apply_corrections(stage, others))
    # What sources have corrected themselves is only noted, if the corrected rows still have it.
    for source in filling.sources:
        rows = store.list_rows(source.name, "corrections")
        noted = [Correction(*(row[name] for name in NOTED)) for row in rows]  # type: ignore[arg-type]
        note_corrections(stage, [Line(source.name, each) for each in noted])
    return applied


def put_what_changed(filling: Filling, old: ExistingDatabase | None, only_open: bool) -> None:
    """Puts into the store what differs between the finished database and the old one."""
    store, db = filling.store, filling.db
    # The sample has no history: it has the same bytes on all machines. Where all sources must be
    # open, the changes must not show a value of one that is not.
    if is_only_sample(store) or (only_open and names_others(store, filling.sources, old)):
        store.drop_changes()
    elif old and old.is_sample == filling.base.is_sample:  # a first load is no change
        filling.stage.progress("noting what has changed")
        finder = ChangeFinder(db, filling.lists.source_of_fact)
        put_found_changes(store, finder, old.state)


def fill_comparisons(filling: Filling) -> None:
    """Fills the tables that compare the finished database: with earlier ones, as the store says,
    and with what each source says.
    """
    store, db = filling.store, filling.db
    fill_changes(store, db)
    filling.stage.progress("comparing sources")
    said = Said(db, store, filling.race_ids, filling.lists)
    fill_ids(said)
    fill_discrepancies(db, said, filling.corrections.written)


def report_of(db: sqlite3.Connection, choice: Choice, applied: Sequence[Applied]) -> Report:
    misfits = [*chain(*(each.remarks for each in applied))]
    lines = [*summary_of(applied), *misfits, *contributions(db), licence(db)]
    rows = dict(db.execute("SELECT name, rows FROM row_counts").fetchall())
    return Report(rows, lines, misfits, remarks_of(choice), seasons_of(db))


def remarks_of(choice: Choice) -> list[str]:
    remarks = (
        (choice.unmatched[::-1], "no matching race in the database, or more than one; not added"),
        (choice.smaller, "fewer records than another source has; not used"),
    )
    return [f"{abridged(names)}: {what}" for names, what in remarks if names]


def summary_of(applied: Sequence[Applied]) -> Iterator[str]:
    """A line that says how much was corrected, if anything was."""
    values, rows = sum(each.values for each in applied), sum(each.rows for each in applied)
    what = [counted(count, name) for name, count in (("value", values), ("row", rows)) if count]
    if what:
        yield f"corrected: {' and '.join(what)}; see the corrections endpoint"


def copy_tables(stage: Stage) -> None:
    db = stage.db
    for statement in CONSTRUCTORS_SO_FAR:
        db.execute(statement)
    db.create_function("newest_colour", 1, newest_colour)
    for table in TABLES:
        stage.progress(f"numbering {table.name}")
        copy_table(stage, table)
    fill_corrections(stage)
    db.execute("INSERT INTO seasons (year) SELECT year FROM races EXCEPT SELECT year FROM seasons")


def check_required(db: sqlite3.Connection) -> None:
    """Raises LoadError if a required table is empty: there would be nothing to serve."""
    for table in TABLES:
        if table.required and db.execute(f"SELECT 1 FROM {table.name}").fetchone() is None:
            (source,) = db.execute("SELECT address FROM sources ORDER BY sourceId").fetchone()
            raise LoadError(f"{source}: no {table.name} that can be served; expected at least one")


def copy_table(stage: Stage, table: Table) -> None:
    """Copies a staged table into the database, in order and with its computed columns."""
    db = stage.db
    stored = column_names(db, table.name)
    names = ", ".join(name for name in table.names if name in stored)
    computed = {name: sql for name, sql in COMPUTED.items() if name in stored}
    targets, values = ", ".join([names, *computed]), ", ".join([names, *computed.values()])
    if not table.is_numbered:
        sql = f"INSERT INTO {table.name} ({targets}) SELECT {values} FROM stage.{table.name}"
        if table.name == "entries":
            sql += " UNION SELECT raceId, driverId, constructorId FROM results ORDER BY 1, 2, 3"
        db.execute(sql)
        return
    if table.is_numbered_by_race:
        db.execute(
            f"""INSERT INTO {table.name} (record, {names})
                SELECT row_number() OVER (PARTITION BY raceId ORDER BY {table.order}), {names}
                FROM stage.{table.name}"""
        )
        return
    # SQLite numbers rows from 1 if they are inserted into an empty table without a value for its
    # INTEGER PRIMARY KEY.
    db.execute(
        f"""INSERT INTO {table.name} ({targets})
            SELECT {values}
            FROM stage.{table.name} AS staged
                JOIN (SELECT raceId, year, round FROM races) AS race USING (raceId)
            ORDER BY year, round, {table.order}"""
    )


def describe(db: sqlite3.Connection, store: Store, is_sample: bool) -> None:
    """Fills the tables that describe the database. It counts the rows of the others."""
    for table in TABLES:
        db.execute(f"INSERT INTO row_counts SELECT ?, count(*) FROM {table.name}", (table.name,))
    built_at = SAMPLE_TIME if is_only_sample(store) else build_time()
    store_id, revision = store.state
    build = dict(builtAt=built_at, isSample=is_sample, storeId=store_id, revision=revision)
    insert(db, "build", build)
    db.execute("INSERT INTO sources SELECT * FROM stage.sources")
    db.execute("INSERT INTO origins SELECT * FROM stage.origins")
    for (id,) in db.execute("SELECT sourceId FROM sources").fetchall():
        db.execute("UPDATE sources SET gave = ? WHERE sourceId = ?", (contribution(db, id), id))
    db.execute(
        """INSERT INTO coverage (kind, first, last, races, run)
           SELECT kind, min(year), max(year), count(*), (
               SELECT count(DISTINCT raceId) FROM origins AS other JOIN races AS run USING (raceId)
               WHERE other.kind IN ('results', origins.kind)
                   AND run.year BETWEEN min(races.year) AND max(races.year))
           FROM origins JOIN races USING (raceId)
           WHERE kind NOT IN ('races', 'sessions') GROUP BY kind"""
    )

"""Merges an addition into a stage.

parts.py decides which parts are taken: matching.py says which race and driver is which, rules.py
which record wins. merge_calendars.py merges the calendars, and transfer.py copies the rows. They
share the database `ids`:

    table               filled by                          has
    races               merge_calendars                    the id of each matched race
    parts               merge_calendars, parts             the parts that are taken
    without_sessions    merge_calendars                    races whose sessions are not taken
    sources             merge                              the id of each source
    circuits, drivers,
    constructors,
    status              transfer                           the id of each entry of a list
    cars, fastest       transfer                           what the results of the stage keep
    replaced            transfer, for one kind at a time   the row ids that new rows get

`added` is an id in the addition, `id` the one in the stage. The merge also changes the addition: it
gets the times that its calendar lacks, and origins for sessions that came with a race.
"""

import sqlite3
from pathlib import Path

from racedata.formats import listed
from racedata.loader.addition import Addition
from racedata.loader.corrections import merge_corrections
from racedata.loader.merge_calendars import Calendars
from racedata.loader.parts import Parts
from racedata.loader.stage import Stage
from racedata.loader.transfer import (
    add_to_list,
    copy_rows,
    create_ids,
    ids_in_parts,
    note_cars,
    note_fastest_laps,
    set_fastest_laps,
)
from racedata.model import BY_NAME, KINDS, RECORDS


def merge(stage: Stage, path: Path, addition: Addition) -> list[str]:
    """Merges into `stage` the file that the addition has filled. Returns lines for the report."""
    db = stage.db
    db.execute("COMMIT")  # no file can be attached in a transaction
    db.execute("ATTACH ? AS addition", (str(path),))
    db.execute("ATTACH ':memory:' AS ids")
    db.execute("BEGIN")
    create_ids(db)
    parts = Parts(db, addition)
    calendars = Calendars(db, addition, parts)
    years = db.execute("SELECT DISTINCT year FROM addition.races ORDER BY year").fetchall()
    for (year,) in years:
        if addition.years is None or year in addition.years:
            calendars.merge_season(year)
    calendars.choose_sessions()
    calendars.add_times()  # where choose_sessions has not refused the sessions
    for kind in KINDS:
        parts.choose(kind)
    add_sources(db)
    copy_records(db, addition)
    set_origins(db)
    db.execute("COMMIT")
    db.execute("DETACH ids")
    db.execute("DETACH addition")
    db.execute("BEGIN")
    return report(calendars, parts)


def copy_records(db: sqlite3.Connection, addition: Addition) -> None:
    """Copies all parts that are taken."""
    for name in ("drivers", "constructors", "status"):
        add_to_list(db, name, ids_in_parts(name), addition.updates_lists)
    note_fastest_laps(db)
    note_cars(db)
    for kind in ("sessions", *RECORDS):
        copy_rows(db, BY_NAME[kind], kind)
    # A source that gives the results of a race also gives its entries without a result. If it
    # has none, those of the stage stay, except those of drivers who now have a result.
    db.execute(
        """DELETE FROM stage.entries
           WHERE raceId IN (SELECT id FROM ids.parts JOIN addition.entries ON raceId = added
                            WHERE kind = 'results')
               OR (raceId IN (SELECT id FROM ids.parts WHERE kind = 'results')
                   AND (raceId, driverId) IN (SELECT raceId, driverId FROM stage.results))"""
    )
    copy_rows(db, BY_NAME["entries"], "results")
    set_fastest_laps(db)
    merge_corrections(db)


def set_origins(db: sqlite3.Connection) -> None:
    """Notes the source of each part that is taken. Sessions that came with their race need none."""
    db.execute(
        """INSERT OR REPLACE INTO stage.origins
           SELECT parts.id, kind, sources.id, fetchedAt
           FROM ids.parts JOIN addition.origins USING (kind)
           JOIN ids.sources ON sources.added = sourceId WHERE parts.added = raceId"""
    )
    db.execute(
        """DELETE FROM stage.origins AS old WHERE kind = 'sessions' AND EXISTS (
               SELECT 1 FROM stage.origins AS race
               WHERE race.raceId = old.raceId AND race.kind = 'races'
                   AND race.sourceId = old.sourceId AND race.fetchedAt IS old.fetchedAt)"""
    )


def add_sources(db: sqlite3.Connection) -> None:
    """Adds or updates the sources that a load has read, or of which a part is taken."""
    # The later reading wins, but the next load reuses the addresses of this load.
    db.execute(
        """INSERT INTO stage.sources
               (name, address, licence, checksum, readAt, isLoaded, gave, isProvisional)
           SELECT name, address, licence, checksum, readAt, isLoaded, gave, isProvisional
           FROM addition.sources
           WHERE isLoaded OR sourceId IN (
               SELECT sourceId FROM ids.parts JOIN addition.origins USING (kind)
               WHERE added = raceId)
           ORDER BY sourceId
           ON CONFLICT (name) DO UPDATE SET
               address = iif(isLoaded AND NOT excluded.isLoaded, address, excluded.address),
               licence = iif(excluded.readAt >= readAt, excluded.licence, licence),
               checksum = iif(excluded.readAt >= readAt, excluded.checksum, checksum),
               readAt = max(excluded.readAt, readAt),
               isLoaded = max(excluded.isLoaded, isLoaded)"""
    )
    db.execute(
        """INSERT INTO ids.sources
           SELECT new.sourceId, old.sourceId
           FROM addition.sources AS new JOIN stage.sources AS old USING (name)"""
    )


def report(calendars: Calendars, parts: Parts) -> list[str]:
    unmatched = calendars.unmatched[::-1]  # the newest first
    smaller, missing = [*calendars.smaller, *parts.smaller], calendars.missing
    remarks = (
        (unmatched, "no matching race in the database, or more than one; not added"),
        (smaller, "fewer records than the database has; not used"),
        (
            missing,
            "missing from the source's calendar; that calendar is not used until every such race "
            "has been missing for 12 hours",
        ),
    )
    return [f"{listed(names)}: {what}" for names, what in remarks if names]

"""Queries for the pages, about what no endpoint answers: leaders, winners, sources, races with
corrected values.

Queries about the career of a driver or constructor, or about a circuit, are in career_queries.py.
"""

from sqlite3 import Row

from racedata.model import KINDS
from racedata.service.snapshot import Snapshot


def corrected_races(data: Snapshot, season: int | None) -> list[Row]:
    """The races with corrected values, in order: `(year, round, name, count)`."""
    return data.rows(
        """SELECT races.year, round, name, count(*) AS count
           FROM corrections JOIN races USING (raceId) WHERE ?1 IS NULL OR races.year = ?1
           GROUP BY raceId ORDER BY races.year, round""",
        (season,),
    )


def newest_records(data: Snapshot) -> dict[str, Row]:
    """The newest records of each source, by its name: `(source, kind, race, date)`.

    If a source gave results, these count, because other kinds may be of a race without a result.
    """
    rows = data.rows(
        """SELECT sources.name AS source, kind, races.name AS race, max(date) AS date
           FROM origins JOIN sources USING (sourceId) JOIN races USING (raceId)
           GROUP BY sourceId, kind"""
    )
    order = list(KINDS)
    return {
        row["source"]: row
        for row in sorted(
            (row for row in rows if row["kind"] in KINDS),
            key=lambda row: (row["kind"] == "results", row["date"], -order.index(row["kind"])),
        )
    }


def provisional_sources(data: Snapshot, race: int) -> dict[str, str]:
    """The names of the sources of a race's provisional records, by kind."""
    rows = data.rows(
        """SELECT kind, name FROM origins JOIN sources USING (sourceId)
           WHERE raceId = ? AND isProvisional""",
        (race,),
    )
    return {row["kind"]: row["name"] for row in rows}


def leaders(data: Snapshot) -> list[Row]:
    """Who led the championship of the drivers after each race: `(raceId, driverId)`."""
    return data.rows(
        "SELECT raceId, driverId FROM driver_standings WHERE positionText = '1' ORDER BY record"
    )


def winners(data: Snapshot) -> list[Row]:
    """The winners of all races, in order: `(raceId, driverId, constructorId)`.

    Drivers who shared the car have both won.
    """
    return data.rows(
        """SELECT raceId, driverId, constructorId FROM results JOIN races USING (raceId)
           WHERE positionText = '1' ORDER BY year, round, record"""
    )


def won_races(data: Snapshot) -> list[Row]:
    """Each race with a winner, in order, and what the page at `/records` compares.

    `(raceId, driverId, milliseconds, grid, gap, secondId)`: the winner, the race time and the place
    on the grid; the gap in milliseconds to the second, if both drove as many laps, and who that
    was. Of two drivers who shared a car, the first in the result counts: Brooks, not Moss, in
    Britain in 1957.
    """
    return data.rows(
        """SELECT won.raceId, won.driverId, won.milliseconds, won.grid,
               second.milliseconds - won.milliseconds AS gap, second.driverId AS secondId,
               min(coalesce(second.record, won.record))
           FROM (SELECT *, min(record) FROM results WHERE positionText = '1' GROUP BY raceId) AS won
               JOIN races USING (raceId)
               LEFT JOIN results AS second ON second.raceId = won.raceId
                   AND second.positionText = '2' AND second.laps = won.laps
                   AND second.milliseconds > won.milliseconds
           GROUP BY won.raceId ORDER BY year, round"""
    )

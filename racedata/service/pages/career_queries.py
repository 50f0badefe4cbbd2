"""Queries for careers: what a driver, a constructor or a circuit has done, counted.

A start, a win, a title and so on are here what they are in the views of schema.sql. The tables are
read: from the views, which join them all, the page at `/records` would take a quarter longer. Other
queries are in page_queries.py and queries.py.
"""

from collections.abc import Iterator, Mapping
from sqlite3 import Row

from racedata.service.snapshot import Snapshot

PART = 5000  # results; a statement that read all of them would let other clients wait too long

# As `isStart` and `position` in the view race_results, and as the view poles.
IS_START = "(positionText NOT IN ('E', 'F', 'W') OR coalesce(laps > 0, 0))"
IS_POLE = """CASE WHEN year = 2022 AND raceId IN (SELECT raceId FROM sprint_results)
    THEN EXISTS (SELECT 1 FROM qualifying AS fastest WHERE fastest.raceId = results.raceId
        AND fastest.driverId = results.driverId AND fastest.position = 1)
    WHEN grid = 1 THEN NOT EXISTS (SELECT 1 FROM results AS before
        WHERE before.raceId = results.raceId AND before.grid = 1 AND before.record < results.record)
    END"""
PLACE = "CASE WHEN positionText < 'A' THEN CAST(positionText AS INTEGER) END"
# What counts as a podium, by the column of an id: a race for a driver, a place for a constructor.
# In Argentina in 1955, Farina was second and third in two Ferraris, which he shared with others:
# one podium for him, and two for Ferrari.
PODIUMS: Mapping[str, str] = {
    "driverId": "raceId",
    "constructorId": "raceId || ' ' || positionText",
}


def seasons(data: Snapshot, column: str, id: int) -> list[Row]:
    """What a driver or constructor did in each season, counted; `column` says which it is.

    `(year, starts, wins, poles, podiums, first, last)`: the numbers are of races, and the
    last two are rounds, of the first and the last start; NULL without a start.
    """
    return data.rows(
        f"""SELECT year,
                count(DISTINCT iif(isStart, raceId, NULL)) AS starts,
                count(DISTINCT iif(positionText = '1', raceId, NULL)) AS wins,
                count(DISTINCT iif(isPole, raceId, NULL)) AS poles,
                count(DISTINCT iif(positionText IN ('1', '2', '3'), {PODIUMS[column]}, NULL))
                    AS podiums,
                min(iif(isStart, round, NULL)) AS first, max(iif(isStart, round, NULL)) AS last
            FROM (SELECT raceId, year, round, positionText, {IS_START} AS isStart,
                      {IS_POLE} AS isPole
                  FROM results JOIN races USING (raceId) WHERE {column} = ?)
            GROUP BY year ORDER BY year""",
        (id,),
    )


def points(data: Snapshot, column: str, id: int) -> float:
    """All points of a driver or constructor, in races and sprints."""
    total = data.value(
        f"""SELECT total(points) FROM (
                SELECT CAST(points AS REAL) AS points FROM results WHERE {column} = ?1
                UNION ALL SELECT CAST(points AS REAL) FROM sprint_results WHERE {column} = ?1)""",
        (id,),
    )
    return float(total)


def partners(data: Snapshot, column: str, id: int, other: str) -> dict[int, list[int]]:
    """The constructors that a driver drove for, or the drivers of a constructor, by season.

    `column` and `other` are the columns of both ids in `results`. Those with the most races are
    first.
    """
    rows = data.rows(
        f"""SELECT year, {other} FROM results JOIN races USING (raceId) WHERE {column} = ?
            GROUP BY year, {other} ORDER BY year, count(DISTINCT raceId) DESC, min(record)""",
        (id,),
    )
    found: dict[int, list[int]] = {}
    for year, partner in rows:
        found.setdefault(year, []).append(partner)
    return found


def compared_in_races(data: Snapshot, driver: int) -> list[Row]:
    """A driver and each team mate in the races of a season.

    `(year, constructorId, mate, together, ahead, behind)`: how many races both started, and in how
    many of them the driver had the better or the worse place, if both had one. Of several places in
    shared cars, the best counts.
    """
    return data.rows(
        f"""WITH own AS (
                SELECT raceId, constructorId, min({PLACE}) AS place
                FROM results WHERE driverId = ?1 AND {IS_START} GROUP BY raceId, constructorId),
            other AS (
                SELECT raceId, constructorId, results.driverId AS mate, own.place AS place,
                    min({PLACE}) AS matePlace
                FROM own CROSS JOIN results USING (raceId, constructorId)
                WHERE results.driverId <> ?1 AND {IS_START}
                GROUP BY raceId, constructorId, mate)
            SELECT year, constructorId, mate, count(*) AS together,
                total(place < matePlace) AS ahead, total(place > matePlace) AS behind
            FROM other JOIN races USING (raceId) GROUP BY year, constructorId, mate""",
        (driver,),
    )


def compared_in_qualifying(data: Snapshot, driver: int) -> list[Row]:
    """The same in qualifying, in which both took part: their places, whatever the grid was."""
    return data.rows(
        """SELECT year, other.constructorId, other.driverId AS mate, count(*) AS together,
               total(own.position < other.position) AS ahead,
               total(own.position > other.position) AS behind
           FROM qualifying AS own
               CROSS JOIN qualifying AS other USING (raceId) JOIN races USING (raceId)
           WHERE own.driverId = ?1 AND other.driverId <> ?1
               AND other.constructorId = own.constructorId
           GROUP BY year, other.constructorId, mate""",
        (driver,),
    )


def drives(data: Snapshot, column: str) -> Iterator[Row]:
    """The races of all drivers or of all constructors, by id, each in order.

    `(id, raceId, isStart, isPole, place, points)`: the best place of several cars, NULL without
    one, and all their points. Each statement reads the next ids, up to the one with which it has
    more than PART results.
    """
    id = -1
    while rows := data.rows(
        f"""SELECT {column} AS id, raceId, max({IS_START}) AS isStart, max({IS_POLE}) AS isPole,
                min({PLACE}) AS place, total(CAST(points AS REAL)) AS points
            FROM results JOIN races USING (raceId)
            WHERE {column} > ?1 AND {column} <= ifnull(
                (SELECT {column} FROM results
                 WHERE {column} > ?1 ORDER BY {column} LIMIT 1 OFFSET ?2),
                (SELECT max({column}) FROM results))
            GROUP BY id, raceId ORDER BY id, year, round""",
        (id, PART),
    ):
        yield from rows
        id = rows[-1]["id"]


def fastest_laps(data: Snapshot, circuit: int) -> list[Row]:
    """The fastest lap of each race at a circuit: `(raceId, driverId, constructorId, time,
    winnerLaps)`. Several drivers may share it.
    """
    return data.rows(
        """SELECT raceId, driverId, constructorId, fastestLapTime AS time,
               (SELECT laps FROM results AS first
                WHERE first.raceId = results.raceId ORDER BY record LIMIT 1) AS winnerLaps
           FROM races CROSS JOIN results USING (raceId)
           WHERE circuitId = ? AND rank = 1 AND fastestLapTime IS NOT NULL
           ORDER BY year, round""",
        (circuit,),
    )


def all_starts(data: Snapshot, column: str) -> dict[int, Row]:
    """By id, the races in which each driver or constructor started: `(id, races, first, last)`.

    The last two are seasons with a start; NULL without one.
    """
    rows = data.rows(
        f"""SELECT {column} AS id, count(DISTINCT iif(isStart, raceId, NULL)) AS races,
                min(iif(isStart, year, NULL)) AS first, max(iif(isStart, year, NULL)) AS last
            FROM (SELECT raceId, {column}, {IS_START} AS isStart FROM results)
                JOIN races USING (raceId)
            GROUP BY id"""
    )
    return {row["id"]: row for row in rows}


def all_races_run(data: Snapshot) -> dict[int, Row]:
    """By id, the races with results at each circuit: `(id, races, first, last)`."""
    rows = data.rows(
        """SELECT circuitId AS id, count(*) AS races, min(year) AS first, max(year) AS last
           FROM races WHERE raceId IN (SELECT raceId FROM results) GROUP BY id"""
    )
    return {row["id"]: row for row in rows}

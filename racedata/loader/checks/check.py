"""A check of `racedata check`, and the views that several checks read."""

from typing import NamedTuple


class Check(NamedTuple):
    """Two facts that can hardly both be true: the rows of the query are the doubts."""

    title: str
    meaning: str  # what a row can mean, and the source of the rule if there is one
    rows: str  # the rows that it examines: the part after FROM in a query that counts them
    sql: str  # the doubts, the most doubtful first; its column names head the report's columns
    is_history: bool = False  # whether most of its doubts are history: reported after the others


# `named` are the rows of `classified`, with names instead of ids.
VIEWS = """
CREATE TEMP VIEW race AS
    SELECT raceId, year, round, year || '/' || round || ' ' || name AS race FROM races;

CREATE TEMP VIEW classified AS  -- all sessions with a result
    SELECT 'race' AS session, raceId, driverId, constructorId, number, grid, positionText,
        positionOrder, points, laps, milliseconds, fastestLap, statusId
    FROM results
    UNION ALL
    SELECT 'sprint', raceId, driverId, constructorId, number, grid, positionText,
        positionOrder, points, laps, milliseconds, fastestLap, statusId
    FROM sprint_results;

CREATE TEMP VIEW named AS
    SELECT classified.*, race, year, round, driverRef AS driver, status,
        CASE WHEN positionText GLOB '[1-9]*' THEN CAST(positionText AS INTEGER) END AS place,
        ifnull(classified.number, 'of ' || driverRef) AS car
    FROM classified JOIN race USING (raceId) JOIN drivers USING (driverId)
    LEFT JOIN status USING (statusId);

CREATE TEMP VIEW fastest AS  -- the fastest laps of drivers, with their length if the speed is known
    SELECT raceId, race, year, round, driverId, driverRef AS driver, rank, results.laps, fastestLap,
        fastestLapTime, fastestLapSpeed, milliseconds(fastestLapTime) AS duration,
        milliseconds(fastestLapTime) * CAST(fastestLapSpeed AS REAL) / 3600 AS metres
    FROM results JOIN race USING (raceId) JOIN drivers USING (driverId)
    WHERE fastestLapTime NOT NULL;

CREATE TEMP TABLE timed AS
    SELECT raceId, driverId, count(*) AS laps, max(lap) AS lastLap, count(time) AS times,
        sum(milliseconds(time)) AS total, min(milliseconds(time)) AS fastest
    FROM lap_times GROUP BY raceId, driverId;
"""

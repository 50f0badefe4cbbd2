-- What the checks of several subjects read.

CREATE TEMP VIEW race AS
SELECT raceId, year, round, year || '/' || round || ' ' || name AS race FROM races;

-- All sessions with a result.
CREATE TEMP VIEW classified AS
SELECT 'race' AS session, raceId, driverId, constructorId, number, grid, positionText,
    positionOrder, points, laps, milliseconds, fastestLap, statusId
FROM results
UNION ALL
SELECT 'sprint', raceId, driverId, constructorId, number, grid, positionText,
    positionOrder, points, laps, milliseconds, fastestLap, statusId
FROM sprint_results;

-- The rows of `classified`, with names instead of ids.
CREATE TEMP VIEW named AS
SELECT classified.*, race, year, round, driverRef AS driver, status,
    CASE WHEN positionText GLOB '[1-9]*' THEN CAST(positionText AS INTEGER) END AS place,
    ifnull(classified.number, 'of ' || driverRef) AS car
FROM classified JOIN race USING (raceId) JOIN drivers USING (driverId)
LEFT JOIN status USING (statusId);

-- How many laps the winner drove.
CREATE TEMP TABLE winner AS
SELECT raceId, session, max(laps) AS laps FROM classified
WHERE positionText = '1' GROUP BY raceId, session;

-- The fastest laps of drivers, with their length if the speed is known.
CREATE TEMP VIEW fastest AS
SELECT raceId, race, year, round, driverId, driverRef AS driver, rank, results.laps, fastestLap,
    fastestLapTime, fastestLapSpeed, milliseconds(fastestLapTime) AS duration,
    milliseconds(fastestLapTime) * CAST(fastestLapSpeed AS REAL) / 3600 AS metres
FROM results JOIN race USING (raceId) JOIN drivers USING (driverId)
WHERE fastestLapTime NOT NULL;

CREATE TEMP TABLE timed AS
SELECT raceId, driverId, count(*) AS laps, max(lap) AS lastLap, count(time) AS times,
    sum(milliseconds(time)) AS total, min(milliseconds(time)) AS fastest
FROM lap_times GROUP BY raceId, driverId;

-- Checks of qualifying and of sprint qualifying.

CREATE TEMP VIEW any_qualifying AS
SELECT 'qualifying' AS session, raceId, driverId, position, q1, q2, q3 FROM qualifying
UNION ALL
SELECT 'sprint qualifying', raceId, driverId, position, q1, q2, q3 FROM sprint_qualifying;

-- Q1 and Q2, since 2006: the parts after which drivers go on to the next. `places` is the maximum
-- number of drivers who go on in that season.
CREATE TEMP TABLE part AS
SELECT *, milliseconds(time) AS duration,
    max(went_on) OVER (PARTITION BY session, year, part) AS places FROM (
    SELECT *, count(next) OVER (PARTITION BY session, raceId, part) AS went_on FROM (
        SELECT session, raceId, driverId, position, 'Q1' AS part, q1 AS time, q2 AS next
        FROM any_qualifying
        UNION ALL
        SELECT session, raceId, driverId, position, 'Q2', q2, q3 FROM any_qualifying)
    JOIN race USING (raceId) WHERE year >= 2006);
CREATE INDEX temp.part_raceId ON part (raceId, session, part);

-- Two drivers have the same place in qualifying.
-- One of the two is wrong: most likely, a driver was disqualified and the others moved up.
-- rows: any_qualifying WHERE position NOT NULL
SELECT race, session, position, group_concat(driverRef, ', ') AS drivers
FROM any_qualifying JOIN race USING (raceId) JOIN drivers USING (driverId)
WHERE position NOT NULL
GROUP BY session, raceId, position HAVING count(*) > 1 ORDER BY year DESC, round, position;

-- A driver went on to the next part of qualifying with a slower time than one who did not.
-- The time is wrong, or belongs to another part; or the faster driver's time was deleted.
-- rows: part WHERE time NOT NULL
SELECT race, slower.session, slower.part, driverRef AS driver, slower.time,
    count(*) AS "faster drivers who did not go on", min(faster.time) AS "fastest of them"
FROM part AS slower JOIN part AS faster USING (session, raceId, part, race)
JOIN drivers ON drivers.driverId = slower.driverId
WHERE slower.next NOT NULL AND faster.next IS NULL AND faster.position > faster.places
    AND faster.duration < slower.duration
GROUP BY slower.session, raceId, slower.part, slower.driverId
ORDER BY slower.year, slower.round;

-- A driver has a time in a part of qualifying, but none in the part before.
-- The time of the part before is missing, or this one belongs there.
-- rows: part WHERE next NOT NULL
SELECT race, session, part AS "part without a time", driverRef AS driver,
    next AS "time in the next part"
FROM part JOIN drivers USING (driverId)
WHERE next NOT NULL AND time IS NULL ORDER BY year DESC, round, driver;

-- A driver who went on to the next part is not placed ahead of those who did not.
-- The place is wrong or includes a grid penalty, or the driver was disqualified.
-- rows: part WHERE next NOT NULL
SELECT race, session, part, driverRef AS driver, position, places AS "places in the next"
FROM part JOIN drivers USING (driverId)
WHERE next NOT NULL AND position > places ORDER BY year DESC, round, position;

-- A driver with a faster time in Q3 is further behind in qualifying.
-- The place includes a grid penalty, the time was deleted, or one of the two is wrong.
-- rows: qualifying WHERE q3 NOT NULL AND position NOT NULL
WITH third AS (
    SELECT *, milliseconds(q3) AS time FROM qualifying
    WHERE q3 NOT NULL AND position NOT NULL)
SELECT race, driverRef AS driver, third.position, third.q3,
    min(ahead.position) AS "slower driver's position", ahead.q3 AS "slower driver's Q3"
FROM third JOIN third AS ahead USING (raceId)
JOIN race USING (raceId) JOIN drivers ON third.driverId = drivers.driverId
WHERE ahead.position < third.position AND ahead.time > third.time
GROUP BY raceId, third.driverId ORDER BY year, round, third.position;

-- A driver who qualified has no result, and nobody starts from the place.
-- The driver started, and the result is missing. If the driver withdrew, it was too late for the
-- others to move up.
-- rows: qualifying WHERE position NOT NULL AND raceId IN (SELECT raceId FROM results)
SELECT race, driverRef AS driver, qualifying.number AS car, position AS qualified,
    last AS "last place on the grid"
FROM qualifying JOIN race USING (raceId) JOIN drivers USING (driverId)
JOIN (SELECT raceId, max(grid) AS last FROM results GROUP BY raceId) USING (raceId)
WHERE position < last AND (raceId, driverId) NOT IN (SELECT raceId, driverId FROM results)
    AND (raceId, position) NOT IN (SELECT raceId, grid FROM results WHERE grid NOT NULL)
ORDER BY year, round, position;

-- A driver has a qualifying result, but none in the race.
-- Probably not an error: the driver withdrew after qualifying.
-- rows: qualifying WHERE raceId IN (SELECT raceId FROM results)
-- history
SELECT race, driverRef AS driver, position AS qualified FROM qualifying
JOIN race USING (raceId) JOIN drivers USING (driverId)
WHERE raceId IN (SELECT raceId FROM results)
    AND (raceId, driverId) NOT IN (SELECT raceId, driverId FROM results)
ORDER BY year, round;

-- Checks of the classification of races and sprints: places, cars, laps and statuses.

-- The cars in each session.
CREATE TEMP VIEW numbered AS
SELECT * FROM (
    SELECT session, raceId, driverId, constructorId, number FROM classified
    UNION ALL SELECT 'qualifying', raceId, driverId, constructorId, number FROM qualifying
    UNION ALL SELECT 'sprint qualifying', raceId, driverId, constructorId, number
    FROM sprint_qualifying
    UNION ALL SELECT 'practice ' || session, raceId, driverId, constructorId, number
    FROM practice)
WHERE number > 0;

-- A race or sprint was run, but nobody won it.
-- The winner is missing, or has another place.
-- rows: (SELECT DISTINCT session, raceId FROM classified)
SELECT race, session, count(*) AS drivers, min(place) AS "best place" FROM named
GROUP BY raceId, session HAVING ifnull(min(place), 0) <> 1 ORDER BY year, round;

-- Two cars have the same place.
-- One of the two places is wrong.
-- rows: named WHERE place NOT NULL
SELECT race, session, place,
    group_concat(driver || ' (' || car || ')', ', ') AS "drivers (cars)"
FROM named WHERE place NOT NULL
GROUP BY raceId, session, place HAVING count(DISTINCT car) > 1
ORDER BY year, round, place;

-- A place in a classification is empty.
-- A driver is missing or has another place; or the stewards took a place from a driver and
-- promoted nobody.
-- rows: named WHERE place NOT NULL
WITH places AS (
    SELECT DISTINCT raceId, session, place FROM named WHERE place NOT NULL)
SELECT race, session, place AS "place", place - previous - 1 AS "empty places before it"
FROM (SELECT *, lag(place, 1, 0) OVER (PARTITION BY raceId, session ORDER BY place)
          AS previous FROM places)
JOIN race USING (raceId)
WHERE place > previous + 1 AND previous > 0 ORDER BY year, round;

-- Two drivers of one car have different results.
-- If they shared the car, they have one result. If not, one of the car numbers is wrong.
-- rows: named WHERE laps > 0 AND number > 0
SELECT race, number AS car,
    group_concat(driver || ' ' || positionText || ' (' || laps || ' laps)', ', ') AS results
FROM named WHERE laps > 0 AND number > 0
GROUP BY raceId, session, number HAVING count(DISTINCT positionText) > 1
ORDER BY year DESC, round;

-- A driver has two results in one session after 1978.
-- Until 1978, drivers took over other drivers' cars, or entered two cars. After 1978, one of the
-- two rows must be wrong.
-- rows: named WHERE year > 1978
SELECT race, session, driverRef AS driver, count(*) AS rows FROM (
    SELECT session, raceId, driverId FROM classified
    UNION ALL SELECT 'qualifying', raceId, driverId FROM qualifying
    UNION ALL SELECT 'standings', raceId, driverId FROM driver_standings)
JOIN race USING (raceId) JOIN drivers USING (driverId)
WHERE year > 1978
GROUP BY raceId, session, driverId HAVING count(*) > 1 ORDER BY year, round;

-- A driver has two results in a race, one of them in a car in which another driver qualified who has none.
-- That result is probably the other driver's: if the two shared the car, each has a result.
-- rows: (SELECT 1 FROM results GROUP BY raceId, driverId HAVING count(*) > 1)
SELECT race, named.driver, named.number AS car, positionText AS place, named.laps,
    drivers.driverRef AS "qualified in it"
FROM (SELECT raceId, driverId FROM results GROUP BY raceId, driverId HAVING count(*) > 1)
JOIN named USING (raceId, driverId) JOIN qualifying AS other USING (raceId, number)
JOIN drivers ON drivers.driverId = other.driverId
WHERE session = 'race' AND (raceId, other.driverId) NOT IN (SELECT raceId, driverId FROM results)
ORDER BY year, round, named.driver;

-- A driver is classified ahead of another who drove more laps, or as many in less time.
-- The laps, the time or the place is wrong; or the time includes a penalty after the race, but
-- the place does not.
-- rows: named WHERE place NOT NULL
SELECT race, session, place, driver, laps, milliseconds,
    next AS "next driver", next_laps AS laps, next_milliseconds AS milliseconds
FROM (
    SELECT *, lead(driver) OVER results AS next, lead(laps) OVER results AS next_laps,
        lead(milliseconds) OVER results AS next_milliseconds
    FROM named WHERE place NOT NULL
    WINDOW results AS (PARTITION BY raceId, session ORDER BY place))
WHERE next_laps > laps OR next_laps = laps AND next_milliseconds < milliseconds
ORDER BY year, round, place;

-- A status says how many laps the driver is behind the winner, but the laps say otherwise.
-- The laps or the status is wrong.
-- rows: named WHERE status GLOB '+[0-9]* Lap*' OR status = 'Finished'
SELECT race, session, driver, status, named.laps, winner.laps AS "winner's laps"
FROM named JOIN winner USING (raceId, session)
WHERE (status GLOB '+[0-9]* Lap*' AND CAST(status AS INTEGER) <> winner.laps - named.laps)
    OR (status = 'Finished' AND named.laps <> winner.laps)
ORDER BY named.laps > winner.laps DESC, status = 'Finished' DESC, year DESC, round, place;

-- A driver is classified with less than 90% of the winner's laps, or not classified with as many.
-- Since 1966, 90% of the winner's laps, rounded down, are enough for a place, and fewer are not.
-- The place or the laps are wrong; or the stewards decided otherwise.
-- rows: named JOIN winner USING (raceId, session) WHERE year >= 1966 AND named.laps NOT NULL AND (place NOT NULL OR positionText IN ('R', 'N'))
SELECT race, session, driver, positionText AS place, named.laps, winner.laps AS "winner's laps",
    winner.laps * 9 / 10 AS needed, status
FROM named JOIN winner USING (raceId, session)
WHERE year >= 1966 AND (place NOT NULL OR positionText IN ('R', 'N'))
    AND (place NOT NULL) <> (named.laps >= winner.laps * 9 / 10)
ORDER BY place IS NULL, year DESC, round, place;

-- A driver drove laps, but did not start, as positionText says.
-- `E`, `F` and `W` are for drivers who were excluded, failed to qualify or withdrew. One who
-- withdrew during the race has retired (`R`).
-- rows: named WHERE positionText IN ('E', 'F', 'W')
SELECT race, session, driver, positionText, status, laps FROM named
WHERE positionText IN ('E', 'F', 'W') AND laps > 0 ORDER BY year, round, driver;

-- Cars of two constructors have the same number.
-- One of the numbers is wrong.
-- rows: numbered
SELECT race, session, numbered.number AS car,
    group_concat(driverRef || ' (' || constructorRef || ')', ', ') AS drivers
FROM numbered JOIN race USING (raceId) JOIN drivers USING (driverId)
JOIN constructors USING (constructorId)
GROUP BY raceId, session, numbered.number HAVING count(DISTINCT constructorId) > 1
ORDER BY year DESC, round, session, numbered.number;

-- A driver has a different car number or constructor in qualifying or the sprint than in the race.
-- One of the two is wrong; the driver's other races tell which. Races before 1979 are not
-- checked: spare cars often had other numbers.
-- rows: qualifying JOIN race USING (raceId) WHERE year > 1978
SELECT race, driver, other.session, other.number AS "car",
    named.number AS "car in the race",
    other_team.constructorRef AS constructor, team.constructorRef AS "in the race"
FROM named JOIN (
    SELECT 'qualifying' AS session, raceId, driverId, constructorId, number FROM qualifying
    UNION ALL SELECT 'sprint', raceId, driverId, constructorId, number FROM sprint_results
) AS other USING (raceId, driverId)
JOIN constructors AS team ON team.constructorId = named.constructorId
JOIN constructors AS other_team ON other_team.constructorId = other.constructorId
WHERE named.session = 'race' AND year > 1978
    AND (other.number <> named.number OR other.constructorId <> named.constructorId)
ORDER BY other.constructorId <> named.constructorId, year DESC, round, driver;

-- Drivers share a place.
-- Not an error: until 1961, drivers shared cars, and all drivers of a car have its place, even
-- first place.
-- rows: named WHERE place NOT NULL
-- history
SELECT race, place, number AS car, group_concat(driver, ', ') AS drivers FROM named
WHERE place NOT NULL GROUP BY raceId, session, place
HAVING count(*) > 1 AND count(DISTINCT car) = 1
ORDER BY place > 1, year DESC, round, place;

-- Checks of the grid, against itself and against qualifying.

-- The last empty place of each gap.
CREATE TEMP VIEW empty_places AS
SELECT raceId, session, group_concat(grid - 1, ', ') AS places FROM (
    SELECT *, lag(grid, 1, 0) OVER (PARTITION BY raceId, session ORDER BY grid) AS previous
    FROM (SELECT DISTINCT raceId, session, grid FROM classified WHERE grid > 0))
WHERE grid > previous + 1 GROUP BY raceId, session;

-- Qualifying that sets the grid. In 2021 and 2022, the sprint set it.
CREATE TEMP VIEW sets_grid AS
SELECT qualifying.* FROM qualifying JOIN race USING (raceId)
WHERE year NOT IN (2021, 2022)
    OR raceId NOT IN (SELECT raceId FROM sessions WHERE session = 'sprint');

-- Two cars have the same place on the grid.
-- One of the two is wrong. If a grid place is empty, it probably belongs to one of the two
-- drivers.
-- rows: named WHERE grid > 0
SELECT race, session, grid, places AS "empty places",
    group_concat(driver || ' (qualified ' || ifnull(position, '-') || ')', ', ') AS drivers
FROM named LEFT JOIN qualifying USING (raceId, driverId)
LEFT JOIN empty_places USING (raceId, session)
WHERE grid > 0 GROUP BY raceId, session, grid HAVING count(DISTINCT car) > 1
ORDER BY year DESC, round, grid;

-- Drivers who retired on the same lap have each other's places on the grid.
-- Each starts where the other one qualified: the dump has swapped their rows.
-- rows: named JOIN qualifying USING (raceId, driverId) WHERE session = 'race' AND place IS NULL AND grid > 0
-- Each step goes from a driver to the one who qualified in that driver's place on the grid, until
-- it is back at the first driver.
WITH RECURSIVE moved AS (
    SELECT raceId, race, year, round, driver, named.laps, grid, position FROM named
    JOIN qualifying USING (raceId, driverId)
    WHERE session = 'race' AND place IS NULL AND grid > 0 AND grid <> position
), chain (raceId, laps, first, last, grid, drivers, length) AS (
    SELECT raceId, laps, position, position, grid,
        driver || ' ' || grid || ' (qualified ' || position || ')', 1
    FROM moved
    UNION ALL
    SELECT raceId, laps, first, position, moved.grid,
        drivers || ', ' || driver || ' ' || moved.grid || ' (qualified ' || position || ')',
        length + 1
    FROM chain JOIN moved USING (raceId, laps)
    WHERE moved.position = chain.grid AND position > first AND length < 5
)
SELECT race, laps, drivers FROM chain JOIN race USING (raceId)
WHERE length > 1 AND grid = first ORDER BY year, round;

-- A driver starts further ahead than qualifying allows.
-- A driver gains a place on the grid only if another, who qualified ahead, starts further back
-- or not at all. The sprint weekends of 2021 and 2022 are not checked: their sprints set the
-- grid.
-- rows: sets_grid WHERE position NOT NULL AND raceId IN (SELECT raceId FROM results)
WITH starters AS (
    SELECT raceId, driverId, position, grid
    FROM sets_grid LEFT JOIN results USING (raceId, driverId))
SELECT race, driverRef AS driver, position AS qualified, grid, lost AS "fell behind" FROM (
    SELECT *, (
        SELECT count(*) FROM starters AS other
        WHERE other.raceId = starters.raceId AND other.position < starters.position
            AND (ifnull(other.grid, 0) = 0 OR other.grid > starters.grid)) AS lost
    FROM starters WHERE grid > 0)
JOIN race USING (raceId) JOIN drivers USING (driverId)
WHERE grid < position - lost
ORDER BY position - lost - grid DESC, year, round;

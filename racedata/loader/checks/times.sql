-- Checks of race times, laps, fastest laps and pit stops.

-- Race times, and the sum of the driver's lap timings if they are complete.
CREATE TEMP VIEW lap_sums AS
SELECT race, year, round, driver, milliseconds, total, milliseconds - total AS difference
FROM named JOIN timed USING (raceId, driverId)
WHERE session = 'race' AND named.laps = timed.laps AND timed.laps = times
    AND timed.laps = lastLap AND milliseconds NOT NULL;

-- Race times, and the time of the race's fastest lap.
CREATE TEMP VIEW paces AS
SELECT named.*, best
FROM named JOIN (SELECT raceId, min(duration) AS best FROM fastest GROUP BY raceId) USING (raceId)
WHERE session = 'race' AND milliseconds NOT NULL AND laps > 0;

-- A driver's number of laps differs from the number of lap timings.
-- A timing is missing or there is one too many, or the laps are wrong.
-- rows: named WHERE session = 'race' AND raceId IN (SELECT raceId FROM timed)
SELECT race, driver, named.laps, timed.laps AS timings, lastLap AS "last timed lap"
FROM named LEFT JOIN timed USING (raceId, driverId)
WHERE session = 'race' AND raceId IN (SELECT raceId FROM timed)
    AND (named.laps <> ifnull(timed.laps, 0) OR timed.laps <> lastLap)
ORDER BY abs(named.laps - ifnull(timed.laps, 0)) DESC, year, round, driver;

-- The sum of a driver's lap timings is not the race time.
-- In milliseconds. A lap timing or the race time is wrong. Differences up to 10 ms are rounding.
-- rows: lap_sums
SELECT race, driver, milliseconds AS "race time", total AS "sum of laps", difference FROM lap_sums
WHERE abs(difference) > 10 AND (difference % 5000 <> 0 OR difference < 0)
ORDER BY abs(difference) DESC, year, round, driver;

-- A race time is shorter than its laps would take at the pace of the race's fastest lap.
-- In milliseconds. The race time, the laps or the fastest lap is wrong.
-- rows: paces
SELECT race, driver, laps, milliseconds AS "race time", laps * best AS "at that pace"
FROM paces WHERE milliseconds < laps * best
ORDER BY laps * best - milliseconds DESC, year, round;

-- A driver who was lapped has a race time.
-- In milliseconds. Only drivers on the winner's lap have one. The laps are wrong, or the time.
-- rows: named WHERE milliseconds NOT NULL
SELECT race, session, driver, named.laps, winner.laps AS "winner's laps",
    milliseconds AS "race time"
FROM named JOIN winner USING (raceId, session)
WHERE milliseconds NOT NULL AND named.laps < winner.laps ORDER BY year, round, driver;

-- The winner's time has only tenths of a second, while others have thousandths.
-- In milliseconds. The time was rounded, and the gaps were added to it. In one race in a
-- hundred, this happens by chance.
-- rows: named WHERE session = 'race' AND place = 1 AND raceId IN (SELECT raceId FROM results WHERE milliseconds % 10 <> 0)
SELECT race, driver, milliseconds AS "race time",
    group_concat(later - milliseconds, ', ') AS "gaps of others"
FROM named JOIN (
    SELECT raceId, positionOrder AS nth, milliseconds AS later
    FROM results ORDER BY positionOrder) USING (raceId)
WHERE session = 'race' AND place = 1 AND nth > positionOrder
GROUP BY raceId
HAVING milliseconds % 100 = 0 AND sum((later - milliseconds) % 10 <> 0) > 0
ORDER BY year, round;

-- A driver has a pit stop or a fastest lap after the last lap driven.
-- The laps are wrong (some dumps have 0 for disqualified drivers), or the stop or lap is another
-- driver's.
-- rows: named WHERE session = 'race' AND laps NOT NULL
SELECT race, driver, positionText AS place, laps,
    max(ifnull(fastestLap, 0), ifnull(stopped, 0)) AS "lap of the stop or fastest lap"
FROM named LEFT JOIN (
    SELECT raceId, driverId, max(lap) AS stopped FROM pit_stops GROUP BY raceId, driverId)
    USING (raceId, driverId)
WHERE session = 'race' AND (fastestLap > laps OR stopped > laps)
ORDER BY max(ifnull(fastestLap, 0), ifnull(stopped, 0)) - laps DESC, year, round;

-- A driver's fastest lap is not the fastest of the lap timings.
-- One of the two is wrong; or the faster lap was deleted, or ended in the pit lane.
-- rows: fastest JOIN timed USING (raceId, driverId)
SELECT race, driver, fastestLap AS lap, fastestLapTime AS time, best.lap AS "timed lap",
    best.time AS "timing"
FROM fastest JOIN timed USING (raceId, driverId)
JOIN lap_times AS best USING (raceId, driverId)
WHERE milliseconds(best.time) = timed.fastest
GROUP BY raceId, driverId
HAVING max(best.time = fastestLapTime AND best.lap = ifnull(fastestLap, best.lap)) = 0
ORDER BY year DESC, round, driver;

-- A driver has lap timings, but no fastest lap, and others have one.
-- The dump lacks it. Its time and number are in the lap timings.
-- rows: named JOIN timed USING (raceId, driverId) WHERE session = 'race' AND raceId IN (SELECT raceId FROM fastest)
SELECT race, driver, positionText AS place, timed.laps AS timings FROM named
JOIN timed USING (raceId, driverId)
WHERE session = 'race' AND raceId IN (SELECT raceId FROM fastest) AND timed.laps > 1
    AND NOT EXISTS (
        SELECT 1 FROM fastest
        WHERE fastest.raceId = named.raceId AND fastest.driverId = named.driverId)
ORDER BY year DESC, round, driver;

-- The fastest laps of two drivers have the same rank, or the slower lap has the better rank.
-- A rank is wrong, or the fastest lap is another driver's. Ranks are known from 2004 on.
-- rows: fastest WHERE rank > 0 AND year >= 2004
SELECT race, driver, rank, fastestLapTime AS time, next AS "next driver",
    next_rank AS rank, next_time AS time
FROM (
    SELECT *, lead(driver) OVER ranks AS next, lead(rank) OVER ranks AS next_rank,
        lead(fastestLapTime) OVER ranks AS next_time,
        lead(duration) OVER ranks AS next_duration
    FROM fastest WHERE rank > 0 AND year >= 2004
    WINDOW ranks AS (PARTITION BY raceId ORDER BY rank, duration))
WHERE next_rank = rank OR next_duration < duration ORDER BY year, round, rank;

-- The speed and the time of a fastest lap give a different lap length from the others.
-- In metres. The speed or the time is wrong. A wrong speed or time changes the length by far
-- more than rounding.
-- rows: fastest WHERE metres NOT NULL
WITH median AS (
    SELECT raceId, metres AS length FROM (
        SELECT raceId, metres,
            row_number() OVER (PARTITION BY raceId ORDER BY metres) AS nth,
            count(*) OVER (PARTITION BY raceId) AS drivers
        FROM fastest WHERE metres NOT NULL)
    WHERE nth = (drivers + 1) / 2)
SELECT race, driver, fastestLapTime AS time, fastestLapSpeed AS speed,
    round(metres) AS length, round(median.length) AS "of others"
FROM fastest JOIN median USING (raceId) WHERE abs(metres / length - 1) > 0.002
ORDER BY abs(metres / length - 1) DESC, year, round;

-- A driver's pit stops are not numbered 1, 2, 3, …
-- A stop is missing.
-- rows: pit_stops
SELECT race, driverRef AS driver, count(*) AS stops, max(stop) AS "last stop"
FROM pit_stops JOIN race USING (raceId) JOIN drivers USING (driverId)
GROUP BY raceId, driverId HAVING count(*) <> max(stop) ORDER BY year, round;

-- Two drivers entered the pit lane in the same second and left it after the same time.
-- Durations are in milliseconds: one of the two stops is another driver's or has the wrong time.
-- rows: pit_stops WHERE time NOT NULL AND milliseconds NOT NULL
SELECT race, pit_stops.time, milliseconds,
    group_concat(driverRef || ' (stop ' || stop || ', lap ' || lap || ')', ', ') AS stops
FROM pit_stops JOIN race USING (raceId) JOIN drivers USING (driverId)
WHERE pit_stops.time NOT NULL AND milliseconds NOT NULL
GROUP BY raceId, pit_stops.time, milliseconds HAVING count(*) > 1 ORDER BY year DESC, round;

-- Most drivers have a pit stop on a lap and on the next one, too.
-- The safety car led the field through the pit lane: sources differ in whether such drives are
-- stops. Stops of a minute or more are not counted: those were under a red flag.
-- rows: pit_stops WHERE milliseconds < 60000
SELECT race, pit_stops.lap, count(*) AS drivers, min(pit_stops.milliseconds) AS shortest,
    max(pit_stops.milliseconds) AS longest
FROM pit_stops JOIN race USING (raceId)
JOIN pit_stops AS next ON next.raceId = pit_stops.raceId AND next.driverId = pit_stops.driverId
    AND next.lap = pit_stops.lap + 1
WHERE pit_stops.milliseconds < 60000 AND next.milliseconds < 60000
GROUP BY race.raceId, pit_stops.lap
HAVING count(*) * 2 > (SELECT count(DISTINCT driverId) FROM results
    WHERE results.raceId = race.raceId AND results.laps >= pit_stops.lap)
ORDER BY year DESC, round, pit_stops.lap;

-- The race time is longer than the sum of the lap timings, by a multiple of five seconds.
-- In milliseconds. Probably not an error, but a time penalty after the race.
-- rows: lap_sums
-- history
SELECT race, driver, milliseconds AS "race time", total AS "sum of laps", difference FROM lap_sums
WHERE difference > 0 AND difference % 5000 = 0 ORDER BY difference DESC, year, round, driver;

-- The winner's time is more than one and a half times what the laps would take at the pace of the fastest lap.
-- In milliseconds. Probably not an error: the race was interrupted, or it rained. Otherwise the
-- time has a wrong hour, or the laps are wrong.
-- rows: paces WHERE place = 1
-- history
SELECT race, driver, laps, milliseconds AS "race time", laps * best AS "at that pace"
FROM paces WHERE place = 1 AND milliseconds > 1.5 * laps * best
ORDER BY 1.0 * milliseconds / laps / best DESC;

-- Checks of the dates and times of races and sessions.

-- When qualifying and the race begin, on weekends without a sprint.
CREATE TEMP VIEW qualifying_start AS
SELECT race, race.year, race.round, sessions.date || ' ' || sessions.time AS qualifying,
    races.date || ' ' || races.time AS start
FROM sessions JOIN races USING (raceId) JOIN race USING (raceId)
WHERE session = 'quali' AND sessions.time NOT NULL AND races.time NOT NULL
    AND raceId NOT IN (SELECT raceId FROM sessions WHERE session = 'sprint');

-- A session is not before its race.
-- A date or time is wrong; times are in UTC.
-- rows: sessions WHERE date NOT NULL
SELECT race,
    CASE session
        WHEN 'fp1' THEN 'practice 1' WHEN 'fp2' THEN 'practice 2' WHEN 'fp3' THEN 'practice 3'
        WHEN 'sq' THEN 'sprint qualifying' WHEN 'quali' THEN 'qualifying' ELSE session
        END AS session,
    sessions.date || ifnull(' ' || sessions.time, '') AS "session at",
    races.date || ifnull(' ' || races.time, '') AS "race at"
FROM sessions JOIN races USING (raceId) JOIN race USING (raceId)
WHERE sessions.date > races.date
    OR (sessions.date = races.date AND sessions.time >= races.time)
ORDER BY races.year, races.round;

-- Qualifying on a weekend without a sprint is more than 30 hours before the race.
-- Times are in UTC. One of the two may have the local date.
-- rows: qualifying_start
SELECT race, qualifying AS "qualifying at", start AS "race at" FROM qualifying_start
WHERE julianday(start) - julianday(qualifying) > 30 / 24.0 ORDER BY year, round;

-- A race is not later than the race of the previous round.
-- A date or the order of rounds is wrong.
-- rows: races
SELECT race, date, previous AS "race before" FROM (
    SELECT raceId, date, lag(date) OVER (PARTITION BY year ORDER BY round) AS previous
    FROM races)
JOIN race USING (raceId) WHERE date <= previous ORDER BY year, round;

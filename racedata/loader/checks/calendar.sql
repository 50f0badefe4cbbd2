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

-- The time zones of circuits, by their names in the IANA database: of those with races since 2005,
-- because no source has start times from before.
CREATE TEMP TABLE zones (circuitRef TEXT PRIMARY KEY, zone TEXT NOT NULL);
INSERT INTO zones VALUES
    ('albert_park', 'Australia/Melbourne'), ('americas', 'America/Chicago'),
    ('bahrain', 'Asia/Bahrain'), ('baku', 'Asia/Baku'), ('buddh', 'Asia/Kolkata'),
    ('catalunya', 'Europe/Madrid'), ('fuji', 'Asia/Tokyo'), ('hockenheimring', 'Europe/Berlin'),
    ('hungaroring', 'Europe/Budapest'), ('imola', 'Europe/Rome'),
    ('indianapolis', 'America/Indiana/Indianapolis'), ('interlagos', 'America/Sao_Paulo'),
    ('istanbul', 'Europe/Istanbul'), ('jeddah', 'Asia/Riyadh'), ('losail', 'Asia/Qatar'),
    ('madring', 'Europe/Madrid'), ('magny_cours', 'Europe/Paris'), ('marina_bay', 'Asia/Singapore'),
    ('miami', 'America/New_York'), ('monaco', 'Europe/Monaco'), ('monza', 'Europe/Rome'),
    ('mugello', 'Europe/Rome'), ('nurburgring', 'Europe/Berlin'), ('portimao', 'Europe/Lisbon'),
    ('red_bull_ring', 'Europe/Vienna'), ('ricard', 'Europe/Paris'),
    ('rodriguez', 'America/Mexico_City'), ('sepang', 'Asia/Kuala_Lumpur'),
    ('shanghai', 'Asia/Shanghai'), ('silverstone', 'Europe/London'), ('sochi', 'Europe/Moscow'),
    ('spa', 'Europe/Brussels'), ('suzuka', 'Asia/Tokyo'), ('valencia', 'Europe/Madrid'),
    ('vegas', 'America/Los_Angeles'), ('villeneuve', 'America/Toronto'),
    ('yas_marina', 'Asia/Dubai'), ('yeongam', 'Asia/Seoul'), ('zandvoort', 'Europe/Amsterdam');

-- When races start, by the clock of the circuit. `nth` numbers the races of a circuit.
CREATE TEMP TABLE started AS
SELECT *, strftime('%s', local) AS seconds,
    row_number() OVER (PARTITION BY circuit ORDER BY year, round) AS nth
FROM (
    SELECT raceId, race, races.year, races.round, circuitRef AS circuit, time,
        local_time(date, time, zone) AS local
    FROM races JOIN race USING (raceId) JOIN circuits USING (circuitId)
    JOIN zones USING (circuitRef)
    WHERE time NOT NULL);

-- The first pit stop of each race, and when its lap would end at the pace of the fastest lap.
CREATE TEMP VIEW first_stops AS
SELECT started.*, stopped, lap,
    CAST(strftime('%s', stopped) - seconds - lap * best / 1000.0 AS INTEGER) / 60 AS late
FROM started JOIN (
    SELECT raceId, min(time) AS stopped, lap FROM pit_stops
    WHERE time NOT NULL AND lap NOT NULL GROUP BY raceId) USING (raceId)
JOIN (SELECT raceId, min(duration) AS best FROM fastest GROUP BY raceId) USING (raceId);

-- A race starts before noon or after 22:00, by the clock of its circuit.
-- Times are in UTC. This one may be local, or in another zone.
-- rows: started
SELECT race, circuit, time AS "in UTC", local FROM started
WHERE local NOT BETWEEN '12:00:00' AND '22:00:00' ORDER BY year, round;

-- A race starts an hour or more earlier or later than those at its circuit before and after it.
-- By the clock of the circuit. It compares the two races there before this one and the two after
-- it, within five years: at most one of them starts within an hour of its time. The time is wrong,
-- or local; or the circuit tried another hour.
-- rows: started
SELECT this.race, this.circuit, this.time AS "in UTC", this.local,
    group_concat(other.year || ' ' || substr(other.local, 1, 5), ', ') AS "others there"
FROM started AS this JOIN started AS other
    ON other.circuit = this.circuit AND abs(other.nth - this.nth) BETWEEN 1 AND 2
        AND abs(other.year - this.year) <= 5
GROUP BY this.raceId
HAVING sum(abs(other.seconds - this.seconds) < 3600) < 2
    AND sum(abs(other.seconds - this.seconds) >= 3600) > 1
ORDER BY this.year, this.round;

-- The first pit stop is before the start, or more than half an hour late for its lap.
-- In minutes, by the clock of the circuit, with all laps as fast as the fastest. The start time is
-- wrong; or the start was delayed, or the race interrupted.
-- rows: first_stops
SELECT race, circuit, time AS "in UTC", local, stopped AS "first stop", lap, late AS "minutes late"
FROM first_stops WHERE stopped < local OR late > 30 ORDER BY year, round;

-- A dump in Jolpica's own layout: a file per table of its database, linked by ids. See sections.py.

-- [tables] The files, in the order of loading: each comes after those that it refers to. An empty
-- field is NULL.

CREATE TEMP TABLE season (
    id INTEGER PRIMARY KEY, year INTEGER YEAR NOT NULL UNIQUE, wikipedia TEXT
);

CREATE TEMP TABLE circuit (
    id INTEGER PRIMARY KEY, reference TEXT REFERENCE NOT NULL UNIQUE COLLATE NOCASE,
    name TEXT NOT NULL, locality TEXT, country TEXT, latitude TEXT DEGREES,
    longitude TEXT DEGREES, altitude TEXT NUMBER, wikipedia TEXT, api_id TEXT
);

CREATE TEMP TABLE team (
    id INTEGER PRIMARY KEY, reference TEXT REFERENCE UNIQUE COLLATE NOCASE, name TEXT NOT NULL,
    nationality TEXT, wikipedia TEXT, api_id TEXT
);

CREATE TEMP TABLE driver (
    id INTEGER PRIMARY KEY, reference TEXT REFERENCE UNIQUE COLLATE NOCASE,
    forename TEXT NOT NULL, surname TEXT NOT NULL, permanent_car_number INTEGER,
    abbreviation TEXT, date_of_birth TEXT DAY, nationality TEXT, wikipedia TEXT,
    api_id TEXT
);

CREATE TEMP TABLE round (
    id INTEGER PRIMARY KEY, season_id INTEGER NOT NULL REFERENCES season,
    number INTEGER ROUND_NUMBER, circuit_id INTEGER NOT NULL REFERENCES circuit, name TEXT NOT NULL,
    is_cancelled INTEGER FLAG, wikipedia TEXT
);

CREATE UNIQUE INDEX temp.round_number ON round (season_id, number) WHERE is_cancelled IS NOT 1;

CREATE TEMP TABLE session (
    id INTEGER PRIMARY KEY, round_id INTEGER NOT NULL REFERENCES round, type TEXT NOT NULL,
    number INTEGER, timestamp TEXT MOMENT, has_time_data INTEGER FLAG
);

CREATE UNIQUE INDEX temp.session_type ON session (round_id, type)
WHERE type NOT IN ('QA', 'QB', 'QO');

CREATE TEMP TABLE teamdriver (
    id INTEGER PRIMARY KEY, driver_id INTEGER NOT NULL REFERENCES driver,
    team_id INTEGER NOT NULL REFERENCES team
);

CREATE TEMP TABLE roundentry (
    id INTEGER PRIMARY KEY, round_id INTEGER NOT NULL REFERENCES round,
    team_driver_id INTEGER NOT NULL REFERENCES teamdriver, car_number INTEGER
);

CREATE TEMP TABLE sessionentry (
    id INTEGER PRIMARY KEY, round_entry_id INTEGER NOT NULL REFERENCES roundentry,
    session_id INTEGER NOT NULL REFERENCES session, position INTEGER, is_classified INTEGER FLAG,
    status INTEGER, detail TEXT, points TEXT SCORE, grid INTEGER, laps_completed INTEGER,
    time INTEGER CLOCK_DURATION, fastest_lap_rank INTEGER,
    UNIQUE (session_id, round_entry_id)
);

CREATE TEMP TABLE lap (
    id INTEGER PRIMARY KEY, session_entry_id INTEGER NOT NULL REFERENCES sessionentry,
    number INTEGER, position INTEGER, time TEXT CLOCK_LAP_TIME, average_speed TEXT SPEED,
    is_entry_fastest_lap INTEGER FLAG, is_deleted INTEGER FLAG
);

CREATE TEMP TABLE pitstop (
    id INTEGER PRIMARY KEY, session_entry_id INTEGER NOT NULL REFERENCES sessionentry,
    number INTEGER, lap_id INTEGER REFERENCES lap,
    local_timestamp TEXT TIME_WITH_FRACTION, duration INTEGER CLOCK_DURATION,
    UNIQUE (session_entry_id, number)
);

CREATE TEMP TABLE driverchampionship (
    id INTEGER PRIMARY KEY, round_id INTEGER REFERENCES round,
    driver_id INTEGER NOT NULL REFERENCES driver, points TEXT SCORE, position INTEGER,
    win_count INTEGER, is_eligible INTEGER FLAG, adjustment_type INTEGER,
    UNIQUE (round_id, driver_id)
);

CREATE TEMP TABLE teamchampionship (
    id INTEGER PRIMARY KEY, round_id INTEGER REFERENCES round,
    team_id INTEGER NOT NULL REFERENCES team, points TEXT SCORE, position INTEGER,
    win_count INTEGER, is_eligible INTEGER FLAG, adjustment_type INTEGER,
    UNIQUE (round_id, team_id)
);

-- [lists] What the Stage needs before the records.

INSERT INTO stage.seasons (year, url) SELECT year, wikipedia FROM season;

INSERT INTO stage.circuits (circuitId, circuitRef, name, location, country, lat, lng, alt, url)
SELECT id, reference, name, locality, country, latitude, longitude, altitude, wikipedia
FROM circuit;

-- No address can name a constructor or driver without a reference.
INSERT INTO stage.constructors (constructorId, constructorRef, name, nationality, url)
SELECT id, reference, name, nationality, wikipedia FROM team WHERE reference NOT NULL;

INSERT INTO stage.drivers (
    driverId, driverRef, number, code, forename, surname, dob, nationality, url)
SELECT id, reference, permanent_car_number, abbreviation, forename, surname, date_of_birth,
    nationality, wikipedia
FROM driver WHERE reference NOT NULL;

INSERT OR IGNORE INTO stage.ids (kind, reference, source, id)
SELECT 'circuit', reference, '', api_id FROM circuit WHERE api_id NOT NULL
UNION ALL
SELECT 'constructor', reference, '', api_id FROM team WHERE reference NOT NULL AND api_id NOT NULL
UNION ALL
SELECT 'driver', reference, '', api_id FROM driver WHERE reference NOT NULL AND api_id NOT NULL;

-- The date is the session's, in UTC; `round.date` is local.
CREATE TEMP VIEW start AS
SELECT round_id, type, substr(timestamp, 1, 10) AS date,
    CASE WHEN has_time_data THEN substr(timestamp, 12) END AS time
FROM session WHERE timestamp NOT NULL;

-- A cancelled round, or one without a number, is no race.
INSERT INTO stage.races (raceId, year, round, circuitId, name, url, date, time)
SELECT round.id, year, round.number, circuit_id, name, round.wikipedia, date, time
FROM round JOIN season ON season.id = season_id JOIN start ON round_id = round.id
WHERE is_cancelled IS NOT 1 AND round.number NOT NULL AND type = 'R';

INSERT INTO stage.sessions (raceId, session, date, time)
WITH names (type, session) AS (
    VALUES ('FP1', 'fp1'), ('FP2', 'fp2'), ('FP3', 'fp3'),
        ('Q1', 'quali'), ('SR', 'sprint'), ('SQ1', 'sq'))
SELECT raceId, session, start.date, start.time
FROM start JOIN names USING (type) JOIN stage.races ON raceId = round_id;

CREATE TEMP TABLE status_name (status INTEGER PRIMARY KEY, name TEXT NOT NULL);

-- The status of an entry without a detail.
INSERT INTO status_name VALUES
    (0, 'Finished'), (1, 'Lapped'), (10, 'Accident'), (11, 'Retired'), (20, 'Disqualified'),
    (30, 'Did not start'), (40, 'Did not qualify'), (41, 'Did not prequalify');

-- A driver in a session of a race, if both are in the Stage.
CREATE TEMP VIEW entry AS
SELECT sessionentry.*, type, session.number AS part, raceId, driverId, constructorId,
    car_number, ifnull(detail, status_name.name) AS status_text
FROM sessionentry JOIN session ON session.id = session_id
JOIN stage.races ON raceId = session.round_id
JOIN roundentry ON roundentry.id = round_entry_id
JOIN teamdriver ON teamdriver.id = team_driver_id
JOIN stage.drivers ON driverId = driver_id
JOIN stage.constructors ON constructorId = team_id
LEFT JOIN status_name ON status_name.status = sessionentry.status;

-- An entry should have only one fastest lap. If it has several, SQLite reads all columns from the
-- one with the minimum.
CREATE TEMP VIEW fastest AS
SELECT session_entry_id, number AS fastest_lap, time AS fastest_time,
    average_speed, is_deleted, min((is_deleted IS 1) || printf('%12s', time))
FROM lap WHERE is_entry_fastest_lap GROUP BY session_entry_id;

-- [records] What fills the tables of records.

CREATE TEMP VIEW result AS
SELECT id, type, raceId, driverId, constructorId, car_number, grid,
    CASE WHEN is_classified THEN position
        WHEN entry.status = 20 THEN 'D'
        WHEN entry.status = 30 THEN 'W'
        WHEN entry.status IN (40, 41) THEN 'F'
        WHEN coalesce(is_classified, entry.status) NOT NULL THEN 'R' END AS text,
    position, points, laps_completed, CASE WHEN is_classified THEN time END AS time,
    fastest_lap, fastest_lap_rank, fastest_time, average_speed, statusId
FROM entry LEFT JOIN fastest ON session_entry_id = id
LEFT JOIN stage.status ON stage.status.status = status_text COLLATE NOCASE
WHERE position NOT NULL;

INSERT INTO stage.results (
    resultId, raceId, driverId, constructorId, number, grid, positionText, positionOrder, points,
    laps, milliseconds, fastestLap, rank, fastestLapTime, fastestLapSpeed, statusId)
SELECT id, raceId, driverId, constructorId, car_number, grid, text, position, points,
    laps_completed, time, fastest_lap, fastest_lap_rank, fastest_time, average_speed, statusId
FROM result WHERE type = 'R';

-- Entries without a result, in races that have results.
INSERT INTO stage.entries (raceId, driverId, constructorId)
SELECT raceId, driverId, constructorId
FROM roundentry JOIN teamdriver ON teamdriver.id = team_driver_id
JOIN stage.drivers ON driverId = driver_id
JOIN stage.constructors ON constructorId = team_id
JOIN (SELECT DISTINCT raceId FROM stage.results) ON raceId = round_id
EXCEPT SELECT raceId, driverId, constructorId FROM stage.results;

INSERT INTO stage.sprint_results (
    resultId, raceId, driverId, constructorId, number, grid, positionText, positionOrder, points,
    laps, milliseconds, fastestLap, rank, fastestLapTime, statusId)
SELECT id, raceId, driverId, constructorId, car_number, grid, text, position, points,
    laps_completed, time, fastest_lap, fastest_lap_rank, fastest_time, statusId
FROM result WHERE type = 'SR';

-- Q1 to Q3 since 2006, and SQ1 to SQ3. Of the older kinds QA, QB, QO there are one or two, which
-- fill q1, then q2. The position is from the last one.
CREATE TEMP VIEW qualified AS
SELECT kind, round_entry_id, raceId, driverId, constructorId, car_number,
    max(last_position) AS position,
    max(best) FILTER (WHERE type IN ('Q1', 'SQ1') OR older AND nth = 1) AS q1,
    max(best) FILTER (WHERE type IN ('Q2', 'SQ2') OR older AND nth = 2) AS q2,
    max(best) FILTER (WHERE type IN ('Q3', 'SQ3')) AS q3
FROM (
    SELECT *, CASE WHEN is_deleted IS NOT 1 THEN fastest_time END AS best,
        row_number() OVER (
            PARTITION BY kind, round_entry_id ORDER BY part NULLS LAST, session_id) AS nth,
        first_value(position) OVER (
            PARTITION BY kind, round_entry_id ORDER BY part DESC NULLS FIRST, session_id DESC
        ) AS last_position
    FROM entry LEFT JOIN fastest ON session_entry_id = id
    JOIN (SELECT column1 AS type, column2 AS kind, column3 AS older FROM (VALUES
        ('Q1', 'Q', 0), ('Q2', 'Q', 0), ('Q3', 'Q', 0), ('QA', 'Q', 1), ('QB', 'Q', 1),
        ('QO', 'Q', 1), ('SQ1', 'SQ', 0), ('SQ2', 'SQ', 0), ('SQ3', 'SQ', 0))) USING (type)
    WHERE position NOT NULL
)
GROUP BY kind, round_entry_id;

INSERT INTO stage.qualifying (
    qualifyId, raceId, driverId, constructorId, number, position, q1, q2, q3)
SELECT round_entry_id, raceId, driverId, constructorId, car_number, position, q1, q2, q3
FROM qualified WHERE kind = 'Q';

INSERT INTO stage.sprint_qualifying (
    sprintQualifyId, raceId, driverId, constructorId, number, position, q1, q2, q3)
SELECT round_entry_id, raceId, driverId, constructorId, car_number, position, q1, q2, q3
FROM qualified WHERE kind = 'SQ';

-- A fastest lap without a position is not from a list of all laps.
CREATE TEMP VIEW listed AS
SELECT raceId, driverId, lap.number, lap.position, lap.time
FROM lap JOIN entry ON entry.id = session_entry_id
WHERE type = 'R' AND lap.number NOT NULL
    AND (lap.position NOT NULL OR is_entry_fastest_lap IS NOT 1);

-- A race with only one lap per driver, unless it is lap 1, lacks the others.
INSERT INTO stage.lap_times (raceId, driverId, lap, position, time)
SELECT * FROM listed WHERE raceId IN (
    SELECT raceId FROM listed GROUP BY raceId
    HAVING count(*) > count(DISTINCT driverId) OR max(number) = 1);

INSERT INTO stage.pit_stops (raceId, driverId, stop, lap, time, milliseconds)
SELECT raceId, driverId, pitstop.number, lap.number, local_timestamp, duration
FROM pitstop JOIN entry ON entry.id = pitstop.session_entry_id
LEFT JOIN lap ON lap.id = lap_id
WHERE type = 'R' AND pitstop.number NOT NULL;

-- Rows without a round, which are standings after a sprint, are left out.
INSERT INTO stage.driver_standings (
    driverStandingsId, raceId, driverId, points, position, positionText, wins)
SELECT id, raceId, driverId, points, position,
    CASE WHEN adjustment_type = 101 THEN 'D' WHEN adjustment_type = 102 THEN 'E'
        WHEN is_eligible = 0 THEN '-' ELSE position END,
    win_count
FROM driverchampionship JOIN stage.races ON raceId = round_id
JOIN stage.drivers ON driverId = driver_id;

INSERT INTO stage.constructor_standings (
    constructorStandingsId, raceId, constructorId, points, position, positionText, wins)
SELECT id, raceId, constructorId, points, position,
    CASE WHEN adjustment_type = 101 THEN 'D' WHEN adjustment_type = 102 THEN 'E'
        WHEN is_eligible = 0 THEN '-' ELSE position END,
    win_count
FROM teamchampionship JOIN stage.races ON raceId = round_id
JOIN stage.constructors ON constructorId = team_id;

-- [statuses] The texts of statuses, and numbers that order new ones.

SELECT status_text, id FROM entry WHERE type IN ('R', 'SR') AND status_text NOT NULL;

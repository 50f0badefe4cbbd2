-- A release of f1db: one file per table, linked by ids such as `max-verstappen`. See sections.py.
-- Errors of other sources do not belong here: fill.py gives a car the constructor of the results
-- that count.

-- [own] What the project knows of ids: each row is an id that does not follow the rules below. A
-- constructor may have several rows, with the conditions that a result must fit. An empty one fits
-- all; if several rows fit, the first one counts.

CREATE TEMP TABLE f1db_ids (
    kind TEXT NOT NULL, id TEXT NOT NULL, engine TEXT, first_year INTEGER, last_year INTEGER,
    first_round INTEGER, last_round INTEGER, driver TEXT, reference TEXT NOT NULL, name TEXT
);

-- [tables] The files, in the order of loading: each comes after those that it refers to. An id that
-- is a text becomes the number of its row. An empty field is NULL.

CREATE TEMP TABLE f1db_countries (
    id TEXT HYPHENATED_ID NOT NULL UNIQUE, name TEXT NOT NULL, demonym TEXT
);

CREATE TEMP TABLE f1db_grands_prix (id TEXT HYPHENATED_ID NOT NULL UNIQUE, fullName TEXT NOT NULL);

CREATE TEMP TABLE f1db_circuits (
    id TEXT HYPHENATED_ID NOT NULL UNIQUE, fullName TEXT NOT NULL, placeName TEXT,
    countryId INTEGER REFERENCES f1db_countries, latitude TEXT NUMBER, longitude TEXT NUMBER
);

CREATE TEMP TABLE f1db_constructors (
    id TEXT HYPHENATED_ID NOT NULL UNIQUE, name TEXT NOT NULL,
    countryId INTEGER REFERENCES f1db_countries
);

CREATE TEMP TABLE f1db_drivers (
    id TEXT HYPHENATED_ID NOT NULL UNIQUE, name TEXT NOT NULL, firstName TEXT NOT NULL,
    lastName TEXT NOT NULL, abbreviation TEXT, permanentNumber INTEGER, dateOfBirth TEXT DAY,
    nationalityCountryId INTEGER REFERENCES f1db_countries
);

CREATE TEMP TABLE f1db_races (
    id INTEGER PRIMARY KEY, year INTEGER YEAR NOT NULL, round INTEGER ROUND_NUMBER NOT NULL,
    date TEXT DAY NOT NULL, time TEXT HOUR_AND_MINUTE,
    grandPrixId INTEGER NOT NULL REFERENCES f1db_grands_prix,
    circuitId INTEGER NOT NULL REFERENCES f1db_circuits,
    freePractice1Date TEXT DAY, freePractice1Time TEXT HOUR_AND_MINUTE,
    freePractice2Date TEXT DAY, freePractice2Time TEXT HOUR_AND_MINUTE,
    freePractice3Date TEXT DAY, freePractice3Time TEXT HOUR_AND_MINUTE,
    qualifyingDate TEXT DAY, qualifyingTime TEXT HOUR_AND_MINUTE,
    sprintRaceDate TEXT DAY, sprintRaceTime TEXT HOUR_AND_MINUTE,
    sprintQualifyingDate TEXT DAY, sprintQualifyingTime TEXT HOUR_AND_MINUTE,
    UNIQUE (year, round)
);

CREATE TEMP TABLE f1db_races_race_results (
    raceId INTEGER NOT NULL REFERENCES f1db_races, positionDisplayOrder INTEGER NOT NULL,
    positionNumber INTEGER, positionText TEXT POSITION_OR_REASON NOT NULL, driverNumber INTEGER,
    driverId INTEGER NOT NULL REFERENCES f1db_drivers,
    constructorId INTEGER NOT NULL REFERENCES f1db_constructors,
    engineManufacturerId TEXT HYPHENATED_ID,
    sharedCar TEXT TRUE_OR_FALSE, laps INTEGER, timeMillis INTEGER, gapLaps INTEGER,
    reasonRetired TEXT, points TEXT SCORE, gridPositionNumber INTEGER,
    UNIQUE (raceId, driverId, driverNumber)
);

CREATE TEMP TABLE f1db_races_starting_grid_positions (
    raceId INTEGER NOT NULL REFERENCES f1db_races, positionNumber INTEGER, driverNumber INTEGER,
    driverId INTEGER NOT NULL REFERENCES f1db_drivers,
    UNIQUE (raceId, driverId, driverNumber)
);

CREATE TEMP TABLE f1db_races_sprint_race_results (
    raceId INTEGER NOT NULL REFERENCES f1db_races, positionDisplayOrder INTEGER NOT NULL,
    positionNumber INTEGER, positionText TEXT POSITION_OR_REASON NOT NULL, driverNumber INTEGER,
    driverId INTEGER NOT NULL REFERENCES f1db_drivers,
    constructorId INTEGER NOT NULL REFERENCES f1db_constructors,
    engineManufacturerId TEXT HYPHENATED_ID,
    sharedCar TEXT TRUE_OR_FALSE, laps INTEGER, timeMillis INTEGER, gapLaps INTEGER,
    reasonRetired TEXT, points TEXT SCORE, gridPositionNumber INTEGER,
    UNIQUE (raceId, driverId, driverNumber)
);

CREATE TEMP TABLE f1db_races_qualifying_results (
    raceId INTEGER NOT NULL REFERENCES f1db_races, positionDisplayOrder INTEGER NOT NULL,
    positionNumber INTEGER, positionText TEXT POSITION_OR_REASON NOT NULL, driverNumber INTEGER,
    driverId INTEGER NOT NULL REFERENCES f1db_drivers,
    constructorId INTEGER NOT NULL REFERENCES f1db_constructors,
    engineManufacturerId TEXT HYPHENATED_ID,
    time TEXT SHORT_LAP_TIME, q1 TEXT SHORT_LAP_TIME, q2 TEXT SHORT_LAP_TIME, q3 TEXT SHORT_LAP_TIME
);

CREATE TEMP TABLE f1db_races_sprint_qualifying_results (
    raceId INTEGER NOT NULL REFERENCES f1db_races, positionDisplayOrder INTEGER NOT NULL,
    positionNumber INTEGER, positionText TEXT POSITION_OR_REASON NOT NULL, driverNumber INTEGER,
    driverId INTEGER NOT NULL REFERENCES f1db_drivers,
    constructorId INTEGER NOT NULL REFERENCES f1db_constructors,
    engineManufacturerId TEXT HYPHENATED_ID,
    time TEXT SHORT_LAP_TIME, q1 TEXT SHORT_LAP_TIME, q2 TEXT SHORT_LAP_TIME, q3 TEXT SHORT_LAP_TIME
);

-- In a qualifying, a driver who was disqualified may have a second row that says only that, as in
-- 2023/10.
CREATE UNIQUE INDEX temp.f1db_qualifying_driver
ON f1db_races_qualifying_results (raceId, driverId) WHERE positionText <> 'DSQ';

CREATE UNIQUE INDEX temp.f1db_sprint_qualifying_driver
ON f1db_races_sprint_qualifying_results (raceId, driverId) WHERE positionText <> 'DSQ';

CREATE TEMP TABLE f1db_races_free_practice_1_results (
    raceId INTEGER NOT NULL REFERENCES f1db_races, positionNumber INTEGER, driverNumber INTEGER,
    driverId INTEGER NOT NULL REFERENCES f1db_drivers,
    constructorId INTEGER NOT NULL REFERENCES f1db_constructors,
    engineManufacturerId TEXT HYPHENATED_ID,
    laps INTEGER, timeMillis INTEGER, UNIQUE (raceId, driverId)
);

CREATE TEMP TABLE f1db_races_free_practice_2_results (
    raceId INTEGER NOT NULL REFERENCES f1db_races, positionNumber INTEGER, driverNumber INTEGER,
    driverId INTEGER NOT NULL REFERENCES f1db_drivers,
    constructorId INTEGER NOT NULL REFERENCES f1db_constructors,
    engineManufacturerId TEXT HYPHENATED_ID,
    laps INTEGER, timeMillis INTEGER, UNIQUE (raceId, driverId)
);

CREATE TEMP TABLE f1db_races_free_practice_3_results (
    raceId INTEGER NOT NULL REFERENCES f1db_races, positionNumber INTEGER, driverNumber INTEGER,
    driverId INTEGER NOT NULL REFERENCES f1db_drivers,
    constructorId INTEGER NOT NULL REFERENCES f1db_constructors,
    engineManufacturerId TEXT HYPHENATED_ID,
    laps INTEGER, timeMillis INTEGER, UNIQUE (raceId, driverId)
);

CREATE TEMP TABLE f1db_races_free_practice_4_results (
    raceId INTEGER NOT NULL REFERENCES f1db_races, positionNumber INTEGER, driverNumber INTEGER,
    driverId INTEGER NOT NULL REFERENCES f1db_drivers,
    constructorId INTEGER NOT NULL REFERENCES f1db_constructors,
    engineManufacturerId TEXT HYPHENATED_ID,
    laps INTEGER, timeMillis INTEGER, UNIQUE (raceId, driverId)
);

CREATE TEMP TABLE f1db_races_fastest_laps (
    raceId INTEGER NOT NULL REFERENCES f1db_races, positionDisplayOrder INTEGER NOT NULL,
    positionNumber INTEGER, positionText TEXT POSITION_OR_REASON NOT NULL, driverNumber INTEGER,
    driverId INTEGER NOT NULL REFERENCES f1db_drivers, lap INTEGER, time TEXT SHORT_LAP_TIME,
    UNIQUE (raceId, driverId)
);

CREATE TEMP TABLE f1db_races_pit_stops (
    raceId INTEGER NOT NULL REFERENCES f1db_races,
    driverId INTEGER NOT NULL REFERENCES f1db_drivers, stop INTEGER FROM_ONE NOT NULL, lap INTEGER,
    timeMillis INTEGER, UNIQUE (raceId, driverId, stop)
);

CREATE TEMP TABLE f1db_races_driver_standings (
    raceId INTEGER NOT NULL REFERENCES f1db_races, positionDisplayOrder INTEGER NOT NULL,
    positionNumber INTEGER, positionText TEXT POSITION_OR_REASON NOT NULL,
    driverId INTEGER NOT NULL REFERENCES f1db_drivers, points TEXT SCORE,
    UNIQUE (raceId, driverId)
);

CREATE TEMP TABLE f1db_races_constructor_standings (
    raceId INTEGER NOT NULL REFERENCES f1db_races, positionDisplayOrder INTEGER NOT NULL,
    positionNumber INTEGER, positionText TEXT POSITION_OR_REASON NOT NULL,
    constructorId INTEGER NOT NULL REFERENCES f1db_constructors,
    engineManufacturerId TEXT HYPHENATED_ID,
    points TEXT SCORE,
    UNIQUE (raceId, constructorId, engineManufacturerId)
);

-- [lists] What the Stage needs before the records.

-- For a shared car, only the first driver's row has its laps and time.
UPDATE temp.f1db_races_race_results AS f1db
SET laps = car.laps, timeMillis = car.timeMillis, gapLaps = car.gapLaps,
    reasonRetired = car.reasonRetired
FROM (SELECT * FROM f1db_races_race_results WHERE sharedCar = 'false') AS car
WHERE unlikely(f1db.sharedCar = 'true') AND f1db.laps IS NULL AND f1db.raceId = car.raceId
    AND f1db.driverNumber = car.driverNumber AND f1db.positionText = car.positionText;

-- The places on the grid that the results have are sometimes those before a penalty, or the last
-- place for a start from the pit lane.
UPDATE temp.f1db_races_race_results AS f1db SET gridPositionNumber = grid.positionNumber
FROM f1db_races_starting_grid_positions AS grid
WHERE f1db.gridPositionNumber NOT NULL AND grid.raceId = f1db.raceId
    AND grid.driverId = f1db.driverId AND grid.driverNumber = f1db.driverNumber;

-- Ergast's names of countries and nationalities.
UPDATE temp.f1db_countries
SET name = CASE name
        WHEN 'South Korea' THEN 'Korea' WHEN 'United Arab Emirates' THEN 'UAE'
        WHEN 'United Kingdom' THEN 'UK' WHEN 'United States of America' THEN 'USA'
        ELSE name END,
    demonym = replace(demonym, 'Monégasque', 'Monegasque');

INSERT INTO stage.seasons (year) SELECT DISTINCT year FROM f1db_races;

-- An id that is not in f1db_ids has the same words as the reference.
INSERT INTO stage.circuits (circuitId, circuitRef, name, location, country, lat, lng)
SELECT f1db.rowid, ifnull(reference, replace(f1db.id, '-', '_')), fullName, placeName,
    country.name, latitude, longitude
FROM f1db_circuits AS f1db
LEFT JOIN f1db_ids AS ids ON kind = 'circuit' AND ids.id = f1db.id
LEFT JOIN f1db_countries AS country ON country.rowid = countryId;

-- The rows of f1db_ids that fit the release, and one without conditions for each other constructor.
CREATE TEMP TABLE f1db_rules AS
SELECT f1db.rowid AS f1db_constructor, engine, first_year, last_year, first_round, last_round,
    drivers.rowid AS driver, reference, TRUE AS is_listed
FROM f1db_ids AS ids JOIN f1db_constructors AS f1db ON f1db.id = ids.id
LEFT JOIN f1db_drivers AS drivers ON drivers.id = driver
WHERE kind = 'constructor' AND (driver IS NULL OR drivers.id NOT NULL)
ORDER BY ids.rowid;

INSERT INTO f1db_rules (f1db_constructor, reference, is_listed)
SELECT rowid, replace(id, '-', '_'), FALSE FROM f1db_constructors
WHERE rowid NOT IN (
    SELECT f1db_constructor FROM f1db_rules
    WHERE coalesce(engine, first_year, last_year, first_round, last_round, driver) IS NULL);

-- First the constructors whose references follow from their ids. With min(), SQLite takes the other
-- columns from the first rule.
INSERT INTO stage.constructors (constructorId, constructorRef, name, nationality)
SELECT row_number() OVER (ORDER BY nth), rule.reference, ifnull(ids.name, f1db.name), demonym
FROM (
    SELECT reference, f1db_constructor, min(1000000 * is_listed + rowid) AS nth
    FROM f1db_rules GROUP BY reference) AS rule
JOIN f1db_constructors AS f1db ON f1db.rowid = f1db_constructor
LEFT JOIN f1db_ids AS ids ON ids.name NOT NULL AND ids.reference = rule.reference
LEFT JOIN f1db_countries AS country ON country.rowid = countryId;

CREATE TEMP VIEW f1db_practice AS
SELECT 1 AS session, rowid AS id, * FROM f1db_races_free_practice_1_results
UNION ALL SELECT 2, rowid, * FROM f1db_races_free_practice_2_results
UNION ALL SELECT 3, rowid, * FROM f1db_races_free_practice_3_results
UNION ALL SELECT 4, rowid, * FROM f1db_races_free_practice_4_results;

-- Drivers whose codes are from the timing, which has shown codes since about 2005. f1db has
-- abbreviations of all drivers, many of them alike.
CREATE TEMP VIEW f1db_coded AS
SELECT driverId FROM (
    SELECT raceId, driverId FROM f1db_races_race_results
    UNION ALL SELECT raceId, driverId FROM f1db_practice)
JOIN f1db_races ON f1db_races.id = raceId WHERE year >= 2005;

-- The reference is the last word if Ergast named the driver, else all words. Of drivers who would
-- have the same one, the one with the most results has it. The ids were compared with Ergast's up
-- to 2025.
CREATE TEMP TABLE f1db_driver_references AS
SELECT id, coalesce(
    listed,
    iif(results AND last NOT IN (SELECT lower(reference) FROM f1db_ids WHERE kind = 'driver')
            AND row_number() OVER (PARTITION BY last, listed ORDER BY results DESC, id) = 1,
        last, replace(id, '-', '_'))) AS reference
FROM (
    SELECT f1db.id, ids.reference AS listed, count(year) AS results,
        substr(f1db.id, length(rtrim(f1db.id, replace(f1db.id, '-', ''))) + 1) AS last
    FROM f1db_drivers AS f1db
    LEFT JOIN f1db_ids AS ids ON kind = 'driver' AND ids.id = f1db.id
    LEFT JOIN f1db_races_race_results AS result ON driverId = f1db.rowid
    LEFT JOIN f1db_races ON f1db_races.id = raceId AND year <= 2025
    GROUP BY f1db.rowid);

-- The name is the usual one: Jak Crawford, whose first name is Carlton; Andrea de Cesaris.
INSERT INTO stage.drivers (
    driverId, driverRef, number, code, forename, surname, dob, nationality)
SELECT f1db.rowid, reference, permanentNumber,
    iif(f1db.rowid IN (SELECT driverId FROM f1db_coded), abbreviation, NULL),
    iif(is_usual, rtrim(substr(f1db.name, 1, length(f1db.name) - length(lastName))), firstName),
    iif(is_usual, substr(f1db.name, -length(lastName)), lastName), dateOfBirth, demonym
FROM (SELECT rowid, *, name LIKE '_% ' || lastName AS is_usual FROM f1db_drivers) AS f1db
JOIN f1db_driver_references USING (id)
LEFT JOIN f1db_countries AS country ON country.rowid = nationalityCountryId;

INSERT OR IGNORE INTO stage.ids (kind, reference, source, id)
SELECT 'circuit', circuitRef, '', id FROM stage.circuits JOIN f1db_circuits AS f1db
    ON f1db.rowid = circuitId
UNION ALL
SELECT 'driver', reference, '', id FROM f1db_ids WHERE kind = 'driver'
UNION ALL
SELECT 'driver', reference, '', id FROM f1db_driver_references
UNION ALL
SELECT * FROM (
    SELECT 'constructor', reference, '', id FROM f1db_rules JOIN f1db_constructors AS f1db
        ON f1db.rowid = f1db_constructor
    ORDER BY is_listed, f1db_rules.rowid);

INSERT INTO stage.races (raceId, year, round, circuitId, name, date, time)
SELECT f1db.id, year, round, circuitId, fullName, date, time
FROM f1db_races AS f1db
JOIN f1db_grands_prix AS grand_prix ON grand_prix.rowid = grandPrixId;

INSERT INTO stage.sessions (raceId, session, date, time)
SELECT * FROM (
    SELECT id, 'fp1', freePractice1Date AS date, freePractice1Time AS time FROM f1db_races
    UNION ALL SELECT id, 'fp2', freePractice2Date, freePractice2Time FROM f1db_races
    UNION ALL SELECT id, 'fp3', freePractice3Date, freePractice3Time FROM f1db_races
    UNION ALL SELECT id, 'quali', qualifyingDate, qualifyingTime FROM f1db_races
    UNION ALL SELECT id, 'sprint', sprintRaceDate, sprintRaceTime FROM f1db_races
    UNION ALL SELECT id, 'sq', sprintQualifyingDate, sprintQualifyingTime FROM f1db_races)
WHERE coalesce(date, time) NOT NULL;

-- The results of races and sprints with the texts of their statuses. New ones are numbered in the
-- order of races, then of sprints.
CREATE TEMP VIEW f1db_with_status AS
SELECT *, CASE positionText
        WHEN 'DSQ' THEN 'Disqualified' WHEN 'EX' THEN 'Excluded' WHEN 'NC' THEN 'Not classified'
        WHEN 'DNQ' THEN 'Did not qualify' WHEN 'DNPQ' THEN 'Did not prequalify'
        ELSE coalesce(
            CASE gapLaps WHEN 0 THEN NULL WHEN 1 THEN '+1 Lap' ELSE '+' || gapLaps || ' Laps' END,
            reasonRetired,
            CASE positionText
                WHEN 'DNF' THEN 'Retired' WHEN 'DNS' THEN 'Did not start' WHEN 'DNP' THEN 'Withdrew'
                ELSE 'Finished' END) END AS status_text
FROM (
    SELECT rowid AS id, 'results' AS list, * FROM f1db_races_race_results
    UNION ALL SELECT rowid, 'sprint', * FROM f1db_races_sprint_race_results);

-- [records] What fills the tables of records.

-- The constructor of each row that has one, by the first rule that fits.
CREATE TEMP TABLE f1db_teams (list, id, team, PRIMARY KEY (list, id)) WITHOUT ROWID;

INSERT INTO f1db_teams
SELECT list, f1db.id, (
    SELECT constructors.constructorId
    FROM f1db_rules AS rule JOIN stage.constructors ON constructorRef = reference
    WHERE f1db_constructor = f1db.constructorId
        AND (engine IS NULL OR engine = engineManufacturerId)
        AND year BETWEEN ifnull(first_year, year) AND ifnull(last_year, year)
        AND round BETWEEN ifnull(first_round, round) AND ifnull(last_round, round)
        AND (driver IS NULL OR driver = driverId)
    ORDER BY is_listed DESC, rule.rowid LIMIT 1)
FROM (
    SELECT 'results' AS list, rowid AS id, raceId, driverId, constructorId, engineManufacturerId
    FROM f1db_races_race_results
    UNION ALL
    SELECT 'sprint', rowid, raceId, driverId, constructorId, engineManufacturerId
    FROM f1db_races_sprint_race_results
    UNION ALL
    SELECT 'qualifying', rowid, raceId, driverId, constructorId, engineManufacturerId
    FROM f1db_races_qualifying_results
    UNION ALL
    SELECT 'sprint qualifying', rowid, raceId, driverId, constructorId, engineManufacturerId
    FROM f1db_races_sprint_qualifying_results
    UNION ALL
    SELECT 'practice ' || session, id, raceId, driverId, constructorId, engineManufacturerId
    FROM f1db_practice
    UNION ALL
    SELECT 'standings', rowid, raceId, NULL, constructorId, engineManufacturerId
    FROM f1db_races_constructor_standings) AS f1db
JOIN stage.races USING (raceId);

CREATE TEMP TABLE f1db_letters (positionText TEXT PRIMARY KEY, letter TEXT NOT NULL);

INSERT INTO f1db_letters VALUES
    ('DNF', 'R'), ('NC', 'N'), ('DSQ', 'D'), ('EX', 'E'), ('DNS', 'W'), ('DNQ', 'F'),
    ('DNPQ', 'F'), ('DNP', 'F');

-- A driver who did not take part drove no laps. For others without laps, the number is unknown.
CREATE TEMP VIEW f1db_results AS
SELECT f1db.*, team,
    ifnull(positionNumber, letter) AS text,
    ifnull(laps, iif(f1db.positionText IN ('DNS', 'DNQ', 'DNPQ', 'DNP', 'EX'), 0, NULL)) AS driven,
    statusId
FROM f1db_with_status AS f1db JOIN f1db_teams USING (list, id)
LEFT JOIN f1db_letters AS letters ON letters.positionText = f1db.positionText
LEFT JOIN stage.status ON status = status_text COLLATE NOCASE;

-- f1db has no place on the grid for a start from the pit lane, and for no start. Both are 0 here,
-- as in Ergast's dump.
INSERT INTO stage.results (
    resultId, raceId, driverId, constructorId, number, grid, positionText, positionOrder, points,
    laps, milliseconds, statusId)
SELECT id, raceId, driverId, team, driverNumber, ifnull(gridPositionNumber, 0), text,
    positionDisplayOrder, ifnull(points, '0'), driven, timeMillis, statusId
FROM f1db_results WHERE list = 'results';

INSERT INTO stage.sprint_results (
    resultId, raceId, driverId, constructorId, number, grid, positionText, positionOrder, points,
    laps, milliseconds, statusId)
SELECT id, raceId, driverId, team, driverNumber, ifnull(gridPositionNumber, 0), text,
    positionDisplayOrder, ifnull(points, '0'), driven, timeMillis, statusId
FROM f1db_results WHERE list = 'sprint';

INSERT INTO stage.qualifying (
    qualifyId, raceId, driverId, constructorId, number, position, q1, q2, q3)
SELECT f1db.rowid, raceId, driverId, team, driverNumber,
    positionDisplayOrder, ifnull(q1, f1db.time), q2, q3
FROM f1db_races_qualifying_results AS f1db
JOIN f1db_teams AS teams ON list = 'qualifying' AND teams.id = f1db.rowid
WHERE f1db.positionText <> 'DSQ' OR NOT EXISTS (
    SELECT 1 FROM f1db_races_qualifying_results AS other
    WHERE other.raceId = f1db.raceId AND other.driverId = f1db.driverId
        AND other.positionText <> 'DSQ');

INSERT INTO stage.sprint_qualifying (
    sprintQualifyId, raceId, driverId, constructorId, number, position, q1, q2, q3)
SELECT f1db.rowid, raceId, driverId, team, driverNumber,
    positionNumber, q1, q2, q3
FROM f1db_races_sprint_qualifying_results AS f1db
JOIN f1db_teams AS teams ON list = 'sprint qualifying' AND teams.id = f1db.rowid
WHERE f1db.positionText <> 'DSQ' OR NOT EXISTS (
    SELECT 1 FROM f1db_races_sprint_qualifying_results AS other
    WHERE other.raceId = f1db.raceId AND other.driverId = f1db.driverId
        AND other.positionText <> 'DSQ');

INSERT INTO stage.practice (
    raceId, session, driverId, constructorId, number, position, laps, milliseconds)
SELECT raceId, session, driverId, team, driverNumber, positionNumber, laps, timeMillis
FROM f1db_practice AS f1db
JOIN f1db_teams AS teams ON list = 'practice ' || session AND teams.id = f1db.id;

INSERT INTO stage.pit_stops (raceId, driverId, stop, lap, milliseconds)
SELECT raceId, driverId, stop, lap, timeMillis FROM f1db_races_pit_stops;

-- A driver may have two rows, of shared cars: the number says which of them has the fastest lap. A
-- row without a time may still have a place: in 2025/21, the first.
UPDATE stage.results SET (rank, fastestLap, fastestLapTime) = (
    SELECT ifnull(positionNumber, positionDisplayOrder), lap, time
    FROM f1db_races_fastest_laps AS f1db
    WHERE f1db.raceId = results.raceId AND f1db.driverId = results.driverId AND time NOT NULL)
WHERE resultId IN (SELECT resultId FROM (
    SELECT resultId, row_number() OVER (
        PARTITION BY raceId, driverId ORDER BY number IS driverNumber DESC, positionOrder) AS n
    FROM stage.results JOIN f1db_races_fastest_laps USING (raceId, driverId)) WHERE n = 1);

-- Standings are of drivers or constructors: `kind`. The 500 miles of Indianapolis did not count for
-- constructors.
CREATE TEMP VIEW f1db_counted AS
SELECT 'driver' AS kind, driverId AS id, year, round, positionText
FROM stage.results JOIN stage.races USING (raceId)
UNION ALL
SELECT 'constructor', constructorId, year, round, positionText
FROM stage.results JOIN stage.races USING (raceId) WHERE name <> 'Indianapolis 500';

-- The first race of each driver or constructor in a season, and the first classified finish.
CREATE TEMP TABLE f1db_seasons AS
SELECT kind, year, id, min(round) AS first,
    min(round) FILTER (WHERE positionText GLOB '[0-9]*') AS classified
FROM f1db_counted GROUP BY kind, year, id;

CREATE INDEX temp.f1db_seasons_year ON f1db_seasons (kind, year);

CREATE TEMP TABLE f1db_wins (
    kind, year, id, round, PRIMARY KEY (kind, year, id, round)) WITHOUT ROWID;

INSERT INTO f1db_wins
SELECT DISTINCT kind, year, id, round FROM f1db_counted WHERE positionText = '1';

CREATE TEMP TABLE f1db_listed (
    kind, raceId, id, year, round, points, place, position, text,
    PRIMARY KEY (kind, raceId, id)) WITHOUT ROWID;

CREATE TEMP VIEW f1db_standings AS
SELECT 'driver' AS kind, raceId, driverId AS id, year, round, positionDisplayOrder,
    positionNumber, positionText, points
FROM f1db_races_driver_standings JOIN stage.races USING (raceId)
UNION ALL
SELECT 'constructor', raceId, team, year, round, positionDisplayOrder, positionNumber,
    positionText, points
FROM f1db_races_constructor_standings AS f1db
JOIN f1db_teams AS teams ON list = 'standings' AND teams.id = f1db.rowid
JOIN stage.races USING (raceId);

-- Constructors with several engines are one in Ergast's lists. The sum of their points then decides
-- all places.
INSERT INTO f1db_listed
SELECT kind, raceId, id, year, round, printf('%.10g', points), iif(is_summed, nth, place),
    iif(is_summed, rank, position), iif(is_summed AND text = position, rank, text)
FROM (
    SELECT *, max(rows) OVER (PARTITION BY kind, raceId) > 1 AS is_summed,
        row_number() OVER (PARTITION BY kind, raceId ORDER BY points DESC, place) AS nth,
        rank() OVER (PARTITION BY kind, raceId ORDER BY points DESC, position) AS rank
    FROM (
        SELECT kind, raceId, id, year, round, sum(points) AS points,
            min(positionDisplayOrder) AS place,
            ifnull(positionNumber, positionDisplayOrder) AS position,
            ifnull(positionNumber, letter) AS text, count(*) AS rows
        FROM f1db_standings LEFT JOIN f1db_letters USING (positionText)
        GROUP BY kind, raceId, id));

-- f1db lists the drivers with points, and since 2000 also those who were classified. Ergast lists
-- all with a result in the season so far. Drivers missing from f1db share a place if they were
-- classified; otherwise they have none.
INSERT OR IGNORE INTO f1db_listed
SELECT kind, raceId, id, year, round, '0', next,
    CASE WHEN classified <= round THEN next END,
    CASE WHEN classified <= round THEN next ELSE '-' END
FROM (SELECT kind, raceId, year, round, max(place) + 1 AS next
      FROM f1db_listed GROUP BY kind, raceId)
JOIN f1db_seasons USING (kind, year)
WHERE first <= round;

CREATE TEMP VIEW f1db_numbered AS
SELECT *, row_number() OVER (PARTITION BY kind ORDER BY year, round, place) AS number,
    (SELECT count(*) FROM f1db_wins AS won
     WHERE won.kind = listed.kind AND won.year = listed.year AND won.id = listed.id
         AND won.round <= listed.round) AS wins
FROM f1db_listed AS listed;

INSERT INTO stage.driver_standings (
    driverStandingsId, raceId, driverId, points, position, positionText, wins)
SELECT number, raceId, id, points, position, text, wins FROM f1db_numbered WHERE kind = 'driver';

INSERT INTO stage.constructor_standings (
    constructorStandingsId, raceId, constructorId, points, position, positionText, wins)
SELECT number, raceId, id, points, position, text, wins
FROM f1db_numbered WHERE kind = 'constructor';

-- [statuses] The texts of statuses, and numbers that order new ones.

SELECT status_text, 1000000 * (list = 'sprint') + id FROM f1db_with_status;

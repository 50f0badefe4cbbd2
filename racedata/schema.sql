-- The database: every table and index, and what a row of each table is. The loader runs this file to make a new
-- database. The service accepts a file only if it has the two numbers below. Columns have the dump's names.
-- Queries and the JSON of answers do not belong here.
-- `record` numbers the rows of a table from 1, without gaps, in the order of answers (model.py has the columns);
-- in lap_times and pit_stops, the rows of each race.
-- So every page is `ORDER BY record`, and an index on any other column returns its rows in that order too.

PRAGMA application_id = 0x52414345;  -- "RACE": tells this file from every other SQLite file
PRAGMA user_version = 11;            -- the schema version: raise it with any change below

-- When the file was built, and whether it is only the sample. One row.
CREATE TABLE build (
    builtAt      TEXT NOT NULL,     -- UTC, YYYY-MM-DDTHH:MM:SSZ
    isSample     INTEGER NOT NULL,  -- 1 if it was built from the package's own sample, else 0
    storeId      TEXT NOT NULL,     -- of the store from which it was built
    revision     INTEGER NOT NULL   -- rises with each build of that store that changed something
) STRICT;

-- A source of the data: given to the last load, or the origin of some records. docs/data.md says which source counts.
CREATE TABLE sources (
    sourceId INTEGER PRIMARY KEY,   -- dumps in the order of the load, then other sources
    name     TEXT NOT NULL UNIQUE,  -- `tracinginsights`, `f1db`, `jolpica`; else its address
    address  TEXT NOT NULL,         -- folder, zip or URL; the base address of an API
    licence  TEXT,                  -- of its data, if the source says
    checksum TEXT,                  -- SHA-256, in hexadecimal, of the zip, or of the files of a folder; NULL for an API
    readAt   TEXT NOT NULL,         -- when it was last read: UTC, YYYY-MM-DDTHH:MM:SSZ
    isLoaded INTEGER NOT NULL,      -- 1 if it was given to the last load; 0 if only a refresh used it
    gave     TEXT NOT NULL,         -- which records of how many races are from it, in words
    -- 1 if its records only count until another source has them
    isProvisional INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Where the records of a race are from. One row per race and kind.
CREATE TABLE origins (
    raceId    INTEGER NOT NULL REFERENCES races (raceId),
    -- The name of a table: `races`, `results`, `qualifying`, …; or `fastest_laps`: the columns of results from
    -- fastestLap to fastestLapSpeed. `sessions` only if they are not from the same source as the race.
    kind      TEXT NOT NULL,
    sourceId  INTEGER NOT NULL REFERENCES sources (sourceId),
    fetchedAt TEXT,  -- when a refresh fetched them; NULL if they were loaded
    PRIMARY KEY (raceId, kind)
) STRICT, WITHOUT ROWID;

-- How complete a kind of records is. One row per kind that any race has.
CREATE TABLE coverage (
    kind  TEXT PRIMARY KEY,  -- as in origins
    first INTEGER NOT NULL,  -- the first season with records
    last  INTEGER NOT NULL,  -- the last season with records
    races INTEGER NOT NULL,  -- races with records
    run   INTEGER NOT NULL   -- races held in these seasons: those that have results or these records
) STRICT, WITHOUT ROWID;

-- A value that the loader has corrected: loader/corrections.csv lists what it corrects. Endpoint `corrections`.
-- columnName is `row` if a row was removed or added: sourceValue has facts of the removed row, such as
-- `constructor=maserati; laps=0`; value has facts of the added row.
CREATE TABLE corrections (
    record        INTEGER PRIMARY KEY,              -- order of answers
    tableName     TEXT NOT NULL,                    -- such as `results`
    key           TEXT NOT NULL,                    -- names the row, as in that file: `2023/18/alonso`
    columnName    TEXT NOT NULL,                    -- as in that file: `grid`; `constructor`, not constructorId
    sourceValue   TEXT,                             -- the value of the source; NULL if it had none
    value         TEXT,                             -- the value here; NULL if nobody knows it
    witnesses     TEXT NOT NULL,                    -- a sentence: how we know
    year          INTEGER,                          -- the season; NULL if the value is not about one
    raceId        INTEGER REFERENCES races (raceId),                -- NULL if the value is not about a race
    driverId      INTEGER REFERENCES drivers (driverId),            -- NULL if the key names no driver
    constructorId INTEGER REFERENCES constructors (constructorId),  -- NULL if the key names no constructor
    UNIQUE (tableName, key, columnName)
) STRICT;

-- A value that a build altered: the latest 20,000. Endpoint `changes`.
-- columnName is as in corrections. `row` if a row was added or removed: the values are its facts. `records` if a race got
-- its first records of a kind, or lost all of them: the values are their number. `values` if a build with other sources
-- altered more than 5,000 values: the value is how many of this kind, in this race.
CREATE TABLE changes (
    record        INTEGER PRIMARY KEY,  -- order of answers: the newest build and race first
    revision      INTEGER NOT NULL,     -- of the build, as in the table `build`
    changedAt     TEXT NOT NULL,        -- when that was: UTC, YYYY-MM-DDTHH:MM:SSZ
    kind          TEXT NOT NULL,        -- as in origins; or a list, such as `drivers`
    key           TEXT NOT NULL,        -- names the row, as in corrections
    columnName    TEXT NOT NULL,        -- `grid`; `constructor`, not constructorId
    oldValue      TEXT,                 -- NULL if there was none
    value         TEXT,                 -- NULL if there is none now
    oldSource     TEXT,                 -- of the old value; NULL for lists and for what is new
    source        TEXT,                 -- of the new value; NULL for lists and for what is gone
    reason        TEXT NOT NULL,        -- why it changed, in words
    year          INTEGER,              -- the season; NULL if it is not about one
    round         INTEGER,              -- NULL if it is not about a race, or if that is not in the calendar any more
    raceName      TEXT,                 -- NULL if it is not about a race
    raceId        INTEGER REFERENCES races (raceId),                -- NULL as round
    driverId      INTEGER REFERENCES drivers (driverId),            -- NULL if the key names no driver
    constructorId INTEGER REFERENCES constructors (constructorId),  -- NULL if the key names no constructor
    circuitId     INTEGER REFERENCES circuits (circuitId)           -- where the race is, or was
) STRICT;
CREATE INDEX changes_raceId ON changes (raceId);
CREATE INDEX changes_year ON changes (year);
CREATE INDEX changes_driverId ON changes (driverId);
CREATE INDEX changes_constructorId ON changes (constructorId);
CREATE INDEX changes_circuitId ON changes (circuitId);
CREATE INDEX changes_changedAt ON changes (changedAt);

-- A fact about which sources in the list disagree: they have different values. docs/data.md says what is compared.
-- Endpoint `discrepancies`. columnName is as in corrections. `row` if only some sources have the row: the values are facts.
CREATE TABLE discrepancies (
    record        INTEGER PRIMARY KEY,  -- order of answers: the most doubtful first
    kind          TEXT NOT NULL,        -- as in origins; or a list, such as `drivers`
    key           TEXT NOT NULL,        -- names the row, as in corrections
    columnName    TEXT NOT NULL,        -- such as `grid`
    year          INTEGER,              -- the season; NULL if it is about a list
    raceId        INTEGER REFERENCES races (raceId),                -- NULL if it is about a list
    driverId      INTEGER REFERENCES drivers (driverId),            -- NULL if the key names no driver, or an unknown one
    constructorId INTEGER REFERENCES constructors (constructorId),  -- NULL if the key names no constructor
    circuitId     INTEGER REFERENCES circuits (circuitId),          -- the circuit, or where the race is
    value         TEXT,                 -- what this database says; NULL if it has no value
    -- `open`; `explained`: the sources count differently, or write differently; `resolved`: there is a correction, or
    -- independent sources agree with the value
    state         TEXT NOT NULL,
    explanation   TEXT NOT NULL,        -- why it has this state; if it is open: what it can mean, and what would settle it
    doubt         INTEGER NOT NULL      -- 1, 2, 3, …: the kind of difference, the most doubtful first
) STRICT;
CREATE INDEX discrepancies_raceId ON discrepancies (raceId);
CREATE INDEX discrepancies_year ON discrepancies (year);
CREATE INDEX discrepancies_driverId ON discrepancies (driverId);
CREATE INDEX discrepancies_constructorId ON discrepancies (constructorId);
CREATE INDEX discrepancies_circuitId ON discrepancies (circuitId);
CREATE INDEX discrepancies_state ON discrepancies (state);

-- What a source says about such a fact. Sources that say nothing about it have no row.
CREATE TABLE discrepancy_values (
    record INTEGER NOT NULL REFERENCES discrepancies (record),
    place  INTEGER NOT NULL,  -- of the source in the list, from 1
    source TEXT NOT NULL,     -- its name
    value  TEXT,              -- NULL if it has none, although it has such values for others
    PRIMARY KEY (record, place)
) STRICT, WITHOUT ROWID;

-- What a source in the list calls a driver, constructor or circuit of this database. Endpoint `ids`. A source may have
-- several ids for one of ours, and one id for several of ours: f1db has one constructor for what Ergast divides by engine.
CREATE TABLE ids (
    record    INTEGER PRIMARY KEY,  -- order of answers: by kind, reference, source, id
    kind      TEXT NOT NULL,        -- `driver`, `constructor` or `circuit`
    reference TEXT NOT NULL,        -- our id: driverRef, constructorRef or circuitRef
    source    TEXT NOT NULL,        -- the name of the source
    id        TEXT NOT NULL,        -- its own id; of OpenF1: the circuit_key, or the team_name
    UNIQUE (kind, reference, source, id)
) STRICT;
CREATE INDEX ids_reference ON ids (reference);

-- How many rows a table has. One row per table below.
CREATE TABLE row_counts (
    name TEXT PRIMARY KEY,  -- of the table
    rows INTEGER NOT NULL   -- how many it has
) STRICT, WITHOUT ROWID;

-- A season. Endpoint `seasons`, by year.
CREATE TABLE seasons (
    year INTEGER PRIMARY KEY,  -- such as 2023
    url  TEXT                  -- unknown if the dump has races of the year, but no URL for it
) STRICT;

-- A circuit. Endpoint `circuits`.
CREATE TABLE circuits (
    circuitId  INTEGER PRIMARY KEY,                  -- joins tables; may change with the next load
    circuitRef TEXT NOT NULL UNIQUE COLLATE NOCASE,  -- `circuitId` in answers
    name       TEXT NOT NULL,                        -- such as `Autodromo Nazionale di Monza`
    location   TEXT,                                 -- `locality` in answers
    country    TEXT,                                 -- such as `Italy`
    lat        TEXT,                                 -- degrees, in the dump's own digits
    lng        TEXT,                                 -- as lat
    alt        TEXT,                                 -- metres above the sea, in the dump's own digits
    url        TEXT                                  -- of an article on Wikipedia
) STRICT;

-- A constructor. Endpoint `constructors`.
CREATE TABLE constructors (
    constructorId  INTEGER PRIMARY KEY,                  -- joins tables; may change with the next load
    constructorRef TEXT NOT NULL UNIQUE COLLATE NOCASE,  -- `constructorId` in answers
    name           TEXT NOT NULL,                        -- such as `Red Bull`
    nationality    TEXT,                                 -- such as `Austrian`
    url            TEXT,                                 -- of an article on Wikipedia
    colour         TEXT                                  -- of its newest livery: `#rrggbb` (team_colours.csv)
) STRICT;

-- A driver. Endpoint `drivers`.
CREATE TABLE drivers (
    driverId    INTEGER PRIMARY KEY,                  -- joins tables; may change with the next load
    driverRef   TEXT NOT NULL UNIQUE COLLATE NOCASE,  -- `driverId` in answers
    number      INTEGER,                              -- the permanent one, since 2014
    code        TEXT,                                 -- three letters, such as `HAM`
    forename    TEXT NOT NULL,                        -- `givenName` in answers
    surname     TEXT NOT NULL,                        -- `familyName` in answers
    dob         TEXT,                                 -- YYYY-MM-DD
    nationality TEXT,                                 -- such as `British`
    url         TEXT                                  -- of an article on Wikipedia
) STRICT;

-- How a driver finished: `Finished`, `+1 Lap`, `Engine`, … Endpoint `status`. Each source has its own words: for a lapped
-- driver, Ergast's dump and f1db have `+1 Lap`, Jolpica-F1 has `Lapped` since 2023; and it has `Retired` without a reason.
-- So count retirements by positionText, not by these texts.
CREATE TABLE status (
    statusId INTEGER PRIMARY KEY,  -- joins tables
    status   TEXT NOT NULL         -- such as `Finished`
) STRICT;

-- A race weekend. Endpoint `races`, by year and round. Dates are YYYY-MM-DD, times HH:MM:SS in UTC.
CREATE TABLE races (
    raceId    INTEGER PRIMARY KEY,  -- joins tables; may change with the next load
    year      INTEGER NOT NULL,     -- the season
    round     INTEGER NOT NULL,     -- the n-th race of the season
    circuitId INTEGER NOT NULL REFERENCES circuits (circuitId),
    name      TEXT NOT NULL,        -- such as `Italian Grand Prix`
    date      TEXT NOT NULL,        -- YYYY-MM-DD
    time      TEXT,                 -- of the start: HH:MM:SS, in UTC; NULL if unknown
    url       TEXT,                 -- of an article on Wikipedia
    UNIQUE (year, round)
) STRICT;
CREATE INDEX races_circuitId ON races (circuitId);

-- A session of a race weekend other than the race, with the format of dates and times in `races`.
CREATE TABLE sessions (
    raceId  INTEGER NOT NULL REFERENCES races (raceId),
    -- As in the columns of the dump: `fp1`, `fp2`, `fp3` practice; `quali` qualifying; `sprint`; `sq` sprint
    -- qualifying, the session that sets the sprint's grid since 2023 (in 2023 it was called sprint shootout).
    session TEXT NOT NULL,
    date    TEXT,  -- YYYY-MM-DD
    time    TEXT,  -- HH:MM:SS, in UTC
    PRIMARY KEY (raceId, session)
) STRICT, WITHOUT ROWID;

-- The service takes the columns of this table, and of those with other records, in this order (serializers.py).

-- A driver in the classification of a race, sometimes twice (shared cars, 1950 to 1978). Endpoint `results`.
CREATE TABLE results (
    record          INTEGER PRIMARY KEY,  -- order of answers
    resultId        INTEGER NOT NULL,     -- the dump's; driver_standings.constructors depends on it
    raceId          INTEGER NOT NULL REFERENCES races (raceId),
    driverId        INTEGER NOT NULL REFERENCES drivers (driverId),
    constructorId   INTEGER NOT NULL REFERENCES constructors (constructorId),
    number          INTEGER,              -- of the car
    grid            INTEGER,              -- 0: pit lane, or no start
    -- `1`, …; or `R` retired, `N` not classified, `D` disqualified, `E` excluded, `W` withdrawn, `F` failed to qualify:
    -- the same in all sources. A driver who retired, but had driven 90% of the winner's laps, has a place.
    positionText    TEXT,
    positionOrder   INTEGER NOT NULL,     -- 1, 2, 3, …: also for those who are not classified
    points          TEXT,                 -- `25`, `12.5`; never `25.0`
    laps            INTEGER,              -- completed
    milliseconds    INTEGER,              -- race time
    fastestLap      INTEGER,              -- the number of the driver's fastest lap
    rank            INTEGER,              -- of the fastest lap
    fastestLapTime  TEXT,                 -- M:SS.mmm
    fastestLapSpeed TEXT,                 -- km/h, in the dump's own digits
    statusId        INTEGER REFERENCES status (statusId)
) STRICT;
CREATE INDEX results_raceId ON results (raceId);
CREATE INDEX results_driverId ON results (driverId);
CREATE INDEX results_constructorId ON results (constructorId);
CREATE INDEX results_grid ON results (grid);
CREATE INDEX results_rank ON results (rank);
CREATE INDEX results_positionText ON results (positionText);
CREATE INDEX results_statusId ON results (statusId);

-- A driver who entered a race, and the constructor. Drivers with a result are here too, and so are drivers without one,
-- such as those who did not qualify. Used by filters that are not about a result.
CREATE TABLE entries (
    raceId        INTEGER NOT NULL REFERENCES races (raceId),
    driverId      INTEGER NOT NULL REFERENCES drivers (driverId),
    constructorId INTEGER NOT NULL REFERENCES constructors (constructorId),
    PRIMARY KEY (raceId, driverId, constructorId)
) STRICT, WITHOUT ROWID;
CREATE INDEX entries_driverId ON entries (driverId, constructorId);
CREATE INDEX entries_constructorId ON entries (constructorId, driverId);

-- A driver in the classification of a sprint. Endpoint `sprint`.
CREATE TABLE sprint_results (
    record         INTEGER PRIMARY KEY,  -- order of answers
    resultId       INTEGER NOT NULL,     -- the dump's
    raceId         INTEGER NOT NULL REFERENCES races (raceId),
    driverId       INTEGER NOT NULL REFERENCES drivers (driverId),
    constructorId  INTEGER NOT NULL REFERENCES constructors (constructorId),
    number         INTEGER,              -- of the car
    grid           INTEGER,              -- as in results
    positionText   TEXT,                 -- as in results
    positionOrder  INTEGER NOT NULL,     -- as in results
    points         TEXT,                 -- as in results
    laps           INTEGER,              -- completed
    milliseconds   INTEGER,              -- time of the sprint
    fastestLap     INTEGER,              -- the number of the driver's fastest lap
    rank           INTEGER,              -- of the fastest lap
    fastestLapTime TEXT,                 -- M:SS.mmm
    statusId       INTEGER REFERENCES status (statusId)
) STRICT;
CREATE INDEX sprint_results_raceId ON sprint_results (raceId);
CREATE INDEX sprint_results_driverId ON sprint_results (driverId);
CREATE INDEX sprint_results_constructorId ON sprint_results (constructorId);
CREATE INDEX sprint_results_positionText ON sprint_results (positionText);

-- A driver in the qualifying of a race. Endpoint `qualifying`. Times are M:SS.mmm.
CREATE TABLE qualifying (
    record        INTEGER PRIMARY KEY,  -- order of answers
    qualifyId     INTEGER NOT NULL,     -- the dump's
    raceId        INTEGER NOT NULL REFERENCES races (raceId),
    driverId      INTEGER NOT NULL REFERENCES drivers (driverId),
    constructorId INTEGER NOT NULL REFERENCES constructors (constructorId),
    number        INTEGER,              -- of the car
    position      INTEGER,              -- in qualifying; penalties may change the grid
    q1            TEXT,                 -- best time in the first part, or in a qualifying without parts: M:SS.mmm
    q2            TEXT,                 -- in the second part
    q3            TEXT                  -- in the third part
) STRICT;
CREATE INDEX qualifying_raceId ON qualifying (raceId);
CREATE INDEX qualifying_raceId_driverId ON qualifying (raceId, driverId);  -- for filters of the race's results
CREATE INDEX qualifying_driverId ON qualifying (driverId);
CREATE INDEX qualifying_constructorId ON qualifying (constructorId);
CREATE INDEX qualifying_position ON qualifying (position);

-- A driver in the session that sets the sprint's grid, since 2023. Times are M:SS.mmm.
CREATE TABLE sprint_qualifying (
    record        INTEGER PRIMARY KEY,  -- order of answers
    raceId        INTEGER NOT NULL REFERENCES races (raceId),
    driverId      INTEGER NOT NULL REFERENCES drivers (driverId),
    constructorId INTEGER NOT NULL REFERENCES constructors (constructorId),
    number        INTEGER,              -- of the car
    position      INTEGER,              -- penalties may change the grid
    q1            TEXT,                 -- best time in the first part: M:SS.mmm
    q2            TEXT,                 -- in the second part
    q3            TEXT                  -- in the third part
) STRICT;
CREATE INDEX sprint_qualifying_raceId ON sprint_qualifying (raceId);
CREATE INDEX sprint_qualifying_driverId ON sprint_qualifying (driverId);
CREATE INDEX sprint_qualifying_constructorId ON sprint_qualifying (constructorId);
CREATE INDEX sprint_qualifying_position ON sprint_qualifying (position);

-- A driver in a practice session of a race weekend.
CREATE TABLE practice (
    record        INTEGER PRIMARY KEY,  -- order of answers
    raceId        INTEGER NOT NULL REFERENCES races (raceId),
    session       INTEGER NOT NULL,     -- the n-th practice of the weekend, from 1
    driverId      INTEGER NOT NULL REFERENCES drivers (driverId),
    constructorId INTEGER NOT NULL REFERENCES constructors (constructorId),
    number        INTEGER,              -- of the car
    position      INTEGER,              -- by the best lap
    laps          INTEGER,              -- completed
    milliseconds  INTEGER               -- of the best lap
) STRICT;
CREATE INDEX practice_raceId ON practice (raceId);
CREATE INDEX practice_driverId ON practice (driverId);
CREATE INDEX practice_constructorId ON practice (constructorId);
CREATE INDEX practice_session ON practice (session);

-- A lap of a driver. Endpoint `laps`. `record` starts at 1 in each race. So an unfiltered page is a range of the primary
-- key, which costs the same at any offset.
CREATE TABLE lap_times (
    raceId   INTEGER NOT NULL REFERENCES races (raceId),
    record   INTEGER NOT NULL,  -- order of answers, from 1 in each race
    driverId INTEGER NOT NULL REFERENCES drivers (driverId),
    lap      INTEGER NOT NULL,  -- the number of the lap
    position INTEGER,           -- of the driver at its end
    time     TEXT,              -- M:SS.mmm
    PRIMARY KEY (raceId, record)
) STRICT, WITHOUT ROWID;

-- A pit stop of a driver. Endpoint `pitstops`. `record` starts at 1 in each race.
CREATE TABLE pit_stops (
    raceId       INTEGER NOT NULL REFERENCES races (raceId),
    record       INTEGER NOT NULL,  -- order of answers, from 1 in each race
    driverId     INTEGER NOT NULL REFERENCES drivers (driverId),
    stop         INTEGER NOT NULL,  -- the driver's n-th in the race
    lap          INTEGER,           -- the number of the lap
    time         TEXT,              -- HH:MM:SS, the local clock
    milliseconds INTEGER,           -- the duration. The duration column of the dump sometimes lacks trailing zeros.
    PRIMARY KEY (raceId, record)
) STRICT, WITHOUT ROWID;

-- A driver in the championship as it stood after a race. Endpoint `driverstandings`.
CREATE TABLE driver_standings (
    record            INTEGER PRIMARY KEY,  -- order of answers
    driverStandingsId INTEGER NOT NULL,     -- the dump's
    raceId            INTEGER NOT NULL REFERENCES races (raceId),
    driverId          INTEGER NOT NULL REFERENCES drivers (driverId),
    points            TEXT,                 -- same format as in results
    position          INTEGER,              -- NULL if not classified yet
    positionText      TEXT,                 -- `1`, `-` not classified yet, `D` disqualified
    wins              INTEGER,              -- in the season so far
    final             INTEGER NOT NULL,     -- 1 after the last scheduled round of the season, else 0
    -- The constructorIds of the driver's entries in the season up to this race, each once, separated by spaces: by the
    -- first round with it, then resultId.
    constructors      TEXT NOT NULL
) STRICT;
CREATE INDEX driver_standings_raceId ON driver_standings (raceId);
-- Queries across seasons read only final lists. SQLite uses these indexes only if a query has exactly `final = 1`.
CREATE INDEX driver_standings_final ON driver_standings (final) WHERE final = 1;
CREATE INDEX driver_standings_final_driverId ON driver_standings (driverId) WHERE final = 1;
CREATE INDEX driver_standings_final_positionText ON driver_standings (positionText) WHERE final = 1;

-- A constructor in the championship as it stood after a race. Endpoint `constructorstandings`.
CREATE TABLE constructor_standings (
    record                 INTEGER PRIMARY KEY,  -- order of answers
    constructorStandingsId INTEGER NOT NULL,     -- the dump's
    raceId                 INTEGER NOT NULL REFERENCES races (raceId),
    constructorId          INTEGER NOT NULL REFERENCES constructors (constructorId),
    points                 TEXT,                 -- as in driver_standings
    position               INTEGER,              -- as in driver_standings
    positionText           TEXT,                 -- as in driver_standings, and `E` excluded
    wins                   INTEGER,              -- in the season so far
    final                  INTEGER NOT NULL      -- as in driver_standings
) STRICT;
CREATE INDEX constructor_standings_raceId ON constructor_standings (raceId);
CREATE INDEX constructor_standings_final ON constructor_standings (final) WHERE final = 1;
CREATE INDEX constructor_standings_final_constructorId ON constructor_standings (constructorId) WHERE final = 1;
CREATE INDEX constructor_standings_final_positionText ON constructor_standings (positionText) WHERE final = 1;

-- Views for analysts, with what most queries compute first: names instead of ids, points and times
-- in seconds as numbers. A row of a view is a row of one table, except in weekend_points. The
-- service reads no view, and views take no space.
--
-- `year`, `round`, `race` and `date` (YYYY-MM-DD) are those of the race. `driverRef`,
-- `constructorRef` and `circuitRef` are the ids of the API. Columns that begin with `is` are 1 or
-- 0, or NULL if that is unknown.
--
-- DuckDB runs views itself. So they have only functions and casts that it has too, and DOUBLE: its
-- REAL has 32 bits.

-- A row of `results`.
CREATE VIEW race_results AS SELECT
    year, round, date, races.name AS race,             -- the race
    circuitRef, circuits.name AS circuit,              -- where it was
    driverRef, forename || ' ' || surname AS driver,   -- who drove
    constructorRef, constructors.name AS constructor,  -- for whom
    results.number, grid,                              -- of the car; 0: pit lane, or no start
    CASE WHEN positionText < 'A' THEN CAST(positionText AS INTEGER) END
        AS position,                                   -- NULL: not classified
    positionText, positionOrder,                       -- as in the table
    CAST(points AS DOUBLE) AS points,                  -- such as 12.5
    laps,                                              -- completed
    CAST(milliseconds / 1000.0 AS DOUBLE) AS seconds,  -- race time
    fastestLap, rank,                                  -- the fastest lap: its number and rank
    CAST(round(60 * CAST(substr(fastestLapTime, 1, instr(fastestLapTime, ':') - 1) AS INTEGER)
        + CAST(substr(fastestLapTime, -6) AS DOUBLE), 3) AS DOUBLE)
        AS fastestLapSeconds,                          -- its time
    CAST(fastestLapSpeed AS DOUBLE) AS fastestLapSpeed,  -- its average speed: km/h
    status,                                            -- such as `Engine`
    CAST(positionText = '1' AS INTEGER) AS isWinner,   -- both drivers, if they shared the car
    CAST(positionText NOT IN ('E', 'F', 'W') OR coalesce(laps > 0, FALSE) AS INTEGER)
        AS isStart                                     -- 0: excluded, not qualified, withdrawn, without a lap
FROM results JOIN races USING (raceId) JOIN circuits USING (circuitId) JOIN drivers USING (driverId)
    JOIN constructors USING (constructorId) LEFT JOIN status USING (statusId);

-- A row of `sprint_results`. The columns are as in race_results.
CREATE VIEW sprint_race_results AS SELECT
    year, round, date, races.name AS race,             -- the race of the weekend
    circuitRef, circuits.name AS circuit,              -- where it was
    driverRef, forename || ' ' || surname AS driver,   -- who drove
    constructorRef, constructors.name AS constructor,  -- for whom
    sprint_results.number, grid,                       -- of the car; 0: pit lane, or no start
    CASE WHEN positionText < 'A' THEN CAST(positionText AS INTEGER) END
        AS position,                                   -- NULL: not classified
    positionText, positionOrder,                       -- as in the table
    CAST(points AS DOUBLE) AS points,                  -- such as 8
    laps,                                              -- completed
    CAST(milliseconds / 1000.0 AS DOUBLE) AS seconds,  -- time of the sprint
    fastestLap, rank,                                  -- the fastest lap: its number and rank
    CAST(round(60 * CAST(substr(fastestLapTime, 1, instr(fastestLapTime, ':') - 1) AS INTEGER)
        + CAST(substr(fastestLapTime, -6) AS DOUBLE), 3) AS DOUBLE)
        AS fastestLapSeconds,                          -- its time
    status,                                            -- such as `Engine`
    CAST(positionText = '1' AS INTEGER) AS isWinner    -- of the sprint
FROM sprint_results JOIN races USING (raceId) JOIN circuits USING (circuitId)
    JOIN drivers USING (driverId) JOIN constructors USING (constructorId)
    LEFT JOIN status USING (statusId);

-- Who had the pole of a race: the first place on the grid, even without a start. Of drivers who shared the car, the
-- first has it. On the sprint weekends of 2022, the fastest in qualifying had it, and not the winner of the sprint.
CREATE VIEW poles AS SELECT
    year, round, date, races.name AS race,             -- the race
    circuitRef, circuits.name AS circuit,              -- where it was
    driverRef, forename || ' ' || surname AS driver,   -- who had the pole
    constructorRef, constructors.name AS constructor   -- for whom
FROM results JOIN races USING (raceId) JOIN circuits USING (circuitId) JOIN drivers USING (driverId)
    JOIN constructors USING (constructorId)
WHERE CASE WHEN year = 2022 AND raceId IN (SELECT raceId FROM sprint_results)
    THEN EXISTS (SELECT 1 FROM qualifying AS fastest WHERE fastest.raceId = results.raceId
        AND fastest.driverId = results.driverId AND fastest.position = 1)
    WHEN grid = 1 THEN NOT EXISTS (SELECT 1 FROM results AS before
        WHERE before.raceId = results.raceId AND before.grid = 1 AND before.record < results.record)
    END;

-- What a driver earned in a weekend for a constructor: the race and the sprint together.
CREATE VIEW weekend_points AS SELECT
    year, round, date, races.name AS race,             -- the race of the weekend
    circuitRef, circuits.name AS circuit,              -- where it was
    driverRef, forename || ' ' || surname AS driver,   -- who drove
    constructorRef, constructors.name AS constructor,  -- for whom
    racePoints, sprintPoints,                          -- in each; NULL: no result there
    points                                             -- the sum
FROM (
    SELECT raceId, driverId, constructorId, sum(ofRace) AS racePoints, sum(ofSprint) AS sprintPoints,
        sum(coalesce(ofRace, ofSprint)) AS points
    FROM (
        SELECT raceId, driverId, constructorId, CAST(points AS DOUBLE) AS ofRace,
            CAST(NULL AS DOUBLE) AS ofSprint
        FROM results
        UNION ALL
        SELECT raceId, driverId, constructorId, CAST(NULL AS DOUBLE), CAST(points AS DOUBLE)
        FROM sprint_results) AS earned
    GROUP BY raceId, driverId, constructorId) AS weekend
    JOIN races USING (raceId) JOIN circuits USING (circuitId) JOIN drivers USING (driverId)
    JOIN constructors USING (constructorId);

-- A row of `qualifying`.
CREATE VIEW qualifying_results AS SELECT
    year, round, date, races.name AS race,             -- the race of the weekend
    circuitRef, circuits.name AS circuit,              -- where it was
    driverRef, forename || ' ' || surname AS driver,   -- who drove
    constructorRef, constructors.name AS constructor,  -- for whom
    qualifying.number, position,                       -- of the car; in qualifying
    CAST(round(60 * CAST(substr(q1, 1, instr(q1, ':') - 1) AS INTEGER)
        + CAST(substr(q1, -6) AS DOUBLE), 3) AS DOUBLE) AS q1,  -- seconds, in the first part
    CAST(round(60 * CAST(substr(q2, 1, instr(q2, ':') - 1) AS INTEGER)
        + CAST(substr(q2, -6) AS DOUBLE), 3) AS DOUBLE) AS q2,  -- in the second part
    CAST(round(60 * CAST(substr(q3, 1, instr(q3, ':') - 1) AS INTEGER)
        + CAST(substr(q3, -6) AS DOUBLE), 3) AS DOUBLE) AS q3   -- in the third part
FROM qualifying JOIN races USING (raceId) JOIN circuits USING (circuitId)
    JOIN drivers USING (driverId) JOIN constructors USING (constructorId);

-- A row of `sprint_qualifying`. The columns are as in qualifying_results.
CREATE VIEW sprint_qualifying_results AS SELECT
    year, round, date, races.name AS race,             -- the race of the weekend
    circuitRef, circuits.name AS circuit,              -- where it was
    driverRef, forename || ' ' || surname AS driver,   -- who drove
    constructorRef, constructors.name AS constructor,  -- for whom
    sprint_qualifying.number, position,                -- of the car; in sprint qualifying
    CAST(round(60 * CAST(substr(q1, 1, instr(q1, ':') - 1) AS INTEGER)
        + CAST(substr(q1, -6) AS DOUBLE), 3) AS DOUBLE) AS q1,  -- seconds, in the first part
    CAST(round(60 * CAST(substr(q2, 1, instr(q2, ':') - 1) AS INTEGER)
        + CAST(substr(q2, -6) AS DOUBLE), 3) AS DOUBLE) AS q2,  -- in the second part
    CAST(round(60 * CAST(substr(q3, 1, instr(q3, ':') - 1) AS INTEGER)
        + CAST(substr(q3, -6) AS DOUBLE), 3) AS DOUBLE) AS q3   -- in the third part
FROM sprint_qualifying JOIN races USING (raceId) JOIN circuits USING (circuitId)
    JOIN drivers USING (driverId) JOIN constructors USING (constructorId);

-- A row of `practice`.
CREATE VIEW practice_results AS SELECT
    year, round, date, races.name AS race,             -- the race of the weekend
    session,                                           -- the n-th practice of the weekend, from 1
    circuitRef, circuits.name AS circuit,              -- where it was
    driverRef, forename || ' ' || surname AS driver,   -- who drove
    constructorRef, constructors.name AS constructor,  -- for whom
    practice.number, position, laps,                   -- of the car; by the best lap; completed
    CAST(milliseconds / 1000.0 AS DOUBLE) AS seconds   -- the best lap
FROM practice JOIN races USING (raceId) JOIN circuits USING (circuitId)
    JOIN drivers USING (driverId) JOIN constructors USING (constructorId);

-- A row of `lap_times`.
CREATE VIEW laps AS SELECT
    year, round, date, races.name AS race,             -- the race
    circuitRef, circuits.name AS circuit,              -- where it was
    driverRef, forename || ' ' || surname AS driver,   -- who drove
    constructorRef, constructors.name AS constructor,  -- for whom
    lap, position,                                     -- its number; the place at its end
    -- With a red flag, a lap may take hours: H:MM:SS.mmm.
    CAST(round(CASE WHEN length(lap_times.time) > 10
        THEN 3600 * CAST(substr(lap_times.time, 1, instr(lap_times.time, ':') - 1) AS INTEGER)
            + 60 * CAST(substr(lap_times.time, -9, 2) AS INTEGER)
        ELSE 60 * CAST(substr(lap_times.time, 1, instr(lap_times.time, ':') - 1) AS INTEGER) END
        + CAST(substr(lap_times.time, -6) AS DOUBLE), 3) AS DOUBLE)
        AS seconds                                     -- the time of the lap
FROM lap_times JOIN races USING (raceId) JOIN circuits USING (circuitId)
    JOIN drivers USING (driverId)
    -- Nobody has raced for two constructors in one race since there are timings.
    LEFT JOIN (SELECT raceId, driverId, min(constructorId) AS constructorId
        FROM results GROUP BY raceId, driverId) AS entry USING (raceId, driverId)
    LEFT JOIN constructors USING (constructorId);

-- A row of `pit_stops`.
CREATE VIEW stops AS SELECT
    year, round, date, races.name AS race,             -- the race
    circuitRef, circuits.name AS circuit,              -- where it was
    driverRef, forename || ' ' || surname AS driver,   -- who stopped
    constructorRef, constructors.name AS constructor,  -- for whom
    stop, lap, pit_stops.time,                         -- the n-th; in which lap; the local clock
    CAST(milliseconds / 1000.0 AS DOUBLE) AS seconds   -- in the pit lane, even under a red flag
FROM pit_stops JOIN races USING (raceId) JOIN circuits USING (circuitId)
    JOIN drivers USING (driverId)
    LEFT JOIN (SELECT raceId, driverId, min(constructorId) AS constructorId
        FROM results GROUP BY raceId, driverId) AS entry USING (raceId, driverId)
    LEFT JOIN constructors USING (constructorId);

-- A row of `driver_standings`.
CREATE VIEW driver_championship AS SELECT
    year, round, date, races.name AS race,             -- after which race
    circuitRef, circuits.name AS circuit,              -- where it was
    driverRef, forename || ' ' || surname AS driver,   -- whose place it is
    constructorRef, constructors.name AS constructor,  -- the last that the driver joined
    position, positionText,                            -- as in the table
    CAST(points AS DOUBLE) AS points, wins,            -- in the season so far
    final AS isFinal,                                  -- after the last scheduled round
    CAST(coalesce(final = 1 AND position = 1, 0) AS INTEGER) AS isChampion  -- of the season
FROM driver_standings JOIN races USING (raceId) JOIN circuits USING (circuitId)
    JOIN drivers USING (driverId)
    -- the last id in `constructors`: what rtrim leaves is all before it
    LEFT JOIN constructors ON constructorId = CAST(nullif(substr(driver_standings.constructors,
        length(rtrim(driver_standings.constructors, '0123456789')) + 1), '') AS INTEGER);

-- A row of `constructor_standings`.
CREATE VIEW constructor_championship AS SELECT
    year, round, date, races.name AS race,             -- after which race
    circuitRef, circuits.name AS circuit,              -- where it was
    constructorRef, constructors.name AS constructor,  -- whose place it is
    position, positionText,                            -- as in the table
    CAST(points AS DOUBLE) AS points, wins,            -- in the season so far
    final AS isFinal,                                  -- after the last scheduled round
    CAST(coalesce(final = 1 AND position = 1, 0) AS INTEGER) AS isChampion  -- of the season
FROM constructor_standings JOIN races USING (raceId) JOIN circuits USING (circuitId)
    JOIN constructors USING (constructorId);
